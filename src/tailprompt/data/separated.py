"""Rows of CSV and TSV files: a plain separator is found, and what a reader would garble is refused.

The separator is one that divides the header and all rows alike. CleverCSV scores patterns of the whole text;
of nine small files it divided two of one column and one of long texts wrongly, which this rule does not.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data.contents import PLACE, decoded, noted
from tailprompt.data.labels import seen
from tailprompt.errors import BadInput, brief, counted, few, known

MARKS = ",;\t|"
SAMPLE = 100  # lines by which a separator is found
STATED = re.compile(r"sep=(.)(?:\r\n|\r|\n)")  # as Excel writes it above the header


def read_separated(
    path: Path,
    encoding: str,
    usual: str,
    *,
    separator: str | None = None,
    header: list[str] | None = None,
    quotes: bool = True,
    escape: str | None = None,
    wrong: list[str] | None = None,
) -> pd.DataFrame:
    """Rows of a CSV or TSV file, whose first line is the header unless one is given.

    usual: the separator that the file's ending means, in whose place another is looked for where the header
    has none of it. quotes: whether double quotes enclose fields. escape: the character before a quote of a
    text. In a table of one column a blank line is an empty text. wrong: takes what is wrong with rows, in the
    place of a refusal; those with other lengths are then empty, if they are fewer than the others.
    """
    text, told = decoded(path, encoding), []
    above = STATED.match(text)
    mark = separator or (above and above[1]) or found(text, usual, quotes=quotes)
    if mark != usual and not separator:
        told.append(f"{path.name}: its fields are taken to be separated by {mark!r}")
    form = form_of(mark, quotes=quotes, escape=escape)
    if spaced(text[above.end() if above else 0 :], form, path):
        form["skipinitialspace"] = True
        told.append(f"{path.name}: blanks between a separator and a quote are left out")
    lines = rows_of(text, path, form, told)
    if above:
        next(lines, None)
    table = gathered(lines, header, path, wrong)
    return noted(table, told)


def gathered(
    lines: Iterator[tuple[int, list[str]]],
    header: list[str] | None,
    path: Path,
    wrong: list[str] | None = None,
) -> pd.DataFrame:
    """The table of a file's lines; raises BadInput for rows of other lengths or that are the header.

    wrong: as in `read_separated`.
    """
    first = (0, header) if header else next(((n, fields) for n, fields in lines if fields), None)
    if first is None:
        raise BadInput(f"{path} is empty; it needs a header and rows")
    header = first[1]
    named_once(header, path)
    columns, places, ragged = [[] for _ in header], [], []
    gaps: list[int] = []  # blank lines, which are texts where more follow
    for number, fields in lines:
        if not fields:
            gaps.append(number)
            continue
        if len(fields) != len(header):
            ragged.append(number)
            fields = [""] * len(header)
        if len(header) == 1:
            columns[0] += [""] * len(gaps)
            places += gaps
        gaps.clear()
        for column, cell in zip(columns, fields, strict=True):
            column.append(cell)
        places.append(number)
    again = [places[row] for row in repeats(header, columns)]
    several = wrong if 2 * len(ragged) < len(places) else None
    check_rows(path, header, ragged, again, several, rows=len(places), start=first[0])
    table = pd.DataFrame(np.array(columns, dtype=object).T, columns=header, dtype=object)
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number in places]})


def repeats(header: list[str], columns: list[list[str]]) -> list[int]:
    """The rows that show what the header shows, each cell its column's name. (One cell may be meant.)"""
    rows = [*range(len(columns[0]) if len(header) > 1 else 0)]
    for name, column in zip(header, columns, strict=True):
        if not rows:
            break
        shown, most = seen(name), 2 * len(name) + 9
        alike = {cell for cell in {column[row] for row in rows} if len(cell) < most and seen(cell) == shown}
        rows = [row for row in rows if column[row] in alike]
    return rows


def check_rows(
    path: Path,
    header: list[str],
    ragged: list[int],
    again: list[int],
    wrong: list[str] | None,
    *,
    rows: int,
    start: int,
) -> None:
    """Refuse rows of another length than the header, and rows that are it.

    rows: the number of all. start: the line of the header, 0 if it is stated. wrong: as in `read_separated`.
    """
    if ragged:
        first = f"{counted(len(header), 'field')} ({few([*map(brief, header)])})"
        above = start and 10 * len(ragged) > 9 * rows  # a title or a comment is above the columns' names
        advice = (
            "the first line names the columns, so leave out what stands above it"
            if above
            else "quote texts that hold a separator, a quote or a line end"
        )
        refuse(
            f"{path}: {counted(len(ragged), 'row', 'do not have')} the header's {first} "
            f"(lines {few(ragged)}); {advice}",
            wrong,
        )
    if again:
        refuse(
            f"{path}: {counted(len(again), 'row', 'are')} the header itself (lines {few(again)}), as where "
            "files were joined; leave these lines out",
            wrong,
        )


def refuse(sentence: str, wrong: list[str] | None) -> None:
    """Raise BadInput, or add the sentence to what is wrong with rows where that is gathered."""
    if wrong is None:
        raise BadInput(sentence)
    wrong.append(sentence)


def named_once(header: list[str], path: Path) -> None:
    """Raise BadInput if columns share a name, several have none, or one has that of the places of rows."""
    if PLACE in header:
        raise BadInput(
            f"{path} has a column '{PLACE}', which is our name for the place of a row; rename the column"
        )
    counts = Counter(header)
    repeated = {f"'{name}'" if name else "no name" for name in header if counts[name] > 1}
    if repeated:
        first = few([f"'{brief(name)}'" for name in header])
        raise BadInput(
            f"{path}: several columns have {known(repeated)}; give each a name of its own (its first line, "
            f"which names the columns, has {first})"
        )


def form_of(separator: str, *, quotes: bool, escape: str | None = None) -> dict:
    """How Python's csv module is told the form of a file."""
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    escaped = {"escapechar": escape, "doublequote": True} if escape else {}
    return {"delimiter": separator, "quoting": quoting, **escaped}


def rows_of(
    text: str, path: Path, form: dict, told: list[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of every row, with no fields for a blank line.

    Raises BadInput for quotes that swallow other rows, or are escaped in a way that is not stated. told:
    takes which rows have lost quotes, and which may be several.
    """
    csv.field_size_limit(2**31 - 1)
    held: list[str] = []  # the lines of the row that is read
    bare = form | {"quoting": csv.QUOTE_NONE}
    reader, start, lost, joined = csv.reader(kept(text, held, form), **form), 1, [], []
    try:
        for fields in reader:
            if form["quoting"] != csv.QUOTE_NONE and any('"' in line for line in held):
                if not enclosed(held, f"{path}: the row of line {start}", form):
                    lost.append(start)
                if 1 < len(fields) and 1 < len(held) and widths(held, bare) == {len(fields)}:
                    joined.append(start)
            yield start, fields
            start = reader.line_num + 1
            held.clear()
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num} cannot be read ({error})") from None
    if told is not None:
        told += doubts(path, lost, joined)


def doubts(path: Path, lost: list[int], joined: list[int]) -> list[str]:
    """Sentences on quotes that may be of the texts."""
    kinds = {
        "begin a field with a quote that does not end it, which is lost": lost,
        "are of several lines in quotes, each of which could be a row": joined,
    }
    return [
        f"{path.name}: {counted(len(rows), 'row', what)} (lines {few(rows)}); where all quotes of a data "
        "set are of its texts, state quotes: false in its row (try and predict: --quotes false)"
        for what, rows in kinds.items()
        if rows
    ]


def kept(text: str, held: list[str], form: dict) -> Iterator[str]:
    """The lines of a text with their ends, each added to `held` too.

    An escape before another character than it escapes stands for itself, as in a path of Windows.
    """
    escape = re.escape(form.get("escapechar", "\\"))
    escaping = re.compile(f'{escape}(["{escape}{re.escape(form["delimiter"])}])?')
    # a StringIO would take four bytes a character
    for line in io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=""):
        if "escapechar" in form:
            line = escaping.sub(lambda found: found[0] if found[1] else found[0] * 2, line)
        held.append(line)
        yield line


def enclosed(lines: list[str], where: str, form: dict) -> bool:
    """Whether the quotes of a row enclose whole fields; raises BadInput where they swallow other rows."""
    blank = rf'" +(?={re.escape(form["delimiter"])}|\r?\n|\Z)'  # between a quote and a separator
    if strict(lines, form) or strict([re.sub(blank, '"', line) for line in lines], form):
        return True
    if strict(lines, form | {"escapechar": "\\"}):
        raise BadInput(
            f'{where} has quotes with a backslash before them (\\"); state escape: "\\\\" in the row of the '
            "data set (try and predict: --escape), or write a quote in a text twice"
        )
    if len(lines) > 1:
        raise BadInput(
            f"{where} has a field that begins with a double quote and takes in the next {len(lines) - 1} "
            "lines; put quotes around the whole text and write its own twice, or, where all quotes of a data "
            "set are of its texts, quotes: false in its row (try and predict: --quotes false)"
        )
    return False


def widths(lines: Iterable[str], form: dict) -> set[int]:
    """The numbers of fields in rows."""
    return {len(row) for row in csv.reader(lines, **form)}


def strict(lines: Iterable[str], form: dict) -> bool:
    """Whether the quotes of a row are where they may be."""
    try:
        return bool(list(csv.reader(lines, strict=True, **form)))
    except csv.Error:
        return False


def found(text: str, usual: str, *, quotes: bool) -> str:
    """The separator of a file: the usual one, unless only another divides the header and the rows alike."""
    sample = list(islice(io.StringIO(text[: 2**20], newline=""), SAMPLE))
    if len(first_rows(sample, usual, quotes)[0]) > 1:
        return usual
    others = [mark for mark in MARKS if mark != usual and divides(first_rows(sample, mark, quotes))]
    return others[0] if len(others) == 1 else usual


def first_rows(sample: list[str], mark: str, quotes: bool) -> list[list[str]]:
    """The rows of the first lines; at least one."""
    try:
        return [row for row in csv.reader(sample, **form_of(mark, quotes=quotes)) if row] or [[]]
    except csv.Error:
        return [[]]


def divides(rows: list[list[str]]) -> bool:
    """Whether all rows have as many fields as the header, two or more; the last may be cut short."""
    widths = {len(row) for row in rows[: max(2, len(rows) - 1)]}
    return len(widths) == 1 and widths.pop() > 1 and len(rows) > 1


def spaced(text: str, form: dict, path: Path) -> bool:
    """Whether quoted fields have blanks before them, by which the quotes would count as text."""
    mark = re.escape(form["delimiter"])
    if form["quoting"] == csv.QUOTE_NONE or not re.search(rf'{mark} +"[^"\r\n]*" *(?:{mark}|\r?\n|\Z)', text):
        return False
    fields = (field for _, row in rows_of(text, path, form) for field in row)
    return any(field[:1] == " " and re.fullmatch(r'"[^"]*"?', field.strip()) for field in fields)
