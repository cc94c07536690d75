"""Losses: limits, closed forms and parity with formulas written another way."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rounding import LOSS, assert_near
from torch.nn.functional import cross_entropy, log_softmax

from tailprompt.components.resolve import options, values
from tailprompt.training.losses import (
    LOSSES,
    asymmetric_gcl,
    asymmetric_gcl_as_released,
    balanced_softmax,
    class_balanced,
    focal,
    focal_as_released,
    gcl,
    ldam,
    logit_adjusted,
)
from tailprompt.training.objective import BRANCH

COUNTS = torch.tensor([900.0, 90.0, 9.0, 1.0])

FOCUS = ("lambda_positive", "lambda_negative")
GCL = [gcl, asymmetric_gcl, asymmetric_gcl_as_released]
# of the logits that each is for
SCALES = {"ldam": 30.0, "gcl": 1.0, "asymmetric_gcl": 1.0, "asymmetric_gcl_as_released": 20.0}


def declared(loss):
    """The hyper-parameters of a loss as its component declares them, and a scale where it takes one."""
    name = loss.__name__
    scale = {"scale": SCALES[name]} if name in SCALES else {}
    return values(options("loss")[name]()) | scale


def cost_of(loss, logits, labels, counts, **changes):
    """The loss with those hyper-parameters but for `changes`."""
    return loss(logits, labels, counts, **declared(loss) | changes)


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
    assert_near(
        focal(logits, labels, COUNTS, gamma=0.0),
        cross_entropy(logits, labels, reduction="none"),
        rounded=LOSS,
    )


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_focal_is_lin_et_al_equation_4(gamma):
    logits, labels = batch()
    p = probability(logits, labels)
    assert_near(
        focal(logits, labels, COUNTS, gamma=gamma).numpy(), -((1 - p) ** gamma) * np.log(p), rounded=LOSS
    )


def test_focal_as_released_is_cross_entropy_plus_its_square():
    logits, labels = batch()
    cost = -np.log(probability(logits, labels))
    assert_near(focal_as_released(logits, labels, COUNTS, gamma=1.0).numpy(), cost + cost**2, rounded=LOSS)


def test_focal_never_exceeds_cross_entropy_and_as_released_never_falls_below():
    logits, labels = batch(1)
    cost = cross_entropy(logits, labels, reduction="none")
    assert (cost_of(focal, logits, labels, COUNTS) <= cost + 1e-6).all()
    assert (cost_of(focal_as_released, logits, labels, COUNTS) >= cost - 1e-6).all()


def test_balanced_softmax_weights_each_exponential_by_its_count():
    logits, labels = batch()
    weighted = COUNTS.double().numpy() * np.exp(logits.double().numpy())
    expected = -np.log((weighted / weighted.sum(1, keepdims=True))[np.arange(64), labels.numpy()])
    assert_near(balanced_softmax(logits, labels, COUNTS).numpy(), expected, rounded=LOSS)


def test_logit_adjustment_without_prior_or_with_equal_counts_is_cross_entropy():
    logits, labels = batch()
    plain = cross_entropy(logits, labels, reduction="none")
    assert_near(logit_adjusted(logits, labels, COUNTS, prior=0.0), plain, rounded=LOSS)
    assert_near(cost_of(logit_adjusted, logits, labels, torch.full((4,), 7.0)), plain, rounded=LOSS)


def test_logit_adjusted_minimiser_recovers_balanced_posterior():
    # with f = log p(x|y), adjusted softmax is the true posterior under the prior of the counts
    likelihood = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    posterior = likelihood * COUNTS / (likelihood * COUNTS).sum()
    for label in range(4):
        cost = logit_adjusted(likelihood.log(), torch.tensor([label]), COUNTS, prior=1.0)
        assert_near(cost, -posterior[:, label].log(), rounded=LOSS)


def test_class_balanced_with_equal_counts_is_cross_entropy_and_with_beta_near_one_weighs_by_inverse_count():
    logits, labels = batch()
    plain = cross_entropy(logits, labels, reduction="none")
    assert_near(cost_of(class_balanced, logits, labels, torch.full((4,), 7.0)), plain, rounded=LOSS)
    inverse = 1 / COUNTS.double()
    weight = (4 * inverse / inverse.sum()).float()[labels]
    assert_near(
        class_balanced(logits, labels, COUNTS.double(), beta=1 - 1e-9).float(), weight * plain, rounded=LOSS
    )


def test_ldam_without_margin_is_cross_entropy():
    logits, labels = batch()
    assert_near(
        ldam(logits, labels, COUNTS, margin=0.0, scale=30.0),
        cross_entropy(logits, labels, reduction="none"),
        rounded=LOSS,
    )


def test_ldam_margin_is_largest_for_the_rarest_class_and_falls_with_the_fourth_root():
    logits = torch.zeros(4, 4)
    cost = ldam(logits, torch.arange(4), COUNTS, margin=0.5, scale=1.0)
    margin = 0.5 * (COUNTS / COUNTS.min()) ** -0.25
    by_hand = [-log_softmax(torch.eye(4)[i] * -margin[i], 0)[i] for i in range(4)]
    assert_near(cost, torch.stack(by_hand), rounded=LOSS)


UNFOCUSED = {"lambda_positive": 0.0, "lambda_negative": 0.0}
CROSS_ENTROPIES = [
    (gcl, {}),
    (asymmetric_gcl, {"lambda_negative": 1e9}),
    (asymmetric_gcl_as_released, {**UNFOCUSED, "margin": 0.0, "smoothing": 0.0}),
]


@pytest.mark.parametrize("loss, limit", CROSS_ENTROPIES)
def test_gcl_without_noise_or_with_equal_counts_is_cross_entropy(loss, limit):
    logits, labels = batch()
    plain = cross_entropy(logits, labels, reduction="none")
    assert_near(cost_of(loss, logits, labels, COUNTS, noise=0.0, **limit), plain, rounded=LOSS)
    assert_near(cost_of(loss, logits, labels, torch.full((4,), 7.0), **limit), plain, rounded=LOSS)


@pytest.mark.parametrize("loss", GCL[1:])
def test_a_gcl_without_focus_is_cross_entropy_with_its_targets(loss):
    """Eq. 8 gives each class a target of 1; the released code, smoothed labels."""
    logits, labels = batch()
    released = loss is asymmetric_gcl_as_released
    target = torch.eye(4)[labels] * 0.9 + 0.1 / 4 if released else torch.ones(64, 4)
    without = {"noise": 0.0, **({"margin": 0.0} if released else {})}
    assert_near(
        cost_of(loss, logits, labels, COUNTS, **UNFOCUSED, **without),
        cross_entropy(logits, target, reduction="none"),
        rounded=LOSS,
    )


def double_batch():
    logits, labels = batch()
    generator = torch.Generator().manual_seed(1)
    epsilon = torch.randn(64, 4, generator=generator, dtype=torch.float64)
    return logits.double(), labels, epsilon, np.arange(64), labels.numpy()


def test_gcl_is_lpt_equations_6_to_8():
    logits, labels, epsilon, row, y = double_batch()
    s, n = logits.numpy() / 5, COUNTS.double().numpy()
    v = 5 * (s - (np.log(n.max()) - np.log(n)) * np.abs(epsilon.numpy()))
    p = np.exp(v) / np.exp(v).sum(1, keepdims=True)
    found = gcl(logits, labels, COUNTS.double(), noise=1.0, scale=5.0, epsilon=epsilon)
    assert_near(found.numpy(), -np.log(p[row, y]), rounded=LOSS)
    for positive, negative in [(0.0, 4.0), (0.5, 8.0), (2.0, 1.0)]:
        expected = (1 - p[row, y]) ** positive * np.log(p[row, y])
        for i in range(4):
            expected += np.where(y == i, 0.0, p[:, i] ** negative * np.log(p[:, i]))
        focus = {"lambda_positive": positive, "lambda_negative": negative, "noise": 1.0, "scale": 5.0}
        found = asymmetric_gcl(logits, labels, COUNTS.double(), epsilon=epsilon, **focus)
        assert_near(found.numpy(), -expected, rounded=LOSS)


@pytest.mark.parametrize("positive, negative", [(0.0, 4.0), (0.5, 8.0)])
def test_a_gcl_as_released_is_the_released_arithmetic(positive, negative):
    logits, labels, epsilon, row, y = double_batch()
    cosine, size = logits.numpy() / 20, np.log(COUNTS.double().numpy())
    size = size.max() - size
    noise = np.clip(epsilon.numpy() / 3, -1, 1)
    output = cosine - 0.5 * np.abs(noise) / size.max() * size
    output[row, y] -= 0.1
    p = np.exp(20 * output) / np.exp(20 * output).sum(1, keepdims=True)
    is_label = np.eye(4)[y]
    weight = (1 - p * is_label - (1 - p) * (1 - is_label)) ** (
        positive * is_label + negative * (1 - is_label)
    )
    expected = -((is_label * 0.9 + 0.1 / 4) * weight * np.log(p)).sum(1)
    focus = {"lambda_positive": positive, "lambda_negative": negative}
    found = cost_of(asymmetric_gcl_as_released, logits, labels, COUNTS.double(), epsilon=epsilon, **focus)
    assert_near(found.float(), expected, rounded=LOSS)


@pytest.mark.parametrize("loss", GCL)
def test_gcl_asks_more_of_rarer_classes(loss):
    cost = cost_of(loss, torch.zeros(4, 4), torch.arange(4), COUNTS, epsilon=torch.ones(4, 4), scale=1.0)
    assert (cost.diff() > 0).all()


@pytest.mark.parametrize("loss", GCL)
def test_gcl_draws_anew_from_the_seed_of_the_run(loss):
    logits, labels = batch()
    torch.manual_seed(3)
    first, second = (cost_of(loss, logits, labels, COUNTS) for _ in range(2))
    torch.manual_seed(3)
    assert torch.equal(first, cost_of(loss, logits, labels, COUNTS)) and not torch.equal(first, second)


@pytest.mark.parametrize("loss", GCL[1:])
@pytest.mark.parametrize("positive", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [-1e4, -60.0, 60.0, 1e4])
def test_a_gcl_and_its_gradient_stay_finite_at_p_of_one_and_of_zero(loss, positive, size):
    logits = (torch.eye(4)[:1] * size).requires_grad_(True)
    focus = {"lambda_positive": positive, "lambda_negative": 0.5}
    cost = cost_of(loss, logits, torch.tensor([0]), COUNTS, noise=0.0, **focus)
    cost.sum().backward()
    assert cost.isfinite().all() and logits.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
@given(st.floats(-60, 60), st.integers(0, 3))
@settings(max_examples=25)
def test_loss_and_gradient_stay_finite(name, size, label):
    logits = (torch.eye(4)[:1] * size).requires_grad_(True)
    counts = torch.tensor([5.0, 1.0, 0.0, 300.0])
    cost_of(LOSSES[name], logits, torch.tensor([label]), counts).sum().backward()
    assert logits.grad.isfinite().all()


POWERS = [(name, key) for name in LOSSES for key in declared(LOSSES[name]) if key in ("gamma", *FOCUS)]


@pytest.mark.parametrize("name, key", POWERS)
@pytest.mark.parametrize("power", [0.0, 0.1, 0.5, 0.9, 2.0])
@pytest.mark.parametrize("size", [-1e4, -60.0, 0.0, 18.0, 60.0, 1e4])
def test_loss_and_gradient_stay_finite_at_every_power_of_a_probability(name, key, power, size):
    logits = (torch.eye(4)[:1] * size).requires_grad_(True)
    cost = cost_of(LOSSES[name], logits, torch.tensor([0]), COUNTS, **{key: power})
    cost.sum().backward()
    assert cost.isfinite().all() and logits.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_is_per_example(name):
    logits, labels = batch()

    def cost(rows):
        drawn = {"epsilon": batch(1)[0][rows]} if "noise" in declared(LOSSES[name]) else {}
        return cost_of(LOSSES[name], logits[rows], labels[rows], COUNTS, **drawn)

    assert_near(cost(slice(64)), torch.cat([cost([i]) for i in range(64)]), rounded=LOSS)


@pytest.mark.parametrize("name", LOSSES)
def test_each_hyper_parameter_of_a_loss_is_declared_with_a_default_and_no_default_is_in_its_signature(name):
    parameters = inspect.signature(LOSSES[name]).parameters.values()
    taken = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert taken.pop("epsilon", None) is None
    assert taken.keys() == declared(LOSSES[name]).keys() and {*taken.values()} <= {inspect.Parameter.empty}
    assert ("scale" in taken) == getattr(options("loss")[name], "scaled", False)


def test_every_declared_loss_is_there_and_none_else():
    assert options("loss").keys() == LOSSES.keys()


@pytest.mark.parametrize("name", LOSSES)
def test_the_second_branch_has_anew_what_a_loss_has(name):
    keys = values(options("loss")[name](), sampler="dual")
    assert values(options("loss")[name]()).keys() <= keys.keys()
    assert {key.removesuffix(BRANCH) for key in keys} == {key for key in keys if not key.endswith(BRANCH)}
