"""The functions of a T5, by fewer and faster kernels than transformers computes them with.

On a GPU a small T5 waits for memory and for launches, not for products. Nothing changes but rounding.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

NAME = "tailprompt"  # of the attention, in a model's config


class Norm(nn.Module):
    """T5's layer norm, which has neither mean nor bias (Zhang and Sennrich 2019), in one kernel."""

    def __init__(self, weight: nn.Parameter, eps: float):
        super().__init__()
        self.weight, self.eps = weight, eps

    def forward(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        return F.rms_norm(states, self.weight.shape, self.weight, self.eps)


def attend(module, query, key, value, attention_mask, *, position_bias=None, **told) -> tuple[Tensor, None]:
    """Attention as transformers calls it, with a bias that lies in memory as torch's fused kernels need it.

    T5's bias comes with heads last; a sum with it keeps that order, and torch then computes all scores.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    bias = None if position_bias is None else position_bias.contiguous()
    return sdpa_attention_forward(module, query, key, value, attention_mask, position_bias=bias, **told)


def exchange(model: nn.Module) -> None:
    """Exchange attention, layer norms and activations of a T5 or mT5 of transformers.

    Layers that are on several devices keep what they have, which moves inputs there.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.activations import NewGELUActivation
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
    for module in [] if hasattr(model, "hf_device_map") else list(model.modules()):
        for name, part in list(module.named_children()):
            if hasattr(part, "variance_epsilon"):
                setattr(module, name, Norm(part.weight, part.variance_epsilon))
            if isinstance(part, NewGELUActivation):
                setattr(module, name, nn.GELU("tanh"))
