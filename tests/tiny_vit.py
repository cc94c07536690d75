"""A tiny random ViT and images for it, for tests of the library."""

import json

import timm
import torch
from safetensors.torch import save_file

from tailprompt.model.backbones import VisionBackbone

WIDTH, DEPTH, SIZE = 32, 4, 16


def backbone(model):
    """The ViT as the library takes it."""
    tokens = model.patch_embed.num_patches + 1
    size = model.patch_embed.img_size[0]
    stated = (model.embed_dim, len(model.blocks), size, (0.5,) * 3, (0.5,) * 3, tokens)
    return VisionBackbone(model, *stated)


def vit(**changes):
    """A tiny random ViT whose weights and norms are far from their starts."""
    torch.manual_seed(0)
    shape = {"img_size": SIZE, "patch_size": 4, "embed_dim": WIDTH, "depth": DEPTH, "num_heads": 4}
    model = timm.models.VisionTransformer(**{**shape, "num_classes": 0, "class_token": True, **changes})
    for value in model.parameters():
        value.data.add_(torch.randn_like(value), alpha=0.2)
    return model


def images(count=3, seed=1):
    return torch.randn(count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def folder(path, model, **config):
    """Write a ViT of this size as a folder that timm loads; returns its path."""
    about = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": model.num_classes,
        "model_args": {"img_size": SIZE, "patch_size": 4, "embed_dim": WIDTH, "depth": DEPTH, "num_heads": 4},
        "pretrained_cfg": {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "num_classes": model.num_classes},
    }
    (path / "config.json").write_text(json.dumps({**about, **config}))
    save_file(model.state_dict(), path / "model.safetensors")
    return str(path)
