"""Prompt tuning: vectors before the input of a frozen language model (Lester et al. 2021; PPT Eq. 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from tailprompt.errors import BadInput, named
from tailprompt.model.backbones import Backbone
from tailprompt.model.bodies import TextBody

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Prompt = Float[Tensor, "length width"]
FREQUENT = 1000  # number of words from which `top_words` draws (PPT Table 2)


def soft_prompt(
    backbone: Backbone, told, *, words: Sequence[Sequence[int]], texts: Sequence[Sequence[int]] | None
) -> TextBody:
    """The frozen body with an initial prompt before its input. Of the body, only the prompt learns.

    told: `components.tuners.SoftPrompt`. words: token ids of each class's word. texts: token ids of the
    training texts; None if a prompt will be loaded.
    """
    prompts = first_prompt(
        "normal" if texts is None else told.init,
        told.length,
        backbone.body.get_input_embeddings().weight,
        backbone.tokenizer,
        words=words,
        texts=texts or (),
        scale=told.prompt_scale,
    )
    frozen = backbone.body.requires_grad_(False)
    plain = told.plain
    return TextBody(
        frozen,
        prompts=prompts,
        scale=told.prompt_scale,
        twice=plain is not None and plain.embedded == "as_released",
        rests=plain is None or not plain.body_dropout,
    )


def first_prompt(
    init: str,
    length: int,
    embedding: Float[Tensor, "vocabulary width"],
    tokenizer: PreTrainedTokenizerBase,
    *,
    words: Sequence[Sequence[int]],
    texts: Iterable[Sequence[int]] = (),
    scale: float = 1.0,
) -> Prompt:
    """An initial prompt in the space of the input embeddings, drawn with torch's default generator.

    init: `normal` has the standard deviation of the embeddings (the paper gives none). Others are embeddings
    of real words (PPT Table 2): `vocabulary` draws from all words, `top_words` from the first thousand
    (vocabularies are in the order of frequency), `task_words` from the training texts (texts: their ids), and
    `label_words` repeats the tokens of the answers (words: their ids). `as_released` repeats one vector of
    deviation 0.001 in the parameter's space, so times `scale` here. Raises BadInput if there is no such word.
    """
    embedding = embedding.detach().float().cpu()
    if init == "normal":
        return embedding.std() * torch.randn(length, embedding.shape[1])
    if init == "as_released":
        return (scale * 0.001 * torch.randn(1, embedding.shape[1])).repeat(length, 1)
    ids = named(WORDS, init, "init")(tokenizer, words, texts)
    if not ids:
        raise BadInput(f"init: {init} finds no word that the backbone knows; take vocabulary")
    if init == "label_words":
        return embedding[torch.tensor(ids).repeat(-(-length // len(ids)))[:length]].clone()
    return embedding[torch.tensor(ids)[torch.randint(len(ids), (length,))]].clone()


def vocabulary(tokenizer, words, texts) -> list[int]:
    """All tokens that are not special."""
    return sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))


def top_words(tokenizer, words, texts) -> list[int]:
    """The first tokens that are alphabetic and have two letters or more, or are not ASCII (as Chinese)."""
    spelled = {number: token.lstrip("▁Ġ") for token, number in tokenizer.get_vocab().items()}
    ordinary = [number for number in vocabulary(tokenizer, words, texts) if spelled[number].isalpha()]
    return [n for n in ordinary if len(spelled[n]) > 1 or not spelled[n].isascii()][:FREQUENT]


def label_words(tokenizer, words, texts) -> list[int]:
    """The tokens of the words of all classes, in the order of the classes."""
    return [token for word in words for token in word]


def task_words(tokenizer, words, texts) -> list[int]:
    """The tokens of the training texts, as often as they occur there."""
    counts = Counter(token for ids in texts for token in ids)
    return [token for token in vocabulary(tokenizer, words, texts) for _ in range(counts[token])]


WORDS = {
    "vocabulary": vocabulary,
    "top_words": top_words,
    "label_words": label_words,
    "task_words": task_words,
}
