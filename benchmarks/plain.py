"""The obvious loop: no capture, every text padded to max_length, and for AMP torch's autocast."""

from __future__ import annotations

from itertools import count

import torch
from torch import nn

from benchmarks.job import Job, cost
from benchmarks.watch import Watch

PERIOD = 4  # steps; all are alike


def plain(job: Job, device: torch.device, watch: Watch, *, half: bool) -> None:
    """Train until the watch has seen enough. half: compute in bfloat16 what autocast does."""
    network, examples = job.plain().to(device).train(), job.examples(device)
    rows = torch.arange(len(examples)).split(job.batch)
    there = [each.to(device) for each in rows]
    learned = [value for value in network.parameters() if value.requires_grad]
    optimizer = job.optimizer(learned, lr=job.lr)
    watch.begin(warm=3, period=PERIOD)
    for done in count(1):
        at = done % len(rows)
        inputs, labels = examples.made(*examples.staged(rows[at], there[at]), width=job.width)
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            outputs = network(inputs)
        cost(outputs, labels).mean().backward()
        if job.clip:
            nn.utils.clip_grad_norm_(learned, job.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if watch.over(done):
            return
