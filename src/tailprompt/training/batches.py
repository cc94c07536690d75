"""Batches of examples: in the order of a sampler for training, and of similar length for prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tailprompt.inputs.examples import Split
from tailprompt.training.graphs import Graphs
from tailprompt.training.loop import Batches, Loss, Part, undivided
from tailprompt.training.precision import lowering
from tailprompt.training.samplers import bucketed, of_sets
from tailprompt.training.shapes import Shape, fitting, shapes

Rows = Int[Tensor, " batch"]  # example indices
Each = Int[Tensor, "_"]  # of batches of different sizes


def sampled(examples: Split, sampler: Callable, *, batch: int, bucket: int, seed: int) -> Batches:
    """Batches of (inputs, labels, branch) in the order of a sampler; dual sampling has two branches a step.

    Where sets are joined each batch is of one, whose number the inputs have as `set`. bucket: how many
    batches are sorted by length together; 1 is a plain shuffle. The sum of losses is divided by the number of
    examples, or of labelled tokens.
    """
    device, lengths, sets = examples.labels.device, examples.lengths, sets_of(examples)
    per_epoch = sum(-(-len(own) // batch) for own in of_sets(torch.arange(len(examples)), sets))
    on_gpu = device.type == "cuda"
    mixed = getattr(examples, "mixup", 0) > 0  # an example may be mixed with one of another micro-batch

    @lru_cache(1)
    def epoch_rows(epoch: int) -> tuple[list[list[Rows]], list[list[Rows]]]:
        steps = epoch_batches(examples, sampler, batch=batch, bucket=bucket, seed=seed, epoch=epoch)
        if on_gpu:
            steps = [[rows[lengths[rows].argsort(stable=True)] for rows in branches] for branches in steps]
        return steps, on_device(steps, device)

    # on a GPU batches have one of a few shapes, so that few graphs are captured
    ways = shapes_of(lengths, epoch_rows(0)[0], batch) if on_gpu else ()

    def parts(step: int, micro: int) -> Iterator[Part]:
        epoch, index = divmod(step, per_epoch)
        steps, there = epoch_rows(epoch)
        for rows in steps[index + 1] if index + 1 < per_epoch else ():
            examples.expect(rows)
        for branch, (rows, placed) in enumerate(zip(steps[index], there[index], strict=True)):
            count, shape = counted(examples, placed), ways if len(rows) == batch else ways[-1:]
            for part, at, width in cut(rows, placed, lengths, shape, len(rows) if mixed else micro):
                width, of = width or examples.width(part), set_of(sets, part)
                made = partial(labelled, examples, width, branch, of)
                items = len(rows) if count is None else 1
                staged = (*examples.staged(part, at), *([] if count is None else [count]))
                divided = partial(pieces, micro=micro) if mixed else undivided
                yield Part(staged, made, items, (branch, len(part), width, of), divided)

    def names(step: int) -> list[str]:
        epoch, index = divmod(step, per_epoch)
        return [examples.names[row] for rows in epoch_rows(epoch)[0][index] for row in rows.tolist()]

    return Batches(per_epoch, batch, parts, names)


def cut(
    rows: Rows, there: Rows, lengths: Int[Tensor, " examples"], ways: Sequence[Shape], micro: int
) -> Iterator[tuple[Rows, Rows, int]]:
    """The parts of a batch, of at most `micro` rows: rows, the same on the device, and width (0: its own).

    ways: the shapes that are allowed; none leaves the batch whole.
    """
    shape = fitting(lengths[rows], ways) if ways else (0,)
    size = len(rows) // len(shape)
    for width, part, at in zip(shape, rows.split(size), there.split(size), strict=True):
        for small, small_at in zip(part.split(micro), at.split(micro), strict=True):
            yield small, small_at, width


def pieces(batch: tuple, micro: int) -> Iterator[tuple]:
    """The micro-batches of a batch of images that was mixed as a whole."""
    inputs, (first, second, share), *rest = batch
    for start in range(0, len(first), micro):
        part = slice(start, start + micro)
        mine = {name: value[part] for name, value in inputs.items()}
        yield (mine, (first[part], second[part], share), *rest)


def counted(examples: Split, there: Rows) -> Int[Tensor, ""] | None:
    """How many tokens of these examples are labelled, on the device; None where examples are."""
    if examples.unit != "token":
        return None
    return (examples.labels[there] >= 0).sum()


def labelled(examples: Split, width: int, branch: int, of: int | None, *staged: Tensor) -> tuple:
    """A batch for the loss: inputs, labels, the branch that it is of, and what divides its losses.

    of: the set of all its examples, where sets are joined.
    """
    count = None
    if examples.unit == "token":
        *staged, count = staged
    inputs, labels = examples.made(*staged, width=width)
    return with_set(inputs, of), labels, branch, count


def with_set(inputs: dict, of: int | None) -> dict:
    """The inputs of a batch with the set that it is of, where sets are joined: a number of the host."""
    return inputs if of is None else {**inputs, "set": of}


def sets_of(examples: Split) -> Int[Tensor, " examples"] | None:
    """The set of each example, where sets are joined."""
    return getattr(examples, "sets", None)


def set_of(sets: Int[Tensor, " examples"] | None, rows: Rows) -> int | None:
    """The set of examples that are all of one, where sets are joined."""
    return None if sets is None else int(sets[rows[0]])


def on_device(steps: list[list[Each]], device: torch.device) -> list[list[Each]]:
    """The rows of all steps on the device, in one copy, for which a GPU would otherwise wait at each step."""
    flat = [rows for branches in steps for rows in branches]
    there = iter(torch.cat(flat).to(device).split([len(rows) for rows in flat]))
    return [[next(there) for _ in branches] for branches in steps]


def shapes_of(lengths: Int[Tensor, " examples"], steps: list[list[Rows]], batch: int) -> Sequence[Shape]:
    """The shapes of batches, chosen by those of an epoch, whose rows are sorted by length."""
    whole = [lengths[rows] for branches in steps for rows in branches if len(rows) == batch]
    few = torch.stack(whole or [lengths.sort().values])
    return shapes(few, int(lengths.max()))


def epoch_batches(
    examples: Split, sampler: Callable, *, batch: int, bucket: int, seed: int, epoch: int
) -> list[list[Rows]]:
    """The rows of each branch of each step in an epoch. They depend on the seed and the epoch only."""
    generator = Generator().manual_seed(seed * 1_000_003 + epoch)
    labels = examples.labels.cpu()
    orders = sampler(labels if labels.ndim == 1 else labels.new_zeros(len(labels)), generator)
    branches = orders if orders.dim() == 2 else orders[None]
    sets = sets_of(examples)
    cut = [bucketed(order, examples.lengths, batch, generator, bucket, sets) for order in branches]
    return [list(rows) for rows in zip(*cut, strict=True)]


def of_outputs(cost: Callable) -> Loss:
    """The loss of a batch for the training loop.

    cost: (outputs of the model, labels, branch, share of the epochs that are over) -> loss per item.
    """

    def loss(model: nn.Module, batch: tuple, elapsed: Tensor) -> Float[Tensor, " items"]:
        inputs, labels, branch, count = batch
        costs = cost(model(inputs), labels, branch, elapsed)
        return costs if count is None else costs / count

    return loss


@torch.no_grad()
def predict(
    model: nn.Module,
    examples: Split,
    *,
    tokens: int = 16_384,
    precision: str = "float32",
    apply: Callable | None = None,
    graphs: Graphs | None = None,
) -> Float[Tensor, "examples *outputs"]:
    """Logits (or what `apply` returns for a batch) of all examples in order, on the CPU in float32.

    A batch holds examples of similar length and of one set, about `tokens` tokens in all. graphs: captures
    the whole pass, which must always be over the same examples; those that are not on the device are read
    again each time.
    """
    model.eval()
    longest_first, sets = torch.argsort(examples.lengths, descending=True, stable=True), sets_of(examples)
    batches = [
        rows
        for own in of_sets(longest_first, sets)
        for rows in own.split(sizes(examples.lengths[own].tolist(), tokens))
    ]
    order, of = torch.cat(batches), [set_of(sets, rows) for rows in batches]
    widths = [examples.width(rows) for rows in batches]
    longest = 0 if examples.unit == "example" else max(widths, default=0)
    there = [at for (at,) in on_device([[rows] for rows in batches], examples.labels.device)]

    def outputs(there: Sequence[Tensor]) -> Tensor:
        staged = (examples.staged(rows, at) for rows, at in zip(batches, there, strict=True))
        with lowering(model, precision, there[0].device)():
            made = (
                with_set(examples.made(*each, width=width)[0], number)
                for each, width, number in zip(staged, widths, of, strict=True)
            )
            return torch.cat([padded((apply or model)(inputs).float(), longest) for inputs in made])

    captured = graphs is not None and examples.held
    gathered = (graphs("pass", there, outputs) if captured else outputs(there)).cpu()
    return torch.empty_like(gathered).index_copy_(0, order, gathered)


def padded(outputs: Float[Tensor, "batch *outputs"], longest: int) -> Float[Tensor, "batch *padded"]:
    """Outputs of tokens `[batch, tokens, outputs]`, padded to the longest text; others as they are (0)."""
    return F.pad(outputs, (0, 0, 0, longest - outputs.shape[1])) if longest else outputs


def sizes(lengths: Sequence[int], tokens: int) -> list[int]:
    """The sizes of batches of about `tokens` tokens. lengths: of the examples, the longest first."""
    cut: list[int] = []
    while (at := sum(cut)) < len(lengths):
        cut.append(min(max(1, tokens // lengths[at]), len(lengths) - at))
    return cut
