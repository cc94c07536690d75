"""Prompts in a ViT: VPT's (Jia et al. 2022), and LPT's shared and group prompts (sections 4.1 and 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tailprompt.errors import named
from tailprompt.model.backbones import VisionBackbone
from tailprompt.model.bodies import ImageBody
from tailprompt.model.tuners.extras import Adapter, Border
from tailprompt.model.tuners.groups import Groups


def prompts(backbone: VisionBackbone, told, **_) -> ImageBody:
    """Prompts in every block, drawn from torch's default generator. Only prompts and `beside` learn."""
    drawn = draw(backbone, told, backbone.depth)
    return image_body(backbone, told.beside, prompts=drawn, dropout=told.prompt_dropout)


def prompts_shallow(backbone: VisionBackbone, told, **_) -> ImageBody:
    """Prompts before the first block only."""
    drawn = draw(backbone, told, 1)
    return image_body(backbone, told.beside, prompts=drawn, dropout=told.prompt_dropout)


def group_prompts(backbone: VisionBackbone, told, **_) -> ImageBody:
    """Shared prompts, which come from another run or learn too (`joint`), and a pool of group prompts.

    told: `components.tuners.GroupPrompts`, which `limits.check` has checked.
    """
    shared = draw(backbone, told, backbone.depth).requires_grad_(told.joint)
    pool = draw(backbone, told, told.pool, backbone.depth - told.shared_blocks)
    keys = nn.Parameter(trunc_normal(torch.empty(told.pool, backbone.width), patch_of(backbone)))
    groups = Groups(pool, keys, chosen=told.chosen, shared_blocks=told.shared_blocks, query=told.query)
    return image_body(backbone, told.beside, prompts=shared, groups=groups, dropout=told.prompt_dropout)


def image_body(
    backbone: VisionBackbone, beside, *, learns: bool = False, drops: bool = False, **added
) -> ImageBody:
    """The body with what a tuner added. learns: every parameter of the ViT. drops: paths, in training mode.

    beside: `components.tuners.Beside`, which says whether norms learn, and adds adapters or a border.
    """
    vit = backbone.body.requires_grad_(learns)
    for module in vit.modules():
        if isinstance(module, nn.LayerNorm) and beside.norms == "tuned":
            module.requires_grad_(True)
    if beside.adapter:
        blocks = range(backbone.depth)
        added["adapters"] = nn.ModuleList(Adapter(backbone.width, beside.adapter) for _ in blocks)
    if beside.border:
        added["border"] = Border(backbone.size, beside.border)
    return ImageBody(vit, rests=not drops, **added)


def draw(backbone: VisionBackbone, told, *shape: int) -> nn.Parameter:
    """Initial prompts, shape x length x width."""
    empty = torch.empty(*shape, told.length, backbone.width)
    return nn.Parameter(named(INITS, told.init, "init")(empty, patch_of(backbone)))


def patch_of(backbone: VisionBackbone) -> int:
    """The pixels a side of a patch."""
    return backbone.body.patch_embed.patch_size[0]


def trunc_normal(prompts: Tensor, patch: int) -> Tensor:
    """Truncated normal (LPT appendix B); the standard deviation is that of LPT's code."""
    return nn.init.trunc_normal_(prompts, std=0.02)


def xavier(prompts: Tensor, patch: int) -> Tensor:
    """VPT's initialisation: uniform within +-sqrt(6 / (values of a patch + width))."""
    bound = (6 / (3 * patch**2 + prompts.shape[-1])) ** 0.5
    return nn.init.uniform_(prompts, -bound, bound)


INITS = {"trunc_normal": trunc_normal, "xavier": xavier}
