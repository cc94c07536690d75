"""LoRA's changes in peft's format: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.model.adapter import TASKS
from tailprompt.model.adapter_config import CONFIG, WEIGHTS
from tailprompt.model.tensors import write_tensors
from tailprompt.model.tuners.lora import PARTS, together

OURS = "body.lora."  # how the names of changes begin in a run's weights
THEIRS = "base_model.model."


def write(folder: Path, weights: dict[str, Tensor], settings: dict, backbone: dict) -> None:
    """Write the changes of a run. settings: its own, flat. backbone: its row of the configuration.

    peft changes a ViT's joint layer as a whole, so both changes of one are one of twice the rank there.
    Raises BadInput for a DeBERTa of the first version: its joint layers have the three of each head together,
    and the number of heads is not in the run.
    """
    family = backbone["family"]
    if family == "deberta":
        raise BadInput("LoRA of a deberta is in parts of layers that are not exported; take a deberta-v2")
    changes = changes_of(weights)
    rank, alpha = settings["rank"], settings["alpha"]
    if family == "vit":
        changes, rank, alpha = joined(changes), 2 * rank, 2 * alpha
    config = {
        "peft_type": "LORA",
        "task_type": TASKS.get(family),
        "base_model_name_or_path": backbone.get("path", backbone.get("hub")),
        "revision": backbone.get("revision"),
        "r": rank,
        "lora_alpha": alpha,
        "target_modules": sorted(changes),
        "bias": "none",
        "inference_mode": True,
    }
    parts = [(f"{THEIRS}{place}.lora_", *pair) for place, pair in changes.items()]
    down = {f"{name}A.weight": matrix.contiguous() for name, matrix, _ in parts}
    up = {f"{name}B.weight": matrix.contiguous() for name, _, matrix in parts}
    write_tensors(folder / WEIGHTS, down | up)
    write_json(folder / CONFIG, config)


def changes_of(weights: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B of each changed layer, by its name in the backbone."""
    names = [name[len(OURS) : -len(".down")] for name in weights if re.fullmatch(rf"{OURS}.*\.down", name)]
    return {
        re.sub(r"\.proj$", "_proj", name.replace("_", ".")): (
            weights[f"{OURS}{name}.down"],
            weights[f"{OURS}{name}.up"],
        )
        for name in names
    }


def joined(changes: dict[str, tuple[Tensor, Tensor]]) -> dict[str, tuple[Tensor, Tensor]]:
    """The changes of queries and of values as one change of their joint layer."""
    layers = dict.fromkeys(place.rpartition(".")[0] for place in changes)
    return {layer: both(*(changes[f"{layer}.{part}"] for part in PARTS)) for layer in layers}


def both(
    query: tuple[Tensor, Tensor], value: tuple[Tensor, Tensor]
) -> tuple[Float[Tensor, "twice width"], Float[Tensor, "thrice twice"]]:
    """One A and B whose product changes queries by the first pair and values by the second."""
    nothing = torch.zeros_like(query[1])
    first, last = torch.cat([query[1], nothing], 1), torch.cat([nothing, value[1]], 1)
    return torch.cat([query[0], value[0]]), together(first.T, last.T, 1).T
