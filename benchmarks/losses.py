"""The losses of the first steps, ours and Trainer's: the same weights, the same batches, no dropout."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import torch
from torch import Tensor, nn

from benchmarks import ours, trainer
from benchmarks.job import Job
from benchmarks.texts import BERT_BASE, NO_DROPOUT, R52, bert
from tailprompt.training.batches import epoch_batches
from tailprompt.training.graphs import Graphs
from tailprompt.training.samplers import shuffled

EPOCHS = 2  # in the second one, captured steps are replayed
JOB = partial(bert, BERT_BASE | NO_DROPOUT, replace(R52, classes=8))  # so few are learnt in a hundred steps


def curves(job: Job, device: torch.device) -> pd.DataFrame:
    """The loss of each step (rows) of each system (columns)."""
    found = {
        "ours, captured": of_ours(job, device, capture=True),
        "ours, eager": of_ours(job, device, capture=False),
        "Trainer": of_trainer(job, device),
    }
    return pd.DataFrame(found).rename_axis("step")


def of_ours(job: Job, device: torch.device, *, capture: bool) -> list[float]:
    """The losses of our loop, which tells their mean at each evaluation."""
    model, batches = job.ours().to(device), ours.batches_of(job, job.examples(device))
    graphs = Graphs(device, capture=capture)
    progress = ours.train(job, model, batches, graphs, epochs=EPOCHS, evaluate_every=1)
    return [line["loss"] for line in progress.curve]


def of_trainer(job: Job, device: torch.device) -> list[float]:
    """The losses of Trainer, which takes the rows of our epochs as they come."""
    seen: list[Tensor] = []

    def loss(outputs, labels: Tensor, **_) -> Tensor:
        value = nn.functional.cross_entropy(outputs["logits"].float(), labels)
        seen.append(value.detach())
        return value

    examples = job.examples(torch.device("cpu"))
    told = {"batch": job.batch, "bucket": job.bucket, "seed": 0}
    epochs = [epoch_batches(examples, shuffled, epoch=epoch, **told) for epoch in range(EPOCHS)]
    rows = [job.rows[row] for steps in epochs for (batch,) in steps for row in batch.tolist()]
    steps = EPOCHS * job.period
    trainer.train(job, job.theirs(), rows, device, steps=steps, order="sequential", compute_loss_func=loss)
    return torch.stack(seen).tolist()


def gaps(found: pd.DataFrame) -> str:
    """A sentence on how far the curves are apart."""
    first, *others = found
    apart = {name: (found[first] - found[name]).abs() for name in others}
    told = ", ".join(f"{name} {gap.mean():.4f} (at most {gap.max():.4f})" for name, gap in apart.items())
    start, end = found[first].iloc[[0, -1]]
    return (
        f"Losses of {len(found)} steps from the same weights on the same batches, without dropout: "
        f"{first}, from {start:.3f} to {end:.3f}; mean distance to it: {told}"
    )
