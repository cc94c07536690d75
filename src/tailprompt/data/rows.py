"""A digest of the rows of a prepared data set: equal rows have equal digests, whatever wrote the file.

The bytes of a Parquet file depend on the version of pyarrow, its compression and its row groups. This digest
depends on the classes, the names of the columns in order, and each cell. Text is text in every Arrow type for
it, as a number is; null is not empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailprompt.data.table import META
from tailprompt.files import reading


def of_file(path: Path) -> str:
    """The digest of the rows of a prepared data set."""
    with reading(path):
        return digest(pq.read_table(path))


def of_table(table: pd.DataFrame, classes: list[str]) -> str:
    """The digest that a table will have as a prepared data set with these classes."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    return digest(arrow.replace_schema_metadata({META: json.dumps({"classes": classes})}))


def digest(table: pa.Table) -> str:
    """Hexadecimal SHA-256 of the rows of a table and of the names of its classes."""
    about = json.loads((table.schema.metadata or {}).get(META, b"{}"))
    parts = [json.dumps([about.get("classes"), table.column_names, table.num_rows]).encode()]
    parts += (part for column in table.columns for part in content(column))
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def content(cells: pa.ChunkedArray) -> Iterator[bytes | memoryview | np.ndarray]:
    """The cells of a column as bytes: which are null; the kind, the lengths and the values of the others.

    Without values a column has no kind: pyarrow takes that of a null or an empty list from what is around it.
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    yield numbers(pc.is_valid(cells), pa.uint8())
    name, kind = next(((name, kind) for is_kind, name, kind in KINDS if is_kind(cells.type)), LIST)
    cells = (cells.cast(kind) if kind else cells).drop_null()
    if not len(cells):
        return
    yield name
    if name == b"text":
        yield from texts(cells.combine_chunks())
    elif name == b"list":
        yield numbers(pc.list_value_length(cells), pa.int64())
        yield from content(pc.list_flatten(cells))
    else:
        yield numbers(cells, kind)


def numbers(cells: pa.ChunkedArray, kind: pa.DataType) -> np.ndarray:
    """Numbers without null as one type, little-endian."""
    values = cells.cast(kind).to_numpy()
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def texts(cells: pa.LargeStringArray) -> tuple[np.ndarray, memoryview]:
    """The lengths in bytes of texts, and the texts one after another in UTF-8. There is no null."""
    _, places, written = cells.buffers()
    ends = np.frombuffer(places, "<i8")[cells.offset : cells.offset + len(cells) + 1]
    return np.diff(ends), memoryview(written or b"")[ends[0] : ends[-1]]


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are texts."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


LIST = b"list", None  # what is none of KINDS
KINDS = (  # is it of this kind, its name in the digest, the type in which its values are compared
    (pa.types.is_null, b"text", pa.large_string()),  # whose cells are all null
    (is_text, b"text", pa.large_string()),
    (pa.types.is_boolean, b"truth", pa.uint8()),
    (pa.types.is_integer, b"integer", pa.int64()),
    (pa.types.is_floating, b"number", pa.float64()),
)
