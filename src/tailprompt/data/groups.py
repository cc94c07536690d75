"""Groups of classes: head and tail (GLEE, section 3.1), and many, medium and few by training count."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate

from tailprompt.errors import BadInput, named


def head_tail(counts: Sequence[int], *, threshold: float | None) -> tuple[list[int], list[int]]:
    """Class ids of head and tail, most frequent first.

    Classes are in head while the cumulative share of examples, their own included, is strictly below
    `threshold`. The class that reaches it and all later ones are tail. Ties are ordered by class id. Classes
    without examples are in neither. The largest class is head even if it reaches the threshold alone, which
    GLEE's rule leaves open: its head would be empty (in no published data set). A single class is tail.
    Without a threshold, both are empty.
    """
    if threshold is None:
        return [], []
    present = sorted((c for c, n in enumerate(counts) if n), key=lambda c: -counts[c])
    shares = [running / sum(counts) for running in accumulate(counts[c] for c in present)]
    below = sum(share < threshold for share in shares)
    head = max(below, 1) if len(present) > 1 else below
    return present[:head], present[head:]


def many_medium_few(
    counts: Sequence[int], *, many: int = 100, few: int = 20, shots: str = "survey"
) -> dict[str, list[int]]:
    """Class ids with many, a medium number of, and few training examples.

    shots: a name of SHOTS, which says where a class with exactly `many` or `few` examples belongs. The
    default thresholds are those of Liu et al. (2019), Large-scale long-tailed recognition in an open world,
    section 4.
    """
    if many < few:
        raise BadInput(f"many ({many}) must be at least few ({few}), or a class would be in both")
    is_many, is_few = named(SHOTS, shots, "shots")
    found: dict[str, list[int]] = {"many": [], "medium": [], "few": []}
    for c, n in enumerate(counts):
        group = "few" if is_few(n, few) else "many" if is_many(n, many) else "medium"
        found[group].append(c)
    return found


def groups(
    counts: dict[str, list[int]],
    *,
    threshold: float | None,
    head_source: str,
    many: int,
    few: int,
    shots: str = "survey",
) -> dict:
    """The groups of each split.

    head_source: "test" takes head and tail from the split's own counts, as GLEE's code does when it evaluates
    that split; "train" takes them from the training counts.
    """
    found = {}
    for split in counts:
        head, tail = head_tail(counts["train" if head_source == "train" else split], threshold=threshold)
        shot = many_medium_few(counts["train"], many=many, few=few, shots=shots)
        found[split] = {"head": head, "tail": tail, **shot}
    return found


SHOTS = {  # (is many, is few)
    "survey": (operator.gt, operator.lt),  # Zhang et al. (2023), Deep long-tailed learning; LIFT
    "oltr": (operator.ge, operator.le),  # Liu et al. (2019), as their code has it
    "lpt_released": (operator.gt, operator.le),  # LPT's code; its paper puts both boundaries in two groups
}
