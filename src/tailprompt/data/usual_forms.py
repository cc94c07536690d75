"""New sentences and questions in the forms of CoNLL and SQuAD; labels in them are not read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.data.columns import PAIR, TEXT
from tailprompt.data.contents import PLACE, decoded, kind_of, lines_in
from tailprompt.data.readers import HEADERS, READERS
from tailprompt.data.sentences import PREDICATE, TAG, WORDS, refuse, sentences
from tailprompt.data.squad import without_answers
from tailprompt.errors import BadInput, known

Groups = list[list[tuple[int, list[str]]]]  # (line number, columns) of the words of each sentence
Columns = dict[str, str | list[str]]  # text and perhaps pair -> the column with it
STATED = "; --text is the number of the column with words, and texts are a .txt with `text` above them"
QUESTION, CONTEXT = "question", "context"


def read(
    file: Path, columns: Columns, encoding: str, *, unit: str
) -> tuple[pd.DataFrame, dict[str, str]] | None:
    """The rows of a file in such a form, and the columns with what `columns` wants; None for another form.

    unit: what the run predicts. One that tags words takes CoNLL's columns, of which --text is the number of
    the one with words, or, for roles, lines `verb words ||| tags`. A .txt whose lines are no such columns is
    of another form. One that reads passages takes SQuAD's JSON. Raises BadInput for --text or --pair where
    the form leaves no choice.
    """
    kind = kind_of(file)
    if unit == "token" and not has_header(file, kind, columns):
        if PAIR in columns:
            check_default(file, columns)
            return verbs_of(file, encoding), {TEXT: WORDS, PAIR: PAIR}
        groups = list(sentences(file, encoding))
        if kind == "txt" and columns[TEXT] == TEXT and are_texts(groups):
            return None
        return words_of(file, groups, columns[TEXT]), {TEXT: WORDS}
    if unit == "span" and kind == "json" and decoded(file, encoding).lstrip().startswith("{"):
        check_default(file, columns)
        found = pd.DataFrame(without_answers(file, encoding))
        return found.rename(columns={TEXT: QUESTION, PAIR: CONTEXT}), {TEXT: QUESTION, PAIR: CONTEXT}
    return None


def has_header(file: Path, kind: str, columns: Columns) -> bool:
    """Whether a file is a table with named columns, as its own name says, or the first line of a .txt."""
    if kind != "txt":
        return kind in READERS
    try:
        return columns[TEXT] in HEADERS[kind](file)
    except UnicodeDecodeError:
        return False


def check_default(file: Path, columns: Columns) -> None:
    """Raise BadInput where a column is named, which a file in one of these forms has not."""
    given = [f"--{key}" for key, name in columns.items() if name != key]
    if given:
        raise BadInput(f"{file} has no named columns; leave out {known(given)}")


def are_texts(groups: Groups) -> bool:
    """Whether lines are texts: they have different numbers of words, of which none ends a line as a tag."""
    widths = {len(fields) for group in groups for _, fields in group}
    return len(widths) > 1 and not tagged(groups)


def tagged(groups: Groups) -> bool:
    """Whether a line ends in a tag; new sentences may have other marks in its place."""
    return any(TAG.fullmatch(fields[-1]) for group in groups for _, fields in group)


def words_of(path: Path, groups: Groups, column: str | list[str]) -> pd.DataFrame:
    """The sentences of a file with a word a line. column: the number of that with words, 1 unless given.

    Raises BadInput where none is given and lines have not as many columns as the first, or several but no
    tag.
    """
    number = 1 if column == TEXT else int(column) if str(column).isdecimal() else 0
    if number < 1:
        raise BadInput(
            f"{path} has a word a line; --text is the number of the column with words, not {column}"
        )
    if not groups:
        raise BadInput(f"{path} has no sentences")
    every, width = [line for group in groups for line in group], len(groups[0][0][1])
    if column == TEXT:
        other = [n for n, fields in every if len(fields) != width]
        refuse(path, other, f"have not {width} columns as the first", STATED)
        untagged = width > 1 and not tagged(groups)
        refuse(path, [n for n, _ in every] if untagged else [], "end in no tag", STATED)
    refuse(path, [n for n, fields in every if len(fields) < number], f"have no column {number}")
    return pd.DataFrame(
        [
            {WORDS: [fields[number - 1] for _, fields in group], PLACE: f"{path.name}:{group[0][0]}"}
            for group in groups
        ]
    )


def verbs_of(path: Path, encoding: str) -> pd.DataFrame:
    """A row a line of a file of roles, `verb words`, perhaps with tags after |||."""
    lines = [
        (n, line.partition("|||")[0].split())
        for n, line in enumerate(lines_in(decoded(path, encoding)), 1)
        if line.strip()
    ]
    wrong = [n for n, (verb, *words) in lines if not (verb.isdecimal() and int(verb) < len(words))]
    refuse(path, wrong, "are not `verb words`, with the number of the verb among the words from 0")
    if not lines:
        raise BadInput(f"{path} has no sentences")
    return pd.DataFrame(
        [
            {WORDS: words, PREDICATE: int(verb), PAIR: words[int(verb)], PLACE: f"{path.name}:{n}"}
            for n, (verb, *words) in lines
        ]
    )
