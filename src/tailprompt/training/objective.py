"""What a run minimises: the classification loss of each branch, what keys add, and mixed labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor

from tailprompt.errors import named
from tailprompt.training.losses import LOSSES

INSTANCE = ("lambda_positive", "lambda_negative")  # settings that dual sampling's second branch may have anew


def objective(settings: dict, counts: Float[Tensor, " classes"]) -> Callable:
    """The loss of a run's settings for the loop: (outputs, labels, branch, elapsed) -> loss per example.

    outputs: logits, or logits and of each example 1 - cosine(query, keys) (LPT Eq. 5) or the sentinel's loss.
    labels: class ids, or (class ids, those mixed in, share of the first). counts: training examples of each
    class.
    """
    function, wanted = named(LOSSES, settings["loss"], "loss")
    own = {key: settings[f"{key}_instance"] for key in INSTANCE if settings[f"{key}_instance"] is not None}
    branches = [
        partial(function, counts=counts, **{key: told[key] for key in wanted})
        for told in (settings, {**settings, **own})
    ]

    def cost(outputs, labels, branch: int, elapsed: float) -> Float[Tensor, " batch"]:
        logits, match = outputs if isinstance(outputs, tuple) else (outputs, None)
        loss = mixed(branches[branch], logits.float(), labels)
        beta = settings["dual_weight"] * (1 - elapsed) if branch else 1.0  # LPT section 4.2: eta (E - e) / E
        if match is None:
            return beta * loss
        if settings.get("sentinel_loss"):
            return (loss + match) / 2  # code of PPT: the mean over what the decoder says
        keys = settings["key_weight"] * match.float()
        return beta * loss + (beta * keys if settings["key_scaled"] else keys)  # LPT Eq. 5

    return cost


def mixed(loss: Callable, logits: Float[Tensor, "batch classes"], labels) -> Float[Tensor, " batch"]:
    """The loss of labels, or of two mixed ones by their shares (Zhang et al. 2018, section 2)."""
    if not isinstance(labels, tuple):
        return loss(logits, labels)
    first, second, share = labels
    return share * loss(logits, first) + (1 - share) * loss(logits, second)
