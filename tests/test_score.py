"""Scoring runs: whole splits only, and all runs in one table."""

import shutil

import blocks
import made_up
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import f1_score

from tailprompt import score
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json
from tailprompt.report import records, trained
from tailprompt.report.answers import answers
from tailprompt.report.figures.features import vectors

RUN = "glee/mini/made/prompt/1"


def scored(root, method="prompt", seed=1):
    folder = made_up.run(root, method, seed)
    score.score_run(folder, made_up.data(root))
    return folder


def test_a_run_is_scored_on_dev_and_test_with_groups_and_classes(tmp_path):
    folder = scored(tmp_path)
    table = pd.read_parquet(folder / "scores.parquet")
    assert list(table.columns) == ["split", "metric", "group", "value"]
    assert set(table.split) == {"dev", "test"}
    assert {"all", "head", "tail", "many", "medium", "few", "class:电商"} <= set(table.group)
    test = pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    ours = table.query("split == 'test' and metric == 'f1' and group == 'all'").value.item()
    assert ours == pytest.approx(f1_score(test.label, test.prediction, average="macro"))


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda table: table.iloc[:-1], "149 test predictions for the 150 test rows"),
        (
            lambda table: table.assign(id=table.id.replace("test-3", "test-4")),
            "not in the data, or there twice",
        ),
        (lambda table: table.assign(id=table.id.replace("test-3", "other")), "not in the data"),
        (
            lambda table: table.assign(label=table.label.where(table.id != "dev-0", 5)),
            "label of dev id 'dev-0'",
        ),
    ],
)
def test_predictions_that_are_not_the_split_row_for_row_are_refused(tmp_path, damage, says):
    folder = made_up.run(tmp_path, "prompt", 1)
    path = folder / "predictions.parquet"
    damage(pd.read_parquet(path)).to_parquet(path, index=False)
    data, spec = made_up.data(tmp_path), blocks.block("scores", methods=["prompt"], seeds=[1])
    with pytest.raises(BadInput, match=says):
        score.score_run(folder, data)
    assert not (folder / "scores.parquet").exists()
    for read in (lambda: records.taken(tmp_path, spec, ["f1/all"]), lambda: score.collect(tmp_path, [RUN])):
        with pytest.raises(BadInput, match=says):
            read()


def test_a_table_computes_the_scores_that_a_run_is_given(tmp_path):
    names = ["accuracy/all", "f1/all", "f1/tail", "recall/class:电商"]
    written = pd.read_parquet(scored(tmp_path) / "scores.parquet")
    written = written.assign(score=written.metric + "/" + written.group).set_index(["split", "score"]).value
    table = records.scores(tmp_path, one(tmp_path / "runs/glee/mini/made/prompt/1"), names)
    assert len(table) == 2 * len(names)
    assert all(written[row.split, row.score] == row.value for row in table.itertuples())


def test_results_that_were_copied_without_their_data_are_scored(tmp_path):
    folder = scored(tmp_path)
    expected = records.scores(tmp_path, one(folder), ["f1/all"])
    (tmp_path / "data/made.parquet").unlink()
    pd.testing.assert_frame_equal(records.scores(tmp_path, one(folder), ["f1/all"]), expected)


def test_order_of_predictions_does_not_matter(tmp_path):
    first = pd.read_parquet(scored(tmp_path) / "scores.parquet")
    path = tmp_path / "runs/glee/mini/made/prompt/1/predictions.parquet"
    pd.read_parquet(path).sample(frac=1, random_state=0).to_parquet(path, index=False)
    score.score_run(path.parent, tmp_path / "data/made.json")
    pd.testing.assert_frame_equal(first, pd.read_parquet(path.parent / "scores.parquet"))


def test_what_is_kept_of_data_is_neither_that_of_another_run_nor_of_a_file_that_was_rewritten(tmp_path):
    data, names = made_up.data(tmp_path).with_suffix(".parquet"), ["f1/all"]
    folders = [made_up.run(tmp_path, "prompt", seed) for seed in (1, 2)]
    first, second = ([row["value"] for row in values(tmp_path, folder, names)] for folder in folders)
    assert first != second
    for path in (data, *(folder / "predictions.parquet" for folder in folders)):
        table = pd.read_parquet(path)
        table.assign(label=table["label"].where(table.index % 3 > 0, 5)).to_parquet(path, index=False)
        if path == data:
            with pytest.raises(BadInput, match="differs from the data's"):
                values(tmp_path, folders[0], names)
    changed, other = ([row["value"] for row in values(tmp_path, folder, names)] for folder in folders)
    assert changed != other and not {*changed, *other} & {*first, *second}


def values(root, folder, names):
    return records.scored(folder, read_json(root / "data/made.json"), names)


@pytest.mark.parametrize("kind", [pa.string(), pa.bool_(), pa.timestamp("us")], ids=str)
def test_labels_of_another_kind_are_others_though_they_could_be_cast(tmp_path, kind):
    data = made_up.data(tmp_path).with_suffix(".parquet")
    folder = made_up.run(tmp_path, "prompt", 1)
    table = pa.Table.from_pandas(pd.read_parquet(folder / "predictions.parquet"), preserve_index=False)
    table = table.set_column(2, "label", table["label"].cast(kind))
    parquet.write_table(table, folder / "predictions.parquet")
    with pytest.raises(BadInput, match="the label of dev id 'dev-.* differs from the data's"):
        answers(folder, data, read_json(data.with_suffix(".json")))


def test_labels_keep_the_type_in_which_predictions_have_them(tmp_path):
    rows = pd.DataFrame({"id": ["b", "a", "c"], "split": ["test", "test", "dev"], "tags": [[1, 0], [0], [3]]})
    rows.to_parquet(tmp_path / "data.parquet")
    told = rows.iloc[[2, 0, 1]].assign(prediction=rows["tags"])  # dev first, as training writes them
    small = pa.schema({name: pa.large_string() for name in ("id", "split")})
    for name in ("tags", "prediction"):
        small = small.append(pa.field(name, pa.list_(pa.int16())))
    told.to_parquet(tmp_path / "predictions.parquet", index=False, schema=small)
    found = answers(tmp_path, tmp_path / "data.parquet", {"classes": ["X", "Y"], "task": "tagging"})
    assert found["test"]["id"].tolist() == ["b", "a"]
    assert [each.tolist() for each in found["test"]["tags"]] == [[1, 0], [0]]
    assert {each.dtype for part in found.values() for each in part["tags"]} == {np.dtype("int16")}


def test_collecting_gives_every_run_its_coordinates(tmp_path):
    made_up.data(tmp_path)
    for method, seed in (("prompt", 1), ("prompt", 2), ("cls-tanh@lr=0.001", 1)):
        made_up.run(tmp_path, method, seed)
    runs = [f"glee/mini/made/{run}" for run in ("cls-tanh@lr=0.001/1", "prompt/1", "prompt/2")]
    table = score.collect(tmp_path, runs)
    runs = table[["protocol", "backbone", "dataset", "method", "seed"]].drop_duplicates()
    assert runs.values.tolist() == [
        ["glee", "mini", "made", "cls-tanh@lr=0.001", 1],
        ["glee", "mini", "made", "prompt", 1],
        ["glee", "mini", "made", "prompt", 2],
    ]
    assert set(table.selection_split) == {"dev"}
    assert set(table.trainable) == {7}


@pytest.mark.parametrize("damaged", [False, True])
def test_collecting_takes_listed_runs_and_refuses_one_that_is_damaged_or_not_what_is_asked(tmp_path, damaged):
    made_up.data(tmp_path)
    made_up.run(tmp_path, "prompt", 1)
    run = made_up.run(tmp_path, "prompt", 2, **({} if damaged else {"data": {"sha256": "of the old"}}))
    if damaged:
        record = read_json(run / "run.json")
        write_json(run / "run.json", record | {"files": {"predictions.parquet": "of the undamaged"}})
    assert set(score.collect(tmp_path, [RUN]).seed) == {1}
    says = r"predictions\.parquet is not what its run wrote" if damaged else "prompt/2 was trained on data"
    with pytest.raises(BadInput, match=says):
        score.collect(tmp_path, ["glee/mini/made/prompt/2"])


@pytest.mark.parametrize("text, says", [("[]", "must be a JSON object"), ("{", "is not JSON")])
def test_a_damaged_run_is_named(tmp_path, text, says):
    folder = made_up.run(tmp_path, "prompt", 1)
    (folder / "run.json").write_text(text)
    with pytest.raises(BadInput, match=rf"run\.json {says}"):
        score.score_run(folder, made_up.data(tmp_path))


def test_collecting_nothing_says_so(tmp_path):
    with pytest.raises(BadInput, match="no run is listed to score"):
        score.collect(tmp_path, [])


def test_a_run_of_other_data_is_refused_with_the_way_out(tmp_path):
    data = made_up.data(tmp_path)
    run = made_up.run(tmp_path, "prompt", 1, data={"sha256": "of the old"})
    with pytest.raises(BadInput, match=r"trained on data that .*made\.parquet no longer holds; run snakem"):
        score.score_run(run, data)


@pytest.mark.parametrize("fresh", [False, True])
def test_runs_of_other_data_are_counted(tmp_path, fresh):
    data = made_up.data(tmp_path, "made up")
    for method in ("prompt", "cls-tanh"):
        for seed in (1, 2):
            run = made_up.run(tmp_path, method, seed, dataset="made up", data={"sha256": "of the old"})
    new = {"sha256": sha256(data.with_suffix(".parquet"))}
    made_up.run(tmp_path, "prompt", 1)
    if fresh:
        made_up.run(tmp_path, "prompt", 3, dataset="made up", data=new)
    with pytest.raises(BadInput, match="3 other runs; run snakemake again, which trains them anew"):
        score.score_run(run, data)


def test_a_run_that_is_not_what_is_asked_is_refused_by_scores_and_tables(tmp_path):
    data, run = made_up.data(tmp_path), made_up.run(tmp_path, "prompt", 1)
    wanted = {"settings": {"lr": 2.0}, "extras": {}}
    write_json(tmp_path / f"asked/{run.relative_to(tmp_path / 'runs')}.json", wanted)
    spec = blocks.block("scores", methods=["prompt"], seeds=[1])
    for read in (lambda: score.score_run(run, data), lambda: records.runs(tmp_path, spec)):
        with pytest.raises(BadInput, match=r"prompt/1 is not what .*1\.json asks \(.*settings\.lr\); run"):
            read()


def one(folder):
    """A run as `records.runs` lists it."""
    run = {"dataset": "made", "method": "prompt", "run": "prompt", "seed": 1, "folder": folder, "there": True}
    return pd.DataFrame([run])


READERS = [
    ("run.json", lambda root, folder: records.record(folder)),
    ("run.json", lambda root, folder: score.score_run(folder, root / "data/made.json")),
    ("run.json", lambda root, folder: score.collect(root, [RUN])),
    ("predictions.parquet", lambda root, folder: records.scores(root, one(folder), ["f1/all"])),
    ("predictions.parquet", lambda root, folder: score.collect(root, [RUN])),
    (
        "predictions.parquet",
        lambda root, folder: records.statistics(one(folder), records.report(root, "made")),
    ),
    ("predictions.parquet", lambda root, folder: score.score_run(folder, root / "data/made.json")),
    ("features.parquet", lambda root, folder: vectors(one(folder), 0)),
    ("weights.safetensors", lambda root, folder: trained.norms(folder)),
    ("data/made.json", lambda root, folder: records.report(root, "made")),
    ("data/made.json", lambda root, folder: score.score_run(folder, root / "data/made.json")),
    ("data/made.parquet", lambda root, folder: score.score_run(folder, root / "data/made.json")),
    ("data/made.parquet", lambda root, folder: records.scores(root, one(folder), ["f1/all"])),
    ("data/made.parquet", lambda root, folder: data.read(root / "data/made.parquet")),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results with one scored run."""
    root = tmp_path_factory.mktemp("results")
    return root, scored(root).relative_to(root)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
@pytest.mark.parametrize("file, read", READERS)
def test_a_damaged_result_is_one_sentence_with_its_name(whole, tmp_path, file, read, content):
    root = shutil.copytree(whole[0], tmp_path / "results")
    folder = root / whole[1]
    ((root if file.startswith("data/") else folder) / file).write_bytes(content)
    with pytest.raises(BadInput, match=file) as error:
        read(root, folder)
    assert "\n" not in str(error.value)
