"""A small random backbone with the shipped tokenizer, and made-up examples, for the tests of the library."""

import pytest
import torch

from tailprompt import backbones

FOLDER = "workflow/resources/backbones/bert-mini"
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ROW = {"family": "bert", "path": FOLDER, "random": SMALL}


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors are fastest so, and two test runs on one machine do not slow each other."""
    torch.set_num_threads(1)


@pytest.fixture
def backbone():
    return backbones.load(ROW)


@pytest.fixture(scope="session")
def tokenizer():
    return backbones.load(ROW).tokenizer
