"""What a run minimises: the classification loss of each branch, what keys add, and mixed labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor

from tailprompt.components.resolve import values
from tailprompt.components.training import Training
from tailprompt.training.losses import LOSSES

BRANCH = "_instance"  # ends the keys that dual sampling's second branch has anew


def objective(
    training: Training,
    counts: Float[Tensor, " classes"],
    *,
    scale: float = 1.0,
    key_weight: float | None = None,
    key_scaled: bool = False,
) -> Callable:
    """The loss of a run for the loop: (outputs, labels, branch, elapsed) -> loss per example.

    outputs: logits, or logits and what is added for each example: 1 - cosine(query, keys) (LPT Eq. 5) where
    there is a key_weight, else the sentinel's loss. labels: class ids, or (class ids, those mixed in, share
    of the first). counts: training examples of each class. scale: of the head's logits.
    """
    branches = branches_of(training, counts, scale)
    weight = getattr(training.sampler, "dual_weight", None)

    def cost(outputs, labels, branch: int, elapsed: float) -> Float[Tensor, " batch"]:
        logits, added = outputs if isinstance(outputs, tuple) else (outputs, None)
        loss = mixed(branches[branch], logits.float(), labels)
        beta = weight * (1 - elapsed) if branch else 1.0  # LPT section 4.2: eta (E - e) / E
        if added is None:
            return beta * loss
        if key_weight is None:
            return (loss + added) / 2  # code of PPT: the mean over what the decoder says
        keys = key_weight * added.float()
        return beta * loss + (beta * keys if key_scaled else keys)  # LPT Eq. 5

    return cost


def branches_of(training: Training, counts: Float[Tensor, " classes"], scale: float) -> list[Callable]:
    """The loss of each branch; the second has its own values where its component's keys give some."""
    loss, told = training.loss, values(training.loss, sampler=training.sampler.name)
    first = {key: value for key, value in told.items() if not key.endswith(BRANCH)}
    own = {key: told.get(f"{key}{BRANCH}") for key in first}
    second = {key: first[key] if own[key] is None else own[key] for key in first}
    scaled = {"scale": scale} if getattr(loss, "scaled", False) else {}
    return [partial(LOSSES[loss.name], counts=counts, **scaled, **keys) for keys in (first, second)]


def mixed(loss: Callable, logits: Float[Tensor, "batch classes"], labels) -> Float[Tensor, " batch"]:
    """The loss of labels, or of two mixed ones by their shares (Zhang et al. 2018, section 2)."""
    if not isinstance(labels, tuple):
        return loss(logits, labels)
    first, second, share = labels
    return share * loss(logits, first) + (1 - share) * loss(logits, second)
