"""How sure an annotator is of five sentiments, and when that makes a pseudo-label (PPT, section 3.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

THRESHOLDS = (0.95, 0.5, 0.5, 0.5, 0.7)  # of terrible, bad, maybe, good, great, as released

Annotator = Callable[[str], Sequence[float]]


def accepted(probabilities: Sequence[float]) -> int | None:
    """The most probable of five classes, or none where its probability is not above its threshold."""
    best = max(range(len(THRESHOLDS)), key=lambda label: probabilities[label])
    return best if probabilities[best] > THRESHOLDS[best] else None


def vader() -> Annotator:
    """An English lexicon's score (VADER, Hutto and Gilbert 2014) in five equal bins; it is always sure."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # most data sets need no lexicon

    scores = SentimentIntensityAnalyzer().polarity_scores
    return lambda text: certain(scores(text)["compound"])


def certain(score: float) -> list[float]:
    """A score in [-1, 1] as probabilities of five equal bins: one of them is certain."""
    found = min(int((score + 1) / 2 * len(THRESHOLDS)), len(THRESHOLDS) - 1)
    return [float(label == found) for label in range(len(THRESHOLDS))]


ANNOTATORS = {"vader": vader}
