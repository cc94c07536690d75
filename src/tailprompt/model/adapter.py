"""Soft prompts and prefixes in peft's format: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from tailprompt.errors import BadInput, named
from tailprompt.files import reading, write_json
from tailprompt.model.adapter_config import CONFIG, KINDS, WEIGHTS, stated
from tailprompt.model.tensors import write_tensors

TENSOR = "prompt_embeddings"
ENCODERS = ("bert", "roberta", "deberta", "deberta-v2")
TASKS = {"t5": "SEQ_2_SEQ_LM", **dict.fromkeys(ENCODERS, "FEATURE_EXTRACTION")}


Stacked = Float[Tensor, "layers length inner"]  # keys or values of a prefix


def write(
    folder: Path, prompt: Float[Tensor, "length width"], backbone: dict, *, tuner: str = "soft_prompt"
) -> None:
    """Write a prompt in the space of the input embeddings, or the `rows` of a prefix.

    backbone: its row of the configuration.
    """
    length, width = prompt.shape
    config = {
        "peft_type": KINDS[tuner],
        "task_type": named(TASKS, backbone["family"], "family with prompt tuning in peft"),
        "base_model_name_or_path": backbone.get("path", backbone.get("hub")),
        "revision": backbone.get("revision"),
        "num_virtual_tokens": length,
        "num_transformer_submodules": 1,  # the prompt stands before the encoder's input only
        "inference_mode": True,
        **({"token_dim": width, "prompt_tuning_init": "RANDOM"} if tuner == "soft_prompt" else {}),
    }
    write_tensors(folder / WEIGHTS, {TENSOR: prompt.detach().cpu().contiguous()})
    write_json(folder / CONFIG, config)


def rows(keys: Stacked, values: Stacked) -> Float[Tensor, "length width"]:
    """A prefix as peft and the released code of P-Tuning v2 keep it.

    Of each place it has the key and the value of one layer after another.
    """
    return torch.stack([keys, values], dim=1).permute(2, 0, 1, 3).flatten(1)


def keys_and_values(rows: Float[Tensor, "length width"], layers: int) -> tuple[Stacked, Stacked]:
    """The prefix that is kept as these rows."""
    keys, values = rows.unflatten(1, (layers, 2, -1)).permute(2, 1, 0, 3)
    return keys, values


def read(folder: Path, *, tuner: str = "soft_prompt") -> Float[Tensor, "length width"]:
    """The prompt of an adapter, in the space of the input embeddings, or the `rows` of its prefix.

    peft stores as many rows again for a decoder, which prompt tuning does not read. Raises BadInput for
    another kind of adapter, and for a prompt of the wrong length or with values that are not finite.
    """
    length, path = stated(folder, tuner=tuner)["num_virtual_tokens"], folder / WEIGHTS
    with reading(path):
        tensor = named(load_file(path), TENSOR, f"tensor in {path},")
    if type(length) is not int or not 0 < length <= len(tensor):
        raise BadInput(
            f"{folder / CONFIG}: num_virtual_tokens is {length!r}; "
            f"{WEIGHTS} has vectors for 1 to {len(tensor)}"
        )
    if not tensor.isfinite().all():
        raise BadInput(f"{path}: {TENSOR} holds numbers that are not finite")
    return tensor[:length]
