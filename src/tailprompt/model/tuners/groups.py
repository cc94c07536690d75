"""LPT's group prompts: a pool with keys, from which each image takes the nearest (section 4.2)."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class Groups(nn.Module):
    """A pool of group prompts.

    pool: Float[groups blocks length width], for the blocks after the first `shared_blocks`. keys:
    Float[groups width]. chosen: how many prompts an image takes. query: whose features choose, `shared` or
    `pretrained`.
    """

    exact = ("keys",)  # a rounded key could choose another group

    def __init__(
        self, pool: nn.Parameter, keys: nn.Parameter, *, chosen: int, shared_blocks: int, query: str
    ):
        super().__init__()
        self.pool, self.keys = pool, keys
        self.chosen, self.shared_blocks, self.query = chosen, shared_blocks, query

    def forward(
        self, query: Float[Tensor, "batch width"]
    ) -> tuple[
        Float[Tensor, " batch"], Int[Tensor, "batch chosen"], Float[Tensor, "batch blocks length width"]
    ]:
        """The second term of LPT Eq. 5, the chosen groups (best first), and the mean of their prompts."""
        similarity = F.cosine_similarity(query[:, None], self.keys, dim=-1)
        near, chosen = similarity.topk(self.chosen)  # LPT Eq. 2
        prompts = self.pool[chosen].mean(1)  # LPT Eq. 3
        return 1 - near.mean(-1), chosen, prompts  # LPT Eq. 5: the second term
