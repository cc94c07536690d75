"""A search: dev alone decides, what is missing or at an end is said, its choice comes back as numbers."""

from __future__ import annotations

import re

import made_up
import pandas as pd
import pytest
import yaml
from blocks import block

from tailprompt.choices import choices
from tailprompt.errors import BadInput
from tailprompt.plan.config import layers_of
from tailprompt.plan.grids import each_tried
from tailprompt.report import typeset
from tailprompt.report.tables.claims import CHANGES, claims
from tailprompt.report.tables.search import search
from tailprompt.tabulate import tabulate

OVER = {"lr": [1e-5, 3e-5, 1e-4], "epochs": [10, 30]}
BEST = {"cls-tanh": "cls-tanh@epochs=30,lr=0.0001", "prompt": "prompt@epochs=10,lr=3e-05"}


def searching(root, *, leave_out=(), **more):
    """A search of two methods on one data set, whose best points are those of BEST; its results in root."""
    spec = block("search", name="search", over=OVER, by="f1/all", seeds=(1,), **more)
    names = [(method, run) for method in BEST for run in each_tried(spec, method)]
    spec["runs"] = [
        {"dataset": "made", "method": method, "run": run, "backbone": "mini"} for method, run in names
    ]
    made_up.data(root)
    for method, run in names:
        if run not in leave_out:
            made_up.run(root, run, 1, skill=0.9 if run == BEST[method] else 0.2)
    return spec


def chosen(root, spec):
    """What the search writes for the configuration."""
    tabulate(root, spec, root / "search")
    choices(root / "search.csv", root / "search.yaml")
    return yaml.safe_load((root / "search.yaml").read_text())


def test_the_best_on_dev_is_written_as_cells_of_the_protocol_and_numbers_stay_numbers(tmp_path):
    found = chosen(tmp_path, searching(tmp_path))
    made = {"cls-tanh": {"epochs": 30, "lr": 1e-4}, "prompt": {"epochs": 10, "lr": 3e-5}}
    assert found == {"protocols": {"glee": {"cells": {"made": made}}}}
    assert all((tmp_path / f"search.{ending}").is_file() for ending in ("tex", "md", "csv", "html"))


@pytest.mark.parametrize(
    "edit", [lambda text: "", lambda text: text.replace("30", "10"), lambda text: "a: ["]
)
def test_an_edited_choice_is_refused_with_what_to_do(tmp_path, edit):
    spec, file = searching(tmp_path), tmp_path / "search.yaml"
    chosen(tmp_path, spec)
    tabulate(tmp_path, spec, tmp_path / "search")
    assert layers_of(["config/mini.yaml", file])
    file.write_text(edit(file.read_text()))
    with pytest.raises(
        BadInput, match=r"search\.yaml: not what its search wrote .* Delete it, and snakemake"
    ):
        layers_of(["config/mini.yaml", file])


def test_no_score_of_test_is_read(tmp_path):
    spec = searching(tmp_path)
    before = search(tmp_path, spec)
    for file in tmp_path.glob("runs/*/*/*/*/*/predictions.parquet"):
        rows = pd.read_parquet(file)
        rows.loc[rows["split"] == "test", "prediction"] = 0
        rows.to_parquet(file, index=False)
    after = search(tmp_path, spec)
    pd.testing.assert_frame_equal(before[0], after[0])
    assert before[1].blocks == after[1].blocks


def test_every_point_is_shown_and_the_best_is_bold(tmp_path):
    _, sheet, _ = search(tmp_path, searching(tmp_path))
    assert sheet.heads == ["Method", *["lr 1e-05", "lr 3e-05", "lr 0.0001"] * 2, "best on dev"]
    assert sheet.groups == [("", 1), ("epochs 10", 3), ("epochs 30", 3), ("", 1)]
    (part,) = sheet.blocks
    assert all(cell.text for row in part.rows for cell in row)
    assert [[cell.best for cell in row].index(True) for row in part.rows] == [6, 2]
    assert [row[-1].text for row in part.rows] == ["lr 0.0001, epochs 30", "lr 3e-05, epochs 10"]
    assert "| lr 3e-05, epochs 10 |" in typeset.md(sheet)


def test_a_best_value_at_the_end_of_its_range_is_said_but_not_of_two_values(tmp_path):
    _, sheet, _ = search(tmp_path, searching(tmp_path))
    ends = [note for note in sheet.notes if note.startswith("Best at")]
    assert ends == [
        "Best at the largest lr tried (0.0001), so a better one may lie beyond: CLS-tuning (T) on MADE."
    ]


def test_nothing_is_chosen_where_a_run_is_missing(tmp_path):
    spec = searching(tmp_path, leave_out=["prompt@epochs=10,lr=1e-05", "prompt@epochs=30,lr=1e-05"])
    assert list(chosen(tmp_path, spec)["protocols"]["glee"]["cells"]["made"]) == ["cls-tanh"]
    assert "runs are missing: Prompt-tuning on MADE (2 of 6 runs)." in (tmp_path / "search.md").read_text()
    assert "# Not chosen, as runs are missing, on made: prompt\n" in (tmp_path / "search.yaml").read_text()


def test_a_whole_search_says_nothing_of_missing_runs(tmp_path):
    chosen(tmp_path, searching(tmp_path))
    assert "missing" not in (tmp_path / "search.yaml").read_text()


def test_a_search_of_which_all_runs_are_missing_chooses_nothing(tmp_path):
    spec = block("search", over=OVER, by="f1/all", seeds=(1,))
    spec["runs"] = [{"dataset": "made", "method": "prompt", "run": BEST["prompt"], "backbone": "mini"}]
    made_up.data(tmp_path)
    assert chosen(tmp_path, spec) == {"protocols": {}}


def test_other_values_of_a_method_are_blank_for_the_others(tmp_path):
    spec = searching(tmp_path, of={"cls-tanh": {"lr": [1e-4, 1e-3]}}, leave_out=[BEST["prompt"]])
    _, sheet, _ = search(tmp_path, spec)
    heads, (first, second) = sheet.heads[1:5], sheet.blocks[0].rows
    assert heads == ["lr 1e-05", "lr 3e-05", "lr 0.0001", "lr 0.001"]
    assert [bool(cell.text) for cell in first[1:5]] == [False, False, True, True]
    assert [bool(cell.text) for cell in second[1:5]] == [True, False, True, False]


def test_a_data_set_without_dev_is_refused_in_a_sentence(tmp_path):
    spec = searching(tmp_path)
    for file in [*tmp_path.glob("runs/*/*/*/*/*/predictions.parquet"), tmp_path / "data/made.parquet"]:
        pd.read_parquet(file).query("split == 'test'").to_parquet(file, index=False)
    with pytest.raises(BadInput, match=r"^search: MADE has no dev examples .* shares: {dev: 0.1}$"):
        search(tmp_path, spec)


def test_choices_of_another_table_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "table2.csv").write_text("dataset,method\n")
    with pytest.raises(BadInput, match=r"table2.csv has no column protocol; name the .csv of a table of"):
        choices(tmp_path / "table2.csv", tmp_path / "table2.yaml")


def test_claims_are_judged_under_the_original_protocol_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tailprompt.report.bootstrap.DRAWS", 200)
    claim = {"id": "f1", "says": "Better", "section": "1", "metric": "f1/all", "direction": "greater"}
    claim |= {"method": "prompt", "than": "cls-tanh", "datasets": ["made"]}
    spec = block("claims", claims=[claim], seeds=(1, 2, 3, 4, 5))
    original = block("claims", claims=[claim], seeds=(1, 2, 3), protocol="fair")
    made_up.data(tmp_path)
    for seed in spec["seeds"]:
        for method, skill in (("cls-tanh", 0.2), ("prompt", 0.9)):
            made_up.run(tmp_path, method, seed, skill=skill)
    (tmp_path / "runs/fair").symlink_to(tmp_path / "runs/glee")
    long, sheet, _ = claims(tmp_path, {**spec, "original": original})
    alone, _, _ = claims(tmp_path, original)
    assert long.original_ours.tolist() == alone.ours.tolist()
    assert (long.verdict[0], long.original_verdict[0], long.change[0]) == ("holds", "holds", "survives")
    assert long.seeds.tolist() == [5, 5] and long.original_seeds.tolist() == [3, 3]
    assert len({len(sheet.heads), len(sheet.align), sum(n for _, n in sheet.groups)}) == 1
    assert any(re.search("differ in their number of seeds", note) for note in sheet.notes)


def test_every_change_of_a_verdict_has_a_name():
    verdicts = ("holds", "undecided", "fails")
    assert set(CHANGES) == {(before, after) for before in verdicts for after in verdicts}
