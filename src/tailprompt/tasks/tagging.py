"""Tagging: each word has a tag in IOB2, and the entities that tags mark are scored (P-Tuning v2, section 4).

The classes of a report are the types of entities. Tag 0 is O, tag 2c + 1 begins an entity of type c and tag
2c + 2 goes on with it. Scores are micro averages over entities, as conlleval's and seqeval's in its default
mode: an entity also begins where a tag I follows O or another type. An entity is right if its type and both
its ends are. A model reads a long sentence in several windows, which share an id and stand in order.

Semantic roles (CoNLL 2005 and 2012) are scored as srl-eval.pl does: the verb, which is given, does not count,
and a part C-A1 belongs to the last argument A1. `f1_as_released` is P-Tuning v2's, which takes both as they
stand; of other data it is f1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tailprompt.tasks.classification import divide
from tailprompt.tasks.task import Added, Given, Sums, Task

COUNTS = ("right", "predicted", "gold")
RELEASED = "_as_released"
VERB, CONTINUES = "V", "C-"


class Entities(NamedTuple):
    """Entities in the order of their words: the row, the first word, the word after the last, and the type.

    Words are numbered through all rows.
    """

    row: np.ndarray
    first: np.ndarray
    last: np.ndarray
    type: np.ndarray


def tag_names(types: Sequence[str]) -> list[str]:
    """The tags of these types of entities, in the order of their ids."""
    return ["O", *(f"{mark}-{name}" for name in types for mark in "BI")]


def tags_of(types: Sequence[str], name: str) -> list[int]:
    """The tags of one of joined sets, whose types are named `SET/TYPE`: O and those of its types."""
    own = [number for number, kind in enumerate(types) if kind.startswith(f"{name}/")]
    return [0, *(tag for number in own for tag in (2 * number + 1, 2 * number + 2))]


def reads(report: Mapping) -> tuple[list[str], list[str]]:
    """Columns of predictions, and of the data."""
    return ["tags", "prediction"], []


def added(rows: pd.DataFrame, report: Mapping) -> Added:
    """Right, predicted and true entities of each example, by type; of roles also those as released.

    report: `roles` is true of data whose entities are arguments of a verb.
    """
    types = report["classes"]
    gold, guess = entities(rows["tags"]), entities(rows["prediction"])
    plain = counted(gold, guess, len(rows), len(types))
    if not report.get("roles"):
        return plain
    joined = role_counts(arguments(gold, types), arguments(guess, types), len(rows), len(types))
    return joined | {name + RELEASED: each for name, each in plain.items()}


def entities(tags: Sequence[Sequence[int]]) -> Entities:
    """The entities of sentences of tag ids."""
    lengths = np.array([len(one) for one in tags], np.int64)
    flat = np.concatenate([np.asarray(one, np.int64) for one in tags]) if len(tags) else np.zeros(0, np.int64)
    types, begins = (flat - 1) // 2, flat % 2 == 1  # the type of O is -1
    opening = np.zeros(len(flat) + 1, bool)
    opening[lengths.cumsum() - lengths] = True
    other = np.ones(len(flat), bool)
    other[1:] = types[1:] != types[:-1]
    bounds = np.flatnonzero(opening[: len(flat)] | begins | other)
    ends = np.append(bounds[1:], len(flat))[: len(bounds)]
    kept = types[bounds] >= 0
    row = np.repeat(np.arange(len(lengths)), lengths)
    return Entities(row[bounds][kept], bounds[kept], ends[kept], types[bounds][kept])


def counted(gold: Entities, guess: Entities, rows: int, types: int) -> Added:
    """The counts of COUNTS, `[rows, types]`, of entities."""
    words = max(found.last.max(initial=0) for found in (gold, guess)) + 1
    keys = [(found.first * words + found.last) * types + found.type for found in (gold, guess)]
    hit = np.isin(keys[1], keys[0])
    right = Entities(*(column[hit] for column in guess))
    return {
        name: by_type(found.row, found.type, rows, types)
        for name, found in zip(COUNTS, (right, guess, gold), strict=True)
    }


def by_type(rows: np.ndarray, ids: np.ndarray, examples: int, types: int) -> csr_array:
    """How many of these entities each example has, `[examples, types]`. rows: in ascending order."""
    starts = np.searchsorted(rows, np.arange(examples + 1))
    counts = csr_array((np.ones(len(ids), np.float32), ids, starts), shape=(examples, types))
    counts.sum_duplicates()
    return counts


def arguments(found: Entities, types: Sequence[str]) -> set[tuple]:
    """The arguments that entities make up: row, type, and the ends of each part; the verb is none.

    A part whose argument does not come before it is an argument itself, as srl-eval.pl has it.
    """
    number, made = {name: i for i, name in enumerate(types)}, {}
    last: dict[tuple, tuple] = {}  # row and type -> the argument that a part would belong to
    for row, first, end, kind in zip(*(column.tolist() for column in found), strict=True):
        base = types[kind].removeprefix(CONTINUES)
        goes_on = base != types[kind] and (row, base) in last
        if not goes_on:
            last[row, base] = (row, first)
            made[row, first] = (row, number.get(base, kind), [])
        made[last[row, base]][2].append((first, end))
    verb = number.get(VERB, -1)
    return {(row, kind, *parts) for row, kind, parts in made.values() if kind != verb}


def role_counts(gold: set[tuple], guess: set[tuple], rows: int, types: int) -> Added:
    """The counts of COUNTS, `[rows, types]`, of arguments."""
    made = {}
    for name, found in zip(COUNTS, (gold & guess, guess, gold), strict=True):
        places = np.array(sorted((row, kind) for row, kind, *_ in found), np.int64).reshape(-1, 2)
        made[name] = by_type(places[:, 0], places[:, 1], rows, types)
    return made


def score(metric: str, summed: Sums) -> np.ndarray:
    """Precision, recall or F1 over the entities of all types; NaN where there are none, true or predicted."""
    released = metric.endswith(RELEASED)
    names = [name + RELEASED if released and name + RELEASED in summed else name for name in COUNTS]
    right, guess, gold = (summed[name].sum(-1) for name in names)
    below = {"f1": (guess + gold) / 2, "precision": guess, "recall": gold}[metric.removesuffix(RELEASED)]
    return np.where(guess + gold > 0, divide(right, below, empty=0.0), np.nan)


def predicted(logits: np.ndarray, given: Given) -> dict:
    """The tags of the words of each sentence, and those with the best logit `[windows, tokens, tags]`."""
    there = given.labels >= 0  # the first tokens of words that their window answers
    ends = there.sum(1).cumsum()
    new = [at for at, name in enumerate(given.names) if at and name != given.names[at - 1]]
    found = {"tags": given.labels, "prediction": logits.argmax(-1)}
    return {
        name: np.split(tags[there].astype(np.int16), ends[np.array(new, int) - 1])
        for name, tags in found.items()
    }


def shown(logits: np.ndarray, given: Given, rows: pd.DataFrame, classes: Sequence[str]) -> dict[str, list]:
    """The entities of each row, and the tags of its words.

    An entity has its type, its text, and its first and last character (exclusive) in the text of the row.
    rows: have `words`, `text` and `offsets`, the first character of each word.
    """
    names, best, found = tag_names(classes), predicted(logits, given)["prediction"], []
    for tags, words, text, offsets in zip(best, rows["words"], rows["text"], rows["offsets"], strict=True):
        marked = entities([tags])
        places = zip(marked.first.tolist(), marked.last.tolist(), marked.type.tolist(), strict=True)
        ends = [(classes[kind], offsets[a], offsets[b - 1] + len(words[b - 1])) for a, b, kind in places]
        found.append([{"type": kind, "text": text[a:b], "start": a, "end": b} for kind, a, b in ends])
    return {"entities": found, "tags": [[names[tag] for tag in tags] for tags in best]}


TAGGING = Task(
    told_by="tags",
    gold="tags",
    metrics=("precision", "recall", "f1", "f1_as_released"),
    watched=("f1",),
    shown_as=("entities", "tags"),
    reads=reads,
    added=added,
    score=score,
    predicted=predicted,
    row=predicted,
    shown=shown,
    unit="token",
    outputs=tag_names,
    outputs_of=tags_of,
)
