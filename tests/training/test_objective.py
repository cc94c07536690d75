"""What a run minimises: branches and their weights, the keys' term, mixed labels."""

import pytest
import torch
import toy
from torch.nn.functional import cross_entropy

from tailprompt.components import losses
from tailprompt.components.resolve import options
from tailprompt.components.training import Training
from tailprompt.errors import BadInput
from tailprompt.training.losses import LOSSES, asymmetric_gcl_as_released, ldam, logit_adjusted
from tailprompt.training.objective import objective

COUNTS = torch.tensor([90.0, 9.0, 1.0])
LOGITS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
LABELS, OTHERS = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([2, 2, 1, 0, 0])
MATCH = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
COST = cross_entropy(LOGITS, LABELS, reduction="none")


def cost(outputs=LOGITS, labels=LABELS, *, loss=None, dual_weight=0.5, branch=0, elapsed=0.0, **keys):
    """What a run with dual sampling loses."""
    training = Training(
        loss=loss or losses.CrossEntropy(),
        sampler=losses.Dual(dual_weight=dual_weight),
        lr=0.1,
        batch=5,
        epochs=1.0,
        patience=1.0,
    )
    return objective(training, COUNTS, **keys)(outputs, labels, branch, elapsed)


@pytest.mark.parametrize("elapsed", [0.0, 0.25, 0.975])
def test_the_second_branch_alone_is_weighed_by_what_is_left_of_eta(elapsed):
    assert torch.equal(cost(elapsed=elapsed, dual_weight=0.5), COST)
    assert torch.allclose(cost(branch=1, elapsed=elapsed, dual_weight=0.5), 0.5 * (1 - elapsed) * COST)


@pytest.mark.parametrize("branch, beta", [(0, 1.0), (1, 0.3)])
def test_what_keys_add_is_unscaled_and_as_released_scaled_with_its_branch(branch, beta):
    told = {"branch": branch, "elapsed": 0.4, "dual_weight": 0.5, "key_weight": 0.7}
    plain, released = (cost((LOGITS, MATCH), key_scaled=scaled, **told) for scaled in (False, True))
    assert torch.allclose(plain, beta * COST + 0.7 * MATCH)
    assert torch.allclose(released, beta * (COST + 0.7 * MATCH))


def test_mixed_labels_are_two_losses_by_their_shares():
    share = torch.tensor(0.3)
    second = cross_entropy(LOGITS, OTHERS, reduction="none")
    assert torch.allclose(cost(labels=(LABELS, OTHERS, share)), 0.3 * COST + 0.7 * second)
    assert torch.allclose(cost(labels=(LABELS, LABELS, share)), COST)
    soft = 0.3 * torch.eye(3)[LABELS] + 0.7 * torch.eye(3)[OTHERS]
    assert torch.allclose(
        cost(labels=(LABELS, OTHERS, share)), cross_entropy(LOGITS, soft, reduction="none"), atol=1e-6
    )


def test_the_second_branch_has_lambdas_of_its_own_where_they_are_stated():
    told = {"noise": 0.0, "margin": 0.5, "smoothing": 0.1}
    own = {"lambda_positive_instance": 0.5, "lambda_negative_instance": 8.0}
    plain, stated = (losses.AsymmetricGclAsReleased(**told, **more) for more in ({}, own))

    def expected(positive, negative):
        lambdas = {"lambda_positive": positive, "lambda_negative": negative}
        return asymmetric_gcl_as_released(LOGITS, LABELS, COUNTS, **told, **lambdas, scale=1.0)

    assert torch.equal(cost(loss=stated, dual_weight=1.0), expected(0.0, 4.0))
    assert torch.equal(cost(loss=stated, dual_weight=1.0, branch=1), expected(0.5, 8.0))
    assert torch.equal(cost(loss=plain, dual_weight=1.0, branch=1), expected(0.0, 4.0))


def test_counts_reach_the_loss_and_bfloat16_logits_are_taken_as_float32():
    expected = logit_adjusted(LOGITS.bfloat16().float(), LABELS, COUNTS, prior=0.5)
    assert torch.equal(cost(LOGITS.bfloat16(), loss=losses.LogitAdjusted(prior=0.5)), expected)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_scale_of_the_head_is_that_of_margins(scale):
    expected = ldam(LOGITS, LABELS, COUNTS, margin=0.5, scale=scale)
    assert torch.equal(cost(loss=losses.Ldam(margin=0.5), scale=scale), expected)


def test_without_keys_what_is_added_is_the_sentinels_loss_and_the_mean_is_taken():
    assert torch.allclose(cost((LOGITS, MATCH[:, None])), (COST + MATCH) / 2)
    both = torch.stack([MATCH, 3 * MATCH], dim=1)  # before and after the answer
    assert torch.allclose(cost((LOGITS, both)), (COST + MATCH + 3 * MATCH) / 3)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_runs_as_it_is_declared(name):
    found = cost(loss=options("loss")[name](), labels=(LABELS, OTHERS, torch.tensor(0.4)))
    assert found.shape == (5,) and found.isfinite().all()


def test_an_unknown_loss_is_one_sentence():
    with pytest.raises(BadInput, match="unknown loss 'hinge'; known: "):
        toy.settings("", loss="hinge")
