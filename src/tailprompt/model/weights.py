"""What a run trained, written to its folder and read back into a model of the same settings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch
from safetensors.torch import load_file

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json, reading
from tailprompt.model import adapter
from tailprompt.model.compose import ImageModel, Model
from tailprompt.model.tensors import write_tensors
from tailprompt.model.tuners.soft import SoftPrompted
from tailprompt.plan.starts import keeping


def write_weights(path: Path, model: Model | ImageModel, settings: dict) -> None:
    """The class vectors and what was trained; of a fully tuned body only with `keep`.

    What began in another run is trained too: all of a text model, all but the ViT's own of an image model.
    """
    kept = model.own if isinstance(model, ImageModel) else model.own(started=bool(settings["start"]))
    bulky = settings["tuner"] == "full" or settings["input"] != "pixels"
    if bulky and not settings["keep"] and settings["tuner"] != "soft_prompt":
        kept = {name for name in kept if name.startswith("head.")}
    tensors = {name: value.detach() for name, value in model.named_parameters() if name in kept}
    tensors["class_vectors"] = model.head.class_vectors().detach()
    write_tensors(path, {name: value.cpu().contiguous().clone() for name, value in tensors.items()})


def file_of(run: Path) -> Path:
    """Where the weights of a run, or of peft's adapter, lie."""
    return run / (adapter.WEIGHTS if adapter.is_adapter(run) else "weights.safetensors")


def load_trained(
    model: Model | ImageModel, run: Path, *, started: bool = False, new: Collection[str] = ()
) -> None:
    """Load a run's weights; raises BadInput unless they hold all that this model trains.

    started: the run began from another run's weights, so that nothing of it is as in the checkpoint. For an
    image model they hold all but the pretrained ViT and no more; those of a run to start from may lack `new`.
    """
    path = file_of(run)
    if adapter.is_adapter(run):
        load_adapter(model, run)
        return
    with reading(path):
        weights = load_file(path)
    weights.pop("class_vectors", None)
    images = isinstance(model, ImageModel)
    needed = model.own if images else model.own(started=started)
    shapes = {name: value.shape for name, value in model.state_dict().items() if name in needed or not images}
    absent = needed - set(weights) - set(new)
    if "body.prompts" in absent:
        raise BadInput(f"{path} has no body.prompts; name the run of a method with tuner: prompts in start")
    if "body.prompt" in absent:
        raise BadInput(f"{path} has no body.prompt; name a run with tuner: soft_prompt in start")
    if any(name.startswith("body.") for name in absent):
        method = keyed(read_json(run / "run.json", "point")["point"], f"point of {run}", "method")["method"]
        raise BadInput(f"{path} holds the head without its body; {keeping(method)}, and run it again")
    if absent or any(shapes.get(name) != value.shape for name, value in weights.items()):
        raise BadInput(f"{path} is of another model: another backbone, head or number of classes")
    model.load_state_dict(weights, strict=False)


@torch.no_grad()
def load_adapter(model: Model, folder: Path) -> None:
    """Load a soft prompt in peft's format; raises BadInput unless it is of this model's shape."""
    if not isinstance(model.body, SoftPrompted):
        raise BadInput(
            f"{folder} is an adapter with a soft prompt; it starts a method with tuner: soft_prompt"
        )
    found, own = adapter.read(folder), model.body.prompt
    if found.shape != own.shape:
        given, wanted = (" x ".join(map(str, tensor.shape)) for tensor in (found, own))
        raise BadInput(f"{folder} has a prompt of {given}, not {wanted}; set soft_length, or the backbone")
    own.copy_(found / model.body.scale)


def tuned(run: Path) -> bool:
    """Whether a run's body may not be the checkpoint's: it learned there, or in a run before.

    Never that of an adapter.
    """
    if adapter.is_adapter(run):
        return False
    settings = read_json(run / "run.json", "settings")["settings"]
    return settings["tuner"] == "full" or bool(settings["start"])
