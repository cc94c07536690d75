"""Which group prompts the images of each class match (LPT, section 5.3 and appendix D)."""

from __future__ import annotations

import numpy as np


def usage(chosen: np.ndarray, pool: int) -> np.ndarray:
    """The share of each prompt among all choices, `[pool]`. chosen: prompt ids `[images, k]`."""
    return np.bincount(chosen.ravel(), minlength=pool) / chosen.size


def by_class(chosen: np.ndarray, labels: np.ndarray, classes: int, pool: int) -> np.ndarray:
    """The `usage` by the images of each class, `[classes, pool]`; NaN for a class without images."""
    shares = np.full((classes, pool), np.nan)
    for c in np.unique(labels):
        shares[c] = usage(chosen[labels == c], pool)
    return shares


def best_two(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ids and shares of the two most chosen prompts, `[..., 2]` each; of equal shares the lower id first."""
    order = np.argsort(-shares, axis=-1, kind="stable")[..., :2]
    return order, np.take_along_axis(shares, order, axis=-1)


def entropy(shares: np.ndarray) -> float:
    """Entropy of a usage in bits: 0 if one prompt serves all images, log2(pool) if all serve equally."""
    used = shares[shares > 0]
    return float(-(used * np.log2(used)).sum())
