"""Average precision: the mean precision at the ranks of a class's examples, ranked by its probability.

It is no function of sums over examples, as a rank depends on all other examples. It is one of the weights
of the examples, though: `times @ Ranked(...)` ranks each resample anew, an example drawn twice counting
twice. Everything that multiplies statistics by such weights (scores, bootstrap, claims) so resamples average
precision exactly; equal probabilities share a rank, as in scikit-learn.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


class Ranked:
    """The probabilities of classes `[examples, classes]`, as a statistic of examples."""

    __array_ufunc__ = None  # numpy leaves `times @ self` to this class

    def __init__(self, shares: np.ndarray, labels: np.ndarray, columns: int) -> None:
        """columns: categories of the other statistics; those beyond `shares` are no class."""
        self.shares, self.labels, self.shape = shares, labels, (len(shares), columns)

    def __rmatmul__(self, times: np.ndarray) -> np.ndarray:
        """The average precision of each class, `[..., categories]`, for weights `[..., examples]`."""
        each = np.zeros((*times.shape[:-1], self.shape[1]))
        for c in np.unique(self.labels):
            each[..., c] = average_precision(times, self.shares[:, c], self.labels == c)
        return each


def average_precision(times: np.ndarray, shares: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sum over thresholds of precision times the gain in recall, `[...]`; 0 without a right example.

    times: weights `[..., examples]`. The thresholds are the distinct shares of right examples.
    """
    thresholds = -np.unique(-shares[right])
    rank = np.searchsorted(-thresholds, -shares)  # the first threshold that an example reaches
    rank[rank == len(thresholds)] = -1
    hits = times @ indicator(np.where(right, rank, -1), len(thresholds))
    above = np.cumsum(times @ indicator(rank, len(thresholds)), axis=-1)
    precision = divide(np.cumsum(hits, axis=-1), above, empty=0.0)
    return divide((hits * precision).sum(-1), hits.sum(-1), empty=0.0)


def indicator(ids: np.ndarray, columns: int) -> csr_array:
    """A one in the column of each example's id, `[examples, columns]`; an empty row if it is negative."""
    there = ids >= 0
    place = ids[there], np.concatenate([[0], np.cumsum(there)])
    return csr_array((np.ones(len(place[0]), np.float32), *place), shape=(len(ids), columns))


def divide(above: np.ndarray, below: np.ndarray, *, empty: float) -> np.ndarray:
    """`above / below`, or `empty` where `below` is zero."""
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=np.asarray(below) > 0)
