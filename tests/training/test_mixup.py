"""Mixup is drawn for a batch, however small the micro-batches are in which its gradient accumulates."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tailprompt.inputs.images import AUGMENTATIONS, image_examples
from tailprompt.training.batches import of_outputs, sampled
from tailprompt.training.loop import accumulate
from tailprompt.training.objective import mixed
from tailprompt.training.samplers import dual, shuffled

NUMBER, SIDE = 8, 6


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.out = nn.Linear(3 * SIDE * SIDE, 3)

    def forward(self, batch):
        return self.out(batch["pixels"].flatten(1))


def examples(folder, room, **settings):
    file = folder / "made.npy"
    np.save(file, np.random.default_rng(0).integers(0, 256, (NUMBER, SIDE, SIDE, 3), np.uint8))
    ids = np.arange(NUMBER)
    table = pd.DataFrame({"id": [f"i{n}" for n in ids], "label": ids % 3, "image": ids})
    grey = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    return image_examples(file, table, training=True, size=SIDE, **grey, **settings).to("cpu", room=room)


def cost(logits, labels, branch, elapsed):
    return mixed(lambda *told: cross_entropy(*told, reduction="none"), logits, labels)


def gradient(train, sampler, micro):
    """The loss and the gradient of the first step in micro-batches, and the generator's state after it."""
    net, on = Linear(), sampled(train, sampler, batch=NUMBER, bucket=1, seed=3)
    torch.manual_seed(5)
    total = accumulate(net, on.parts(0, micro), of_outputs(cost), torch.tensor(0.0))
    return total, net.out.weight.grad, torch.get_rng_state()


@pytest.mark.parametrize("sampler", [shuffled, dual])
@pytest.mark.parametrize("augment", AUGMENTATIONS)
@pytest.mark.parametrize("room", [0, 10**9])
@pytest.mark.parametrize("micro", [5, 3, 1])
def test_a_mixed_batch_has_one_loss_whatever_the_micro_batch(tmp_path, sampler, augment, room, micro):
    train = examples(tmp_path, room, augment=augment, crop_scale=0.5, flip=True, mixup=1.0)
    whole, small = (gradient(train, sampler, each) for each in (NUMBER, micro))
    torch.testing.assert_close(small[0], whole[0])
    torch.testing.assert_close(small[1], whole[1])
    assert torch.equal(small[2], whole[2])  # nothing more was drawn


def test_micro_batches_of_one_are_mixed_too(tmp_path):
    mixing, plain = (gradient(examples(tmp_path, 0, mixup=mixup), shuffled, 1)[0] for mixup in (1.0, 0.0))
    assert abs(mixing - plain) > 1e-3
