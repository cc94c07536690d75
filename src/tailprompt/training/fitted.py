"""Heads that are fitted (`model.fitted`) to features of a frozen body, or of one that learned from pairs."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from pathlib import Path

from tailprompt.components.pairs import Pairs
from tailprompt.components.resolve import values
from tailprompt.components.run import Run
from tailprompt.components.training import Training
from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model
from tailprompt.training.batches import predict
from tailprompt.training.loop import Schedule, fit
from tailprompt.training.optimizers import OPTIMIZERS, near
from tailprompt.training.pairs import apart, paired
from tailprompt.training.precision import lowering, set_precision
from tailprompt.training.repeats import vectors_of
from tailprompt.training.schedules import SCHEDULES
from tailprompt.training.selection import Scorer, given, searched
from tailprompt.training.state import Progress

LINES = 10  # of the curve of training on pairs
TRIED = ("train", "dev")


def fit_head(
    model: Model,
    splits: dict[str, Split],
    run: Run,
    scorer: Scorer,
    *,
    seed: int,
    state: Path,
    **resumed: str,
) -> Progress:
    """Fit the head, after training on pairs if the run has some; dev chooses one of several values of a key.

    What was tried, and the dev score of each, is in `model.head.tried`. A tie goes to the first value.
    """
    progress = Progress()
    if run.pairs:
        progress = fit_pairs(model, splits["train"], run, seed=seed, state=state, **resumed)
        seen = {
            split: vectors_of(model, splits[split], run.precision) for split in TRIED if len(splits[split])
        }
        splits = {**splits, **seen}
    rows, labels = splits["train"].numpy(), splits["train"].labels.cpu().numpy()
    key, several = searched(run)
    best, kept, model.head.tried = None, None, {}
    for value in several:
        model.head.fit(rows, labels, value)
        if len(several) == 1:
            continue
        score = scorer(predict(model, splits["dev"]), given(splits["dev"]))[run.select]
        model.head.tried[f"{key}={value:g}"] = score
        if best is None or score > best:
            best, kept = score, deepcopy(model.head.state_dict())
    if kept is not None:
        model.head.load_state_dict(kept)
    return progress


def fit_pairs(model: Model, train: Split, run: Run, *, seed: int, state: Path, **resumed: str) -> Progress:
    """Train the body on pairs of training examples, and keep its last weights.

    resumed: the key of the state of a killed run, and the label of the progress bar.
    """
    told, device = run.pairs, train.labels.device
    set_precision(run.precision)
    counted = {"epochs": 1, "patience": float("inf"), "evaluate_every": -(-told.steps // LINES)}
    schedule = scheduled(told, warmup=told.rising, select="last", **counted)
    batches = paired(train, pairs=told.pairs, steps=told.steps, seed=seed)
    within = partial(near, model, told.optimizer, lowering(model, run.precision, device))
    return fit(model, batches, apart, lambda _: {}, schedule, within=within, state=state, **resumed)


def scheduled(told: Training | Pairs, *, warmup: float, **others) -> Schedule:
    """A schedule whose optimizer and rate take the keys of their components. others: its other fields."""
    of_rate = {"lr": told.lr} if getattr(told.schedule, "of_rate", False) else {}
    return Schedule(
        optimizer=partial(OPTIMIZERS[told.optimizer.name], **values(told.optimizer)),
        rate=partial(SCHEDULES[told.schedule.name], warmup=warmup, **of_rate),
        lr=told.lr,
        clip=told.clip,
        **others,
    )
