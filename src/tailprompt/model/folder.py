"""The files in the folder of a backbone: weights, configuration and tokenizer. This module needs no torch."""

from __future__ import annotations

from pathlib import Path

FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    "model.safetensors.index.json",
    "model-*.safetensors",
    "pytorch_model*.bin",
    "pytorch_model.bin.index.json",
]
OWN = {"deberta": ["vocab.json"], "deberta-v2": ["spm.model"]}  # of a family, beside them


def names_of(family: str = "") -> list[str]:
    """The files that a backbone of a family may have (by default one without files of its own)."""
    return [*FILES, *OWN.get(family, [])]


def files_in(folder: Path, family: str = "") -> list[Path]:
    """The files that a backbone of a family has in its folder, sorted."""
    return sorted(file for name in names_of(family) for file in folder.glob(name) if file.is_file())
