"""A T5 of fewer kernels computes what transformers' does."""

import pytest
import torch
from conftest import SMALL_T5
from rounding import SLOPES, T5, assert_all_near, assert_near
from transformers import MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration
from transformers.activations import NewGELUActivation

from tailprompt.model.fewer_kernels import NAME, Norm, exchange

GATED = {"feed_forward_proj": "gated-gelu", "dropout_rate": 0.0, "decoder_start_token_id": 0}
KINDS = {
    "t5": (T5ForConditionalGeneration, T5Config, {"dropout_rate": 0.0, "decoder_start_token_id": 0}),
    "t5-gated": (T5ForConditionalGeneration, T5Config, GATED),
    "mt5": (MT5ForConditionalGeneration, MT5Config, GATED),
}


def made(kind: str, *, exchanged: bool):
    """A small model with weights from seed 0, whose norms are not all ones."""
    model, config, told = KINDS[kind]
    torch.manual_seed(0)
    net = model(config(**SMALL_T5, vocab_size=50, **told)).eval()
    for name, value in net.named_parameters():
        if "layer_norm" in name:
            torch.nn.init.uniform_(value, 0.5, 1.5)
    if exchanged:
        exchange(net)
    return net


def outcome(net):
    """Hidden states and gradients for a batch of which one text is padded."""
    ids = torch.randint(1, 50, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    hidden = net(input_ids=ids, attention_mask=mask, decoder_input_ids=ids[:, :2]).logits
    hidden.square().sum().backward()
    return hidden.detach(), {name: value.grad for name, value in net.named_parameters()}


@pytest.mark.parametrize("kind", list(KINDS))
def test_logits_and_gradients_are_those_of_transformers(kind):
    (logits, gradients), (expected, theirs) = (
        outcome(made(kind, exchanged=exchanged)) for exchanged in (True, False)
    )
    assert_near(logits, expected, rounded=T5)
    assert_all_near(gradients, theirs, rounded=SLOPES * T5)


@pytest.mark.parametrize("kind", list(KINDS))
def test_everything_is_exchanged_and_weights_keep_their_names(kind):
    net = made(kind, exchanged=True)
    assert net.state_dict().keys() == made(kind, exchanged=False).state_dict().keys()
    assert net.encoder.config._attn_implementation == net.decoder.config._attn_implementation == NAME
    parts = [type(part) for part in net.modules()]
    assert parts.count(Norm) == 2 * 2 + 1 + 2 * 3 + 1 and NewGELUActivation not in parts
