"""Rows as released are what the papers' code does, in tables that the plan makes."""

import re

import pytest
from scales import scale

from tailprompt.plan import blocks
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point, parse
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import start_of

RELEASED = [name for name in scale("paper")["methods"] if name.endswith("-as-released")]
PRETRAIN = "ppt-pretrain-as-released"  # runs as a start


def told(dataset, method, *, protocol, backbone):
    return settings(scale("paper"), Point(protocol, backbone, dataset, method, 1))


@pytest.mark.parametrize("method", RELEASED)
def test_every_row_as_released_is_run_by_the_paper_scale(method):
    assert method in {point.method.partition("@")[0] for point in blocks.all_points(scale("paper"))}


@pytest.mark.parametrize("method", [name for name in RELEASED if name != PRETRAIN])
def test_every_row_as_released_is_in_a_table_that_the_plan_makes(method):
    config = scale("paper")
    shown = {
        name
        for paper, about in config["papers"].items()
        for table, block in about.get("tables", {}).items()
        if "as-released" in table
        for name in block["methods"]
    }
    unshown = {"lpt-phase1-as-released", *shown}
    assert method in unshown


@pytest.mark.parametrize("dataset", ["places-lt", "cifar100@imbalance=100", "imagenet-lt"])
def test_both_phases_of_lpt_as_released_have_the_settings_of_its_script_on_every_data_set(dataset):
    script = {"epochs": 90.0, "warmup": 1.0, "weight_decay": 0.01, "flip": True, "mixup": 0.0, "lr": 0.02}
    script |= {"schedule": "cosine_as_released", "test_zoom": 1.143, "precision": "float32"}
    for method in ("lpt-phase1-as-released", "lpt-as-released"):
        found = told(dataset, method, protocol="lpt", backbone="vit-base-in21k")
        assert script.items() <= found.items()


@pytest.mark.parametrize("size", ["small", "base", "large", "xl"])
@pytest.mark.parametrize("family", ["t5", "mt5"])
def test_sizes_of_t5_other_than_xxl_compute_in_full_precision_and_none_drops(family, size):
    rows = scale("paper")["backbones"]
    found = told("sst2@total=32", f"ft-{size}", protocol="ppt", backbone=f"{family}-{size}")
    assert found["precision"] == "float32" and "dtype" not in rows[f"{family}-{size}"]
    assert told("sst2@total=32", "ft", protocol="ppt", backbone=f"{family}-xxl")["precision"] == "bfloat16"
    assert all(rows[f"{family}-{each}"]["dropout"] == 0 for each in (size, "xxl"))


def test_no_run_of_ppt_is_another_one_under_another_title():
    config = scale("paper")
    for point in blocks.all_points(config):
        if point.protocol == "ppt" and point.method.startswith("pt-lm"):
            assert point.backbone == config["protocols"]["ppt"]["backbones"]["en-lm"]
    names = config["protocols"]["ppt"]["backbones"].values()
    assert len({*names}) == len(names)


def test_pre_training_as_released_has_three_positions_and_lengths_that_hold_the_prompt():
    for name, length in {"pair": 512, "choice": 1024, "single-stars": 368, "unified": 768}.items():
        found = told(f"prompts-{name}", PRETRAIN, protocol="ppt", backbone="t5-xxl")
        assert found["sentinel_loss"] and found["ending_loss"] and found["max_length"] == length - 100
    downstream = told("cb@total=32", "ppt-as-released", protocol="ppt", backbone="t5-xxl")
    assert downstream["sentinel_loss"] and not downstream["ending_loss"]


@pytest.mark.parametrize("dataset", ["cb@total=32", "superglue-rte@total=32"])
def test_ppt_cuts_no_row_of_sets_that_its_code_does_not_cut(dataset):
    assert told(dataset, "pt", protocol="ppt", backbone="t5-xxl")["max_length"] == 512


def test_single_sentences_may_be_labelled_by_a_model_with_the_same_settings():
    prompts = {"en": {"prompts": {"ssc": "prompts-single-stars"}}}
    config = merge(scale("paper"), {"languages": prompts})
    start = start_of(config, Point("ppt", "t5-xxl", "sst2@total=32", "ppt", 10))
    assert start.dataset == "prompts-single-stars"
    assert config["datasets"]["prompts-single-stars"]["annotator"] == "model"
    by_lexicon = {**vars(start), "dataset": "prompts-single"}
    assert settings(config, start) == settings(config, Point(**by_lexicon))


@pytest.mark.parametrize("name", ["paper", "mini"])
def test_no_cut_of_cb_promises_more_than_the_half_of_its_250_training_examples(name):
    totals = [
        parse(point.dataset)[1].get("total", 0)
        for point in blocks.all_points(scale(name))
        if parse(point.dataset)[0] == "cb"
    ]
    assert 0 < max(totals) <= 125


RATES = {  # of the scripts for few examples (code)
    "sst2": (5e-6, 1e-2, 1e-2, 1e-2),
    "sst5": (5e-6, 1e-2, 1e-2, 1e-2),
    "race-m": (3e-6, 1e-2, 1e-2, 1e-2),
    "race-h": (3e-6, 1e-2, 1e-2, 1e-2),
    "superglue-boolq": (5e-6, 5e-3, 5e-2, 1e-2),
    "superglue-rte": (5e-6, 5e-3, 5e-2, 5e-3),
    "cb": (5e-6, 5e-2, 5e-2, 1e-2),
}


@pytest.mark.parametrize("dataset", RATES)
def test_ppts_rows_as_released_have_the_rates_of_its_scripts(dataset):
    methods = ("ft", "pt", "ppt", "ppt-unified")
    found = [
        told(f"{dataset}@total=32", f"{method}-as-released", protocol="ppt", backbone="t5-xxl")["lr"]
        for method in methods
    ]
    assert tuple(found) == RATES[dataset]


@pytest.mark.parametrize("dataset", ["ecom", "rte", "boolq"])
def test_glees_few_shots_warm_up_over_a_tenth_of_their_steps(dataset):
    found = told(dataset, "cls-tanh", protocol="glee", backbone="bert-base-uncased")
    assert (
        found["warmup"] / found["epochs"] == pytest.approx(0.1)
        and found["epochs"] * 32 / found["batch"] == 80
    )


def test_what_a_row_as_released_does_not_do_is_said_with_its_size():
    for paper, about in scale("paper")["papers"].items():
        for name, block in about.get("tables", {}).items():
            if (
                name in ("table2-as-released", "table4-as-released", "table8-as-released")
                and paper != "ptuning2"
            ):
                assert any(re.search(r"\d", note) for note in block["notes"]), name
