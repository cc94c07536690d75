"""The body of a DeBERTa, whose layers attend to a prefix as well (He et al. 2021; P-Tuning v2, section 3).

A DeBERTa calls no attention that transformers lets one exchange, so its layers are gone through here. Scores
are sums of content to content, content to position and position to content. A prefix has content alone: its
keys have no position, and its scores are divided as the others are (code of P-Tuning v2).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.model.attention import Heads, Pair, Tokens, behind, widened

Relative = Int[Tensor, "1 tokens tokens"]
Embedded = Float[Tensor, "distances width"]
MOST = 512  # tokens of most inputs


class Encoded(NamedTuple):
    """What a body returns, as transformers names it."""

    last_hidden_state: Tokens


class Parts(NamedTuple):
    """What a layer's attention is made of.

    bias: the scores by position, None without relative positions. scale: what the scores by content are
    multiplied by.
    """

    query: Heads
    key: Heads
    value: Heads
    bias: Float[Tensor, "batch heads tokens tokens"] | None
    scale: float


class Disentangled(nn.Module):
    """A DeBERTa, of either version, without what is on it.

    Its parts have transformers' names. A table of distances is made once and stays, because making it would
    wait for the GPU, and a captured step goes on reading it.
    """

    takes_prefixes = True

    def __init__(self, model: nn.Module):
        super().__init__()
        self.embeddings, self.encoder, self.config = model.embeddings, model.encoder, model.config
        self.kept: dict[tuple[int, torch.device], Relative] = {}

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def forward(
        self, *, attention_mask: Tensor, prefix: list[Pair | None] | None = None, **inputs
    ) -> Encoded:
        """last_hidden_state: of the tokens. attention_mask: Int[batch tokens], or `bodies.added_mask` of it.

        prefix: keys and values of every layer, None for those without.
        """
        there = attention_mask if attention_mask.ndim == 2 else attention_mask[:, 0, 0] == 0
        there = there.long()
        first = states = self.embeddings(mask=there, **inputs)
        distances, embedded = self.distances(states), self.encoder.get_rel_embedding()
        convolve = getattr(self.encoder, "conv", None)
        for index, layer in enumerate(self.encoder.layer):
            parts = PARTS[self.config.model_type](layer.attention.self, states, distances, embedded)
            pair = None if prefix is None else prefix[index]
            mixed = attend(layer.attention.self, parts, there == 0, pair)
            states = layer.attention.output(mixed, states)
            states = layer.output(layer.intermediate(states), states)
            if index == 0 and convolve is not None:
                states = convolve(first, states, there)
        return Encoded(states)

    def distances(self, states: Tokens) -> Relative | None:
        """The distance of each token from each other, perhaps in buckets; None without relative positions."""
        if not self.encoder.relative_attention:
            return None
        tokens = states.shape[1]
        place = max(MOST, 1 << (tokens - 1).bit_length()), states.device
        if place not in self.kept:
            self.kept[place] = self.encoder.get_rel_pos(states.new_empty(place[0], 0))
        return self.kept[place][:, :tokens, :tokens]


def attend(
    attention: nn.Module, parts: Parts, hidden: Bool[Tensor, "batch tokens"], prefix: Pair | None
) -> Tokens:
    """What the tokens take of each other and of a prefix, which is never hidden and has no position."""
    query, key, value, bias, scale = parts
    bias = query.new_zeros(1) if bias is None else bias.to(query)
    added = torch.where(hidden[:, None, None], torch.finfo(query.dtype).min, bias)
    length = 0 if prefix is None else prefix[0].shape[2]
    dropped = attention.dropout.p if attention.training else 0.0
    mixed = F.scaled_dot_product_attention(
        query, *behind(prefix, key, value), attn_mask=widened(added, length), dropout_p=dropped, scale=scale
    )
    return mixed.transpose(1, 2).flatten(2)


def parts_of_one(
    attention: nn.Module, states: Tokens, distances: Relative | None, embedded: Embedded | None
) -> Parts:
    """Those of a DeBERTa of the first version, which projects all three at once."""
    joint = attention.transpose_for_scores(attention.in_proj(states))
    query, key, value = joint.chunk(3, dim=-1)
    factor = 1 + len(attention.pos_att_type)
    query = query + attention.transpose_for_scores(attention.q_bias[None, None])
    value = value + attention.transpose_for_scores(attention.v_bias[None, None])
    query = query / sqrt(factor * query.shape[-1])
    bias = None
    if embedded is not None:
        dropped = attention.pos_dropout(embedded)
        bias = attention.disentangled_att_bias(query, key, distances, dropped, factor)
    return Parts(query, key, value, bias, 1.0)


def parts_of_two(
    attention: nn.Module, states: Tokens, distances: Relative | None, embedded: Embedded | None
) -> Parts:
    """Those of a DeBERTa of the second and third version."""
    heads = attention.num_attention_heads
    projections = (attention.query_proj, attention.key_proj, attention.value_proj)
    joined = [attention.transpose_for_scores(part(states), heads) for part in projections]
    factor = 1 + sum(kind in attention.pos_att_type for kind in ("c2p", "p2c"))
    bias = None
    if embedded is not None:
        dropped = attention.pos_dropout(embedded)
        bias = attention.disentangled_attention_bias(*joined[:2], distances, dropped, factor)
        bias = bias.unflatten(0, (-1, heads))
    query, key, value = (each.unflatten(0, (-1, heads)) for each in joined)
    return Parts(query, key, value, bias, 1 / sqrt(factor * query.shape[-1]))


PARTS = {"deberta": parts_of_one, "deberta-v2": parts_of_two}  # by transformers' model_type
