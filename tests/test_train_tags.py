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
from tailprompt.components.declare import settings_of
from tailprompt.components.training import Training
from tailprompt.data import new_rows, report
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.inputs.words import encode_sentences
from tailprompt.plan.points import Point
from tailprompt.report.tables.scores import scores
from tailprompt.tasks.tagging import TAGGING, tag_names
from tailprompt.tasks.task import Given
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


CONLL = "-DOCSTART- -X- O\n\nAnn NNP B-PER\nsaw VBD O\nRome NNP I-LOC\n\nTom NNP ?\n"


@pytest.mark.parametrize(
    "name, given", [("a.conll", {}), ("a.txt", {}), ("a", {}), ("a.conllx", {"text": "2"})]
)
def test_files_of_conll_are_tagged_without_their_labels(run, tmp_path, name, given):
    file, out = tmp_path / name, tmp_path / "new.jsonl"
    words = [["Ann", "saw", "Rome"], ["Tom"]] if not given else [["NNP", "VBD", "NNP"], ["NNP"]]
    file.write_text(CONLL, "utf-8")
    predict.predict_file(run, file, out, encoding="utf-8", device="cpu", **given)
    made = list(map(json.loads, out.read_text("utf-8").splitlines()))
    assert [row["words"] for row in made] == words
    plain = tmp_path / "plain.jsonl"
    plain.write_text("\n".join(json.dumps({"words": each}) for each in words), "utf-8")
    predict.predict_file(run, plain, tmp_path / "p.jsonl", text="words", encoding="utf-8", device="cpu")
    assert made == list(map(json.loads, (tmp_path / "p.jsonl").read_text("utf-8").splitlines()))


def read_as_token(file, text, column="text"):
    file.write_text(text, "utf-8")
    table, _ = new_rows.read(file, {"text": column}, encoding="utf-8", taken=(), options=0, unit="token")
    return table


def test_lines_of_texts_are_read_each_as_one(tmp_path):
    table = read_as_token(tmp_path / "a.txt", "Ann left Rome .\n\nBob stayed .\n")
    assert list(table["text"]) == ["Ann left Rome .", "", "Bob stayed ."]


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("a.iob", "Ann left Rome .\nBob stayed .\n", "1 line has not 4 columns as the first .lines 2."),
        ("a.txt", "Ann B-PER\nleft\n", "1 line has not 2 columns as the first .lines 2."),
        ("a.txt", "Ann left\nBob stayed\n", "2 lines end in no tag .lines 1, 2."),
        ("a", "Ann NNP\n\nleft VBD\n", "2 lines end in no tag .lines 1, 3."),
    ],
)
def test_lines_that_may_be_texts_or_columns_are_refused_unless_the_column_is_numbered(
    tmp_path, name, text, says
):
    with pytest.raises(BadInput, match=f"{says}.*--text is the number .* with `text` above"):
        read_as_token(tmp_path / name, text)
    assert [word for words in read_as_token(tmp_path / name, text, "1")["words"] for word in words][
        0
    ] == "Ann"


def test_a_text_file_whose_first_line_names_the_text_is_a_table(run, tmp_path):
    (tmp_path / "a.txt").write_text("text\tkey\nAnn saw Rome\t1\n", "utf-8")
    predict.predict_file(run, tmp_path / "a.txt", tmp_path / "o.jsonl", encoding="utf-8", device="cpu")
    (row,) = map(json.loads, (tmp_path / "o.jsonl").read_text("utf-8").splitlines())
    assert row["key"] == "1" and len(row["tags"]) == 3


def test_lines_of_roles_are_read_by_a_run_on_roles(roles, tmp_path):
    _, folder = roles
    (tmp_path / "a.txt").write_text("1 Ann saw Rome\n1 Tom saw Bern ||| B-A0 B-V ?\n", "utf-8")
    predict.predict_file(folder, tmp_path / "a.txt", tmp_path / "o.jsonl", encoding="utf-8", device="cpu")
    made = list(map(json.loads, (tmp_path / "o.jsonl").read_text("utf-8").splitlines()))
    assert [(row["words"], row["predicate"], row["pair"], len(row["tags"])) for row in made] == [
        (["Ann", "saw", "Rome"], 1, "saw", 3),
        (["Tom", "saw", "Bern"], 1, "saw", 3),
    ]
    (tmp_path / "a.txt").write_text("Ann saw Rome\n\n3 Ann saw Rome\n", "utf-8")
    with pytest.raises(BadInput, match="2 lines are not `verb words`.*lines 1, 3"):
        predict.predict_file(folder, tmp_path / "a.txt", tmp_path / "o.jsonl", encoding="utf-8", device="cpu")


BAD = {
    "no such column": ("Ann\nsaw Rome\n", {"text": "2"}, "1 line has no column 2 .lines 1."),
    "a named column": (
        "Ann O\n",
        {"text": "form"},
        "--text is the number of the column with words, not form",
    ),
    "nothing": ("\n", {}, "a.conll has no sentences"),
    "not UTF-8": (b"\xff O\n", {}, "not UTF-8; .* or state its encoding with --encoding"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_file_of_conll_is_one_sentence(run, tmp_path, name):
    text, given, says = BAD[name]
    (tmp_path / "a.conll").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(BadInput, match=says):
        predict.predict_file(
            run, tmp_path / "a.conll", tmp_path / "o.csv", encoding="utf-8", device="cpu", **given
        )


def answered(run, tmp_path, words):
    """What is written for three sentences, of which the second has these words."""
    rows = [{"words": ["Ann"]}, {"words": words}, {"words": ["Tom"]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    predict.predict_file(
        run, tmp_path / "a.jsonl", tmp_path / "o.csv", text="words", encoding="utf-8", device="cpu"
    )
    return pd.read_csv(tmp_path / "o.csv", keep_default_na=False)


@pytest.mark.parametrize("word", ["", " ", "\u200b"])
def test_a_row_with_an_empty_word_is_told_by_its_place_and_has_no_answer(run, tmp_path, capsys, word):
    made = answered(run, tmp_path, ["Ann", word])
    assert (made.tags == "").tolist() == [False, True, False]
    assert "1 row has an empty word (a.jsonl:2); leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], [" "]], ids=["none", "a blank"])
def test_a_row_without_words_stays_in_its_place_without_an_answer(run, tmp_path, capsys, words):
    made = answered(run, tmp_path, words)
    assert (made.tags == "").tolist() == [False, True, False]
    assert "1 row has an empty text, so there is no answer (a.jsonl:2)" in capsys.readouterr().err


def test_a_sentence_without_words_shifts_no_other(tokenizer):
    rows = pd.DataFrame({"id": [*"abcd"], "words": [[], ["Ann", "saw"], [], ["Rome"]]})
    made = encode_sentences(rows, tokenizer, max_length=16, positions=512)
    logits = np.zeros((*made.labels.shape, 3))
    found = TAGGING.predicted(logits, Given(made.labels.numpy(), made.names))
    assert list(map(len, found["prediction"])) == [0, 2, 0, 1]


def test_lists_of_words_are_tagged_as_they_are_and_csv_holds_json(run, tmp_path):
    file, out = tmp_path / "new.jsonl", tmp_path / "new.csv"
    file.write_text(json.dumps({"words": ["Ann", "saw", "Rome", "U.N.-like"]}) + "\n", "utf-8")
    predict.predict_file(run, file, out, text="words", encoding="utf-8", device="cpu")
    (row,) = pd.read_csv(out).to_dict("records")
    assert len(json.loads(row["tags"])) == 4 and isinstance(json.loads(row["entities"]), list)
    again = tmp_path / "both.jsonl"
    predict.predict_file(run, file, again, text="words", encoding="utf-8", device="cpu")
    assert json.loads(again.read_text("utf-8"))["tags"] == json.loads(row["tags"])


ROLES = {"name": "toy", "title": "Toy", "language": "en", "loader": "roles", "absent_classes": True}


def role_lines(n, *, seed, more=()):
    """Made-up lines of roles: a verb, who and where, and at times a role of `more`."""
    draw, lines = np.random.default_rng(seed), []
    for i in range(n):
        words, tags = [str(draw.choice(NAMES)), "saw", str(draw.choice(TOWNS))], ["B-A0", "B-V", "B-A1"]
        if more and i % 2:
            words, tags = [*words, "twice"], [*tags, f"B-{more[i // 2 % len(more)]}"]
        lines.append(f"1 {' '.join(words)} ||| {' '.join(tags)}")
    return "\n".join(lines) + "\n"


def of_roles(root, dataset="toy", *, learned=(), **files):
    """Prepare roles; a data set with the classes of another tests the runs of that."""
    paths = {split: root / f"{dataset}-{split}.txt" for split in files}
    for split, text in files.items():
        paths[split].write_text(text, "utf-8")
    row = {**ROLES, "name": dataset, **({"trained_on": "toy"} if learned else {})}
    table, types = data.load(row, paths, learned=learned)
    (root / "data").mkdir(exist_ok=True)
    data.write(table, types, root / f"data/{dataset}.parquet", sources={})
    about = report.describe(table, types, row, dataset=dataset, task="tagging", sources={})
    write_json(root / f"data/{dataset}.json", about)
    return types


@pytest.fixture(scope="module")
def roles(tmp_path_factory):
    """A root with a run on roles of which some are rare, and the run's folder."""
    root = tmp_path_factory.mktemp("roles")
    parts = {"train": role_lines(24, seed=1, more=["A2"]), "dev": role_lines(8, seed=2, more=["A4"])}
    of_roles(root, **parts, test=role_lines(8, seed=3, more=["A4"]))
    return root, trained(root, epochs=1)


def test_roles_are_selected_without_the_verb_that_the_input_names_and_by_name_with_it(roles):
    root, folder = roles
    told, curve = json.loads((folder / "run.json").read_text("utf-8")), pd.read_csv(folder / "curve.csv")
    written = score.scores_of(folder, root / "data/toy.json").query("split == 'dev' and group == 'all'")
    written = written.set_index("metric").value
    assert told["dev"] == {name: pytest.approx(written[name]) for name in ("f1", "f1_as_released")}
    assert {"f1", "f1_as_released"} <= {*curve.columns} and written["f1"] < written["f1_as_released"]
    trained(root, method="released", epochs=1, select="f1_as_released")


def test_a_data_set_of_roles_tests_the_runs_of_another_one_with_roles_of_its_own(roles):
    root, folder = roles
    classes = json.loads((root / "data/toy.json").read_text("utf-8"))["classes"]
    assert {*classes} == {"A0", "A1", "V", "A2", "A4"}
    parts = {
        "dev": (root / "toy-dev.txt").read_text("utf-8"),
        "test": role_lines(6, seed=4, more=["A0", "A7"]),
    }
    assert of_roles(root, "brown", learned=classes, **parts) == [*classes, "A7"]
    settings = {**json.loads((folder / "run.json").read_text("utf-8"))["settings"], "keep": True}
    training = {each.name for each in settings_of(Training)}
    asked = {key: value for key, value in settings.items() if key not in training}
    asked = toy.completed({**asked, "start": {"dataset": "toy"}}, reads="text", trains=False)
    point = Point("glee", "mini", "brown", "tagger", 1)
    train(root, point, toy.asked_of(asked, ROW), torch.device("cpu"), folder)
    made = json.loads((root / "runs" / point.path / "run.json").read_text("utf-8"))
    first = json.loads((folder / "run.json").read_text("utf-8"))
    assert (made["steps"], made["dev"], made["selection_split"]) == (0, first["dev"], "dev")
    found = score.scores_of(root / "runs" / point.path, root / "data/brown.json")
    found = found.set_index(["split", "metric", "group"]).value
    assert found["test", "recall", "class:A7"] == 0 and "tagging" == made["data"]["task"]


def test_a_test_set_whose_classes_are_numbered_otherwise_is_refused(roles):
    root, folder = roles
    of_roles(root, "other", learned=["A1", "A0", "V", "A2", "A4"], test=role_lines(3, seed=5))
    told = toy.completed(
        {**TOLD, "tuner": "full", "max_length": 16, "select": "f1", "start": {"dataset": "toy"}},
        reads="text",
        trains=False,
    )
    with pytest.raises(BadInput, match="other.parquet numbers its classes otherwise"):
        train(
            root,
            Point("glee", "mini", "other", "tagger", 1),
            toy.asked_of(told, ROW),
            torch.device("cpu"),
            folder,
        )


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
