"""By which pieces a backbone scores the word of each class, and what of a word it does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailprompt.inputs.layouts import spoken
from tailprompt.inputs.templates import has_choices

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def scored(
    words: dict[str, str], ids: list[list[int]], tokenizer: PreTrainedTokenizerBase
) -> dict[str, list[str]]:
    """The pieces that score each class. ids: those of `encode.encode_words`."""
    return {name: tokenizer.convert_ids_to_tokens(tokens) for name, tokens in zip(words, ids, strict=True)}


def unread(
    words: dict[str, str],
    ids: list[list[int]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    template: str | None = None,
) -> list[str]:
    """A sentence for each class whose word has an unknown piece, or pieces after the one that a T5 decodes.

    Where `template` shows options, letters score the classes, and nothing of a word is lost.
    """
    if has_choices(template or ""):
        return []
    lines, unknown = [], tokenizer.unk_token_id
    wholes = [[]] * len(ids) if tokenizer.mask_token_id is not None else spoken(tokenizer, [*words.values()])
    for (name, word), tokens, whole in zip(words.items(), ids, wholes, strict=True):
        if unknown in tokens:
            lines.append(f"the word '{word}' of class '{name}' has a piece that the backbone does not know")
        if whole[1:]:
            first, *others = tokenizer.convert_ids_to_tokens(whole)
            lines.append(
                f"the word '{word}' of class '{name}' is scored by its first piece {first} alone, "
                f"without {' '.join(others)}"
            )
    return lines
