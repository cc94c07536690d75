"""Attention to more than the input: to prompts in a block of a timm ViT, and to prefixes in any backbone.

Prompts add keys and values but no queries (LPT Eqs. 1 and 4). The result is the same as if prompts were
appended to the tokens and their outputs dropped. Here the dropped outputs are not computed. A prefix is keys
and values themselves, which no norm and no projection of the layer sees (P-Tuning v2, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, cat, nn
from torch.nn import functional as F

from tailprompt.model import fewer_kernels

Tokens = Float[Tensor, "batch tokens width"]
Heads = Float[Tensor, "batch heads tokens size"]
Longer = Float[Tensor, "batch heads longer size"]
Own = Float[Tensor, "prefixed heads length size"]  # of each example, or one set for all
Pair = tuple[Own, Own]  # keys and values of a prefix
Scores = Float[Tensor, "#batch #heads #queries tokens"] | Bool[Tensor, "#batch #heads #queries tokens"]
NAME = "prefixed"  # of this attention in transformers


def embed(vit: nn.Module, pixels: Float[Tensor, "batch 3 size size"]) -> Tokens:
    """Class and patch tokens with position embeddings, which the first block takes."""
    return vit.norm_pre(vit.patch_drop(vit._pos_embed(vit.patch_embed(pixels))))


def block(
    layer: nn.Module,
    tokens: Tokens,
    prompts: Float[Tensor, "prompted length width"] | None = None,
    adapter: nn.Module | None = None,
    queries: int | None = None,
    prefix: Pair | None = None,
) -> Float[Tensor, "batch queries width"]:
    """The first `queries` tokens (None: all) after a block that also attends to prompts.

    layer: a timm Block. prompts: of each example, or one set for all. adapter: runs parallel to the
    feed-forward network (AdaptFormer, Chen et al. 2022).
    """
    seen, kept = layer.norm1(tokens), tokens[:, :queries]
    if prompts is not None:
        seen = cat([seen, layer.norm1(prompts).expand(len(tokens), -1, -1)], dim=1)
    attended = attend(layer.attn, seen, kept.shape[1], prefix)
    kept = kept + layer.drop_path1(layer.ls1(attended))
    beside = 0 if adapter is None else adapter(kept)
    return kept + layer.drop_path2(layer.ls2(layer.mlp(layer.norm2(kept)))) + beside


def attend(
    attention: nn.Module, tokens: Tokens, queries: int, prefix: Pair | None = None
) -> Float[Tensor, "batch queries width"]:
    """A timm Attention in which all tokens are keys and values, but only the first `queries` are queries."""
    projected = attention.qkv(tokens).unflatten(-1, (3, attention.num_heads, -1))
    query, key, value = projected.unbind(2)  # heads stay behind tokens, so that gradients need no copies
    heads = attention.q_norm(query[:, :queries]), attention.k_norm(key), value
    query, key, value = (each.transpose(1, 2) for each in heads)
    dropped = attention.attn_drop.p if attention.training else 0.0
    mixed = F.scaled_dot_product_attention(query, *behind(prefix, key, value), dropout_p=dropped)
    return attention.proj_drop(attention.proj(mixed.transpose(1, 2).flatten(2)))


def behind(prefix: Pair | None, key: Heads, value: Heads) -> tuple[Longer, Longer]:
    """Keys and values behind those of a prefix: P-Tuning v2, section 3 (Li and Liang 2021, Eq. 3)."""
    if prefix is None:
        return key, value
    keys, values = (own.to(key).expand(len(key), -1, -1, -1) for own in prefix)
    return cat([keys, key], dim=2), cat([values, value], dim=2)


def prefixed(
    layer: nn.Module,
    query: Float[Tensor, "batch heads queries size"],
    key: Heads,
    value: Heads,
    attention_mask: Scores | None,
    *,
    prefix: Sequence[Pair | None] | None = None,
    position_bias: Scores | None = None,
    **options,
):
    """The attention of a layer of transformers, whose own words reach it as arguments.

    prefix: of every layer, None for those without. A prefix is never masked, and a T5 adds no bias to it.
    """
    pair = None if prefix is None else prefix[layer.layer_idx]
    if pair is not None:
        length = pair[0].shape[2]
        key, value = behind(pair, key, value)
        attention_mask, position_bias = widened(attention_mask, length), widened(position_bias, length)
    return fewer_kernels.attend(
        layer, query, key, value, attention_mask, position_bias=position_bias, **options
    )


def widened(mask: Scores | None, length: int) -> Tensor | None:
    """A mask, or what is added to scores, with `length` more keys in front that are seen as they are."""
    return None if mask is None else F.pad(mask, (length, 0), value=float(mask.dtype == torch.bool))


def take_prefixes(body: nn.Module) -> None:
    """Let the layers of a body of transformers attend to the `prefix` that it is given.

    It has its own way in, because `past_key_values` is not for encoders and is renamed in transformers 5.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, prefixed)
    AttentionMaskInterface.register(NAME, AttentionMaskInterface()["sdpa"])
    body.config._attn_implementation = NAME
