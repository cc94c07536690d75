"""Jobs on images: prompts in a ViT, and a linear probe. Weights are random, images are noise.

The obvious way appends prompts to the tokens before each block of timm and drops them after it. Phase 2 of
LPT then runs the whole network twice, as its released code does.
"""

from __future__ import annotations

import tempfile
from copy import deepcopy
from functools import partial
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from timm.models import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.job import Job, size
from tailprompt.components.heads import CosinePredictor, LinearPredictor, Predictor
from tailprompt.components.inputs import Pixels
from tailprompt.components.run import Run
from tailprompt.components.tuners import Beside, Frozen, GroupPrompts, Prompts
from tailprompt.inputs.augment import normalised
from tailprompt.inputs.images import Images, image_examples
from tailprompt.model.backbones import VisionBackbone
from tailprompt.model.compose import Model, compose
from tailprompt.training.optimizers import sgd

VIT_BASE = {"img_size": 224}  # VisionTransformer's defaults are those of ViT-B/16
SMALL_VIT = {"img_size": 32, "embed_dim": 24, "num_heads": 3}
CLASSES = 100
STORED = 256  # pixels a side of the images that views are cut from
MEAN = STD = (0.5, 0.5, 0.5)
COSINE = Predictor(dropout=0.1, predictor=CosinePredictor())
LINEAR = Predictor(dropout=0.1, predictor=LinearPredictor())
VPT = Prompts(beside=Beside()), LINEAR
LPT_1 = Prompts(beside=Beside()), COSINE
LPT_2 = GroupPrompts(beside=Beside()), COSINE
PROBE = Frozen(beside=Beside()), LINEAR


def vit(
    shape: dict,
    method: tuple,
    *,
    small: bool,
    repeats: bool = False,
    views: bool = False,
    room: int | None = None,
) -> Job:
    """A ViT with a tuner and a head.

    Its useful FLOPs are 4 a parameter of the blocks and token of the image; the second pass of LPT's phase 2
    is not counted. repeats: nothing below the head learns or changes. views: images are augmented as the
    papers do, and otherwise stored as the ViT takes them. room: bytes of pixels that the device may hold.
    """
    if small:
        shape = shape | SMALL_VIT
    torch.manual_seed(0)
    first = VisionTransformer(**shape, num_classes=0)
    batch, period = 4 if small else 256, 24 if repeats and not small else 4
    tokens = first.patch_embed.num_patches + 1
    stored = (augmented if views else as_stored)(period * batch, shape["img_size"], tokens)
    ours = partial(composed, first, *method)
    return Job(
        ours=ours,
        plain=lambda: Plain(ours()),
        examples=lambda device: stored.to(device, room=room),
        optimizer=partial(sgd, momentum=0.9, weight_decay=1e-4),
        lr=0.01,
        clip=0.0,
        batch=batch,
        period=period,
        flops=nan if repeats else 4 * size(first.blocks) * tokens,
        unit="images",
        repeats=repeats,
    )


def composed(first: VisionTransformer, tuner, head: Predictor) -> Model:
    """Our model of a ViT, a tuner and a head."""
    network, side = deepcopy(first), first.patch_embed.img_size[0]
    backbone = VisionBackbone(
        network, network.embed_dim, len(network.blocks), side, MEAN, STD, network.patch_embed.num_patches + 1
    )
    start = {"method": "phase 1"} if tuner.name == "group_prompts" else None
    run = Run(input=Pixels(), tuner=tuner, head=head, select="last", start=start)
    torch.manual_seed(0)
    return compose(backbone, run, words=[[]] * CLASSES)


def as_stored(count: int, side: int, tokens: int) -> Images:
    """Images in memory of the size that the ViT takes."""
    draw = np.random.default_rng(0)
    return Images(
        file=draw.integers(0, 256, (count, side, side, 3), dtype=np.uint8),
        rows=np.arange(count),
        labels=torch.from_numpy(draw.integers(CLASSES, size=count)),
        names=[str(number) for number in range(count)],
        view=partial(normalised, mean=MEAN, std=STD),
        tokens=tokens,
    )


def augmented(count: int, side: int, tokens: int) -> Images:
    """Larger images in a mapped file, of which random crops are taken and mirrored (LPT appendix B)."""
    draw = np.random.default_rng(0)
    every = range(count)
    table = pd.DataFrame({"id": [str(i) for i in every], "label": 0, "image": every})
    with tempfile.TemporaryDirectory() as folder:  # what is mapped stays when its name is gone
        path = Path(folder) / "images.npy"
        np.save(path, draw.integers(0, 256, (count, STORED, STORED, 3), dtype=np.uint8))
        return image_examples(
            path,
            table,
            training=True,
            size=side,
            mean=MEAN,
            std=STD,
            augment="resized_crop",
            crop_scale=0.08,
            flip=True,
            tokens=tokens,
        )


class Plain(nn.Module):
    """The same parameters through whole timm blocks."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    def class_token(self, pixels: Tensor, prompts: list[Tensor]) -> Tensor:
        network = self.model.body.pretrained
        tokens = network._pos_embed(network.patch_embed(pixels))
        count = tokens.shape[1]
        for layer, more in zip(network.blocks, prompts, strict=True):
            tokens = layer(torch.cat([tokens, more.expand(len(tokens), -1, -1)], 1))[:, :count]
        return network.norm(tokens)[:, 0]

    def forward(self, batch: dict[str, Tensor]) -> Tensor | tuple[Tensor, Tensor]:
        body, head, pixels = self.model.body, self.model.head, batch["pixels"]
        if body.prompts is None:
            return head.logits(head.features(body.pretrained.forward_features(pixels)[:, 0]))
        shared = list(body.prompts)
        if body.groups is None:
            return head.logits(head.features(self.class_token(pixels, shared)))
        with torch.no_grad():
            query = self.class_token(pixels, shared)
        near, chosen = F.cosine_similarity(query[:, None], body.groups.keys, dim=-1).topk(body.groups.chosen)
        groups, first = body.groups.pool[chosen].mean(1), body.groups.shared_blocks
        for i in range(groups.shape[1]):
            own = shared[first + i].expand(len(pixels), -1, -1)
            shared[first + i] = torch.cat([own, groups[:, i]], 1)
        return head.logits(head.features(self.class_token(pixels, shared))), 1 - near.mean(-1)
