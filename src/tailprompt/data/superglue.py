"""Loaders of SuperGLUE's sets whose raw form is not a table, with the texts of P-Tuning v2's released code.

The code is tasks/superglue/dataset.py. BoolQ, CB and RTE are tables as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from tailprompt.data.columns import (
    ANSWERS,
    CHOICES,
    GROUP,
    ID,
    LABEL,
    LETTERS,
    OPTION,
    PAIR,
    SPLIT,
    TEXT,
    TOGETHER,
)
from tailprompt.data.contents import PLACE
from tailprompt.data.readers import json_objects
from tailprompt.errors import BadInput

HIGHLIGHT, PLACEHOLDER = "@highlight\n", "@placeholder"  # of ReCoRD


def load_superglue(paths: dict[str, Path], row: dict, *, read: Callable) -> pd.DataFrame:
    """The rows that `read` makes of each object of JSON Lines, by split.

    Raises BadInput for an object of another form, and for a file without examples.
    """
    rows = []
    for split, path in paths.items():
        before = len(rows)
        for line, found in json_objects(path):
            try:
                made = list(read(found, row))
            except BadInput as error:
                raise BadInput(f"{path}: line {line}: {error}") from None
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                what = f"{row.get('loader')} ({type(error).__name__}: {error})"
                raise BadInput(f"{path}: line {line} is no example of {what}") from None
            rows += [told(each, split, f"{path.name}:{line}") for each in made]
        if len(rows) == before:
            raise BadInput(f"{path} has no examples of {row.get('loader')}; it needs at least one")
    return pd.DataFrame(rows)


def told(example: dict, split: str, place: str) -> dict:
    """An example with its split and place; ids and groups are made of the numbers that it states."""
    named = {key: f"{split}-{example[key]}" for key in (ID, GROUP, TOGETHER) if key in example}
    return {SPLIT: split, PLACE: place, **example, **named}


def wic(found: dict, row: dict) -> Iterator[dict]:
    """A word in two sentences: both after the word (form spc, BERT), or all in a question (ssc, RoBERTa)."""
    word, first, second = (text(found, key) for key in ("word", "sentence1", "sentence2"))
    label = {ID: number(found), LABEL: truth(found["label"])}
    if row.get("form") == "spc":
        yield {TEXT: f"{word}: {first}", PAIR: f"{word}: {second}", **label}
    else:
        asked = f"Does {word} have the same meaning in both sentences?"
        yield {TEXT: f"{first} {second} {asked}", **label}


def wsc(found: dict, row: dict) -> Iterator[dict]:
    """A text after the pronoun that is asked for, and the noun that it may mean."""
    target = found["target"]
    asked, noun = f"{text(target, 'span2_text')}: {text(found, 'text')}", text(target, "span1_text")
    yield {ID: number(found), TEXT: asked, PAIR: noun, LABEL: truth(found["label"])}


def copa(found: dict, row: dict) -> Iterator[dict]:
    """A premise with because or so, and two sentences to go on with."""
    joint = {"cause": "because", "effect": "so"}[found["question"]]
    options, label = [text(found, "choice1"), text(found, "choice2")], found["label"]
    if type(label) is not int or label not in (0, 1):
        raise BadInput(f"label must be 0 or 1, not {label!r}")
    premise = f"{text(found, 'premise')} {joint}"
    yield {ID: number(found), TEXT: premise, CHOICES: options, LABEL: LETTERS[label]}


def multirc(found: dict, row: dict) -> Iterator[dict]:
    """A passage with a question and one of its answers, each of which is right or wrong."""
    passage, whole = found["passage"], number(found)
    for question in passage["questions"]:
        group = f"{whole}-{number(question)}"
        for answer in question["answers"]:
            pair = f"{text(question, 'question')} {text(answer, 'text')}"
            place = {ID: f"{group}-{number(answer)}", GROUP: group, TOGETHER: whole}
            yield {**place, TEXT: text(passage, "text"), PAIR: pair, LABEL: truth(answer["label"])}


def record(found: dict, row: dict) -> Iterator[dict]:
    """A passage with a sentence in which an entity of the passage, each in turn, takes the open place."""
    passage, whole = found["passage"], number(found)
    shown, entities = text(passage, "text").replace(HIGHLIGHT, "- "), entities_of(passage)
    for query in found["qas"]:
        right = right_of(query, entities)
        group = f"{whole}-{number(query)}"
        for place, entity in enumerate(entities):
            pair, label = query["query"].replace(PLACEHOLDER, entity), truth(entity in right)
            told = {ID: f"{group}-{place}", GROUP: group, TOGETHER: whole, OPTION: entity, ANSWERS: right}
            yield {**told, TEXT: shown, PAIR: pair, LABEL: label}


def entities_of(passage: dict) -> list[str]:
    """The different entities of a passage, sorted; their ends are inclusive.

    Raises BadInput if there is none, or one is not in the text.
    """
    words, ends = passage["text"], [(each["start"], each["end"]) for each in passage["entities"]]
    if not ends:
        raise BadInput("passage > entities is empty; it needs at least one")
    for start, end in ends:
        if not (type(start) is type(end) is int and 0 <= start <= end < len(words)):
            raise BadInput(
                f"the entity {start!r}-{end!r} is not in the passage; start and end must be whole numbers "
                f"from 0 to {len(words) - 1}, and start not after end"
            )
    return sorted({words[start : end + 1] for start, end in ends})


def right_of(query: dict, entities: list[str]) -> list[str]:
    """The right answers of a query, sorted.

    Raises BadInput unless each is an entity and the query has the place for one.
    """
    if PLACEHOLDER not in text(query, "query"):
        raise BadInput(f"query must have {PLACEHOLDER}, where an entity is put: '{query['query']}' has not")
    right = sorted({text(answer, "text") for answer in query["answers"]})
    if not right:
        raise BadInput(f"the answers of query {query['idx']} are empty; it needs at least one")
    if other := [answer for answer in right if answer not in entities]:
        raise BadInput(f"the answer '{other[0]}' is no entity of the passage; each answer must be one")
    return right


def text(found: dict, key: str) -> str:
    """The text under a key; raises BadInput for null and any other kind of value."""
    if not isinstance(found[key], str):
        raise BadInput(f"{key} must be a text, not {json.dumps(found[key])[:40]}")
    return found[key]


def number(found: dict) -> int | str:
    """The number (idx) of an example; raises BadInput unless it is a whole number or a text."""
    if type(found["idx"]) not in (int, str) or found["idx"] == "":
        raise BadInput(f"idx must be a whole number or a text, not {json.dumps(found['idx'])[:40]}")
    return found["idx"]


def truth(label) -> str:
    """The name of a class, False or True; raises ValueError for a label that is neither."""
    if label not in (0, 1):
        raise ValueError(f"label {label!r} is not true or false")
    return str(bool(label))
