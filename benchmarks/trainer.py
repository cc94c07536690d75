"""What a user would pick instead, timed: an epoch of transformers' Trainer."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


def seconds(
    model: nn.Module, examples: list[dict], collate: Callable, device: torch.device, *, batch: int, lr: float
) -> float:
    """Seconds of one epoch over `examples`; `collate` makes the model's inputs of a list of them."""
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


def synchronize(device: torch.device) -> None:
    """Wait for a card."""
    if device.type == "cuda":
        torch.cuda.synchronize()
