"""What else may learn in a ViT: adapters and a border of pixels (LPT Table 15)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

Pixels = Float[Tensor, "batch 3 size size"]


class Adapter(nn.Module):
    """Norm, bottleneck and a learned scale. The last layer starts at zero, so that nothing changes at first.

    It is AdaptFormer (Chen et al. 2022) in the form of LIFT (Shi et al. 2024).
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
    """A frame that is added to images and is zero at first (Visual Prompting, Bahng et al. 2022)."""

    def __init__(self, size: int, border: int):
        super().__init__()
        inside = torch.zeros(size, size, dtype=torch.bool)
        inside[border : size - border, border : size - border] = True
        self.register_buffer("frame", (~inside).flatten().nonzero()[:, 0], persistent=False)
        self.pixels = nn.Parameter(torch.zeros(3, len(self.frame)))

    def forward(self, images: Pixels) -> Pixels:
        canvas = self.pixels.new_zeros(3, images[0, 0].numel())
        return images + canvas.index_copy(1, self.frame, self.pixels).unflatten(1, images.shape[2:])
