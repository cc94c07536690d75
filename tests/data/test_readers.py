"""The header of a file alone."""

from __future__ import annotations

import pandas as pd
import pytest

from tailprompt.data import separated
from tailprompt.data.labels import seen
from tailprompt.data.readers import header, rows
from tailprompt.errors import BadInput
from tailprompt.predict import WRITERS


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_a_header_is_the_columns_as_they_were_written(tmp_path, suffix):
    WRITERS[suffix](pd.DataFrame({"a, b": ["x"], "文": [1]}), tmp_path / f"a.{suffix}")
    assert header(tmp_path / f"a.{suffix}") == ["a, b", "文"]


@pytest.mark.parametrize(
    "suffix, head", [("csv", b"a,b\n"), ("tsv", b"a\tb\n"), ("jsonl", b'{"a": 1, "b": 2}\n')]
)
def test_what_is_wrong_behind_a_header_is_not_looked_at(tmp_path, suffix, head):
    (tmp_path / f"a.{suffix}").write_bytes(head + b"x\n" * 100_000 + b"\xff\n")
    assert header(tmp_path / f"a.{suffix}") == ["a", "b"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_header_that_cannot_be_read_is_one_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(b"\xff\xfe of another kind")
    with pytest.raises(BadInput, match=f"{name} cannot be read"):
        header(tmp_path / name)


def test_a_file_of_many_columns_is_not_compared_with_its_header_column_by_column(tmp_path, monkeypatch):
    names, asked = ["text", "label", *(f"c{n}" for n in range(500))], []
    lines = [",".join(names), *(",".join(["some text", "a", *["0.5"] * 500]) for _ in range(20))]
    (tmp_path / "a.csv").write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(separated, "seen", lambda text: asked.append(text) or seen(text))
    table = rows(tmp_path / "a.csv", "utf-8", hint="")
    assert table.shape == (20, 503) and len(asked) <= 4
    assert {*table.dtypes.map(str)} <= {"object", "str"} and table["c7"].dtype == object
    (tmp_path / "b.csv").write_text("\n".join([*lines, lines[0].upper()]), "utf-8")
    with pytest.raises(BadInput, match="1 row is the header itself .lines 22."):
        rows(tmp_path / "b.csv", "utf-8", hint="")
