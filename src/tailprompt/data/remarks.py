"""Sentences on what a person may not know of a table: texts that stand twice, classes of one row, ..."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from tailprompt.data.labels import gives_none, repaired
from tailprompt.data.report import conflicts, content, shared
from tailprompt.errors import brief, counted, few

NUMBER = r"-?\d+(?:\.0+)?"


def repeats(loaded: pd.DataFrame) -> list[str]:
    """Sentences about texts that are in several splits, or have several labels."""
    whole = content(loaded)
    train, test = (whole[loaded["split"] == split] for split in ("train", "test"))
    twice, several = shared(train, test), conflicts(loaded, whole)
    said = [f"{counted(twice, 'test row', 'have')} a text that train has too"] if twice else []
    return said + ([f"{counted(several, 'text', 'have')} several labels"] if several else [])


def garbled(texts: pd.Series) -> list[str]:
    """A sentence about texts whose UTF-8 a program read as another encoding before it wrote the file."""
    found = [text for text in texts if repaired(text) != text]
    if not found:
        return []
    word = next((word for word in found[0].split(" ") if repaired(word) != word), found[0])
    number = counted(len(found), "text", "seem")
    return [f"{number} garbled by a wrong encoding: '{word}' for '{repaired(word)}'"]


def empty(texts: pd.Series) -> list[str]:
    """A sentence about texts that may say that there is none."""
    counts = texts.value_counts()
    found = [f"'{text}' ({number:,})" for text, number in counts.items() if gives_none(text)]
    return [f"taken for texts, though they may mean that there is none: {few(found)}"] if found else []


def single(counts: Mapping[str, int], thing: str = "row") -> list[str]:
    """A sentence about classes of one row, as a line of totals makes one. counts: class -> its rows."""
    names = [f"'{brief(name)}'" for name, number in counts.items() if number == 1]
    if not names:
        return []
    number = counted(len(names), "class", "have")
    return [
        f"{number} a single {thing}, which is for training alone, so that no score tells of it: {few(names)}"
    ]


def in_words(labels: pd.Series, others: Mapping[str, pd.Series]) -> list[str]:
    """A sentence on a column that says in words what the labels are numbers for. others: what is not read."""
    if not labels.str.fullmatch(NUMBER).all():
        return []
    pairs = {name: {*zip(labels, cells, strict=True)} for name, cells in others.items()}
    alike = [
        name
        for name, both in pairs.items()
        if len(both) == labels.nunique() == others[name].nunique()
        and not others[name].str.fullmatch(NUMBER).any()
    ]
    return [f"the labels are numbers, and column '{name}' has a name for each: --label takes it"
            for name in alike[:1]]  # fmt: skip


def cut(there: Collection[str]) -> str:
    """A clause on the splits that are not there and are made of the training rows; empty if all are."""
    lacks = [f"{name} ({share} %)" for name, share in (("dev", 10), ("test", 20)) if name not in there]
    return f"; {' and '.join(lacks)} cut from train by class" if there and lacks else ""


def sizes(columns: Iterable[tuple[str, pd.Series]]) -> str:
    """Columns with the number of their different values."""
    said = [f"'{brief(name)}' with {counted(cells.nunique(), 'value')}" for name, cells in columns]
    return few(said) or "none with plain values"
