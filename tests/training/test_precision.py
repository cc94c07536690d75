"""What a model computes in bfloat16, and what stays as it is."""

import pytest
import torch
from conftest import ROW_T5
from torch import nn

from tailprompt.model import backbones
from tailprompt.training import precision
from tailprompt.training.precision import lowering, rounded


class Shared(nn.Module):
    """A weight that two modules share, and a head that stays exact."""

    exact = ("head",)

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
        self.two.weight = self.one.weight

    def forward(self, given):
        return self.head(self.two(self.one(given.to(self.one.weight.dtype))).float())


def test_parameters_are_rounded_within_and_themselves_again_after():
    model = Shared()
    before = dict(model.named_parameters())
    with rounded(model):
        assert model.one.weight is model.two.weight and model.one.weight.dtype == torch.bfloat16
        assert model.head.weight is before["head.weight"]
    assert all(value is before[name] for name, value in model.named_parameters())


def test_gradients_are_those_of_the_rounded_model_and_reach_the_exact_parameters():
    model, given = Shared(), torch.randn(5, 3)
    with rounded(model):
        model(given).sum().backward()
    weight, bias = (
        value.detach().bfloat16().requires_grad_() for value in (model.one.weight, model.one.bias)
    )
    middle = nn.functional.linear(given.bfloat16(), weight, bias)
    model.head(nn.functional.linear(middle, weight, model.two.bias.bfloat16()).float()).sum().backward()
    assert model.one.weight.grad.dtype == torch.float32
    assert torch.equal(model.one.weight.grad, weight.grad.float())
    assert torch.equal(model.one.bias.grad, bias.grad.float())


def test_frozen_parameters_are_rounded_once(monkeypatch):
    model = Shared()
    model.two.requires_grad_(False)
    monkeypatch.setattr(precision, "halves", lambda *_: True)
    within, seen = precision.lowering(model, "bfloat16", torch.device("cpu")), []
    for _ in range(2):
        with within():
            seen.append((model.one.weight, model.two.bias, model.one.bias))
            model(torch.ones(5, 3)).sum().backward()
    (weight, frozen, learned), again = seen
    assert weight is again[0] and frozen is again[1] and learned is not again[2]
    assert model.one.bias.grad is not None and model.two.bias.grad is None


def test_a_pass_that_fails_leaves_the_parameters_as_they_were():
    model = Shared()
    before = model.one.weight
    with pytest.raises(RuntimeError), rounded(model):
        model(torch.zeros(5, 7))
    assert model.one.weight is before


@pytest.mark.parametrize("row", ["bert", "t5"])
def test_a_language_model_comes_near_in_bfloat16(backbone, row):
    body = (backbone if row == "bert" else backbones.load(ROW_T5)).body.eval()
    ids = torch.randint(10, 500, (4, 9))
    given = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }
    exact = body(**given).last_hidden_state
    with rounded(body):
        made = body(**given).last_hidden_state
        read = getattr(body, "lm_head", None)  # by a T5's head, which computes in float32
        assert read is None or read.weight.dtype == torch.float32
    assert made.dtype == torch.bfloat16 and (made - exact).norm() < 0.05 * exact.norm()


def test_a_cpu_computes_in_full():
    model = Shared()
    with lowering(model, "bfloat16", torch.device("cpu"))():
        assert model.one.weight.dtype == torch.float32


@pytest.mark.parametrize(
    "device, capability, asked, computed",
    [
        ("cpu", (8, 0), "bfloat16", "float32"),
        ("cpu", (8, 0), "tf32", "float32"),
        ("cuda", (9, 0), "bfloat16", "bfloat16"),
        ("cuda", (9, 0), "tf32", "tf32"),
        ("cuda", (9, 0), "float32", "float32"),
        ("cuda", (7, 0), "tf32", "float32"),
        ("cuda", (7, 0), "bfloat16", "float32"),
    ],
)
def test_what_is_computed_in_is_what_the_device_has(monkeypatch, device, capability, asked, computed):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: capability >= (8, 0))
    assert precision.computed_in(torch.device(device), asked) == computed
