"""What the tests of the library share: a small random backbone with its tokenizer, and their order.

The process that hands out the tests reads this file first, and the others wait: torch is imported inside.
"""

import gc
import random
import signal
from functools import cache
from zlib import crc32

import numpy as np
import pytest

SHIPPED = "workflow/resources/backbones/"
FOLDER = f"{SHIPPED}bert-mini"
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ROW = {"family": "bert", "path": FOLDER, "random": SMALL}
SMALL_T5 = {"d_model": 16, "d_ff": 32, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 8}
ROW_T5 = {"family": "t5", "path": f"{SHIPPED}t5-mini", "random": SMALL_T5}


def pytest_configure():
    """SIGINT and SIGTERM end a process, though whoever began the tests in the background ignored them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """The long ones first, so that the others run beside them (make test has a process a core).

    Those that go on from each other keep their order, whatever shuffles the others.
    """
    written = {item: place for place, item in enumerate(items)}
    result = yield
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)
    chained = [place for place, item in enumerate(items) if item.get_closest_marker("chained")]
    chain = sorted((items[place] for place in chained), key=written.get)
    for place, item in zip(chained, chain, strict=True):
        items[place] = item
    return result


def pytest_collection_finish():
    """What was imported stays to the end: the garbage collector need not walk over it each time."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef):
    """A fixture draws the same numbers whichever test asks for it first, and others than its test does."""
    seeded(crc32(fixturedef.argname.encode()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call():
    """Every test draws the same numbers each time, whichever of its fixtures were set up just before."""
    seeded(0)


def seeded(seed):
    """What draws numbers begins anew. Sums are of one thread: another number of them rounds another way."""
    import torch

    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.fixture(autouse=True)
def signals_as_they_were():
    """A stage takes signals for its process; the test after it has those of before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True, scope="session")
def tokenizers_that_ship_are_read_once():
    """Nobody changes them, and reading one takes as long as many a run of a small model."""
    from transformers import AutoTokenizer

    read = AutoTokenizer.from_pretrained

    @cache
    def once(where, **options):
        tokenizer = read(where, **options)
        tokenizer.get_vocab = cache(tokenizer.get_vocab)
        return tokenizer

    def from_pretrained(where, **options):
        return (once if str(where).startswith(SHIPPED) else read)(where, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutoTokenizer, "from_pretrained", from_pretrained)
        yield


@pytest.fixture(autouse=True, scope="session")
def what_passed_a_schema_is_checked_once():
    """Nearly all of each configuration is what ships, and to check it takes longer than most tests."""
    from tailprompt.plan.schemas import Strict

    check, passed = Strict.VALIDATORS["$ref"], {}

    def ref(validator, name, instance, schema):
        wanted = validator._resolver.lookup(name).contents
        key = id(wanted), repr(instance)
        if key not in passed:
            if errors := list(check(validator, name, instance, schema)):
                return errors
            passed[key] = wanted  # kept, or another could be found by the same number
        return ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Strict.VALIDATORS, "$ref", ref)
        yield


@pytest.fixture
def backbone():
    from tailprompt.model import backbones

    return backbones.load(ROW)


@pytest.fixture(scope="session")
def tokenizer():
    from tailprompt.model import backbones

    return backbones.load(ROW).tokenizer


@pytest.fixture
def two_dropouts(monkeypatch):
    """A loss `clouded`, whose key dropout is the head's too."""
    import two_dropouts

    with monkeypatch.context() as patch:
        two_dropouts.added(patch)
        yield
    two_dropouts.forget()
