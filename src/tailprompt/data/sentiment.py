"""Annotators, which give a text probabilities of five sentiments, and pseudo-labels (PPT, section 3.2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

from tailprompt.data.checks import refuse
from tailprompt.data.separated import read_separated
from tailprompt.errors import BadInput

THRESHOLDS = (0.95, 0.5, 0.5, 0.5, 0.7)  # for terrible, bad, maybe, good, great, as released
NEGATION, TURNED = "不没无未别", -0.74  # the factor of VADER for a negated word

Annotator = Callable[[str], Sequence[float]]


def accepted(probabilities: Sequence[float]) -> int | None:
    """The most probable of five classes, or None if its probability is not above its threshold."""
    best = max(range(len(THRESHOLDS)), key=lambda label: probabilities[label])
    return best if probabilities[best] > THRESHOLDS[best] else None


def vader(row: dict) -> Annotator:
    """The score of an English lexicon (VADER, Hutto and Gilbert 2014) in five equal bins, always certain."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # most data sets need no lexicon

    scores = SentimentIntensityAnalyzer().polarity_scores
    return lambda text: certain(scores(text)["compound"])


def lexicon(row: dict) -> Annotator:
    """The same for Chinese, from the row's `lexicon`: a CSV of word,valence with valences from -4 to 4.

    A negation just before a word reverses its valence. The sum of valences becomes a score as in VADER.
    """
    path = Path(row["lexicon"])
    table = read_separated(path, "utf-8-sig", ",")
    if not {"word", "valence"} <= set(table):
        raise BadInput(f"{path} needs the header word,valence")
    if not len(table):
        raise BadInput(f"{path} has no rows; it needs a word and its valence in each")
    wrong = ~table["valence"].str.fullmatch(r"-?[0-4](\.\d+)?") | (table["word"].str.strip() == "")
    refuse(table, wrong, f"{path}: {{rows}} not a word and a valence in -4..4 ({{places}})", verb="are")
    again = table["word"].duplicated()
    refuse(table, again, f"{path}: {{rows}} a word that stands before ({{places}}); keep one of each")
    valence = dict(zip(table["word"], table["valence"].astype(float), strict=True))
    longest_first = "|".join(map(re.escape, sorted(valence, key=len, reverse=True)))
    found = re.compile(f"([{NEGATION}]?)({longest_first})")

    def annotate(text: str) -> list[float]:
        total = sum(valence[word] * (TURNED if turned else 1) for turned, word in found.findall(text))
        return certain(total / sqrt(total**2 + 15))

    return annotate


def certain(score: float) -> list[float]:
    """Probabilities of five equal bins of [-1, 1]: 1 for the bin of the score, 0 for the others."""
    found = min(int((score + 1) / 2 * len(THRESHOLDS)), len(THRESHOLDS) - 1)
    return [float(label == found) for label in range(len(THRESHOLDS))]


ANNOTATORS = {"vader": vader, "lexicon": lexicon}  # beside `model`, which stage annotate runs
