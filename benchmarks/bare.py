"""The bare step: forward, loss, backward, clipping and optimizer in one CUDA graph, and nothing around it.

It is what our loop could reach at most: the batches are made beforehand, no schedule sets the rate, and nobody
asks whether the loss is finite. It computes as a run does: float32 parameters that learn, a body in
bfloat16, deterministic kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks.job import Job, cost
from benchmarks.ours import batches_of
from benchmarks.watch import Watch, deterministic

EXACT = ("lm_head.weight", "groups.keys")  # parameters of a body that stay float32


def bare(job: Job, device: torch.device, watch: Watch) -> None:
    """Replay captured steps until the watch has seen enough; a CPU launches them as they are."""
    model, batches = job.ours().to(device).train(), made(job, device)
    watch.begin(warm=5, period=job.period)
    with deterministic():
        step, steps, pool = step_of(job, model, device), {}, torch.cuda.graph_pool_handle()
        for done in count(1):
            inputs, labels = batches[done % len(batches)]
            names, tensors = [*inputs], [*inputs.values(), labels]
            shapes = tuple(tensor.shape for tensor in tensors)
            if shapes not in steps:
                work = lambda *given: step(dict(zip(names, given[:-1], strict=True)), given[-1])  # noqa: B023, E731
                steps[shapes] = captured(work, tensors, pool) if device.type == "cuda" else work
            steps[shapes](*tensors)
            if watch.over(done):
                return


def made(job: Job, device: torch.device) -> list[tuple[dict[str, Tensor], Tensor]]:
    """The batches of an epoch of our loop, on the device."""
    batches = batches_of(job, job.examples(device))
    parts = [part for step in range(batches.per_epoch) for part in batches.parts(step, job.batch)]
    return [part.made(*part.staged)[:2] for part in parts]


def step_of(job: Job, model: nn.Module, device: torch.device) -> Callable[[dict[str, Tensor], Tensor], None]:
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

    def step(inputs: dict[str, Tensor], labels: Tensor) -> None:
        rounded = {name: value.bfloat16() for name, value in lower.items() if name not in frozen}
        cost(functional_call(model, frozen | rounded, (inputs,)), labels).mean().backward()
        if job.clip:
            nn.utils.clip_grad_norm_(learned, job.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def captured(
    work: Callable[..., None], tensors: Sequence[Tensor], pool: tuple[int, int]
) -> Callable[..., None]:
    """The same work on other tensors of the same shapes, as a CUDA graph. pool: memory that graphs share."""
    static, side, graph = [tensor.clone() for tensor in tensors], torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):  # libraries get ready, and the optimizer makes its state
            work(*static)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph, pool=pool, stream=side):
        work(*static)

    def replay(*tensors: Tensor) -> None:
        for into, tensor in zip(static, tensors, strict=True):
            into.copy_(tensor, non_blocking=True)
        graph.replay()

    return replay
