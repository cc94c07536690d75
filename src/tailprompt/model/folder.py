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


def files_in(folder: Path) -> list[Path]:
    """The files of FILES that a folder has, sorted."""
    return sorted(file for name in FILES for file in folder.glob(name) if file.is_file())
