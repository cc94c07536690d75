"""Prompt tuning: vectors before the input of a frozen language model (Lester et al. 2021; PPT Eq. 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from tailprompt.errors import BadInput, named
from tailprompt.model.backbones import Backbone
from tailprompt.model.bodies import TextBody

Prompt = Float[Tensor, "length width"]
FREQUENT = 1000  # words that `top_words` draws from (PPT Table 2)


def soft_prompt(
    backbone: Backbone, told, *, words: Sequence[Sequence[int]], texts: Sequence[Sequence[int]] | None
) -> TextBody:
    """The frozen body behind a first prompt, which alone learns. told: `components.tuners.SoftPrompt`.

    words: token ids of each class's word. texts: those of the training texts; None where a prompt will be
    loaded.
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
    return TextBody(frozen, prompts=prompts, scale=told.prompt_scale, rests=True)


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
    """A first prompt in the space of the input embeddings, drawn with torch's default generator.

    init: normal (deviation of the embeddings; the paper names none), or embeddings of real words (PPT Table
    2): of any in the vocabulary, of its first thousand words (`top_words`: vocabularies are in the order of
    frequency), of the answers' tokens in turn (`label_words`; words: their ids), of the training texts'
    tokens (`task_words`; texts: their ids); or as_released, one vector of deviation 0.001 over `scale`.
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
    """Every ordinary token."""
    return sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))


def top_words(tokenizer, words, texts) -> list[int]:
    """The first tokens that begin a word of two letters, or are a Chinese character."""
    spelled = {number: token.lstrip("▁Ġ") for token, number in tokenizer.get_vocab().items()}
    ordinary = [number for number in vocabulary(tokenizer, words, texts) if spelled[number].isalpha()]
    return [n for n in ordinary if len(spelled[n]) > 1 or not spelled[n].isascii()][:FREQUENT]


def label_words(tokenizer, words, texts) -> list[int]:
    """The tokens of each class's word."""
    return [token for word in words for token in word]


def task_words(tokenizer, words, texts) -> list[int]:
    """The tokens of words in the training texts, as often as they are there."""
    counts = Counter(token for ids in texts for token in ids)
    return [token for token in vocabulary(tokenizer, words, texts) for _ in range(counts[token])]


WORDS = {
    "vocabulary": vocabulary,
    "top_words": top_words,
    "label_words": label_words,
    "task_words": task_words,
}
