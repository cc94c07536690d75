"""The training loop. It knows a model, batches, a loss and an evaluation, and nothing else.

GLEE section 3.1: AdamW, linear warm-up and decay, clipping, evaluation after a number of steps, patience, and
at the end the weights with the best dev score. LPT appendix B: SGD, a cosine schedule, and the last weights.
The loop also pre-trains backbones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from tailprompt.errors import BadInput
from tailprompt.training.schedules import Factor
from tailprompt.training.state import Learner, Progress, resume, save

Batch = object  # whatever `parts` gives and the loss takes
Loss = Callable[[nn.Module, Batch, float], Float[Tensor, " items"]]
Evaluate = Callable[[nn.Module], dict[str, float]]
SAVE_SECONDS = 120.0  # between two saves of the state


@dataclass(frozen=True)
class Batches:
    """What a model is trained on. The rows depend on the step only, so that a resumed run repeats them.

    per_epoch: steps an epoch. size: the most examples in a step. parts: (step, largest micro-batch) ->
    micro-batches, each with the number of items in its whole batch (examples, or labelled tokens), which
    divides the sum of its losses. A step may have several batches, whose mean losses are added. names:
    step -> the ids of its examples, for messages.
    """

    per_epoch: int
    size: int
    parts: Callable[[int, int], Iterable[tuple[Batch, int]]]
    names: Callable[[int], list[str]]


@dataclass(frozen=True)
class Schedule:
    """How a model is trained. `epochs` and `patience` count epochs, `evaluate_every` steps (0: an epoch).

    optimizer: (trainable tensors, lr=...) -> optimizer. rate: (steps, steps an epoch) -> factor of `lr` at a
    step. clip: largest norm of the gradient; 0 does not clip. select: the score that decides which weights
    are kept, by strict improvement, or `last`. check_each_step: whether to check each loss and gradient
    before it is applied, which makes the GPU wait; otherwise the loss is checked at each evaluation.
    """

    optimizer: Callable[..., Optimizer]
    rate: Callable[[int, int], Factor]
    lr: float
    epochs: float
    patience: float
    clip: float
    evaluate_every: int
    select: str
    check_each_step: bool


def fit(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    evaluate: Evaluate,
    schedule: Schedule,
    *,
    state: Path | None = None,
    key: str = "",
    label: str = "",
) -> Progress:
    """Train `model` in place, and leave it with the weights of its best score.

    loss: (model, batch, share of the epochs that are over) -> loss per item. evaluate: model -> scores, which
    become a line of the curve. A killed run resumes from the file `state` if `key` is still the same. Raises
    BadInput if a loss or gradient is not finite.
    """
    per_epoch, total = batches.per_epoch, steps(schedule, batches.per_epoch)
    learner = learner_of(model, schedule, total, per_epoch)
    progress = resume(state, key, learner) or Progress(micro=batches.size)
    begun, saved, losses = time.monotonic() - progress.seconds, time.monotonic(), []
    bar = tqdm(total=total, initial=progress.step, desc=label, unit="step", mininterval=2, dynamic_ncols=True)
    with bar:
        while progress.step < total and not tired(progress, schedule.patience * per_epoch):
            elapsed = progress.step // per_epoch * per_epoch / total
            losses.append(update(learner, batches, loss, schedule, progress, elapsed))
            progress.step += 1
            bar.update()
            if progress.step % (schedule.evaluate_every or per_epoch) and progress.step < total:
                continue
            average, losses = mean(losses, progress.step, label), []
            scores = evaluate(model)
            progress.seconds = time.monotonic() - begun
            note(progress, learner, average, scores, per_epoch, schedule.select)
            bar.set_postfix({name: f"{value:.3f}" for name, value in {"loss": average, **scores}.items()})
            if state is not None and time.monotonic() - saved >= SAVE_SECONDS:
                save(state, key, progress, learner)
                saved = time.monotonic()
    put_back(learner, progress.best)
    return progress


def steps(schedule: Schedule, per_epoch: int) -> int:
    """The total number of steps: at least one, unless there are no epochs."""
    return max(round(schedule.epochs * per_epoch), schedule.epochs > 0)


def learner_of(model: nn.Module, schedule: Schedule, total: int, per_epoch: int) -> Learner:
    """The model with its trainable tensors, their optimizer and the schedule of the learning rate."""
    learned = {name: value for name, value in model.named_parameters() if value.requires_grad}
    optimizer = schedule.optimizer(learned.values(), lr=schedule.lr)
    return Learner(model, learned, optimizer, LambdaLR(optimizer, schedule.rate(total, per_epoch)))


def tired(progress: Progress, patience: float) -> bool:
    """Whether the last evaluation came `patience` steps or more after the best one."""
    return bool(progress.curve) and progress.curve[-1]["step"] - progress.best_step >= patience


def update(
    learner: Learner, batches: Batches, loss: Loss, schedule: Schedule, progress: Progress, elapsed: float
) -> Float[Tensor, ""]:
    """Take one step of the optimizer; returns the loss, which stays on its device."""
    learner.model.train()
    value = backpropagate(learner, batches, loss, progress, elapsed)
    norm = nn.utils.clip_grad_norm_(learner.learned.values(), schedule.clip or math.inf)
    if schedule.check_each_step and not torch.isfinite(value + norm):
        raise diverged(value, learner.learned, batches.names(progress.step), progress.step)
    learner.optimizer.step()
    learner.optimizer.zero_grad(set_to_none=True)
    learner.rate.step()
    return value


def backpropagate(
    learner: Learner, batches: Batches, loss: Loss, progress: Progress, elapsed: float
) -> Float[Tensor, ""]:
    """Compute the gradients of a step and return its loss; halves the micro-batch if memory runs out."""
    while True:
        try:
            parts = batches.parts(progress.step, progress.micro)
            return accumulate(learner.model, parts, loss, elapsed)
        except torch.cuda.OutOfMemoryError:
            progress.micro = halved(progress.micro, batches.size)
        learner.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()


def accumulate(
    model: nn.Module, parts: Iterable[tuple[Batch, int]], loss: Loss, elapsed: float
) -> Float[Tensor, ""]:
    """The sum over batches of the mean loss over items; gradients accumulate over micro-batches."""
    total = 0.0
    for batch, items in parts:
        value = loss(model, batch, elapsed).sum() / items
        value.backward()
        total += value.detach()
    return total


def halved(micro: int, size: int) -> int:
    """Half the size of a micro-batch, which is printed; raises BadInput for a single example."""
    if micro == 1:
        raise BadInput(
            "the GPU has no memory for a single example; lower max_length or take a smaller backbone"
        ) from None
    half = -(-micro // 2)
    tqdm.write(f"out of memory: micro-batch is now {half}, the batch stays {size} by accumulation")
    return half


def diverged(value: Tensor, learned: dict[str, Tensor], names: list[str], step: int) -> BadInput:
    """The error for a step whose loss or gradient is not finite, before its update is applied."""
    broken = [
        name
        for name, tensor in learned.items()
        if tensor.grad is not None and not tensor.grad.isfinite().all()
    ]
    what = (
        f"the loss is {float(value)}"
        if not value.isfinite()
        else f"the gradient of {broken[0] if broken else 'the model'} is not finite"
    )
    return BadInput(
        f"training stopped at step {step + 1}: {what} (first tensor: {broken[0] if broken else 'loss'}); "
        f"examples of the batch: {', '.join(names)}; lower lr, or look at these examples"
    )


def mean(losses: list[Tensor], step: int, label: str) -> float:
    """The mean of the losses up to `step`; raises BadInput if it is not finite."""
    values = torch.stack(losses).tolist()
    average = sum(values) / len(values)
    if not math.isfinite(average):
        first = step - len(values) + 1
        raise BadInput(f"{label}: the loss is not finite between steps {first} and {step}; lower lr")
    return average


def note(
    progress: Progress, learner: Learner, loss: float, scores: dict, per_epoch: int, select: str
) -> None:
    """Add a line to the curve, and keep the weights if the score has strictly improved."""
    progress.curve.append(
        {
            "step": progress.step,
            "epoch": round(progress.step / per_epoch, 3),
            "loss": loss,
            "lr": learner.rate.get_last_lr()[0],
            **scores,
            "seconds": round(progress.seconds, 2),
        }
    )
    score = progress.step if select == "last" else scores[select]
    if score <= progress.best_score:
        return
    progress.best_score, progress.best_step = score, progress.step
    if select != "last":
        progress.best = {name: value.detach().clone() for name, value in learner.learned.items()}


@torch.no_grad()
def put_back(learner: Learner, best: dict[str, Tensor]) -> None:
    """Restore the best weights of the model, if they were kept."""
    for name, value in best.items():
        learner.learned[name].copy_(value)
