"""Guesses at the columns of a table: which has the text and which the label, and what is no such table.

Names decide first, then what the cells look like.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from tailprompt.data import remarks
from tailprompt.data.columns import ID, LETTERS, PAIR, SPLITS, split_word
from tailprompt.data.contents import kind_of
from tailprompt.data.readers import SEPARATORS
from tailprompt.errors import BadInput, counted, few, known

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
    "answer",
    "gold",
    "sentiment",
    "rating",
    "stars",
    "emotion",
    "标签",
    "类别",
    "分类",
)
PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"))
PAIRS += (("text1", "text2"), ("text_a", "text_b"), ("query", "passage"))
IDS = re.compile(r"(?:.*[_ .-])?(?:id|ID|Id|uid|uuid|UUID|guid|GUID)|[a-z]+I[dD]|编号")
OPTION = re.compile(
    r"(?:opt(?:ion)?|choice|answer)s?[ _-]?(?:[a-p]|\d{1,2})|[a-p]"
)  # of a question, a column each
YES_NO = {"0", "1"}, {"true", "false"}
TAG = re.compile(r"[BIESLU]-\S+")  # of a word in an entity
SPLIT_NAMES = {"split", "splits", "fold", "subset", "partition", "is_train", "is_test", "is_valid", "is_dev"}
MOST_SPLITS = 12  # values of a column that tells splits
WORDY = 6  # words, which no name of a column has


def labelled(columns: dict[str, pd.Series], path: Path, *, without: str | None) -> tuple[str, str]:
    """The column of labels, and why: by its name, else the shortest whose values come again."""
    fit = {name: cells for name, cells in columns.items() if name != without and repeats(cells)}
    if by_name := first(LABELS, fit):
        return by_name, "by its name"
    if not fit:
        raise BadInput(
            f"{path}: no column has two values or more that come again, as labels do, so there is nothing to "
            "learn; a file needs a column with the class of each row, twice or more a class (it has "
            f"{remarks.sizes(columns.items())})"
        )
    least = min(cells.nunique() for cells in fit.values())
    alike = [name for name, cells in fit.items() if cells.nunique() == least]
    if len(alike) > 1 and all({*fit[name].str.lower()} in YES_NO for name in alike):
        raise BadInput(
            f"{path}: the columns {quoted(alike)} say yes or no for a class each; make one column of them, "
            "with the class of each row, or name one of them with --label"
        )
    others = f", as {quoted(alike[1:])} have" if len(alike) > 1 else ""
    return alike[0], f"it has the fewest different values{others}"


def check_labels(path: Path, label: str, columns: dict[str, pd.Series]) -> None:
    """Raise BadInput where a column that a person names has too many values for labels, or one alone."""
    cells = columns[label]
    if repeats(cells):
        return
    others = [name for name in columns if name != label and repeats(columns[name])]
    hint = f"--label takes a column whose values come again: {known(others)}" if others else (
        "no other column of the file has values that come again either, so it has no labels to learn"
    )  # fmt: skip
    number = cells.nunique()
    what = (
        "one value in all rows"
        if number == 1
        else f"{counted(number, 'different value')} in {counted(len(cells), 'row')}"
    )
    raise BadInput(f"{path}: the column '{label}' has {what}, so it holds no classes; {hint}")


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


def quoted(names: list[str]) -> str:
    """Names of columns, as a message shows them."""
    return few([f"'{name}'" for name in names])


def identified(columns: dict[str, pd.Series]) -> dict[str, str]:
    """Which column has the ids: the first that is named as one and has a value of its own in each row."""
    named = (name for name in columns if IDS.fullmatch(name.strip()))
    found = next(
        (name for name in named if columns[name].is_unique and columns[name].str.strip().all()), None
    )
    return {ID: found} if found else {}


def other_splits(columns: dict[str, pd.Series], read: Collection[str]) -> list[str]:
    """A sentence about each column that seems to tell splits, in other words than ours, and is not read."""
    rest = {name: cells.unique() for name, cells in columns.items() if name not in read}
    words = {name: {*map(split_word, cells)} for name, cells in rest.items() if len(cells) <= MOST_SPLITS}
    found = {
        name: each
        for name, each in words.items()
        if split_word(name) in SPLIT_NAMES or each & {"train", "training"}
    }
    return [
        f"column '{name}' may tell splits, but says {known(words)}, not {known(SPLITS)}, so it is not read"
        for name, words in found.items()
    ]


def unread(table: pd.DataFrame, columns: dict[str, str]) -> list[str]:
    """A sentence on the columns that nothing reads; none where all are read."""
    rest = [str(name) or "(no name)" for name in table if name not in columns.values()]
    return [f"not read: {quoted(rest)}"] if rest else []


def paired(columns: dict[str, pd.Series], text: str) -> dict[str, str]:
    """Which columns are the first and the second text, if the text is one of two that go together by name."""
    ours = {name.strip().lower(): name for name in columns}
    for pair in PAIRS:
        if {*pair} <= {*ours} and text in (ours[pair[0]], ours[pair[1]]):
            return {"text": ours[pair[0]], PAIR: ours[pair[1]]}
    return {}


def check_tags(path: Path, label: str, labels: pd.Series) -> None:
    """Raise BadInput where labels are tags of words: entities have a configuration of their own."""
    tags = {*labels} - {"O"}
    if tags and all(map(TAG.fullmatch, tags)):
        raise BadInput(
            f"{path}: the column '{label}' has tags of words ({few(sorted(tags), shown=3)}); try takes a "
            "text a row: config/mine-tags.yaml is for tags"
        )


def check_form(path: Path) -> None:
    """Raise BadInput for files of tags or passages, for which another configuration is there."""
    kind, squad = kind_of(path), False
    if kind == "json":
        with open(path, "rb") as file:
            squad = b'"paragraphs"' in file.read(2**16)
    if kind in ("conll", "bio", "iob", "iob2"):
        raise BadInput(f"{path} has a word a line; try takes a text a row: config/mine-tags.yaml is for tags")
    if squad:
        raise BadInput(f"{path} has questions about passages; config/mine-passages.yaml is for them")


def check_options(path: Path, columns: dict[str, pd.Series], label: str | None) -> None:
    """Raise BadInput for questions with a column for each option, and one that says which is right."""
    names = [name for name in columns if OPTION.fullmatch(name.strip().lower()) and name != label]
    others = [label] if label else [name for name in columns if name not in names]
    if len(names) > 1 and any(answers(columns, name, names) for name in others):
        raise BadInput(
            f"{path} has questions with options ({known(names)}); config/mine-choices.yaml is for them"
        )


def answers(columns: dict[str, pd.Series], label: str, names: list[str]) -> bool:
    """Whether each cell of a column says which of the options of its row is right."""
    letters = {*LETTERS[: len(names)], *map(str, range(len(names) + 1))}
    if {*columns[label].str.strip().str.upper()} <= letters:
        return True
    rows = zip(columns[label], *(columns[name] for name in names), strict=True)
    return all(right in offered for right, *offered in rows)


def check_plain(path: Path, names: list[str], columns: Collection[str]) -> None:
    """Raise BadInput where too few columns have plain cells for text and label, and others hold objects."""
    held = [name for name in names if name not in columns]
    if held and len(columns) < 2:
        raise BadInput(
            f"{path}: {counted(len(held), 'column', 'hold')} lists or objects ({quoted(held)}), and no text "
            "and label are beside them; give each a column of its own (with pandas: json_normalize)"
        )


def check_stated(path: Path, stated: Collection[str]) -> None:
    """Raise BadInput for what is said of how a file is read that has no such thing. stated: the keys."""
    kind = kind_of(path)
    if odd := [key for key in stated if kind not in SEPARATORS and (key != "encoding" or kind == "parquet")]:
        of = "files of text" if odd == ["encoding"] else "CSV and TSV files"
        raise BadInput(f"{path}: {' and '.join(odd)} can be stated of {of} alone")


def check_named(path: Path, text: str, label: str) -> None:
    """Raise BadInput where the text or the label has no name, by which a data set's row could say it."""
    if "" in (text, label):
        what = "text" if not text else "label"
        raise BadInput(f"{path}: the column that seems to have the {what} has no name; give it one")


def check_header(path: Path, text: str, label: str, columns: dict[str, pd.Series]) -> None:
    """Raise BadInput where the names of the columns look like a row."""
    if kind_of(path) not in SEPARATORS:
        return
    number, wordy = (
        int((columns[label] == label).sum()),
        len(text.split()) >= WORDY and text[-1:] in ".?!。？！",
    )
    if number or wordy:
        why = f"'{label}' is the label of {counted(number, 'other')}" if number else f"'{text}' is no name"
        raise BadInput(
            f"{path}: its first line seems to be a row, as {why}; put the names of the columns above it"
        )
