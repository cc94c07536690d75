"""Loaders of those of PPT's data sets whose raw form is not a table."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pandas as pd

from tailprompt.data import archives
from tailprompt.data.columns import CHOICES, ID, LABEL, LETTERS, PAIR, SPLIT, TEXT, are_texts
from tailprompt.data.contents import PLACE, decoded
from tailprompt.data.readers import parsed
from tailprompt.errors import BadInput, few

LEAF = re.compile(r"\((\d) ([^()]+)\)")
BRACKETS = {"-LRB-": "(", "-RRB-": ")"}
SPLITS = {"train": "train", "dev": "dev", "test": "test"}


def load_trees(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """The Stanford Sentiment Treebank: a parse tree a line, with the label at its root."""
    rows = []
    for split, path in paths.items():
        lines = decoded(path).splitlines()
        if not lines:
            raise BadInput(f"{path} has no trees; it needs at least one line as (3 (2 It) (4 works))")
        for number, line in enumerate(lines, 1):
            words = [BRACKETS.get(word, word) for _, word in LEAF.findall(line)]
            if not words or not re.match(r"\(\d ", line):
                raise BadInput(f"{path}: line {number} is no tree as (3 (2 It) (4 works))")
            rows.append((split, " ".join(words), line[1], f"{path.name}:{number}"))
    return pd.DataFrame(rows, columns=[SPLIT, TEXT, LABEL, PLACE])


def load_race(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """RACE: archives of split/level/number.txt, each an article (text) with its questions (pair).

    The row states level (middle | high) and splits, the archive's names of ours. Raises BadInput for a file
    that is not in RACE's form.
    """
    ours = {theirs: split for split, theirs in row.get("splits", SPLITS).items()}
    rows = []
    for archive in paths.values():
        for name, content in archives.texts(archive):
            *_, split, level, _ = ("", "", *PurePosixPath(name).parts)
            if split in ours and level == row["level"]:
                rows += [(ours[split], *each) for each in questions(content, Path(name))]
    if not rows:
        raise BadInput(
            f"'{row['name']}': no text of level {row['level']} is in {few([*map(str, paths.values())])}"
        )
    return pd.DataFrame(rows, columns=[SPLIT, ID, TEXT, PAIR, CHOICES, LABEL, PLACE])


def questions(content: bytes, path: Path) -> list[tuple]:
    """(id, article, question, options, letter, place) of each question of a RACE text."""
    found = parsed(content.decode("utf-8", errors="replace"), path, 1)
    try:
        each = zip(found["questions"], found["options"], found["answers"], strict=True)
        return [
            (f"{found['id']}-{n}", found["article"], question, options, answer, str(path))
            for n, (question, options, answer) in enumerate(each)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is no text of RACE ({type(error).__name__}: {error})") from None


def load_c3(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """C3: JSON lists of [texts, questions, id]; a file's key is its split and -m or -d (mixed, dialogue)."""
    rows = []
    for key, path in paths.items():
        before = len(rows)
        for number, (texts, asked, _) in enumerate(documents(path), 1):
            for each in asked:
                options, right = each["choice"], each["answer"]
                letter = next(
                    (a for a, option in zip(LETTERS, options, strict=False) if option == right), "none"
                )
                text, place = "\n".join(texts), f"{path.name}:{number}"
                rows.append((key.partition("-")[0], text, each["question"], options, letter, place))
        if len(rows) == before:
            raise BadInput(f"{path} has no questions; it needs at least one")
    return pd.DataFrame(rows, columns=[SPLIT, TEXT, PAIR, CHOICES, LABEL, PLACE])


def documents(path: Path) -> list:
    """The documents of a file of C3; raises BadInput for entries of another form."""
    found = parsed(decoded(path), path, 1)
    entries = enumerate(found if isinstance(found, list) else [None], 1)
    if wrong := [n for n, entry in entries if not is_document(entry)]:
        raise BadInput(
            f"{path}: entries {few(wrong)} are not [texts, questions, id] as in C3, where a question has "
            "texts for question and answer and a list of texts for choice"
        )
    return found


def is_document(entry) -> bool:
    """Whether an entry is [texts, questions, id] as in C3."""
    if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[1], list)):
        return False
    return are_texts(entry[0]) and all(
        isinstance(each, dict)
        and are_texts([each.get("question"), each.get("answer")])
        and are_texts(each.get("choice"))
        for each in entry[1]
    )
