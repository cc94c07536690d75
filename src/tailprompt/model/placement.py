"""The placement of a backbone that may be too large for one GPU: accelerate's device map."""

from __future__ import annotations

import torch
from torch import nn

from tailprompt.errors import BadInput, counted, named
from tailprompt.model.checkpoints import pretrained

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SHARE = 0.8  # share of a GPU's free memory for parameters; activations take the rest
LEARNING = 5  # float32 copies of a parameter under AdamW: itself, its gradient, two moments, the best so far


def placed(row: dict, where: str, pinned: dict) -> dict:
    """The dtype and devices with which `from_pretrained` loads the weights of a T5."""
    from transformers import AutoModelForSeq2SeqLM

    stated = named(DTYPES, row.get("dtype", "float32"), f"dtype of backbone {where},")
    dtype = torch.float32 if row["learns"] else stated
    if row["device"] == "meta":
        return {"dtype": dtype, "device_map": "meta"}
    if "device_map" not in row or row["device"] == "cpu":
        return {"dtype": dtype}
    empty = pretrained(AutoModelForSeq2SeqLM, where, pinned, dtype=dtype, device_map="meta")
    return {"dtype": dtype, "device_map": over_cards(empty, where, learns=row["learns"])}


def over_cards(model: nn.Module, where: str, *, learns: bool) -> dict[str, int | str]:
    """The device of each part of a model, spread evenly over the GPUs. model: without weights, on `meta`.

    The part of a frozen model that does not fit the GPUs stays in main memory and is copied to the first GPU
    in each pass. Both embeddings are on the first GPU, like prompt, head and loss. Raises BadInput if memory
    does not suffice, before any weight is read.
    """
    from accelerate import infer_auto_device_map  # takes a second that smaller backbones never need
    from accelerate.utils import compute_module_sizes, get_balanced_memory, get_max_memory

    copies, whole = LEARNING if learns else 1, list(model._no_split_modules)
    free = get_max_memory()
    host = {"cpu": 0 if learns else SHARE * free["cpu"]}
    gpus = {gpu: SHARE * size / copies for gpu, size in free.items() if gpu != "cpu"}
    room = get_balanced_memory(model, {**gpus, **host}, no_split_module_classes=whole)
    device_map = infer_auto_device_map(model, room, no_split_module_classes=whole)
    if "disk" in device_map.values():
        needed = compute_module_sizes(model)[""] * copies / SHARE
        have = sum(free[gpu] for gpu in gpus) + host["cpu"]
        raise BadInput(
            f"backbone {where}{', tuned whole,' if learns else ''} needs {needed / 1e9:.1f} GB; "
            f"{counted(len(gpus), 'GPU', 'have')} {have / 1e9:.1f} GB free"
            f"{'' if learns else ', main memory counted in'}; set cards in its row to more, if there are "
            "more, or take a smaller backbone"
        )
    ends = [model.get_input_embeddings(), model.get_output_embeddings()]
    first = min(gpus)
    return {**device_map, **{name: first for name, part in model.named_modules() if part in ends}}
