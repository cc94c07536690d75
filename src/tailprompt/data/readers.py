"""Rows of CSV, TSV, JSON Lines and Parquet files, plain or .xz, each with its place in the file."""

from __future__ import annotations

import csv
import io
import json
import lzma
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow.parquet as pq

from tailprompt.errors import BadInput, few, known, named
from tailprompt.files import json_object, reading

PLACE = "file:line"  # the column with the place of each row


class WrongEncoding(BadInput):
    """A file does not have the encoding that it is read with."""


def rows(path: Path, encoding: str, *, hint: str, **form) -> pd.DataFrame:
    """All rows of a file, with the place `file:line` of each; the name of the file gives its format.

    hint: how to state another encoding, for messages. form: header and quotes of CSV and TSV files.
    """
    kind = path.name.removesuffix(".xz").rpartition(".")[2].lower()
    read = named(READERS, kind, f"file format of {path},")
    try:
        table = read(path, encoding, **(form if kind in SEPARATORS else {}))
    except WrongEncoding as error:
        raise BadInput(f"{error}, or {hint}") from None
    if not len(table):
        raise BadInput(f"{path} has no rows")
    return table


def header(path: Path) -> list[str]:
    """The columns of a CSV, TSV, JSON Lines or Parquet file in UTF-8, of which no more is read.

    Columns of JSON Lines are those of the first object. Raises BadInput where none can be read.
    """
    read = named(HEADERS, path.suffix[1:].lower(), f"file format of {path},")
    with reading(path):
        return read(path)


def plain(path: Path) -> bytes:
    """The bytes of a file, decompressed if its name ends in .xz."""
    with opened(path) as file:
        return file.read()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file opened for reading bytes, decompressed if its name ends in .xz."""
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            yield file
    except (lzma.LZMAError, EOFError) as error:
        raise BadInput(f"{path} is damaged or cut short ({error})") from None


def decoded(path: Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file; raises WrongEncoding with the first byte that does not fit, and its line."""
    data = plain(path)
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        wanted = encoding.removesuffix("-sig").upper()
        raise WrongEncoding(
            f"{path}: byte {error.start} (line {line}) is not {wanted}; save the file as {wanted}"
        ) from None
    except (LookupError, ValueError):
        raise BadInput(
            f"{path}: there is no encoding '{encoding}' for it; known are utf-8, gb18030, latin-1, ..."
        ) from None


def read_separated(
    path: Path, encoding: str, separator: str, *, header: list[str] | None = None, quotes: bool = True
) -> pd.DataFrame:
    """Rows of a CSV or TSV file, whose first line is the header unless one is given.

    quotes: whether double quotes enclose fields.
    """
    lines = separated_lines(path, encoding, separator, quotes=quotes)
    if header:
        lines = [(0, header), *lines]
    if not lines:
        raise BadInput(f"{path} is empty; it needs a header and rows")
    header = lines[0][1]
    named_once(header, path)
    ragged = [number for number, fields in lines[1:] if len(fields) != len(header)]
    if ragged:
        raise BadInput(
            f"{path}: {len(ragged)} rows do not have the header's {len(header)} fields "
            f"(lines {few(ragged)}); quote texts that hold a separator, a quote or a line end"
        )
    table = pd.DataFrame([fields for _, fields in lines[1:]], columns=header, dtype=object)
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number, _ in lines[1:]]})


def named_once(header: list[str], path: Path) -> None:
    """Raise BadInput if columns share a name, or several have none."""
    repeated = {f"'{name}'" if name else "no name" for name in header if header.count(name) > 1}
    if repeated:
        raise BadInput(f"{path}: several columns have {known(repeated)}; give each a name of its own")


def separated_lines(
    path: Path, encoding: str, separator: str, *, quotes: bool = True
) -> list[tuple[int, list[str]]]:
    """(line number, fields) of every line that is not blank."""
    csv.field_size_limit(2**31 - 1)
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    text = io.StringIO(decoded(path, encoding), newline="").readlines()
    form = {"delimiter": separator, "quoting": quoting}
    reader = csv.reader(text, **form)
    lines, start = [], 1
    try:
        for fields in reader:
            if reader.line_num > start:
                closed(text[start - 1 : reader.line_num], f"{path}: the row of line {start}", form)
            if fields:
                lines.append((start, fields))
            start = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num} cannot be read ({error})") from None
    return lines


def closed(lines: list[str], where: str, form: dict) -> None:
    """Raise BadInput if a row of several lines is not properly quoted: a stray quote swallows other rows."""
    try:
        next(csv.reader(lines, strict=True, **form))
    except csv.Error:
        raise BadInput(
            f"{where} has a field that begins with a double quote and takes in the next {len(lines) - 1} "
            "lines; put quotes around the whole text and write its own twice, or, where all quotes of a data "
            "set are of its texts, quotes: false in its row"
        ) from None


def read_json(path: Path, encoding: str) -> pd.DataFrame:
    """Objects of a JSON Lines file, or of a file that is one JSON list."""
    objects = json_objects(path, encoding)
    table = pd.DataFrame([value for _, value in objects], dtype=object)
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number, _ in objects]})


def json_objects(
    path: Path, encoding: str = "utf-8-sig", *, keys: Set[str] = frozenset()
) -> list[tuple[int, dict]]:
    """(line or place in the list, object) for JSON Lines or a JSON list; each object must have `keys`."""
    text = decoded(path, encoding)
    if text.lstrip().startswith("["):
        objects = list(enumerate(parsed(text, path, 1), 1))
    else:
        # not splitlines(), which would also cut at Unicode line separators in a text
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        objects = [(number, parsed(line, path, number)) for number, line in lines]
    wrong = [number for number, value in objects if not isinstance(value, dict) or not keys <= set(value)]
    if wrong:
        what = f"JSON objects with {known(keys)}" if keys else "JSON objects"
        raise BadInput(f"{path}: {len(wrong)} lines are not {what} (lines {few(wrong)})")
    return objects


def parsed(text: str, path: Path, line: int):
    """The value of a JSON text; raises BadInput, with the line, also for lone surrogates (not writable)."""
    try:
        value = json.loads(text, object_pairs_hook=each_once)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: line {line} is not JSON ({error})") from None


def each_once(pairs: list[tuple]) -> dict:
    """A JSON object; raises ValueError if it has a key twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(key for key in keys if keys.count(key) > 1)}' stands there twice")
    return value


def read_parquet(path: Path, encoding: str) -> pd.DataFrame:
    """Rows of a Parquet file."""
    with reading(path):
        file = pq.ParquetFile(io.BytesIO(plain(path)))
        named_once(file.schema_arrow.names, path)
        arrow = file.read()
        arrow.validate(full=True)  # raises for text that is not UTF-8
        table = arrow.to_pandas()
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number in range(1, len(table) + 1)]})


def first_fields(path: Path, separator: str) -> list[str]:
    """The fields of the first row of a CSV or TSV file."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=separator), [])


def first_keys(path: Path) -> list[str]:
    """The keys of the first object of a JSON Lines file."""
    with open(path, encoding="utf-8-sig") as file:
        return list(json_object(file.readline(), path))


SEPARATORS = {"csv": ",", "tsv": "\t", "txt": "\t"}
READERS = {
    **{kind: partial(read_separated, separator=mark) for kind, mark in SEPARATORS.items()},
    "json": read_json,
    "jsonl": read_json,
    "parquet": read_parquet,
}
HEADERS = {
    **{kind: partial(first_fields, separator=mark) for kind, mark in SEPARATORS.items()},
    "jsonl": first_keys,
    "parquet": lambda path: pq.read_schema(path).names,
}
