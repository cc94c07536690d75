"""The one training loop. It knows examples, a model that maps them to logits, and a loss; nothing else.

GLEE section 3.1: AdamW, linear warm-up and decay, clipping, evaluation every so many steps, patience, and
the weights of the best dev score at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from tqdm import tqdm

from tailprompt.encode import Examples
from tailprompt.errors import BadInput, named
from tailprompt.samplers import bucketed
from tailprompt.state import Progress, resume, save

Loss = Callable[[Tensor, Tensor], Tensor]
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

    loss: (logits, labels) -> loss per example. judge: (logits, labels) -> scores, of which `select` decides,
    by strict improvement. epochs, patience and warmup count epochs; evaluate_every steps, 0 is once an
    epoch. bucket: batches sorted by length together; 1 is a plain shuffle. `state` is where a killed run
    resumes from, if `key` still says the same. Raises BadInput when loss or gradient is not finite, with
    step, tensor and examples.
    """
    torch.set_float32_matmul_precision(named(PRECISIONS, precision, "precision"))
    per_epoch = -(-len(train) // batch)
    total = max(round(epochs * per_epoch), epochs > 0)
    cadence = evaluate_every or per_epoch
    learned = {name: value for name, value in model.named_parameters() if value.requires_grad}
    optimizer = torch.optim.AdamW(
        learned.values(), lr=lr, eps=adam_eps, weight_decay=weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, linear(warmup * per_epoch, total))
    progress = resume(state, key, learned, optimizer, schedule) or Progress(micro=batch)
    bar = tqdm(total=total, initial=progress.step, desc=label, unit="step", mininterval=2, dynamic_ncols=True)
    begun, saved, losses, order = time.monotonic() - progress.seconds, time.monotonic(), [], []
    while progress.step < total and not tired(progress, patience * per_epoch):
        epoch, index = divmod(progress.step, per_epoch)
        if not order or not index:
            order = epoch_batches(train, sampler, batch, bucket, seed, epoch)
        losses.append(update(model, learned, optimizer, train, order[index], progress, loss, clip, precision))
        schedule.step()
        progress.step += 1
        bar.update()
        if progress.step % cadence and progress.step < total:
            continue
        scores = judge(predict(model, dev, precision=precision), dev.labels.cpu())
        progress.seconds = time.monotonic() - begun
        note(progress, scores, select, losses, schedule.get_last_lr()[0], per_epoch)
        bar.set_postfix(
            loss=f"{sum(losses) / len(losses):.3f}",
            dev=f"{100 * scores[select]:.1f}",
            best=f"{100 * progress.best_score:.1f}",
        )
        losses = []
        if progress.best_step == progress.step:
            progress.best = {name: value.detach().clone() for name, value in learned.items()}
        if state is not None and time.monotonic() - saved >= save_seconds:
            save(state, key, progress, learned, optimizer, schedule)
            saved = time.monotonic()
    bar.close()
    with torch.no_grad():
        for name, value in progress.best.items():
            learned[name].copy_(value)
    return progress


def tired(progress: Progress, patience: float) -> bool:
    """Whether the last evaluation was `patience` steps or more after the best one."""
    return bool(progress.curve) and progress.curve[-1]["step"] - progress.best_step >= patience


def linear(warmup: float, total: int) -> Callable[[int], float]:
    """Learning-rate factor: up over `warmup` steps, then down to zero at `total`."""

    def factor(step: int) -> float:
        if step < warmup:
            return step / warmup
        return max(total - step, 0) / max(total - warmup, 1)

    return factor


def epoch_batches(
    train: Examples, sampler: Callable, batch: int, bucket: int, seed: int, epoch: int
) -> list[Tensor]:
    """The batches of an epoch; seed and epoch alone decide, so that a resumed run repeats them."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    order = sampler(train.labels.cpu(), generator)
    return bucketed(order, train.lengths, batch, generator, bucket)


def update(
    model: nn.Module,
    learned: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    train: Examples,
    indices: Int[Tensor, " batch"],
    progress: Progress,
    loss: Loss,
    clip: float,
    precision: str,
) -> float:
    """One optimiser step on a batch; halves the micro-batch for good when the card is out of memory."""
    model.train()
    while True:
        try:
            value = accumulate(model, train, indices, progress.micro, loss, precision)
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
                f"the batch stays {len(indices)} by accumulation"
            )
    norm = torch.nn.utils.clip_grad_norm_(learned.values(), clip)
    if not torch.isfinite(value + norm):
        raise diverged(value, learned, [train.names[i] for i in indices.tolist()], progress.step)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(value)


def accumulate(
    model: nn.Module, train: Examples, indices: Int[Tensor, " batch"], micro: int, loss: Loss, precision: str
) -> Float[Tensor, ""]:
    """Mean loss of a batch, its gradient added up over micro-batches."""
    total = torch.zeros((), device=train.tokens.device)
    for part in indices.split(micro):
        inputs, labels = train.batch(part)
        with autocast(train.tokens.device, precision):
            logits = model(inputs)
        value = loss(logits.float(), labels).sum() / len(indices)
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
    features: bool = False,
) -> Float[Tensor, "examples outputs"]:
    """Logits (or features) of all examples in their own order, on the CPU in float32.

    Batches hold examples of similar length, about `tokens` tokens each.
    """
    model.eval()
    apply = model.features if features else model
    order = torch.argsort(examples.lengths, descending=True, stable=True)
    outputs, at = [], 0
    while at < len(order):
        size = max(1, tokens // int(examples.lengths[order[at]]))
        inputs, _ = examples.batch(order[at : at + size])
        with autocast(examples.tokens.device, precision):
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
    if scores[select] > progress.best_score:
        progress.best_score, progress.best_step = scores[select], progress.step


PRECISIONS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}
"""Name -> how exactly a card multiplies float32 matrices; a CPU always does so in full."""
