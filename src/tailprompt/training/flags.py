"""What a run is flagged for: it ended well, but its numbers may say nothing of the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tailprompt.tasks.one_class import one_class

STILL = 0.01  # the share by which a loss has to change at least
USED = 0.5  # the share of a pool that dev and test have to choose at least


def flags(
    curve: Sequence[Mapping], rows: pd.DataFrame, classes: Sequence[str], *, pool: int = 0
) -> dict[str, str]:
    """Name -> a sentence for the log. curve: the evaluations of training. rows: the predictions of the run.

    classes: names of the outputs. pool: how many group prompts there are to choose from; 0 without any.
    """
    found = {
        "still": still([each["loss"] for each in curve]),
        **constant(rows, classes),
        "collapsed": collapsed(rows, pool),
    }
    return {name: sentence for name, sentence in found.items() if sentence}


def still(losses: Sequence[float]) -> str | None:
    """A loss that never changed by STILL of what it was at the first evaluation."""
    if len(losses) < 2 or max(abs(loss - losses[0]) for loss in losses) >= STILL * abs(losses[0]):
        return None
    return f"the training loss does not move: {losses[0]:.4g} at first and {losses[-1]:.4g} at last"


def constant(rows: pd.DataFrame, classes: Sequence[str]) -> dict[str, str]:
    """Test examples of several classes that are all, or nearly all, predicted to be of one."""
    if (found := one_class(rows[rows["split"] == "test"])) is None:
        return {}
    only, share = found
    name = f"'{classes[only]}'" if only < len(classes) else "another token"
    if share == 1:
        return {"constant": f"every prediction on test is {name}"}
    return {"nearly_constant": f"{share:.1%} of the predictions on test are {name}, which far fewer are"}


def collapsed(rows: pd.DataFrame, pool: int) -> str | None:
    """A pool of group prompts of which the images choose fewer than USED."""
    if not pool or "prompts" not in rows or not len(rows):
        return None
    choices = np.concatenate([*rows["prompts"]])
    used, most = len({*choices.tolist()}), min(pool, len(choices))
    if used >= USED * most:
        return None
    return f"the pool of group prompts has collapsed: {used} of {pool} are ever chosen"
