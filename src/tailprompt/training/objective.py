"""What a run minimises: the classification loss of each branch, the term of the keys, and mixed labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jaxtyping import Float, Int
from torch import Tensor

from tailprompt.components.resolve import values
from tailprompt.components.training import Training
from tailprompt.training.losses import LOSSES

BRANCH = "_instance"  # suffix of the keys for the second branch of dual sampling


def objective(
    training: Training,
    counts: Float[Tensor, " classes"],
    *,
    scale: float = 1.0,
    key_weight: float | None = None,
    key_scaled: bool = False,
) -> Callable:
    """The loss of a run for the loop: (outputs, labels, branch, elapsed) -> loss per example or token.

    outputs: logits, or (logits, added term of each example). The added term is 1 - cosine(query, keys) (LPT
    Eq. 5) if there is a key_weight, and otherwise the losses of the sentinels. labels: class ids, or (class
    ids, class ids mixed in, share of the first), or those of tokens or answers (`tasks.task.Given`). counts:
    training examples of each class. scale: of the logits.
    """
    branches = branches_of(training, counts, scale)
    weight = getattr(training.sampler, "dual_weight", None)

    def cost(outputs, labels, branch: int, elapsed: float | Tensor) -> Float[Tensor, " batch"]:
        logits, added = outputs if isinstance(outputs, tuple) else (outputs, None)
        if logits.ndim == 3:
            return of_tokens(branches[branch], logits.float(), labels)
        loss = mixed(branches[branch], logits.float(), labels)
        beta = weight * (1 - elapsed) if branch else 1.0  # LPT section 4.2: eta (E - e) / E
        if added is None:
            return beta * loss
        if key_weight is None:
            return (loss + added.sum(1)) / (1 + added.shape[1])  # code of PPT: the mean over decoded tokens
        keys = key_weight * added.float()
        return beta * loss + (beta * keys if key_scaled else keys)  # LPT Eq. 5

    return cost


def branches_of(training: Training, counts: Float[Tensor, " classes"], scale: float) -> list[Callable]:
    """The loss of each branch. The second may have values of its own, under keys that end in BRANCH."""
    loss, keyed = training.loss, values(training.loss, sampler=training.sampler.name)
    first = {key: value for key, value in keyed.items() if not key.endswith(BRANCH)}
    own = {key: keyed.get(f"{key}{BRANCH}") for key in first}
    second = {key: first[key] if own[key] is None else own[key] for key in first}
    scaled = {"scale": scale} if getattr(loss, "scaled", False) else {}
    return [partial(LOSSES[loss.name], counts=counts, **scaled, **keys) for keys in (first, second)]


def of_tokens(
    loss: Callable, logits: Float[Tensor, "batch tokens outputs"], labels: Int[Tensor, "batch labels"]
) -> Float[Tensor, " items"]:
    """The loss of each labelled token, 0 of others; or the mean of an answer's first and last token."""
    if labels.shape != logits.shape[:2]:
        ends = logits.transpose(1, 2).flatten(0, 1)  # the classes are the places of the text, all alike
        alike = ends.new_ones(ends.shape[1])
        return loss(ends, labels.flatten(), counts=alike).unflatten(0, labels.shape).mean(1)
    there = labels >= 0
    costs = loss(logits.flatten(0, 1), labels.where(there, 0).flatten())
    return costs.where(there.flatten(), 0.0)


def mixed(loss: Callable, logits: Float[Tensor, "batch classes"], labels) -> Float[Tensor, " batch"]:
    """The loss of labels, or of two mixed labels weighted by their shares (Zhang et al. 2018, section 2)."""
    if not isinstance(labels, tuple):
        return loss(logits, labels)
    first, second, share = labels
    return share * loss(logits, first) + (1 - share) * loss(logits, second)
