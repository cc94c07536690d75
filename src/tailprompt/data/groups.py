"""Head and tail of a long-tailed set (GLEE, section 3.1) and many, medium, few by training count."""

from __future__ import annotations

from collections.abc import Sequence

from tailprompt.errors import BadInput


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


def many_medium_few(counts: Sequence[int], *, many: int = 100, few: int = 20) -> dict[str, list[int]]:
    """Class ids with more than `many`, from `few` to `many`, and fewer than `few` training examples.

    The thresholds of Liu et al. (2019), Large-scale long-tailed recognition in an open world, section 4.
    """
    if many < few:
        raise BadInput(f"many ({many}) must be at least few ({few}), or a class would be in both")
    ids = range(len(counts))
    return {
        "many": [c for c in ids if counts[c] > many],
        "medium": [c for c in ids if few <= counts[c] <= many],
        "few": [c for c in ids if counts[c] < few],
    }


def groups(
    counts: dict[str, list[int]], *, threshold: float | None, head_source: str, many: int, few: int
) -> dict:
    """Groups of each split. `head_source` test: head and tail from the split's own counts, as GLEE's code
    does when it evaluates that split; train: from the training counts.
    """
    found = {}
    for split in counts:
        head, tail = head_tail(counts["train" if head_source == "train" else split], threshold=threshold)
        found[split] = {"head": head, "tail": tail, **many_medium_few(counts["train"], many=many, few=few)}
    return found
