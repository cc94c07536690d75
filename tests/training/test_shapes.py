"""Shapes of batches: few, and with little padding."""

from itertools import combinations

import pytest
import torch

from tailprompt.training.shapes import PART, STEP, WASTE, choose, cost, fitting, holds, shapes


def padded(longest, widths):
    return sum(next(width for width in widths if width >= length) for length in longest)


def lengths(seed: int, count: int, most: int) -> list[int]:
    return torch.randint(1, most + 1, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize("most", [24, 60, 250, 512])
def test_widths_hold_every_batch_and_pad_at_most_a_tenth_more(most):
    longest = lengths(most, 300, most)
    widths = choose(longest, most)
    assert widths == sorted(widths) and widths[-1] >= most
    assert padded(longest, widths) <= (1 + WASTE) * padded(longest, range(0, most + STEP, STEP))


@pytest.mark.parametrize("seed", range(5))
def test_no_other_choice_of_as_many_widths_pads_less_and_fewer_pad_too_much(seed):
    longest = lengths(seed, 40, 72)
    widths, every = choose(longest, 72), range(STEP, 80, STEP)
    best = {
        n: min(padded(longest, (*few, 72)) for few in combinations(every, n - 1)) for n in (1, 2, 3, 4, 5)
    }
    assert padded(longest, widths) == best[len(widths)]
    assert all(best[n] > (1 + WASTE) * padded(longest, every) for n in best if n < len(widths))


def test_batches_of_one_length_have_one_width():
    assert choose([61, 64, 60], 64) == [64]


def batches(seed: int, count: int, *, size: int = 32, alike: bool) -> torch.Tensor:
    """Lengths of batches, each sorted: texts of 6 to 500 tokens, shuffled, or those of a batch alike."""
    drawn = torch.rand(count * size, generator=torch.Generator().manual_seed(seed)) ** 3 * 494 + 6
    drawn = drawn.long().sort().values if alike else drawn.long()
    return drawn.view(count, size).sort(dim=1).values


@pytest.mark.parametrize("alike", [True, False])
def test_each_batch_has_a_shape_that_holds_it_and_the_last_holds_all(alike):
    seen, later = batches(0, 100, alike=alike), batches(1, 100, alike=alike)
    ways = shapes(seen, 499)
    assert all(holds(fitting(batch, ways), batch) for batch in later)
    assert ways[-1] == (504,)


def test_batches_of_like_length_stay_whole_and_a_shuffle_is_cut_in_parts():
    assert {len(shape) for shape in shapes(batches(0, 100, alike=True), 499)} == {1}
    shuffled = batches(0, 100, alike=False)
    ways = shapes(shuffled, 499)
    assert [len(shape) for shape in ways] == [4, 1]
    tokens = cost(shuffled, ways) - 100 * 3 * PART
    assert int(shuffled.sum()) < tokens < 0.6 * cost(shuffled, [ways[-1]])
    taken = [fitting(batch, ways) for batch in batches(1, 100, alike=False)]
    assert taken.count(ways[0]) > 80


def test_where_little_is_padded_a_batch_stays_whole():
    assert shapes(torch.full((50, 32), 197), 197) == [(200,)]
    assert shapes(torch.tensor([[5, 6, 30]]), 30) == [(32,)]
