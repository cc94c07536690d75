"""The bare step: forward, loss, backward, clipping and optimizer in a CUDA graph, and nothing around it.

It is what our loop could reach at most: the batches are made beforehand, no schedule sets the rate, and
nobody asks whether the loss is finite. It computes as a run does: float32 parameters that learn, a body in
bfloat16, deterministic kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks.job import Job, cost
from benchmarks.ours import batches_of
from benchmarks.watch import Watch, deterministic

EXACT = ("lm_head.weight", "groups.keys")  # parameters of a body that stay float32
Batch = dict[str, Tensor]  # inputs and labels
Step = Callable[[Batch], None]


def bare(job: Job, device: torch.device, watch: Watch) -> None:
    """Replay captured steps until the watch has seen enough; a CPU launches them as they are."""
    model, batches = job.ours().to(device).train(), made(job, device)
    watch.begin(warm=5, period=job.period)
    with deterministic():
        step = step_of(job, model, device)
        steps = all_captured(step, batches) if device.type == "cuda" else {}
        for done in count(1):
            batch = batches[done % len(batches)]
            steps.get(shapes(batch), step)(batch)
            if watch.over(done):
                return


def made(job: Job, device: torch.device) -> list[Batch]:
    """The batches of an epoch of our loop, on the device."""
    batches = batches_of(job, job.examples(device))
    parts = [part for step in range(batches.per_epoch) for part in batches.parts(step, job.batch)]
    found = [part.made(*part.staged) for part in parts]
    return [inputs | {"labels": labels} for inputs, labels, *_ in found]


def shapes(batch: Batch) -> tuple[torch.Size, ...]:
    """What two batches have in common if one graph serves both."""
    return tuple(value.shape for value in batch.values())


def step_of(job: Job, model: nn.Module, device: torch.device) -> Step:
    """One step of the optimizer on a batch."""
    lower = {
        name: value
        for name, value in model.named_parameters()
        if device.type == "cuda" and name.startswith("body.") and not name.endswith(EXACT)
    }
    frozen = {name: value.detach().bfloat16() for name, value in lower.items() if not value.requires_grad}
    learned = [value for value in model.parameters() if value.requires_grad]
    rate = torch.tensor(job.lr, device=device) if device.type == "cuda" else job.lr
    optimizer = job.optimizer(learned, lr=rate)

    def step(batch: Batch) -> None:
        rounded = {name: value.bfloat16() for name, value in lower.items() if name not in frozen}
        cost(functional_call(model, frozen | rounded, (batch,)), batch["labels"]).mean().backward()
        if job.clip:
            nn.utils.clip_grad_norm_(learned, job.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def all_captured(step: Step, batches: list[Batch]) -> dict[tuple, Step]:
    """A CUDA graph of the step for each shape of batches."""
    pool = torch.cuda.graph_pool_handle()
    different = {shapes(batch): batch for batch in batches}
    return {shape: captured(step, batch, pool) for shape, batch in different.items()}


def captured(step: Step, batch: Batch, pool: tuple[int, int]) -> Step:
    """The step as a CUDA graph, for batches of these shapes. pool: memory that graphs share."""
    static = {name: value.clone() for name, value in batch.items()}
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):  # libraries get ready, and the optimizer makes its state
            step(static)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph, pool=pool, stream=side):
        step(static)

    def replay(batch: Batch) -> None:
        for name, value in batch.items():
            static[name].copy_(value, non_blocking=True)
        graph.replay()

    return replay
