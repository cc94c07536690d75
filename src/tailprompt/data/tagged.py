"""Sentences with entities as rows with tag ids: what makes their types, their draw and their statistics.

The classes are the types of entities, the most frequent in train first. Tag 0 is O, 2c + 1 is B and 2c + 2 is
I of type c. Splits and cuts draw a sentence by the rarest type in it, as they draw others by their class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tailprompt.data import checks, labels
from tailprompt.data.sentences import ENTITIES, PAIR, WORDS
from tailprompt.errors import BadInput, known

NONE = ""  # the class of a sentence without an entity, where rows are drawn


def drawn_by_rarest(table: pd.DataFrame) -> pd.DataFrame:
    """The sentences with `label`, the rarest type in each, and `text`, by which they are drawn."""
    often = frequency(table)
    rarest = [
        min((kind for *_, kind in found), key=lambda kind: (often[kind], kind), default=NONE)
        for found in table[ENTITIES]
    ]
    return table.assign(label=rarest, text=table[WORDS].map(" ".join))


def frequency(table: pd.DataFrame) -> Counter:
    """How many entities of each type there are."""
    return Counter(kind for found in table[ENTITIES] for *_, kind in found)


def types_of(table: pd.DataFrame, row: dict, learned: Sequence[str] = ()) -> list[str]:
    """The types of entities, the most frequent in train first.

    learned: those of the data set whose runs are tested on this one. They come first, in their order. Raises
    BadInput if train or dev has none, if two differ in blanks or case only, or if train lacks one; with
    `absent_classes` in the data set's row train may.
    """
    name, found = row["name"], frequency(table[table["split"] == "train"])
    for split in [each for each in ("train", "dev") if (table["split"] == each).any()]:
        if not frequency(table[table["split"] == split]):
            raise BadInput(f"'{name}': no word of {split} is in an entity; tags other than O mark them")
    every = frequency(table)
    if rarer := labels.respelled(pd.Series([kind for *_, kind in table[ENTITIES].explode().dropna()])):
        raise BadInput(f"'{name}': the types {known(rarer)} differ from others in {labels.difference(rarer)}")
    unseen = set(every) - set(found) - set(learned)
    if not row.get("absent_classes"):
        there = table[ENTITIES].map(lambda entities: any(kind in unseen for *_, kind in entities))
        wrong = known(f"'{kind}'" for kind in unseen)
        checks.refuse(
            table,
            there,
            f"'{name}': {{rows}} a type that train never has: {wrong} ({{places}})",
            thing="dev or test sentence",
        )
    own = set(every) - set(learned)
    return [*learned, *sorted(own, key=lambda kind: (-found[kind], -every[kind], kind))]


def with_tags(table: pd.DataFrame, types: list[str]) -> pd.DataFrame:
    """The sentences with tag ids for their entities, and the class id by which they are drawn."""
    number = {kind: place for place, kind in enumerate([*types, NONE])}
    tags = [
        tag_ids(len(words), found, number) for words, found in zip(table[WORDS], table[ENTITIES], strict=True)
    ]
    return table.assign(tags=tags, label=table["label"].map(number).astype("int64"))


def tag_ids(words: int, found: list[tuple[int, int, str]], number: dict[str, int]) -> list[int]:
    """The tag of each of so many words. number: the id of each type."""
    tags = [0] * words
    for first, last, kind in found:
        tags[first:last] = [2 * number[kind] + 1] + [2 * number[kind] + 2] * (last - first - 1)
    return tags


def entity_counts(part: pd.DataFrame, types: int) -> list[int]:
    """The number of entities of each type, which begin with an odd tag."""
    tags = np.concatenate([[0], *part["tags"]]).astype(int)
    return np.bincount(tags[tags % 2 == 1] // 2, minlength=types).tolist()


def content(table: pd.DataFrame) -> pd.Series:
    """The words by which two sentences are the same, with the verb and its place where roles are of one."""
    words = table[WORDS].map("\0".join)
    return words + "\0\0" + table["predicate"].astype(str) if PAIR in table else words
