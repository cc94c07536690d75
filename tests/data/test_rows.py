"""The digest of rows: what cannot change it, and that any cell, null, list, name or order does."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.data import rows
from tailprompt.data.table import META, write
from tailprompt.errors import BadInput

COLUMNS = {
    "id": (["a", "b", "c", "d"], pa.string()),
    "label": ([0, 1, None, 2], pa.int64()),
    "text": (["one", "", None, "二"], pa.string()),
    "choices": ([["x", "yz"], [], None, ["xy", None]], pa.list_(pa.string())),
    "tags": ([[1, 2], [], [3], [0]], pa.list_(pa.int64())),
    "nested": ([[["a"], []], [], [None], [["b", "c"]]], pa.list_(pa.list_(pa.string()))),
    "share": ([0.5, -1.0, None, 2.0], pa.float64()),
    "new": ([True, False, None, True], pa.bool_()),
    "nothing": ([None] * 4, pa.string()),
}
ABOUT = {"classes": ["law", "music"], "sources": {"a.csv": "00"}}


def table(about=ABOUT, **changes):
    """A table of every kind of cell. changes: column -> (values, type)."""
    arrays = {name: pa.array(*each) for name, each in (COLUMNS | changes).items()}
    return pa.table(arrays).replace_schema_metadata({META: json.dumps(about)})


def as_type(name, kind):
    return table(**{name: (COLUMNS[name][0], kind)})


SAME = {
    "text that may be large": as_type("text", pa.large_string()),
    "text as views": as_type("text", pa.string_view()),
    "text by number": as_type("text", pa.dictionary(pa.int8(), pa.string())),
    "narrow labels": as_type("label", pa.int8()),
    "unsigned labels": as_type("label", pa.uint16()),
    "narrow shares": as_type("share", pa.float32()),
    "lists that may be large": as_type("choices", pa.large_list(pa.large_string())),
    "lists as views": as_type("tags", pa.list_view(pa.int16())),
    "lists of lists": as_type("nested", pa.large_list(pa.list_(pa.large_string()))),
    "lists of texts by number": as_type("choices", pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "nulls without a kind": as_type("nothing", pa.null()),
    "nulls of numbers": as_type("nothing", pa.int64()),
    "a part of a longer table": pa.concat_tables([table(), table()]).combine_chunks().slice(4, 4),
    "several chunks": pa.concat_tables([table().slice(0, 1), table().slice(1, 2), table().slice(3, 1)]),
    "an empty chunk": pa.concat_tables([table().slice(0, 0), table()]),
    "other sources": table({**ABOUT, "sources": {}}),
    "other metadata": table().replace_schema_metadata(
        {META: json.dumps({**ABOUT, "more": 1}), b"pandas": b"{}"}
    ),
}
NONE = ([None] * 4, pa.string())
OTHER = {
    "a letter": table(text=(["one", "", None, "三"], pa.string())),
    "empty instead of null": table(text=(["one", "", "", "二"], pa.string())),
    "null instead of empty": table(text=(["one", None, None, "二"], pa.string())),
    "where a text ends": table(text=(["on", "e", None, "二"], pa.string())),
    "a label": table(label=([0, 1, None, 1], pa.int64())),
    "zero instead of null": table(label=([0, 1, 0, 2], pa.int64())),
    "labels as text": table(label=(["0", "1", None, "2"], pa.string())),
    "a truth as a number": table(new=([1, 0, None, 1], pa.int64())),
    "a number as a share": table(label=([0.0, 1.0, None, 2.0], pa.float64())),
    "an option": table(choices=([["x", "yz"], [], None, ["xz", None]], pa.list_(pa.string()))),
    "where an option ends": table(choices=([["xy", "z"], [], None, ["xy", None]], pa.list_(pa.string()))),
    "an option in another row": table(choices=([["x"], ["yz"], None, ["xy", None]], pa.list_(pa.string()))),
    "no list": table(choices=([["x", "yz"], None, None, ["xy", None]], pa.list_(pa.string()))),
    "a list": table(choices=([["x", "yz"], [], [], ["xy", None]], pa.list_(pa.string()))),
    "a list of a null": table(tags=([[1, 2], [None], [3], [0]], pa.list_(pa.int64()))),
    "a list in a list": table(nested=([[["a"]], [], [None], [["b", "c"]]], pa.list_(pa.list_(pa.string())))),
    "empty texts": table(nothing=([""] * 4, pa.string())),
    "order of rows": table().take([1, 0, 2, 3]),
    "a row less": table().slice(0, 3),
    "no rows": table().slice(0, 0),
    "order of columns": table().select([*COLUMNS][::-1]),
    "the name of a column": table().rename_columns([*COLUMNS][:-1] + ["none"]),
    "a column of nulls more": table(more=NONE),
    "the name of a class": table(ABOUT | {"classes": ["law", "song"]}),
    "order of classes": table(ABOUT | {"classes": ["music", "law"]}),
}


@pytest.mark.parametrize("name", SAME)
def test_types_chunks_and_metadata_do_not_change_the_digest(name):
    assert rows.digest(SAME[name]) == rows.digest(table())


def test_any_other_content_changes_it():
    found = {name: rows.digest(each) for name, each in {"": table(), **OTHER}.items()}
    assert len({*found.values()}) == len(found)


@pytest.mark.parametrize(
    "written",
    [
        {"compression": "zstd"},
        {"compression": None, "row_group_size": 1},
        {"compression": "snappy", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "gzip", "version": "1.0"},
    ],
    ids=["zstd", "a-row-a-group", "snappy", "old"],
)
def test_files_of_the_same_rows_have_one_digest(tmp_path, written):
    pq.write_table(table(), tmp_path / "a.parquet", **written)
    assert rows.of_file(tmp_path / "a.parquet") == rows.digest(table())


CELLS = st.one_of(st.none(), st.text(max_size=3))
TABLES = st.lists(st.tuples(CELLS, st.one_of(st.none(), st.lists(CELLS, max_size=2))), max_size=4)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TABLES, TABLES)
def test_digests_are_equal_where_the_cells_are(ours, theirs):
    def made(pairs):
        texts, lists = zip(*pairs, strict=True) if pairs else ((), ())
        return pa.table({"text": pa.array(texts, pa.string()), "of": pa.array(lists, pa.list_(pa.string()))})

    assert (rows.digest(made(ours)) == rows.digest(made(theirs))) == (ours == theirs)


KNOWN = "ce7f70e1559f5bb55b18207098d594055a5eb91d6a2c881685f73b850a104b98"


def test_the_digest_of_a_known_table_stays_what_it_is(tmp_path):
    known = pd.DataFrame({"id": ["a", "b"], "split": "train", "label": [0, 1], "text": ["one", "二"]})
    write(known, ["law", "music"], tmp_path / "a.parquet", sources={})
    assert rows.of_file(tmp_path / "a.parquet") == KNOWN


def test_a_table_of_things_that_no_data_set_holds_is_refused(tmp_path):
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("s"))}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"a\.parquet cannot be read"):
        rows.of_file(tmp_path / "a.parquet")
