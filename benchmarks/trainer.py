"""The time of an epoch in our loop, and in the usual alternative, transformers' Trainer."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainingArguments

from tailprompt.inputs.encode import Examples
from tailprompt.training.batches import of_outputs, sampled
from tailprompt.training.loop import Schedule, fit
from tailprompt.training.optimizers import adamw
from tailprompt.training.samplers import shuffled
from tailprompt.training.schedules import linear


def seconds_of_ours(
    model: nn.Module, examples: Examples, device: torch.device, *, batch: int, lr: float
) -> float:
    """The seconds of one epoch of our loop over `examples`."""
    schedule = Schedule(
        optimizer=partial(adamw, weight_decay=0.0, adam_eps=1e-6),
        rate=partial(linear, warmup=1.0),
        lr=lr,
        epochs=1,
        patience=1,
        clip=1.0,
        evaluate_every=0,
        select="last",
    )
    cost = lambda logits, labels, *_: cross_entropy(logits, labels, reduction="none")  # noqa: E731
    batches = sampled(examples, shuffled, batch=batch, bucket=1, seed=0)
    begun = time.perf_counter()
    fit(model, batches, of_outputs(cost), lambda _: {}, schedule)
    synchronize(device)
    return time.perf_counter() - begun


def seconds(
    model: nn.Module, examples: list[dict], collate: Callable, device: torch.device, *, batch: int, lr: float
) -> float:
    """The seconds of one epoch of Trainer. collate: list of examples -> inputs of the model."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=batch,
            num_train_epochs=1,
            learning_rate=lr,
            use_cpu=device.type == "cpu",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
            remove_unused_columns=False,
        )
        trainer = Trainer(model, arguments, train_dataset=examples, data_collator=collate)
        begun = time.perf_counter()
        trainer.train()
        synchronize(device)
        return time.perf_counter() - begun


def options(says: str) -> argparse.ArgumentParser:
    """The options of a comparison."""
    parser = argparse.ArgumentParser(description=says)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1)
    return parser


def compare(
    ours: Callable[[], float],
    theirs: Callable[[], float],
    name: str,
    *,
    examples: int,
    turns: int,
    device: str,
) -> None:
    """Print the speed of two runs in turn, each of which gives its seconds for `examples`."""
    times = {"ours": [], name: []}
    for turn in range(turns + 1):  # the first warms up
        for which, run in zip(times, (ours, theirs), strict=True):
            seconds = run()
            times[which] += [seconds] if turn else []
    mine, other = (examples / statistics.median(values) for values in times.values())
    where = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine()
    told = {"device": where, "threads": torch.get_num_threads(), "torch": torch.__version__}
    print(json.dumps({**told, "seconds": times}))
    print(f"ours {mine:.1f} examples/s, {name} {other:.1f} examples/s")
    print(f"ratio {mine / other:.2f} (ours over {name})")


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()
