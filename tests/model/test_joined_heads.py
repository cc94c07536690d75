"""The logits of a set stand at its outputs among those of all joined sets."""

import pytest
import torch

from tailprompt.model.joined import spread


@pytest.mark.parametrize(
    "columns", [[0, 1, 2], [0, 3, 4], [0, 1, 4], [2, 3], [0, 2, 4], [4], [0, 1, 2, 3, 4]], ids=str
)
def test_logits_stand_at_their_columns_and_gradients_come_back(columns):
    own = torch.randn(2, 3, len(columns), requires_grad=True)
    made = spread(own, columns, outputs=5, missing=-9.0)
    expected = torch.full((2, 3, 5), -9.0)
    expected[..., columns] = own.detach()
    assert torch.equal(made.detach(), expected)
    weight = torch.randn(2, 3, 5)
    (made * weight).sum().backward()
    assert torch.equal(own.grad, weight[..., columns])
