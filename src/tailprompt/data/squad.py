"""Questions with answers that are pieces of a passage, as in the JSON files of SQuAD 1.1 and 2.0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from tailprompt.data.checks import refuse
from tailprompt.data.columns import ANSWERS, ID, LABEL, PAIR, SPLIT, STARTS, TEXT, TOGETHER
from tailprompt.data.contents import PLACE, decoded
from tailprompt.data.labels import invisible
from tailprompt.data.readers import parsed
from tailprompt.errors import BadInput

CLASSES = ["answerable", "unanswerable"]


def load_squad(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """A row a question (text), with its passage (pair), right answers, and where they start in the passage.

    Questions of one article stay in one split, where splits are made. The row states unanswerable: true
    where questions may have no answer. Raises BadInput for a file of another form, and for an answer that is
    not in its place.
    """
    rows, twice = [], paths.get("dev") == paths.get("test") is not None
    for name, path in paths.items():
        split = {} if name == "all" else {SPLIT: name}
        before = f"{name}-" if twice else ""
        rows += [{**split, **each, ID: f"{before}{each[ID]}"} for each in questions(path)]
    table = pd.DataFrame(rows)
    check(table, row)
    return table


def questions(
    path: Path, encoding: str = "utf-8-sig", *, row: Callable[..., dict] | None = None
) -> list[dict]:
    """The questions of a file, of which `row` makes the rows; raises BadInput for another form, or none."""
    found, made = parsed(decoded(path, encoding), path, 1), []
    where = ""
    try:
        for number, article in enumerate(found["data"], 1):
            where = f" in article {number}"
            title = article.get("title", "")
            if title == "":  # it would be that of all articles
                title = f"article {number}"
            for asked, passage in in_article(article):
                made.append((row or question)(asked, passage, title, f"{path}: {named(asked, number)}"))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{path} is not in the form of SQuAD, data > paragraphs > context and qas > id, question, "
            f"answers > text and answer_start ({type(error).__name__}: {error}{where})"
        ) from None
    if not made:
        raise BadInput(f"{path} has no questions; data > paragraphs > qas needs at least one")
    return made


def without_answers(path: Path, encoding: str) -> list[dict]:
    """The questions of a file with their passages; answers need not be there, and are not read."""
    made = questions(path, encoding, row=unanswered)
    return [{key: each[key] for key in (ID, TEXT, PAIR, PLACE)} for each in made]


def unanswered(asked: dict, passage: str, title: str, place: str) -> dict:
    """One question as a row, without its answers."""
    return question({**asked, "answers": [], "is_impossible": True}, passage, title, place)


def in_article(article: dict) -> Iterator[tuple[dict, str]]:
    """Each question of an article with its passage."""
    for paragraph in article["paragraphs"]:
        for asked in paragraph["qas"]:
            yield asked, paragraph["context"]


def named(asked: dict, article: int) -> str:
    """How messages name a question: its id, or its article where it has none that can be read."""
    key = asked["id"]
    if not (type(key) is int or filled(key)):
        key = f"of article {article} with id {key!r}"
    return f"question {key}"


def question(asked: dict, passage: str, title: str, place: str) -> dict:
    """One question as a row; different answers that start at one place are one each.

    Raises BadInput, which begins with `place`, for a value of another kind than SQuAD has.
    """
    none = asked.get("is_impossible", not asked["answers"])
    answers = [] if none else [(each["text"], each["answer_start"]) for each in asked["answers"]]
    key, texts = asked["id"], {"question": asked["question"], "context": passage, "title": title}
    wanted = {
        "id must be a text that is not blank, or a whole number": type(key) is int or filled(key),
        "is_impossible must be true or false": type(none) is bool,
        "is_impossible is true, and there are answers; leave out either": not (
            none is True and asked["answers"]
        ),
        **{f"{name} must be a text": isinstance(text, str) for name, text in texts.items()},
        "answers > text must be a text that is not blank": all(filled(text) for text, _ in answers),
        "answers > answer_start must be a whole number from 0": all(
            type(start) is int and start >= 0 for _, start in answers
        ),
    }
    if wrong := [what for what, fits in wanted.items() if not fits]:
        raise BadInput(f"{place}: {wrong[0]}")
    return {
        ID: key,
        TEXT: asked["question"].strip(),
        PAIR: passage,
        ANSWERS: [text for text, _ in answers],
        STARTS: [start for _, start in answers],
        LABEL: CLASSES[not answers],
        TOGETHER: title,
        PLACE: f"question {key}",
    }


def filled(value) -> bool:
    """Whether a value of JSON is a text that shows something."""
    return isinstance(value, str) and not invisible(value)


def check(table: pd.DataFrame, row: dict) -> None:
    """Raise BadInput for an answer that its passage does not have in its place, or a question without one."""
    name = row["name"]
    misplaced = [
        any(passage[start : start + len(text)] != text for text, start in zip(texts, starts, strict=True))
        for passage, texts, starts in zip(table[PAIR], table[ANSWERS], table[STARTS], strict=True)
    ]
    refuse(
        table,
        pd.Series(misplaced, index=table.index),
        f"'{name}': {{rows}} an answer that is not in the passage at its answer_start ({{places}})",
    )
    if not row.get("unanswerable", False):
        refuse(
            table,
            table[LABEL] == CLASSES[1],
            f"'{name}': {{rows}} no answer ({{places}}); set unanswerable: true in the data set's row",
        )
