"""What the plan refuses of prefixes and LoRA, with the numbers, before the first run begins."""

import json
from dataclasses import replace

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point
from tailprompt.plan.runnable import check_settings, positions_of

POINT = Point("glee", "bert-mini", "cmid", "tried", 775)
PREFIX = {"tuner": "prefix", "length": 100, "positions": "shifted"}


@pytest.fixture(scope="module")
def paper():
    return scale("paper")


def checked(paper, row, *, point=POINT, **others):
    """The settings of a run of this row on bert-mini, which has 512 positions and 4 layers."""
    rows = {"tried": {"head": "predictor", **row}, **others}
    return check_settings(merge(paper, {"methods": rows}), [point])


def test_a_text_and_its_shifted_prefix_fit_the_positions(paper):
    assert checked(paper, {**PREFIX, "max_length": 412})
    said = "max_length 413 is more than the 412 positions of backbone 'bert-mini' beside its prefix; lower it"
    with pytest.raises(BadInput, match=f"^tried on cmid under glee: {said}, or length$"):
        checked(paper, {**PREFIX, "max_length": 413})


def test_a_prefix_whose_text_keeps_its_positions_takes_none(paper):
    assert checked(paper, {**PREFIX, "positions": "kept", "max_length": 512})
    with pytest.raises(
        BadInput, match="513 is more than the 512 positions of backbone 'bert-mini'; lower it"
    ):
        checked(paper, {**PREFIX, "positions": "kept", "max_length": 513})


@pytest.mark.parametrize("tuner", ["prefix", "lora"])
@pytest.mark.parametrize("layers", ["1-5", "5-5", "3-2"])
def test_layers_that_a_backbone_has_not_are_refused(paper, tuner, layers):
    assert checked(paper, {"tuner": tuner, "layers": "4-4"})
    said = f"layers {layers} are none of backbone 'bert-mini', which has 4; choose from 1-4"
    with pytest.raises(BadInput, match=said):
        checked(paper, {"tuner": tuner, "layers": layers})


def test_layers_of_a_vit_and_of_a_t5_are_checked_too(paper):
    images = Point("lpt", "vit-mini", "cifar100@imbalance=100", "tried", 42)
    assert checked(paper, {"tuner": "prefix", "layers": "1-8"}, point=images)
    with pytest.raises(BadInput, match="layers 1-9 are none of the backbone, which has 8; choose from 1-8"):
        checked(paper, {"tuner": "prefix", "layers": "1-9"}, point=images)
    texts = replace(POINT, backbone="t5-mini")
    row = {"tuner": "prefix", "input": "formatted", "template": "soft", "head": "verbalizer"}
    assert checked(paper, row, point=texts)
    with pytest.raises(BadInput, match="layers 1-99 are none of backbone 't5-mini', which has"):
        checked(paper, {**row, "layers": "1-99"}, point=texts)
    with pytest.raises(BadInput, match="positions: shifted needs a table of positions, which backbone 't5-m"):
        checked(paper, {**row, "positions": "shifted"}, point=texts)


def test_a_deberta_takes_plain_input_and_knows_distances_alone(paper):
    point = replace(POINT, backbone="deberta-xlarge")
    for tuner in ("full", "frozen", "soft_prompt", "prefix", "lora"):
        length = {"length": 20} if tuner in ("soft_prompt", "prefix") else {}
        assert checked(paper, {"tuner": tuner, "max_length": 900, **length}, point=point)
    with pytest.raises(BadInput, match="positions: shifted needs a table of positions, which backbone 'deb"):
        checked(paper, PREFIX, point=point)
    said = "backbone 'deberta-xlarge' is of the family deberta; it needs one of bert, roberta"
    with pytest.raises(BadInput, match=said):
        checked(paper, {"input": "prompted", "head": "verbalizer"}, point=point)


@pytest.mark.parametrize("family", ["deberta", "deberta-v2"])
def test_a_deberta_has_a_limit_where_its_input_has_positions(family):
    shape = {"max_position_embeddings": 512, "pad_token_id": 0}
    assert positions_of(family, shape) == 512
    assert positions_of(family, {**shape, "position_biased_input": False}) == float("inf")


@pytest.mark.parametrize(
    "row, first, said",
    [
        ({"tuner": "prefix"}, {"tuner": "prefix"}, None),
        ({"tuner": "prefix"}, {"tuner": "prefix", "mlp": True}, None),
        ({"tuner": "lora"}, {"tuner": "lora"}, None),
        ({"tuner": "prefix"}, {"tuner": "prefix", "length": 21}, "has prompts of another length"),
        (
            {"tuner": "prefix"},
            {"tuner": "prefix", "layers": "3-4"},
            "has layers 3-4, not all; they must be alike",
        ),
        ({"tuner": "lora"}, {"tuner": "lora", "rank": 4}, "has rank 4, not 8; they must be alike"),
        ({"tuner": "lora"}, {"tuner": "frozen"}, "has the tuner frozen; lora goes on from lora"),
        ({"tuner": "frozen"}, {"tuner": "lora"}, "has the tuner lora; frozen goes on from frozen"),
        (
            {"tuner": "prefix"},
            {"tuner": "full", "keep": True},
            "has the tuner full; prefix goes on from prefix",
        ),
    ],
)
def test_a_tuner_goes_on_from_weights_of_its_kind(paper, row, first, said):
    row = {**row, "start": {"method": "first"}}
    if said is None:
        assert checked(paper, row, first={"head": "predictor", **first})
        return
    with pytest.raises(BadInput, match=f"'tried' starts from glee/bert-mini/cmid/first/775, which {said}"):
        checked(paper, row, first={"head": "predictor", **first})


T5 = {"input": "formatted", "template": "soft", "head": "verbalizer"}
LARGE = {
    "prefix, kept": ({"tuner": "prefix", "length": 10**9}, POINT, "length 1000000000 makes"),
    "prefix, T5": (
        {**T5, "tuner": "prefix", "length": 10**9},
        replace(POINT, backbone="t5-mini"),
        "length 10",
    ),
    "prompt, T5": (
        {**T5, "tuner": "soft_prompt", "length": 10**9},
        replace(POINT, backbone="t5-mini"),
        "GB .*no GPU has more than 141",
    ),
    "prompt, BERT": (
        {"tuner": "soft_prompt", "length": 10**9},
        POINT,
        "GB .*no GPU has more than 141",
    ),
    "rank": ({"tuner": "lora", "rank": 10**9}, POINT, "rank 1000000000 makes"),
    "prompts": (
        {"tuner": "prompts", "length": 10**9},
        Point("lpt", "vit-mini", "cifar100@imbalance=100", "tried", 42),
        "GB .*no GPU has more than 141",
    ),
    "one block": (
        {"tuner": "prompts_shallow", "length": 10**9},
        Point("lpt", "vit-mini", "cifar100@imbalance=100", "tried", 42),
        "GB .*no GPU has more than 141",
    ),
}


@pytest.mark.parametrize("name", list(LARGE))
def test_what_learns_but_fits_no_memory_is_refused_with_the_numbers(paper, name):
    row, point, says = LARGE[name]
    with pytest.raises(BadInput, match=says):
        checked(paper, row, point=point)


@pytest.mark.parametrize(
    "config, family, says",
    [
        (
            {"model_type": "roberta"},
            "bert",
            "has model_type roberta, but its row says family: bert; say family: roberta",
        ),
        (
            {"model_type": "gpt2"},
            "bert",
            "has model_type gpt2, but its row says family: bert; known: bert, deberta",
        ),
        ({"architecture": "vit_tiny_patch16_224"}, "bert", "has architecture vit_tiny.* say family: vit"),
        ({"model_type": "xlm-roberta"}, "roberta", None),
        ({"hidden_size": 8}, "bert", None),
    ],
)
def test_a_checkpoint_of_another_family_is_refused_in_the_plan(paper, tmp_path, config, family, says):
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text(json.dumps(config), "utf-8")
    changed = merge(paper, {"backbones": {"own": {"family": family, "path": str(tmp_path)}}})
    point = replace(POINT, backbone="own")
    if says is None:
        assert checked(changed, {}, point=point)
    else:
        with pytest.raises(BadInput, match=f"^tried on cmid under glee: backbone folder .*{says}"):
            checked(changed, {}, point=point)


def test_heads_that_do_not_divide_the_width_are_refused_in_the_plan(paper):
    shape = {"hidden_size": 33, "num_attention_heads": 2}
    row = {"family": "bert", "path": "workflow/resources/backbones/bert-mini", "random": shape}
    changed = merge(paper, {"backbones": {"own": row}})
    with pytest.raises(BadInput, match="backbone 'own' has a width of 33, which its 2 heads do not divide"):
        checked(changed, {}, point=replace(POINT, backbone="own"))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_missing_from_the_folder_of_a_backbone_is_named_in_the_plan(paper, tmp_path, name):
    for other in {"config.json", "model.safetensors", "tokenizer.json"} - {name}:
        (tmp_path / other).write_text('{"model_type": "bert"}', "utf-8")
    changed = merge(paper, {"backbones": {"own": {"family": "bert", "path": str(tmp_path)}}})
    with pytest.raises(
        BadInput, match=f"{name} not found; it needs config.json, model.safetensors, tokenizer.json"
    ):
        checked(changed, {}, point=replace(POINT, backbone="own"))
