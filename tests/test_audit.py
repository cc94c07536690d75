"""The audit of runs: a CSV with names and reasons, from probabilities of several methods on held-out rows."""

import json

import made_up
import numpy as np
import pandas as pd
import pytest

from tailprompt import audit
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.report import doubts

WRONG = {"test-3": 4, "test-145": 0}  # labels of a rare class, whose true one is 0, and the other way round


def results(root, *, methods=("a", "b")):
    """Runs that are sure of the true labels; two labels of the data are wrong, and one text stands twice."""
    data = made_up.data(root)
    truth = made_up.labels()
    table = pd.read_parquet(data.with_suffix(".parquet"))
    table["text"] = [f"text {name}" for name in table.id]
    table.loc[table.id == "dev-1", "text"] = "Text test-120"
    for name, label in WRONG.items():
        table.loc[table.id == name, "label"] = label
    table.to_parquet(data.with_suffix(".parquet"), index=False)
    for method in methods:
        for seed in (1, 2):
            folder = made_up.run(root, method, seed)
            logits = 3 * np.eye(6)[np.tile(truth, 2)] + np.random.default_rng(seed).normal(
                size=(2 * len(truth), 6)
            )
            rows = table[["id", "split", "label"]].assign(prediction=logits.argmax(1), scores=list(logits))
            rows.to_parquet(folder / "predictions.parquet", index=False)
    return root / "runs"


def test_wrong_labels_come_first_with_their_reasons_the_rare_class_too(tmp_path):
    listed, out, about = audit.audit([results(tmp_path)], None, doubts.SHARE)
    assert (
        about.startswith("2 of 2 methods judged the 300 rows of dev and test of made.")
        and out == tmp_path / "audit/made.csv"
    )
    first = listed[listed.advice == "check"]
    assert {*WRONG} <= {*first.id}
    row = first.set_index("id").loc["test-3"]
    assert (row.label, row.suggested) == ("tea & co_1", "earn") and "2 of 2 methods say earn" in row.reasons
    assert pd.read_csv(out).columns.tolist() == audit.COLUMNS


def test_the_same_text_with_two_labels_is_listed_without_any_doubt_of_the_methods(tmp_path):
    listed, *_ = audit.audit([results(tmp_path)], tmp_path / "x.csv", doubts.SHARE)
    twice = listed[listed.reasons.str.contains("the same text also has label")]
    assert {*twice.id} == {"dev-1", "test-120"}


def test_runs_of_two_data_sets_are_refused(tmp_path):
    place = results(tmp_path)
    made_up.data(tmp_path, "other")
    made_up.run(tmp_path, "a", 1, dataset="other")
    with pytest.raises(BadInput, match="audit is of one data set"):
        audit.audit([place], None, doubts.SHARE)


def test_a_place_without_runs_is_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="no finished run"):
        audit.audit([tmp_path], None, doubts.SHARE)


def test_data_with_other_labels_than_classes_are_refused(tmp_path):
    place = results(tmp_path)
    file = tmp_path / "data/made.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"task": "tagging"}))
    with pytest.raises(BadInput, match="rows with one class each"):
        audit.audit([place], None, doubts.SHARE)


def test_a_method_that_has_learned_little_does_not_judge():
    labels = np.array([0, 1, 2, 3])
    good, poor = np.eye(4), np.eye(4)[[0, 2, 3, 1]]
    assert [*audit.able({"good": good, "poor": poor}, labels)] == ["good"]


@pytest.mark.parametrize("other", ["made@train=300", "made@train=300,dev=9"])
def test_of_cuts_of_a_data_set_the_one_with_most_training_rows_is_judged(tmp_path, other):
    place = results(tmp_path)
    made_up.data(tmp_path, other, rows={"train": 300, "dev": 150, "test": 150})
    made_up.run(tmp_path, "c", 1, dataset=other)
    listed, out, about = audit.audit([place], None, doubts.SHARE)
    assert out.name == "made.csv" and "2 of 2 methods" in about and {*WRONG} <= {*listed.id}


def test_the_list_says_what_was_judged_and_counts_in_whole_numbers(tmp_path):
    found = audit.audit([results(tmp_path)], None, doubts.SHARE)
    assert "Its 647 training rows are not judged" in audit.told(*found)
    written = pd.read_csv(found[1], dtype=str)
    numbers = written[["rank", "class_rows"]].stack().dropna()
    assert len(numbers) and numbers.str.fullmatch(r"\d+").all()


def test_rows_are_listed_with_their_file_and_line(tmp_path):
    place = results(tmp_path)
    table = pd.read_parquet(tmp_path / "data/made.parquet")
    rows = table.assign(label=[chr(97 + label) for label in table.label])
    rows[["id", "text", "label"]].to_csv(tmp_path / "mine.csv", index=False)
    report = tmp_path / "data/made.json"
    row = {"name": "made", "language": "en", "path": str(tmp_path / "mine.csv"), "columns": {"id": "id"}}
    about = {"row": row, "sources": {"mine.csv": sha256(tmp_path / "mine.csv")}}
    report.write_text(json.dumps(json.loads(report.read_text()) | about))
    listed, out, words = audit.audit([place], None, doubts.SHARE)
    lines = (tmp_path / "mine.csv").read_text().split("\n")
    assert len(listed) and {*listed.file} == {str(tmp_path / "mine.csv")}
    assert [lines[row.line - 1].split(",")[0] for row in listed.itertuples()] == [*listed.id]
    assert f"({tmp_path / 'mine.csv'}:{listed.line[0]})" in audit.told(listed, out, words)


def test_a_list_whose_file_is_gone_says_that_places_are_not_known(tmp_path):
    listed, out, about = audit.audit([results(tmp_path)], None, doubts.SHARE)
    assert listed.file.isna().all() and "Where rows stand is not known" in about
