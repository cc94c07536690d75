"""What a file of rows seems to be: which column has the text and which the label, and in what language.

Guesses, each with its reason, for a person to overrule. Names decide first, then what the cells look like.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from tailprompt.data import remarks
from tailprompt.data.columns import (
    ENCODING,
    ID,
    LABEL,
    PAIR,
    PLAIN,
    SPLIT,
    SPLITS,
    TEXT,
    as_text,
    form,
    split_word,
    strings,
    tells_split,
)
from tailprompt.data.contents import NOTES, PLACE
from tailprompt.data.folders import others
from tailprompt.data.guesses import (
    LABELS,
    TEXTS,
    check_form,
    check_header,
    check_labels,
    check_named,
    check_options,
    check_plain,
    check_stated,
    check_tags,
    first,
    identified,
    labelled,
    other_splits,
    paired,
    texted,
    unread,
)
from tailprompt.data.labels import not_given
from tailprompt.data.listings import image_folder
from tailprompt.data.preflight import faults
from tailprompt.data.readers import rows
from tailprompt.data.report import per_class
from tailprompt.data.splits import parted
from tailprompt.data.table import SHARES, load
from tailprompt.errors import BadInput, counted, known, named

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
LATIN_WORD = re.compile("[a-z\u00df-\u024f]+")
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
CHINESE = 0.3  # share of Han characters among the letters of a Chinese text, which has Latin names in it
SAMPLE = 1000  # texts that the language is guessed from
FUNCTION = {*"the of and to a in is it for on that with this i you was are be not".split()}
ENGLISH = 0.05  # share of FUNCTION among the words of an English text; prose has a third, titles a tenth
SMALL = (  # what backbones of another language mean
    "the backbones that ship know English and Chinese alone, so of other texts trust tfidf, or name a "
    "backbone of their language in the config"
)
SAMPLED = 500  # texts whose lengths are looked at


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
    texts: tuple[str, ...]  # some, at most SAMPLED
    said: tuple[str, ...]
    splits: dict[str, list[int]]
    names: tuple[str, ...] = ()  # of the classes of texts
    doubt: str = ""  # why the texts may be of another language
    stated: Mapping = field(default_factory=dict)  # how the file is read, as in a data set's row


def look(
    path: Path, *, text: str | None = None, label: str | None = None, stated: Mapping | None = None
) -> Looked:
    """What a file of texts or a folder of images holds. text, label: columns that a person names.

    stated: how a person says that the file is read: its encoding, quotes, separator, escape and header.

    Raises BadInput if a column is not there, nothing can be a text or a label, or stage prepare refuses rows.
    """
    stated = {**(stated or {})}
    if path.is_dir():
        if stated:
            raise BadInput(f"{path} is a folder of images; {known(stated)} can be stated of tables alone")
        return folder(path)
    if not path.is_file():
        raise BadInput(f"{path} is neither a file nor a folder")
    check_form(path)
    check_stated(path, stated)
    placed = rows(path, stated.get("encoding", "utf-8-sig"), hint=ENCODING, **form(stated))
    table = placed.drop(columns=PLACE)
    have = {name: cells for name in table if (cells := texts_of(table[name])) is not None}
    for key, name in ((LABEL, label or first(LABELS, [*table])), (TEXT, text or first(TEXTS, [*table]))):
        if name in {*table} - {*have}:  # no other is taken in its place
            strings(placed, {key: name}, path)
    if text and text == label:
        raise BadInput(f"--text and --label both name '{text}'; they are two columns")
    for name in filter(None, (text, label)):
        named(have, name, f"column of {path},")
    check_plain(path, [*table], have)
    mine = {text, label}
    split = next((name for name in have if name not in mine and tells_split(name, have[name])), None)
    left = {name: cells for name, cells in have.items() if name != split}
    check_options(path, left, label)
    if label:
        check_labels(path, label, left)
    of_label, why_label = (label, "as you say") if label else labelled(left, path, without=text)
    of_text, why_text = (text, "as you say") if text else texted(left, path, without=of_label)
    check_named(path, of_text, of_label)
    if not stated.get("header"):
        check_header(path, of_text, of_label, have)
    check_tags(path, of_label, have[of_label])
    columns = {"text": of_text, "label": of_label} | paired(left, of_text) | ({SPLIT: split} if split else {})
    columns |= identified({name: cells for name, cells in left.items() if name not in columns.values()})
    language, why, doubt = guessed(have[of_text])
    row = {"name": str(path), "columns": columns, "singletons": "train", **stated}
    loaded, classes = load(row, {"all": path})
    rest = {name: cells for name, cells in have.items() if name not in columns.values()}
    counts = loaded.groupby("label").size()
    return Looked(
        path,
        language,
        columns,
        len(loaded),
        len(classes),
        int((counts == 1).sum()),
        sample([have[columns[key]] for key in ("text", PAIR) if key in columns]),
        (
            f"text: column '{columns['text']}' ({why_text}); --text COLUMN names another",
            *([f"second text: column '{columns[PAIR]}'"] if PAIR in columns else []),
            f"label: column '{of_label}' ({why_label}); --label COLUMN names another",
            *([f"ids of rows: column '{columns[ID]}'"] if ID in columns else []),
            f"language: {language} ({why})",
            f"{counted(len(loaded), 'row')}, {counted(len(classes), 'class')}; "
            f"the largest has {counts.max():,}, the smallest {counts.min():,}",
            f"splits: column '{split}'{remarks.cut({*map(SPLITS.get, map(split_word, have[split]))})}"
            if split
            else "splits: cut by class, 10 % dev and 20 % test",
            *other_splits(have, columns.values()),
            *unread(table, columns),
            *loaded.attrs.get(NOTES, []),
            *not_given(have[of_label]),
            *remarks.single({classes[c]: n for c, n in counts.items()}),
            *remarks.in_words(have[of_label], rest),
            *remarks.empty(have[of_text]),
            *remarks.repeats(loaded),
            *remarks.garbled(have[of_text]),
        ),
        {name: per_class(loaded[loaded["split"] == name], len(classes)) for name in ("train", "dev", "test")},
        tuple(classes),
        doubt,
        stated,
    )


def texts_of(cells: pd.Series) -> pd.Series | None:
    """The cells of a column as texts; None where one is a list or an object."""
    if infer_dtype(cells, skipna=False) == "string":
        return cells
    return cells.map(as_text) if cells.map(plain).all() else None


def plain(cell) -> bool:
    """Whether a cell is text, a number or nothing, and not a list."""
    return cell is None or cell is pd.NA or isinstance(cell, (*PLAIN, np.generic))


def guessed(texts: pd.Series) -> tuple[str, str, str]:
    """`zh` or `en`, by the scripts of the letters and the commonest words; why; what speaks against it."""
    some = " ".join(texts.sample(min(SAMPLE, len(texts)), random_state=0))
    han, latin = len(HAN.findall(some)), len(LATIN.findall(some))
    letters, words = max(1, sum(map(str.isalpha, some))), LATIN_WORD.findall(some.lower())
    if han / letters > CHINESE:
        return "zh", f"{han / letters:.0%} of its letters are Chinese characters", ""
    why = f"{latin / letters:.0%} of its letters are Latin"
    if latin / letters <= 0.5:
        doubt = scripts(some)
        return "en", f"for want of a better one, as {doubt}; {SMALL}", doubt
    common = sum(word in FUNCTION for word in words) / max(1, len(words))
    if common >= ENGLISH:
        return "en", f"{why}, and {common:.0%} of its words are the commonest English ones", ""
    doubt = f"only {common:.0%} of its words are the commonest English ones"
    return "en", f"{why}, but {doubt}, so it may be another; {SMALL}", doubt


def scripts(text: str) -> str:
    """A clause on the commonest script of a text's letters."""
    found = Counter(unicodedata.name(letter, "unnamed").split()[0] for letter in text if letter.isalpha())
    if not found:
        return "it has no letters"
    script, number = found.most_common(1)[0]
    return f"{number / found.total():.0%} of its letters are {script.capitalize()}"


def sample(parts: list[pd.Series]) -> tuple[str, ...]:
    """Some texts, each with its second text after it."""
    some = parts[0].sample(min(SAMPLED, len(parts[0])), random_state=0).index
    return tuple(" ".join(cells) for cells in zip(*(part.loc[some] for part in parts), strict=True))


def folder(path: Path) -> Looked:
    """A folder of images as stage decode reads it: a folder a class, perhaps in train, val and test."""
    listing = image_folder({}, {"name": path.name}, path)
    counts, splits = listing.table["label"].value_counts(), listing.table.get(SPLIT)
    if wrong := faults(listing, {}):
        raise BadInput(f"{path}: {'; '.join(wrong)}")
    if len(counts) < 2:
        raise BadInput(
            f"{path}: an image folder has a folder of images for each class; {len(counts)} is there"
        )
    said = [
        f"images: a folder for each of {counted(len(counts), 'class')}",
        f"{counted(counts.sum(), 'image')}; the largest class has {counts.max():,}, "
        f"the smallest {counts.min():,}",
        "splits: cut by class, 10 % dev and 20 % test"
        if splits is None
        else f"splits: {known({*splits})}{remarks.cut({*map(SPLITS.get, map(split_word, splits))})}",
        *listing.told,
        *not_given(listing.table["label"]),
        *remarks.single(counts.to_dict(), "image"),
        *filter(None, [others(listing.skipped)]),
    ]
    alone = int((counts == 1).sum())
    table = listing.table.assign(split="train" if splits is None else splits.map(split_word).map(SPLITS))
    each = {split: part["label"].value_counts() for split, part in table.groupby("split")}
    parts = divided({split: [int(own.get(name, 0)) for name in counts.index] for split, own in each.items()})
    return Looked(path, "image", {}, int(counts.sum()), len(counts), alone, (), tuple(said), parts)


def divided(counts: dict[str, list[int]]) -> dict[str, list[int]]:
    """Split -> the rows of each class, with those that are not there cut from train."""
    shares = {split: share for split, share in SHARES.items() if not any(counts.get(split, ()))}
    parts = [parted(n, shares) if n else dict.fromkeys(shares, 0) for n in counts.get("train", ())]
    cut = {split: [part[split] for part in parts] for split in shares}
    train = [n - sum(part.values()) for n, part in zip(counts.get("train", ()), parts, strict=True)]
    return {**counts, **cut, "train": train}
