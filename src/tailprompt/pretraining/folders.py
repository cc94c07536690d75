"""The files in the folders that stages of pre-training hand on: a tokenizer, and packed data."""

from __future__ import annotations

from pathlib import Path

TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
PACKED = ("pack.json", "*.bin", "*.npz")  # patterns


def tokenizer_in(folder: Path | None) -> list[Path]:
    """The files of a tokenizer; none without a folder."""
    return [folder / name for name in TOKENIZER] if folder else []


def packed_in(folder: Path) -> list[Path]:
    """The packed files that are in a folder. Parts are brought one by one, and so some may be missing."""
    return [file for name in PACKED for file in sorted(folder.glob(name))]
