"""Self-supervised inputs and targets from batches of token ids on the device.

BERT (Devlin et al. 2019, section 3.1), T5 (Raffel et al. 2020, section 3.1.4) and LM adaptation (Lester et
al. 2021, section 3.3). All rows hide equally many ids, so tensors are rectangular and need no padding.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

Rows = Int[Tensor, "batch tokens"]


def mask_tokens(
    tokens: Rows, *, rate: float, mask: int, special: int, vocabulary: int, generator: Generator
) -> tuple[Rows, Int[Tensor, "batch masked"], Int[Tensor, "batch masked"]]:
    """Hide round(rate * tokens) ids of each row: 80 % become `mask`, 10 % a random id, 10 % stay.

    Ids below `special` are neither hidden nor drawn. Returns the new rows, the positions, and the original
    ids at these positions.
    """
    draws = torch.rand(tokens.shape, generator=generator, device=tokens.device)
    count = max(1, round(rate * tokens.shape[1]))
    positions = draws.masked_fill(tokens < special, -1.0).topk(count, dim=1).indices
    answers = tokens.gather(1, positions)
    draws = torch.rand(answers.shape, generator=generator, device=tokens.device)
    drawn = torch.randint(special, vocabulary, answers.shape, generator=generator, device=tokens.device)
    shown = torch.where(draws < 0.8, mask, torch.where(draws < 0.9, drawn, answers))
    return tokens.scatter(1, positions, shown), positions, answers


def corrupt_spans(
    tokens: Rows,
    *,
    rate: float,
    span: float,
    sentinels: Int[Tensor, " sentinels"],
    end: int,
    generator: Generator,
) -> tuple[Int[Tensor, "batch inputs"], Int[Tensor, "batch targets"]]:
    """Replace each span by a sentinel; the targets are the sentinels, each followed by its span.

    round(rate * tokens) ids are hidden in spans of `span` ids on average. Inputs and targets end in `end`.
    """
    noise = noise_spans(tokens, rate=rate, span=span, generator=generator)
    return (collapse(tokens, noise, sentinels, end), collapse(tokens, ~noise, sentinels, end))


def noise_spans(
    tokens: Rows, *, rate: float, span: float, generator: Generator
) -> Bool[Tensor, "batch tokens"]:
    """Which ids are hidden. Kept and hidden stretches alternate, and a kept one comes first."""
    batch, length = tokens.shape
    hidden = max(1, round(rate * length))
    spans = min(max(1, round(hidden / span)), length - hidden)  # each follows a kept stretch
    stretches = torch.stack(
        [
            segments(batch, length - hidden, spans, generator, tokens.device),
            segments(batch, hidden, spans, generator, tokens.device),
        ],
        dim=2,
    ).flatten(1)
    starts = torch.zeros((batch, length + 1), dtype=torch.long, device=tokens.device)
    starts.scatter_add_(1, stretches.cumsum(1), torch.ones_like(stretches))
    return starts[:, :length].cumsum(1) % 2 == 1


def segments(batch: int, total: int, parts: int, generator: Generator, device) -> Int[Tensor, "batch parts"]:
    """`total` split at random into `parts` lengths of at least one."""
    order = torch.rand((batch, total - 1), generator=generator, device=device).argsort(1)[:, : parts - 1]
    cuts = order.sort(1).values + 1
    edges = torch.cat([cuts.new_zeros(batch, 1), cuts, cuts.new_full((batch, 1), total)], dim=1)
    return edges.diff(dim=1)


def collapse(
    tokens: Rows, gone: Bool[Tensor, "batch tokens"], sentinels: Int[Tensor, " sentinels"], end: int
) -> Int[Tensor, "batch kept"]:
    """The rows with a sentinel for each stretch that is `gone`, and `end` after the last id."""
    first = gone & ~torch.cat([torch.zeros_like(gone[:, :1]), gone[:, :-1]], dim=1)
    named = torch.where(first, sentinels[(first.cumsum(1) - 1).clamp(min=0)], tokens)
    kept = named[~gone | first].view(len(tokens), -1)
    return torch.cat([kept, kept.new_full((len(tokens), 1), end)], dim=1)


def halves(tokens: Rows, *, end: int) -> tuple[Int[Tensor, "batch inputs"], Int[Tensor, "batch targets"]]:
    """The first half of each row for the encoder and the second for the decoder; both end in `end`."""
    middle = tokens.shape[1] // 2
    close = tokens.new_full((len(tokens), 1), end)
    return torch.cat([tokens[:, :middle], close], 1), torch.cat([tokens[:, middle:], close], 1)
