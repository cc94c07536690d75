"""LoRA on layers that compute queries, keys and values at once: the first and the last of them change."""

import warnings

import pytest
import tiny_vit
import torch
import toy_images
from rounding import TEXT, assert_near
from safetensors.torch import load_file

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.model.compose import compose
from tailprompt.model.tuners.lora import PARTS, joint_projections, together
from tailprompt.model.weights import load_trained, write_weights

BATCH = {"pixels": tiny_vit.images(3)}
WORDS = [[100], [200], [300]]
WIDTH, DEPTH = tiny_vit.WIDTH, tiny_vit.DEPTH


def fresh(**changes):
    torch.manual_seed(0)
    run = run_of(toy_images.settings("", **{"tuner": "lora", **changes}))
    return compose(tiny_vit.backbone(tiny_vit.vit()), run, words=WORDS).eval()


def made(**changes):
    """A model whose changes are no longer zero."""
    model = fresh(**changes)
    for change in model.body.lora.values():
        torch.nn.init.normal_(change.up)
    return model


def plain():
    """The same model without any change."""
    model = fresh()
    for _, (layer, _) in joint_projections(model.body.pretrained, range(DEPTH)):
        layer._forward_hooks.clear()
    return model


def parts_of(model, name):
    """The changes of queries and of values of the layer with this name."""
    return [model.body.lora[f"{name.replace('.', '_')}_{part}"] for part in PARTS]


def test_it_begins_as_the_plain_vit_and_then_differs():
    assert torch.equal(fresh()(BATCH), plain()(BATCH))
    assert not torch.allclose(made()(BATCH), plain()(BATCH))


def test_changes_that_are_added_to_the_weights_score_alike():
    model, folded = made(), plain()
    for name, (layer, _) in joint_projections(folded.body.pretrained, range(DEPTH)):
        query, value = parts_of(model, name)
        layer.weight.data[:WIDTH] += 2.0 * query.up @ query.down  # alpha 16, rank 8
        layer.weight.data[2 * WIDTH :] += 2.0 * value.up @ value.down
    assert_near(model(BATCH), folded(BATCH), rounded=TEXT)


@pytest.mark.parametrize("groups", [1, 2])
def test_keys_do_not_change_and_each_part_is_where_the_layer_computes_it(groups):
    query, value = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    split = together(query, value, groups).view(2, 3, groups, 3, 8 // groups)
    assert torch.equal(split[..., 0, :].flatten(2), query) and torch.equal(split[..., 2, :].flatten(2), value)
    assert not split[..., 1, :].any()


def test_peft_scores_alike_with_both_matrices_in_one_of_twice_the_rank():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
    model = made()
    config = peft.LoraConfig(r=16, lora_alpha=32, target_modules=["qkv"])
    theirs = peft.inject_adapter_in_model(config, tiny_vit.vit()).eval().requires_grad_(False)
    for index, layer in enumerate(theirs.blocks):
        query, value = parts_of(model, f"blocks.{index}.attn.qkv")
        up = torch.zeros(3 * WIDTH, 16)
        up[:WIDTH, :8], up[2 * WIDTH :, 8:] = query.up, value.up
        layer.attn.qkv.lora_A["default"].weight.data.copy_(torch.cat([query.down, value.down]))
        layer.attn.qkv.lora_B["default"].weight.data.copy_(up)
    given = theirs.forward_features(BATCH["pixels"])[:, 0]
    assert_near(model.body(BATCH).vector, given, rounded=TEXT)


def test_only_the_changes_of_the_chosen_blocks_and_the_head_learn():
    model = made(layers="2-3").train()
    model(BATCH).square().sum().backward()
    learned = {name for name, value in model.named_parameters() if value.requires_grad}
    changes = {
        f"body.lora.blocks_{block}_attn_qkv_{part}.{matrix}"
        for block in (1, 2)
        for part in PARTS
        for matrix in ("down", "up")
    }
    assert learned == changes | {"head.predictor.weight", "head.predictor.bias"}
    assert all(model.get_parameter(name).grad.abs().sum() > 0 for name in learned)
    assert not any(value.grad is not None for value in model.body.pretrained.parameters())


def test_norms_may_learn_beside():
    learned = {name for name, value in fresh(norms="tuned").named_parameters() if value.requires_grad}
    assert "body.pretrained.blocks.0.norm1.weight" in learned


def test_what_is_written_and_loaded_scores_alike(tmp_path):
    model = made()
    write_weights(tmp_path / "weights.safetensors", model, tuned=False, keep=False)
    assert not any(name.startswith("body.pretrained") for name in load_file(tmp_path / "weights.safetensors"))
    other = fresh()
    load_trained(other, tmp_path)
    assert torch.equal(other(BATCH), model(BATCH))
    with pytest.raises(BadInput, match="is of another model"):
        load_trained(fresh(rank=4), tmp_path)
