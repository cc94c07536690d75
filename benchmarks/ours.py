"""Our loop, with all that it does in a run: sampling, padding, the schedule, checks of what is not finite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import torch

from benchmarks.job import Job, cost
from benchmarks.watch import Watch, deterministic
from tailprompt.training.batches import of_outputs, sampled
from tailprompt.training.graphs import Graphs
from tailprompt.training.loop import Batches, Part, Schedule, fit
from tailprompt.training.precision import lowering, set_precision
from tailprompt.training.repeats import vectors_of
from tailprompt.training.samplers import shuffled
from tailprompt.training.schedules import constant
from tailprompt.training.state import Progress

EPOCHS = 1_000_000  # of which a watch sees a few
PRECISION = "bfloat16"


class Over(Exception):
    """The watch has seen enough."""


def ours(
    job: Job, device: torch.device, watch: Watch, *, capture: bool = True, compiled: bool = False
) -> str:
    """Run our loop until the watch has seen enough. Returns what is to be told beside the numbers."""
    model, examples, graphs = job.ours().to(device), job.examples(device), Graphs(device, capture=capture)
    if compiled:
        if device.type == "cpu":
            return "blocks are compiled on a GPU only"
        model.body.compile_blocks()
    # captured steps are replayed from the third epoch on, because all epochs have the same lengths
    watch.begin(warm=2 * job.period if capture else 5, period=job.period)
    if job.repeats:
        examples = vectors_of(model, examples, PRECISION)
    with suppress(Over):
        train(job, model, watched(batches_of(job, examples), watch), graphs, epochs=EPOCHS)
    return "" if graphs.captures == (capture and device.type == "cuda") else "not captured"


def train(
    job: Job, model, batches: Batches, graphs: Graphs, *, epochs: float, evaluate_every: int = 0
) -> Progress:
    """Our loop without scores."""
    device = next(model.parameters()).device
    schedule = Schedule(
        optimizer=job.optimizer,
        rate=partial(constant, warmup=0.0),
        lr=job.lr,
        epochs=epochs,
        patience=epochs,
        clip=job.clip,
        evaluate_every=evaluate_every,
        select="last",
    )
    set_precision(PRECISION)
    within = lowering(model, PRECISION, device)
    with deterministic():
        return fit(model, batches, of_outputs(cost), lambda _: {}, schedule, within=within, graphs=graphs)


def batches_of(job: Job, examples) -> Batches:
    """The batches of the loop."""
    return sampled(examples, shuffled, batch=job.batch, bucket=job.bucket, seed=0)


def watched(batches: Batches, watch: Watch) -> Batches:
    """The same batches; asking for those of a step tells the watch that the steps before it are done."""

    def parts(step: int, micro: int) -> Iterator[Part]:
        if step and watch.over(step):
            raise Over
        return batches.parts(step, micro)

    return replace(batches, parts=parts)
