"""Head and tail of a long-tailed set (GLEE, section 3.1) and many, medium, few by training count."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tailprompt.errors import BadInput, named


def head_tail(counts: Sequence[int], *, threshold: float | None) -> tuple[list[int], list[int]]:
    """Class ids of head and tail, most frequent first.

    The most frequent classes are head as long as their running share of the examples, the class itself
    included, stays strictly below `threshold`; the class that reaches it and all after it are tail.
    Ties stand in ascending class id. A class without examples is in neither. Head may be empty (one
    class alone reaches the threshold). Without a threshold there are no groups.
    """
    if threshold is None:
        return [], []
    present = sorted((c for c, n in enumerate(counts) if n), key=lambda c: -counts[c])
    total, running, head = sum(counts), 0, []
    for c in present:
        running += counts[c]
        if running / total >= threshold:
            break
        head.append(c)
    return head, present[len(head) :]


def many_medium_few(
    counts: Sequence[int], *, many: int = 100, few: int = 20, shots: str = "survey"
) -> dict[str, list[int]]:
    """Class ids with many, few and a medium number of training examples.

    shots: to which group a class with exactly `many` or `few` belongs, a name of SHOTS. The thresholds are
    those of Liu et al. (2019), Large-scale long-tailed recognition in an open world, section 4.
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
    """Groups of each split. `head_source` test: head and tail from the split's own counts, as GLEE's code
    does when it evaluates that split; train: from the training counts.
    """
    found = {}
    for split in counts:
        head, tail = head_tail(counts["train" if head_source == "train" else split], threshold=threshold)
        shot = many_medium_few(counts["train"], many=many, few=few, shots=shots)
        found[split] = {"head": head, "tail": tail, **shot}
    return found


SHOTS = {  # is many, is few
    "survey": (operator.gt, operator.lt),  # Zhang et al. (2023), Deep long-tailed learning; LIFT
    "oltr": (operator.ge, operator.le),  # Liu et al. (2019), as their code has it
    "lpt_released": (operator.gt, operator.le),  # LPT's; its paper has both ends in two groups
}
