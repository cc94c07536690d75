"""A body maps a batch to the vectors that the head reads, for texts and images alike.

The pre-trained network is its attribute `pretrained`. What a tuner adds stands beside it; prompts are in
`prompts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.model.attention import Pair, block, embed
from tailprompt.model.tuners.groups import Groups

Pixels = Float[Tensor, "batch 3 size size"]
Vector = Float[Tensor, "batch width"]
Tokens = Float[Tensor, "batch tokens width"]


class Read(NamedTuple):
    """What a body returns for a batch. A field that a body does not compute is None.

    vector: of each example, at the position that is read. states: of all tokens of a text. match: the second
    term of LPT Eq. 5. chosen: the group prompts of each example, the best first.
    """

    vector: Vector
    states: Tokens | None = None
    match: Float[Tensor, " batch"] | None = None
    chosen: Int[Tensor, "batch chosen"] | None = None


class TextBody(nn.Module):
    """A language model, perhaps with a soft prompt before its input (PPT Eq. 2), or a prefix in its layers.

    prompts: Float[length width]; the parameter is `prompts / scale`, and the network sees `scale` times the
    parameter. PPT's released code divides T5's embeddings by 100 for half precision. This changes no
    function, but its learning rates belong to that space; with scale 100 they can be used unchanged. twice:
    whether a text behind a prompt has its positions, types and norm added twice (code of P-Tuning v2).
    prefix: `tuners.prefix.Prefix`. first: the position of the first token, if it is not the network's choice.
    lora: changes that have hooked themselves into the network. rests: whether the network stays in evaluation
    mode, so that its dropout is off.
    """

    reads = "text"

    def __init__(
        self,
        pretrained: nn.Module,
        *,
        prompts: Float[Tensor, "length width"] | None = None,
        scale: float = 1.0,
        twice: bool = False,
        prefix: nn.Module | None = None,
        first: int | None = None,
        lora: nn.ModuleDict | None = None,
        rests: bool = False,
    ):
        super().__init__()
        self.prompts = None if prompts is None else nn.Parameter(prompts / scale)
        self.pretrained, self.scale, self.rests = pretrained, scale, rests
        self.prefix, self.first, self.lora, self.twice = prefix, first, lora, twice

    def train(self, mode: bool = True) -> TextBody:
        super().train(mode)
        if self.rests:
            self.pretrained.eval()
            for layer in self.pretrained.modules():
                if getattr(layer, "gradient_checkpointing", False):
                    layer.training = mode  # checkpointing needs it; the dropout layers inside stay off
        return self

    def embeddings(self) -> Float[Tensor, "length width"]:
        """The prompt that the network sees."""
        return self.scale * self.prompts

    def forward(self, batch: dict[str, Tensor]) -> Read:
        """The last hidden states, and the one at the position that is read in each example."""
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
        inputs |= {"answer": batch["answer"]} if "answer" in batch else {}
        states = self.behind_prompts(**inputs) if self.prompts is not None else self.states(**inputs)
        rows = torch.arange(len(states), device=states.device)
        return Read(states[rows, batch["position"]], states)  # PPT Eq. 2: read at the mask

    def states(self, attention_mask: Tensor, **inputs: Tensor) -> Tokens:
        """The network's last hidden states."""
        batch, tokens = attention_mask.shape
        if self.prefix is not None:
            inputs["prefix"] = self.prefix(batch)
        if self.first is not None:
            inputs["position_ids"] = self.first + torch.arange(tokens, device=attention_mask.device)[None]
        if attention_mask.is_cuda:
            attention_mask = added_mask(attention_mask, self.pretrained.get_input_embeddings().weight.dtype)
        return self.pretrained(attention_mask=attention_mask, **inputs).last_hidden_state

    def behind_prompts(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, **others: Tensor
    ) -> Tokens:
        """The network's last hidden states behind the prompt, without those of the prompt."""
        batch, tokens = input_ids.shape
        if self.twice:  # once here and once in the network, which is told no types
            embedded = self.pretrained.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
            token_type_ids = torch.zeros_like(token_type_ids)
        else:
            embedded = self.pretrained.get_input_embeddings()(input_ids)
        prompts = self.embeddings().to(embedded.dtype).expand(batch, -1, -1)
        before = attention_mask.new_ones(batch, len(self.prompts))
        states = self.states(
            inputs_embeds=torch.cat([prompts, embedded], dim=1),  # PPT Eq. 2: [P; f(x)]
            attention_mask=torch.cat([before, attention_mask], dim=1),
            token_type_ids=torch.cat([torch.zeros_like(before), token_type_ids], dim=1),
            **others,
        )
        return states[:, -tokens:]


def added_mask(mask: Int[Tensor, "batch tokens"], dtype: torch.dtype) -> Float[Tensor, "batch 1 1 tokens"]:
    """What is added to attention scores, which transformers takes as it is.

    Of the mask itself it would ask whether anything is hidden, and wait for the GPU to answer.
    """
    hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=mask.device)
    return torch.where(mask == 0, hidden, torch.zeros_like(hidden))[:, None, None]


class ImageBody(nn.Module):
    """A timm ViT, perhaps with prompts in every block or before the first block only, and group prompts.

    Or with a prefix in its blocks, which is `tuners.prefix.Prefix`.

    prompts: Float[depth length width] for every block, or Float[1 length width] for the first. border: is
    added to the pixels. adapters: one parallel to each MLP. lora: changes that have hooked themselves into
    the ViT. dropout: of prompts that learn. rests: whether the ViT stays in evaluation mode, so that its
    dropout and stochastic depth are off.
    """

    reads = "image"

    def __init__(
        self,
        pretrained: nn.Module,
        *,
        prompts: nn.Parameter | None = None,
        groups: Groups | None = None,
        border: nn.Module | None = None,
        adapters: nn.ModuleList | None = None,
        prefix: nn.Module | None = None,
        lora: nn.ModuleDict | None = None,
        dropout: float = 0.0,
        rests: bool = True,
    ):
        super().__init__()
        self.prompts, self.groups, self.lora = prompts, groups, lora
        self.pretrained, self.border, self.adapters = pretrained, border, adapters
        self.prefix, self.dropout, self.rests, self.block = prefix, dropout, rests, block

    def train(self, mode: bool = True) -> ImageBody:
        super().train(mode)
        self.pretrained.train(mode and not self.rests)
        return self

    def compile_blocks(self) -> None:
        """Compile one block for all: it takes seconds, where the whole body would take minutes."""
        # variants: first, later and last blocks, with and without groups, in training or not, batch sizes
        torch._dynamo.config.recompile_limit = 64
        self.block = torch.compile(block)

    def forward(self, batch: dict[str, Tensor]) -> Read:
        """The class token after the final norm; with groups also the chosen prompts and their match."""
        pixels = batch["pixels"].to(self.pretrained.patch_embed.proj.weight.dtype)
        depth, tokens = len(self.pretrained.blocks), self.embed(pixels)
        if self.groups is None:
            return Read(self.read(self.through(tokens, 0, depth)))
        shared = self.groups.shared_blocks
        early = self.through(tokens, 0, shared)  # LPT section 4.2: (c_K, z_K) serves twice
        match, chosen, prompts = self.groups(self.asked(pixels, early))
        vector = self.read(self.through(early, shared, depth, prompts))
        return Read(vector, match=match, chosen=chosen)

    def embed(self, pixels: Pixels) -> Tokens:
        """The input of the first block: the tokens of the image (with its border), and shallow prompts."""
        tokens = embed(self.pretrained, pixels if self.border is None else self.border(pixels))
        if not self.shallow:
            return tokens
        prompts = self.dropped(self.prompts, len(tokens))
        return torch.cat([tokens, prompts.expand(len(tokens), -1, -1)], dim=1)

    @property
    def shallow(self) -> bool:
        """Whether prompts are tokens of the first block only. In a ViT of one block, deep prompts are too."""
        return self.prompts is not None and len(self.prompts) == 1

    @torch.no_grad()
    def asked(self, pixels: Pixels, early: Tokens) -> Vector:
        """The query: features without group prompts (LPT section 4.2), or of the plain ViT (LPT Table 10)."""
        if self.groups.query == "pretrained":
            return self.pretrained.forward_features(pixels)[:, 0].float()
        depth = len(self.pretrained.blocks)
        return self.read(self.through(early, self.groups.shared_blocks, depth)).float()

    def through(
        self,
        tokens: Tokens,
        first: int,
        end: int,
        groups: Float[Tensor, "batch blocks length width"] | None = None,
    ) -> Float[Tensor, "batch kept width"]:
        """The tokens after blocks `first` to `end` - 1; after the last block, the class token only."""
        pairs: Sequence[Pair | None] = (None,) * end if self.prefix is None else self.prefix(len(tokens))
        for i in range(first, end):
            prompts = None
            if self.prompts is not None and not self.shallow:
                prompts = self.dropped(self.prompts[None, i], len(tokens))  # LPT Eq. 1
            if groups is not None:
                group = self.dropped(groups[:, i - first], len(tokens))
                prompts = torch.cat([prompts.expand(len(tokens), -1, -1), group], dim=1)  # LPT Eq. 4
            adapter = None if self.adapters is None else self.adapters[i]
            queries = 1 if i + 1 == len(self.pretrained.blocks) else None
            tokens = self.block(self.pretrained.blocks[i], tokens, prompts, adapter, queries, pairs[i])
        return tokens

    def dropped(
        self, prompts: Float[Tensor, "prompted length width"], batch: int
    ) -> Float[Tensor, "dropped length width"]:
        """Prompts after dropout, which differs between examples (VPT's code); frozen prompts unchanged."""
        if not (self.dropout and self.training and prompts.requires_grad):
            return prompts
        return F.dropout(prompts.expand(batch, -1, -1), self.dropout)

    def read(self, tokens: Float[Tensor, "batch kept width"]) -> Vector:
        """The class token after the final norm."""
        return self.pretrained.norm(tokens[:, 0])
