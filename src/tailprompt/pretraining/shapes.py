"""The keys of a recipe's `shape`: those of the model that its task makes, as transformers or timm name them.

What a recipe leaves out is the model's own default. The plan's schema is made from these declarations.
"""

from __future__ import annotations

from tailprompt.components.declare import component, key, settings_of


def size():
    """A number of things of which there is one at least."""
    return key(minimum=1)


def share():
    """A probability."""
    return key(minimum=0, maximum=1)


@component("BertConfig")
class Bert:
    """heads: the key with the width, and that with the number of heads that divide it."""

    heads = ("hidden_size", "num_attention_heads")
    num_hidden_layers: int = size()
    hidden_size: int = size()
    num_attention_heads: int = size()
    intermediate_size: int = size()
    max_position_embeddings: int = size()
    hidden_act: str = key()
    hidden_dropout_prob: float = share()
    attention_probs_dropout_prob: float = share()
    type_vocab_size: int = size()
    initializer_range: float = key(exclusiveMinimum=0)
    layer_norm_eps: float = key(exclusiveMinimum=0)


@component("T5Config")
class T5:
    """A head's width is a key of its own, `d_kv`."""

    heads = None
    d_model: int = size()
    d_kv: int = size()
    num_heads: int = size()
    d_ff: int = size()
    num_layers: int = size()
    num_decoder_layers: int = size()
    feed_forward_proj: str = key()
    tie_word_embeddings: bool = key()
    dropout_rate: float = share()
    layer_norm_epsilon: float = key(exclusiveMinimum=0)
    initializer_factor: float = key(exclusiveMinimum=0)
    relative_attention_num_buckets: int = size()
    relative_attention_max_distance: int = size()


@component("VisionTransformer")
class Vit:
    """heads: as those of `Bert`."""

    heads = ("embed_dim", "num_heads")
    img_size: int = size()
    patch_size: int = size()
    embed_dim: int = size()
    depth: int = size()
    num_heads: int = size()
    drop_path_rate: float = share()
    mlp_ratio: float = key(exclusiveMinimum=0)
    qkv_bias: bool = key()
    init_values: float | None = key()
    proj_drop_rate: float = share()
    attn_drop_rate: float = share()


def schema() -> dict:
    """JSON Schema of a recipe's task, and of its shape by its task."""
    return {
        "properties": {"task": {"enum": list(MODELS)}},
        "allOf": [
            {
                "if": {"properties": {"task": {"const": task}}},
                "then": {"properties": {"shape": shape_schema(model)}},
            }
            for task, model in MODELS.items()
        ],
    }


def shape_schema(model: type) -> dict:
    """JSON Schema of the shape of a model."""
    keys = {each.name: each.schema for each in settings_of(model)}
    return {"type": "object", "additionalProperties": False, "properties": keys}


MODELS = {  # what a task makes
    "masked_language_model": Bert,
    "span_corruption": T5,
    "language_model": T5,
    "classification": Vit,
}
