"""What is chosen on dev: the step whose weights are kept, the exponent of tau-norm, a task's threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path

import numpy as np
from torch import Tensor

from tailprompt.components.run import Run
from tailprompt.errors import BadInput
from tailprompt.files import read_json
from tailprompt.inputs.examples import Split
from tailprompt.machine.clock import Spent, started
from tailprompt.model.compose import Model, rescaled
from tailprompt.tasks.task import Given, Task, watched
from tailprompt.training.batches import predict

Scorer = Callable[[Tensor, Given], dict[str, float]]  # logits, and what came with them -> scores


def check_dev(run: Run, rows: dict[str, int], path: Path) -> None:
    """Raise BadInput if dev must select something but cannot. rows: row counts of the splits of `path`."""
    select = run.select
    key, several = searched(run)
    if len(several) > 1 and (select == "last" or not rows["dev"]):
        raise BadInput(f"{key}: select chooses one of several on dev; state one ({path}, select: {select})")
    if len(run.tau) > 1 and (select == "last" or not rows["dev"]):
        raise BadInput(f"tau: select chooses one of several on dev; state one tau ({path}, select: {select})")
    if rows["train"] and not rows["dev"] and select != "last":
        raise BadInput(f"select: {select} needs dev rows, and {path} has none; set select: last")
    if rows["train"] and not rows["dev"] and chooses_threshold(run):
        raise BadInput(f"null_threshold is chosen on dev rows, and {path} has none; state a number, as 0.0")


def searched(run: Run) -> tuple[str, tuple]:
    """The key of a fitted head of whose values dev chooses one, and these values; one of None without any."""
    key = {"logistic_regression": "C", "neighbours": "neighbours"}.get(run.head.name, "")
    return key, getattr(run.head, key, (None,)) if key else (None,)


def chooses_threshold(run: Run) -> bool:
    """Whether dev chooses by how much no answer must be better than the best one."""
    return getattr(run.input, "unanswerable", False) and run.input.null_threshold is None


def scorer_of(task: Task, report: Mapping) -> Scorer:
    """The function from logits, and what came with them, to the scores that training watches on dev."""
    return lambda logits, given: watched(task, logits.numpy(), given, report)


def given(split: Split, threshold: float | None = None) -> Given:
    """What comes with the logits of a split. threshold: the one that dev chose, where it did."""
    sets = getattr(split, "sets", None)
    aligned, labels = getattr(split, "aligned", None), split.labels.cpu().numpy()
    return Given(labels, split.names, aligned, None if sets is None else sets.numpy(), threshold)


def dev_scores(logits: dict[str, Tensor], splits: dict[str, Split], scorer: Scorer) -> dict[str, float]:
    """The scores on dev, without those that are undefined; empty if there is none."""
    scores = scorer(logits["dev"], given(splits["dev"])) if "dev" in logits else {}
    return {name: value for name, value in scores.items() if not isnan(value)}


def predicted(
    model: Model, splits: dict[str, Split], run: Run, scorer: Scorer
) -> tuple[dict[str, Tensor], float, Spent]:
    """The logits of dev and test (if they have examples) after tau-norm, and the tau that dev selected.

    And what the predictions on test took, with the making of vectors where these are kept.
    """
    logits, took = {}, {}
    for split in ("dev", "test"):  # dev first, so that test waits for nothing that is done once
        if len(splits[split]):
            spent = started()
            logits[split] = predict(model, splits[split], precision=run.precision)
            took[split] = spent() + getattr(splits[split], "spent", Spent())
    tau = choose_tau(model, logits.get("dev"), given(splits["dev"]), run, scorer)
    return (
        {split: rescaled(model, value, tau) for split, value in logits.items()},
        tau,
        took.get("test", Spent()),
    )


def choose_tau(model: Model, logits: Tensor | None, dev: Given, run: Run, scorer: Scorer) -> float:
    """The exponent of tau-norm with the best score on dev after training; of equals the first."""
    if len(run.tau) == 1:
        return run.tau[0]
    scores = [scorer(rescaled(model, logits, tau), dev)[run.select] for tau in run.tau]
    return run.tau[int(np.argmax(scores))]


def chosen_threshold(
    task: Task, logits: dict[str, Tensor], splits: dict[str, Split], start: Path | None
) -> float | None:
    """The threshold of a task that dev chose; a data set for test alone has that of the run it evaluates."""
    if "dev" in logits:
        return task.threshold(logits["dev"].numpy(), given(splits["dev"]))
    return read_json(start / "run.json").get("threshold") if start else None
