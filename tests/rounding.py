"""How far two right computations of a number lie apart: it follows from the precision and their length.

Each operation rounds by at most u, half the machine epsilon. Of n operations in a row the errors add up to
at most `n u` (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1), and, as they are as
often up as down, to more than `6 sqrt(n) u` once in 30 million (Higham and Mary 2019, A New Approach to
Probabilistic Rounding Error Analysis, theorem 2.4). Two computations may each err so much.
"""

from __future__ import annotations

import numpy as np
import torch

LIKELY = 6.0  # standard deviations


def in_body(*, width: int, inner: int, layers: int, tokens: int) -> int:
    """The operations in a row of a transformer: each sum, norm and activation from its input to its output.

    inner: the width between the two matrices of a feedforward.
    """
    attention = 3 * width + 2 * tokens  # keys, their products with queries, softmax, mix, output
    feedforward = width + inner + 10  # and its activation
    norms = 4 * width  # two, each a mean and a variance
    return layers * (attention + feedforward + norms)


TEXT = in_body(width=16, inner=32, layers=2, tokens=32)  # conftest.SMALL
T5 = 3 * TEXT  # encoder and decoder, which attends twice
IMAGE = in_body(width=32, inner=128, layers=4, tokens=32)  # tiny_vit
LOSS = 64  # a loss of a few classes, with its exponentials and powers
SLOPES = 3  # a backward pass has twice the operations of the pass before it


def apart(dtype: torch.dtype, rounded: int) -> float:
    """How far two results of so many operations in a row lie apart, in units of the largest number summed."""
    return 2 * LIKELY * rounded**0.5 * torch.finfo(dtype).eps / 2


def near(found, expected, *, rounded: int, largest: float = 0.0) -> bool:
    """Whether two results of so many operations in a row are the same but for rounding.

    The coarser of both precisions counts. largest: what was summed, where that is larger than the sums.
    """
    return not unlike(found, expected, rounded, largest)


def assert_near(found, expected, *, rounded: int, largest: float = 0.0, says: str = "") -> None:
    """Fail unless they are near, and say by how much they are not."""
    wrong = unlike(found, expected, rounded, largest)
    assert not wrong, f"{says} {wrong}"


def assert_all_near(found: dict, expected: dict, *, rounded: int) -> None:
    """The same of named tensors that are sums of the same numbers, as the slopes of parameters are."""
    assert found.keys() == expected.keys()
    largest = max(value.abs().max().item() for value in expected.values())
    for name, value in expected.items():
        assert_near(found[name], value, rounded=rounded, largest=largest, says=name)


def unlike(found, expected, rounded: int, largest: float) -> str:
    """In what two results differ by more than rounding; empty if in nothing."""
    found, expected = torch.broadcast_tensors(tensor(found), tensor(expected))
    dtype = max(found.dtype, expected.dtype, key=lambda each: torch.finfo(each).eps)
    far = apart(dtype, rounded)
    size = max(largest, expected.abs().max().item())
    try:
        torch.testing.assert_close(found.double(), expected.double(), rtol=far, atol=far * size)
    except AssertionError as error:
        return str(error)
    return ""


def of_half(scores) -> float:
    """How far a probability moves as its scores are stored in float16, and it in six decimals.

    A score s moves by `u |s|`, and so does a probability p by at most `2 p (1 - p)` of the largest of that.
    """
    return np.abs(scores).max() * torch.finfo(torch.float16).eps / 2 / 2 + 1e-6


def tensor(values) -> torch.Tensor:
    """Numbers as a tensor of their precision."""
    return values.detach() if isinstance(values, torch.Tensor) else torch.tensor(np.array(values))
