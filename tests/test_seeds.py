"""Tests draw the same numbers each time, whatever ran before them."""

import random
import re
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def drawn_before():
    """What a fixture of the whole module draws, which is set up before those of a single test."""
    return torch.rand(1).item()


@pytest.mark.parametrize("time", [1, 2])
def test_each_test_begins_from_the_same_seeds(time):
    expected = random.Random(0).random(), np.random.RandomState(0).random()
    assert (random.random(), np.random.random()) == expected
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(0))


def test_what_a_modules_fixture_draws_is_seeded_by_its_name(drawn_before):
    seed = crc32(b"drawn_before")
    assert drawn_before == torch.rand(1, generator=torch.Generator().manual_seed(seed)).item()


def test_no_test_makes_a_generator_without_a_seed():
    unseeded = re.compile(r"default_rng\(\)|Random\(\)|RandomState\(\)|Generator\(\)(?!\.manual_seed)")
    files = [*Path("tests").rglob("*.py")]
    assert files and not [str(file) for file in files if unseeded.search(file.read_text("utf-8"))]
