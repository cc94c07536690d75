"""The progress of a run, and the file from which a killed run resumes."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field, fields
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from tailprompt.errors import BadInput
from tailprompt.files import room, whole
from tailprompt.machine.progress import say
from tailprompt.training.schedules import Factor

Record = Float[Tensor, "3"]  # loss, norm of the gradient, number of the first gradient that is not finite
CHECK, CHUNK = 4, 2**24  # bytes of a checksum, and of a file that are read at a time


@dataclass
class Progress:
    """The progress of training, all of which is in the file from which a killed run resumes.

    micro: size of a micro-batch. best: the trainable tensors of the best step. records: of the steps since
    the last evaluation.
    """

    step: int = 0
    best_step: int = 0
    best_score: float = float("-inf")
    micro: int = 0
    seconds: float = 0.0
    curve: list[dict] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class Learner:
    """A model and what changes it.

    learned: its trainable tensors by name. factor: step -> factor of the learning rate. elapsed: the share of
    the epochs that are over, on the model's device.
    """

    model: nn.Module
    learned: dict[str, Tensor]
    optimizer: Optimizer
    factor: Factor
    elapsed: Tensor

    @property
    def device(self) -> torch.device:
        """The device of the trainable tensors."""
        return next(iter(self.learned.values())).device

    def set_rate(self, rate: float) -> None:
        """Set the learning rate; in place where it is a tensor, whose address a CUDA graph holds."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def save(state: Path, key: str, progress: Progress, learner: Learner) -> None:
    """Write everything that the rest of the run depends on, and its checksum, atomically.

    Raises BadInput if the disk is full.
    """
    records = torch.stack(progress.records) if progress.records else torch.zeros(0, 3)
    content = {
        "key": key,
        "progress": {**vars(progress), "records": records},
        "learned": learner.learned,
        "optimizer": learner.optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_cards": torch.cuda.get_rng_state_all() if learner.device.type == "cuda" else [],
    }
    with whole(state) as temporary:
        try:
            torch.save(content, temporary)
        except RuntimeError as error:  # what torch raises on a full disk
            reason = f"{' '.join(str(error).split())}; {room(state):,} bytes are free"
            raise BadInput(f"{state} cannot be written ({reason})") from None
        check = checksum(temporary)
        with open(temporary, "ab") as file:  # after the end of the archive, where torch does not look
            file.write(check)


def checksum(file: Path, size: int | None = None) -> bytes:
    """The checksum of the first `size` bytes of a file, or of all."""
    left, check = os.path.getsize(file) if size is None else size, 0
    with open(file, "rb") as content:
        while left and (part := content.read(min(left, CHUNK))):
            left, check = left - len(part), zlib.crc32(part, check)
    return check.to_bytes(CHECK, "little")


def resume(state: Path | None, key: str, learner: Learner) -> Progress | None:
    """Load what `save` wrote, if it is intact and of the same run; otherwise say so and return None."""
    if state is None or not os.path.lexists(state):
        return None
    try:
        content = read(state, learner.device)
        if content["key"] != key:
            raise BadInput(f"{state} is of other settings, data, weights or code than this run")
        if not fits(content, learner):
            raise BadInput(f"{state} is of another version of tailprompt")
    except Exception as error:  # whatever a file of another version trips over
        reason = error if isinstance(error, BadInput) else f"{state} cannot be read ({error!r})"
        say(f"{reason}; starting from the first step")
        return None
    return taken(content, learner)


def read(state: Path, device: torch.device) -> dict:
    """The content of a state; raises BadInput if it does not end in its checksum."""
    size = os.path.getsize(state) - CHECK
    with open(state, "rb") as file:
        file.seek(max(size, 0))
        if size <= 0 or file.read() != checksum(state, size):
            raise BadInput(f"{state} is damaged, or of an older version of tailprompt")
    return torch.load(state, map_location=device, weights_only=True)


def fits(content: dict, learner: Learner) -> bool:
    """Whether the parts of a state are those that `taken` puts in place."""
    groups = [each["param_groups"] for each in (content["optimizer"], learner.optimizer.state_dict())]
    return (
        content["progress"].keys() == {each.name for each in fields(Progress)}
        and shapes(content["learned"]) == shapes(learner.learned)
        and shapes(content["progress"]["best"]) in ({}, shapes(learner.learned))
        and [group["params"] for group in groups[0]] == [group["params"] for group in groups[1]]
        and content["progress"]["records"].shape[1:] == (3,)
        and content["random"].shape == torch.get_rng_state().shape
    )


def shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    """The shape of each tensor by name."""
    return {name: value.shape for name, value in tensors.items()}


def taken(content: dict, learner: Learner) -> Progress:
    """The progress in a state, whose tensors and random numbers are put in place."""
    with torch.no_grad():
        for name, value in content["learned"].items():
            learner.learned[name].copy_(value)
    learner.optimizer.load_state_dict(content["optimizer"])
    torch.set_rng_state(content["random"].cpu())
    gpus = range(torch.cuda.device_count() if learner.device.type == "cuda" else 0)
    for gpu, drawn in zip(gpus, content.get("random_cards", []), strict=False):  # there may be fewer now
        torch.cuda.set_rng_state(drawn.cpu(), gpu)
    progress = Progress(**content["progress"] | {"records": list(content["progress"]["records"])})
    say(f"going on after step {progress.step:,}")
    return progress
