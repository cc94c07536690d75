"""The form of a file of printed numbers, config/reported/*.csv: one finite number a line."""

from __future__ import annotations

import csv
import re
from io import StringIO
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan.home import found

COLUMNS = ["table", "dataset", "method", "metric", "value", "spread", "page"]
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
Row = tuple[int, dict[str, str]]  # the line in the file, and the cells by column


def file_of(paper: str, root: str | Path = ".") -> Path:
    """Where the printed numbers of a paper stand, if it has any."""
    return Path(root, found(f"config/reported/{paper}.csv", root))


def rows(path: Path) -> list[Row]:
    """The rows of a file of printed numbers; raises BadInput with the line of a faulty one."""
    lines = csv.reader(StringIO(text_of(path), newline=""), strict=True)
    try:
        read = [(lines.line_num, cells) for cells in lines if cells]
    except csv.Error as error:
        raise BadInput(f"{path}: line {lines.line_num} cannot be read ({error})") from None
    if not read or read[0][1] != COLUMNS:
        raise BadInput(f"{path}: the first line must be the header {','.join(COLUMNS)}")
    first: dict[tuple, int] = {}
    for line, cells in read[1:]:
        check_cells(cells, f"{path}: line {line}:")
        if (before := first.setdefault(tuple(cells[:4]), line)) != line:
            raise BadInput(
                f"{path}: line {line}: {', '.join(filter(None, cells[:4]))} is in line {before} too; keep one"
            )
    return [(line, dict(zip(COLUMNS, cells, strict=True))) for line, cells in read[1:]]


def text_of(path: Path) -> str:
    """The text of a file; raises BadInput, with the line, unless it is UTF-8."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}: byte {error.start} (line {line}) is not UTF-8; save it as UTF-8") from None


def check_cells(cells: list[str], where: str) -> None:
    """Raise BadInput if a row has too few or too many cells, or no number where one is wanted."""
    if len(cells) != len(COLUMNS):
        raise BadInput(f"{where} {len(cells)} cells; a row has {len(COLUMNS)}: {', '.join(COLUMNS)}")
    row = dict(zip(COLUMNS, cells, strict=True))
    for column in ("value", "spread"):
        if not NUMBER.fullmatch(row[column]) and (row[column] or column == "value"):
            also = " or nothing" if column == "spread" else ""
            raise BadInput(f"{where} {column} '{row[column]}' is no number; write one as 80.1{also}")
