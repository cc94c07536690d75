"""What a file of rows seems to be: which column has the text and which the label, and in what language.

Guesses, each with its reason, for a person to overrule. Names decide first, then what the cells look like.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data.columns import ENCODING, ONE, PLAIN, SPLIT, as_text, tells_split
from tailprompt.data.contents import PLACE, kind_of
from tailprompt.data.folders import others
from tailprompt.data.listings import image_folder
from tailprompt.data.readers import SEPARATORS, rows
from tailprompt.errors import BadInput, known, named

TEXTS = (
    "text",
    "texts",
    "sentence",
    "content",
    "body",
    "description",
    "message",
    "review",
    "question",
    "title",
)
TEXTS += ("文本", "内容", "句子", "标题")
LABELS = (
    "label",
    "labels",
    "class",
    "category",
    "target",
    "tag",
    "topic",
    "intent",
    "y",
    "标签",
    "类别",
    "分类",
)
HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
CHINESE = 0.3  # share of Han characters among the letters of a Chinese text, which has Latin names in it
SAMPLE = 1000  # texts that the language is guessed from
LENGTHS = (32, 48, 64, 96, 128)  # tokens
COVERED = 0.9  # share of the texts that are to be read whole, if the largest length allows


@dataclass(frozen=True)
class Looked:
    """A file or folder of examples. columns: ours -> theirs. said: sentences on what was taken for what."""

    path: Path
    language: str
    columns: dict[str, str]
    rows: int
    classes: int
    alone: int  # classes with a single row
    length: int  # tokens that most texts have, at most 128
    said: tuple[str, ...]


def look(path: Path, *, text: str | None = None, label: str | None = None) -> Looked:
    """What a file of texts or a folder of images holds. text, label: columns that a person names.

    Raises BadInput if a column is not there, or nothing can be a text or a label.
    """
    if path.is_dir():
        return folder(path)
    if not path.is_file():
        raise BadInput(f"{path} is neither a file nor a folder")
    table = rows(path, "utf-8-sig", hint=ENCODING).drop(columns=PLACE)
    have = {name: table[name].map(as_text) for name in table if table[name].map(plain).all()}
    if (named_so := label or first(LABELS, [*table])) in {*table} - {*have}:
        raise BadInput(f"{path}: the column '{named_so}' holds several labels in a row: {ONE}")
    if text and text == label:
        raise BadInput(f"--text and --label both name '{text}'; they are two columns")
    for name in filter(None, (text, label)):
        named(have, name, f"column of {path},")
    mine = {text, label}
    split = next((name for name in have if name not in mine and tells_split(name, have[name])), None)
    left = {name: cells for name, cells in have.items() if name != split}
    of_label, why_label = (label, "as you say") if label else labelled(left, path, without=text)
    check_header(of_label, have[of_label], path)
    of_text, why_text = (text, "as you say") if text else texted(left, path, without=of_label)
    counts, texts = have[of_label].value_counts(), have[of_text]
    language, why = guessed(texts)
    said = [
        f"text: column '{of_text}' ({why_text}); --text COLUMN names another",
        f"label: column '{of_label}' ({why_label}); --label COLUMN names another",
        f"language: {language} ({why})",
        f"{len(table):,} rows, {len(counts):,} classes; "
        f"the largest has {counts.max():,}, the smallest {counts.min():,}",
    ]
    columns = {"text": of_text, "label": of_label}
    if split:
        columns[SPLIT] = split
        said.append(f"splits: column '{split}'")
    else:
        said.append("splits: cut by class, 10 % dev and 20 % test")
    return Looked(
        path,
        language,
        columns,
        len(table),
        len(counts),
        int((counts == 1).sum()),
        tokens(texts, language),
        tuple(said),
    )


def check_header(label: str, cells: pd.Series, path: Path) -> None:
    """Raise BadInput where the name of the column of labels is one of them: the file has no header."""
    if kind_of(path) in SEPARATORS and (number := int((cells == label).sum())):
        raise BadInput(
            f"{path}: its first line seems to be a row, as '{label}' is the label of {number} others; put "
            "the names of the columns above it"
        )


def plain(cell) -> bool:
    """Whether a cell is text, a number or nothing, and not a list."""
    return cell is None or cell is pd.NA or isinstance(cell, (*PLAIN, np.generic))


def labelled(columns: dict[str, pd.Series], path: Path, *, without: str | None) -> tuple[str, str]:
    """The column of labels, and why: by its name, else the shortest whose values come again."""
    fit = {name: cells for name, cells in columns.items() if name != without and repeats(cells)}
    if by_name := first(LABELS, fit):
        return by_name, "by its name"
    if not fit:
        raise BadInput(
            f"{path}: no column has values that come again, as labels do; --label COLUMN names it; "
            f"it has {known(columns)}"
        )
    return min(fit, key=lambda name: fit[name].nunique()), "it has the fewest different values"


def repeats(cells: pd.Series) -> bool:
    """Whether cells look like labels: at least two of them, each on two rows or more on average."""
    return 2 <= cells.nunique() <= len(cells) / 2


def texted(columns: dict[str, pd.Series], path: Path, *, without: str) -> tuple[str, str]:
    """The column of texts, and why: by its name, else the longest."""
    fit = {name: cells for name, cells in columns.items() if name != without}
    if not fit:
        raise BadInput(f"{path} has no column beside '{without}' that could be the text")
    if by_name := first(TEXTS, fit):
        return by_name, "by its name"
    return max(fit, key=lambda name: fit[name].str.len().mean()), "its cells are the longest"


def first(names: tuple[str, ...], columns: Collection[str]) -> str | None:
    """The column that has the earliest of these names, in any case."""
    found = {name.strip().lower(): name for name in reversed([*columns])}
    return next((found[name] for name in names if name in found), None)


def guessed(texts: pd.Series) -> tuple[str, str]:
    """`zh` or `en`, by the scripts of the letters, and why."""
    some = "".join(texts.sample(min(SAMPLE, len(texts)), random_state=0))
    han, latin = len(HAN.findall(some)), len(LATIN.findall(some))
    letters = max(1, sum(map(str.isalpha, some)))
    if han / letters > CHINESE:
        return "zh", f"{han / letters:.0%} of its letters are Chinese characters"
    why = f"{latin / letters:.0%} of its letters are Latin, by which no other language is told from English"
    return (
        "en",
        why if latin / letters > 0.5 else f"{why}; the backbones that ship know English and Chinese alone",
    )


def tokens(texts: pd.Series, language: str) -> int:
    """The first of LENGTHS that most texts fit in: a token is a Chinese character, or 3/4 of a word."""
    size = texts.str.len() if language == "zh" else texts.str.split().str.len() * 4 / 3
    wanted = float(np.quantile(size, COVERED)) + 12  # of the template and special tokens
    return next((length for length in LENGTHS if length >= wanted), LENGTHS[-1])


def folder(path: Path) -> Looked:
    """A folder of images as stage decode reads it: a folder a class, perhaps in train, val and test."""
    listing = image_folder({}, {"name": path.name}, path)
    counts, splits = listing.table["label"].value_counts(), listing.table.get(SPLIT)
    if len(counts) < 2:
        raise BadInput(
            f"{path}: an image folder has a folder of images for each class; {len(counts)} is there"
        )
    said = [
        f"images: a folder for each of {len(counts):,} classes",
        f"{counts.sum():,} images; the largest class has {counts.max():,}, the smallest {counts.min():,}",
        "splits: cut by class, 10 % dev and 20 % test" if splits is None else f"splits: {known({*splits})}",
        *listing.told,
        *filter(None, [others(listing.skipped)]),
    ]
    alone = int((counts == 1).sum())
    return Looked(path, "image", {}, int(counts.sum()), len(counts), alone, 0, tuple(said))
