"""The component of training on pairs, after which a head is fitted (SetFit)."""

from __future__ import annotations

from tailprompt.components.declare import choice, component, key
from tailprompt.components.training import Optimizer, Schedule


@component("pairs")
class Pairs:
    """Pairs of one class are drawn together, pairs of two apart (SetFit, Tunstall et al. 2022, section 3)."""

    optimizer: Optimizer = choice("adamw", "the optimizer")
    schedule: Schedule = choice("linear", "the course of the learning rate after the warm-up")
    lr: float = key(says="the highest learning rate", exclusiveMinimum=0)
    clip: float = key(0.0, "largest norm of the gradient; 0 does not clip", minimum=0)
    pairs: int = key(16, "pairs a step, half of them of one class", minimum=2)
    steps: int = key(1000, "steps", minimum=1)
    rising: float = key(0.1, "share of the steps in which the learning rate rises", minimum=0, maximum=1)
