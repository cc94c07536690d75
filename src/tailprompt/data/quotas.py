"""How many examples each split of a self-supervised data set has, from `examples` and `shares` of its row."""

from __future__ import annotations

from tailprompt.errors import BadInput

EXAMPLES = 100_000
SHARES = {"dev": 0.05, "test": 0.001}  # as released
CLASSES = {  # by loader: how many classes each split needs examples of; drawn labels need one example only
    "next_sentence_pair": 1,
    "next_sentence_choice": 1,
    "pseudo_label": 5,
    "unified_choice": 1,
}


def check(rows: dict[str, dict]) -> None:
    """Raise BadInput at the first self-supervised data set of `rows` with an empty split."""
    for name, row in rows.items():
        if row.get("loader") in CLASSES:
            quotas({**row, "name": name}, CLASSES[row["loader"]])


def quotas(row: dict, classes: int = 1) -> dict[str, int]:
    """The number of examples of each split; raises BadInput if one has fewer than `classes`."""
    total, shares = row.get("examples", EXAMPLES), shares_of(row)
    held_out = {split: max(1, round(share * total)) for split, share in shares.items()}
    found = {"train": total - sum(held_out.values()), **held_out}
    if min(shares.values()) <= 0 or min(found.values()) < classes:
        stated = ", ".join(f"{split}: {share:g}" for split, share in shares.items())
        sizes = ", ".join(f"{split} {size}" for split, size in found.items())
        raise BadInput(
            f"data set '{row['name']}': shares {{{stated}}} of examples: {total} are {sizes}; shares must be "
            f"above 0, and each split, train too, of {classes} or more; change shares, or raise examples"
        )
    return found


def shares_of(row: dict) -> dict[str, float]:
    """The shares of dev and test."""
    return {**SHARES, **row.get("shares", {})}
