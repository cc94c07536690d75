"""What learns of a vision transformer: VPT's prompts (Jia et al. 2022), LPT's shared and group prompts
(sections 4.1 and 4.2), and what LPT Table 15 sets beside them: norms, adapters and a border of pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.errors import named
from tailprompt.model.attention import block, embed

Pixels = Float[Tensor, "batch 3 size size"]
Features = Float[Tensor, "batch width"]


class Tuned(NamedTuple):
    """features: the class token after the final norm. match: LPT Eq. 5, second term, of each example.
    chosen: its group prompts, the best first. The last two are None without group prompts."""

    features: Features
    match: Float[Tensor, " batch"] | None = None
    chosen: Int[Tensor, "batch chosen"] | None = None


class PromptedViT(nn.Module):
    """A timm ViT with prompts in every block (one set: as tokens of the first), and a pool of group prompts.

    prompts: depth (or 1) x length x width. pool: groups x blocks after the first `shared_blocks` x length x
    width, and keys: groups x width. full: the whole ViT learns; else it stays in evaluation mode, for a
    frozen network does not drop paths.
    """

    def __init__(
        self,
        vit: nn.Module,
        *,
        prompts: nn.Parameter | None = None,
        pool: nn.Parameter | None = None,
        keys: nn.Parameter | None = None,
        border: nn.Module | None = None,
        adapters: nn.ModuleList | None = None,
        shared_blocks: int = 6,
        chosen: int = 2,
        query: str = "shared",
        dropout: float = 0.0,
        full: bool = False,
    ):
        super().__init__()
        self.vit, self.prompts, self.pool, self.keys = vit, prompts, pool, keys
        self.border, self.adapters = border, adapters
        self.shared_blocks, self.chosen, self.query = shared_blocks, chosen, query
        self.dropout, self.full, self.block = dropout, full, block

    def train(self, mode: bool = True) -> PromptedViT:
        super().train(mode)
        self.vit.train(mode and self.full)
        return self

    def compile_blocks(self) -> None:
        """Compile the block, once for all of them: seconds where the whole body takes minutes."""
        # first, later and last blocks, with and without groups, in training and not, and other batch sizes
        torch._dynamo.config.recompile_limit = 64
        self.block = torch.compile(block)

    def forward(self, pixels: Pixels) -> Tuned:
        depth, tokens = len(self.vit.blocks), self.embed(pixels)
        if self.pool is None:
            return Tuned(self.read(self.through(tokens, 0, depth)))
        early = self.through(tokens, 0, self.shared_blocks)  # LPT section 4.2: (c_K, z_K) serves twice
        similarity = F.cosine_similarity(self.asked(pixels, early)[:, None], self.keys, dim=-1)
        near, chosen = similarity.topk(self.chosen)  # LPT Eq. 2
        groups = self.pool[chosen].mean(1)  # LPT Eq. 3
        features = self.read(self.through(early, self.shared_blocks, depth, groups))
        return Tuned(features, 1 - near.mean(-1), chosen)  # LPT Eq. 5, second term

    def embed(self, pixels: Pixels) -> Float[Tensor, "batch tokens width"]:
        """What the first block takes: the image's tokens, its border learnt, and shallow prompts."""
        tokens = embed(self.vit, pixels if self.border is None else self.border(pixels))
        if not self.shallow:
            return tokens
        prompts = self.dropped(self.prompts, len(tokens))
        return torch.cat([tokens, prompts.expand(len(tokens), -1, -1)], dim=1)

    @property
    def shallow(self) -> bool:
        """Prompts are tokens of the first block only; where it is the only one, so are deep ones."""
        return self.prompts is not None and len(self.prompts) == 1

    @torch.no_grad()
    def asked(self, pixels: Pixels, early: Float[Tensor, "batch tokens width"]) -> Features:
        """The query: features without group prompts (LPT section 4.2), or of the ViT alone (its Table 10)."""
        if self.query == "pretrained":
            return self.vit.forward_features(pixels)[:, 0].float()
        return self.read(self.through(early, self.shared_blocks, len(self.vit.blocks))).float()

    def through(
        self,
        tokens: Float[Tensor, "batch tokens width"],
        first: int,
        end: int,
        groups: Float[Tensor, "batch blocks length width"] | None = None,
    ) -> Float[Tensor, "batch kept width"]:
        """Tokens after blocks `first` to `end`; of the last block's the class token is all that is read."""
        for i in range(first, end):
            prompts = None
            if self.prompts is not None and not self.shallow:
                prompts = self.dropped(self.prompts[None, i], len(tokens))
            if groups is not None:
                group = self.dropped(groups[:, i - first], len(tokens))
                prompts = torch.cat([prompts.expand(len(tokens), -1, -1), group], dim=1)
            adapter = None if self.adapters is None else self.adapters[i]
            queries = 1 if i + 1 == len(self.vit.blocks) else None
            tokens = self.block(self.vit.blocks[i], tokens, prompts, adapter, queries)
        return tokens

    def dropped(
        self, prompts: Float[Tensor, "prompted length width"], batch: int
    ) -> Float[Tensor, "dropped length width"]:
        """Prompts that learn after dropout, which differs between examples (as in VPT's code)."""
        if not (self.dropout and self.training and prompts.requires_grad):
            return prompts
        return F.dropout(prompts.expand(batch, -1, -1), self.dropout)

    def read(self, tokens: Float[Tensor, "batch kept width"]) -> Features:
        """The class token after the final norm."""
        return self.vit.norm(tokens[:, 0])


class Adapter(nn.Module):
    """Norm, bottleneck and a learnt scale; the last layer starts at zero, so that nothing changes at first.

    AdaptFormer (Chen et al. 2022) in the form of LIFT (Shi et al. 2024).
    """

    def __init__(self, width: int, bottleneck: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.down, self.up = nn.Linear(width, bottleneck), nn.Linear(bottleneck, width)
        self.scale = nn.Parameter(torch.ones(1))
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scale * self.up(F.relu(self.down(self.norm(tokens))))


class Border(nn.Module):
    """A frame that is added to images, zero at first (Visual Prompting, Bahng et al. 2022)."""

    def __init__(self, size: int, border: int):
        super().__init__()
        inside = torch.zeros(size, size, dtype=torch.bool)
        inside[border : size - border, border : size - border] = True
        self.register_buffer("frame", (~inside).flatten().nonzero()[:, 0], persistent=False)
        self.pixels = nn.Parameter(torch.zeros(3, len(self.frame)))

    def forward(self, images: Pixels) -> Pixels:
        canvas = self.pixels.new_zeros(3, images[0, 0].numel())
        return images + canvas.index_copy(1, self.frame, self.pixels).unflatten(1, images.shape[2:])


def prompted(
    vit: nn.Module,
    *,
    tuner: str,
    length: int = 10,
    prompt_init: str = "trunc_normal",
    prompt_dropout: float = 0.0,
    pool: int = 20,
    chosen: int = 2,
    shared_blocks: int = 6,
    query: str = "shared",
    joint: bool = False,
    norms: str = "frozen",
    adapter: int = 0,
    border: int = 0,
) -> PromptedViT:
    """A ViT and what of it learns, drawn from the default generator; defaults: LPT appendix B.

    length: tokens of a prompt. pool, chosen, shared_blocks: m, k and K of LPT. joint: shared prompts learn
    beside group prompts. norms: `tuned` lets the ViT's layer norms learn. adapter: width of its bottleneck;
    border: pixels of the frame; 0 is none. Settings are taken as checked by `tuning.check`.
    """
    depth, width, patch = len(vit.blocks), vit.embed_dim, vit.patch_embed.patch_size[0]
    deep, groups = (depth, length, width), (pool, depth - shared_blocks, length, width)
    shapes = {
        "full": {},
        "frozen": {},
        "prompts": {"prompts": deep},
        "prompts_shallow": {"prompts": (1, length, width)},
        "group_prompts": {"prompts": deep, "pool": groups, "keys": (pool, width)},
    }
    draw = named(PROMPT_INITS, prompt_init, "prompt_init")
    learned = {
        name: nn.Parameter((trunc_normal if name == "keys" else draw)(torch.empty(shape), patch))
        for name, shape in named(shapes, tuner, "tuner of images").items()
    }
    if tuner == "group_prompts":
        learned["prompts"].requires_grad_(joint)
    vit.requires_grad_(tuner == "full")
    for module in vit.modules():
        if isinstance(module, nn.LayerNorm) and norms == "tuned":
            module.requires_grad_(True)
    if adapter:
        learned["adapters"] = nn.ModuleList(Adapter(width, adapter) for _ in range(depth))
    if border:
        learned["border"] = Border(vit.patch_embed.img_size[0], border)
    return PromptedViT(
        vit,
        **learned,
        shared_blocks=shared_blocks,
        chosen=chosen,
        query=query,
        dropout=prompt_dropout,
        full=tuner == "full",
    )


def trunc_normal(prompts: Tensor, patch: int) -> Tensor:
    """LPT appendix B; the deviation is that of its code."""
    return nn.init.trunc_normal_(prompts, std=0.02)


def xavier(prompts: Tensor, patch: int) -> Tensor:
    """VPT's: uniform within sqrt(6 / (values of a patch + width))."""
    bound = (6 / (3 * patch**2 + prompts.shape[-1])) ** 0.5
    return nn.init.uniform_(prompts, -bound, bound)


PROMPT_INITS = {"trunc_normal": trunc_normal, "xavier": xavier}
