"""The widths to which batches of texts are padded on a GPU, where each width costs a CUDA graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

STEP = 8  # widths are multiples of it, which tensor cores prefer
WASTE = 0.1  # of the tokens of padded batches, the share that may be padding for the width alone
MOST = 12


def choose(longest: Sequence[int], most: int) -> list[int]:
    """The fewest widths, in rising order, that pad batches little beyond their longest texts.

    longest: of each batch, the length of its longest text. most: the longest of all, which must fit too. The
    padded tokens grow by at most WASTE over those of multiples of STEP, unless that takes over MOST widths.
    """
    counts = Counter(rounded(length) for length in longest) + Counter()
    ends = sorted({*counts, rounded(most)})
    least = sum(width * counts[width] for width in ends)
    cost = {end: sum(counts[width] for width in ends if width <= end) * end for end in ends}  # of one width
    chosen = {end: [end] for end in ends}  # the best widths up to an end, of as many as the round says
    for _ in range(MOST - 1):
        if cost[ends[-1]] <= (1 + WASTE) * least:
            break
        cost, chosen = one_more(ends, counts, cost, chosen)
    return chosen[ends[-1]]


def one_more(ends, counts, cost: dict[int, int], chosen: dict[int, list[int]]):
    """The costs and widths with one width more, where that pads less: dynamic programming over ends."""
    less, longer = dict(cost), dict(chosen)
    for end in ends:
        between = 0
        for below, above in reversed([*pairwise(e for e in ends if e <= end)]):
            between += counts[above]
            if (padded := cost[below] + between * end) < less[end]:
                less[end], longer[end] = padded, [*chosen[below], end]
    return less, longer


def rounded(length: int) -> int:
    """The next multiple of STEP."""
    return -(-length // STEP) * STEP


def fitting(length: int, widths: Sequence[int]) -> int:
    """The smallest of the widths that holds `length`; `length` itself if there are none."""
    return next((width for width in widths if width >= length), length)
