"""Columns of any table under our own names, each cell as text."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from tailprompt.data.contents import NOTES, PLACE, kind_of, noted
from tailprompt.data.labels import seen, shown
from tailprompt.data.readers import FORM, SEPARATORS, rows
from tailprompt.errors import BadInput, counted, few, known

TEXT, PAIR, CHOICES, LABEL, ID, SPLIT = "text", "pair", "choices", "label", "id", "split"
GROUP, OPTION, ANSWERS, STARTS = "group", "option", "answers", "starts"
SET = "set"  # which of joined sets a row is of
TOGETHER = "together"  # what keeps rows in one split, where splits are made; it is not written
LETTERS = "ABCDEFGHIJKLMNOP"  # labels of options; PPT has at most sixteen
PLAIN = str, bool, int, float, Decimal
HOLDERS = list, dict, tuple, set, np.ndarray
ONE = "this is multi-label; a row has one class, so keep one label, or write a row for each"
ENCODING = (
    "state its encoding in the data set's row (encoding: gb18030, cp1252, ...; try and predict: --encoding)"
)
SPLITS = {"train": "train", "dev": "dev", "test": "test", "valid": "dev", "val": "dev", "validation": "dev"}
SPLITS |= {"training": "train", "testing": "test"}


def load_table(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """The rows of one file per split (`paths` by split), or of one for all (`paths["all"]`).

    Returns text, label, the place of each row, and pair, choices, id and split if the row's `columns` names
    them. The data set's row may state FORM: `header`, the columns of files without a header line, `quotes`,
    whether double quotes enclose fields, `separator` and `escape`.
    """
    parts, told = [], []
    for name, path in paths.items():
        stated = row.get("files", {}).get(name) if isinstance(row.get("files"), dict) else None
        columns = {
            **row.get("columns", {}),
            **(stated.get("columns", {}) if isinstance(stated, dict) else {}),
        }
        given = rows(path, row.get("encoding", "utf-8-sig"), hint=ENCODING, **form(row))
        told += given.attrs.pop(NOTES, [])
        part = renamed(given, columns, path)
        if SPLIT not in columns:
            taken = {TEXT: TEXT, LABEL: LABEL, **columns}.values()
            used = [name for names in taken if names for name in listed(names)]
            unused_splits(given.drop(columns=[PLACE, *used], errors="ignore"), path, name)
        if name != "all":
            part[SPLIT] = name
        parts.append(part)
    return noted(pd.concat(parts, ignore_index=True), told)


def form(row: dict) -> dict:
    """The options of a data set's row for its CSV and TSV files."""
    return {key: row[key] for key in FORM if key in row}


def unused_splits(table: pd.DataFrame, path: Path, split: str) -> None:
    """Raise BadInput for a column of splits that is not used, unless it says what the file's own split is.

    split: that of the file, or `all`: the rows would be split anew, at random.
    """
    for name in [name for name in table if tells_split(name, table[name])]:
        if split == "all":
            raise BadInput(
                f"{path} has a column '{name}' that tells splits and that the row of the data set does not "
                f"use; name it there in columns ({SPLIT}: {name}), or leave it out to have new splits cut"
            )
        if others := {word for word in table[name].map(split_word) if SPLITS.get(word, split) != split}:
            raise BadInput(
                f"{path} is given as {split}, but its column '{name}' also says {known(others)}; leave out "
                "the other rows or the column"
            )


def tells_split(name: str, cells: pd.Series) -> bool:
    """Whether a column says which split rows are in: it is named so, or all its cells are splits, of two."""
    if split_word(name) == SPLIT:
        return any(split_word(cell) in SPLITS for cell in cells)
    return (
        all(split_word(cell) in SPLITS for cell in cells) and len({SPLITS[split_word(c)] for c in cells}) > 1
    )


def split_word(value) -> str:
    """A split, or the name of its column, without surrounding blanks and in lower case."""
    return str(value).strip().lower()


def renamed(table: pd.DataFrame, columns: dict, path: Path) -> pd.DataFrame:
    """The columns that `columns` maps to ours, as strings; text and label may be left to their own names."""
    columns = {TEXT: TEXT, LABEL: LABEL, **{key: name for key, name in columns.items() if name}}
    parts = [(key, name) for key, names in columns.items() for name in listed(names)]
    if read := [f"{key}: {name}" for key, name in parts if key in (TEXT, PAIR) and name == columns[LABEL]]:
        raise BadInput(f"{path}: columns names the column of labels as what is read too ({known(read)})")
    missing = [f"'{name}' (columns: {key})" for key, name in parts if name not in table]
    if missing:
        have = names_of(table, [name for _, name in parts if name not in table])
        raise BadInput(f"{path} has no column {', '.join(missing)}; it has: {have}{advice(table, path)}")
    plain = {key: name for key, name in columns.items() if key != CHOICES and isinstance(name, str)}
    out = strings(table, plain, path)
    for key in columns.keys() - plain.keys():
        cells = offered(table, columns[key], path)
        out[key] = cells if key == CHOICES else cells.map(lambda row: " ".join(filter(None, row)))
    if CHOICES not in out:
        return out
    pairs = zip(out[LABEL], out[CHOICES], strict=True)
    return out.assign(**{LABEL: [answered(label, offered) for label, offered in pairs]})


def names_of(table: pd.DataFrame, missing: list[str]) -> str:
    """The columns of a table for a message, quoted and escaped where they look like a missing one."""
    alike = {seen(name): name for name in missing}
    names = [str(name) for name in table if name != PLACE]
    return known(shown(name, alike[seen(name)]) if seen(name) in alike else name for name in names)


def advice(table: pd.DataFrame, path: Path) -> str:
    """A clause about what may be wrong with the header of a CSV or TSV file."""
    if kind_of(path) not in SEPARATORS:
        return ""
    if len(set(table) - {PLACE}) == 1:
        what, key = "where its fields are separated otherwise, state separator", "separator"
    else:
        what, key = "of a file without a header line, state its columns (header)", "header"
    return f"; {what} in the row of the data set (try and predict: --{key})"


def listed(names: str | list[str]) -> list[str]:
    """A name or a list of names, as a list."""
    return [names] if isinstance(names, str) else names


def offered(table: pd.DataFrame, names: str | list[str], path: Path) -> pd.Series:
    """The cells of several columns, or of one that holds lists, as lists of texts."""
    if isinstance(names, list):
        return strings(table, {name: name for name in names}, path)[names].apply(list, axis=1)
    bad = ~table[names].map(are_texts)
    if bad.any():
        raise BadInput(
            f"{path}: {counted(bad.sum(), 'row', 'hold')} no list of texts in the column '{names}' "
            f"({few(list(table[PLACE][bad]))}); several columns may be named instead"
        )
    return table[names].map(list)


def are_texts(cell) -> bool:
    """Whether a cell is a list of texts."""
    return isinstance(cell, list | np.ndarray) and all(type(each) is str for each in cell)


def lettered(label: str) -> str:
    """The letter of an option whose place, from 0, is the label."""
    places = {str(place): letter for place, letter in enumerate(LETTERS)}
    return places.get(label, label)


def answered(label: str, offered: list[str]) -> str:
    """The letter of the right option: the label is that letter, its place from 0, or else its text."""
    letter, letters = lettered(label), LETTERS[: len(offered)]
    same = [each for each, option in zip(letters, offered, strict=False) if option == label]
    return same[0] if letter not in [*letters] and len(same) == 1 else letter


def strings(table: pd.DataFrame, columns: dict[str, str], path: Path) -> pd.DataFrame:
    """The columns with these names, under their keys: every cell as text, with the place of each row."""
    out = pd.DataFrame({PLACE: table[PLACE]})
    for key, name in columns.items():
        cells = table[name].astype(object)
        if infer_dtype(cells, skipna=False) == "string":
            out[key] = cells.astype("str")
            continue
        odd = ~cells.map(is_plain)
        if key == LABEL:
            odd |= cells.map(
                lambda cell: isinstance(cell, float | Decimal) and cell == cell and cell % 1 != 0
            )
            check_kinds(cells, name, path)
        if key == LABEL and (lists := cells.map(lambda cell: isinstance(cell, HOLDERS))).any():
            raise BadInput(
                f"{path}: {counted(lists.sum(), 'row', 'hold')} several labels in the column '{name}' "
                f"({few(list(out[PLACE][lists]))}): {ONE}"
            )
        if odd.any():
            kinds, places = known({type(cell).__name__ for cell in cells[odd]}), few(list(out[PLACE][odd]))
            wanted = "whole number" if key == LABEL else "number"
            raise BadInput(
                f"{path}: {counted(odd.sum(), 'row', 'hold')} {kinds} in the column '{name}' ({places}), "
                f"where text, a {wanted} or a boolean is wanted"
            )
        out[key] = cells.map(as_text)
    return out


def check_kinds(cells: pd.Series, name: str, path: Path) -> None:
    """Raise BadInput for labels of which some are booleans and some 0 or 1, which may be the same classes."""
    both = {type(cell) is bool for cell in cells if isinstance(cell, int | float) and cell in (0, 1)}
    if len(both) > 1:
        raise BadInput(
            f"{path}: the column '{name}' holds booleans and the numbers 0 or 1, which may be the same "
            "classes; write each in one way"
        )


def is_plain(cell) -> bool:
    """Whether a cell is text, a number, a boolean or null."""
    return isinstance(cell, PLAIN) or cell is None or cell is pd.NA


def as_text(value) -> str:
    """A cell as text: empty for null, without decimals for whole numbers (labels read as 1.0)."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float | Decimal) and value % 1 == 0:
        value = int(value)
    return str(value)
