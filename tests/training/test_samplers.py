"""Samplers: what an epoch holds, and in which proportion."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.training.samplers import (
    balanced,
    bucketed,
    class_aware,
    dual,
    dual_as_released,
    shuffled,
    square_root,
)

LABELS = torch.tensor([0] * 900 + [1] * 90 + [2] * 10).repeat(20)
CHANCE = 6 * math.sqrt(0.25 / len(LABELS))  # standard deviations of a share of so many draws


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def shares(order: torch.Tensor) -> torch.Tensor:
    return torch.bincount(LABELS[order], minlength=3) / len(order)


def test_shuffled_takes_each_example_once():
    assert torch.equal(shuffled(LABELS, generator()).sort().values, torch.arange(len(LABELS)))


def test_balanced_shows_classes_alike():
    assert torch.allclose(shares(balanced(LABELS, generator())), torch.full((3,), 1 / 3), atol=CHANCE)


def test_square_root_shows_classes_by_the_root_of_their_count():
    root = torch.tensor([900.0, 90.0, 10.0]).sqrt()
    assert torch.allclose(shares(square_root(LABELS, generator())), root / root.sum(), atol=CHANCE)


def test_the_same_seed_gives_the_same_order():
    for sampler in (shuffled, balanced, square_root, dual, dual_as_released, class_aware):
        assert torch.equal(sampler(LABELS, generator(3)), sampler(LABELS, generator(3)))
        assert not torch.equal(sampler(LABELS, generator(3)), sampler(LABELS, generator(4)))


def test_dual_is_a_balanced_order_beside_one_that_takes_each_example_once():
    order, plain = dual(LABELS, generator())
    assert len(order) == len(plain) == len(LABELS)
    assert torch.allclose(shares(order), torch.full((3,), 1 / 3), atol=CHANCE)
    assert torch.equal(plain.sort().values, torch.arange(len(LABELS)))


def test_dual_as_released_is_classes_in_turn_beside_draws_with_replacement():
    order, anywhere = dual_as_released(LABELS, generator())
    assert torch.equal(LABELS[order].view(-1, 4).unique(dim=1), LABELS[order][::4, None])
    assert torch.allclose(shares(anywhere), torch.bincount(LABELS) / len(LABELS), atol=CHANCE)
    assert abs(len(anywhere.unique()) / len(LABELS) - (1 - math.exp(-1))) < CHANCE


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 99))
@settings(max_examples=30)
def test_classes_in_turn_are_four_in_a_row_all_equally_often_and_small_ones_repeat(counts, seed):
    labels = torch.repeat_interleave(torch.arange(len(counts)) * 2, torch.tensor(counts))  # gaps between ids
    order = class_aware(labels, generator(seed))
    turns = labels[order][: len(order) // 4 * 4].view(-1, 4)
    assert len(order) == len(labels) and (turns == turns[:, :1]).all()
    rounds = turns[:, 0].split(len(counts))
    assert all(len(circle.unique()) == len(circle) for circle in rounds)
    for label, count in zip(labels.unique(), counts, strict=True):
        seen = torch.bincount(order[labels[order] == label])
        seen = seen[seen > 0]
        assert len(seen) <= count and (seen.numel() == 0 or seen.max() <= -(-int(seen.sum()) // count))


@given(st.lists(st.integers(1, 100), min_size=1, max_size=200), st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=50)
def test_buckets_cut_an_epoch_into_batches_without_loss(lengths, batch, window):
    lengths = torch.tensor(lengths)
    batches = bucketed(torch.randperm(len(lengths)), lengths, batch, generator(), window)
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch) and max(map(len, batches)) <= batch


@given(st.lists(st.integers(0, 3), min_size=1, max_size=100), st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=50)
def test_a_batch_of_joined_sets_is_of_one_and_a_set_has_its_share_of_them(of, batch, window):
    sets, order = torch.tensor(of), torch.randperm(len(of), generator=generator())
    batches = bucketed(order, torch.ones_like(sets), batch, generator(), window, sets)
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(len(of)))
    owners = [sets[part].unique().tolist() for part in batches]
    assert all(len(each) == 1 for each in owners)
    shares = {number: -(-of.count(number) // batch) for number in set(of)}
    assert {number: owners.count([number]) for number in shares} == shares


def test_one_set_is_cut_as_no_set_is():
    lengths, order = torch.arange(100) % 7, torch.randperm(100, generator=generator())
    plain = bucketed(order, lengths, 8, generator(), 3)
    joined = bucketed(order, lengths, 8, generator(), 3, torch.zeros(100, dtype=torch.long))
    assert all(map(torch.equal, plain, joined)) and len(plain) == len(joined)


def test_a_window_of_one_batch_is_a_plain_shuffle():
    order = torch.randperm(100, generator=generator())
    batches = bucketed(order, torch.arange(100), 8, generator(), 1)
    assert {frozenset(part.tolist()) for part in batches} == {
        frozenset(part.tolist()) for part in order.split(8)
    }


def test_buckets_pad_less_than_chance():
    lengths = torch.randint(5, 128, (3200,), generator=generator())
    order = torch.randperm(3200, generator=generator())

    def padded(batches):
        return sum(int(lengths[part].max()) * len(part) for part in batches)

    assert padded(bucketed(order, lengths, 32, generator(), 50)) < 0.7 * padded(order.split(32))
