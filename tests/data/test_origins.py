"""A row of a prepared data set is found again in the file that it came from, in each format."""

from pathlib import Path

import pandas as pd
import pytest

from tailprompt.data import table as data
from tailprompt.data.download import found
from tailprompt.data.origins import origins

TEXTS = [f'text {i}, "said"\nin {i} lines' if i % 3 else f"text {i}" for i in range(30)]
TABLE = pd.DataFrame({"text": TEXTS, "label": list("abc") * 10, "Nr": range(100, 130)})
WRITE = {
    "csv": lambda table, file: table.to_csv(file, index=False),
    "tsv": lambda table, file: table.to_csv(file, index=False, sep="\t"),
    "jsonl": lambda table, file: table.to_json(file, orient="records", lines=True),
    "parquet": lambda table, file: table.to_parquet(file, index=False),
}


def prepared(folder: Path, row: dict) -> tuple[pd.DataFrame, dict]:
    """The canonical table of a row, and the part of its report that tells of its files."""
    row = {"name": "mine", "language": "en", **row}
    paths, sources = found(row, data_dir=None, raw=folder, lock=folder / "lock.json")
    table, _ = data.load(row, paths)
    return table, {"row": row, "sources": sources}


def cell_at(file: str, line: int) -> str:
    """The text of the row that a person finds at this place."""
    if file.endswith("parquet"):
        return pd.read_parquet(file).text[line - 1]
    lines = Path(file).read_text().split("\n")
    if file.endswith("jsonl"):
        return pd.read_json(file, lines=True).text[line - 1]
    return lines[line - 1].lstrip('"').partition(",")[0].partition("\t")[0]


@pytest.mark.parametrize("ending", WRITE)
@pytest.mark.parametrize("columns", [{}, {"id": "Nr"}], ids=["our ids", "own ids"])
@pytest.mark.parametrize("left_out", [[], ["b"]], ids=["all", "left out"])
def test_each_row_stands_where_it_is_said_to(tmp_path, ending, columns, left_out):
    file = tmp_path / f"mine.{ending}"
    WRITE[ending](TABLE, file)
    row = {"path": str(file), "columns": columns, **({"left_out": left_out} if left_out else {})}
    table, report = prepared(tmp_path, row)
    at = origins(report, table.id).set_index("id")
    for row in table.itertuples():
        place = at.loc[row.id]
        assert place.file == str(file)
        assert row.text.startswith(cell_at(place.file, place.line).split("\n")[0])


def test_files_of_one_name_in_two_folders_are_both_found(tmp_path):
    files = {split: tmp_path / split / "rows.csv" for split in ("train", "test")}
    for split, file in files.items():
        file.parent.mkdir()
        TABLE.assign(text=[f"{split} {text}" for text in TEXTS]).to_csv(file, index=False)
    table, report = prepared(tmp_path, {"files": {split: str(file) for split, file in files.items()}})
    at = origins(report, table.id).set_index("id")
    assert {
        row.text.split()[0] for row in table.itertuples() if at.file[row.id].endswith("test/rows.csv")
    } == {"test"}
    assert {*at.file} == {*map(str, files.values())}


def test_a_file_that_has_changed_or_is_gone_tells_nothing(tmp_path):
    file = tmp_path / "mine.csv"
    TABLE.to_csv(file, index=False)
    table, report = prepared(tmp_path, {"path": str(file)})
    TABLE[1:].to_csv(file, index=False)
    assert origins(report, table.id) is None
    file.unlink()
    assert origins(report, table.id) is None
    assert origins({"row": {"name": "m", "files": {"train": {"url": "http://a/b.csv"}}}}, table.id) is None
    assert origins({}, table.id) is None


def test_an_image_is_found_by_its_path(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.png").touch()
    found = origins({"row": {"language": "image", "root": str(tmp_path)}}, pd.Series(["a/1.png", "a/2.png"]))
    assert found.file[0] == str(tmp_path / "a/1.png") and found.file.isna()[1] and found.line.isna().all()
