"""Joined sets: rows that say which set they are of, types of their own, and no row of another's test."""

import json

import pandas as pd
import pytest

from tailprompt import prepare
from tailprompt.data import joined
from tailprompt.data import table as data
from tailprompt.data.prepared import Prepared
from tailprompt.tasks.registry import told
from tailprompt.tasks.spans import SPANS
from tailprompt.tasks.tagging import TAGGING, tag_names


def sentences(**splits):
    """A table of sentences, given by split as lists of words with tag ids."""
    rows = [
        {"id": f"{split}-{n}", "split": split, "words": words.split(), "tags": tags}
        for split, each in splits.items()
        for n, (words, tags) in enumerate(each)
    ]
    return pd.DataFrame(rows)


def questions(**splits):
    """A table of questions on passages, given by split."""
    rows = [
        {"id": f"{split}-{n}", "split": split, "label": 0, "text": "Who?", "pair": passage}
        for split, passages in splits.items()
        for n, passage in enumerate(passages)
    ]
    return pd.DataFrame(rows).assign(answers=[["Ann"]] * len(rows), starts=[[0]] * len(rows))


ONE = sentences(
    train=[("Ann left", [1, 0]), ("in Rome", [0, 3])], dev=[("Bob saw", [1, 0])], test=[("x", [0])]
)
TWO = sentences(
    train=[("Bob saw", [0, 0]), ("the UN", [0, 1])], dev=[("the UN", [0, 1])], test=[("Ann sat", [0, 0])]
)
PARTS = {"one": (ONE, ["PER", "LOC"]), "two": (TWO, ["ORG"])}


def test_each_row_names_its_set_and_types_stay_those_of_their_set():
    table, classes = joined.joined(PARTS)
    assert classes == ["one/PER", "one/LOC", "two/ORG"] and list(table["set"].unique()) == ["one", "two"]
    named = [[tag_names(classes)[tag] for tag in tags] for tags in table.query("set == 'two'")["tags"]]
    assert named == [["O", "B-two/ORG"], ["O", "B-two/ORG"], ["O", "O"]]
    assert table["id"].is_unique and table["id"].iloc[0] == "one/train-0"


def test_a_training_row_that_dev_or_test_of_another_set_has_is_left_out_and_no_other():
    table, _ = joined.joined(PARTS)
    trained = table.query("split == 'train'")["id"]
    assert list(trained) == ["one/train-0", "one/train-1", "two/train-1"]  # its own dev has that row, too
    assert (table["split"] != "train").sum() == 4


def test_a_sentence_is_known_whatever_its_words_are_cut_into():
    other = sentences(
        train=[("week - long talks", [0] * 4), ("Eve", [1])], dev=[("y", [1])], test=[("z", [0])]
    )
    mine = sentences(train=[("Bob", [1])], dev=[("week-long talks", [0, 0])], test=[("x", [0])])
    table, _ = joined.joined({"one": (mine, ["PER"]), "two": (other, ["PER"])})
    assert list(table.query("split == 'train'")["id"]) == ["one/train-0", "two/train-1"]


def test_questions_are_left_out_by_their_passage_and_keep_their_classes():
    parts = {
        "old": (questions(train=["Ann  left.", "Ann is here."], dev=["a"], test=["b"]), ["answerable"]),
        "new": (questions(train=["Ann sat."], dev=["c"], test=["Ann left."]), ["answerable", "unanswerable"]),
    }
    table, classes = joined.joined(parts)
    assert classes == ["answerable", "unanswerable"] and told(table) == "spans"
    assert list(table.query("split == 'train'")["pair"]) == ["Ann is here.", "Ann sat."]


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_outputs_of_a_set_are_none_and_its_own(name):
    _, classes = joined.joined(PARTS)
    outputs = [tag_names(classes)[tag] for tag in TAGGING.outputs_of(classes, name)]
    assert outputs == ["O", *(f"{mark}-{each}" for each in classes if each.startswith(name) for mark in "BI")]
    assert SPANS.outputs_of(["answerable"], name) == [0, 1]


def test_prepare_joins_prepared_files_and_tells_what_it_left_out(tmp_path, monkeypatch, capsys):
    paths = [tmp_path / f"{name}.parquet" for name in ("two", "one")]  # the order of the row, not of names
    for path in paths:
        data.write(*PARTS[path.stem], path, sources={})
    row = {"name": "both", "title": "Both", "language": "en", "joins": ["two", "one"]}
    told_so = ["--dataset", json.dumps(row), "--raw", str(tmp_path), "--out", str(tmp_path / "both.parquet")]
    monkeypatch.setattr("sys.argv", ["prepare", *told_so, "--data-dir", "null", "--parts", *map(str, paths)])
    prepare.main()
    assert "that dev or test of another set has: two 1, one 0" in capsys.readouterr().out
    about = json.loads((tmp_path / "both.json").read_text("utf-8"))
    assert about["task"] == "tagging" and about["rows"] == {"train": 3, "dev": 2, "test": 2}
    table, classes = data.read(tmp_path / "both.parquet")
    made = Prepared(tmp_path / "both.parquet", table, classes, {}, {})
    assert made.sets == ["two", "one"] and [len(part) for part in made.parts.values()] == [3, 2, 2]
    assert list(made.parts["test"]["set"].cat.codes) == [0, 1]
