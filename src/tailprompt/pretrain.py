"""Pre-train a backbone on packed data and write an ordinary Hugging Face or timm checkpoint.

`python -m tailprompt.pretrain --name NAME --recipe JSON --packed FOLDER [--tokenizer FOLDER] [--start FOLDER]
--out FOLDER`. A killed run leaves `state.pt` in that folder and resumes from it.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn

from tailprompt.errors import BadInput, stage
from tailprompt.files import check_room, json_option, read_json, sha256, whole, write_json
from tailprompt.machine.cpus import threads
from tailprompt.machine.gpus import DEVICE, SLOTS, free
from tailprompt.model.folder import RECORD, WHOLE, files_in, weights_in
from tailprompt.model.tensors import write_tensors
from tailprompt.plan import digests
from tailprompt.pretraining.folders import TOKENIZER, packed_in, tokenizer_in
from tailprompt.pretraining.objectives import Batch, Task, build
from tailprompt.pretraining.optimizers import OPTIMIZERS
from tailprompt.seals import check_sealed
from tailprompt.training.finite import not_finite
from tailprompt.training.loop import Batches, Loss, Part, Schedule, fit
from tailprompt.training.precision import autocast, computed_in, set_precision
from tailprompt.training.provenance import code, surroundings
from tailprompt.training.schedules import linear
from tailprompt.training.state import Progress

ONE_FILE = 1_000_000  # megabytes of a file, of which no checkpoint has more


def pretrain(
    name: str, recipe: dict, packed: Path, tokenizer: Path | None, start: Path | None, folder: Path, device
) -> None:
    """Train the recipe's model on `packed` and write its checkpoint to `folder`."""
    check_sealed(*packed_in(packed), *tokenizer_in(tokenizer), digest=digests.digest_of)
    words = read_tokenizer(tokenizer)
    task = build(recipe, packed, words, device)
    if start:
        digests.check_checkpoint(start)
        begin_from(task.model, start)
    pack, origin = read_json(packed / "pack.json"), start and digest_of(start)
    key = json.dumps([recipe, pack, origin, code()], sort_keys=True)
    progress = train(task, recipe, folder / "state.pt", key, name)
    write_model(task.model, folder, recipe)
    if tokenizer:
        copy_files(tokenizer, folder, TOKENIZER)
    with whole(folder / "curve.csv") as temporary:
        pd.DataFrame(progress.curve).drop(columns=["epoch", "lr"]).to_csv(temporary, index=False)
    about = {
        "name": name,
        "recipe": recipe,
        "data": pack,
        "parameters": sum(value.numel() for value in task.model.parameters()),
        "seconds": round(progress.seconds, 1),
        "held_out": {key: progress.curve[-1][key] for key in ("held_out_loss", "held_out_accuracy")},
        "sha256": digest_of(folder),
        "files": digests_beside(folder),
        "computed_in": computed_in(device, recipe["precision"]),
        **surroundings(device),
    }
    write_json(folder / RECORD, about)
    (folder / "state.pt").unlink(missing_ok=True)


def read_tokenizer(folder: Path | None):
    """The tokenizer in a folder, or None without a folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder) if folder else None


def digest_of(folder: Path) -> str | dict[str, str]:
    """The SHA-256 of the weights in a folder; of each file if they are several."""
    digests = {file.name: sha256(file) for file in weights_in(folder)}
    return digests.get(WHOLE, digests)


def digests_beside(folder: Path) -> dict[str, str]:
    """The SHA-256 of the other files that a backbone is read from."""
    weights = weights_in(folder)
    return {name: sha256(file) for name, file in files_in(folder).items() if file not in weights}


def begin_from(model: nn.Module, start: Path) -> None:
    """Load the weights of another checkpoint; raises BadInput if their names or shapes differ."""
    weights, own = reduce(or_, map(load_file, weights_in(start))), model.state_dict()
    wrong = [name for name, value in weights.items() if name not in own or own[name].shape != value.shape]
    absent = set(dict(model.named_parameters())) - set(weights)  # tied parameters are named once
    if wrong or absent:
        raise BadInput(f"{start}: its weights are not of this shape: {', '.join([*wrong, *absent][:3])}")
    model.load_state_dict(weights, strict=False)


def train(task: Task, recipe: dict, state: Path, key: str, label: str) -> Progress:
    """Train the task's model in the training loop, with a held-out loss every `evaluate_every` steps."""
    set_precision(recipe["precision"])
    return fit(
        task.model,
        drawn_by_step(task, recipe["batch"]),
        loss_of(task, recipe["precision"]),
        partial(held_out, task=task, precision=recipe["precision"]),
        schedule_of(recipe),
        state=state,
        key=key,
        label=label,
    )


def schedule_of(recipe: dict) -> Schedule:
    """The schedule of a recipe: all of its steps, and the last weights."""
    return Schedule(
        optimizer=partial(OPTIMIZERS[recipe.get("optimizer", "adamw")], weight_decay=recipe["weight_decay"]),
        rate=partial(linear, warmup=recipe["warmup"]),
        lr=recipe["lr"],
        epochs=recipe["steps"],  # an epoch is one step
        patience=math.inf,
        clip=recipe["clip"],
        evaluate_every=recipe["evaluate_every"],
        select="last",
    )


def drawn_by_step(task: Task, batch: int) -> Batches:
    """The batches of the task, drawn anew at each step."""

    def parts(step: int, micro: int) -> Iterator[Part]:
        drawn = task.train(step)
        for part in zip(*(values.split(micro) for values in drawn), strict=True):
            yield Part(part, together, task.items(drawn), tuple(values.shape for values in part))

    return Batches(1, batch, parts, names=lambda step: [f"those drawn for step {step + 1}"])


def together(*batch: Tensor) -> Batch:
    """The tensors of a batch, drawn as they are trained on."""
    return batch


def loss_of(task: Task, precision: str) -> Loss:
    """The loss of the task for the training loop, compiled on a GPU."""
    device = task.held_out[0][0].device
    function = compiled(task.loss) if device.type == "cuda" else task.loss
    cast = autocast(device, precision)

    def loss(model: nn.Module, batch: Batch, _: Tensor) -> Float[Tensor, " items"]:
        with cast:
            return function(model, batch)

    return loss


def compiled(loss):
    """The loss compiled by torch, or as it is on a machine that cannot compile."""
    torch._dynamo.config.suppress_errors = True
    return torch.compile(loss)


@torch.no_grad()
def held_out(model: nn.Module, *, task: Task, precision: str) -> dict[str, float]:
    """Mean loss and accuracy over the held-out items."""
    model.eval()
    with autocast(task.held_out[0][0].device, precision):
        losses, right = (
            torch.cat([function(model, batch) for batch in task.held_out])
            for function in (task.loss, task.right)
        )
    return {"held_out_loss": float(losses.mean()), "held_out_accuracy": float(right.mean())}


def copy_files(source: Path, folder: Path, names: Iterable[str]) -> None:
    """Copy files from one folder to another, each atomically."""
    for name in names:
        with whole(folder / name) as temporary:
            shutil.copyfile(source / name, temporary)


def write_model(model: nn.Module, folder: Path, recipe: dict) -> None:
    """Write float16 weights and their config in the format of transformers or timm.

    Raises BadInput if a weight is too large for float16.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = model.half()
    if broken := not_finite(dict(model.named_parameters())):
        raise BadInput(f"{folder}: the trained {broken} is too large for float16; lower lr")
    if recipe["task"] != "classification":
        check_room(folder / "model.safetensors", 2 * sum(value.nbytes for value in model.parameters()), "it")
        with TemporaryDirectory(dir=folder, prefix=".") as temporary:
            model.save_pretrained(temporary, max_shard_size=f"{recipe.get('shards', ONE_FILE)}MB")
            written = sorted(file.name for file in Path(temporary).iterdir())
            for old in {*folder.glob("model*.safetensors*")} - {folder / name for name in written}:
                old.unlink()  # of a checkpoint in more files
            copy_files(Path(temporary), folder, written)
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
    parser = argparse.ArgumentParser(prog="tailprompt pretrain", description=__doc__.split("\n")[0])
    parser.add_argument("--name", required=True, help="name of the recipe, for the checkpoint's record")
    parser.add_argument(
        "--recipe",
        required=True,
        metavar="JSON|FILE",
        help="the recipe in config/pretraining.yaml without its card: "
        '{"task": "span_corruption", "steps": 100, "seed": 1, "shape": {...}, ...}',
    )
    parser.add_argument(
        "--packed", required=True, type=Path, metavar="FOLDER", help="folder that stage pack wrote"
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="for text: folder of the tokenizer")
    parser.add_argument("--start", type=Path, metavar="FOLDER", help="folder of a checkpoint to begin from")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="folder for the checkpoint")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help=DEVICE)
    parser.add_argument("--slots", type=int, default=1, help=SLOTS)
    parser.add_argument("--threads", type=threads, default=1, help="CPU threads of the job (default: 1)")
    options = parser.parse_args()
    recipe = json_option(options.recipe, "--recipe", "task", "steps", "seed", "shape")
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
