"""Pre-training tasks: a model from a recipe, batches by step, and a loss.

A batch depends only on step and seed, so a resumed run sees the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from timm.data import Mixup
from timm.models.vision_transformer import VisionTransformer
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy
from torchvision.transforms.v2 import RandAugment
from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

from tailprompt.errors import BadInput, known, named
from tailprompt.files import read_json
from tailprompt.inputs.augment import center_crop, normalised, random_flip, random_windows, scaled
from tailprompt.pretraining.corruption import corrupt_spans, halves, mask_tokens
from tailprompt.pretraining.recipes import SENTINELS

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Task:
    """One pre-training task, ready to run on a device.

    An item is an id to predict, or an image. train: step -> batch, whose tensors have a row for each example.
    held_out: batches that never change. items: batch -> number of items. loss: (model, batch) -> loss of each
    item. right: (model, batch) -> 1 for each item that is predicted right.
    """

    model: nn.Module
    train: Callable[[int], Batch]
    held_out: list[Batch]
    items: Callable[[Batch], int]
    loss: Callable[[nn.Module, Batch], Float[Tensor, " items"]]
    right: Callable[[nn.Module, Batch], Float[Tensor, " items"]]


def stream(path: Path, device: torch.device) -> Int[Tensor, " tokens"]:
    """The token ids of a packed file, on the device (4 bytes a token)."""
    return torch.from_numpy(np.fromfile(path, np.uint16).astype(np.int32)).to(device)


def training_stream(packed: Path, recipe: dict, device: torch.device) -> Int[Tensor, " tokens"]:
    """The token ids of the parts of a packed folder that the recipe `reads`, by default all.

    Raises BadInput for a part that is not there.
    """
    parts = read_json(packed / "pack.json").get("parts")
    names = list(parts) if parts else ["train"]
    if "reads" in recipe:
        names = [f"train-{number}" for number in recipe["reads"]]
    files = [packed / f"{name}.bin" for name in names]
    if absent := [file.name for file in files if not file.is_file()]:
        raise BadInput(f"{packed}: {known(absent)} not found; bring them, or list the others in reads")
    return torch.cat([stream(file, device) for file in files])


def drawn(
    ids: Int[Tensor, " tokens"], batch: int, length: int, generator: Generator
) -> Int[Tensor, "batch length"]:
    """Rows of `length` ids that begin at random places in the stream."""
    starts = torch.randint(0, len(ids) - length + 1, (batch, 1), generator=generator, device=ids.device)
    return ids[starts + torch.arange(length, device=ids.device)].long()


def laid(ids: Int[Tensor, " tokens"], length: int, most: int) -> Int[Tensor, "rows length"]:
    """The first `most` rows of `length` ids, one after another."""
    rows = min(len(ids) // length, most)
    return ids[: rows * length].view(rows, length).long()


def generator_at(seed: int, step: int, device: torch.device) -> Generator:
    """The random generator of one step."""
    return torch.Generator(device).manual_seed(seed * 10_000_019 + step)


def shape_at(recipe: dict, step: int) -> tuple[int, int]:
    """The rows and the tokens a row at a step. One step in `long.every` has longer and fewer rows.

    Long rows only at the end would come too late: positions that only they have would stay untrained.
    """
    long = recipe.get("long")
    if long and step % long["every"] == 0:
        return max(1, recipe["batch"] * recipe["length"] // long["length"]), long["length"]
    return recipe["batch"], recipe["length"]


def answering(logits: Callable, place: int) -> dict[str, Callable]:
    """`items`, `loss` and `right` of a task whose logits (a row for each id) predict the ids batch[place]."""
    return {
        "items": lambda batch: batch[place].numel(),
        "loss": lambda model, batch: cross_entropy(
            logits(model, batch), batch[place].flatten(), reduction="none"
        ),
        "right": lambda model, batch: (logits(model, batch).argmax(-1) == batch[place].flatten()).float(),
    }


def masked_language_model(recipe: dict, packed: Path, words, device: torch.device) -> Task:
    """BERT: predict the hidden ids of [CLS] row [SEP]."""
    config = BertConfig(vocab_size=len(words), pad_token_id=words.pad_token_id, **recipe["shape"])
    model = BertForMaskedLM(config).to(device)
    ids, held = training_stream(packed, recipe, device), stream(packed / "held_out.bin", device)
    special = max(words.all_special_ids) + 1

    def hidden(rows: Tensor, rate: float, generator: Generator) -> Batch:
        edge = rows.new_ones(len(rows), 1)
        rows = torch.cat([edge * words.cls_token_id, rows, edge * words.sep_token_id], 1)
        return mask_tokens(
            rows,
            rate=rate,
            mask=words.mask_token_id,
            special=special,
            vocabulary=len(words),
            generator=generator,
        )

    def train(step: int) -> Batch:
        generator = generator_at(recipe["seed"], step, device)
        batch, length = shape_at(recipe, step)
        return hidden(drawn(ids, batch, length - 2, generator), recipe["rate"], generator)

    def logits(model: nn.Module, batch: Batch) -> Tensor:
        # without a mask transformers makes one while a graph is captured, and attention drops differently
        mask = torch.zeros_like(batch[0], dtype=model.dtype)[:, None, None]
        states = model.base_model(input_ids=batch[0], attention_mask=mask).last_hidden_state
        places = batch[1][..., None].expand(-1, -1, states.shape[-1])
        return model.cls(states.gather(1, places)).float().flatten(0, 1)

    rows = laid(held, recipe["length"] - 2, recipe["held_out_rows"])
    fixed = [hidden(part, 0.15, generator_at(0, 0, device)) for part in rows.split(recipe["batch"])]
    return Task(model, train, fixed, **answering(logits, 2))


def text_to_text(recipe: dict, packed: Path, words, device: torch.device, rows_to_pair: Callable) -> Task:
    """A T5 1.1 that learns targets from inputs. rows_to_pair: (rows, generator) -> (inputs, targets)."""
    config = T5Config(
        vocab_size=len(words),
        pad_token_id=words.pad_token_id,
        eos_token_id=words.eos_token_id,
        decoder_start_token_id=words.pad_token_id,
        **recipe["shape"],
    )
    model = T5ForConditionalGeneration(config).to(device)
    if not config.scale_decoder_outputs:  # T5's deviation of 1 is for outputs that are scaled
        for table in (model.shared, model.lm_head):
            nn.init.normal_(table.weight, std=0.05)
    ids, held = training_stream(packed, recipe, device), stream(packed / "held_out.bin", device)

    def train(step: int) -> Batch:
        generator = generator_at(recipe["seed"], step, device)
        return rows_to_pair(drawn(ids, *shape_at(recipe, step), generator), generator)

    def logits(model: nn.Module, batch: Batch) -> Tensor:
        shifted = torch.cat([torch.full_like(batch[1][:, :1], words.pad_token_id), batch[1][:, :-1]], 1)
        return model(input_ids=batch[0], decoder_input_ids=shifted).logits.float().flatten(0, 1)

    rows = laid(held, recipe["length"], recipe["held_out_rows"])
    fixed = [rows_to_pair(part, generator_at(0, 0, device)) for part in rows.split(recipe["batch"])]
    return Task(model, train, fixed, **answering(logits, 1))


def span_corruption(recipe: dict, packed: Path, words, device: torch.device) -> Task:
    """T5's task: predict hidden spans after their sentinels."""
    sentinels = torch.tensor(words.convert_tokens_to_ids(SENTINELS), device=device)

    def pair(rows: Tensor, generator: Generator) -> Batch:
        return corrupt_spans(
            rows,
            rate=recipe["rate"],
            span=recipe["span"],
            sentinels=sentinels,
            end=words.eos_token_id,
            generator=generator,
        )

    return text_to_text(recipe, packed, words, device, pair)


def language_model(recipe: dict, packed: Path, words, device: torch.device) -> Task:
    """LM adaptation: predict the second half of a row from the first."""

    def pair(rows: Tensor, generator: Generator) -> Batch:
        return halves(rows, end=words.eos_token_id)

    return text_to_text(recipe, packed, words, device, pair)


def classification(recipe: dict, packed: Path, words, device: torch.device) -> Task:
    """A ViT that learns classes from views of images: windows, flips, RandAugment, and Mixup or CutMix.

    A window has a share of the area within `augment.scale` and is resized to the model's size.
    """
    splits = {split: dict(np.load(packed / f"{split}.npz")) for split in ("train", "held_out")}
    count = int(max(split["labels"].max() for split in splits.values())) + 1
    model = VisionTransformer(num_classes=count, **recipe["shape"]).to(device)
    pixels, held = (
        torch.from_numpy(splits[split]["pixels"]).permute(0, 3, 1, 2).contiguous().to(device)
        for split in splits
    )
    labels, held_labels = (torch.from_numpy(splits[split]["labels"]).to(device) for split in splits)
    size, seed, augment = recipe["shape"]["img_size"], recipe["seed"], recipe["augment"]
    mixed = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=count)
    altered = RandAugment(num_ops=augment["operations"], magnitude=augment["magnitude"])

    def train(step: int) -> Batch:
        generator = generator_at(seed, step, device)
        torch.manual_seed(seed * 10_000_019 + step)  # RandAugment and the model's drop path
        np.random.seed([seed, step])  # timm's Mixup
        chosen = torch.randint(0, len(labels), (recipe["batch"],), generator=generator, device=device)
        images = pixels[chosen]
        views = scaled(images, random_windows(images, augment["scale"], generator), size)
        views = random_flip(views.round().to(torch.uint8), generator)  # RandAugment takes bytes
        views = torch.cat([altered(part) for part in views.chunk(augment["groups"])])
        return mixed(normalised(views), labels[chosen])

    middle = normalised(center_crop(held, size))
    return Task(
        model,
        train,
        list(zip(middle.split(recipe["batch"]), held_labels.split(recipe["batch"]), strict=True)),
        items=lambda batch: len(batch[0]),
        loss=lambda model, batch: cross_entropy(model(batch[0]).float(), batch[1], reduction="none"),
        right=lambda model, batch: (model(batch[0]).argmax(-1) == batch[1]).float(),
    )


def build(recipe: dict, packed: Path, words, device: torch.device) -> Task:
    """The task of a recipe; the model is initialised from the recipe's seed."""
    make = named(TASKS, recipe["task"], "pre-training task")
    torch.manual_seed(recipe["seed"])
    return make(recipe, packed, words, device)


TASKS = {
    "masked_language_model": masked_language_model,
    "span_corruption": span_corruption,
    "language_model": language_model,
    "classification": classification,
}
