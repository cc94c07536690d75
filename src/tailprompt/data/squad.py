"""Questions with answers that are pieces of a passage, as in the JSON files of SQuAD 1.1 and 2.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from tailprompt.data.checks import refuse
from tailprompt.data.columns import ANSWERS, ID, LABEL, PAIR, SPLIT, STARTS, TEXT, TOGETHER
from tailprompt.data.readers import PLACE, decoded, parsed
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


def questions(path: Path) -> Iterator[dict]:
    """The questions of a file; raises BadInput where it has another form."""
    found = parsed(decoded(path), path, 1)
    number = -1
    try:
        for number, article in enumerate(found["data"]):  # noqa: B007, the message names it
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    yield question(asked, paragraph["context"], article.get("title", f"article {number + 1}"))
    except (KeyError, TypeError, AttributeError) as error:
        where = "" if number < 0 else f" in article {number + 1}"
        raise BadInput(
            f"{path} is not in the form of SQuAD, data > paragraphs > context and qas > id, question, "
            f"answers > text and answer_start ({type(error).__name__}: {error}{where})"
        ) from None


def question(asked: dict, passage: str, title: str) -> dict:
    """One question as a row; different answers that start at one place are one each."""
    none = asked.get("is_impossible", not asked["answers"])
    answers = [] if none else [(each["text"], each["answer_start"]) for each in asked["answers"]]
    return {
        ID: asked["id"],
        TEXT: asked["question"].strip(),
        PAIR: passage,
        ANSWERS: [text for text, _ in answers],
        STARTS: [start for _, start in answers],
        LABEL: CLASSES[not answers],
        TOGETHER: title,
        PLACE: f"question {asked['id']}",
    }


def check(table: pd.DataFrame, row: dict) -> None:
    """Raise BadInput for an answer that its passage does not have in its place, or a question without one."""
    name = row["name"]
    misplaced = [
        any(type(start) is not int or passage[start : start + len(text)] != text or not text
            for text, start in zip(texts, starts, strict=True))
        for passage, texts, starts in zip(table[PAIR], table[ANSWERS], table[STARTS], strict=True)
    ]  # fmt: skip
    refuse(
        table,
        pd.Series(misplaced, index=table.index),
        f"'{name}': {{n}} rows have an answer that is not in the passage at its answer_start ({{places}})",
    )
    if not row.get("unanswerable", False):
        refuse(
            table,
            table[LABEL] == CLASSES[1],
            f"'{name}': {{n}} rows have no answer ({{places}}); set unanswerable: true in the data set's row",
        )
