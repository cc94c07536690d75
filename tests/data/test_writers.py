"""What is written of new rows is what was read: each value, and each row in its place."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailprompt.data.readers import rows
from tailprompt.data.writers import WRITERS

LARGE = 2**53 + 1  # the first whole number that a float has not


def read(path):
    return rows(path, "utf-8-sig", hint="").drop(columns="file:line")


def back(frame, path):
    WRITERS[path.suffix[1:]](frame, path)
    return read(path)


@pytest.mark.parametrize("suffix", sorted(WRITERS))
@pytest.mark.parametrize("source", ["jsonl", "parquet"])
@pytest.mark.parametrize("ids", [[LARGE, None], [7, None], [LARGE, 1]], ids=["large", "small", "whole"])
def test_whole_numbers_stay_beside_an_empty_cell(tmp_path, suffix, source, ids):
    if source == "jsonl":
        text = "\n".join(json.dumps({"id": i, "text": "x"} if i else {"text": "x"}) for i in ids)
        (tmp_path / "in.jsonl").write_text(text)
    else:
        pq.write_table(pa.table({"id": pa.array(ids), "text": ["x", "x"]}), tmp_path / "in.parquet")
    made = back(read(tmp_path / f"in.{source}"), tmp_path / f"out.{suffix}")
    assert [str(i) for i in made["id"] if i] == [str(i) for i in ids if i]


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_whole_decimals_stay(tmp_path, suffix):
    large = 12345678901234567891
    cells = pa.array([Decimal(large), None], pa.decimal128(20, 0))
    pq.write_table(pa.table({"id": cells, "text": ["x", "y"]}), tmp_path / "in.parquet")
    made = back(read(tmp_path / "in.parquet"), tmp_path / f"out.{suffix}")
    assert str(made["id"][0]) == str(large) and not made["id"][1]


@pytest.mark.parametrize("suffix", sorted(WRITERS))
@pytest.mark.parametrize("cell", ["a\rb", "a\r", "\r\n", "a\nb", 'a "b"\r', "a,b\t;"])
def test_texts_with_line_ends_shift_no_row(tmp_path, suffix, cell):
    frame = pd.DataFrame({"id": [1, 2, 3], "text": [cell, "", "c"], "p": [0.5, None, 0.25]})
    made = back(frame, tmp_path / f"out.{suffix}")
    assert made["text"].tolist() == frame["text"].tolist() and made["p"].astype(str)[0] == "0.5"
    if suffix in ("csv", "tsv"):
        read = pd.read_csv(tmp_path / f"out.{suffix}", sep={"csv": ",", "tsv": "\t"}[suffix])
        assert read["id"].tolist() == [1, 2, 3] and read["p"].isna().tolist() == [False, True, False]


def test_json_has_numbers_dates_and_lists_as_they_are(tmp_path):
    cells = [0.1234567890123456, 1e-12, float("nan"), datetime.date(2024, 5, 1), pd.Timestamp("2024-05-01")]
    cells += [np.array([1, 2]), {"a": [None]}, pd.NA, np.int64(3), [True]]
    WRITERS["jsonl"](pd.DataFrame({"x": pd.Series(cells, dtype=object)}), tmp_path / "a.jsonl")
    made = [json.loads(line)["x"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    wanted = [0.1234567890123456, 1e-12, None, "2024-05-01", "2024-05-01T00:00:00", [1, 2], {"a": [None]}]
    assert made == [*wanted, None, 3, [True]]


def test_csv_has_lists_and_objects_as_json(tmp_path):
    cells = pd.Series([np.array([1, 2]), {"a": None}, ["x"]], dtype=object)
    made = back(pd.DataFrame({"x": cells, "y": [1, 2, 3]}), tmp_path / "a.csv")
    assert made["x"].tolist() == ["[1, 2]", '{"a": null}', '["x"]']
