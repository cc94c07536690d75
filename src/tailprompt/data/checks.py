"""Checks of a data set. Each raises BadInput with one sentence that lists all rows with the same fault."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas.api.types import infer_dtype

from tailprompt.data import labels as labels_of
from tailprompt.data.columns import CHOICES, GROUP, ID, LABEL, LETTERS, ONE, STARTS, are_texts
from tailprompt.data.contents import PLACE
from tailprompt.data.labels import invisible, plainly
from tailprompt.errors import BadInput, counted, few, known


def types(table: pd.DataFrame, name: str) -> None:
    """Texts, second texts, labels, ids and groups are strings; the options of a row are a list of those."""
    kinds = dict.fromkeys(
        ("text", "pair", "label", "id", GROUP), ("text", lambda cell: isinstance(cell, str))
    )
    for column, (wanted, fits) in {**kinds, CHOICES: ("list of texts", are_texts)}.items():
        if column not in table:
            continue
        if column == CHOICES or table[column].isna().any() or infer_dtype(table[column]) != "string":
            other = ~table[column].map(fits).astype(bool)
            refuse(table, other, f"'{name}': {{rows}} no {wanted} for their {column} ({{places}})")


def texts(table: pd.DataFrame, name: str, *, options: int = len(LETTERS)) -> None:
    """No text, second text, label or given id is empty, or only blanks and control characters.

    options: the most that a row may have.
    """
    for column in [c for c in ("text", "pair", "label", "id", GROUP) if c in table]:
        empty = table[column].map(invisible)
        refuse(
            table,
            empty,
            f"'{name}': {{rows}} an empty {column} ({{places}}); fill them or leave them out",
        )
    if CHOICES in table:
        choices(table, name, options)


def choices(table: pd.DataFrame, name: str, most: int) -> None:
    """Each row has two to `most` options, and its label, if it has one, is the letter of one of them.

    Empty and repeated options are allowed, because RACE has some; `odd_options` says how many.
    """
    number = table[CHOICES].map(len)
    few_or_many = ~number.between(2, most)
    refuse(table, few_or_many, f"'{name}': {{rows}} 2 to {most} choices ({{places}})", verb="do not have")
    if LABEL not in table:
        return
    outside = [label not in [*LETTERS[:n]] for label, n in zip(table[LABEL], number, strict=True)]
    refuse(
        table,
        pd.Series(outside, index=table.index),
        f"'{name}': {{rows}} a label that is the letter of none of their choices ({{places}})",
    )


def odd_options(table: pd.DataFrame) -> str:
    """How many rows have an empty option, or two that are equal apart from blanks; empty if none has.

    Such an option is one like others: it is read, and may be the answer.
    """
    plain = table[CHOICES].map(lambda given: [" ".join(option.split()) for option in given])
    places, odd = table[PLACE if PLACE in table else ID], []
    for rows, what in (
        (plain.map(lambda given: any(map(invisible, given))), "an empty option"),
        (plain.map(lambda given: len({*given}) < len(given)), "an option twice"),
    ):
        odd += [f"{rows.sum()} with {what} ({few(list(places[rows]))})"] if rows.any() else []
    return f"rows {', '.join(odd)}; each option is taken as it is" if odd else ""


def ids(table: pd.DataFrame, name: str) -> None:
    """Ids are unique."""
    repeated = table["id"].duplicated(keep=False)
    where = few(sorted(set(table.loc[repeated, "id"])))
    refuse(
        table, repeated, f"'{name}': ids must be unique, but {{rows}} one: {where} ({{places}})", verb="share"
    )


def splits(table: pd.DataFrame, name: str, needed: Sequence[str] = ("train", "dev", "test")) -> None:
    """Every split that is needed has rows."""
    empty = [split for split in needed if not (table["split"] == split).any()]
    if empty:
        some = (
            "needs some" if len(needed) == 1 else f"{', '.join(needed[:-1])} and {needed[-1]} all need some"
        )
        raise BadInput(f"'{name}': the split {known(empty)} has no rows; {some}")


def groups(table: pd.DataFrame, name: str) -> None:
    """All rows of a group, which are scored together, lie in one split."""
    apart = table.groupby(GROUP)["split"].transform("nunique") > 1
    where = few([f"'{group}'" for group in sorted(set(table.loc[apart, GROUP]))])
    refuse(
        table,
        apart,
        f"'{name}': {{rows}} of groups that lie in several splits: {where} ({{places}}); all rows of a "
        "group must be in one split, and groups of different splits need different names",
        verb="are",
    )


def labels(table: pd.DataFrame, classes: list[str], name: str, source: str, trained: str = "train") -> None:
    """Every label is a class, and every dev or test label occurs in the split `trained`.

    The second does not apply to texts with options, whose label is the place of the right one. Options that
    are rows of a group are right or wrong. A question with an answer in its passage needs no other kind.
    """
    if STARTS in table:
        return
    if GROUP in table and len(classes) != 2:
        raise BadInput(
            f"'{name}' has groups and {counted(len(classes), 'class')}; of the options of a group there "
            "are two, wrong and right, in the order of their names or of a verbalizer"
        )
    if len(classes) < 2:
        raise BadInput(f"'{name}' has one class only, {classes[0]}; classification needs two")
    unknown = ~table["label"].isin(classes)
    wrong = few([f"'{label}'" for label in sorted(set(table.loc[unknown, "label"]))])
    refuse(table, unknown, f"'{name}': {{rows}} a label that {source} does not name: {wrong} ({{places}})")
    if CHOICES in table:
        return
    unseen = ~table["label"].isin(table.loc[table["split"] == trained, "label"])
    wrong = few([f"'{label}'" for label in sorted(set(table.loc[unseen, "label"]))])
    refuse(
        table,
        unseen,
        f"'{name}': {{rows}} a label that train never has: {wrong} ({{places}})",
        thing="dev or test row",
    )


def spellings(table: pd.DataFrame, name: str) -> None:
    """No two labels differ only in blanks, case or what looks alike, and none is several labels."""
    rarer = labels_of.respelled(table["label"])
    refuse(
        table,
        table["label"].isin(rarer),
        f"'{name}': {{rows}} a label that differs from another in {labels_of.difference(rarer)}: "
        f"{few(labels_of.pairs(rarer))} ({{places}}); spell each class in one way, or give a verbalizer that "
        "names both",
    )
    lists = labels_of.several(table["label"])
    wrong = few([f"'{label}'" for label in sorted({*table.loc[lists, "label"]})])
    refuse(
        table,
        lists,
        f"'{name}': {{rows}} several labels: {wrong} ({{places}}): {ONE}, or give a verbalizer that "
        "names each such class",
        verb="hold",
    )


def refuse(
    table: pd.DataFrame, bad: pd.Series, sentence: str, *, thing: str = "row", verb: str = "have"
) -> None:
    """Raise BadInput with `sentence`, its {rows} how many rows have it and its {places} the places of these.

    Not by str.format, and the first {rows} and last {places} alone, because a label may contain braces.
    """
    if bad.any():
        places = few(list(table.loc[bad, PLACE if PLACE in table else "id"]))
        raise BadInput(
            places.join(sentence.replace("{rows}", counted(bad.sum(), thing, verb), 1).rsplit("{places}", 1))
        )


def verbalizer(table: pd.DataFrame, words: pd.DataFrame, path: str, *, absent: bool) -> None:
    """A verbalizer has different words for each label of the data, and (unless `absent`) no other labels."""
    given, there = list(words["label"]), set(table["label"])
    missing, surplus = sorted(there - set(given)), sorted(set(given) - there)
    alike = words["words"].map(plainly).duplicated(keep=False)
    if alike.any():
        raise BadInput(
            f"{path}: the classes {few(list(words.loc[alike, 'label']))} have the same words as another, but "
            "for blanks and case; give each words of its own"
        )
    if not there & set(given):
        raise BadInput(
            f"{path} names no label of the data; it names {few(surplus)}, the data have {few(missing)}"
        )
    hint = f"; it names {few(surplus)}, which the data do not have" if surplus else ""
    lacking = f"{path} lacks words for {counted(len(missing), 'label')} of the data: {few(missing)}"
    refuse(table, table["label"].isin(missing), f"{lacking} ({{places}}){hint}")
    if surplus and not absent:
        raise BadInput(
            f"{path} names {counted(len(surplus), 'label')} that the data do not have: {few(surplus)}; "
            "remove them, or set absent_classes: true in the data set's row"
        )
