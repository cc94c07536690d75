"""The body of a T5: what its decoder predicts for a sentinel."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Decoded(NamedTuple):
    """What a body returns, as transformers names it: Float[batch 2 width]."""

    last_hidden_state: Tensor


class EncoderDecoder(nn.Module):
    """A T5 that predicts what its first sentinel stands for. The decoder sees the start and the sentinel.

    The next token is the answer (PPT Eq. 2 and its code). The decoder may also see the right answer. If the
    layers are on several devices, input and output are on the first.
    """

    exact = ("lm_head",)  # which the head reads

    def __init__(self, model: nn.Module, sentinel: int):
        super().__init__()
        self.encoder, self.decoder, self.lm_head = model.encoder, model.decoder, model.lm_head
        self.config = model.encoder.config  # prefixes and positions are the encoder's
        self.spread = hasattr(model, "hf_device_map")
        scaled = getattr(model.config, "scale_decoder_outputs", False)  # which an mT5 never does
        self.scale = model.model_dim**-0.5 if scaled else 1.0
        asked = torch.tensor([[model.config.decoder_start_token_id, sentinel]])
        self.register_buffer("asked", asked, persistent=False)

    def _apply(self, fn, recurse=True):
        return super()._apply(fn, recurse and not self.spread)  # layers stay where the device map put them

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.get_input_embeddings()

    def forward(
        self,
        *,
        attention_mask,
        input_ids=None,
        inputs_embeds=None,
        token_type_ids=None,
        answer=None,
        **prefixed,
    ):
        """last_hidden_state: Float[batch 2 width], of answer and sentinel; token types are ignored.

        answer: ids of the right answers, Int[batch], after which a third state is of what follows. prefixed:
        the `prefix` of the encoder, where there is one.
        """
        inputs = {"input_ids": input_ids, "inputs_embeds": inputs_embeds, "attention_mask": attention_mask}
        read = self.encoder(**inputs, **prefixed).last_hidden_state
        asked = self.asked.expand(len(read), -1)
        hidden = self.decoder(
            input_ids=asked if answer is None else torch.cat([asked, answer[:, None]], dim=1),
            encoder_hidden_states=read,
            encoder_attention_mask=attention_mask,
            use_cache=False,
        ).last_hidden_state
        states = torch.cat([hidden[:, :2].flip(1), hidden[:, 2:]], dim=1)
        return Decoded(self.scale * states.to(attention_mask.device))


def set_dropout(model: nn.Module, share: float) -> None:
    """The share that all dropout of a T5 drops; its attention reads a number of its own."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = share
