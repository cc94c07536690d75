"""How well the features of a run separate classes, from its feature vectors or from what travelled of them.

The vectors of all training and test examples are too large to travel (16 MB a run for 20,000 examples of
width 192). A summary, `separability.json`, does: distances within and between classes, and the nearest
neighbours' classes for each K of `NUMBERS`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json
from tailprompt.plan.places import MAY_CARRY
from tailprompt.report import records, separability

SUMMARY = MAY_CARRY
NUMBERS = (1, 5, 20, 200)  # neighbours that LPT's tables and claims ask for


def statistics(
    folder: Path, names: list[str], classes: np.ndarray, examples: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Each statistic of a run in every draw, `[draws]`; see `separability.statistics`.

    examples: None takes each test example once in every draw.
    """
    if not (folder / SUMMARY).is_file():
        splits = records.vectors(folder)
        every = np.ones((len(classes), len(splits["test"][1]))) if examples is None else examples
        return separability.statistics(names, splits["train"], splits["test"], every, classes)
    kept = read_json(folder / SUMMARY, "labels", "within", "between", "nearest")
    numbers = [name.removeprefix(separability.KNN) for name in names if name.startswith(separability.KNN)]
    if absent := [number for number in numbers if number not in kept["nearest"]]:
        known = ", ".join(kept["nearest"])
        raise BadInput(f"{folder / SUMMARY} has no K-NN of K = {absent[0]}; it has those of {known}")
    labels, nearest = np.array(kept["labels"]), {int(k): np.array(kept["nearest"][k]) for k in numbers}
    every = np.ones((len(classes), len(labels))) if examples is None else examples
    far = np.array(kept["within"], float), squared(kept["between"])
    return separability.drawn(names, nearest, labels, *far, every, classes)


def summary(folder: Path, classes: int) -> dict | None:
    """What travels of a run's feature vectors; None if it has not those of all examples.

    labels: of the test examples by id. within: R of each class, None without examples. between: the distances
    of class c's centre from those before it, of each c. nearest: K -> the neighbours' class of each example.
    """
    if (folder / SUMMARY).is_file():
        return read_json(folder / SUMMARY)
    splits = records.vectors(folder, complete=False)
    if not {"train", "test"} <= splits.keys():
        return None
    vectors, labels = splits["test"]
    within = separability.inner(vectors, labels, classes)
    between = separability.inter(vectors, labels, classes)
    nearest = separability.knn(*splits["train"], vectors, NUMBERS)
    return {
        "labels": labels.tolist(),
        "within": numbers_of(within),
        "between": [numbers_of(line[:c]) for c, line in enumerate(between)],
        "nearest": {str(number): guesses.tolist() for number, guesses in nearest.items()},
    }


def numbers_of(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON: None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


def squared(triangle: list[list[float | None]]) -> np.ndarray:
    """The symmetric matrix `[classes, classes]` of what stands below its diagonal."""
    size = len(triangle)
    matrix = np.zeros((size, size))
    for c, line in enumerate(triangle):
        matrix[c, :c] = matrix[:c, c] = np.array(line, float)
    return matrix


def check(folder: Path, classes: int, examples: int) -> None:
    """Raise BadInput unless a summary that travelled is of so many classes and test examples."""
    file = folder / SUMMARY
    if not file.is_file():
        return
    kept = read_json(file, "labels", "within", "between", "nearest")
    guesses = keyed(kept["nearest"], f"{file}: nearest").values()
    whole = all(
        isinstance(line, list)
        and len(line) == examples
        and all(type(each) is int and 0 <= each < classes for each in line)
        for line in (kept["labels"], *guesses)
    )
    try:
        lengths = [len(line) for line in kept["between"]]
        far = np.array([kept["within"], *squared(kept["between"])], float) if classes else np.zeros(0)
    except (TypeError, ValueError):
        lengths, far = [], np.zeros(0)
    if not whole or lengths != list(range(classes)) or (far < 0).any() or np.isinf(far).any():
        raise BadInput(f"{file} is no summary of {classes} classes and {examples} test examples")
