"""The transcribed tables agree with themselves: averages, head and tail, and what two tables print."""

import math
from pathlib import Path

import pandas as pd
import pytest
import yaml

HERE = Path(__file__).parents[1] / "config"
LONG_TAILED = ("cmid", "iflytek", "ctc", "msra", "r52")
FEW_SHOT = ("ecom", "rte", "boolq")
HEAD_TAIL = {"cmid": (7, 29), "iflytek": (22, 97), "ctc": (10, 34), "msra": (1, 21), "r52": (1, 51)}
ROUNDING = 0.05


@pytest.fixture(scope="module")
def printed():
    return pd.read_csv(HERE / "reported/glee.csv", dtype={"value": float}, keep_default_na=True)


def cell(printed, table):
    part = printed[printed.table == table]
    return part.set_index(["dataset", "method", "metric"]).value


@pytest.mark.parametrize(
    "table, sets", [("table2", LONG_TAILED), ("table3", LONG_TAILED), ("table5", FEW_SHOT)]
)
def test_the_avg_column_is_the_mean_of_the_data_sets(printed, table, sets):
    wide = printed[printed.table == table].pivot(
        index=["method", "metric"], columns="dataset", values="value"
    )
    gap = (wide[list(sets)].mean(axis=1) - wide["avg"]).abs()
    assert gap.max() <= 2 * ROUNDING + 1e-9, gap.idxmax()


@pytest.mark.parametrize("table", ["table2", "table3"])
@pytest.mark.parametrize("dataset", LONG_TAILED)
def test_head_and_tail_add_up_to_f1(printed, table, dataset):
    head, tail = HEAD_TAIL[dataset]
    wide = cell(printed, table)[dataset].unstack()
    total = (head * wide["f1/head"] + tail * wide["f1/tail"]) / (head + tail)
    assert ((total - wide["f1/all"]).abs() <= 2 * ROUNDING + 1e-9).all()


def test_tables_2_and_3_print_the_same_numbers_for_the_same_method(printed):
    two, three = cell(printed, "table2"), cell(printed, "table3")
    shared = two.index.intersection(three.index)
    assert len(shared) == 4 * 4 * 6
    assert (two[shared] == three[shared]).all()


def test_every_cell_is_there_once_and_is_a_row_of_the_methods(printed):
    assert printed.groupby("table").size().to_dict() == {
        "table1": 25, "table2": 120, "table3": 264, "table4": 6, "table5": 20
    }  # fmt: skip
    assert not printed.duplicated(["table", "dataset", "method", "metric"]).any()
    methods = yaml.safe_load((HERE / "methods.yaml").read_text("utf-8"))["methods"]
    assert set(printed.method.dropna()) <= set(methods)
    scores = printed[printed.table.isin(["table2", "table3", "table5"]) & (printed.dataset != "avg")]
    assert scores.spread.notna().all()


# Mean and sample SD of R52, computed again from the authors' logs.
@pytest.mark.parametrize(
    "method, f1, deviation",
    [
        ("cls-tanh", 67.27, 1.31), ("cls-relu", 56.22, 2.51), ("cls-tanh-eta", 68.87, 1.87),
        ("cls-tanh-focal", 72.77, 2.33), ("cls-relu-prompt", 54.48, 3.13), ("cls-relu-ln", 77.75, 3.52),
        ("cls-relu-ptln", 81.97, 1.82), ("prompt", 85.30, 0.63), ("prompt-untied", 84.91, 1.00),
    ],
)  # fmt: skip
def test_r52_recomputed_rounds_to_print(printed, method, f1, deviation):
    row = printed[
        (printed.dataset == "r52") & (printed.method == method) & (printed.metric == "f1/all")
    ].iloc[0]
    assert math.isclose(row.value, f1, abs_tol=ROUNDING + 1e-9)
    assert math.isclose(row.spread, deviation, abs_tol=ROUNDING + 1e-9)
