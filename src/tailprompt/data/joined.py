"""Sets of one task joined in one, on which a prompt is pre-trained (P-Tuning v2, sections 3.3 and A).

Each row says which set it is of. Types of entities stay those of their set, as `conll03/PER`; whether a
question has an answer means the same in all sets.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.data import table as data
from tailprompt.data.columns import SET, STARTS
from tailprompt.files import sha256

Part = tuple[pd.DataFrame, list[str]]  # a prepared data set: its table and its classes


def load(paths: list[Path]) -> tuple[pd.DataFrame, list[str], dict]:
    """The joined table of prepared data sets, its classes, and what `prepare` reports of them."""
    parts = {path.name.removesuffix(".parquet"): data.read(path) for path in paths}
    table, classes = joined(parts)
    kept = table[table["split"] == "train"][SET].value_counts()
    rows = {name: int((part["split"] == "train").sum()) for name, (part, _) in parts.items()}
    left_out = {name: rows[name] - int(kept.get(name, 0)) for name in parts}
    return table, classes, {"sources": {path.name: sha256(path) for path in paths}, "met": left_out}


def joined(parts: dict[str, Part]) -> Part:
    """The rows of all sets, set after set, and the classes of all. parts: by the name of the set.

    A training row that dev or test of another set has is left out: propbank-release holds those of CoNLL12.
    """
    met = {name: set(content(table[table["split"] != "train"])) for name, (table, _) in parts.items()}
    tables, classes = [], []
    for name, (table, own) in parts.items():
        others = set().union(*(each for other, each in met.items() if other != name))
        table = table[(table["split"] != "train") | ~content(table).isin(others)]
        table = table.assign(id=f"{name}/" + table["id"], **{SET: name})
        if "tags" in table:
            table["tags"] = [[tag and tag + 2 * len(classes) for tag in tags] for tags in table["tags"]]
            classes += [f"{name}/{kind}" for kind in own]
        else:
            classes = max(classes, own, key=len)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), classes


def content(table: pd.DataFrame) -> pd.Series:
    """The sentence of each row, or the passage of a question, without blanks: sets cut words otherwise."""
    return table["pair"].str.split().map("".join) if STARTS in table else table["words"].map("".join)
