"""Counted nouns: one is singular, others are plural."""

import re
from pathlib import Path

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


@pytest.mark.parametrize(
    "number, verb, said",
    [
        (1, "hold", "1 row holds"),
        (2, "hold", "2 rows hold"),
        (1, "have", "1 row has"),
        (1, "are", "1 row is"),
        (1, "do not have", "1 row does not have"),
        (3, "do not have", "3 rows do not have"),
    ],
)
def test_a_verb_follows_the_number_of_its_noun(number, verb, said):
    assert counted(number, "row", verb) == said


NOUNS = "rows|lines|classes|labels|images|files|questions|options|columns|words|tensors|documents|tokens"
COUNT = re.compile(rf"\{{(?:len\([^{{}}]*\)|[^{{}}]*\.sum\(\))(?::,)?\}} (?:[a-z]+ )?(?:{NOUNS})\b")


@pytest.mark.parametrize("file", sorted(Path("src").rglob("*.py")), ids=str)
def test_no_number_of_things_is_printed_with_a_plural_that_does_not_follow_it(file):
    assert not COUNT.findall(file.read_text("utf-8"))
