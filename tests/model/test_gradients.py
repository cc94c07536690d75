"""The gradient: nothing is kept for it below the first thing that learns, and frozen weights have none."""

from contextlib import contextmanager
from functools import partial

import pytest
import tiny_vit
import torch
import toy
import toy_images
from conftest import ROW, SHIPPED

from tailprompt.components.resolve import run_of
from tailprompt.model import backbones
from tailprompt.model.compose import compose

PIXELS = {"pixels": tiny_vit.images(4)}
TOKENS = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.ones(3, 8, dtype=torch.long),
    "token_type_ids": torch.zeros(3, 8, dtype=torch.long),
    "position": torch.tensor([0, 1, 0]),
}
T5 = {"family": "t5", "path": f"{SHIPPED}t5-mini", "random": {"num_layers": 2, "num_decoder_layers": 2}}


def of_images(method, **changes):
    run = run_of(toy_images.settings(method, **changes))
    return compose(tiny_vit.backbone(tiny_vit.vit()), run, words=[[], [], []]).train()


def of_texts(method, row=ROW, **changes):
    run = run_of(toy.settings(method, **changes))
    return compose(backbones.load(row), run, words=[[100], [200], [300]]).train()


@contextmanager
def kept(model):
    """The tensors, other than parameters, that autograd keeps within the block."""
    own = {value.data_ptr() for value in model.parameters()}
    held = []

    def note(tensor):
        if tensor.is_floating_point() and tensor.data_ptr() not in own:
            held.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        yield held


@pytest.mark.parametrize(
    "made, batch",
    [
        (partial(of_images, "linear"), PIXELS),
        (partial(of_images, "linear", body_dropout=True), PIXELS),
        (partial(of_texts, "cls-tanh", tuner="frozen"), TOKENS),
        (partial(of_texts, "cls-tanh", tuner="frozen", body_dropout=True), TOKENS),
        (partial(of_texts, "ft", tuner="frozen", row=T5), TOKENS),
    ],
)
def test_a_frozen_body_keeps_nothing(made, batch):
    model = made()
    with kept(model) as held:
        model.body(batch)
    assert not held
    with kept(model) as held:
        model(batch)
    assert bool(held) == any(value.requires_grad for value in model.head.parameters())


@pytest.mark.parametrize("method", ["lpt", "lpt-query-pretrained", "lpt-joint", "lpt-norm", "lpt-adapter"])
def test_the_blocks_below_group_prompts_keep_nothing_unless_something_in_them_learns(method):
    model = of_images(method)
    body = model.body
    with kept(model) as held:
        body.through(body.embed(PIXELS["pixels"]), 0, body.groups.shared_blocks)
    learns = [name for name, value in body.named_parameters() if value.requires_grad]
    assert bool(held) == any(not name.startswith("groups.") for name in learns)


@pytest.mark.parametrize(
    "made, batch",
    [
        *((partial(of_images, method), PIXELS) for method in toy.IMAGES),
        *((partial(of_texts, "pt", row=row, length=2), TOKENS) for row in (ROW, T5)),
        (partial(of_texts, "prompt"), TOKENS),
    ],
)
def test_only_what_learns_has_a_gradient(made, batch):
    model = made()
    outputs = model(batch)
    sum(part.sum() for part in (outputs if isinstance(outputs, tuple) else [outputs])).backward()
    assert all((value.grad is not None) <= value.requires_grad for value in model.parameters())
