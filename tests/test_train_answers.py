"""Runs on questions with passages, on options as sequences of their own and on grouped rows; predict."""

from __future__ import annotations

import json

import deberta
import numpy as np
import pandas as pd
import pytest
import toy

from tailprompt import predict
from tailprompt.data import report
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.score import scores_of
from tailprompt.tasks.registry import told
from tailprompt.tasks.texts import overlap

PASSAGES = {"train": 10, "dev": 5, "test": 6}


def questions():
    """Questions for a word in a passage that is longer than a window, and some that have no answer."""
    rows = []
    for split, number in PASSAGES.items():
        for n in range(number):
            place, kind = ["the river", "a hill", "the old town"][n % 3], n % 5 == 4
            before = "many people came there and went away again " * (n % 4)
            passage = f"{before}they live near {place} now in {split} {n}"
            start = passage.index(place)
            answers, starts = ([], []) if kind else ([place], [start])
            row = {"id": f"{split}-{n}", "split": split, "label": int(kind), "text": "where do they live"}
            rows.append(row | {"pair": passage, "answers": answers, "starts": starts})
    return pd.DataFrame(rows)


def options():
    """Texts with two or three continuations, of which the longest is right."""
    rows = []
    for split, number in PASSAGES.items():
        for n in range(number):
            choices = ["went away", "came back to the old town", "sat"][: 2 + n % 2]
            row = {"id": f"{split}-{n}", "split": split, "label": 1, "text": f"number {n} was here so"}
            rows.append(row | {"choices": choices})
    return pd.DataFrame(rows)


def grouped():
    """Three options of each question as rows, of which one or two are right, with the texts to pick from."""
    rows = []
    for split, number in PASSAGES.items():
        for n in range(number):
            for option, label in (("river", 1), ("hill", n % 2), ("sea", 0)):
                row = {"id": f"{split}-{n}-{option}", "split": split, "label": label, "group": f"{split}-{n}"}
                right = ["river", "hill"] if n % 2 else ["river"]
                rows.append(
                    row
                    | {"text": f"passage {n}", "pair": f"who {option}", "option": option, "answers": right}
                )
    return pd.DataFrame(rows)


def trained(root, table, classes, **changes):
    """The folder of a run on a table, and the report of its data."""
    (root / "data").mkdir()
    path = root / "data/toy.parquet"
    data.write(table, classes, path, sources={})
    row = {"title": "Toy", "language": "en", "threshold": None}
    about = report.describe(table, classes, row, dataset="toy", task=told(table), sources={})
    write_json(path.with_suffix(".json"), about)
    return answered(root, **changes), path.with_suffix(".json")


def answered(root, **changes):
    """The folder of one more run on the data there."""
    kept = {"keep": True} if changes.get("tuner", "full") in ("full", "frozen") else {}
    return toy.run(root, "", **kept, **changes)


def of(found, metric, split="test", group="all"):
    return found.set_index(["split", "metric", "group"]).value[split, metric, group]


WINDOWS = {"input": "windows", "head": "predictor", "stride": 6, "unanswerable": True, "select": "f1"}


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    root = tmp_path_factory.mktemp("passages")
    return trained(root, questions(), ["answerable", "unanswerable"], **WINDOWS)


def test_a_run_on_passages_writes_an_answer_a_question_and_is_scored(answering):
    folder, about = answering
    written, table = pd.read_parquet(folder / "predictions.parquet"), questions()
    assert written["id"].tolist() == table[table.split != "train"]["id"].tolist()
    pairs = table.set_index("id").pair
    for row in written.itertuples():
        assert row.prediction == (pairs[row.id][row.start : row.end] if row.start >= 0 else "")
    found = scores_of(folder, about)
    assert 0 <= of(found, "exact") <= of(found, "f1") <= 1
    assert {"class:answerable", "class:unanswerable"} <= {*found[found.metric == "f1"].group}


def test_dev_chooses_the_threshold_of_no_answer_and_test_and_predict_take_it(answering):
    folder, report_file = answering
    about, written = (
        json.loads((folder / "run.json").read_text()),
        pd.read_parquet(folder / "predictions.parquet"),
    )
    assert about["settings"]["null_threshold"] is None
    assert ((written["none"] > about["threshold"]) == (written["start"] < 0)).all()
    dev = written[written.split == "dev"]
    assert about["threshold"] in [*dev["none"]] or about["threshold"] < dev["none"].min()
    assert about["dev"]["f1"] == pytest.approx(np.mean(list(map(overlap, dev.prediction, dev.answers))))
    given = answered(report_file.parents[1], **WINDOWS, null_threshold=0.5, seed=2)
    assert json.loads((given / "run.json").read_text())["threshold"] == 0.5
    written = pd.read_parquet(given / "predictions.parquet")
    assert ((written["none"] > 0.5) == (written["start"] < 0)).all()


@pytest.mark.parametrize("same", [False, True], ids=["dev", "test"])
def test_the_split_that_selects_is_test_where_dev_has_its_rows(tmp_path, same):
    table = questions()
    if same:
        test = table[table.split == "test"]
        dev = test.assign(split="dev", id=[f"dev-{n}" for n in range(len(test))])
        table = pd.concat([table[table.split == "train"], dev, test], ignore_index=True)
    folder, _ = trained(tmp_path, table, ["answerable", "unanswerable"], **WINDOWS)
    told = json.loads((folder / "run.json").read_text())
    assert told["selection_split"] == ("test" if same else "dev")


def test_predict_writes_the_answers_that_the_run_gave_and_where_they_stand(answering, tmp_path):
    folder, _ = answering
    rows = questions().query("split == 'test'")[["id", "text", "pair"]]
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    predict.predict_file(
        folder, tmp_path / "rows.jsonl", tmp_path / "out.csv", encoding="utf-8", device="cpu"
    )
    made = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    kept = pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    assert made["answer"].tolist() == kept["prediction"].tolist()
    assert (
        made["answer_start"].tolist() == kept["start"].tolist()
        and made["answer_end"].tolist() == kept["end"].tolist()
    )
    assert made["id"].tolist() == rows["id"].tolist()


def test_files_of_squad_are_answered_without_their_answers(answering, tmp_path):
    folder, _ = answering
    rows = questions().query("split == 'test'")
    asked = [
        {"context": row.pair, "qas": [{"id": row.id, "question": row.text, "answers": "not read"}]}
        for row in rows.itertuples()
    ]
    del asked[0]["qas"][0]["answers"]
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": asked}]}))
    predict.predict_file(folder, tmp_path / "a.json", tmp_path / "out.jsonl", encoding="utf-8", device="cpu")
    made = pd.read_json(tmp_path / "out.jsonl", lines=True)
    kept = pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    assert made["answer"].tolist() == kept["prediction"].tolist()
    assert made["id"].tolist() == rows["id"].tolist() and made["context"].tolist() == rows["pair"].tolist()
    with pytest.raises(BadInput, match="a.json has no named columns; leave out --pair"):
        predict.predict_file(
            folder, tmp_path / "a.json", tmp_path / "o.csv", pair="context", encoding="utf-8", device="cpu"
        )
    (tmp_path / "a.json").write_text('{"version": 2}')
    with pytest.raises(BadInput, match="a.json is not in the form of SQuAD"):
        predict.predict_file(folder, tmp_path / "a.json", tmp_path / "o.csv", encoding="utf-8", device="cpu")


@pytest.mark.parametrize("tuner", ["full", "frozen"])
def test_a_run_scores_each_option_by_itself_and_never_one_that_a_row_lacks(tmp_path, tuner):
    folder, about = trained(tmp_path, options(), list("ABC"), input="options", select="accuracy", tuner=tuner)
    written = pd.read_parquet(folder / "predictions.parquet")
    scores = pd.DataFrame(written["scores"].tolist()).astype(float)
    lacks = options().query("split != 'train'").choices.map(len).to_numpy() == 2
    assert (scores[2][lacks] < -9999).all() and (scores[2][~lacks] > -99).all()
    assert 0 <= of(scores_of(folder, about), "accuracy") <= 1
    rows = options().query("split == 'test'")[["text", "choices"]]
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    predict.predict_file(
        folder, tmp_path / "rows.jsonl", tmp_path / "out.csv", encoding="utf-8", device="cpu"
    )
    made = pd.read_csv(tmp_path / "out.csv")
    test = written[written.split == "test"]
    assert made["prediction"].tolist() == ["ABC"[label] for label in test["prediction"]]


@pytest.mark.parametrize("picked", [False, True], ids=["grouped", "picked"])
def test_a_run_on_grouped_rows_is_scored_by_question(tmp_path, picked):
    table = grouped() if picked else grouped().drop(columns=["option", "answers"])
    tuner = "frozen" if picked else "full"
    folder, about = trained(tmp_path, table, ["False", "True"], select="f1", tuner=tuner)
    found = scores_of(folder, about)
    metrics = {"accuracy", "exact", "f1"}
    assert {*found.metric} == metrics and all(0 <= of(found, name) <= 1 for name in metrics)
    curve = pd.read_csv(folder / "curve.csv")
    assert {"accuracy", "f1"} <= {*curve.columns}
    kept = [of(found, name, "dev") for name in ("accuracy", "f1")]
    assert any(kept == pytest.approx([row.accuracy, row.f1]) for row in curve.itertuples())


@pytest.mark.parametrize("tuner", ["prefix", "lora", "soft_prompt"])
@pytest.mark.parametrize("asks", ["options", "windows"])
def test_other_tuners_learn_from_passages_and_options(tmp_path, tuner, asks):
    made = (questions(), ["answerable", "unanswerable"]) if asks == "windows" else (options(), list("ABC"))
    told = {**WINDOWS, "stride": 4} if asks == "windows" else {"input": "options", "select": "accuracy"}
    length = {} if tuner == "lora" else {"length": 3}
    folder, about = trained(tmp_path, *made, **{**told, **length}, tuner=tuner)
    assert 0 <= of(scores_of(folder, about), "exact" if asks == "windows" else "accuracy") <= 1


@pytest.mark.parametrize("kind", ["one", "two"])
@pytest.mark.parametrize("asks", ["options", "windows"])
def test_a_deberta_learns_from_passages_and_options(tmp_path, kind, asks):
    made = (questions(), ["answerable", "unanswerable"]) if asks == "windows" else (options(), list("ABC"))
    told = {**WINDOWS, "stride": 4} if asks == "windows" else {"input": "options", "select": "accuracy"}
    row = deberta.row(tmp_path / "backbone", kind)
    folder, about = trained(tmp_path, *made, **told, length=3, tuner="prefix", row=row)
    assert 0 <= of(scores_of(folder, about), "exact" if asks == "windows" else "accuracy") <= 1
