"""Tagging from prepared sentences to predictions, scores, tables and predicted entities."""

import json

import blocks
import deberta
import numpy as np
import pandas as pd
import pytest
import torch
import toy
from conftest import ROW
from seqeval.metrics import f1_score

from tailprompt import predict, score
from tailprompt.data import report
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan.points import Point
from tailprompt.report.tables.scores import scores
from tailprompt.tasks.tagging import tag_names
from tailprompt.train import train

NAMES = ["Ann", "Bob", "Eve", "Tom"]
TOWNS = ["Rome", "Lyon", "Bern"]
DATA = {"name": "toy", "title": "Toy", "language": "en", "loader": "tags"}
TOLD = {"input": "plain", "head": "predictor", "lr": 0.03, "batch": 8, "epochs": 2, "keep": True}


def sentences(n=40, *, repeats=5):
    """Made-up sentences, the longest of which need several windows of 16 tokens."""
    draw, rows = np.random.default_rng(0), []
    for i in range(n):
        pairs = [(str(draw.choice(NAMES)), "B-PER"), ("saw", "O"), (str(draw.choice(TOWNS)), "B-LOC")]
        row = (pairs + [(f"again{i}", "O")]) * int(draw.integers(1, repeats + 1))
        rows.append({"words": [word for word, _ in row], "tags": [tag for _, tag in row]})
    return rows


def trained(root, *, method="tagger", seed=1, row=ROW, **changes):
    """Train on the made-up sentences; returns the run's folder."""
    path = root / "data/toy.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True)
        (root / "toy.jsonl").write_text("\n".join(map(json.dumps, sentences())), "utf-8")
        table, types = data.load(DATA, {"all": root / "toy.jsonl"})
        data.write(table, types, path, sources={})
        about = report.describe(table, types, DATA, dataset="toy", task="tagging", sources={})
        write_json(path.with_suffix(".json"), about)
    given = {**toy.TRAINING, **TOLD, "tuner": "full", "max_length": 16, **changes}
    point = Point("glee", "mini", "toy", method, seed)
    settings = toy.completed(given, reads="text")
    train(root, point, toy.asked_of(settings, row), torch.device("cpu"), None)
    return root / "runs" / point.path


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root with runs of two methods and two seeds."""
    root = tmp_path_factory.mktemp("tagging")
    for seed in (1, 2):
        trained(root, seed=seed)
        trained(root, method="worse", seed=seed, epochs=1, lr=1e-4)
    return root


@pytest.fixture
def run(root):
    return root / "runs/glee/mini/toy/tagger/1"


def test_each_sentence_is_predicted_once_with_a_tag_for_each_word(root, run):
    made = pd.read_parquet(run / "predictions.parquet")
    table = pd.read_parquet(root / "data/toy.parquet").query("split != 'train'")
    assert sorted(made.id) == sorted(table.id) and list(made) == ["id", "split", "tags", "prediction"]
    both = made.merge(table, on=["id", "split"])
    assert all(map(np.array_equal, both.tags_x, both.tags_y))
    assert both.prediction.map(len).equals(both.words.map(len)) and both.words.map(len).max() > 14


def test_scores_are_seqevals_and_training_learns(root, run):
    about = json.loads((root / "data/toy.json").read_text("utf-8"))
    assert sorted(about["classes"]) == ["LOC", "PER"]
    names = tag_names(about["classes"])
    made = pd.read_parquet(run / "predictions.parquet").query("split == 'test'")
    gold, guess = ([[names[tag] for tag in tags] for tags in made[key]] for key in ("tags", "prediction"))
    written = score.scores_of(run, root / "data/toy.json").query("split == 'test'")
    ours = written.set_index(["metric", "group"]).value["f1", "all"]
    assert ours == pytest.approx(f1_score(gold, guess)) and ours > 0.5


def test_a_table_compares_taggers_by_resampled_sentences(root, monkeypatch):
    monkeypatch.setattr("tailprompt.report.bootstrap.DRAWS", 200)
    spec = blocks.block(
        "scores", metrics=["f1/all", "f1/tail"], winner="f1/all", seeds=[1, 2], methods=["tagger", "worse"],
        datasets=["toy"],
    )  # fmt: skip
    long, _, _ = scores(root, spec)
    line = long.set_index(["method", "metric"]).loc[("worse", "f1/all")]
    assert line.low < line.gain < 0 and line.gain < line.high


def test_predict_writes_entities_with_their_characters(run, tmp_path):
    file, out = tmp_path / "new.csv", tmp_path / "new.jsonl"
    text = "Ann saw  Rome again1 " * 6
    pd.DataFrame({"key": [7], "text": [text]}).to_csv(file, index=False)
    predict.predict_file(run, file, out, encoding="utf-8", device="cpu")
    (row,) = map(json.loads, out.read_text("utf-8").splitlines())
    assert row["key"] == "7" and len(row["tags"]) == 24 and row["entities"]
    for found in row["entities"]:
        assert text[found["start"] : found["end"]] == found["text"] and found["type"] in ("PER", "LOC")


def test_lists_of_words_are_tagged_as_they_are_and_csv_holds_json(run, tmp_path):
    file, out = tmp_path / "new.jsonl", tmp_path / "new.csv"
    file.write_text(json.dumps({"words": ["Ann", "saw", "Rome", "U.N.-like"]}) + "\n", "utf-8")
    predict.predict_file(run, file, out, text="words", encoding="utf-8", device="cpu")
    (row,) = pd.read_csv(out).to_dict("records")
    assert len(json.loads(row["tags"])) == 4 and isinstance(json.loads(row["entities"]), list)
    again = tmp_path / "both.jsonl"
    predict.predict_file(run, file, again, text="words", encoding="utf-8", device="cpu")
    assert json.loads(again.read_text("utf-8"))["tags"] == json.loads(row["tags"])


def test_a_frozen_body_is_probed(tmp_path):
    folder = trained(tmp_path, tuner="frozen", keep=False, epochs=1)
    assert json.loads((folder / "run.json").read_text("utf-8"))["data"]["task"] == "tagging"


def test_a_head_that_reads_one_vector_is_refused(tmp_path):
    with pytest.raises(BadInput, match="head: linear predicts a class of a text"):
        trained(tmp_path, head="linear")


@pytest.mark.parametrize("kind", ["one", "two"])
def test_a_deberta_with_a_prefix_learns_tags(tmp_path, kind):
    row = deberta.row(tmp_path / "backbone", kind)
    told = {"tuner": "prefix", "length": 3, "select": "f1"}
    folder = trained(tmp_path, row=row, **told)
    assert pd.read_csv(folder / "curve.csv")["f1"].notna().all()
