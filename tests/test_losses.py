"""Losses: limits, closed forms and parity with formulas written another way."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, log_softmax

from tailprompt.losses import (
    LOSSES,
    balanced_softmax,
    class_balanced,
    focal,
    focal_as_released,
    ldam,
    logit_adjusted,
)

COUNTS = torch.tensor([900.0, 90.0, 9.0, 1.0])


def batch(seed: int = 0, examples: int = 64):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(examples, 4, generator=generator, dtype=torch.float32)
    return logits, torch.randint(0, 4, (examples,), generator=generator)


def probability(logits, labels):
    """p of the label, by numpy in double precision."""
    raised = np.exp(logits.double().numpy() - logits.double().numpy().max(1, keepdims=True))
    return (raised / raised.sum(1, keepdims=True))[np.arange(len(labels)), labels.numpy()]


def test_focal_with_gamma_zero_is_cross_entropy():
    logits, labels = batch()
    assert torch.allclose(
        focal(logits, labels, COUNTS, gamma=0.0), cross_entropy(logits, labels, reduction="none")
    )


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_focal_is_lin_et_al_equation_4(gamma):
    logits, labels = batch()
    p = probability(logits, labels)
    assert np.allclose(
        focal(logits, labels, COUNTS, gamma=gamma).numpy(), -((1 - p) ** gamma) * np.log(p), atol=1e-5
    )


def test_focal_as_released_is_cross_entropy_plus_its_square():
    logits, labels = batch()
    cost = -np.log(probability(logits, labels))
    assert np.allclose(
        focal_as_released(logits, labels, COUNTS, gamma=1.0).numpy(), cost + cost**2, rtol=1e-4
    )


def test_focal_never_exceeds_cross_entropy_and_as_released_never_falls_below():
    logits, labels = batch(1)
    cost = cross_entropy(logits, labels, reduction="none")
    assert (focal(logits, labels, COUNTS) <= cost + 1e-6).all()
    assert (focal_as_released(logits, labels, COUNTS) >= cost - 1e-6).all()


def test_balanced_softmax_weights_each_exponential_by_its_count():
    logits, labels = batch()
    weighted = COUNTS.double().numpy() * np.exp(logits.double().numpy())
    expected = -np.log((weighted / weighted.sum(1, keepdims=True))[np.arange(64), labels.numpy()])
    assert np.allclose(balanced_softmax(logits, labels, COUNTS).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_logit_adjustment_without_prior_or_with_equal_counts_is_cross_entropy():
    logits, labels = batch()
    plain = cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(logit_adjusted(logits, labels, COUNTS, prior=0.0), plain)
    assert torch.allclose(logit_adjusted(logits, labels, torch.full((4,), 7.0)), plain, atol=1e-6)


def test_logit_adjusted_minimiser_recovers_balanced_posterior():
    # with f = log p(x|y), adjusted softmax is the true posterior under the prior of the counts
    likelihood = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    posterior = likelihood * COUNTS / (likelihood * COUNTS).sum()
    for label in range(4):
        cost = logit_adjusted(likelihood.log(), torch.tensor([label]), COUNTS)
        assert torch.allclose(cost, -posterior[:, label].log(), atol=1e-5)


def test_class_balanced_with_equal_counts_is_cross_entropy_and_with_beta_near_one_weighs_by_inverse_count():
    logits, labels = batch()
    plain = cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(class_balanced(logits, labels, torch.full((4,), 7.0)), plain, atol=1e-5)
    inverse = 1 / COUNTS.double()
    weight = (4 * inverse / inverse.sum()).float()[labels]
    assert torch.allclose(
        class_balanced(logits, labels, COUNTS.double(), beta=1 - 1e-9).float(), weight * plain, rtol=1e-3
    )


def test_ldam_without_margin_is_cross_entropy():
    logits, labels = batch()
    assert torch.allclose(
        ldam(logits, labels, COUNTS, margin=0.0), cross_entropy(logits, labels, reduction="none")
    )


def test_ldam_margin_is_largest_for_the_rarest_class_and_falls_with_the_fourth_root():
    logits = torch.zeros(4, 4)
    cost = ldam(logits, torch.arange(4), COUNTS, margin=0.5, logit_scale=1.0)
    margin = 0.5 * (COUNTS / COUNTS.min()) ** -0.25
    by_hand = [-log_softmax(torch.eye(4)[i] * -margin[i], 0)[i] for i in range(4)]
    assert torch.allclose(cost, torch.stack(by_hand))


@pytest.mark.parametrize("name", LOSSES)
@given(st.floats(-60, 60), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_loss_and_gradient_stay_finite(name, size, label):
    logits = (torch.eye(4)[:1] * size).requires_grad_(True)
    LOSSES[name][0](logits, torch.tensor([label]), torch.tensor([5.0, 1.0, 0.0, 300.0])).sum().backward()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_is_per_example(name):
    logits, labels = batch()
    whole = LOSSES[name][0](logits, labels, COUNTS)
    parts = torch.cat([LOSSES[name][0](logits[i : i + 1], labels[i : i + 1], COUNTS) for i in range(64)])
    assert torch.allclose(whole, parts, atol=1e-5)
