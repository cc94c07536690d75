"""A tiny random ViT, images for it and the settings of its tuners, for tests of the library."""

import json

import timm
import torch
from safetensors.torch import save_file

WIDTH, DEPTH, SIZE = 32, 4, 16
SETTINGS = {
    "tuner": "prompts",
    "length": 10,
    "prompt_init": "trunc_normal",
    "prompt_dropout": 0.0,
    "pool": 20,
    "chosen": 2,
    "shared_blocks": 6,
    "query": "shared",
    "joint": False,
    "norms": "frozen",
    "adapter": 0,
    "border": 0,
    "start": None,
}


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
