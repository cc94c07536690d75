"""The trained weights of a run, written to its folder and loaded into a model of the same settings."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from tailprompt.errors import BadInput
from tailprompt.files import read_json, reading, sha256
from tailprompt.model import adapter
from tailprompt.model.adapter_config import WEIGHTS, is_adapter
from tailprompt.model.compose import Model
from tailprompt.model.tensors import write_tensors

NETWORK = "body.pretrained."  # how the names of parameters begin that come from the checkpoint
PREFIX = "body.prefix."
HEAD = "head."  # and of those of the head
ADDED = ("body.prompts", PREFIX, "body.lora.")  # and of those that a run may not begin without


def write_weights(path: Path, model: Model, *, tuned: bool, keep: bool) -> None:
    """Write the class vectors and the parameters in `held`; those of a tuned network only with `keep`.

    tuned: whether the network differs from the checkpoint.
    """
    kept = held(model, tuned=tuned)
    if tuned and not keep:
        kept = {name for name in kept if not name.startswith(NETWORK)}
    tensors = {name: value.detach() for name, value in parameters(model).items() if name in kept}
    tensors["class_vectors"] = model.head.class_vectors().detach()
    write_tensors(path, {name: value.cpu().contiguous().clone() for name, value in tensors.items()})


def held(model: Model, *, tuned: bool = False) -> set[str]:
    """Names of the parameters that the checkpoint does not give: all that learn or that a tuner added.

    tuned: whether the network differs from the checkpoint, because it learned here or in the run's start.
    Then all of its parameters are included.
    """
    named = parameters(model)
    added = {name for name in named if name.startswith("body.") and not name.startswith(NETWORK)}
    network = {name for name in named if name.startswith(NETWORK)} if tuned else set()
    fitted = {f"{HEAD}{name}" for name, _ in model.head.named_parameters() if hasattr(model.head, "sized")}
    return {name for name, value in named.items() if value.requires_grad} | added | network | fitted


def parameters(model: Model) -> dict[str, Tensor]:
    """The parameters by name; of a prefix its keys and values, whatever makes them."""
    prefix, names = getattr(model.body, "prefix", None), f"{PREFIX}network."
    own = {name: value for name, value in model.named_parameters() if not name.startswith(names)}
    made = {} if prefix is None else prefix.stacked()
    return own | {f"{PREFIX}{name}": value for name, value in made.items()}


def need_not_hold(model: Model, *, tuned: bool) -> set[str]:
    """Names of the parameters that the weights of a run's start may lack.

    They may lack the body, but not its prompts or changes, and not the network if it was `tuned` in that run.
    """
    return {
        name
        for name, _ in model.named_parameters()
        if name.startswith("body.")
        and not name.startswith(ADDED)
        and not (tuned and name.startswith(NETWORK))
    }


def learns_whole(model: Model) -> bool:
    """Whether every parameter of the network learns."""
    network = [*model.body.pretrained.parameters()]
    return bool(network) and all(value.requires_grad for value in network)


def file_of(run: Path) -> Path:
    """Where the weights of a run, or of peft's adapter, lie; raises BadInput if they did not travel."""
    path = run / (WEIGHTS if is_adapter(run) else "weights.safetensors")
    if not path.is_file() and (run / "weights.json").is_file():
        raise BadInput(
            f"{run} came in a bundle, in which weights do not travel; ask snakemake for its "
            "results/<scale>/runs/<protocol>/<backbone>/<dataset>/<method>/<seed>/weights.safetensors, which "
            "trains it here"
        )
    return path


def load_trained(
    model: Model,
    run: Path,
    *,
    tuned: bool = False,
    lacking: Collection[str] = (),
    hint: str = "",
    head: bool = True,
) -> None:
    """Load the weights of a run; raises BadInput unless they have all parameters in `held` except `lacking`.

    tuned: as in `held`. hint: advice if the file has the head of a tuned network without the network. head:
    whether the head is taken too, or the model's stays as it is.
    """
    path = file_of(run)
    if is_adapter(run):
        load_adapter(model, run)
        return
    check_digest(run, path)
    with reading(path):
        weights = load_file(path)
    weights.pop("class_vectors", None)
    if getattr(model.body, "prefix", None) is not None:
        model.body.prefix.fold()  # it goes on from keys and values
    make_room(model, weights)
    needed = held(model, tuned=tuned)
    if not head:
        weights = {name: value for name, value in weights.items() if not name.startswith(HEAD)}
        needed = {name for name in needed if not name.startswith(HEAD)}
    shapes = {name: value.shape for name, value in model.state_dict().items() if name in needed}
    absent = needed - set(weights) - set(lacking)
    if added := sorted(name for name in absent if name.startswith(ADDED)):
        wanted = tuner_of(added[0], model)
        raise BadInput(f"{path} has no {added[0]}; name the run of a method with tuner: {wanted} in start")
    if any(name.startswith(NETWORK) for name in absent):
        raise BadInput(f"{path} holds the head without its body; {hint}, and run it again")
    if absent or any(shapes.get(name) != value.shape for name, value in weights.items()):
        raise BadInput(f"{path} is of another model: another backbone, head or number of classes")
    model.load_state_dict(weights, strict=False)


def make_room(model: Model, weights: dict[str, Tensor]) -> None:
    """Give what was fitted the size that it has in these weights, which is that of its training examples."""
    for place, module in model.named_children():
        for name in getattr(module, "sized", ()):
            if (value := weights.get(f"{place}.{name}")) is not None:
                own = getattr(module, name)
                own.data = own.new_empty(value.shape)


def check_digest(run: Path, path: Path) -> None:
    """Raise BadInput if the weights of a run are not those that its run.json has the digest of."""
    record = read_json(run / "run.json") if (run / "run.json").is_file() else {}
    digest = record.get("weights_sha256")
    if digest and digest != sha256(path):
        name = "/".join(run.absolute().parts[-5:])
        raise BadInput(
            f"{path} is not what its run wrote (SHA-256); it was damaged or edited. To train the run again: "
            f"tailprompt retrain {shlex.quote(name)}"
        )


def tuner_of(name: str, model: Model) -> str:
    """The tuner that adds a parameter of this name."""
    if name != "body.prompts":
        return name.split(".")[1]
    return "soft_prompt" if model.body.reads == "text" else "prompts"


@torch.no_grad()
def load_adapter(model: Model, folder: Path) -> None:
    """Load a soft prompt or a prefix in peft's format.

    Raises BadInput unless the model takes one of its shape.
    """
    if getattr(model.body, "prefix", None) is not None:
        load_prefix(model, folder)
        return
    own = model.body.prompts
    if own is None or model.body.reads == "image":
        raise BadInput(
            f"{folder} is an adapter with a soft prompt; it starts a method with tuner: soft_prompt"
        )
    prompt = adapter.read(folder)
    if prompt.shape != own.shape:
        given, wanted = (" x ".join(map(str, tensor.shape)) for tensor in (prompt, own))
        raise BadInput(f"{folder} has a prompt of {given}, not {wanted}; set length, or the backbone")
    own.copy_(prompt / model.body.scale)


def load_prefix(model: Model, folder: Path) -> None:
    """Load a prefix in peft's format; raises BadInput unless the model takes one of its shape."""
    prefix, given = model.body.prefix, adapter.read(folder, tuner="prefix")
    prefix.fold()
    own = adapter.rows(prefix.keys, prefix.values)
    if given.shape != own.shape:
        there, wanted = (" x ".join(map(str, tensor.shape)) for tensor in (given, own))
        raise BadInput(f"{folder} has a prefix of {there}, not {wanted}; set length, layers, or the backbone")
    keys, values = adapter.keys_and_values(given, len(prefix.keys))
    prefix.keys.copy_(keys)
    prefix.values.copy_(values)


def tuned(run: Path) -> bool:
    """Whether the network of a run differs from the checkpoint, because it learned there or in a run before.

    An adapter never has a tuned network.
    """
    return not is_adapter(run) and bool(read_json(run / "run.json", "tuned")["tuned"])
