"""A prepared data set as a run reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from tailprompt.data import rows
from tailprompt.data import table as data
from tailprompt.data.columns import SET
from tailprompt.errors import BadInput, known
from tailprompt.seals import check_prepared

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Prepared:
    """A prepared data set as a run reads it.

    words: each class's, in class order. digests: of the file and of its rows, when it was read.
    """

    path: Path
    table: pd.DataFrame
    classes: list[str]
    words: dict[str, str]
    digests: dict[str, str]

    @property
    def report(self) -> dict:
        """What tasks read of the report of the data set."""
        return {"classes": self.classes, "roles": "predicate" in self.table and SET not in self.table}

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of each split."""
        return {split: self.table[self.table["split"] == split] for split in SPLITS}

    @property
    def sets(self) -> list[str]:
        """The names of the sets that are joined in it; none of a single set."""
        return list(self.table[SET].cat.categories) if SET in self.table else []


def class_words(classes: list[str], verbalizer: str | None) -> dict[str, str]:
    """Each class's word, in class order: the verbalizer's, else the class's name in plain words."""
    if verbalizer is None:
        return {name: re.sub(r"(?<=\w)[-_]+(?=\w)", " ", name) for name in classes}  # -1 stays -1
    table = data.read_words(Path(verbalizer))
    words = dict(zip(table["label"], table["words"], strict=True))
    missing = [name for name in classes if not words.get(name)]
    if missing:
        raise BadInput(f"{verbalizer}: no word for {known(missing)}; every class needs a row label,words")
    return {name: words[name] for name in classes}


def check_rows(path: Path) -> dict[str, str]:
    """The digests of a prepared data set; raises BadInput if its report has those of another."""
    return {"sha256": check_prepared(path), "rows_sha256": rows.of_file(path)}
