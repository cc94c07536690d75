"""The names of scores, as `f1/tail` or `recall/class:NAME`. The plan reads them, so this needs no numpy.

A name is a metric, a slash, and a group of classes or one class. Each task says which metrics it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ALL, CLASS = "all", "class:"
RAREST = "rarest"  # the class, or equals, with the fewest training examples: the rare one of two
GROUPS = {ALL: "", "head": "Head", "tail": "Tail", "many": "Many", "medium": "Medium", "few": "Few"}
GROUPS |= {RAREST: "Rarest class"}
METRICS = {"accuracy": "Accuracy", "precision": "Precision", "recall": "Recall", "f1": "F1"}
METRICS |= {"balanced_accuracy": "Balanced accuracy", "average_precision": "Average precision"}
RANKED = "average_precision"
METRICS |= {"exact": "Exact match"}  # of answers, and of all options of a question
METRICS |= {"f1_as_released": "F1 (as released)"}  # of tagging: with the verbs of semantic roles
BY_CLASS = ("precision", "recall", "f1", "average_precision")  # of one class, whose accuracy is its recall


def title(name: str) -> str:
    """The name of a score for people: `f1/tail` is Tail F1, `recall/class:NAME` is Recall of NAME."""
    metric, _, group = name.partition("/")
    said = METRICS.get(metric, metric)
    if group == RAREST or group.startswith(CLASS):
        return f"{said} of {'the rarest class' if group == RAREST else group.removeprefix(CLASS)}"
    within = said if said.startswith("F1") else said.lower()
    return f"{GROUPS[group]} {within}" if GROUPS.get(group) else said


def rarest(report: Mapping) -> list[int]:
    """Ids of the classes with the fewest training examples, among those that the test split has."""
    counts = report.get("counts", {})
    pairs = list(zip(counts.get("train", ()), counts.get("test", ()), strict=True))
    least = min((train for train, test in pairs if train and test), default=None)
    return [c for c, (train, test) in enumerate(pairs) if test and train == least]


def ranks(names: Iterable[str | None]) -> bool:
    """Whether any of these scores takes the scores of all classes, and not decisions alone."""
    return any((name or "").startswith(f"{RANKED}/") for name in names)


def schema() -> dict:
    """The JSON Schema of the name of a score in the block of a table or figure."""
    metrics, groups, each = ("|".join(names) for names in (METRICS, GROUPS, BY_CLASS))
    shown = ", ".join(f"f1/{group}" for group in GROUPS)
    return {
        "type": "string",
        "pattern": f"^(({metrics})/({groups})|({each})/{CLASS}.+)$",
        "description": f"{either(METRICS)} of a group, as {shown}, or {either(BY_CLASS)} of one class, "
        f"as f1/{CLASS}NAME",
    }


def either(names) -> str:
    """`a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}"
