"""The data of a first round: its row in the configuration, and the cuts that leave few rows."""

from __future__ import annotations

import json

from tailprompt.data.looked import Looked
from tailprompt.data.splits import floors
from tailprompt.errors import counted

MOST = {"train": 1500, "dev": 300, "test": 1000}  # rows of a first round; more where classes need them


def cut_of(looked: Looked) -> dict[str, int]:
    """The rows of each split that a first round leaves at most: MOST, or what a cut keeps of many classes."""
    most = {split: max(MOST[split], sum(floors(counts))) for split, counts in looked.splits.items()}
    return {split: most[split] for split in MOST if sum(looked.splits[split]) > most[split]}


def taken(looked: Looked) -> list[str]:
    """A sentence on what a first round takes of the rows; none where it takes all."""
    cut = cut_of(looked)
    parts = [f"{n:,} of the {sum(looked.splits[split]):,} {split} rows" for split, n in cut.items()]
    return [f"the round takes {', '.join(parts)}; sets in the config takes more"] if parts else []


def sets_of(looked: Looked, name: str) -> dict[str, str]:
    """The data of a round and of its learning curve, which is on half of the training rows and on all."""
    cut = cut_of(looked)
    train = cut.get("train", sum(looked.splits["train"]))
    half = max(train // 2, sum(floors(looked.splits["train"])))
    dataset, part = named_cut(name, cut), named_cut(name, {"train": half, **cut} | {"train": half})
    taken = (
        f"A first round on part of the data; all of it: [{name}]." if cut else "A first round on all rows."
    )
    curve = [part, dataset] if half < train else []
    told = "The learning curve has half of the training rows beside." if curve else "No curve: too few rows."
    return {
        "dataset": dataset,
        "curve": ", ".join(f'"{one}"' for one in curve),
        "tables": "" if curve else "tables: [first]",
        "taken": f"{taken} {told}",
    }


def named_cut(name: str, cut: dict[str, int]) -> str:
    """The name of a data set with a cut."""
    return name + "@" * bool(cut) + ",".join(f"{split}={n}" for split, n in cut.items())


def row_of(looked: Looked, longest: int, cut: float) -> str:
    """The row of the data set, a key a line.

    longest: tokens that texts are cut to. cut: share of the texts that are longer.
    """
    place = quoted(str(looked.path))
    if looked.language == "image":
        lines = ["language: image", "loader: image_folder", f"root: {place}", "side: 64"]
    else:
        columns = ", ".join(f"{key}: {quoted(name)}" for key, name in looked.columns.items())
        lines = [f"path: {place}", f"columns: {{{columns}}}", f"language: {looked.language}"]
        lines += [f"{key}: {json.dumps(told, ensure_ascii=False)}" for key, told in looked.stated.items()]
        lines += [f"max_length: {longest:<11} # tokens; {cut:.0%} of the texts are longer"]
        lines += [f"note: {quoted(f'read as English, though {looked.doubt}')}"] if looked.doubt else []
    if looked.alone:
        lines.append(
            f"singletons: train         # {counted(looked.alone, 'class')} of one row; in training only"
        )
    return "\n".join(f"    {line}" for line in lines)


def quoted(text: str) -> str:
    """A string as YAML reads it in any place."""
    return "'" + text.replace("'", "''") + "'"
