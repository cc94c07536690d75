"""What the tests of the library share: a small random backbone with its tokenizer, and their order."""

import pytest
import torch

from tailprompt import backbones

FOLDER = "workflow/resources/backbones/bert-mini"
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ROW = {"family": "bert", "path": FOLDER, "random": SMALL}


def pytest_collection_modifyitems(items):
    """The long ones first, so that the others run beside them (make test has a process a core)."""
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)


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
