"""A checkpoint in a folder or on the hub: its place, whether it is complete and plain, and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from tailprompt.errors import BadInput, counted, few
from tailprompt.model.folder import check_complete

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def source(row: dict) -> tuple[str, dict]:
    """The folder or hub id, and the pinned revision, for `from_pretrained`; TF-IDF has neither.

    Raises BadInput if the row names neither, or a file is missing from the folder.
    """
    if row.get("family") == "tfidf":
        return "", {}
    if "path" not in row and not {"hub", "revision"} <= set(row):
        raise BadInput("a backbone's row needs path, or hub and revision")
    if "path" in row:
        check_complete(row)
        return row["path"], {}
    return row["hub"], {"revision": row["revision"]}


def check_pinned(row: dict) -> None:
    """Raise BadInput for a revision that moves: two jobs could read two versions of the weights."""
    if row.get("revision") == "main":
        raise BadInput(
            f"{row['hub']} at revision main is no fixed version, and neither the hub nor the cache here said "
            "which commit it is; run snakemake on a machine with network, or set a commit in its row"
        )


def unavailable(row: dict, error: Exception) -> BadInput:
    """The error for a backbone that cannot be read or downloaded."""
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if "path" in row:
        return BadInput(f"backbone folder {row['path']} cannot be read ({reason})")
    if not isinstance(error, OSError):
        return BadInput(f"backbone {row['hub']} at revision {row['revision']} cannot be read ({reason})")
    return BadInput(
        f"backbone {row['hub']} at revision {row['revision']} is neither in the Hugging Face cache nor could "
        f"be downloaded ({type(error).__name__}); fetch it on a machine with network and set HF_HOME"
    )


HEADS = ("cls.", "lm_head.")  # how the names of a masked-language-model head begin


def pretrained(kind, where: str, pinned: dict, **placed) -> nn.Module:
    """The pre-trained model; raises BadInput if weights are missing, which would be drawn at random."""
    return perhaps_headless(kind, where, pinned, heads=(), **placed)[0]


def perhaps_headless(
    kind, where: str, pinned: dict, *, heads: tuple[str, ...] = HEADS, **placed
) -> tuple[nn.Module, bool]:
    """The pre-trained model, and whether its checkpoint has a head, which is then drawn at random.

    heads: how the names of tensors begin that may be absent, all of them together.
    """
    options = {"dtype": torch.float32, **pinned, **placed, "output_loading_info": True}
    model, report = kind.from_pretrained(where, **options, ignore_mismatched_sizes=True)
    misshapen = [name for name, *_ in report["mismatched_keys"]]
    absent = sorted([*report["missing_keys"], *misshapen])
    head = {name for name, _ in model.named_parameters() if name.startswith(heads)}
    speaks = not (head and head <= {*absent} and all(name.startswith(heads) for name in absent))
    if absent and speaks:
        raise BadInput(
            f"backbone {where}: its weights lack {counted(len(absent), 'tensor')} of a "
            f"{type(model).__name__}, or have "
            f"them in another shape: {few(absent, shown=3)}; take a whole checkpoint"
        )
    surplus = sorted(name for name in report["unexpected_keys"] if "encoder." in name)
    if surplus:
        raise BadInput(
            f"backbone {where}: its weights hold {counted(len(surplus), 'tensor')} of layers that "
            f"config.json does not state: {few(surplus, shown=3)}; correct config.json"
        )
    return model, speaks


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, embeddings: int, where: str) -> None:
    """Raise BadInput for a tokenizer with special tokens only, without padding, or of another model."""
    vocabulary = tokenizer.get_vocab()
    if not set(vocabulary) - set(tokenizer.all_special_tokens) or tokenizer.pad_token_id is None:
        raise BadInput(f"backbone {where}: its tokenizer has no words or no padding token")
    if max(vocabulary.values()) >= embeddings:
        raise BadInput(
            f"backbone {where}: its tokenizer gives token ids up to {max(vocabulary.values())}, but its "
            f"weights have {embeddings} embeddings; take the tokenizer of the same model"
        )


def interpolation(row: dict, stated: str, where: str) -> str:
    """How images are scaled: as the row says, `own` as the checkpoint states, else as LPT's code."""
    if row.get("interpolation") != "own":
        return row.get("interpolation", "bilinear")
    if stated not in ("bilinear", "bicubic"):
        raise BadInput(f"backbone {where} states interpolation {stated}; set bilinear or bicubic in its row")
    return stated


def check_outputs(row: dict, found: int, where: str) -> None:
    """Raise BadInput for a checkpoint with another number of classes than its row expects.

    One that was tuned on other classes may bear the same name in another version of timm.
    """
    if row.get("outputs", found) != found:
        raise BadInput(
            f"backbone {where} has a classifier of {counted(found, 'class')}, and its row says outputs: "
            f"{row['outputs']}; it is another checkpoint"
        )


def drawn(kind, where: str, pinned: dict, changes: dict) -> nn.Module:
    """A model with the checkpoint's config and `changes`, whose weights are drawn from seed 0."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(where, **pinned, **changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind.from_config(config, dtype=torch.float32)


def pooler(row: dict, where: str, pinned: dict, *, kind: str) -> tuple[nn.Linear, bool]:
    """The dense layer of a pooler, and whether it is the checkpoint's own, or else drawn.

    A masked language model has none, but its checkpoint may. It is read only for the head `pooler`. kind:
    transformers' class that has one.
    """
    import transformers

    reader = getattr(transformers, kind)
    if "random" in row:
        return drawn(reader, where, pinned, row["random"]).pooler.dense, True
    options = {"dtype": torch.float32, **pinned, "output_loading_info": True}
    model, report = reader.from_pretrained(where, **options)
    return model.pooler.dense, not any("pooler." in name for name in report["missing_keys"])


def quiet() -> None:
    """Keep transformers from telling in a page what `pretrained` says in a sentence."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def not_plain(model: nn.Module) -> str:
    """What of a timm ViT keeps prompts out of its attention or its features out of reach, or nothing."""
    from timm.models.vision_transformer import Attention, Block

    if model.global_pool != "token" or isinstance(model.norm, nn.Identity):
        return "does not end in a class token after a final norm"
    for layer in model.blocks:
        attention = getattr(layer, "attn", None)
        extra = [getattr(attention, part, None) for part in ("norm", "gate")]
        plain = all(part is None or isinstance(part, nn.Identity) for part in extra)
        if type(layer) is not Block or type(attention) is not Attention or not plain:
            return f"has blocks ({type(layer).__name__}, {type(attention).__name__}) of another kind"
    return ""
