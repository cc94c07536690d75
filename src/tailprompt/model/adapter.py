"""A soft prompt in the format of peft's prompt tuning: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

from pathlib import Path

from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from tailprompt.errors import BadInput, named
from tailprompt.files import reading, write_json
from tailprompt.model.adapter_config import CONFIG, KIND, WEIGHTS, stated
from tailprompt.model.tensors import write_tensors

TENSOR = "prompt_embeddings"
TASKS = {"t5": "SEQ_2_SEQ_LM", "bert": "FEATURE_EXTRACTION", "roberta": "FEATURE_EXTRACTION"}


def write(folder: Path, prompt: Float[Tensor, "length width"], backbone: dict) -> None:
    """Write a prompt in the space of the input embeddings. backbone: its row of the configuration."""
    length, width = prompt.shape
    config = {
        "peft_type": KIND,
        "task_type": named(TASKS, backbone["family"], "family with prompt tuning in peft"),
        "base_model_name_or_path": backbone.get("path", backbone.get("hub")),
        "revision": backbone.get("revision"),
        "num_virtual_tokens": length,
        "num_transformer_submodules": 1,  # the prompt stands before the encoder's input only
        "token_dim": width,
        "prompt_tuning_init": "RANDOM",
        "inference_mode": True,
    }
    write_tensors(folder / WEIGHTS, {TENSOR: prompt.detach().cpu().contiguous()})
    write_json(folder / CONFIG, config)


def read(folder: Path) -> Float[Tensor, "length width"]:
    """The prompt of an adapter, in the space of the input embeddings.

    peft stores as many rows again for a decoder, which prompt tuning does not read. Raises BadInput for
    another kind of adapter, and for a prompt of the wrong length or with values that are not finite.
    """
    length, path = stated(folder)["num_virtual_tokens"], folder / WEIGHTS
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
