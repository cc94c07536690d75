"""Pretrained models and what the other parts need of them; the only module that knows families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from tailprompt.errors import BadInput, known, named
from tailprompt.model.checkpoints import (
    check_outputs,
    check_vocabulary,
    drawn,
    interpolation,
    not_plain,
    perhaps_headless,
    pooler,
    pretrained,
    quiet,
    source,
    unavailable,
)
from tailprompt.model.disentangled import Disentangled
from tailprompt.model.encoder_decoder import EncoderDecoder, set_dropout
from tailprompt.model.fewer_kernels import exchange
from tailprompt.model.placement import placed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CPU = torch.device("cpu")
ENDING = "<extra_id_1>"  # what a T5 says after its answer


class Attention(NamedTuple):
    """The attention of a backbone: its layers, the heads of each, and the size of a head."""

    depth: int
    heads: int
    size: int


@dataclass(frozen=True)
class Backbone:
    """A masked language model, or a T5, taken apart.

    body: input_ids or inputs_embeds, attention_mask, token_type_ids -> last hidden state (batch, tokens,
        width); of a T5 the decoder's where it answers, and where it names the place (batch, 2, width)
    transform: the masked-language-model head up to and with its layer norm; of a T5 nothing
    decoder: the output embedding (vocabulary, width); of a masked language model with bias, and tied to the
        input embedding
    positions: the most tokens of an input; infinite where positions are relative
    device_map: the GPU of each part of a body that is spread over several
    pooler: reads the dense layer of the pooler, and whether it is the checkpoint's own; None for a T5
    pooled: the activation behind that layer
    speaks: whether the checkpoint has the masked-language-model head, else `transform` and `decoder` are
        random, and only heads that read neither may be used
    """

    reads = "text"
    body: nn.Module
    transform: nn.Sequential
    decoder: nn.Linear
    tokenizer: PreTrainedTokenizerBase
    width: int
    positions: int | float
    initializer_range: float
    device_map: dict[str, int | str] | None = None
    pooler: Callable[[], tuple[nn.Linear, bool]] | None = None
    pooled: str = "tanh"
    speaks: bool = True

    @property
    def attention(self) -> Attention:
        """Of a T5, its encoder's."""
        config = self.body.config
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return Attention(config.num_hidden_layers, config.num_attention_heads, size)

    @property
    def first_position(self) -> int:
        """The position of the first token; a RoBERTa has the first ones for padding."""
        return self.body.config.max_position_embeddings - int(self.positions)

    @property
    def norm(self) -> nn.LayerNorm:
        """The pretrained layer norm of the masked-language-model head."""
        return self.transform[-1]


@dataclass(frozen=True)
class VisionBackbone:
    """A vision transformer of timm without its classifier, and the images that it takes.

    size: pixels a side; tokens: of an image. mean, std: of each channel, of values from 0 to 1.
    interpolation: how images are scaled to its size.
    """

    reads = "image"
    body: nn.Module
    width: int
    depth: int
    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    tokens: int
    initializer_range: float = 0.02
    interpolation: str = "bilinear"

    @property
    def attention(self) -> Attention:
        """All blocks are alike."""
        heads = self.body.blocks[0].attn.num_heads
        return Attention(self.depth, heads, self.width // heads)


def bert(model: nn.Module) -> tuple[nn.Module, nn.Sequential, nn.Linear, int]:
    """Body, head transform, decoder and usable positions of a BertForMaskedLM."""
    head = model.cls.predictions
    parts = head.transform
    transform = nn.Sequential(parts.dense, parts.transform_act_fn, parts.LayerNorm)
    return model.bert, transform, head.decoder, model.config.max_position_embeddings


def roberta(model: nn.Module) -> tuple[nn.Module, nn.Sequential, nn.Linear, int]:
    """The same of a RobertaForMaskedLM, whose first positions are taken by padding."""
    transform = nn.Sequential(model.lm_head.dense, nn.GELU(), model.lm_head.layer_norm)
    usable = model.config.max_position_embeddings - model.config.pad_token_id - 1
    return model.roberta, transform, model.lm_head.decoder, usable


def load(row: dict, device: torch.device = CPU, *, learns: bool = False):
    """What a row of `config/backbones.yaml` offers: a Backbone or VisionBackbone.

    It is in float32 on the CPU. A row may give a frozen body another `dtype`, read it straight onto GPUs
    (`device_map`), and recompute layers for the gradient (`checkpointing`). device: where it will compute;
    `meta` reads no weights of a T5. learns: whether the body is tuned, so in float32 (AdamW's small steps).
    """
    read_family = named(FAMILIES, row["family"], "backbone family")
    where, pinned = source(row)
    try:
        return read_family({**row, "device": device.type, "learns": learns}, where, pinned)
    except BadInput:
        raise
    except Exception as error:  # a damaged file shows as whatever its reader trips over
        raise unavailable(row, error) from error


def masked(row: dict, where: str, pinned: dict, *, take_apart: Callable) -> Backbone:
    """A masked language model; with `random` (changes to its config) its weights are drawn from seed 0."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer  # takes seconds that images never need

    quiet()
    tokenizer = AutoTokenizer.from_pretrained(where, use_fast=True, **pinned)
    if "random" in row:
        model, speaks = drawn(AutoModelForMaskedLM, where, pinned, row["random"]), True
    else:
        model, speaks = perhaps_headless(AutoModelForMaskedLM, where, pinned)
    if model.base_model_prefix != row["family"]:
        raise other_family(where, model.base_model_prefix, row)
    check_vocabulary(tokenizer, model.get_input_embeddings().num_embeddings, where)
    body, transform, decoder, positions = take_apart(model)
    return Backbone(
        body,
        transform,
        decoder,
        tokenizer,
        model.config.hidden_size,
        positions,
        model.config.initializer_range,
        pooler=partial(pooler, row, where, pinned, kind="AutoModel"),
        speaks=speaks,
    )


def t5(row: dict, where: str, pinned: dict) -> Backbone:
    """A T5, or an mT5; with `random` its weights are drawn as those of `masked`."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

    quiet()
    kind = AutoConfig.from_pretrained(where, **pinned).model_type
    if kind not in ("t5", "mt5"):
        raise other_family(where, kind, row)
    tokenizer = AutoTokenizer.from_pretrained(where, **pinned)
    if "random" in row:
        model = drawn(AutoModelForSeq2SeqLM, where, pinned, row["random"])
    else:
        model = pretrained(AutoModelForSeq2SeqLM, where, pinned, **placed(row, where, pinned))
    check_vocabulary(tokenizer, model.get_input_embeddings().num_embeddings, where)
    if row.get("checkpointing"):  # named gradient_ in older transformers
        enable = getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
        model.disable_input_require_grads()  # which the reentrant kind alone needs
    if "dropout" in row:
        set_dropout(model, row["dropout"])
    exchange(model)
    body = EncoderDecoder(model, sentinel(tokenizer))
    width, factor = model.config.d_model, model.config.initializer_factor
    places = getattr(model, "hf_device_map", None)
    return Backbone(body, nn.Sequential(), body.lm_head, tokenizer, width, inf, factor, places)


def deberta(row: dict, where: str, pinned: dict) -> Backbone:
    """A DeBERTa without a head for masked words; with `random` its weights are drawn as those of `masked`."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    quiet()
    config = AutoConfig.from_pretrained(where, **pinned)
    if config.model_type != row["family"]:
        raise other_family(where, config.model_type, row)
    if getattr(config, "talking_head", False):
        raise BadInput(f"backbone {where} has talking_head, which no prefix goes into; take another DeBERTa")
    tokenizer = AutoTokenizer.from_pretrained(where, **pinned)
    read = partial(drawn, changes=row["random"]) if "random" in row else pretrained
    model = read(AutoModel, where, pinned)
    check_vocabulary(tokenizer, model.get_input_embeddings().num_embeddings, where)
    config = model.config
    width, absolute = config.hidden_size, config.position_biased_input
    return Backbone(
        Disentangled(model),
        nn.Sequential(nn.LayerNorm(width, eps=config.layer_norm_eps)),
        nn.Linear(width, config.vocab_size, device="meta"),
        tokenizer,
        width,
        config.max_position_embeddings if absolute else inf,
        config.initializer_range,
        pooler=partial(pooler, row, where, pinned, kind="AutoModelForSequenceClassification"),
        pooled=config.pooler_hidden_act,
        speaks=False,
    )


def sentinel(tokenizer: PreTrainedTokenizerBase) -> int:
    """Id of what stands for the answer in an input: the mask, or a T5's first sentinel."""
    return tokenizer.convert_tokens_to_ids(tokenizer.mask_token or "<extra_id_0>")


def vit(row: dict, where: str, pinned: dict) -> VisionBackbone:
    """A ViT of timm (of the hub, its pinned revision), for images of `size` pixels where the row says so.

    Positions are resampled to that size. Raises BadInput for a model whose features are not those of its
    class token after a final norm, or whose blocks are not plain ones: prompts could not go in.
    """
    import timm  # takes seconds that text never needs
    from huggingface_hub.utils import disable_progress_bars
    from timm.data import resolve_model_data_config

    disable_progress_bars()
    place = f"hf-hub:{where}@{pinned['revision']}" if pinned else f"local-dir:{where}"
    resized = {"img_size": row["size"]} if "size" in row else {}
    model = timm.create_model(place, pretrained=True, **resized)  # with its classifier: no tensor may lack
    if type(model) is not timm.models.VisionTransformer:
        raise other_family(where, type(model).__name__, row)
    if departure := not_plain(model):
        raise BadInput(f"backbone {where} {departure}; take a ViT with class token, final norm, plain blocks")
    check_outputs(row, model.num_classes, where)
    model.reset_classifier(0)
    (height, width), patch = model.patch_embed.img_size, model.patch_embed.patch_size[0]
    if height != width or height % patch:
        raise BadInput(
            f"backbone {where}: images of {height} x {width} pixels are not square of whole patches; "
            f"set size in its row to a multiple of {patch}"
        )
    stated = resolve_model_data_config(model)
    return VisionBackbone(
        model,
        model.embed_dim,
        len(model.blocks),
        height,
        tuple(stated["mean"]),
        tuple(stated["std"]),
        (height // patch) ** 2 + 1,
        interpolation=interpolation(row, stated["interpolation"], where),
    )


def other_family(where: str, found: str, row: dict) -> BadInput:
    """What to say of a checkpoint that is not of its row's family."""
    return BadInput(
        f"backbone {where} is of the family '{found}', but its row says family: {row['family']}; "
        f"known: {known(FAMILIES)}"
    )


FAMILIES = {
    "tfidf": lambda *_: Backbone(
        nn.Module(), nn.Sequential(), nn.Linear(1, 1), None, 0, inf, 0, speaks=False
    ),
    "bert": partial(masked, take_apart=bert),
    "roberta": partial(masked, take_apart=roberta),
    "deberta": deberta,
    "deberta-v2": deberta,
    "t5": t5,
    "vit": vit,
}
