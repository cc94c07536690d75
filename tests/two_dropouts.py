"""A loss with a key of the head's, dropout, and another default: what no two components that ship have."""

from __future__ import annotations

from tailprompt.components import resolve, training
from tailprompt.components.declare import component, key, settings_of
from tailprompt.plan.schemas import validator
from tailprompt.training.losses import LOSSES, cross_entropy


@component("clouded")
class Clouded:
    """Cross-entropy of logits some of which are dropped."""

    dropout: float = key(0.5, "of logits", minimum=0, exclusiveMaximum=1)


def clouded(logits, labels, counts, *, dropout: float):
    """The function of its name."""
    return cross_entropy(logits * (1 - dropout), labels, counts)


def added(patch) -> None:
    """Make it a loss; patch: pytest's monkeypatch."""
    patch.setattr(training, "Loss", training.Loss | Clouded)
    patch.setitem(LOSSES, "clouded", clouded)
    forget()


def forget() -> None:
    """Let everything that was read of declarations be read again."""
    for known in (settings_of, resolve.options, resolve.readers, resolve.keys, resolve.checkers, validator):
        known.cache_clear()
