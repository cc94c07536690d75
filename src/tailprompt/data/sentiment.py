"""How sure an annotator is of five sentiments, and when that makes a pseudo-label (PPT, section 3.2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

from tailprompt.data.checks import refuse
from tailprompt.data.readers import read_separated
from tailprompt.errors import BadInput

THRESHOLDS = (0.95, 0.5, 0.5, 0.5, 0.7)  # of terrible, bad, maybe, good, great, as released
NEGATION, TURNED = "不没无未别", -0.74  # what VADER multiplies a negated word by

Annotator = Callable[[str], Sequence[float]]


def accepted(probabilities: Sequence[float]) -> int | None:
    """The most probable of five classes, or none where its probability is not above its threshold."""
    best = max(range(len(THRESHOLDS)), key=lambda label: probabilities[label])
    return best if probabilities[best] > THRESHOLDS[best] else None


def vader(row: dict) -> Annotator:
    """An English lexicon's score (VADER, Hutto and Gilbert 2014) in five equal bins; it is always sure."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # most data sets need no lexicon

    scores = SentimentIntensityAnalyzer().polarity_scores
    return lambda text: certain(scores(text)["compound"])


def lexicon(row: dict) -> Annotator:
    """The same from the row's `lexicon`, a CSV of Chinese words: word,valence from -4 to 4.

    A negation just before a word turns its valence; their sum becomes a score as VADER's does.
    """
    path = Path(row["lexicon"])
    table = read_separated(path, "utf-8-sig", ",")
    if not {"word", "valence"} <= set(table):
        raise BadInput(f"{path} needs the header word,valence")
    if not len(table):
        raise BadInput(f"{path} has no rows; it needs a word and its valence in each")
    wrong = ~table["valence"].str.fullmatch(r"-?[0-4](\.\d+)?") | (table["word"].str.strip() == "")
    refuse(table, wrong, f"{path}: {{n}} rows are not a word and a valence in -4..4 ({{places}})")
    again = table["word"].duplicated()
    refuse(table, again, f"{path}: {{n}} rows have a word that stands before ({{places}}); keep one of each")
    valence = dict(zip(table["word"], table["valence"].astype(float), strict=True))
    longest_first = "|".join(map(re.escape, sorted(valence, key=len, reverse=True)))
    found = re.compile(f"([{NEGATION}]?)({longest_first})")

    def annotate(text: str) -> list[float]:
        total = sum(valence[word] * (TURNED if turned else 1) for turned, word in found.findall(text))
        return certain(total / sqrt(total**2 + 15))

    return annotate


def certain(score: float) -> list[float]:
    """A score in [-1, 1] as probabilities of five equal bins: one of them is certain."""
    found = min(int((score + 1) / 2 * len(THRESHOLDS)), len(THRESHOLDS) - 1)
    return [float(label == found) for label in range(len(THRESHOLDS))]


ANNOTATORS = {"vader": vader, "lexicon": lexicon}  # and model: stage annotate runs it
