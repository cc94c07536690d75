"""LoRA: peft's layers by their definition, and what a change of weights by hand gives."""

import warnings

import pytest
import torch
import toy
from conftest import ROW, ROW_T5
from rounding import TEXT, assert_near
from safetensors.torch import load_file

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.model.tuners.lora import projections
from tailprompt.model.weights import load_trained, write_weights

BATCH = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.tensor([[1] * 8, [1] * 5 + [0] * 3, [1] * 3 + [0] * 5]),
    "token_type_ids": torch.zeros(3, 8, dtype=torch.long),
    "position": torch.tensor([0, 1, 0]),
}
HEADS = {
    "bert": {"head": "predictor", "input": "plain"},
    "t5": {"head": "verbalizer", "input": "formatted", "template": "soft"},
}


@pytest.fixture(params=[ROW, ROW_T5], ids=["bert", "t5"])
def row(request):
    return request.param


@pytest.fixture
def peft():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("peft")


def fresh(row, **changes):
    torch.manual_seed(0)
    run = run_of(toy.settings("", **{"tuner": "lora", **HEADS[row["family"]], **changes}))
    return compose(backbones.load(row), run, words=[[100], [200], [300]]).eval()


def made(row, **changes):
    """A model whose changes are no longer zero."""
    model = fresh(row, **changes)
    for change in model.body.lora.values():
        torch.nn.init.normal_(change.up)
    return model


def plain(row):
    """The same model without any change."""
    model = fresh(row)
    for _, layer in projections(model.body.pretrained, range(9)):
        layer._forward_hooks.clear()
    return model


def test_it_begins_as_the_plain_model(row):
    assert torch.equal(fresh(row)(BATCH), plain(row)(BATCH))
    assert not torch.allclose(made(row)(BATCH), plain(row)(BATCH))


def test_changes_that_are_added_to_the_weights_score_alike(row):
    model, folded = made(row), plain(row)
    for name, layer in projections(folded.body.pretrained, range(9)):
        change = model.body.lora[name.replace(".", "_")]
        layer.weight.data += change.scale * change.up @ change.down
    assert_near(model(BATCH), folded(BATCH), rounded=TEXT)


def test_peft_scores_alike_with_the_same_matrices(row, peft):
    model = made(row)
    own = backbones.load(row).body
    named = {"bert": ["query", "value"], "t5": ["q", "v"]}[row["family"]]
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=named)
    theirs = peft.inject_adapter_in_model(config, own).eval().requires_grad_(False)
    modules = dict(theirs.named_modules())
    placed = {name.replace(".", "_"): name for name in modules}
    for name, change in model.body.lora.items():
        layer = modules[placed[name]]
        assert layer.lora_A["default"].weight.shape == change.down.shape
        layer.lora_A["default"].weight.data.copy_(change.down)
        layer.lora_B["default"].weight.data.copy_(change.up)
    assert len(model.body.lora) == sum(hasattr(each, "lora_A") for each in modules.values())
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    given = theirs(**inputs).last_hidden_state
    assert_near(model.body(BATCH).states, given, rounded=TEXT)


def test_only_the_changes_of_the_chosen_layers_and_the_head_learn():
    model = made(ROW, layers="2-2").train()
    model(BATCH).square().sum().backward()
    learned = {name for name, value in model.named_parameters() if value.requires_grad}
    place = "body.lora.encoder_layer_1_attention_self_"
    changes = {f"{place}{layer}.{matrix}" for layer in ("query", "value") for matrix in ("down", "up")}
    assert learned == changes | {"head.predictor.weight", "head.predictor.bias"}
    assert all(model.get_parameter(name).grad.abs().sum() > 0 for name in learned)


def test_a_verbalizer_stays_as_it_was_read():
    model = fresh(ROW, head="verbalizer", input="prompted")
    assert not any(value.requires_grad for value in model.head.parameters())


def test_what_is_written_and_loaded_scores_alike(row, tmp_path):
    model = made(row)
    write_weights(tmp_path / "weights.safetensors", model, tuned=False, keep=False)
    names = load_file(tmp_path / "weights.safetensors").keys()
    assert not any(name.startswith("body.pretrained") for name in names)
    torch.manual_seed(1)
    other = fresh(row)
    load_trained(other, tmp_path)
    assert torch.equal(other(BATCH), model(BATCH))
    with pytest.raises(BadInput, match="is of another model"):
        load_trained(fresh(row, rank=4), tmp_path)


@pytest.mark.parametrize("body_dropout", [True, False])
def test_what_a_change_reads_drops_in_training_and_the_body_where_it_is_told(body_dropout):
    row = {**ROW, "random": {**ROW["random"], "hidden_dropout_prob": 0.5}}
    model = made(row, body_dropout=body_dropout).train()
    assert torch.equal(model(BATCH), model(BATCH)) != body_dropout
    dropping = made(ROW, lora_dropout=0.5)
    assert torch.equal(dropping(BATCH), dropping(BATCH))
    dropping.train()
    assert not torch.equal(dropping(BATCH), dropping(BATCH))
