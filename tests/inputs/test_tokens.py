"""Token ids that runs share: the same as made anew, of just these texts, and made again where damaged."""

import copy

import numpy as np
import pytest
from tokenizers.normalizers import Lowercase, Sequence

from tailprompt.inputs import tokens

TEXTS = ["buy [MASK] now", "", "好 gold", "gold " * 30]


def listed(ragged):
    return [
        ragged.flat[start:][:length].tolist()
        for start, length in zip(ragged.starts, ragged.lengths, strict=True)
    ]


@pytest.fixture
def kept(tokenizer, tmp_path):
    """The folder in which a run left the ids of TEXTS."""
    tokens.tokenized(tokenizer, TEXTS, tmp_path)
    return tmp_path


def unused(*_):
    raise AssertionError("tokenised again")


def test_a_second_run_maps_the_ids_of_the_first_and_tokenises_nothing(tokenizer, kept, monkeypatch):
    anew = tokens.tokenize(tokenizer, TEXTS)
    monkeypatch.setattr(tokens, "tokenize", unused)
    shared = tokens.tokenized(tokenizer, TEXTS, kept)
    assert listed(shared) == anew and isinstance(shared.flat, np.memmap)
    assert len([*kept.iterdir()]) == 1


def test_what_a_tokenizer_did_before_changes_no_file(tokenizer, kept, monkeypatch):
    tokenizer(TEXTS, padding="max_length", max_length=8, truncation=True)
    monkeypatch.setattr(tokens, "tokenize", unused)
    tokens.tokenized(tokenizer, TEXTS, kept)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-8],
        lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
        lambda content: content[:150] + bytes([content[150] ^ 1]) + content[151:],
        lambda content: b"not an array" * 20,
        lambda content: bytes(len(content)),
        lambda content: bytes(4),
        lambda content: content + bytes(4),
        lambda content: content[:-1],
    ],
    ids=["empty", "cut", "checksum", "a bit", "another format", "zeros", "zero", "longer", "shorter"],
)
def test_a_damaged_file_is_made_again(tokenizer, kept, damage):
    (path,) = kept.iterdir()
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert listed(tokens.tokenized(tokenizer, TEXTS, kept)) == tokens.tokenize(tokenizer, TEXTS)
    assert path.read_bytes() == content


def test_no_bit_of_a_file_changes_unseen(kept):
    (path,) = kept.iterdir()
    content = path.read_bytes()
    for at in range(8 * len(content)):
        changed = bytearray(content)
        changed[at // 8] ^= 1 << at % 8
        path.unlink()
        path.write_bytes(changed)
        assert tokens.read(path) is None


def test_other_texts_or_another_tokenizer_have_other_files(tokenizer, kept):
    other = copy.deepcopy(tokenizer)
    other.backend_tokenizer.normalizer = Sequence([other.backend_tokenizer.normalizer, Lowercase()])
    names = {tokens.digest(tokenizer, texts) for texts in (TEXTS, TEXTS[::-1], ["ab", "c"], ["a", "bc"])}
    assert len(names | {tokens.digest(other, TEXTS)}) == 5


def test_no_texts_leave_no_file(tokenizer, tmp_path):
    assert listed(tokens.tokenized(tokenizer, [], tmp_path)) == [] == [*tmp_path.iterdir()]


def test_a_text_that_stands_several_times_is_tokenised_and_held_once(tokenizer, tmp_path, monkeypatch):
    seen, tokenize = [], tokens.tokenize
    monkeypatch.setattr(
        tokens, "tokenize", lambda tokenizer, texts: seen.extend(texts) or tokenize(tokenizer, texts)
    )
    texts = ["one passage", "another", "one passage", "one passage", "another", ""]
    made = tokens.tokenized(tokenizer, texts, tmp_path)
    assert listed(made) == tokenize(tokenizer, texts) and seen == ["one passage", "another", ""]
    assert len(made.flat) == len(tokenize(tokenizer, ["one passage"])[0]) + 1
    assert listed(tokens.tokenized(tokenizer, texts[::-1], tmp_path)) == listed(made)[::-1]
