"""transformers' Trainer at its best flags, and peft in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence

import torch
from torch import nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from benchmarks.job import Job
from benchmarks.texts import PROMPT
from benchmarks.watch import Watch

STEPS = 1_000_000  # of which a watch sees a few
WORKERS = 4


def trainer(job: Job, device: torch.device, watch: Watch, *, adapter: str | None = None) -> None:
    """Run Trainer until the watch has seen enough. adapter: of peft, a name in ADAPTERS."""
    model = job.theirs().to(device)
    if adapter:
        from peft import get_peft_model

        model = get_peft_model(model, ADAPTERS[adapter]())
    watch.begin(warm=5, period=job.period)
    train(job, model, job.rows, device, callbacks=[Stop(watch)])


class Stop(TrainerCallback):
    """Ends training when the watch has seen enough."""

    def __init__(self, watch: Watch):
        self.watch = watch

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = self.watch.over(state.global_step)


def train(
    job: Job,
    model: nn.Module,
    rows: Sequence[dict],
    device: torch.device,
    *,
    steps: int = STEPS,
    order: str = "group_by_length",
    **given,
) -> None:
    """Trainer.train on `rows`. order: its train_sampling_strategy. given: more that Trainer takes."""
    on_gpu = device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            bf16=on_gpu,
            optim="adamw_torch_fused",
            train_sampling_strategy=order,
            dataloader_num_workers=WORKERS if on_gpu else 0,
            dataloader_persistent_workers=on_gpu,
            dataloader_pin_memory=on_gpu,
            logging_strategy="no",
            logging_nan_inf_filter=False,  # it would wait for the GPU at each step
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=not on_gpu,
            max_steps=steps,
            per_device_train_batch_size=job.batch,
            learning_rate=job.lr,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=job.clip,
        )
        made = Trainer(model, arguments, train_dataset=rows, data_collator=job.collate, **given)
        made.remove_callback(PrinterCallback)
        made.train()


def prompt_tuning():
    from peft import PromptTuningConfig

    return PromptTuningConfig(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=PROMPT)


def prefix_tuning():
    from peft import PrefixTuningConfig

    return PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=20)


def lora():
    from peft import LoraConfig

    return LoraConfig(task_type="SEQ_CLS", r=8, lora_alpha=16, target_modules=["query", "value"])


ADAPTERS: dict[str, Callable] = {"prompt": prompt_tuning, "prefix": prefix_tuning, "lora": lora}
