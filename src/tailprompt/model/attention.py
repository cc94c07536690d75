"""Prompts in a block of a timm ViT: they add keys and values but no queries (LPT Eqs. 1 and 4).

The result is the same as if prompts were appended to the tokens and their outputs dropped. Here the dropped
outputs are not computed.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, cat, nn
from torch.nn import functional as F

Tokens = Float[Tensor, "batch tokens width"]


def embed(vit: nn.Module, pixels: Float[Tensor, "batch 3 size size"]) -> Tokens:
    """Class and patch tokens with position embeddings, which the first block takes."""
    return vit.norm_pre(vit.patch_drop(vit._pos_embed(vit.patch_embed(pixels))))


def block(
    layer: nn.Module,
    tokens: Tokens,
    prompts: Float[Tensor, "prompted length width"] | None = None,
    adapter: nn.Module | None = None,
    queries: int | None = None,
) -> Float[Tensor, "batch queries width"]:
    """The first `queries` tokens (None: all) after a block that also attends to prompts.

    layer: a timm Block. prompts: of each example, or one set for all. adapter: runs parallel to the
    feed-forward network (AdaptFormer, Chen et al. 2022).
    """
    seen, kept = layer.norm1(tokens), tokens[:, :queries]
    if prompts is not None:
        seen = cat([seen, layer.norm1(prompts).expand(len(tokens), -1, -1)], dim=1)
    attended = attend(layer.attn, seen, kept.shape[1])
    kept = kept + layer.drop_path1(layer.ls1(attended))
    beside = 0 if adapter is None else adapter(kept)
    return kept + layer.drop_path2(layer.ls2(layer.mlp(layer.norm2(kept)))) + beside


def attend(attention: nn.Module, tokens: Tokens, queries: int) -> Float[Tensor, "batch queries width"]:
    """A timm Attention in which all tokens are keys and values, but only the first `queries` are queries."""
    projected = attention.qkv(tokens).unflatten(-1, (3, attention.num_heads, -1))
    query, key, value = projected.unbind(2)  # heads stay behind tokens, so that gradients need no copies
    heads = attention.q_norm(query[:, :queries]), attention.k_norm(key), value
    dropped = attention.attn_drop.p if attention.training else 0.0
    mixed = F.scaled_dot_product_attention(*(each.transpose(1, 2) for each in heads), dropout_p=dropped)
    return attention.proj_drop(attention.proj(mixed.transpose(1, 2).flatten(2)))
