"""Rows of CSV, TSV, JSON Lines, JSON and Parquet files, plain or packed, each with its place in the file."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Set
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from tailprompt.data.contents import PLACE, WrongEncoding, decoded, kind_of, lines_in, opened, plain
from tailprompt.data.separated import found, named_once, read_separated, refuse
from tailprompt.errors import BadInput, counted, few, known, named
from tailprompt.files import json_object, reading

FORM = ("header", "quotes", "separator", "escape")  # what a row may say of CSV and TSV files
SHEETS = {"xlsx", "xls", "ods", "numbers"}


def rows(path: Path, encoding: str, *, hint: str, wrong: list[str] | None = None, **form) -> pd.DataFrame:
    """All rows of a file, with the place `file:line` of each; the name of the file gives its format.

    hint: how to state another encoding, for messages. form: FORM of CSV and TSV files. What had to be found
    out about the form stands in the table's `attrs`. wrong: takes sentences on rows that cannot be read, in
    the place of a refusal; such rows are then empty.
    """
    kind = kind_of(path)
    if kind in SHEETS | {"zip", "tar"}:
        how = "save its sheet as CSV (UTF-8)" if kind in SHEETS else "unpack it, and name the file in it"
        raise BadInput(f"{path} is no table of text; {how}; known: {known(READERS)}, packed or not")
    read = named(READERS, kind, f"file format of {path},")
    try:
        table = read(path, encoding, wrong=wrong, **(form if kind in SEPARATORS else {}))
    except WrongEncoding as error:
        raise BadInput(f"{error}, or {hint}") from None
    if not len(table):
        raise BadInput(f"{path} has no rows")
    return table


def header(path: Path) -> list[str]:
    """The columns of a CSV, TSV, JSON Lines or Parquet file in UTF-8, of which no more is read.

    Columns of JSON Lines are those of the first object. Raises BadInput where none can be read.
    """
    read = named(HEADERS, kind_of(path), f"file format of {path},")
    with reading(path):
        return read(path)


def read_json(path: Path, encoding: str, *, wrong: list[str] | None = None) -> pd.DataFrame:
    """Objects of a JSON Lines file, or of a file that is one JSON list."""
    text = decoded(path, encoding)
    if kind_of(path) == "json":  # an object of lists on a line of JSON Lines is a row
        check_shape(text.lstrip(), path)
    objects = objects_in(text, path, wrong=wrong)
    table = pd.DataFrame([value for _, value in objects], dtype=object)
    named_once([*map(str, table.columns)], path)
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number, _ in objects]})


def json_objects(
    path: Path, encoding: str = "utf-8-sig", *, keys: Set[str] = frozenset()
) -> list[tuple[int, dict]]:
    """(line or place in the list, object) for JSON Lines or a JSON list; each object must have `keys`."""
    return objects_in(decoded(path, encoding), path, keys)


def objects_in(
    text: str, path: Path, keys: Set[str] = frozenset(), *, wrong: list[str] | None = None
) -> list[tuple[int, dict]]:
    """(line or place in the list, object) of the text of a file. wrong: as in `rows`."""
    if text.lstrip().startswith("["):
        values = list(enumerate(parsed(text, path, 1), 1))
    else:
        lines = [(number, line) for number, line in enumerate(lines_in(text), 1) if line.strip()]
        several = wrong if len(lines) > 1 else None
        values = [(number, parsed(line, path, number, several)) for number, line in lines]
    fits = [isinstance(value, dict) and keys <= set(value) for _, value in values]
    if not all(fits):
        what = f"a JSON object with {known(keys)}" if keys else "a JSON object"
        other = [number for (number, _), fit in zip(values, fits, strict=True) if not fit]
        sentence = f"{path}: {counted(len(other), 'line', 'are')} not {what} (lines {few(other)})"
        refuse(sentence, wrong if any(fits) else None)
    return [(number, value if fit else {}) for (number, value), fit in zip(values, fits, strict=True)]


def check_shape(text: str, path: Path) -> None:
    """Raise BadInput where a file begins with an object that is neither a row nor on one line."""
    try:
        value, end = json.JSONDecoder().raw_decode(text) if text.startswith("{") else (None, 0)
    except (ValueError, RecursionError):
        return
    if value and (shape := shape_of(value, several="\n" in text[:end])):
        raise BadInput(
            f"{path} holds {shape}; save it as a list of objects, or an object on each line (with pandas: "
            'to_json(path, orient="records", lines=True))'
        )


def shape_of(value: dict, *, several: bool) -> str | None:
    """What an object is where it is no row. several: whether it takes several lines."""
    held = list(value.values())
    if key := next((key for key, v in value.items() if isinstance(v, list) and v and all_are(v, dict)), None):
        return f"a list of rows under '{key}'"
    if all_are(held, list) or all_are(held, dict):
        return "an object of columns"
    return "rows over several lines each" if several else None


def all_are(values: list, kind: type) -> bool:
    """Whether a list holds values of one kind only."""
    return all(isinstance(value, kind) for value in values)


def parsed(text: str, path: Path, line: int, wrong: list[str] | None = None):
    """The value of a JSON text; BadInput, with the line, also for lone surrogates (not writable).

    wrong: as in `rows`; the value is then an empty object.
    """
    try:
        value = json.loads(text, object_pairs_hook=each_once)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        refuse(f"{path}: line {line} is not JSON ({error})", wrong)
        return {}


def each_once(pairs: list[tuple]) -> dict:
    """A JSON object; raises ValueError if it has a key twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key}' stands there twice")
    return value


def read_parquet(path: Path, encoding: str, *, wrong: list[str] | None = None) -> pd.DataFrame:
    """Rows of a Parquet file; what pandas kept as a named index is columns like others."""
    with reading(path):
        file = pq.ParquetFile(io.BytesIO(plain(path)))
        named_once(file.schema_arrow.names, path)
        arrow = file.read()
        arrow.validate(full=True)  # raises for text that is not UTF-8
        table = arrow.to_pandas(integer_object_nulls=True)  # floats have not all whole numbers
        if any(name is not None for name in table.index.names):
            table = table.reset_index()
    return table.assign(**{PLACE: [f"{path.name}:{number}" for number in range(1, len(table) + 1)]})


def first_fields(path: Path, usual: str) -> list[str]:
    """The fields of the first row of a CSV or TSV file."""
    with opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        start = text.read(2**16)
    return next(csv.reader(io.StringIO(start, newline=""), delimiter=found(start, usual, quotes=True)), [])


def first_keys(path: Path) -> list[str]:
    """The keys of the first object of a JSON Lines file."""
    with opened(path) as file:
        return list(json_object(file.readline().decode("utf-8-sig"), path))


SEPARATORS = {"csv": ",", "tsv": "\t", "txt": "\t", "tab": "\t"}
READERS = {
    **{kind: partial(read_separated, usual=mark) for kind, mark in SEPARATORS.items()},
    "json": read_json,
    "jsonl": read_json,
    "ndjson": read_json,
    "parquet": read_parquet,
}
HEADERS = {
    **{kind: partial(first_fields, usual=mark) for kind, mark in SEPARATORS.items()},
    "jsonl": first_keys,
    "ndjson": first_keys,
    "parquet": lambda path: pq.read_schema(path).names,
}
