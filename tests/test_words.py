"""Counted nouns: one is singular, others are plural."""

import pytest

from tailprompt.errors import counted


@pytest.mark.parametrize(
    "number, thing, said",
    [
        (0, "row", "0 rows"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
        (1, "data set", "1 data set"),
        (1200, "run", "1,200 runs"),
        (2, "box", "2 boxes"),
        (2, "branch", "2 branches"),
    ],
)
def test_a_noun_follows_its_number(number, thing, said):
    assert counted(number, thing) == said
