"""The report that a bundle brought tells of the rows where row, files and classes are those of now."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tailprompt.files import sha256, write_json
from tailprompt.plan import bundled, standing

ROW = {"language": "en", "columns": {"text": "t", "label": "l"}, "title": "Own"}
TEXTS = {"a.csv": "t,l\n" + "one,x\ntwo,y\n" * 9, "b.csv": "t,l\n" + "six,x\nten,y\n" * 9}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Two files of one's own."""
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    return tmp_path


def scale(**row) -> dict:
    """A configuration with one data set."""
    return {"scale": "own", "datasets": {"own": ROW | row}, "data_dir": None}


def brought(config: dict, **about) -> dict:
    """The report of its data set as a bundle brings it, of the files that are here unless `about` differs."""
    row = bundled.now(config, "own")
    digests = {name: sha256(Path(name)) for name in TEXTS}
    report = {"row": row, "sources": digests, "classes": ["x", "y"], "rows_sha256": "theirs"} | about
    write_json("results/own/from_bundles/data/own.json", report)
    return report


def files(train: str = "a.csv", test: str = "b.csv", **more) -> dict:
    return {"files": {"train": {"path": train, **more}, "test": {"path": test, **more}}}


def test_rows_are_those_of_the_bundle_as_far_as_files_are_here_and_the_same(root):
    config = scale(**files())
    report = brought(config)
    assert standing.rows_to_be(config, "own") == {} and bundled.tells(config, "own", report)
    Path("b.csv").unlink()
    assert standing.rows_to_be(config, "own") == {}, "one that is not here is believed"
    Path("a.csv").write_text("t,l\nsix,x\n")
    assert standing.rows_to_be(config, "own") is None and not bundled.tells(config, "own", report)


@pytest.mark.parametrize("sources", [["a"], "a", 7])
def test_digests_in_another_form_are_those_of_other_files(root, sources):
    config = scale(**files())
    assert not bundled.tells(config, "own", brought(config, sources=sources))


def test_a_file_may_have_another_name_or_be_packed_and_not_another_place_in_the_row(root):
    report = brought(scale(**files()))
    Path("c.csv.gz").write_bytes(gzip.compress(TEXTS["a.csv"].encode()))
    assert bundled.tells(scale(**files("c.csv.gz")), "own", report)
    assert not bundled.tells(scale(**files("b.csv", "a.csv")), "own", report)


def test_the_digests_that_the_configuration_states_are_compared_without_the_files(root):
    told = {"files": {"all": {"url": "https://example.org/a.csv", "sha256": sha256(Path("a.csv"))}}}
    report = brought(scale(**told), sources={"a.csv": sha256(Path("a.csv"))})
    assert standing.rows_to_be(scale(**told), "own") == {}
    told["files"]["all"]["sha256"] = sha256(Path("b.csv"))
    assert standing.rows_to_be(scale(**told), "own") is None and not bundled.tells(
        scale(**told), "own", report
    )


def test_files_of_a_folder_of_public_data_are_compared_by_their_names(root):
    """Older reports have them in another order."""
    named = {"files": {key: {"name": name} for key, name in zip(("train", "test"), TEXTS, strict=True)}}
    config = scale(**named) | {"data_dir": "public"}
    brought(config, sources={name: sha256(Path(name)) for name in sorted(TEXTS, reverse=True)})
    for name, other, same in (("a.csv", "a.csv", True), ("b.csv", "a.csv", False)):
        Path("public/own").mkdir(parents=True, exist_ok=True)
        Path("public/own", name).write_text(TEXTS[other])
        assert (standing.rows_to_be(config, "own") == {}) == same


def test_a_download_that_is_here_is_compared(root):
    told = {"files": {"all": {"url": "https://example.org/a.csv"}}}
    brought(scale(**told), sources={"a.csv": sha256(Path("a.csv"))})
    raw = Path("results/raw/own/a.csv")
    raw.parent.mkdir(parents=True)
    for name, rows in (("a.csv", {}), ("b.csv", None)):
        raw.write_text(TEXTS[name])
        assert standing.rows_to_be(scale(**told), "own") == rows


@pytest.mark.parametrize("change, same", [({"title": "Other"}, True), ({"shares": {"dev": 0.3}}, False)])
def test_a_key_that_decides_on_no_row_changes_none(root, change, same):
    report = brought(scale(**files()))
    config = scale(**files(), **change)
    assert (standing.rows_to_be(config, "own") == {}) == same
    assert not bundled.tells(config, "own", report), "data are prepared, as tables may show it"


def test_a_verbalizer_with_the_classes_in_another_order_gives_other_rows(root):
    config = scale(**files(), verbalizer="words.csv")
    brought(config)
    for order, same in (("x,good\ny,bad", True), ("y,bad\nx,good", False)):
        Path("words.csv").write_text(f"label,words\n{order}\n")
        assert (standing.rows_to_be(config, "own") == {}) == same


def test_rows_that_are_read_and_equal_leave_the_report_in_place(root):
    """Which are read once in a process."""
    config = scale(**files())
    report = brought(config)
    Path("a.csv").write_text(f"\ufeff{TEXTS['a.csv']}", "utf-8")
    rows = standing.rows_to_be(config, "own")
    assert rows and not bundled.tells(config, "own", report)
    assert bundled.tells(config, "own", report | rows)


def test_joined_sets_are_those_of_their_parts(root, monkeypatch):
    monkeypatch.setattr(bundled, "rows_read", lambda *_: None)
    config = scale(path="a.csv")
    config["datasets"]["both"] = {"language": "en", "joins": ["own"], "title": "Both"}
    brought(config, sources={"a.csv": sha256(Path("a.csv"))})
    about = {"row": bundled.now(config, "both"), "sources": {"own.parquet": "of a Parquet file"}}
    write_json("results/own/from_bundles/data/both.json", about)
    assert standing.rows_to_be(config, "both") == {}
    Path("a.csv").write_text(TEXTS["b.csv"])
    assert standing.rows_to_be(config, "both") is None
