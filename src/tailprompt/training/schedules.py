"""Learning-rate schedules: the factor of the learning rate at each step.

Each function takes the number of steps in all and in an epoch, and returns a function of the step. `warmup`
counts epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Factor = Callable[[int], float]  # step -> factor of the learning rate


def linear(total: int, per_epoch: int, *, warmup: float) -> Factor:
    """Rise linearly over the warm-up, then fall linearly to zero at step `total`."""
    rising = warmup * per_epoch

    def factor(step: int) -> float:
        if step < rising:
            return step / rising
        return max(total - step, 0) / max(total - rising, 1)

    return factor


def cosine(total: int, per_epoch: int, *, warmup: float) -> Factor:
    """Rise linearly, then fall along half a cosine (Loshchilov and Hutter 2017, Eq. 5, no restarts)."""
    falling = linear(total, per_epoch, warmup=warmup)

    def factor(step: int) -> float:
        left = falling(step)
        return left if step < warmup * per_epoch else (1 - math.cos(math.pi * left)) / 2

    return factor


def constant(total: int, per_epoch: int, *, warmup: float) -> Factor:
    """Rise linearly, then stay constant (PPT appendix C)."""
    rising = warmup * per_epoch
    return lambda step: min(step / rising, 1.0) if rising else 1.0


def inverse_root(total: int, per_epoch: int, *, warmup: float) -> Factor:
    """Rise linearly, then fall as sqrt((rising + 1) / (step + 1)); rising: the steps of the rise.

    This is PPT's code; without a warm-up it is 1 / sqrt(step + 1).
    """
    rising = warmup * per_epoch
    return lambda step: step / rising if step < rising else math.sqrt((rising + 1) / (step + 1))


def exponential(total: int, per_epoch: int, *, warmup: float) -> Factor:
    """Rise linearly, then fall to 0.95 of itself after each epoch (code of P-Tuning v2, ExponentialLR)."""
    rising = constant(total, per_epoch, warmup=warmup)
    return lambda step: rising(step) * 0.95 ** (step // per_epoch)


def cosine_as_released(total: int, per_epoch: int, *, warmup: float, lr: float) -> Factor:
    """Change once an epoch, and after the warm-up fall along a cosine that began at epoch 0 (code of LPT).

    The warm-up begins at a rate of 1e-6. lr: the rate that the factor is of.
    """
    epochs, least = total / per_epoch, 1e-6 / lr

    def factor(step: int) -> float:
        epoch = step // per_epoch
        if epoch < warmup:
            return least + (1 - least) * epoch / warmup
        return (1 + math.cos(math.pi * epoch / epochs)) / 2

    return factor


SCHEDULES = {
    "linear": linear,
    "cosine": cosine,
    "cosine_as_released": cosine_as_released,
    "constant": constant,
    "inverse_root": inverse_root,
    "exponential": exponential,
}
