"""Faults of a listing of images, found before any image is decoded."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from tailprompt.data.columns import ONE
from tailprompt.data.contents import PLACE
from tailprompt.data.folders import printable
from tailprompt.data.labels import difference, pairs, respelled, several
from tailprompt.data.listings import CONTENT, Listing
from tailprompt.errors import counted, few


def faults(listing: Listing, row: dict) -> list[str]:
    """A clause for each kind of fault: absent files, repeats, absolute paths, labels that do not fit."""
    table = listing.table
    is_file = table[CONTENT].map(lambda content: not isinstance(content, Path) or os.path.isfile(content))
    rooted = table["id"].str.startswith("/")
    again = table.duplicated("id", keep="first")
    kinds = [
        (~is_file & ~rooted, "file", "are", "absent"),
        (rooted, "path", "begin", "with /, where paths are read below the root"),
        (again & ~between(table), "image", "are", "listed twice"),
        (again & between(table), "image", "are", "in two splits"),
    ]
    found = [
        f"{counted(bad.sum(), thing, verb)} {how}: {few(places(table[bad]), shown=3)}"
        for bad, thing, verb, how in kinds
        if bad.any()
    ]
    return found + misfits(listing, row)


def between(table: pd.DataFrame) -> pd.Series:
    """Whether an image is in more than one split."""
    if "split" not in table:
        return pd.Series(False, index=table.index)
    return table.groupby("id")["split"].transform("nunique") > 1


def misfits(listing: Listing, row: dict) -> list[str]:
    """Clauses for unknown labels, two spellings, classes without training images, a wrong number."""
    table, found = listing.table, []
    classes = listing.classes or sorted(set(table["label"]))
    outside = table[~table["label"].isin(classes)]
    if len(outside):
        span = f"{classes[0]} to {classes[-1]}"
        found.append(
            f"{counted(len(outside), 'label', 'are')} out of range, {span}: {few(labelled(outside), shown=3)}"
        )
    if rarer := respelled(table["label"]):
        found.append(
            f"{counted(len(rarer), 'class', 'differ')} from another in {difference(rarer)}: "
            f"{few(pairs(rarer))}; spell each class in one way"
        )
    if (lists := several(table["label"])).any() and not listing.classes:
        found.append(
            f"{counted(lists.sum(), 'row', 'hold')} several labels: "
            f"{few(labelled(table[lists]), shown=3)}: {ONE}"
        )
    trained = set(table.loc[table["split"] == "train", "label"] if "split" in table else table["label"])
    empty = [name for name in classes if name not in trained]
    if empty and "trained_on" not in row:
        hint = "; its labels begin at 1, and class ids go from 0" if empty == ["0"] else ""
        found.append(f"{counted(len(empty), 'class', 'have')} no training image: {few(empty)}{hint}")
    number = table["label"].nunique() if "trained_on" in row else len(classes)
    if row.get("classes", number) != number:
        found.append(
            f"there {'is' if number == 1 else 'are'} {counted(number, 'class')} where its row says "
            f"classes: {row['classes']}"
        )
    return found


def places(table: pd.DataFrame) -> list[str]:
    """Ids as a message can show them, each with its line if known."""
    names = list(map(printable, table["id"]))
    if PLACE not in table:
        return names
    return [f"{name} ({place})" for name, place in zip(names, table[PLACE], strict=True)]


def labelled(table: pd.DataFrame) -> list[str]:
    """Labels, each with its image."""
    return [f"{label} of {place}" for label, place in zip(table["label"], places(table), strict=True)]
