"""Loaders of SuperGLUE's sets whose raw form is not a table, with the texts of P-Tuning v2's released code.

The code is tasks/superglue/dataset.py. BoolQ, CB and RTE are tables as they are.
"""

from __future__ import annotations

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
from tailprompt.data.readers import PLACE, json_objects
from tailprompt.errors import BadInput

HIGHLIGHT, PLACEHOLDER = "@highlight\n", "@placeholder"  # of ReCoRD


def load_superglue(paths: dict[str, Path], row: dict, *, read: Callable) -> pd.DataFrame:
    """The rows that `read` makes of each object of JSON Lines, by split.

    Raises BadInput for an object of another form.
    """
    rows = []
    for split, path in paths.items():
        for number, found in json_objects(path):
            try:
                made = list(read(found, row))
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                what = f"{row.get('loader')} ({type(error).__name__}: {error})"
                raise BadInput(f"{path}: line {number} is no example of {what}") from None
            rows += [told(each, split, f"{path.name}:{number}") for each in made]
    return pd.DataFrame(rows)


def told(example: dict, split: str, place: str) -> dict:
    """An example with its split and place; ids and groups are made of the numbers that it states."""
    named = {key: f"{split}-{example[key]}" for key in (ID, GROUP, TOGETHER) if key in example}
    return {SPLIT: split, PLACE: place, **example, **named}


def wic(found: dict, row: dict) -> Iterator[dict]:
    """A word in two sentences: both after the word (form spc, BERT), or all in a question (ssc, RoBERTa)."""
    word, first, second = found["word"], found["sentence1"], found["sentence2"]
    label = {ID: found["idx"], LABEL: truth(found["label"])}
    if row.get("form") == "spc":
        yield {TEXT: f"{word}: {first}", PAIR: f"{word}: {second}", **label}
    else:
        asked = f"Does {word} have the same meaning in both sentences?"
        yield {TEXT: f"{first} {second} {asked}", **label}


def wsc(found: dict, row: dict) -> Iterator[dict]:
    """A text after the pronoun that is asked for, and the noun that it may mean."""
    target = found["target"]
    text, noun = f"{target['span2_text']}: {found['text']}", target["span1_text"]
    yield {ID: found["idx"], TEXT: text, PAIR: noun, LABEL: truth(found["label"])}


def copa(found: dict, row: dict) -> Iterator[dict]:
    """A premise with because or so, and two sentences to go on with."""
    joint = {"cause": "because", "effect": "so"}[found["question"]]
    options = [found["choice1"], found["choice2"]]
    text = f"{found['premise']} {joint}"
    yield {ID: found["idx"], TEXT: text, CHOICES: options, LABEL: LETTERS[: len(options)][found["label"]]}


def multirc(found: dict, row: dict) -> Iterator[dict]:
    """A passage with a question and one of its answers, each of which is right or wrong."""
    passage, number = found["passage"], found["idx"]
    for question in passage["questions"]:
        group = f"{number}-{question['idx']}"
        for answer in question["answers"]:
            pair = f"{question['question']} {answer['text']}"
            place = {ID: f"{group}-{answer['idx']}", GROUP: group, TOGETHER: number}
            yield {**place, TEXT: passage["text"], PAIR: pair, LABEL: truth(answer["label"])}


def record(found: dict, row: dict) -> Iterator[dict]:
    """A passage with a sentence in which an entity of the passage, each in turn, takes the open place."""
    passage, number = found["passage"], found["idx"]
    text, ends = passage["text"], [(each["start"], each["end"] + 1) for each in passage["entities"]]
    entities = sorted({text[start:end] for start, end in ends})
    shown = text.replace(HIGHLIGHT, "- ")
    for query in found["qas"]:
        right = sorted({answer["text"] for answer in query["answers"]})
        group = f"{number}-{query['idx']}"
        for place, entity in enumerate(entities):
            pair, label = query["query"].replace(PLACEHOLDER, entity), truth(entity in right)
            told = {ID: f"{group}-{place}", GROUP: group, TOGETHER: number, OPTION: entity, ANSWERS: right}
            yield {**told, TEXT: shown, PAIR: pair, LABEL: label}


def truth(label) -> str:
    """The name of a class, False or True; raises ValueError for a label that is neither."""
    if label not in (0, 1):
        raise ValueError(f"label {label!r} is not true or false")
    return str(bool(label))
