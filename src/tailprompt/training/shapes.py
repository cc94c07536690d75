"""The shapes to which batches of texts are padded on a GPU, where each shape costs a CUDA graph.

A shape is the widths of the parts of a batch: its texts, the shortest first, are cut in parts of equally
many, and each part is padded to a width of its own. Batches of like length need one part and a few widths. In
a plain shuffle each batch has short and long texts, and a shape of several parts pads most of them well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from jaxtyping import Int
from torch import Tensor

STEP = 8  # widths are multiples of it, which tensor cores prefer
WASTE = 0.1  # of the tokens of padded batches, the share that may be padding for the width alone
MOST = 12
PARTS = (2, 4)
PART = 1000  # tokens that take about as long as to launch one part more
COMMON = 0.95  # share of the batches whose parts a shape of several parts holds, part by part

Shape = tuple[int, ...]
Lengths = Int[Tensor, "batches batch"]  # of the texts of batches, the shortest first


def shapes(lengths: Lengths, most: int) -> list[Shape]:
    """The shapes for batches like these, of which a batch takes the first that holds it.

    most: the length of the longest text of all, which the last shape holds, in one part.
    """
    ways = [[(width,) for width in choose(lengths[:, -1].tolist(), most)]]
    ways += [in_parts(lengths, most, parts) for parts in PARTS if lengths.shape[1] % parts == 0]
    return min(ways, key=partial(cost, lengths))


def in_parts(lengths: Lengths, most: int, parts: int) -> list[Shape]:
    """A shape of several parts that holds most batches, and one of one part for the others."""
    longest = lengths[:, lengths.shape[1] // parts - 1 :: lengths.shape[1] // parts].double()
    common = longest.quantile(COMMON, dim=0, interpolation="higher")
    return [tuple(rounded(int(width)) for width in common), (rounded(most),)]


def cost(lengths: Lengths, ways: list[Shape]) -> int:
    """The padded tokens of batches of these shapes, and what their parts cost beside."""
    taken = Counter(fitting(batch, ways) for batch in lengths)
    size = lengths.shape[1]
    return sum(
        count * (sum(shape) * size // len(shape) + PART * (len(shape) - 1)) for shape, count in taken.items()
    )


def fitting(lengths: Int[Tensor, " batch"], ways: Sequence[Shape]) -> Shape:
    """The first shape that holds a batch, whose lengths are given, the shortest first."""
    return next(shape for shape in ways if holds(shape, lengths))


def holds(shape: Shape, lengths: Int[Tensor, " batch"]) -> bool:
    """Whether each part of a batch is at most as long as its width."""
    size = len(lengths) // len(shape)
    return all(int(lengths[size * (at + 1) - 1]) <= width for at, width in enumerate(shape))


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
