"""A split as the vectors that a frozen body makes of it, which are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from tailprompt.machine.clock import Spent


@dataclass(frozen=True)
class Features:
    """The vectors that the head reads of each example, with the interface of `texts.Examples`.

    lengths: tokens of the examples that the vectors are of, so that batches are those of the examples.
    """

    unit, held = "example", True  # as of `texts.Examples`
    vectors: Float[Tensor, "examples width"] | Float[Tensor, "examples views width"]
    labels: Int[Tensor, " examples"]
    lengths: Int[Tensor, " examples"]
    names: Sequence[str]
    truncated: int
    options: Int[Tensor, " examples"] | None = None
    aligned: object = None
    spent: Spent = Spent()  # on the vectors

    def __len__(self) -> int:
        return len(self.labels)

    def numpy(self) -> Float[np.ndarray, "examples width"]:
        """The vectors for scikit-learn, the mean over views."""
        vectors = self.vectors if self.vectors.ndim == 2 else self.vectors.mean(1)
        return vectors.cpu().numpy()

    def expect(self, indices: Int[Tensor, " batch"]) -> None:
        """Nothing: vectors are in memory, so there is nothing to read ahead."""

    def width(self, indices: Int[Tensor, " batch"]) -> int:
        """Nothing: all vectors are of one size."""
        return 0

    def staged(self, indices: Int[Tensor, " batch"], there: Int[Tensor, " batch"]) -> tuple[Tensor, ...]:
        """What `made` takes of these examples. there: the same indices on the device."""
        return (there,)

    def made(
        self, there: Int[Tensor, " batch"], *, width: int
    ) -> tuple[dict[str, Tensor], Int[Tensor, " batch"]]:
        """The batch, by operations on the device alone."""
        inputs = {"vector": self.vectors[there]}
        if self.options is not None:
            inputs["options"] = self.options[there]
        return inputs, self.labels[there]
