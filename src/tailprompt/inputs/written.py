"""A split of texts as they are written, for a body that counts their terms itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from tailprompt.machine.clock import Spent
from tailprompt.model.terms import sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LENGTH = 16  # what a text counts as, so that a batch of predictions has a thousand


@dataclass(frozen=True)
class Written:
    """Texts of all examples, before their terms are counted."""

    unit = "example"
    texts: Sequence[str]
    labels: Int[Tensor, " examples"]
    names: Sequence[str]
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Written:
        """The same texts, with labels on a device."""
        return replace(self, labels=self.labels.to(device))

    @property
    def lengths(self) -> Int[Tensor, " examples"]:
        """The same for all: terms are counted, not padded."""
        return torch.full((len(self),), LENGTH)


@dataclass(frozen=True)
class Counted(Written):
    """Texts with sparse vectors `[examples, terms]`, with the interface of `texts.Examples`."""

    held = False  # whether batches are made of what the device holds
    rows: csr_matrix | None = None
    spent: Spent = Spent()  # on counting the terms

    def numpy(self) -> csr_matrix:
        """The vectors for scikit-learn."""
        return self.rows

    def width(self, indices: Int[Tensor, " batch"]) -> int:
        """Nothing: texts are not padded."""
        return 0

    def staged(self, indices: Int[Tensor, " batch"], there: Int[Tensor, " batch"]) -> tuple[Tensor, ...]:
        """What `made` takes of these texts: their numbers, on the host."""
        return (indices,)

    def made(
        self, indices: Int[Tensor, " batch"], *, width: int
    ) -> tuple[dict[str, Tensor], Int[Tensor, " batch"]]:
        """The vectors of these texts, as a sparse tensor, and their labels."""
        device = self.labels.device
        return {"vector": sparse(self.rows[indices.numpy()], device)}, self.labels[indices.to(device)]


def counted(texts: Written, rows: csr_matrix, spent: Spent = Spent()) -> Counted:  # noqa: B008
    """The texts with their vectors, and what was spent on these."""
    return Counted(**{**vars(texts), "rows": rows, "spent": spent})


def written(table: pd.DataFrame) -> Written:
    """The texts of a table (id, text, label, perhaps pair), of which a pair is one text."""
    texts = table["text"] if "pair" not in table else table["text"] + "\n" + table["pair"]
    labels = torch.from_numpy(table["label"].to_numpy("int64").copy())
    return Written(texts.tolist(), labels, list(table["id"]))
