"""The components of a run for the training loop: sampler, loss, optimizer, schedule, and scores on dev."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from tailprompt.components.run import Run
from tailprompt.components.training import Training
from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model
from tailprompt.training.batches import of_outputs, predict, sampled
from tailprompt.training.fitted import fit_head, scheduled
from tailprompt.training.graphs import Graphs
from tailprompt.training.loop import Schedule, fit
from tailprompt.training.objective import objective
from tailprompt.training.optimizers import near
from tailprompt.training.precision import lowering, set_precision
from tailprompt.training.samplers import SAMPLERS
from tailprompt.training.selection import Scorer, given
from tailprompt.training.state import Progress


def fit_model(
    model: Model,
    splits: dict[str, Split],
    outputs: list[str],
    run: Run,
    scorer: Scorer,
    *,
    seed: int,
    capture: bool,
    state: Path,
    key: str,
    label: str,
) -> Progress:
    """Train a model with the loss and sampler of its run. A data set for test only trains nothing.

    capture: whether a GPU may run steps as CUDA graphs. state: the file from which a killed run resumes. key:
    must equal the key in that file.
    """
    if not len(splits["train"]):
        return Progress()
    if getattr(run.head, "fitted", False):
        return fit_head(model, splits, run, scorer, seed=seed, state=state, key=key, label=label)
    told = run.training
    others = getattr(run.head, "decoding", None) == "open"  # one more column, which is no class
    labels = splits["train"].labels
    counts = torch.bincount(labels[labels >= 0], minlength=len(outputs) + others).float()
    sampler = SAMPLERS[told.sampler.name]
    cost = objective(told, counts, scale=model.head.scale, **keys_of(run))
    set_precision(run.precision)
    device = labels.device
    together = len({value.device for value in model.parameters()}) == 1
    graphs = Graphs(device, capture=capture and together)
    return fit(
        model,
        sampled(splits["train"], sampler, batch=told.batch, bucket=told.bucket, seed=seed),
        of_outputs(cost),
        partial(evaluated, dev=splits["dev"], precision=run.precision, scorer=scorer, graphs=graphs),
        schedule_of(told, run.select),
        within=partial(near, model, told.optimizer, lowering(model, run.precision, device)),
        graphs=graphs,
        state=state,
        key=key,
        label=label,
    )


def keys_of(run: Run) -> dict:
    """The arguments of the loss for the keys of group prompts; empty without group prompts."""
    if run.tuner.name != "group_prompts":
        return {}
    return {"key_weight": run.tuner.key_weight, "key_scaled": run.tuner.key_scaled}


def schedule_of(told: Training, select: str) -> Schedule:
    """The schedule of a run."""
    counted = {key: getattr(told, key) for key in ("epochs", "patience", "evaluate_every")}
    return scheduled(told, warmup=told.warmup, select=select, **counted)


def evaluated(
    model: Model, *, dev: Split, precision: str, scorer: Scorer, graphs: Graphs
) -> dict[str, float]:
    """The scores on dev; empty if it has no examples."""
    if not len(dev):
        return {}
    return scorer(predict(model, dev, precision=precision, graphs=graphs), given(dev))
