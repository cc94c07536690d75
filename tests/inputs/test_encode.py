"""Encoding: the layout, the mask, truncation and batches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.errors import BadInput
from tailprompt.inputs.encode import encode, encode_words, shorten

TEMPLATE = "{text} This is {mask} news ."


def encoded(tokenizer, texts, pairs=None, **changes):
    options = {"input": "prompted", "template": TEMPLATE, "max_length": 32, "positions": 512, **changes}
    names = [f"row-{i}" for i in range(len(texts))]
    return encode(texts, pairs, [0] * len(texts), names, tokenizer, **options)


def tokens(tokenizer, examples, row=0):
    inputs, _ = examples.batch(torch.tensor([row]))
    return tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())


def test_plain_input_is_the_tokenizers_own(tokenizer):
    texts, pairs = ["copper prices rose", "gold"], ["metals", "gold fell sharply today"]
    for second in (None, pairs):
        examples = encoded(tokenizer, texts, second, input="plain")
        inputs, _ = examples.batch(torch.arange(2))
        own = tokenizer(texts, second, padding=True, return_tensors="pt")
        for key in ("input_ids", "token_type_ids", "attention_mask"):
            assert torch.equal(inputs[key], own[key])
        assert (inputs["position"] == 0).all()


def test_prompted_input_is_the_template_and_is_read_at_the_mask(tokenizer):
    examples = encoded(tokenizer, ["gold rose"])
    assert tokens(tokenizer, examples) == [
        "[CLS]",
        "gold",
        "rose",
        "this",
        "is",
        "[MASK]",
        "news",
        ".",
        "[SEP]",
    ]
    assert examples.position.tolist() == [5]


def test_pair_template_is_one_segment(tokenizer):
    examples = encoded(tokenizer, ["a b"], ["c"], template="{text} Question: {pair} ? {mask} .")
    inputs, _ = examples.batch(torch.tensor([0]))
    assert (inputs["token_type_ids"] == 0).all()
    assert tokens(tokenizer, examples) == [
        "[CLS]",
        "a",
        "b",
        "question",
        ":",
        "c",
        "?",
        "[MASK]",
        ".",
        "[SEP]",
    ]


@given(st.integers(0, 300), st.integers(12, 64))
@settings(max_examples=40, deadline=None)
def test_the_mask_survives_any_truncation(tokenizer, words, max_length):
    examples = encoded(tokenizer, ["gold " * words + "x"], max_length=max_length)
    found = tokens(tokenizer, examples)
    assert len(found) <= max_length and found.count("[MASK]") == 1
    assert found[int(examples.position[0])] == "[MASK]" and found[-3:] == ["news", ".", "[SEP]"]
    assert examples.truncated == (words + 1 + 7 > max_length)


def test_a_literal_mask_in_a_text_is_text(tokenizer):
    examples = encoded(tokenizer, ["buy [MASK] and [SEP] now"])
    found = tokens(tokenizer, examples)
    assert found.count("[MASK]") == 1 and found.count("[SEP]") == 1
    assert found[int(examples.position[0])] == "[MASK]"


@given(st.integers(0, 60), st.integers(0, 60), st.integers(2, 70))
@settings(max_examples=200, deadline=None)
def test_shorten_pops_from_the_longer_and_from_the_pair_when_equal(text, pair, budget):
    a, b = text, pair
    while a + b > budget:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    assert shorten([text, pair], budget) == [a, b]


def test_a_batch_pads_to_its_longest_example_only(tokenizer):
    examples = encoded(tokenizer, ["gold", "gold " * 15, "gold gold"])
    inputs, _ = examples.batch(torch.tensor([0, 2]))
    assert inputs["input_ids"].shape[1] == int(examples.lengths[2])
    assert inputs["attention_mask"].sum(1).tolist() == examples.lengths[[0, 2]].tolist()


def test_max_length_beyond_the_positions_is_refused(tokenizer):
    with pytest.raises(BadInput, match="max_length 600 is more than the 512 positions"):
        encoded(tokenizer, ["x"], max_length=600)


def test_a_template_that_leaves_no_room_is_refused_rather_than_cut(tokenizer):
    with pytest.raises(BadInput, match="leaves 0 of max_length 7 tokens for text"):
        encoded(tokenizer, ["x"], max_length=7)


def test_templates_without_mask_or_with_unknown_slot_are_refused(tokenizer):
    with pytest.raises(BadInput, match="needs {text} and {mask} once each"):
        encoded(tokenizer, ["x"], template="{text} .")
    with pytest.raises(BadInput, match="has {pair}; allowed here: {text} and {mask} once"):
        encoded(tokenizer, ["x"], template="{text} {pair} {mask}")


def test_a_word_of_unknown_tokens_only_is_refused(tokenizer):
    with pytest.raises(BadInput, match="'𐎀𐎁' of class 'ugaritic' has no token"):
        encode_words({"news": "news", "ugaritic": "𐎀𐎁"}, tokenizer)


def test_two_classes_that_would_always_score_alike_are_refused(tokenizer):
    with pytest.raises(BadInput, match="classes 'a' and 'b' have words of the same tokens"):
        encode_words({"a": "money supply", "b": "supply money"}, tokenizer)
