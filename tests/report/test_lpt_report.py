"""What LPT shows: parameters, printed rows of others, backbones side by side, features, prompt matching."""

import json

import made_up
import numpy as np
import pandas as pd
import pytest
from blocks import block, results
from matplotlib.text import Text
from safetensors.numpy import save_file
from scales import scale
from sklearn.neighbors import KNeighborsClassifier

from tailprompt import draw, score
from tailprompt.errors import BadInput
from tailprompt.plan import blocks
from tailprompt.plan import settings as plan
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point
from tailprompt.report import answers, parameters, records, typeset
from tailprompt.report.figures import style
from tailprompt.report.figures.accuracy_by_parameters import apart, finish, label
from tailprompt.report.figures.accuracy_by_parameters import draw as spots_drawn
from tailprompt.report.figures.lda import discriminants
from tailprompt.report.tables.claims import claims
from tailprompt.report.tables.feature_statistics import feature_statistics
from tailprompt.report.tables.scores import scores
from tailprompt.tasks import classification

METHODS = ["linear", "lpt-phase1", "lpt"]
POOL = 5
SETTINGS = {"linear": {"tuner": "frozen"}, "lpt-phase1": {"tuner": "prompts"}}
SETTINGS["lpt"] = {"tuner": "group_prompts", "pool": POOL, "start": {"method": "lpt-phase1"}}
TENSORS = {
    "linear": {"head.predictor.weight": (6, 32)},
    "lpt-phase1": {"body.prompts": (12, 10, 768), "head.predictor.weight": (6, 768)},
    "lpt": {"body.pool": (20, 6, 10, 768), "body.keys": (20, 768), "head.predictor.weight": (6, 768)},
}


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr("tailprompt.report.bootstrap.DRAWS", 200)


def images(root, spec, **report):
    """Results of a block whose runs also wrote prompts, tensors of LPT's shapes and their settings."""
    results(root, spec, **report)
    for run in spec["runs"]:
        for seed in spec["seeds"]:
            folder = root / "runs" / Point("glee", "mini", run["dataset"], run["run"], seed).path
            tensors = {name: np.zeros(shape, "int8") for name, shape in TENSORS[run["run"]].items()}
            save_file(tensors | {"class_vectors": np.zeros((6, 4), "int8")}, folder / "weights.safetensors")
            random, table = np.random.default_rng(seed), pd.read_parquet(folder / "predictions.parquet")
            table["prompts"] = list(
                (table.label.to_numpy()[:, None] + random.integers(0, 2, (len(table), 2))) % POOL
            )
            table.to_parquet(folder / "predictions.parquet", index=False)
            about = json.loads((folder / "run.json").read_text("utf-8"))
            about |= {"settings": SETTINGS[run["run"]], "total": 86_000_000}
            about["point"] = vars(Point("glee", "mini", run["dataset"], run["run"], seed))
            (folder / "run.json").write_text(json.dumps(about), "utf-8")
    return root


def lpt_block(kind, **changes):
    return block(kind, METHODS, seeds=[1, 2]) | {"paper": "lpt", "name": "table3"} | changes


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return images(tmp_path_factory.mktemp("images"), lpt_block("any"), reported="places-lt")


def cells(long):
    return long.set_index(["dataset", "method", "metric"])


def test_parameters_are_those_of_the_paper_and_the_keys_it_leaves_out(root):
    counts = {}
    for run in records.runs(root, lpt_block("any")).drop_duplicates("method").itertuples():
        counts[run.method] = parameters.in_run(run.folder, run.record)
    assert counts["linear"]["tuned"] == 0
    assert counts["lpt-phase1"]["tuned"] == 92_160 / 1e6
    assert counts["lpt"]["pool"] == 921_600 / 1e6
    assert counts["lpt"]["tuned"] == pytest.approx((1_013_760 + 15_360) / 1e6)


def test_full_tuning_tunes_all_but_its_head(root, tmp_path):
    save_file({"head.predictor.weight": np.zeros((6, 4), "int8")}, tmp_path / "weights.safetensors")
    run = {"settings": {"tuner": "full", "start": None}, "trainable": 1_000_024, "total": 1_000_024}
    assert parameters.in_run(tmp_path, run)["tuned"] == 1.0


def test_parameters_stand_before_the_scores_and_printed_methods_of_others_below(root):
    spec = lpt_block("scores", metrics=["accuracy/all"], parameters=["tuned", "total"])
    spec["others"] = {"paco": "PaCo (Cui et al., 2021)", "rac": "RAC", "tade": "TADE", "unprinted": "X"}
    long, sheet, _ = scores(root, spec)
    assert [title for title, _ in sheet.groups if title] == ["Tuned (M)", "Total (M)", "Accuracy"]
    assert [row[0].text for row in sheet.blocks[0].rows] == [
        *METHODS,
        "TADE",
        "PaCo (Cui et al., 2021)",
        "RAC",
    ]
    assert cells(long).loc[("made", "paco", "accuracy/all")].reported == 41.2
    assert np.isnan(cells(long).loc[("made", "paco", "accuracy/all")].ours)
    lpt = cells(long).loc[("made", "lpt", "parameters/tuned")]
    assert (lpt.reported, round(lpt.ours, 2), lpt.n) == (1.01, 1.03, 2)
    assert not any(
        cell.best for cell in sheet.blocks[0].rows[2][1:4]
    )  # as many parameters as can be is no merit
    assert "nan" not in typeset.tex(sheet) and any("which LPT does not count" in note for note in sheet.notes)


def test_as_many_decimals_as_the_paper_prints(root):
    _, sheet, _ = scores(root, lpt_block("scores", name="table8", metrics=["accuracy/all"]))
    printed = [row[1].text for row in sheet.blocks[0].rows]
    assert printed == ["33.29", "49.41", "50.07"]


def test_a_cut_of_a_data_set_has_printed_numbers_of_its_own(tmp_path):
    spec = lpt_block("scores", name="table4", metrics=["accuracy/all"])
    for row in (*spec["datasets"], *spec["runs"]):
        row["dataset"] = "cifar100-resplit@imbalance=50"
    long, _, _ = scores(images(tmp_path, spec, reported="cifar100"), spec)
    assert cells(long).reported.dropna().tolist() == [90.0]


def test_features_are_measured_beside_the_papers(root):
    names = ["inner/mean", "inner/sd", "inter", "gamma", "knn/1", "knn/5"]
    spec = lpt_block("feature_statistics", name="table13", separability=names)
    long, sheet, _ = feature_statistics(root, spec)
    table = cells(long)
    assert table.loc[("made", "lpt", "inter")].reported == 16.1
    assert table.loc[("made", "lpt-phase1", "gamma")].reported == 0.237
    values = []
    for run in records.runs(root, spec).query("method == 'lpt'").itertuples():
        splits = records.vectors(run.folder)
        model = KNeighborsClassifier(5, metric="cosine", algorithm="brute").fit(*splits["train"])
        values.append(100 * model.score(*splits["test"]))
    assert table.loc[("made", "lpt", "knn/5")].ours == pytest.approx(np.mean(values))
    assert table.loc[("made", "lpt", "knn/5")].n == 2
    assert "R / D" in [title for title, _ in sheet.groups] and "5-NN accuracy" in sheet.heads


def test_the_printed_knn_stands_beside_each_number_of_neighbours(root):
    spec = lpt_block(
        "feature_statistics", name="table10-knn", beside="table10", separability=["knn/1", "knn/5"]
    )
    table = cells(feature_statistics(root, spec)[0])
    assert [table.loc[("made", "linear", name)].reported for name in ("knn/1", "knn/5")] == [32.11, 32.11]


def test_a_run_without_all_vectors_is_one_sentence(tmp_path):
    pd.DataFrame({"id": ["a"], "split": "test", "label": 0, "vector": [[1.0]]}).to_parquet(
        tmp_path / "features.parquet"
    )
    with pytest.raises(BadInput, match="lacks train or test examples"):
        records.vectors(tmp_path)


BASE = {"says": "It is so", "section": "C.1", "table": "table13", "method": "lpt", "than": "lpt-phase1"}


def judged(root, **claim):
    spec = lpt_block(
        "claims", claims=[{**BASE, "id": "a", "direction": "greater", "datasets": ["made"], **claim}]
    )
    long, sheet, _ = claims(root, spec)
    return long.set_index("dataset").loc["made"], sheet


@pytest.mark.parametrize(
    "metric, unit, reported",
    [("inter", "distance", 16.1 - 15.8), ("gamma", "ratio", 0.005), ("knn/5", "points", None)],
)
def test_claims_about_features_have_an_interval_and_a_unit(root, metric, unit, reported):
    line, sheet = judged(root, statistic="separability", metric=metric)
    spec = lpt_block("feature_statistics", separability=[metric])
    table = cells(feature_statistics(root, spec)[0]).ours
    effect = table["made", "lpt", metric] - table["made", "lpt-phase1", metric]
    assert line.ours == pytest.approx(effect, rel=1e-4)  # draws are float32
    assert line.low <= line.high and (line.unit, line.seeds) == (unit, 2)
    assert line.reported == pytest.approx(reported) if reported else np.isnan(line.reported)


def test_an_effect_may_be_what_goes_beyond_that_on_another_score(root):
    few, overall, beyond = (
        judged(root, table="table8", **claim)[0]
        for claim in (
            {"metric": "accuracy/few"},
            {"metric": "accuracy/all"},
            {"metric": "accuracy/few", "beyond": "accuracy/all"},
        )
    )
    assert beyond.ours == pytest.approx(few.ours - overall.ours)
    assert beyond.reported == pytest.approx((46.88 - 47.32) - (50.07 - 49.41))


FIGURES = {
    "accuracy_by_parameters": {"others": {"paco": "PaCo"}},
    "prompt_matching": {"methods": [{"name": "lpt", "title": "LPT"}], "classes_per_group": 2},
    "lda": {"points": 50},
    "score_by_frequency": {"metric": "recall"},
}


@pytest.mark.parametrize("kind", FIGURES)
def test_each_figure_is_drawn(root, tmp_path, kind):
    draw.draw(root, lpt_block(kind, **FIGURES[kind]), tmp_path / kind)
    assert (tmp_path / f"{kind}.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / f"{kind}.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize("reported, names", [("lpt", ["ours", "as printed"]), ("none", [])])
def test_spots_have_a_legend_where_some_are_printed(root, reported, names):
    with style.plt.rc_context(style.SETTINGS):
        drawn = draw.FIGURES["accuracy_by_parameters"](root, lpt_block("any", reported=reported))
    assert [text.get_text() for legend in drawn.legends for text in legend.get_texts()] == names
    style.plt.close(drawn)


@pytest.mark.parametrize("kind", FIGURES)
def test_a_figure_without_runs_says_so(tmp_path, kind):
    made_up.data(tmp_path)
    with style.plt.rc_context(style.SETTINGS):
        drawn = draw.FIGURES[kind](tmp_path, lpt_block(kind, **FIGURES[kind]))
    words = {text.get_text() for axes in drawn.axes for text in axes.texts}
    style.plt.close(drawn)
    assert words == {"not run"}


def test_two_groups_have_one_discriminant_and_three_have_two():
    random = np.random.default_rng(0)
    groups = {str(n): random.normal(3 * n, size=(50, 4)) for n in range(3)}
    assert discriminants(groups)["0"].shape == (50, 2)
    placed = discriminants({name: groups[name] for name in ("0", "2")})
    assert placed["0"].shape == (50, 1)
    assert placed["0"].max() < placed["2"].min() or placed["0"].min() > placed["2"].max()


def test_labels_are_moved_apart_and_not_past_each_other():
    moved = apart(np.array([40.0, 40.1, 10.0, 40.2]), 1.0)
    assert moved.tolist() == [40.0, 41.0, 10.0, 42.0]


def test_names_of_spots_close_to_each_other_neither_overlap_nor_leave_the_figure():
    random = np.random.default_rng(0)
    names = [f"P-Tuning v2, loss logit_adjusted {n}" for n in range(12)]
    tuned, score = random.uniform(0.05, 30, 12), np.r_[random.uniform(79, 80, 11), 60]
    table = pd.DataFrame({"parameters/tuned": tuned, "parameters/total": 30.0, "score": score}, index=names)
    with style.plt.rc_context(style.SETTINGS):
        figure, (axes, other) = style.panels(2, 2, 3.4)
        for panel in (axes, other):
            spots_drawn(panel, table, 1, color=style.HEAD, label="ours")
            label(panel, table)
            finish(panel, "A data set", "f1/tail", 30.0)
        figure.draw_without_rendering()
        words = [panel.xaxis.label for panel in (axes, other)]
        assert all("up to 30.0" in word.get_text() for word in words)
        # without the lines to the spots
        boxes = [Text.get_window_extent(text) for panel in (axes, other) for text in panel.texts]
        style.plt.close(figure)
    assert not any(one.overlaps(next_one) for i, one in enumerate(boxes) for next_one in boxes[:i])
    boxes += [word.get_window_extent() for word in words]
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_one_axis_of_backbones_is_a_row_for_each():
    whole = scale("paper")
    spec = {
        "kind": "scores",
        "protocol": "glee",
        "caption": "x",
        "datasets": ["cmid"],
        "methods": ["prompt", "cls-tanh"],
    }
    expanded = blocks.expand(
        whole, spec | {"backbones": ["bert-mini", "bert-base-chinese"], "metrics": ["f1/all"]}
    )
    names = [method["name"] for method in expanded["methods"]]
    assert names == [
        "prompt/bert-mini",
        "cls-tanh/bert-mini",
        "prompt/bert-base-chinese",
        "cls-tanh/bert-base-chinese",
    ]
    assert expanded["methods"][0]["title"] == "Prompt-tuning, bert-mini"
    paths = {point.path.rpartition("/")[0] for point in blocks.points(expanded)}
    assert "glee/bert-mini/cmid/prompt" in paths and len(paths) == 4


def test_only_runs_that_tables_or_claims_about_features_take_write_all_vectors():
    table = {
        "kind": "feature_statistics",
        "protocol": "glee",
        "caption": "x",
        "sets": "shown",
        "vectors": True,
    }
    table |= {"methods": ["cls-tanh"], "separability": ["gamma"]}
    claim = {"section": "1", "says": "x", "method": "prompt", "than": "cls-relu", "statistic": "separability"}
    claim |= {"metric": "gamma", "direction": "greater", "sets": "shown"}
    claimed = {"kind": "claims", "protocol": "glee", "caption": "x", "claims": {"new": claim}}
    added = {"papers": {"glee": {"tables": {"new": table, "new-claims": claimed}}}}
    whole = merge(scale("paper"), added)
    writing = [point for point in blocks.all_points(whole) if plan.settings(whole, point).get("vectors")]
    asked = {(point.dataset, point.method) for point in writing}
    of_glee = {("iflytek", name) for name in ("cls-tanh", "prompt", "cls-relu")}
    assert asked == of_glee | {("places-lt", name) for name in ("linear", "vpt", "lpt-phase1", "lpt")}


def test_a_test_set_of_other_classes_takes_any_right_class_among_those_it_has(tmp_path):
    table = pd.DataFrame(
        {"id": ["a", "b", "c"], "split": "test", "label": [1, 3, 1], "prediction": [0, 0, 0]}
    )
    table["scores"] = [[9.0, 1.0, 0.0, 0.0], [9.0, 0.0, 1.0, 0.0], [9.0, 0.0, 0.0, 1.0]]
    table.to_parquet(tmp_path / "predictions.parquet", index=False)
    data = table[["id", "split", "label"]].assign(accepted=[[1], [3, 2], [1]])
    data.to_parquet(tmp_path / "data.parquet", index=False)
    report = {"classes": list("wxyz"), "groups": {"test": {}}, "trained_on": "big", "among": [1, 2, 3]}
    found = answers.answers(tmp_path, tmp_path / "data.parquet", report)["test"]
    told = classification.answers(found, report["among"])
    assert told.tolist() == [1, 3, 3]  # 2 is right for b, too, and stands as its label
    report["groups"]["dev"] = {}
    (tmp_path / "data.json").write_text(json.dumps(report), "utf-8")
    values = score.scores_of(tmp_path, tmp_path / "data.json").set_index(["metric", "group"]).value
    assert values["accuracy", "all"] == pytest.approx(2 / 3)
    everywhere = answers.answers(tmp_path, tmp_path / "data.parquet", report | {"among": None})["test"]
    assert classification.answers(everywhere, None).tolist() == [0, 0, 0]


def test_objectnets_two_denominators_are_both_said(tmp_path):
    spec = lpt_block("scores", metrics=["accuracy/all"])
    images(tmp_path, spec, left_out=150)
    path = tmp_path / "data/made.json"
    report = json.loads(path.read_text("utf-8")) | {"trained_on": "big", "among": None}
    path.write_text(json.dumps(report), "utf-8")
    table = pd.read_parquet(path.with_suffix(".parquet"))
    table.assign(accepted=[[c] for c in table.label]).to_parquet(path.with_suffix(".parquet"), index=False)
    long, sheet, _ = scores(tmp_path, spec)
    half = cells(long).loc[("made", "lpt", "accuracy/all")].ours / 2
    assert any("150 images of other classes" in note and f"lpt {half:.1f}" in note for note in sheet.notes)


def test_a_table_takes_a_test_set_without_dev_whose_predictions_are_among_some_classes(tmp_path):
    spec = lpt_block("scores", metrics=["accuracy/all"])
    images(tmp_path, spec)
    path = tmp_path / "data/made.json"
    report = json.loads(path.read_text("utf-8"))
    report |= {"trained_on": "big", "among": list(range(len(report["classes"])))}
    path.write_text(json.dumps(report), "utf-8")
    table = pd.read_parquet(path.with_suffix(".parquet")).query("split == 'test'")
    table.assign(accepted=[[c] for c in table.label]).to_parquet(path.with_suffix(".parquet"), index=False)
    for file in tmp_path.glob("runs/*/*/*/*/*/predictions.parquet"):
        rows = pd.read_parquet(file).query("split == 'test'")
        outputs = np.eye(len(report["classes"]))[rows.prediction]
        rows.assign(scores=list(outputs)).to_parquet(file, index=False)
    long, _, _ = scores(tmp_path, spec)
    assert cells(long).loc[("made", "lpt", "accuracy/all")].ours > 0
