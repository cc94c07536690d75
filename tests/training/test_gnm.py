"""GNM: gradients beside the weights, which stay where they were."""

import torch
from torch import nn

from tailprompt.training.optimizers import beside, near


def test_weights_are_near_inside_and_where_they_were_outside_to_the_bit():
    model = nn.Linear(50, 40)
    model.bias.requires_grad_(False)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    with beside(model, 0.3):
        moved = (model.weight - before["weight"]) / 0.3
        assert torch.equal(model.bias, before["bias"])
        assert 0.3 < moved.std() < 0.36 and 0.9 < moved.abs().max() <= 1.001  # SD 1/3, cut at 1
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())


def test_the_gradient_is_that_of_the_place_beside():
    model, x = nn.Linear(3, 1, bias=False), torch.randn(5, 3)
    with beside(model, 0.5):
        there = model.weight.detach().clone()
        (model(x) ** 2).sum().backward()
    expected = 2 * (x @ there.T * x).sum(0)
    torch.testing.assert_close(model.weight.grad[0], expected)


def test_a_distance_of_zero_and_other_optimizers_change_nothing():
    model, told = nn.Linear(3, 1), type("Told", (), {"name": "sgd"})
    before = model.weight.detach().clone()
    with near(model, told, torch.no_grad), beside(model, 0.0):
        assert torch.equal(model.weight, before)
