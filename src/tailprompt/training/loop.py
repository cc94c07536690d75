"""The one training loop. It knows examples, a model that maps them to logits, and a loss; nothing else.

GLEE section 3.1: AdamW, linear warm-up and decay, clipping, evaluation every so many steps, patience, and
the weights of the best dev score at the end. LPT appendix B: SGD, a cosine, and the last weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from tqdm import tqdm

from tailprompt.errors import BadInput, named
from tailprompt.inputs.encode import Examples
from tailprompt.training.samplers import bucketed
from tailprompt.training.state import Progress, resume, save

Loss = Callable[[object, object, int, float], Tensor]
Batch = list[Int[Tensor, " batch"]]  # example indices of each branch: one, or two in dual sampling
Judge = Callable[[Tensor, Tensor], dict[str, float]]


def fit(
    model: nn.Module,
    train: Examples,
    dev: Examples,
    *,
    loss: Loss,
    sampler: Callable,
    judge: Judge,
    select: str,
    seed: int,
    lr: float,
    batch: int,
    epochs: int,
    patience: float,
    optimizer: str = "adamw",
    momentum: float = 0.9,
    schedule: str = "linear",
    warmup: float = 1.0,
    weight_decay: float = 0.0,
    adam_eps: float = 1e-6,
    clip: float = 1.0,
    evaluate_every: int = 0,
    precision: str = "float32",
    bucket: int = 1,
    state: Path | None = None,
    key: str = "",
    save_seconds: float = 120.0,
    label: str = "",
) -> Progress:
    """Train `model` in place and leave it with the weights of its best dev score.

    loss: (outputs of the model, labels, branch, share of the epochs that are over) -> loss per example.
    judge: (logits, labels) -> scores, of which `select` decides, by strict improvement; `last` keeps the last
    weights, and takes a `dev` without examples. epochs, patience and warmup count epochs; evaluate_every
    steps, 0 is once an epoch. clip: largest norm of the gradient, 0 for any. bucket: batches sorted by length
    together; 1 is a plain shuffle. `state` is where a killed run resumes from, if `key` still says the same.
    Raises BadInput when loss or gradient is not finite, with step, tensor and examples.
    """
    torch.set_float32_matmul_precision(named(PRECISIONS, precision, "precision"))
    per_epoch = -(-len(train) // batch)
    total = max(round(epochs * per_epoch), epochs > 0)
    cadence = evaluate_every or per_epoch
    learned = {name: value for name, value in model.named_parameters() if value.requires_grad}
    rule = named(OPTIMIZERS, optimizer, "optimizer")(
        learned.values(), lr=lr, weight_decay=weight_decay, adam_eps=adam_eps, momentum=momentum
    )
    factor = named(SCHEDULES, schedule, "schedule")(warmup, total, per_epoch)
    rate = torch.optim.lr_scheduler.LambdaLR(rule, factor)
    progress = resume(state, key, learned, rule, rate) or Progress(micro=batch)
    bar = tqdm(total=total, initial=progress.step, desc=label, unit="step", mininterval=2, dynamic_ncols=True)
    begun, saved, losses, order = time.monotonic() - progress.seconds, time.monotonic(), [], []
    while progress.step < total and not tired(progress, patience * per_epoch):
        epoch, index = divmod(progress.step, per_epoch)
        if not order or not index:
            order = epoch_batches(train, sampler, batch, bucket, seed, epoch)
        for rows in order[index + 1] if index + 1 < len(order) else ():
            train.expect(rows)
        elapsed = epoch * per_epoch / total
        losses.append(
            update(model, learned, rule, train, order[index], progress, loss, clip, precision, elapsed)
        )
        rate.step()
        progress.step += 1
        bar.update()
        if progress.step % cadence and progress.step < total:
            continue
        scores = judge(predict(model, dev, precision=precision), dev.labels.cpu()) if len(dev) else {}
        progress.seconds = time.monotonic() - begun
        note(progress, scores, select, losses, rate.get_last_lr()[0], per_epoch)
        bar.set_postfix(
            loss=f"{sum(losses) / len(losses):.3f}",
            **{name: f"{100 * score:.1f}" for name, score in scores.items()},
        )
        losses = []
        if progress.best_step == progress.step and select != "last":
            progress.best = {name: value.detach().clone() for name, value in learned.items()}
        if state is not None and time.monotonic() - saved >= save_seconds:
            save(state, key, progress, learned, rule, rate)
            saved = time.monotonic()
    bar.close()
    with torch.no_grad():
        for name, value in progress.best.items():
            learned[name].copy_(value)
    return progress


def tired(progress: Progress, patience: float) -> bool:
    """Whether the last evaluation was `patience` steps or more after the best one."""
    return bool(progress.curve) and progress.curve[-1]["step"] - progress.best_step >= patience


def linear(warmup: float, total: int, per_epoch: int) -> Callable[[int], float]:
    """Learning-rate factor: up over `warmup` epochs, then down to zero at step `total`."""
    rising = warmup * per_epoch

    def factor(step: int) -> float:
        if step < rising:
            return step / rising
        return max(total - step, 0) / max(total - rising, 1)

    return factor


def cosine(warmup: float, total: int, per_epoch: int) -> Callable[[int], float]:
    """The same along half a cosine (Loshchilov and Hutter 2017, Eq. 5, without restarts)."""
    falling = linear(warmup, total, per_epoch)

    def factor(step: int) -> float:
        left = falling(step)
        return left if step < warmup * per_epoch else (1 - math.cos(math.pi * left)) / 2

    return factor


def constant(warmup: float, total: int, per_epoch: int) -> Callable[[int], float]:
    """The same without going down (PPT appendix C)."""
    rising = warmup * per_epoch
    return lambda step: min(step / rising, 1.0) if rising else 1.0


def inverse_root(warmup: float, total: int, per_epoch: int) -> Callable[[int], float]:
    """The same, then down: 1 / sqrt(step + 1) where there is no warm-up (code of PPT)."""
    rising = warmup * per_epoch
    return lambda step: step / rising if step < rising else math.sqrt((rising + 1) / (step + 1))


def cosine_as_released(warmup: float, total: int, per_epoch: int) -> Callable[[int], float]:
    """LPT's code: a step an epoch, and after warm-up where a cosine without warm-up would be by then.

    It warms up from a rate of 1e-6, stated here as the share of its own rate, 0.02.
    """
    epochs, least = total / per_epoch, 1e-6 / 0.02

    def factor(step: int) -> float:
        epoch = step // per_epoch
        if epoch < warmup:
            return least + (1 - least) * epoch / warmup
        return (1 + math.cos(math.pi * epoch / epochs)) / 2

    return factor


def epoch_batches(
    train: Examples, sampler: Callable, batch: int, bucket: int, seed: int, epoch: int
) -> list[Batch]:
    """The batches of an epoch; seed and epoch alone decide, so that a resumed run repeats them."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    orders = sampler(train.labels.cpu(), generator)
    branches = orders if orders.dim() == 2 else orders[None]
    cut = [bucketed(order, train.lengths, batch, generator, bucket) for order in branches]
    return [list(rows) for rows in zip(*cut, strict=True)]


def update(
    model: nn.Module,
    learned: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    train: Examples,
    batch: Batch,
    progress: Progress,
    loss: Loss,
    clip: float,
    precision: str,
    elapsed: float,
) -> float:
    """One optimiser step on a batch; halves the micro-batch for good when the card is out of memory."""
    model.train()
    while True:
        try:
            value = accumulate(model, train, batch, progress.micro, loss, precision, elapsed)
            break
        except torch.cuda.OutOfMemoryError:
            if progress.micro == 1:
                raise BadInput(
                    "the card has no memory for a single example; lower max_length or take a smaller backbone"
                ) from None
            progress.micro = -(-progress.micro // 2)
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            tqdm.write(
                f"out of memory: micro-batch is now {progress.micro}, "
                f"the batch stays {len(batch[0])} by accumulation"
            )
    norm = torch.nn.utils.clip_grad_norm_(learned.values(), clip or math.inf)
    if not torch.isfinite(value + norm):
        names = [train.names[i] for rows in batch for i in rows.tolist()]
        raise diverged(value, learned, names, progress.step)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(value)


def accumulate(
    model: nn.Module,
    train: Examples,
    batch: Batch,
    micro: int,
    loss: Loss,
    precision: str,
    elapsed: float = 0.0,
) -> Float[Tensor, ""]:
    """Sum over branches of the mean loss, its gradient added up over micro-batches."""
    total = torch.zeros((), device=train.labels.device)
    for branch, rows in enumerate(batch):
        for part in rows.split(micro):
            inputs, labels = train.batch(part)
            with autocast(train.labels.device, precision):
                outputs = model(inputs)
            value = loss(outputs, labels, branch, elapsed).sum() / len(rows)
            value.backward()
            total += value.detach()
    return total


def autocast(device: torch.device, precision: str):
    """bfloat16 where it is asked for and the card has it, else nothing."""
    named(PRECISIONS, precision, "precision")
    if precision == "bfloat16" and device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


def diverged(value: Tensor, learned: dict[str, Tensor], names: list[str], step: int) -> BadInput:
    """What to say of a step that is not finite, before its update is applied."""
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


@torch.no_grad()
def predict(
    model: nn.Module,
    examples: Examples,
    *,
    tokens: int = 16_384,
    precision: str = "float32",
    apply: Callable | None = None,
) -> Float[Tensor, "examples outputs"]:
    """Logits (or what `apply` makes of a batch) of all examples in their own order, on the CPU in float32.

    Batches hold examples of similar length, about `tokens` tokens each.
    """
    model.eval()
    apply = apply or model
    order = torch.argsort(examples.lengths, descending=True, stable=True)
    outputs, at = [], 0
    while at < len(order):
        size = max(1, tokens // int(examples.lengths[order[at]]))
        inputs, _ = examples.batch(order[at : at + size])
        with autocast(examples.labels.device, precision):
            outputs.append(apply(inputs).float())
        at += size
    gathered = torch.cat(outputs).cpu()
    return torch.empty_like(gathered).index_copy_(0, order, gathered)


def note(
    progress: Progress, scores: dict, select: str, losses: list[float], lr: float, per_epoch: int
) -> None:
    """Add a line to the curve, and move the best step on strict improvement."""
    progress.curve.append(
        {
            "step": progress.step,
            "epoch": round(progress.step / per_epoch, 3),
            "loss": sum(losses) / len(losses),
            "lr": lr,
            **scores,
            "seconds": round(progress.seconds, 2),
        }
    )
    score = progress.step if select == "last" else scores[select]
    if score > progress.best_score:
        progress.best_score, progress.best_step = score, progress.step


def adamw(learned, *, lr: float, weight_decay: float, adam_eps: float, momentum: float):
    return torch.optim.AdamW(learned, lr=lr, eps=adam_eps, weight_decay=weight_decay, fused=True)


def sgd(learned, *, lr: float, weight_decay: float, adam_eps: float, momentum: float):
    return torch.optim.SGD(learned, lr=lr, momentum=momentum, weight_decay=weight_decay, fused=True)


OPTIMIZERS = {"adamw": adamw, "sgd": sgd}
SCHEDULES = {
    "linear": linear,
    "cosine": cosine,
    "cosine_as_released": cosine_as_released,
    "constant": constant,
    "inverse_root": inverse_root,
}
PRECISIONS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}
"""Name -> how exactly a card multiplies float32 matrices; a CPU always does so in full."""
