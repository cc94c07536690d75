"""Prompt matching: shares that add up to one, and usage from one prompt to all alike."""

import numpy as np
import pytest

from tailprompt.report import matching

CHOSEN = np.array([[0, 1], [0, 1], [0, 2], [3, 2]])
LABELS = np.array([0, 0, 0, 2])


def test_shares_of_the_prompts_add_up_to_one():
    assert matching.usage(CHOSEN, 5) == pytest.approx([3 / 8, 2 / 8, 2 / 8, 1 / 8, 0])
    found = matching.by_class(CHOSEN, LABELS, 3, 5)
    assert np.nansum(found, axis=1) == pytest.approx([1, 0, 1])
    assert np.isnan(found[1]).all()


def test_the_two_most_chosen_prompts_come_with_their_shares():
    ids, shares = matching.best_two(matching.by_class(CHOSEN, LABELS, 3, 5)[[0, 2]])
    assert ids.tolist() == [[0, 1], [2, 3]]
    assert shares == pytest.approx(np.array([[3 / 6, 2 / 6], [1 / 2, 1 / 2]]))


@pytest.mark.parametrize("shares, bits", [([1, 0, 0, 0], 0), ([0.25] * 4, 2), ([0.5, 0.5, 0, 0], 1)])
def test_entropy_goes_from_none_to_log2_of_the_pool(shares, bits):
    assert matching.entropy(np.array(shares)) == pytest.approx(bits)
