"""How near an answer's text is to a right one: exact match and token F1 of SQuAD and ReCoRD.

The rules are those of the official script of SQuAD 2.0 (Rajpurkar et al. 2018), which ReCoRD shares.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from string import punctuation

MARKS = str.maketrans("", "", punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


@lru_cache(1 << 16)
def normalized(text: str) -> str:
    """A text in small letters, without ASCII punctuation, English articles and superfluous blanks."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def exact(answer: str, right: Sequence[str]) -> float:
    """1 if the answer is one of the right ones, both normalised, else 0; none is right if it is empty."""
    return float(normalized(answer) in [normalized(each) for each in asked(right)])


def overlap(answer: str, right: Sequence[str]) -> float:
    """The best token F1 of an answer with one of the right ones, both normalised."""
    return max(token_f1(normalized(answer).split(), normalized(each).split()) for each in asked(right))


def asked(right: Sequence[str]) -> Sequence[str]:
    """The right answers that normalising leaves something of; the empty one where there is none."""
    return [each for each in right if normalized(each)] or [""]


def token_f1(answer: Sequence[str], right: Sequence[str]) -> float:
    """Twice the common tokens over all tokens; of an empty answer 1 where the right one is empty too."""
    if not answer or not right:
        return float(answer == right)
    common = sum((Counter(answer) & Counter(right)).values())
    return 2 * common / (len(answer) + len(right))
