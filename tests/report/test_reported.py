"""The transcribed tables agree with themselves: averages, groups of classes, and what two tables print."""

import math
from pathlib import Path

import pandas as pd
import pytest

from tailprompt.plan.schemas import read

HERE = Path(__file__).parents[2] / "config"
LONG_TAILED = ("cmid", "iflytek", "ctc", "msra", "r52")
FEW_SHOT = ("ecom", "rte", "boolq")
HEAD_TAIL = {"cmid": (7, 29), "iflytek": (22, 97), "ctc": (10, 34), "msra": (1, 21), "r52": (1, 51)}
ROUNDING = 0.05


@pytest.fixture(scope="module")
def printed():
    return pd.read_csv(HERE / "reported/glee.csv", dtype={"value": float}, keep_default_na=True)


def rows(name):
    return set(read(HERE / f"{name}.yaml")[name])


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
    assert set(printed.method.dropna()) <= rows("methods")
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


@pytest.fixture(scope="module")
def lpt():
    return pd.read_csv(HERE / "reported/lpt.csv", dtype={"value": float})


OURS = read(HERE / "papers/lpt.yaml")["papers"]["lpt"]


def test_every_cell_of_lpt_is_there_once(lpt):
    sizes = [20, 8, 66, 18, 12, 3, 6, 24, 5, 4, 8, 8, 4, 4, 6, 30, 6, 8, 8, 8, 4]
    assert lpt.groupby("table").size().to_dict() == {f"table{n}": size for n, size in enumerate(sizes, 1)}
    assert not lpt.duplicated(["table", "dataset", "method", "metric"]).any()
    assert lpt.value.notna().all() and lpt.page.str.startswith("section ").all()


def test_every_printed_row_of_lpt_is_a_method_of_ours_or_has_a_title(lpt):
    names = {tuple(name.partition("/")[::2]) for name in lpt.method if name not in OURS["others"]}
    assert {method.partition("@")[0] for method, _ in names} <= rows("methods")
    assert {backbone for _, backbone in names if backbone} <= rows("backbones")
    assert set(OURS["others"]) <= set(lpt.method)
    assert set(lpt.dataset.str.partition("@")[0]) <= rows("datasets")


def beside(paper, printed):
    """The blocks of a paper that show a printed table."""
    return [block for table, block in paper["tables"].items() if block.get("beside", table) == printed]


def listed(blocks):
    """The methods that blocks show, perhaps each on a backbone."""
    return {
        f"{method}{'/' if at else ''}{at}"
        for block in blocks
        for method in block["methods"]
        for at in block.get("backbones", [""])
    }


def test_each_table_of_lpt_shows_its_printed_rows(lpt):
    for name, part in lpt.groupby("table"):
        blocks = beside(OURS, name)
        assert set(part.method) <= listed(blocks) | set(OURS["others"]), name


# Test images are 100 a class: the accuracy over all is the mean of the groups', by their numbers of classes.
def test_groups_of_places_lt_are_those_of_the_released_code(lpt):
    many, medium, few = 131, 157, 77
    wide = lpt[lpt.dataset == "places-lt"].pivot(index=["table", "method"], columns="metric", values="value")
    wide = wide[["accuracy/all", "accuracy/many", "accuracy/medium", "accuracy/few"]].dropna()
    total = many * wide["accuracy/many"] + medium * wide["accuracy/medium"] + few * wide["accuracy/few"]
    gap = (total / (many + medium + few) - wide["accuracy/all"]).abs()
    exact = gap.drop("table3")
    assert exact.drop(("table1", "vpt")).max() < 0.02
    assert gap["table1", "vpt"] > 0.4  # its medium, 32.78, is a slip: with Table 8's 33.78 the sum is right
    assert set(gap["table3"][gap["table3"] > 0.2].index) == {"oltr", "vl-ltr"}


def test_lpt_prints_the_same_number_for_the_same_run(lpt):
    values = (
        lpt[(lpt.dataset == "places-lt") & (lpt.metric == "accuracy/all")]
        .set_index(["table", "method"])
        .value
    )
    for method, value in [("lpt", 50.07), ("lpt-phase1", 49.41), ("linear", 33.29), ("vpt", 37.52)]:
        printed = values[:, method]
        assert ((printed - value).abs() <= ROUNDING + 1e-9).all(), method


def test_printed_parameters_of_lpt_are_those_of_its_shapes(lpt):
    values = lpt[lpt.metric.str.startswith("parameters/p")].set_index(["table", "method"]).value
    shared, depth, length, width = 6, 12, 10, 768
    for (_, method), value in values.items():
        changed = dict(pair.split("=") for pair in method.partition("@")[2].split(",") if pair)
        pool, blocks = int(changed.get("pool", 20)), depth - int(changed.get("shared_blocks", shared))
        assert round(pool * blocks * length * width / 1e6, 2) == value
    tuned = lpt[lpt.metric == "parameters/tuned"].set_index(["table", "method"]).value
    assert tuned["table1", "vpt"] == round(depth * length * width / 1e6, 3)
    assert tuned["table3", "lpt"] == round((depth + 20 * (depth - shared)) * length * width / 1e6, 2)


@pytest.fixture(scope="module")
def ppt():
    return pd.read_csv(HERE / "reported/ppt.csv", dtype={"value": float})


def test_every_cell_of_ppt_is_there_once(ppt):
    sizes = {"table1": 10, "table2": 12, "table4": 7 * (11 + 12), "table5": 10}
    assert ppt.groupby("table").size().to_dict() == sizes
    assert not ppt.duplicated(["table", "dataset", "method", "metric"]).any()
    scores = ppt[ppt.metric != "classes"]
    assert scores.spread.notna().all() and ppt.page.str.startswith("section ").all()
    assert set(ppt.dataset) <= rows("datasets")


def test_ppt_prints_the_same_number_for_the_same_run(ppt):
    four, *others = (
        ppt[ppt.table == table].set_index(["dataset", "method"])[["value", "spread"]]
        for table in ("table4", "table1", "table2")
    )
    for part, common in zip(others, (3, 4), strict=True):
        both = part.index.intersection(four.index)
        assert len(both) == common
        assert (part.loc[both] == four.loc[both]).all(axis=None)


# The best of each column of Table 4, in bold there.
BEST = {
    **{"sst2": "ppt-unified", "sst5": "ppt", "race-m": "ft", "race-h": "ft", "boolq": "ppt-hybrid"},
    **{"rte": "ppt-unified", "cb": "ft", "chnsent": "ppt-unified", "amazon": "ppt-hybrid", "ccpm": "ppt"},
    **{"c3": "ppt-unified", "lcqmc": "ppt-hybrid", "cmnli": "ppt", "ocnli": "ppt-unified"},
}


def test_the_best_of_each_column_of_ppt_is_the_one_in_bold(ppt):
    four = ppt[ppt.table == "table4"].pivot(index="dataset", columns="method", values="value")
    assert four.idxmax(axis=1).to_dict() == BEST
    gain = four.filter(regex="^ppt").max(axis=1) - four.filter(regex="^pt").max(axis=1)
    assert (gain > 0).all()


@pytest.fixture(scope="module")
def ptuning2():
    return pd.read_csv(HERE / "reported/ptuning2.csv", dtype={"value": float})


THEIRS = read(HERE / "papers/ptuning2.yaml")["papers"]["ptuning2"]
SIZES = ("", "/roberta-large", "/deberta-xlarge")


def test_every_cell_of_ptuning2_is_there_once(ptuning2):
    sizes = {"table2": 8 * 3 * 4, "table3": 3 * 4 * 3, "table3-qa": 2 * 2 * 4 * 3, "table3-srl": 3 * 4 * 3}
    assert ptuning2.groupby("table").size().to_dict() == {**sizes, "table4": 8}
    assert not ptuning2.duplicated(["table", "dataset", "method", "metric"]).any()
    assert ptuning2.value.notna().all() and ptuning2.page.str.startswith("section 4.").all()


def test_every_printed_row_of_ptuning2_is_a_method_of_ours_or_has_a_title(ptuning2):
    names = {tuple(name.partition("/")[::2]) for name in ptuning2.method if name not in THEIRS["others"]}
    assert {method for method, _ in names} <= rows("methods")
    assert {backbone for _, backbone in names if backbone} <= rows("backbones")
    assert set(THEIRS["others"]) <= set(ptuning2.method)
    sets = read(HERE / "datasets.yaml")["datasets"].values()
    assert set(ptuning2.dataset) <= {row.get("reported") for row in sets}


def test_each_table_of_ptuning2_shows_its_printed_rows(ptuning2):
    for name, part in ptuning2.groupby("table"):
        blocks = beside(THEIRS, name)
        assert set(part.method) <= listed(blocks) | set(THEIRS["others"]), name
        assert {metric for block in blocks for metric in block["metrics"]} >= set(part.metric), name


# Table 3, read again: each method on BERT-large, RoBERTa-large and DeBERTa-xlarge.
AGAIN = {
    ("table3", "conll03", "f1/all"): "92.8 92.6 93.1 81.9 86.1 90.2 90.2 92.8 93.1 91.0 92.8 93.1",
    ("table3", "ontonotes", "f1/all"): "89.2 89.8 90.4 74.6 80.8 85.1 86.4 89.8 90.4 86.3 89.8 90.5",
    ("table3", "conll04", "f1/all"): "85.6 88.8 89.1 73.6 76.2 82.4 84.5 88.4 86.5 86.6 90.6 90.1",
    ("table3-qa", "squad", "exact/all"): "84.2 88.9 90.1 1.0 1.2 2.4 77.8 88.5 90.4 82.3 88.0 89.6",
    ("table3-qa", "squad", "f1/all"): "91.1 94.6 95.5 8.5 12.0 19.0 86.0 94.4 95.7 89.6 94.1 95.4",
    ("table3-qa", "squad2", "exact/all"): "78.7 86.5 88.3 50.2 50.2 50.2 69.7 82.1 88.4 72.7 83.4 88.1",
    ("table3-qa", "squad2", "f1/all"): "81.9 89.4 91.1 50.2 50.2 50.2 73.5 85.5 91.1 75.9 86.7 90.8",
    ("table3-srl", "conll12", "f1/all"): "84.9 86.5 86.5 64.5 67.2 74.1 83.2 84.6 85.7 85.1 86.2 87.1",
    ("table3-srl", "conll05-wsj", "f1/all"): "88.5 90.2 91.2 76.0 76.8 82.3 86.3 89.2 90.6 88.5 90.0 91.2",
    ("table3-srl", "conll05-brown", "f1/all"): "82.7 85.6 86.9 70.0 70.7 77.7 80.7 84.3 86.3 83.1 85.7 87.0",
}


@pytest.mark.parametrize("table, dataset, metric", AGAIN)
def test_table_3_of_ptuning2_was_read_alike_twice(ptuning2, table, dataset, metric):
    here = ptuning2[(ptuning2.table == table) & (ptuning2.dataset == dataset) & (ptuning2.metric == metric)]
    values = here.set_index("method").value
    order = [f"{method}{size}" for method in ("finetune", "pt-input", "pt2", "mpt2") for size in SIZES]
    assert [values[name] for name in order] == [
        float(number) for number in AGAIN[table, dataset, metric].split()
    ]


# Fine-tuning, PT and P-Tuning v2 on BERT-large, then on RoBERTa-large.
SUPERGLUE = {
    "boolq": "77.7 67.2 75.8 86.9 62.3 84.8",
    "cb": "94.6 80.4 94.6 98.2 71.4 100",
    "copa": "69.0 55.0 73.0 94.0 63.0 93.0",
    "multirc": "70.5 59.6 70.6 85.7 59.9 82.5",
    "record": "70.6 44.2 72.8 89.0 46.3 89.3",
    "rte": "70.4 53.5 78.3 86.6 58.8 89.5",
    "wic": "74.9 63.0 75.1 75.6 56.9 73.4",
    "wsc": "68.3 64.4 68.3 63.5 64.4 63.5",
}


@pytest.mark.parametrize("dataset", SUPERGLUE)
def test_table_2_of_ptuning2_was_read_alike_twice(ptuning2, dataset):
    values = ptuning2[(ptuning2.table == "table2") & (ptuning2.dataset == dataset)].set_index("method").value
    order = [f"{method}{size}" for size in SIZES[:2] for method in ("finetune", "pt-input", "pt2")]
    assert [values[name] for name in order] == [float(number) for number in SUPERGLUE[dataset].split()]


# Printed, though no count of right answers gives it: 53.5 of 277, 75.6 and 72.0 of 638, 98.7 and 76.4 of 56.
NO_COUNT = {"rte pt-input", "wic finetune/roberta-large", "wic pt2/glm-xlarge"}
NO_COUNT |= {"cb finetune/glm-xxlarge", "cb pt-input/glm-xlarge"}


def test_printed_scores_of_small_sets_of_ptuning2_are_counts_of_their_examples_but_for_five(ptuning2):
    sizes = {"cb": 56, "copa": 100, "rte": 277, "wic": 638, "wsc": 104}
    kept = ptuning2[ptuning2.dataset.isin(sizes) & (ptuning2.metric == "accuracy/all")]
    right = kept.value / 100 * kept.dataset.map(sizes)
    gap = (100 * right.round() / kept.dataset.map(sizes) - kept.value).abs()
    wrong = kept[gap > ROUNDING + 1e-9]
    assert set(wrong.dataset + " " + wrong.method) == NO_COUNT


def test_claims_of_ptuning2_that_name_a_table_have_printed_effects(ptuning2):
    for claim in THEIRS["tables"]["claims"]["claims"].values():
        if "table" in claim:
            at = f"/{claim['backbone']}" if "backbone" in claim else ""
            here = ptuning2[(ptuning2.table == claim["table"]) & (ptuning2.metric == claim["metric"])].method
            assert {claim["method"] + at, claim["than"] + at} <= set(here), claim["says"]
