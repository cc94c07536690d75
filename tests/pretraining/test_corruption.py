"""Masks and spans: what is hidden, what is asked, and that nothing is lost."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.pretraining.corruption import corrupt_spans, halves, mask_tokens, noise_spans

SENTINELS = torch.arange(1099, 999, -1)
END = 1


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(batch=8, tokens=40, seed=0):
    return torch.randint(5, 1000, (batch, tokens), generator=generator(seed))


def masked(tokens, rate=0.15, seed=0):
    return mask_tokens(tokens, rate=rate, mask=4, special=5, vocabulary=1000, generator=generator(seed))


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.4])
def test_every_row_hides_the_same_share_and_answers_are_what_stood_there(rate):
    tokens = rows()
    shown, places, answers = masked(tokens, rate)
    assert places.shape == (8, max(1, round(rate * 40)))
    assert all(len(set(row.tolist())) == len(row) for row in places)
    assert torch.equal(tokens.gather(1, places), answers)
    assert torch.equal(shown.scatter(1, places, answers), tokens)


def test_eight_in_ten_hidden_ids_are_the_mask_one_is_random_one_stays():
    tokens = rows(batch=400, tokens=100)
    shown, places, answers = masked(tokens, 0.5)
    seen = shown.gather(1, places)
    is_mask, stays = (seen == 4).float().mean(), (seen == answers).float().mean()
    assert 0.79 < is_mask < 0.81 and 0.09 < stays < 0.11
    assert seen[seen != 4].min() >= 5


def test_special_ids_are_never_hidden():
    tokens = rows()
    tokens[:, 0], tokens[:, -1] = 2, 3
    for seed in range(20):
        _, places, _ = masked(tokens, 0.4, seed)
        assert places.min() > 0 and places.max() < 39


def spans(tokens, rate=0.15, span=3.0, seed=0):
    return corrupt_spans(
        tokens, rate=rate, span=span, sentinels=SENTINELS, end=END, generator=generator(seed)
    )


@settings(max_examples=60)
@given(st.integers(8, 80), st.floats(0.05, 0.5), st.integers(1, 5), st.integers(0, 999))
def test_inputs_with_their_targets_in_place_of_the_sentinels_are_the_row(length, rate, span, seed):
    tokens = rows(3, length, seed)
    for row, given_ids, target in zip(tokens, *spans(tokens, rate, span, seed), strict=True):
        assert given_ids[-1] == END and target[-1] == END
        hidden, name = {}, None
        for token in target[:-1].tolist():
            if token >= 1000:
                name = token
                hidden[name] = []
            else:
                hidden[name].append(token)
        whole = [token for given_id in given_ids[:-1].tolist() for token in hidden.get(given_id, [given_id])]
        assert whole == row.tolist()
        assert list(hidden) == SENTINELS[: len(hidden)].tolist()


def test_a_row_of_512_hides_77_ids_in_26_spans_as_t5():
    noise = noise_spans(rows(4, 512), rate=0.15, span=3, generator=generator())
    starts = (noise[:, 1:] & ~noise[:, :-1]).sum(1) + noise[:, 0]
    assert noise.sum(1).tolist() == [77] * 4 and starts.tolist() == [26] * 4
    inputs, targets = spans(rows(4, 512))
    assert inputs.shape == (4, 512 - 77 + 26 + 1) and targets.shape == (4, 77 + 26 + 1)


def test_halves_are_a_prefix_and_its_continuation():
    tokens = rows(2, 9)
    prefix, rest = halves(tokens, end=END)
    assert torch.equal(torch.cat([prefix[:, :-1], rest[:, :-1]], 1), tokens)
    assert (prefix[:, -1] == END).all() and (rest[:, -1] == END).all()
