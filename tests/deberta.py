"""Small random DeBERTas, with the tokenizer of the BERT that ships."""

from __future__ import annotations

from pathlib import Path

import torch
from conftest import SHIPPED, SMALL
from transformers import AutoTokenizer, DebertaConfig, DebertaV2Config
from transformers import DebertaForSequenceClassification as First
from transformers import DebertaV2ForSequenceClassification as Second

BOTH = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
KINDS = {  # the checkpoints of Microsoft have these forms, and the last is what transformers makes by default
    "one": (First, DebertaConfig, {**BOTH, "type_vocab_size": 0}),
    "one, short": (First, DebertaConfig, {**BOTH, "type_vocab_size": 2, "max_relative_positions": 3}),
    "two": (
        Second,
        DebertaV2Config,
        {
            **BOTH,
            "type_vocab_size": 0,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_buckets": 4,
            "conv_kernel_size": 3,
        },
    ),
    "two, own keys": (Second, DebertaV2Config, {**BOTH, "type_vocab_size": 2, "max_relative_positions": 6}),
    "two, absolute": (Second, DebertaV2Config, {"type_vocab_size": 2}),
}


def row(folder: Path, kind: str) -> dict:
    """Write a DeBERTa of a form to a folder; returns the row of the backbone."""
    model, config, changes = KINDS[kind]
    tokenizer = AutoTokenizer.from_pretrained(f"{SHIPPED}bert-mini")
    shape = {**SMALL, "vocab_size": len(tokenizer), "max_position_embeddings": 40, **changes}
    torch.manual_seed(0)
    whole = model(config(**shape))
    for value in whole.parameters():
        value.data.add_(torch.randn_like(value), alpha=0.2)
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"family": whole.config.model_type, "path": str(folder)}
