"""The plan refuses recipes that cannot be trained."""

import copy
from inspect import signature

import pytest
from timm.models import VisionTransformer
from transformers import BertConfig, T5Config

from tailprompt.components.declare import settings_of
from tailprompt.errors import BadInput
from tailprompt.plan.config import load
from tailprompt.pretraining import recipes
from tailprompt.pretraining.objectives import TASKS
from tailprompt.pretraining.shapes import MODELS

SHIPPED = load(["config/mini.yaml"])


@pytest.mark.parametrize(
    "name, changes, said",
    [
        ("vit-mini", {"img_size": "x"}, "vit-mini.shape.img_size is 'x', not a whole number"),
        ("vit-mini", {"img_size": 0}, "vit-mini.shape.img_size: 0 is less than the minimum of 1"),
        ("vit-mini", {"d_model": 8}, "unknown key 'd_model' in pretraining.vit-mini.shape; known: .*, depth"),
        ("bert-mini", {"hidden_dropout_prob": 2}, "hidden_dropout_prob: 2 is greater than the maximum of 1"),
        ("t5-mini", {"dropout_rate": "x"}, "t5-mini.shape.dropout_rate is 'x', not a finite number"),
    ],
)
def test_a_shape_has_the_keys_of_its_model(name, changes, said):
    with pytest.raises(BadInput, match=said):
        load(["config/mini.yaml"], {"pretraining": {name: {"shape": changes}}})


def test_each_task_makes_a_model_that_has_the_keys_of_its_shape():
    assert MODELS.keys() == TASKS.keys()
    known = {each.__name__: {*vars(each())} for each in (BertConfig, T5Config)}
    known["VisionTransformer"] = {*signature(VisionTransformer).parameters}
    for model in MODELS.values():
        assert {each.name for each in settings_of(model)} <= known[model.name]


def test_the_recipes_that_ship_can_be_trained():
    recipes.check(SHIPPED["pretraining"])


@pytest.mark.parametrize(
    "name, changes, said",
    [
        ("vit-mini", {"batch": 5}, r"vit-mini\.batch is 5; Mixup takes an even number"),
        ("vit-mini", {"shape": {"img_size": 33}}, "img_size 33 is no multiple of patch_size 4"),
        ("vit-mini", {"shape": {"img_size": 48}}, "img_size 48 is more than pixels, 40"),
        ("vit-mini", {"shape": {"num_heads": 5}}, "embed_dim 192 is no multiple of num_heads 5"),
        (
            "vit-mini",
            {"augment": {"scale": [1.0, 0.4]}},
            r"scale is \[1.0, 0.4\]; the smaller share comes first",
        ),
        ("bert-mini", {"shape": {"num_attention_heads": 3}}, "hidden_size 256 is no multiple"),
        ("bert-mini", {"length": 600}, "bert-mini.length is 600; the model has 512 positions"),
        ("bert-mini", {"long": {"length": 600}}, r"long\.length is 600; the model has 512 positions"),
        (
            "bert-mini",
            {"rate": 0.99},
            "rate is 0.99, of length 128: it hides 127 tokens, and 125 can be hidden",
        ),
        (
            "bert-mini",
            {"rate": 0.98, "long": {"length": 64}},
            "of long.length 64: it hides 63 tokens, and 61",
        ),
        ("t5-mini", {"rate": 0.999}, "rate is 0.999, of length 256: it hides 256 tokens, and 255 can be"),
        (
            "t5-mini",
            {"rate": 0.5, "span": 1},
            "length 256 hides 128 spans, and 100 have a sentinel; raise span",
        ),
        (
            "t5-mini-lm",
            {"start": "t5-mini-lm"},
            "start is t5-mini-lm, which leads back to it; name another recipe",
        ),
        ("t5-mini", {"start": "t5-mini-lm"}, "t5-mini.start is t5-mini-lm, which leads back to it"),
        ("t5-small-wiki", {"reads": [5]}, "reads names part 5, and its data have 4 parts; correct it"),
        ("t5-small-wiki-lm", {"reads": [1, 7]}, "reads names part 7, and its data have 4 parts"),
        (
            "t5-mini",
            {"reads": [1]},
            "reads names part 1, and its data have no parts; correct it",
        ),
        ("t5-mini-lm", {"start": "vit-mini"}, "start is vit-mini, a VisionTransformer; .* from a T5Config"),
    ],
)
def test_a_recipe_that_could_not_be_trained_is_one_sentence(name, changes, said):
    rows = copy.deepcopy(SHIPPED["pretraining"])
    for key, value in changes.items():
        rows[name][key] = {**rows[name][key], **value} if isinstance(value, dict) else value
    with pytest.raises(BadInput, match=said):
        recipes.check(rows)
