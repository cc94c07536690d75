"""Widths of batches: few, and with little padding."""

from itertools import combinations

import pytest
import torch

from tailprompt.training.widths import STEP, WASTE, choose, fitting


def padded(longest, widths):
    return sum(fitting(length, widths) for length in longest)


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


def test_without_widths_a_batch_is_as_wide_as_its_longest_text():
    assert fitting(37, ()) == 37
