"""Cells of a protocol, and claims, that are for one backbone, as P-Tuning v2's scripts differ by backbone."""

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.plan import blocks
from tailprompt.plan import settings as plan
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point
from tailprompt.plan.references import check_names

CELLS = {"cmid": {"prompt": {"lr": 3.0e-5, "epochs": 7}, "prompt/bert-mini": {"lr": 1.0e-4}}}
CLAIM = {"says": "x", "method": "prompt", "than": "cls-tanh", "metric": "f1/all", "direction": "greater"}


@pytest.fixture(scope="module")
def paper():
    return merge(scale("paper"), {"protocols": {"glee": {"cells": CELLS}}})


def claims(**more):
    one = CLAIM | {"section": "1", "datasets": ["cmid"]} | more
    return {"kind": "claims", "protocol": "glee", "caption": "x", "claims": {"one": one}}


def test_a_cell_for_a_backbone_is_laid_over_the_methods(paper):
    mini, base = (
        plan.settings(paper, Point("glee", backbone, "cmid", "prompt", 775))
        for backbone in ("bert-mini", "bert-base-chinese")
    )
    assert (mini["lr"], mini["epochs"]) == (1.0e-4, 7)
    assert (base["lr"], base["epochs"]) == (3.0e-5, 7)


@pytest.mark.parametrize("cell, said", [("prompt/bart", "'bart'"), ("promt/bert-mini", "'promt'")])
def test_a_cell_names_a_method_and_a_backbone_that_exist(paper, cell, said):
    wrong = merge(paper, {"protocols": {"glee": {"cells": {"cmid": {cell: {"lr": 1.0e-4}}}}}})
    with pytest.raises(BadInput, match=f"{said} in protocols.glee.cells.cmid is none of the"):
        check_names(wrong, [("own.yaml", wrong)])


def test_a_claim_for_a_backbone_compares_runs_on_it(paper):
    expanded = blocks.expand(paper, claims(backbone="bert-mini"))
    claim = expanded["claims"][0]
    assert (claim["method"], claim["than"]) == ("prompt/bert-mini", "cls-tanh/bert-mini")
    assert {run["backbone"] for run in expanded["runs"]} == {"bert-mini"}
    assert {run["method"] for run in expanded["runs"]} == {claim["method"], claim["than"]}
    assert [method["title"] for method in expanded["methods"]] == [
        "Prompt-tuning, bert-mini",
        "CLS-tuning (T), bert-mini",
    ]


def test_a_claim_without_one_is_of_the_protocols_backbone(paper):
    expanded = blocks.expand(paper, claims())
    assert {run["backbone"] for run in expanded["runs"]} == {"bert-base-chinese"}
    assert expanded["claims"][0]["method"] == "prompt"


def test_the_scripts_settings_are_those_of_the_backbone():
    paper = scale("paper")
    lengths = {
        backbone: plan.settings(
            paper, Point("ptuning2", backbone, "superglue-rte_as_released", "pt2-as-released", 11)
        )
        for backbone in ("bert-large-cased", "roberta-large")
    }
    values = {
        backbone: (told["length"], told["lr"], told["epochs"], told["positions"])
        for backbone, told in lengths.items()
    }
    assert values == {
        "bert-large-cased": (20, 1.0e-2, 60, "shifted"),
        "roberta-large": (128, 5.0e-3, 100, "shifted"),
    }


@pytest.mark.parametrize(
    "method, title",
    [
        ("lora@loss=logit_adjusted,lr=0.003", "LoRA, logit adjustment, lr 0.003"),
        ("pt2@loss=asymmetric_gcl,predictor=cosine", "P-Tuning v2, A-GCL, cosine classifier"),
        ("lora@lora_dropout=0.1", "LoRA, lora dropout 0.1"),
    ],
)
def test_a_change_is_called_by_the_name_of_the_field(method, title):
    assert blocks.title(scale("mini"), method) == title
