"""A score against a setting: lines, places and means of points; drawn from the files of runs."""

import made_up
import pandas as pd
import pytest
from blocks import block, results

from tailprompt import draw
from tailprompt.report.figures import score_by_setting as figure
from tailprompt.report.figures import style

TITLES = {
    "pt2@length=8": "P-Tuning v2, length 8",
    "pt2@length=16": "P-Tuning v2, length 16",
    "pt2-mlp@length=8": "P-Tuning v2, MLP, length 8",
    "pt2-mlp@length=16": "P-Tuning v2, MLP, length 16",
}


def methods(titles):
    return [{"name": name, "title": title} for name, title in titles.items()]


def scores(records, method="pt2"):
    rows = [
        {"dataset": "made", "method": method, "seed": 1, "value": number / 10, "record": record}
        for number, record in enumerate(records)
    ]
    return pd.DataFrame(rows)


def test_points_of_one_method_are_one_line():
    lines = figure.lines({"methods": methods(TITLES)})
    assert set(lines.values()) == {"P-Tuning v2", "P-Tuning v2, MLP"}
    assert lines["pt2-mlp@length=16"] == "P-Tuning v2, MLP"


def test_a_method_on_several_backbones_is_one_line():
    titles = {"pt2/a": "P-Tuning v2, BERT-large cased", "pt2/b": "P-Tuning v2, RoBERTa-large"}
    assert set(figure.lines({"methods": methods(titles)}).values()) == {"P-Tuning v2"}


@pytest.mark.parametrize(
    "layers, places",
    [
        ("1-4", [(figure.FIRST, 4)]),
        ("17-24", [(figure.LAST, 8)]),
        ("all", [(figure.FIRST, 24), (figure.LAST, 24)]),
        ("9-16", []),
    ],
)
def test_layers_are_the_first_or_the_last_or_both(layers, places):
    assert figure.ends(layers, 24) == places


def test_a_run_in_all_layers_is_a_point_of_both_lines():
    kept = [{"settings": {"layers": layers}} for layers in ("all", "1-2", "5-6")]
    placed = figure.placed(scores(kept), {"over": "layers", "methods": methods({"pt2": "P-Tuning v2"})})
    both = placed.groupby("title").x.agg(sorted).to_dict()
    assert both == {figure.FIRST: [2, 6], figure.LAST: [2, 6]}


def test_sizes_are_millions_of_parameters():
    spec = {"over": "size", "methods": methods({"pt2": "P-Tuning v2"})}
    assert figure.placed(scores([{"total": 22_700_000}]), spec).x.tolist() == [22.7]


def test_a_mean_is_over_points_that_every_data_set_has():
    points = pd.DataFrame(
        [["a", "x", 1, 8, 10.0], ["b", "x", 1, 8, 20.0], ["a", "x", 1, 16, 99.0]], columns=figure.COLUMNS
    )
    mean = figure.averaged(points, 2)
    assert mean[["dataset", "x", "value"]].values.tolist() == [["mean", 8, 15.0]]


@pytest.mark.parametrize("average", [False, True])
def test_the_figure_is_drawn(tmp_path, average):
    spec = block("score_by_setting", TITLES, over="length", average=average) | {"methods": methods(TITLES)}
    results(tmp_path, spec)
    for run in spec["runs"]:
        length = int(run["method"].rpartition("=")[2])
        for seed in spec["seeds"]:
            made_up.run(tmp_path, run["method"], seed, settings={"length": length})
    draw.draw(tmp_path, spec, tmp_path / "figure")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_without_runs_says_so(tmp_path):
    made_up.data(tmp_path)
    spec = block("score_by_setting", TITLES, over="length") | {"methods": methods(TITLES)}
    with style.plt.rc_context(style.SETTINGS):
        drawn = figure.score_by_setting(tmp_path, spec)
    words = {text.get_text() for axes in drawn.axes for text in axes.texts}
    style.plt.close(drawn)
    assert words == {"not run"}
