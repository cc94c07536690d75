"""The whole body learns, or nothing of it."""

from __future__ import annotations

from torch import nn

from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.bodies import TextBody
from tailprompt.model.tuners.deep import image_body


def full(backbone: Backbone | VisionBackbone, told, **_) -> nn.Module:
    """The body, of which every parameter learns; it drops as its checkpoint says."""
    return bare(backbone, told, learns=True, drops=True)


def frozen(backbone: Backbone | VisionBackbone, told, **_) -> nn.Module:
    """The body, of which none does: only the head learns (a linear probe).

    It drops nothing, a text's dropout and an image's paths alike, unless `body_dropout` says so.
    """
    return bare(backbone, told, learns=False, drops=told.body_dropout)


def bare(backbone: Backbone | VisionBackbone, told, *, learns: bool, drops: bool) -> nn.Module:
    """The body without prompts. drops: whether it is in training mode where the model is."""
    if backbone.reads == "image":
        return image_body(backbone, told.beside, learns=learns, drops=drops)
    return TextBody(backbone.body.requires_grad_(learns), rests=not drops)
