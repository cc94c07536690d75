"""Questions with options, each option a sequence of its own (code of P-Tuning v2: multiple_choice.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from tailprompt.errors import BadInput, counted
from tailprompt.inputs.encode import encode
from tailprompt.inputs.texts import Examples

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def encode_options(
    table: pd.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    *,
    most: int,
    max_length: int,
    positions: int | float,
    prompt_length: int = 0,
    kept: Path | None = None,
) -> Examples:
    """Rows (id, text, perhaps pair, choices, label) with a sequence for each of `most` options.

    An option is the second text; a pair, which is the question of a passage, stands before it. Of an option
    that a row lacks the first stands there instead, and the model never chooses it. Raises BadInput for a row
    with more than `most` options.
    """
    counts = np.array([len(given) for given in table["choices"]], np.int64)
    if (more := counts > most).any():
        name = table["id"][more].iloc[0]
        raise BadInput(f"{name} has {counted(counts[more][0], 'option')}; the classes are {most}")
    asked = table["pair"] + " " if "pair" in table else pd.Series("", index=table.index)
    rows = [
        (f"{before}{options[place if place < len(options) else 0]}")
        for before, options in zip(asked, table["choices"], strict=True)
        for place in range(most)
    ]
    flat = table[["id", "text", "label"]].loc[table.index.repeat(most)].assign(pair=rows)
    limits = {"max_length": max_length, "positions": positions, "prompt_length": prompt_length}
    each = encode(flat, tokenizer, input="plain", **limits, kept=kept)
    return replace(
        each,
        lengths=each.lengths.reshape(-1, most).amax(1),
        labels=each.labels[::most],
        names=list(table["id"]),
        options=torch.from_numpy(counts),
        sequences=most,
    )
