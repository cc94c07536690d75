"""The whole body learns, or nothing of it."""

from __future__ import annotations

from torch import nn

from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.bodies import TextBody
from tailprompt.model.tuners.deep import image_body


def full(backbone: Backbone | VisionBackbone, told, **_) -> nn.Module:
    """The body, of which every parameter learns."""
    return bare(backbone, told, learns=True)


def frozen(backbone: Backbone | VisionBackbone, told, **_) -> nn.Module:
    """The body, of which none does: only the head learns (a linear probe)."""
    return bare(backbone, told, learns=False)


def bare(backbone: Backbone | VisionBackbone, told, *, learns: bool) -> nn.Module:
    """The body without prompts."""
    if backbone.reads == "image":
        return image_body(backbone, told.beside, learns=learns)
    return TextBody(backbone.body.requires_grad_(learns))
