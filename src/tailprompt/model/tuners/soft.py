"""Prompt tuning: vectors before the input of a frozen language model (Lester et al. 2021; PPT Eq. 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, cat, nn
from transformers import PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from tailprompt.errors import BadInput, named

Prompt = Float[Tensor, "length width"]
FREQUENT = 1000  # words that `top_words` draws from (PPT Table 2)


class SoftPrompted(nn.Module):
    """A body that sees `scale` times the prompt before its input; the prompt alone learns.

    prompt: Float[length width] in the space of input embeddings; what learns is that over `scale`. The
    released code of PPT divides T5's embeddings by 100 for half precision, which changes no function, and its
    learning rates are of that space; scale: 100 takes them as they are. The body stays in evaluation mode,
    for a frozen network drops nothing.
    """

    def __init__(self, body: nn.Module, prompt: Prompt, *, scale: float = 1.0):
        super().__init__()
        self.body = body.requires_grad_(False)
        self.prompt, self.scale = nn.Parameter(prompt / scale), scale

    def train(self, mode: bool = True) -> SoftPrompted:
        super().train(mode)
        self.body.eval()
        for layer in self.body.modules():
            if getattr(layer, "gradient_checkpointing", False):
                layer.training = mode  # which alone is checkpointed; the dropouts inside stay off
        return self

    def embeddings(self) -> Prompt:
        """The prompt as the body sees it."""
        return self.scale * self.prompt

    def forward(
        self,
        input_ids: Int[Tensor, "batch tokens"],
        attention_mask: Int[Tensor, "batch tokens"],
        token_type_ids: Int[Tensor, "batch tokens"],
    ) -> BaseModelOutput:
        """The body's last hidden states without those of the prompt."""
        batch, tokens = input_ids.shape
        embedded = self.body.get_input_embeddings()(input_ids)
        prompt = self.embeddings().to(embedded.dtype).expand(batch, -1, -1)
        before = attention_mask.new_ones(batch, len(self.prompt))
        hidden = self.body(
            inputs_embeds=cat([prompt, embedded], dim=1),  # PPT Eq. 2: [P; f(x)]
            attention_mask=cat([before, attention_mask], dim=1),
            token_type_ids=cat([torch.zeros_like(before), token_type_ids], dim=1),
        ).last_hidden_state
        return BaseModelOutput(last_hidden_state=hidden[:, -tokens:])


def soft_prompt(
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
    ids = named(WORDS, init, "soft_init")(tokenizer, words, texts)
    if not ids:
        raise BadInput(f"soft_init: {init} finds no word that the backbone knows; take vocabulary")
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
