"""Pre-train a backbone from packed data: an ordinary Hugging Face or timm checkpoint comes out.

`python -m tailprompt.pretrain --name NAME --recipe JSON --packed FOLDER [--tokenizer FOLDER] [--start FOLDER]
--out FOLDER`. A killed run leaves `state.pt` in the folder and goes on from it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from safetensors.torch import load_file
from torch import nn
from tqdm import tqdm

from tailprompt.errors import BadInput, stage
from tailprompt.files import json_object, read_json, sha256, whole, write_json
from tailprompt.gpus import free
from tailprompt.model.tensors import write_tensors
from tailprompt.pretraining.objectives import Batch, Task, build
from tailprompt.training.loop import autocast, linear
from tailprompt.training.provenance import surroundings
from tailprompt.training.state import Progress, resume, save


def pretrain(
    name: str, recipe: dict, packed: Path, tokenizer: Path | None, start: Path | None, folder: Path, device
) -> None:
    """Train the recipe's model on `packed` and write its folder."""
    words = read_tokenizer(tokenizer)
    task = build(recipe, packed, words, device)
    if start:
        begin_from(task.model, start)
    pack, origin = read_json(packed / "pack.json"), start and sha256(start / "model.safetensors")
    key = json.dumps([recipe, pack, origin], sort_keys=True)
    progress = optimise(task, recipe, folder / "state.pt", key, name)
    write_model(task.model, folder, recipe)
    if tokenizer:
        copy_files(tokenizer, folder, ["tokenizer.json", "tokenizer_config.json"])
    with whole(folder / "curve.csv") as temporary:
        pd.DataFrame(progress.curve).to_csv(temporary, index=False)
    about = {
        "name": name,
        "recipe": recipe,
        "data": pack,
        "parameters": sum(value.numel() for value in task.model.parameters()),
        "seconds": round(progress.seconds, 1),
        "held_out": {key: progress.curve[-1][key] for key in ("held_out_loss", "held_out_accuracy")},
        "sha256": sha256(folder / "model.safetensors"),
        **surroundings(device),
    }
    write_json(folder / "pretraining.json", about)
    (folder / "state.pt").unlink(missing_ok=True)


def read_tokenizer(folder: Path | None):
    """The tokenizer of a folder, if there is one."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder) if folder else None


def begin_from(model: nn.Module, start: Path) -> None:
    """Load the weights of another pre-trained folder."""
    weights, ours = load_file(start / "model.safetensors"), model.state_dict()
    wrong = [name for name, value in weights.items() if name not in ours or ours[name].shape != value.shape]
    absent = set(dict(model.named_parameters())) - set(weights)  # tied ones are named once
    if wrong or absent:
        raise BadInput(f"{start}: its weights are not of this shape: {', '.join([*wrong, *absent][:3])}")
    model.load_state_dict(weights, strict=False)


def optimise(
    task: Task, recipe: dict, state: Path, key: str, label: str, save_seconds: float = 120.0
) -> Progress:
    """The loop: AdamW, linear warm-up and decay, clipping; held-out loss every `evaluate_every` steps.

    Raises BadInput when the loss is not finite, at the next evaluation and before anything is saved.
    """
    learned = dict(task.model.named_parameters())
    device, steps = next(iter(learned.values())).device, recipe["steps"]
    decayed = [value for value in learned.values() if value.ndim > 1]
    plain = [value for value in learned.values() if value.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": recipe["weight_decay"]},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe["lr"], betas=(0.9, 0.98), eps=1e-6, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, linear(recipe["warmup"], steps, 1))
    progress = resume(state, key, learned, optimizer, schedule) or Progress()
    loss = compiled(task.loss) if device.type == "cuda" else task.loss
    torch.set_float32_matmul_precision("high")
    begun, saved = time.monotonic() - progress.seconds, time.monotonic()
    total, since = torch.zeros((), device=device), progress.step
    with tqdm(total=steps, initial=progress.step, desc=label, unit="step", mininterval=2) as bar:
        while progress.step < steps:
            total += update(task, loss, learned, optimizer, task.train(progress.step), recipe)
            schedule.step()
            progress.step += 1
            bar.update()
            if progress.step % recipe["evaluate_every"] and progress.step < steps:
                continue
            mean = float(total) / (progress.step - since)
            if not mean < float("inf"):
                raise BadInput(
                    f"{label}: the loss is not finite between steps {since + 1} and {progress.step}; lower lr"
                )
            progress.seconds = time.monotonic() - begun
            progress.curve.append(
                {
                    "step": progress.step,
                    "loss": mean,
                    **held_out(task, recipe),
                    "seconds": round(progress.seconds, 1),
                }
            )
            bar.set_postfix(loss=f"{mean:.3f}", held_out=f"{progress.curve[-1]['held_out_loss']:.3f}")
            total, since = torch.zeros_like(total), progress.step
            if time.monotonic() - saved >= save_seconds and progress.step < steps:
                save(state, key, progress, learned, optimizer, schedule)
                saved = time.monotonic()
    return progress


def compiled(loss):
    """The loss as one kernel after another, or as it is where the machine cannot compile."""
    torch._dynamo.config.suppress_errors = True
    return torch.compile(loss)


def update(task: Task, loss, learned: dict, optimizer, batch: Batch, recipe: dict) -> torch.Tensor:
    """One step; the loss stays on the device, so that the card never waits for the processor."""
    task.model.train()
    with autocast(batch[0].device, recipe["precision"]):
        value = loss(task.model, batch)
    value.backward()
    torch.nn.utils.clip_grad_norm_(learned.values(), recipe["clip"])
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return value.detach()


@torch.no_grad()
def held_out(task: Task, recipe: dict) -> dict[str, float]:
    """Loss and share of right answers over the held-out batches."""
    task.model.eval()
    sizes = [len(batch[0]) for batch in task.held_out]
    with autocast(task.held_out[0][0].device, recipe["precision"]):
        values = [
            [float(task.loss(task.model, batch)), float(task.score(task.model, batch))]
            for batch in task.held_out
        ]
    loss, accuracy = (
        sum(value[place] * size for value, size in zip(values, sizes, strict=True)) / sum(sizes)
        for place in (0, 1)
    )
    return {"held_out_loss": loss, "held_out_accuracy": accuracy}


def copy_files(source: Path, folder: Path, names: list[str]) -> None:
    """Copy files of a folder to another, each whole."""
    for name in names:
        with whole(folder / name) as temporary:
            shutil.copyfile(source / name, temporary)


def write_model(model: nn.Module, folder: Path, recipe: dict) -> None:
    """float16 weights and their config: transformers' own form, or timm's."""
    folder.mkdir(parents=True, exist_ok=True)
    model = model.half()
    if recipe["task"] != "classification":
        with TemporaryDirectory(dir=folder, prefix=".") as temporary:
            model.save_pretrained(temporary)
            copy_files(Path(temporary), folder, sorted(file.name for file in Path(temporary).iterdir()))
        return
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    write_tensors(folder / "model.safetensors", tensors, metadata={"format": "pt"})
    shape = {key: value for key, value in recipe["shape"].items() if key != "num_classes"}
    size = shape["img_size"]
    write_json(
        folder / "config.json",
        {
            "architecture": "vit_tiny_patch16_224",
            "num_classes": model.num_classes,
            "model_args": shape,
            "pretrained_cfg": {
                "input_size": [3, size, size],
                "fixed_input_size": True,
                "mean": [0.485, 0.456, 0.406],
                "std": [0.229, 0.224, 0.225],
                "interpolation": "bicubic",
                "crop_pct": 1.0,
                "num_classes": model.num_classes,
                "first_conv": "patch_embed.proj",
                "classifier": "head",
            },
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tailprompt.pretrain", description="Pre-train a backbone."
    )
    parser.add_argument("--name", required=True)
    parser.add_argument("--recipe", required=True, help="a row of `pretraining`, as JSON")
    parser.add_argument("--packed", required=True, type=Path, help="folder that tailprompt.pack wrote")
    parser.add_argument("--tokenizer", type=Path, help="folder of the tokenizer, for text")
    parser.add_argument("--start", type=Path, help="folder of the backbone to go on from")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--slots", type=int, default=1, help="processes that may share a card")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    recipe = json_object(options.recipe, "--recipe", "task", "steps", "seed", "shape")
    torch.set_num_threads(options.threads)
    with free(options.device, slots=options.slots) as device:
        pretrain(
            options.name,
            recipe,
            options.packed,
            options.tokenizer,
            options.start,
            options.out,
            torch.device(device),
        )


if __name__ == "__main__":
    stage(main)
