"""Which group prompts the images of a class are matched with (LPT, section 5.3 and appendix D)."""

from __future__ import annotations

import numpy as np


def usage(chosen: np.ndarray, pool: int) -> np.ndarray:
    """Share of all choices that falls on each prompt, `[pool]`; chosen: prompt ids `[images, k]`."""
    return np.bincount(chosen.ravel(), minlength=pool) / chosen.size


def by_class(chosen: np.ndarray, labels: np.ndarray, classes: int, pool: int) -> np.ndarray:
    """`usage` of each class's images, `[classes, pool]`; NaN for a class without images."""
    found = np.full((classes, pool), np.nan)
    for c in np.unique(labels):
        found[c] = usage(chosen[labels == c], pool)
    return found


def best_two(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ids and shares of the most and second most chosen prompt, `[..., 2]` each, the lower id of equals."""
    order = np.argsort(-shares, axis=-1, kind="stable")[..., :2]
    return order, np.take_along_axis(shares, order, axis=-1)


def entropy(shares: np.ndarray) -> float:
    """Entropy of a usage in bits: 0 where one prompt serves all, log2 of the pool where all serve alike."""
    used = shares[shares > 0]
    return float(-(used * np.log2(used)).sum())
