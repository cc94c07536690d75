"""Schedules agree with those of the libraries and papers that they come from."""

import pytest
import torch
from timm.scheduler import CosineLRScheduler
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from transformers import get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

from tailprompt.training.schedules import (
    constant,
    cosine,
    cosine_as_released,
    exponential,
    inverse_root,
    linear,
)

STEPS = 8  # an epoch


@pytest.mark.parametrize(
    "ours, theirs",
    [(linear, get_linear_schedule_with_warmup), (cosine, get_cosine_schedule_with_warmup)],
)
def test_schedules_are_those_of_transformers(ours, theirs):
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule, factor = theirs(optimizer, 2 * STEPS, 50), ours(50, STEPS, warmup=2)
    for step in range(51):
        assert abs(schedule.get_last_lr()[0] - factor(step)) < 1e-9
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("schedule", [constant, inverse_root])
def test_schedules_of_ppt_rise_over_the_warm_up_and_then_stay_or_fall_with_the_root(schedule):
    rising = [schedule(100, 5, warmup=2.0)(step) for step in range(11)]
    assert rising == [step / 10 for step in range(11)]
    factor = schedule(100, 5, warmup=0.0)
    assert factor(0) == 1 and factor(15) == (1 if schedule is constant else 1 / 4)


@pytest.mark.parametrize("base", [0.02, 0.002, 3e-3])
@pytest.mark.parametrize("warmup", [5, 1, 0])
def test_the_released_schedule_is_timms_with_a_step_an_epoch(warmup, base):
    epochs = 12
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=base)
    theirs = CosineLRScheduler(
        optimizer, t_initial=epochs, warmup_t=warmup, warmup_lr_init=1e-6, warmup_prefix=False
    )
    factor = cosine_as_released(epochs * STEPS, STEPS, warmup=warmup, lr=base)
    for epoch in range(epochs):
        theirs.step(epoch)
        rates = {base * factor(epoch * STEPS + step) for step in range(STEPS)}
        assert len(rates) == 1 and rates.pop() == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)


def test_the_exponential_schedule_is_torchs_with_a_step_an_epoch():
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    theirs, factor = ExponentialLR(optimizer, gamma=0.95), exponential(5 * STEPS, STEPS, warmup=0.0)
    for epoch in range(5):
        rates = [factor(epoch * STEPS + step) for step in range(STEPS)]
        assert rates == pytest.approx([theirs.get_last_lr()[0]] * STEPS, abs=1e-12)
        optimizer.step()
        theirs.step()
