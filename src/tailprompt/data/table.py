"""The canonical table of a data set, with its class names.

Its columns are id, split, label (class id), and either text, perhaps with pair and choices (the label is then
the place of the right one), or image (its row in the decoded array). Sentences have words and tags (tag ids)
instead, and of semantic roles predicate (the number of the verb) and pair (the verb).

Options that are rows of their own have group (their question) and perhaps option and answers (texts); a
question with a passage (pair) has answers and starts, their places in it, and is answerable or not by label.
Rows of joined sets have set, the name of theirs.

A loader reads one source format into strings: split, text, pair, choices, label, perhaps id, and the place of
each row. `load` checks them, makes missing splits, numbers the classes and makes the cut. `load_images` does
so for a listing of decoded images.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tailprompt import files
from tailprompt.data import checks, tagged
from tailprompt.data.columns import (
    ANSWERS,
    CHOICES,
    GROUP,
    LETTERS,
    OPTION,
    SET,
    SPLITS,
    STARTS,
    TOGETHER,
    load_table,
    split_word,
)
from tailprompt.data.contents import NOTES, PLACE, noted
from tailprompt.data.glee import load_clue, load_cmid, load_ctc, load_msra, load_r52
from tailprompt.data.labels import in_order, merged
from tailprompt.data.ppt import load_c3, load_race, load_trees
from tailprompt.data.sentences import ENTITIES, load_roles, load_tags
from tailprompt.data.separated import read_separated
from tailprompt.data.splits import cut, stratified, together
from tailprompt.data.squad import CLASSES as KINDS
from tailprompt.data.squad import load_squad
from tailprompt.data.superglue import copa, load_superglue, multirc, record, wic, wsc
from tailprompt.data.unlabelled import (
    load_next_sentence_choice,
    load_next_sentence_pair,
    load_pseudo_label,
    load_unified_choice,
)
from tailprompt.errors import BadInput, known, named
from tailprompt.inputs.templates import pieces

META = b"tailprompt"
SHARES = {"dev": 0.1, "test": 0.2}  # of the rows, for splits that are not there
COLUMNS = ["id", "split", "label", "text", "pair", "choices", "image", "digest", "accepted"]
COLUMNS += [GROUP, OPTION, ANSWERS, STARTS]
TAGGED = ["id", "split", "words", "tags", "predicate", "pair"]


def load(
    row: dict, paths: dict[str, Path], *, words: Path | None = None, learned: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """The canonical table of a data set's row and its class names in id order.

    words: the verbalizer's CSV, whose order is that of the classes. Without one, classes are sorted. learned:
    the classes of the data set whose runs are tested on this one.
    """
    name, stated = row["name"], [*read_words(words)["label"]] if words else []
    table = read_rows(row, paths, stated)
    if ENTITIES in table:
        return sentences(table, row, learned)
    notes = table.attrs.get(NOTES, [])
    checks.texts(table, name)
    if not words and CHOICES not in table and STARTS not in table:
        checks.spellings(table, name)  # before a class of one such row would be what is told
    table = divided(table, row)
    for key in [k for k in ("template", "template_as_released") if row.get(k)]:
        pieces(row[key], paired="pair" in table, where=f"'{name}': {key}")
    if words:
        verbalizer = read_words(words)
        checks.verbalizer(table, verbalizer, str(words), absent=row.get("absent_classes", False))
        classes, source = list(verbalizer["label"]), str(words)
    elif CHOICES in table:
        classes, source = list(LETTERS[: max(table[CHOICES].map(len))]), "the number of choices"
    elif STARTS in table:
        classes, source = KINDS[: 1 + row.get("unanswerable", False)], "unanswerable in its row"
    else:
        classes, source = in_order(table.loc[table["split"] == "train", "label"]), "train"
    return noted(finished(table, row, classes, source), notes), classes


def read_rows(row: dict, paths: dict[str, Path], stated: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of a data set's files with the place of each; those with a label are chosen and have ids.

    stated: the classes that a verbalizer names.
    """
    table = named(LOADERS, row.get("loader", "table"), "loader")(paths, row)
    if ENTITIES in table:
        return table
    notes = table.attrs.get(NOTES, [])
    checks.types(table, row["name"])
    table["label"], told = merged(table["label"], [*stated, *row.get("only", ()), *row.get("left_out", ())])
    return noted(numbered(chosen(table, row, stated)), [*notes, *told])


def sentences(table: pd.DataFrame, row: dict, learned: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The canonical table of sentences with entities, and the types of entities in id order."""
    table = divided(numbered(tagged.drawn_by_rarest(table)), row)
    checks.ids(table, row["name"])
    checks.splits(table, row["name"], needed=needed(row))
    types = tagged.types_of(table, row, learned)
    table = shortened(tagged.with_tags(table, types), row, len(types) + 1)
    return table[[column for column in TAGGED if column in table]], types


def chosen(table: pd.DataFrame, row: dict, classes: Sequence[str] = ()) -> pd.DataFrame:
    """The rows whose labels are not in `left_out` of the data set's row, and are in its `only` if stated.

    Raises BadInput if no row has a label that one of them names, or no rows are left. A label to leave out
    may be absent where `classes` names all others.
    """
    labels, only = table["label"], row.get("only")
    for key in ("only", "left_out")[: 1 if classes else 2]:
        if absent := set(row.get(key) or ()) - set(labels):
            raise BadInput(f"'{row['name']}': {key} names {known(absent)}, which no row has for a label")
    taken = labels.isin(only) if only else labels.notna()
    taken &= ~labels.isin(row.get("left_out", []))
    if not taken.any():
        raise BadInput(
            f"'{row['name']}': no rows are left of {len(table)}; its files need some that left_out keeps"
        )
    return table[taken]


def load_images(row: dict, listing: Path) -> tuple[pd.DataFrame, list[str], dict]:
    """The canonical table of decoded images, its class names in id order, and what else stage decode reports.

    listing: the file of stage decode, with id, label, image, digest, and perhaps split and accepted.
    """
    table, about = read_table(listing)
    classes = about.pop("classes")
    return finished(divided(table, row), row, classes, str(listing)), classes, about


def finished(table: pd.DataFrame, row: dict, classes: list[str], source: str) -> pd.DataFrame:
    """The table with class ids as labels, checked and cut. source: what names the classes, for messages."""
    name, shifted = row["name"], "trained_on" in row
    checks.ids(table, name)
    checks.splits(table, name, needed=needed(row))
    checks.labels(table, classes, name, source, trained="test" if shifted else "train")
    if GROUP in table:
        checks.groups(table, name)
    table["label"] = table["label"].map({label: c for c, label in enumerate(classes)}).astype("int64")
    return shortened(table[[column for column in COLUMNS if column in table]], row, len(classes))


def shortened(table: pd.DataFrame, row: dict, classes: int) -> pd.DataFrame:
    """The rows that the cut of a data set's row keeps."""
    try:
        changes, draw = row.get("cut", {}), row.get("draw", "digest")
        if changes and GROUP in table:
            raise BadInput(f"a cut would break its groups, which are scored as a whole: {known(changes)}")
        return cut(table, changes, classes, draw=draw).reset_index(drop=True)
    except BadInput as error:
        raise BadInput(f"'{row['name']}': {error}") from None


def needed(row: dict) -> tuple[str, ...]:
    """The splits that a data set must have: dev is not one if its row makes none (shares: {}).

    One for the runs of another data set needs test alone.
    """
    if "trained_on" in row:
        return ("test",)
    return ("train", "test") if row.get("shares") == {} else ("train", "dev", "test")


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ids; those that are missing are made of the split (or `row`) and a number in it."""
    if "id" in table:
        return table
    groups = table["split"] if "split" in table else pd.Series("row", index=table.index)
    numbers = table.groupby(groups).cumcount()
    return table.assign(id=[f"{group}-{number:06d}" for group, number in zip(groups, numbers, strict=True)])


def divided(table: pd.DataFrame, row: dict) -> pd.DataFrame:
    """The table with all splits: given ones under our names, missing ones taken from train by class.

    Rows of one question, passage or article are taken together.
    """
    if "split" not in table:
        table = table.assign(split="train")
    found = table["split"].map(split_word)
    unknown = ~found.isin(SPLITS)
    wrong = known(f"'{split}'" for split in set(table.loc[unknown, "split"]))
    checks.refuse(
        table,
        unknown,
        f"'{row['name']}': {{rows}} the split {wrong} ({{places}}); known: {known(SPLITS)}",
    )
    table = table.assign(split=found.map(SPLITS))
    if row.get("shares") == {} or "trained_on" in row:
        return table
    shares = {**SHARES, **row.get("shares", {})}
    shares = {split: share for split, share in shares.items() if not (table["split"] == split).any()}
    if not shares:
        return table
    seed = row.get("split_seed", 0)
    if TOGETHER in table or GROUP in table:
        return together(
            table, row["name"], by=TOGETHER if TOGETHER in table else GROUP, shares=shares, seed=seed
        )
    return stratified(table, row["name"], shares=shares, seed=seed, alone=row.get("singletons", "refuse"))


def read_words(path: Path) -> pd.DataFrame:
    """A verbalizer: the label and words of each class, in class order."""
    if not Path(path).is_file():
        raise BadInput(f"the verbalizer {path} does not exist, or is no file")
    table = read_separated(Path(path), "utf-8-sig", ",")
    if not {"label", "words"} <= set(table):
        raise BadInput(f"{path} needs the header label,words; it has {known(set(table) - {PLACE})}")
    if not len(table):
        raise BadInput(f"{path} has no rows; it needs one label,words for every class")
    wrong = table["label"].duplicated(keep=False) | table["words"].map(checks.invisible)
    if wrong.any():
        names = known(set(table.loc[wrong, "label"]))
        raise BadInput(f"{path}: each label stands once with its words, but {names} does not")
    return table


def write(table: pd.DataFrame, classes: list[str], path: Path, *, sources: dict[str, str]) -> None:
    """Write the canonical table as Parquet, with the class names and the digests of the sources in it."""
    about = {"dataset": path.name.removesuffix(".parquet"), "classes": classes, "sources": sources}
    with files.whole(path) as temporary:
        write_table(table, temporary, about)


def write_table(table: pd.DataFrame, path: Path, about: dict) -> None:
    """Write a table as Parquet with `about` in its metadata; equal content gives equal bytes."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({META: json.dumps(about)})
    pq.write_table(arrow, path, compression="zstd")


def read(path: str | Path) -> tuple[pd.DataFrame, list[str]]:
    """A prepared data set: the table and the class names in id order.

    The sets of joined ones are categories, in the order in which they are joined.
    """
    table, about = read_table(path)
    if SET in table:
        table[SET] = pd.Categorical(table[SET], categories=table[SET].unique())
    return table, about["classes"]


def read_table(path: str | Path) -> tuple[pd.DataFrame, dict]:
    """A table of `write_table`, and the `about` in it."""
    with files.reading(path):
        arrow = pq.read_table(path)
    about = (arrow.schema.metadata or {}).get(META)
    if about is None:
        raise BadInput(f"{path} was not written by tailprompt.prepare: it names no classes")
    return arrow.to_pandas(), json.loads(about)


LOADERS = {
    "table": load_table,  # CSV, TSV, JSON Lines, Parquet; GLEE's TSV and FewGLUE's JSON Lines too
    "cmid": load_cmid,
    "clue": load_clue,
    "ctc": load_ctc,
    "msra": load_msra,
    "r52": load_r52,
    "trees": load_trees,  # SST's parse trees
    "race": load_race,
    "c3": load_c3,
    "tags": load_tags,  # words with tags or entities: CoNLL's columns, JSON
    "roles": load_roles,  # semantic roles, one verb a line
    "next_sentence_pair": load_next_sentence_pair,
    "next_sentence_choice": load_next_sentence_choice,
    "pseudo_label": load_pseudo_label,
    "unified_choice": load_unified_choice,
    "wic": partial(load_superglue, read=wic),
    "wsc": partial(load_superglue, read=wsc),
    "copa": partial(load_superglue, read=copa),
    "multirc": partial(load_superglue, read=multirc),
    "record": partial(load_superglue, read=record),
    "squad": load_squad,
}
