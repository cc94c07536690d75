"""The progress of a run, and the file from which a killed run resumes."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from tailprompt.errors import BadInput
from tailprompt.files import whole
from tailprompt.training.schedules import Factor


@dataclass
class Progress:
    """The progress of training, all of which is in the file from which a killed run resumes.

    micro: size of a micro-batch. best: the trainable tensors of the best step.
    """

    step: int = 0
    best_step: int = 0
    best_score: float = float("-inf")
    micro: int = 0
    seconds: float = 0.0
    curve: list[dict] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Learner:
    """A model and what changes it.

    learned: its trainable tensors by name. factor: step -> factor of the learning rate. elapsed: the share of
    the epochs that are over, on the model's device. graded: names of the tensors that the last step had a
    gradient for.
    """

    model: nn.Module
    learned: dict[str, Tensor]
    optimizer: Optimizer
    factor: Factor
    elapsed: Tensor
    graded: list[str] = field(default_factory=list)

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
    """Write everything that the rest of the run depends on, atomically.

    Raises BadInput if the disk is full.
    """
    content = {
        "key": key,
        "progress": vars(progress),
        "learned": learner.learned,
        "optimizer": learner.optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_cards": torch.cuda.get_rng_state_all() if learner.device.type == "cuda" else [],
    }
    with whole(state) as temporary:
        try:
            torch.save(content, temporary)
        except RuntimeError as error:  # what torch raises on a full disk
            raise BadInput(f"{state} cannot be written ({error}); there may be no room") from None


def resume(state: Path | None, key: str, learner: Learner) -> Progress | None:
    """Load what `save` wrote, if it is intact and of the same run; otherwise return None."""
    if state is None or not os.path.exists(state):
        return None
    try:
        content = torch.load(state, map_location=learner.device, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError):
        content = {"key": None}
    if content["key"] != key:
        tqdm.write(f"{state} is not of this run as it is set now; starting from the first step")
        return None
    with torch.no_grad():
        for name, value in content["learned"].items():
            learner.learned[name].copy_(value)
    learner.optimizer.load_state_dict(content["optimizer"])
    torch.set_rng_state(content["random"].cpu())
    gpus = range(torch.cuda.device_count() if learner.device.type == "cuda" else 0)
    for gpu, drawn in zip(gpus, content.get("random_cards", []), strict=False):  # there may be fewer now
        torch.cuda.set_rng_state(drawn.cpu(), gpu)
    return Progress(**content["progress"])
