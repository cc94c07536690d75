"""What is chosen on dev: the step whose weights are kept, and the exponent of tau-norm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import Tensor

from tailprompt.components.run import Run
from tailprompt.errors import BadInput
from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model, rescaled
from tailprompt.tasks.task import Given, Task, watched
from tailprompt.training.batches import predict

Scorer = Callable[[Tensor, Given], dict[str, float]]  # logits, and what came with them -> scores


def check_dev(run: Run, rows: dict[str, int], path: Path) -> None:
    """Raise BadInput if dev must select something but cannot. rows: row counts of the splits of `path`."""
    select = run.select
    if len(run.tau) > 1 and (select == "last" or not rows["dev"]):
        raise BadInput(f"tau: select chooses one of several on dev; state one tau ({path}, select: {select})")
    if rows["train"] and not rows["dev"] and select != "last":
        raise BadInput(f"select: {select} needs dev rows, and {path} has none; set select: last")


def scorer_of(task: Task, classes: list[str]) -> Scorer:
    """The function from logits, and what came with them, to the scores that training watches on dev."""
    return lambda logits, given: watched(task, logits.numpy(), given, classes)


def given(split: Split) -> Given:
    """What comes with the logits of a split."""
    sets = getattr(split, "sets", None)
    aligned = getattr(split, "aligned", None)
    return Given(split.labels.cpu().numpy(), split.names, aligned, None if sets is None else sets.numpy())


def dev_scores(logits: dict[str, Tensor], splits: dict[str, Split], scorer: Scorer) -> dict[str, float]:
    """The scores on dev; empty if there is none."""
    return scorer(logits["dev"], given(splits["dev"])) if "dev" in logits else {}


def predicted(
    model: Model, splits: dict[str, Split], run: Run, scorer: Scorer
) -> tuple[dict[str, Tensor], float]:
    """The logits of dev and test (if they have examples) after tau-norm, and the tau that dev selected."""
    logits = {
        split: predict(model, splits[split], precision=run.precision)
        for split in ("dev", "test")
        if len(splits[split])
    }
    tau = choose_tau(model, logits.get("dev"), given(splits["dev"]), run, scorer)
    return {split: rescaled(model, value, tau) for split, value in logits.items()}, tau


def choose_tau(model: Model, logits: Tensor | None, dev: Given, run: Run, scorer: Scorer) -> float:
    """The exponent of tau-norm with the best score on dev after training; of equals the first."""
    if len(run.tau) == 1:
        return run.tau[0]
    scores = [scorer(rescaled(model, logits, tau), dev)[run.select] for tau in run.tau]
    return run.tau[int(np.argmax(scores))]
