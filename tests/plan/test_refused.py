"""Methods that a table's data sets do not take are named in the plan with the reason."""

from pathlib import Path

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.plan.blocks import expand
from tailprompt.plan.layers import merge
from tailprompt.plan.refused import refused

HERE = Path(".")


@pytest.fixture(scope="module")
def mini():
    return merge(scale("mini"), {"make": {"across": {"tables": ["table1", "table2"], "figures": []}}})


def across(lines):
    """What the lines say of the tables across papers, by method."""
    parts = [line.removeprefix("not in ").partition(" of across: ") for line in lines]
    return {said.split(" on ")[0]: (table, said) for table, found, said in parts if found}


def test_each_is_named_with_its_data_sets_and_the_reason(mini):
    said = across(refused(mini, HERE))
    assert said["vpt"][0] == "table1" and "r52-rebuilt, cmid, debian-sections" in said["vpt"][1]
    assert "tuner is 'prompts'; allowed on text: full, frozen, soft_prompt, prefix, lora" in said["vpt"][1]
    table, why = said["ppt-prompt@loss=asymmetric_gcl,predictor=cosine"]
    assert table == "table1" and "predictor is read only where head is linear or predictor or pooler" in why
    assert said["pt-input"][0] == said["ppt-prompt"][0] == "table2"


def test_one_that_can_run_is_said(mini):
    spec = {"tables": {"table1": {"refused": ["lora"]}}}
    with pytest.raises(BadInput, match="lora can run on r52-rebuilt under across; take it from refused to"):
        refused(merge(mini, {"papers": {"across": spec}}), HERE)


def test_a_table_is_made_without_them(mini):
    spec = mini["papers"]["across"]["tables"]["table1"]
    block = expand(mini, spec)
    assert "refused" not in block and not {run["run"] for run in block["runs"]} & set(spec["refused"])
