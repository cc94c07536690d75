"""The training loop. It knows a model, batches, a loss and an evaluation, and nothing else.

GLEE section 3.1: AdamW, linear warm-up and decay, clipping, evaluation after a number of steps, patience, and
at the end the weights with the best dev score. LPT appendix B: SGD, a cosine schedule, and the last weights.
The loop also pre-trains backbones. On a GPU it reads nothing back between evaluations, and a step is captured
as a CUDA graph when its shapes come again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.optim import Optimizer

from tailprompt.errors import BadInput
from tailprompt.files import check_room
from tailprompt.machine.progress import say, shown
from tailprompt.training.finite import mean
from tailprompt.training.graphs import Graphs, own_stream
from tailprompt.training.schedules import Factor
from tailprompt.training.state import Learner, Progress, Record, resume
from tailprompt.training.stopping import keeper, kept_where_memory_ends, noticed, stopped

Batch = object  # whatever `made` returns and the loss takes
Loss = Callable[[nn.Module, Batch, Float64[Tensor, ""]], Float[Tensor, " items"]]
Evaluate = Callable[[nn.Module], dict[str, float]]
COPIES = 5  # of what learns, that a run may write: learned, best, two moments, its weights in the end
MOST_STEPS = 10**9


def undivided(batch: Batch) -> list[Batch]:
    """The batch as it is."""
    return [batch]


@dataclass(frozen=True)
class Part:
    """A batch of a step, or a micro-batch of it.

    staged: tensors on the model's device, which differ between steps. made: the staged tensors -> batch, by
    operations on the device alone. items: what divides the sum of its losses, which is the number of items
    (examples, or labelled tokens) in its whole batch. key: parts of equal key and items differ in the values
    of `staged` alone. cut: batch -> its micro-batches, where all are made together.
    """

    staged: Sequence[Tensor]
    made: Callable[..., Batch]
    items: int
    key: Hashable
    cut: Callable[[Batch], Iterable[Batch]] = undivided


@dataclass(frozen=True)
class Batches:
    """What a model is trained on. The rows depend on the step only, so that a resumed run repeats them.

    per_epoch: steps an epoch. size: the most examples in a step. parts: (step, largest micro-batch) -> parts.
    A step may have several batches, whose mean losses are added. names: step -> the ids of its examples, for
    messages.
    """

    per_epoch: int
    size: int
    parts: Callable[[int, int], Iterable[Part]]
    names: Callable[[int], list[str]]


@dataclass(frozen=True)
class Schedule:
    """How a model is trained. `epochs` and `patience` count epochs, `evaluate_every` steps (0: an epoch).

    optimizer: (trainable tensors, lr=...) -> optimizer; on a GPU lr is a tensor there. rate: (steps, steps an
    epoch) -> factor of `lr` at a step. clip: largest norm of the gradient; 0 does not clip. select: the score
    that decides which weights are kept, by strict improvement, or `last`.
    """

    optimizer: Callable[..., Optimizer]
    rate: Callable[[int, int], Factor]
    lr: float
    epochs: float
    patience: float
    clip: float
    evaluate_every: int
    select: str


def fit(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    evaluate: Evaluate,
    schedule: Schedule,
    *,
    within: Callable[[], AbstractContextManager] = nullcontext,
    graphs: Graphs | None = None,
    state: Path | None = None,
    key: str = "",
    label: str = "",
) -> Progress:
    """Train `model` in place, and leave it with the weights of its best score.

    loss: (model, batch, share of the epochs that are over) -> loss per item. evaluate: model -> scores, which
    become a line of the curve. within: the context of a step's passes. graphs: of the evaluation, which those
    of the steps join. A killed run resumes from the file `state` if `key` is still the same. Raises BadInput
    if a loss, gradient or trained tensor is not finite; all are checked before each evaluation.
    """
    per_epoch, total = batches.per_epoch, steps(schedule, batches.per_epoch)
    every = schedule.evaluate_every or per_epoch
    learner = learner_of(model, schedule, total, per_epoch)
    progress = resume(state, key, learner) or Progress(micro=batches.size)
    graphs = graphs or Graphs(learner.device)
    take = partial(step, learner, loss, schedule.clip, within)
    model.train()  # its parts too: those that transformers has read are in evaluation mode
    if state is not None:
        check_room(state, COPIES * sum(value.nbytes for value in learner.learned.values()), "its states")
    begun, scores, keep = time.monotonic() - progress.seconds, {}, keeper(state, key, learner, batches.names)
    bar = shown(label, total=total, done=progress.step)
    with bar as show, own_stream(learner.device), noticed() if state else nullcontext([]) as signals:
        while due(progress, total, every) or not over(progress, total, schedule.patience * per_epoch):
            if due(progress, total, every):
                average = mean(learner, progress, batches.names)
                with kept_where_memory_ends(keep, progress, total, state):
                    scores = {"loss": average, **evaluate(model)}
                progress.records = []
                progress.seconds = time.monotonic() - begun
                note(progress, learner, scores, per_epoch, schedule)
            else:
                learner.elapsed.fill_(progress.step // per_epoch * per_epoch / total)
                progress.records.append(update(learner, batches, take, schedule, progress, graphs))
                progress.step += 1
                show(progress.step, scores)
            progress.seconds = time.monotonic() - begun
            keep(progress, now=bool(signals))
            if signals:
                raise stopped(signals[0], progress, total, state)
    put_back(learner, progress.best)
    return progress


def steps(schedule: Schedule, per_epoch: int) -> int:
    """The total number of steps: at least one, unless there are no epochs; raises BadInput for too many."""
    if not schedule.epochs * per_epoch <= MOST_STEPS:
        raise BadInput(f"epochs {schedule.epochs:g} are more than {MOST_STEPS:,} steps; lower epochs")
    return max(round(schedule.epochs * per_epoch), schedule.epochs > 0)


def learner_of(model: nn.Module, schedule: Schedule, total: int, per_epoch: int) -> Learner:
    """The model with its trainable tensors, their optimizer and the factor of its rate at each step."""
    learned = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if not learned:
        raise BadInput("nothing of this model learns; take another tuner than frozen, or another head")
    device = next(iter(learned.values())).device
    elapsed = torch.zeros((), dtype=torch.float64, device=device)
    lr = torch.tensor(schedule.lr, device=device) if device.type == "cuda" else schedule.lr
    optimizer = schedule.optimizer(learned.values(), lr=lr)
    return Learner(model, learned, optimizer, schedule.rate(total, per_epoch), elapsed)


def over(progress: Progress, total: int, patience: float) -> bool:
    """Whether every step is taken, or patience is at its end."""
    return progress.step >= total or tired(progress, patience)


def due(progress: Progress, total: int, every: int) -> bool:
    """Whether an evaluation comes next, `every` number of steps and after the last one."""
    return bool(progress.records) and (progress.step % every == 0 or progress.step >= total)


def tired(progress: Progress, patience: float) -> bool:
    """Whether the best step lies `patience` steps back, evaluated since or not (code of GLEE).

    Of evaluations that are farther apart, there is one more at least.
    """
    seen = progress.curve[-1]["step"] - progress.best_step if progress.curve else -1
    return seen >= min(patience, 1) and progress.step - progress.best_step >= patience


def update(
    learner: Learner,
    batches: Batches,
    take: Callable[[Sequence[Part]], Record],
    schedule: Schedule,
    progress: Progress,
    graphs: Graphs,
) -> Record:
    """Take one step of the optimizer; halves the micro-batch if memory runs out."""
    if not learner.model.training:
        learner.model.train()
    learner.set_rate(schedule.lr * learner.factor(progress.step))
    while True:
        try:
            parts = list(batches.parts(progress.step, progress.micro))
            staged = [tensor for part in parts for tensor in part.staged]
            key = tuple((part.key, part.items) for part in parts)
            return graphs(key, staged, partial(taken, take, parts))
        except torch.cuda.OutOfMemoryError:
            progress.micro = halved(progress.micro, batches.size)
        graphs.forget()
        learner.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()


def taken(take: Callable, parts: Sequence[Part], tensors: Sequence[Tensor]) -> Record:
    """A step of the parts with other staged tensors, which are given end to end."""
    each = iter(tensors)
    return take([replace(part, staged=[next(each) for _ in part.staged]) for part in parts])


def step(
    learner: Learner,
    loss: Loss,
    clip: float,
    within: Callable[[], AbstractContextManager],
    parts: Sequence[Part],
) -> Record:
    """One step of the optimizer. Everything stays on the model's device."""
    with within():
        value = accumulate(learner.model, parts, loss, learner.elapsed)
    gradients = [each.grad for each in learner.learned.values() if each.grad is not None]
    norms = torch.stack(torch._foreach_norm(gradients))
    norm, broken = torch.linalg.vector_norm(norms), ~of_all(norms, learner.learned.values()).isfinite()
    if clip:
        nn.utils.clip_grads_with_norm_(learner.learned.values(), clip, norm)
    learner.optimizer.step()
    learner.optimizer.zero_grad(set_to_none=True)
    return torch.stack([value, norm, broken.int().argmax()]).float()


def of_all(norms: Float[Tensor, " graded"], tensors: Collection[Tensor]) -> Float[Tensor, " tensors"]:
    """The norm of each tensor's gradient; 0 where a step gave it none, as the heads of other sets."""
    if len(norms) == len(tensors):
        return norms
    each, none = iter(norms), norms.new_zeros(())
    return torch.stack([none if tensor.grad is None else next(each) for tensor in tensors])


def accumulate(
    model: nn.Module, parts: Iterable[Part], loss: Loss, elapsed: Float64[Tensor, ""]
) -> Float[Tensor, ""]:
    """The sum over batches of the mean loss over items; gradients accumulate over micro-batches."""
    total = 0.0
    for part in parts:
        for batch in part.cut(part.made(*part.staged)):
            value = loss(model, batch, elapsed).sum() / part.items
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
    say(f"out of memory: micro-batch is now {half}, the batch stays {size} by accumulation")
    return half


def note(progress: Progress, learner: Learner, scores: dict, per_epoch: int, schedule: Schedule) -> None:
    """Add a line to the curve, and keep the weights if the score has strictly improved."""
    progress.curve.append(
        {
            "step": progress.step,
            "epoch": round(progress.step / per_epoch, 3),
            "loss": scores["loss"],
            "lr": schedule.lr * learner.factor(progress.step),
            **scores,
            "seconds": round(progress.seconds, 2),
        }
    )
    score = progress.step if schedule.select == "last" else scores[schedule.select]
    if not score > progress.best_score:  # nor where it is undefined
        return
    progress.best_score, progress.best_step = score, progress.step
    if schedule.select != "last":
        progress.best = {name: value.detach().clone() for name, value in learner.learned.items()}


@torch.no_grad()
def put_back(learner: Learner, best: dict[str, Tensor]) -> None:
    """Restore the best weights of the model, if they were kept."""
    for name, value in best.items():
        learner.learned[name].copy_(value)
