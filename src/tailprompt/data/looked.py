"""What a file of rows seems to be: which column has the text and which the label, and in what language.

Guesses, each with its reason, for a person to overrule. Names decide first, then what the cells look like.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data.columns import ENCODING, PAIR, PLAIN, SPLIT, SPLITS, as_text, split_word
from tailprompt.data.contents import PLACE
from tailprompt.data.guesses import check_form, check_header, check_options, labelled, paired, texted, unread
from tailprompt.data.pictures import ENDINGS
from tailprompt.data.readers import rows
from tailprompt.data.report import per_class
from tailprompt.data.splits import parted
from tailprompt.data.table import SHARES, load
from tailprompt.errors import BadInput, known, named

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
LATIN_WORD = re.compile("[a-z\u00df-\u024f]+")
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
CHINESE = 0.3  # share of Han characters among the letters of a Chinese text, which has Latin names in it
SAMPLE = 1000  # texts that the language is guessed from
FUNCTION = {*"the of and to a in is it for on that with this i you was are be not".split()}
ENGLISH = 0.05  # share of FUNCTION among the words of an English text; prose has a third, titles a tenth
LENGTHS = (32, 48, 64, 96, 128)  # tokens
COVERED = 0.9  # share of the texts that are to be read whole, if the largest length allows


@dataclass(frozen=True)
class Looked:
    """A file or folder of examples. columns: ours -> theirs. said: sentences on what was taken for what.

    splits: train, dev and test -> the rows of each class, after the cut of those that are not there.
    """

    path: Path
    language: str
    columns: dict[str, str]
    rows: int
    classes: int
    alone: int  # classes with a single row
    length: int  # tokens that most texts have, at most 128
    said: tuple[str, ...]
    splits: dict[str, list[int]]


def look(path: Path, *, text: str | None = None, label: str | None = None) -> Looked:
    """What a file of texts or a folder of images holds. text, label: columns that a person names.

    Raises BadInput if a column is not there, nothing can be a text or a label, or stage prepare refuses rows.
    """
    if path.is_dir():
        return folder(path)
    if not path.is_file():
        raise BadInput(f"{path} is neither a file nor a folder")
    check_form(path)
    table = rows(path, "utf-8-sig", hint=ENCODING).drop(columns=PLACE)
    have = {name: table[name].map(as_text) for name in table if table[name].map(plain).all()}
    for name in filter(None, (text, label)):
        named(have, name, f"column of {path},")
    split = next((name for name in have if is_split(name, have[name])), None)
    left = {name: cells for name, cells in have.items() if name != split}
    check_options(path, left, label)
    of_label, why_label = (label, "as you say") if label else labelled(left, path, without=text)
    of_text, why_text = (text, "as you say") if text else texted(left, path, without=of_label)
    check_header(path, of_text, of_label, have)
    columns = {"text": of_text, "label": of_label} | paired(left, of_text) | ({SPLIT: split} if split else {})
    language, why = guessed(have[of_text])
    loaded, classes = load({"name": str(path), "columns": columns, "singletons": "train"}, {"all": path})
    counts = loaded.groupby("label").size()
    return Looked(
        path,
        language,
        columns,
        len(loaded),
        len(classes),
        int((counts == 1).sum()),
        tokens(have[of_text], language),
        (
            f"text: column '{columns['text']}' ({why_text}); --text COLUMN names another",
            *([f"second text: column '{columns[PAIR]}'"] if PAIR in columns else []),
            f"label: column '{of_label}' ({why_label}); --label COLUMN names another",
            f"language: {language} ({why})",
            f"{len(loaded):,} rows, {len(classes):,} classes; "
            f"the largest has {counts.max():,}, the smallest {counts.min():,}",
            f"splits: column '{split}'" if split else "splits: cut by class, 10 % dev and 20 % test",
            *unread(table, columns),
        ),
        {name: per_class(loaded[loaded["split"] == name], len(classes)) for name in ("train", "dev", "test")},
    )


def plain(cell) -> bool:
    """Whether a cell is text, a number or nothing, and not a list."""
    return cell is None or cell is pd.NA or isinstance(cell, (*PLAIN, np.generic))


def is_split(name: str, cells: pd.Series) -> bool:
    """Whether a column says of each row which split it is in."""
    return split_word(name) == SPLIT and cells.map(split_word).isin(SPLITS).all()


def guessed(texts: pd.Series) -> tuple[str, str]:
    """`zh` or `en`, by the scripts of the letters and the commonest words, and why."""
    some = " ".join(texts.sample(min(SAMPLE, len(texts)), random_state=0))
    han, latin = len(HAN.findall(some)), len(LATIN.findall(some))
    letters, words = max(1, sum(map(str.isalpha, some))), LATIN_WORD.findall(some.lower())
    if han / letters > CHINESE:
        return "zh", f"{han / letters:.0%} of its letters are Chinese characters"
    why = f"{latin / letters:.0%} of its letters are Latin"
    common = sum(word in FUNCTION for word in words) / max(1, len(words))
    if latin / letters > 0.5 and common >= ENGLISH:
        return "en", f"{why}, and {common:.0%} of its words are the commonest English ones"
    if latin / letters > 0.5:
        why += f", but only {common:.0%} of its words are the commonest English ones, so it may be another"
    return "en", f"{why}; the backbones that ship know English and Chinese alone"


def tokens(texts: pd.Series, language: str) -> int:
    """The first of LENGTHS that most texts fit in: a token is a Chinese character, or 3/4 of a word."""
    size = texts.str.len() if language == "zh" else texts.str.split().str.len() * 4 / 3
    wanted = float(np.quantile(size, COVERED)) + 12  # of the template and special tokens
    return next((length for length in LENGTHS if length >= wanted), LENGTHS[-1])


def folder(path: Path) -> Looked:
    """A folder of images: a folder for each class, perhaps in train, val and test."""
    inside = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    halves = [entry for entry in inside if entry.name.lower() in SPLITS]
    found: dict[str, dict[str, int]] = {}  # split -> class -> images
    for split, place in [(SPLITS[half.name.lower()], half) for half in halves] or [("train", path)]:
        of_split = found.setdefault(split, {})
        for entry in (entry for entry in place.iterdir() if entry.is_dir() and entry.name[0] != "."):
            of_split[entry.name] = of_split.get(entry.name, 0) + images(entry)
    each = [{name: n for name, n in of_split.items() if n} for of_split in found.values()]
    counts = dict(sum(map(Counter, each), Counter()))
    if len(counts) < 2:
        raise BadInput(
            f"{path}: an image folder has a folder of images for each class; {len(counts)} is there"
        )
    said = (
        f"images: a folder for each of {len(counts):,} classes",
        f"{sum(counts.values()):,} images; the largest class has {max(counts.values()):,}, the smallest "
        f"{min(counts.values()):,}",
        f"splits: {known(half.name for half in halves)}"
        if halves
        else "splits: cut by class, 10 % dev and 20 % test",
    )
    alone = sum(number == 1 for number in counts.values())
    splits = divided(
        {split: [of.get(name, 0) for name in counts] for split, of in zip(found, each, strict=True)}
    )
    return Looked(path, "image", {}, sum(counts.values()), len(counts), alone, 0, said, splits)


def divided(counts: dict[str, list[int]]) -> dict[str, list[int]]:
    """Split -> the rows of each class, with those that are not there cut from train."""
    shares = {split: share for split, share in SHARES.items() if not any(counts.get(split, ()))}
    parts = [parted(n, shares) if n else dict.fromkeys(shares, 0) for n in counts.get("train", ())]
    cut = {split: [part[split] for part in parts] for split in shares}
    train = [n - sum(part.values()) for n, part in zip(counts.get("train", ()), parts, strict=True)]
    return {**counts, **cut, "train": train}


def images(place: Path) -> int:
    """The number of image files anywhere in a folder."""
    return sum(Path(name).suffix.lower() in ENDINGS for *_, names in os.walk(place) for name in names)
