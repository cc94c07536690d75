"""Rows and the words of classes as token ids: cutting, batches, options, and what is refused."""

import pandas as pd
import pytest
import torch
from batches import batch_of
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from tailprompt.errors import BadInput
from tailprompt.inputs.encode import encode, encode_words, shorten
from tailprompt.inputs.templates import template_named
from tailprompt.inputs.tokens import tokenize

TEMPLATE = "{text} This is {mask} news ."
OPTIONS = template_named("soft", "en", "mcc")
WORDS = {"0": "no", "1": "maybe", "2": "yes"}
FORMATTED = {"input": "formatted", "language": "en", "words": WORDS, "max_length": 64}


@pytest.fixture(scope="module")
def t5():
    return AutoTokenizer.from_pretrained("workflow/resources/backbones/t5-mini")


def rows(texts, **columns):
    return pd.DataFrame({"id": [f"row {n}" for n in range(len(texts))], "label": 0, "text": texts, **columns})


def encoded(tokenizer, texts, *, columns=None, **changes):
    told = {"input": "prompted", "template": TEMPLATE, "max_length": 32, "positions": 512, **changes}
    return encode(rows(texts, **columns or {}), tokenizer, **told)


def tokens(tokenizer, examples, row=0):
    inputs, _ = batch_of(examples, torch.tensor([row]))
    return tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())


@given(st.integers(0, 300), st.integers(12, 64))
@settings(max_examples=40)
def test_the_mask_survives_any_truncation(tokenizer, words, max_length):
    examples = encoded(tokenizer, ["gold " * words + "x"], max_length=max_length)
    found = tokens(tokenizer, examples)
    assert len(found) <= max_length and found.count("[MASK]") == 1
    assert found[int(examples.position[0])] == "[MASK]" and found[-3:] == ["news", ".", "[SEP]"]
    assert examples.truncated == (words + 1 + 7 > max_length)


@pytest.mark.parametrize("length", [26, 30, 40])
def test_a_passage_is_cut_and_not_its_options(t5, tokenizer, length):
    told = FORMATTED | {"template": OPTIONS, "columns": {"choices": [["one", "two", "three"]], "label": 1}}
    for reader, mask in ((t5, "<extra_id_0>"), (tokenizer, "[MASK]")):
        text = ["a long tale " * 50]
        found = tokens(reader, encoded(reader, text, **told | {"max_length": length}))
        assert len(found) == length and found.count(mask) == 1
        whole = tokens(reader, encoded(reader, text, **told | {"max_length": 512}))
        assert found[-18:] == whole[-18:]


@pytest.mark.parametrize("reader", ["tokenizer", "t5"])
@pytest.mark.parametrize("text", ["buy {} now", "{}", "x{}y", "{}{} 好"])
def test_every_special_token_that_is_written_in_a_text_is_text(request, reader, text):
    reader = request.getfixturevalue(reader)
    texts = [text.format(token, token) for token in reader.all_special_tokens]
    special = {*reader.all_special_ids} - {*tokenize(reader, ["好"])[0]}  # which is no word of a T5 here
    first, *others = tokenize(reader, ["a long tale", *texts])
    assert first == tokenize(reader, ["a long tale"])[0]
    assert not any(special & {*ids} for ids in others)


def test_a_literal_mask_in_a_text_is_text(tokenizer):
    examples = encoded(tokenizer, ["buy [MASK] and [SEP] now"])
    found = tokens(tokenizer, examples)
    assert found.count("[MASK]") == 1 and found.count("[SEP]") == 1
    assert found[int(examples.position[0])] == "[MASK]"


@given(st.integers(0, 60), st.integers(0, 60), st.integers(2, 70))
@settings(max_examples=200)
def test_shorten_pops_from_the_longer_and_from_the_pair_when_equal(text, pair, budget):
    a, b = text, pair
    while a + b > budget:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    assert shorten([text, pair], budget) == [a, b]


def test_a_batch_pads_to_its_longest_example_only(tokenizer):
    examples = encoded(tokenizer, ["gold", "gold " * 15, "gold gold"])
    inputs, _ = batch_of(examples, torch.tensor([0, 2]))
    assert inputs["input_ids"].shape[1] == int(examples.lengths[2])
    assert inputs["attention_mask"].sum(1).tolist() == examples.lengths[[0, 2]].tolist()


def test_no_batch_is_padded_beyond_what_a_text_may_have(tokenizer):
    examples = encoded(tokenizer, ["gold " * 30, "gold"], max_length=21)
    both = torch.tensor([0, 1])
    for width in (21, 24, 64):  # a GPU's batches have one of a few widths, multiples of 8
        assert examples.made(both, width=width)[0]["input_ids"].shape == (2, 21)
    assert examples.made(both, width=8)[0]["input_ids"].shape == (2, 8)


def test_rows_say_how_many_options_they_have(t5):
    offered = {"choices": [["one", "two", "three"], ["one", "two"]], "label": 1}
    examples = encoded(t5, ["a", "b"], columns=offered, **FORMATTED | {"template": OPTIONS})
    assert batch_of(examples, torch.tensor([1, 0]))[0]["options"].tolist() == [2, 3]
    for options in (["one"], list("abcd")):
        with pytest.raises(
            BadInput, match=f"row 0 has {len(options)} options? and the right one is number 2"
        ):
            encoded(
                t5, ["a"], columns={"choices": [options], "label": 1}, **FORMATTED | {"template": OPTIONS}
            )


def test_rows_with_numbers_of_options_of_their_own_keep_their_order(t5):
    offered = [["one", "two", "three"], ["four", "five"], ["six", "one", "two"]]
    told = FORMATTED | {"template": OPTIONS, "positions": 512}
    several = encode(rows(["a", "b", "c"], choices=offered), t5, **told)
    for row in range(3):
        alone = encode(rows(["abc"[row]], choices=[offered[row]]), t5, **told)
        start, end = several.starts[row : row + 2].tolist()
        assert several.tokens[start:end].tolist() == alone.tokens.tolist()


def test_rows_without_options_of_their_own_are_shown_the_words_of_the_classes(t5):
    unified = FORMATTED | {"template": template_named("unified", "en", "ssc")}
    given = {"choices": [list(WORDS.values())] * 2}
    shown, own = encoded(t5, ["a", "b"], **unified), encoded(t5, ["a", "b"], columns=given, **unified)
    assert torch.equal(shown.tokens, own.tokens) and shown.options.tolist() == own.options.tolist() == [3, 3]


@pytest.mark.parametrize("told", [{}, {"input": "plain"}, FORMATTED | {"template": OPTIONS}])
def test_no_rows_are_no_examples_and_what_is_wrong_shows_all_the_same(tokenizer, told):
    assert len(encoded(tokenizer, [], **told)) == 0
    with pytest.raises(BadInput, match="of max_length 2 tokens"):
        encoded(tokenizer, [], **told | {"max_length": 2})


def test_max_length_beyond_the_positions_is_refused(tokenizer):
    with pytest.raises(
        BadInput, match="max_length 600 is more than the 512 positions of the backbone; lower"
    ):
        encoded(tokenizer, ["x"], max_length=600)
    with pytest.raises(
        BadInput, match="32 is more than the 25 positions of the backbone beside its soft pro"
    ):
        encoded(tokenizer, ["x"], positions=32, prompt_length=7)
    assert len(encoded(tokenizer, ["x"], positions=39, prompt_length=7)) == 1


@pytest.mark.parametrize(
    "told, says",
    [
        (
            {"max_length": 7},
            "template '{text} This is .*' leaves 0 of max_length 7 tokens for text; raise max",
        ),
        (
            {"max_length": 2, "input": "plain", "template": None},
            "plain input leaves 0 of max_length 2 tok",
        ),
        (FORMATTED | {"template": OPTIONS, "max_length": 8}, "leaves 0 of max_length 8 tokens for text"),
    ],
)
def test_an_input_that_leaves_no_room_for_text_is_refused_rather_than_cut(tokenizer, told, says):
    with pytest.raises(BadInput, match=says):
        encoded(tokenizer, ["x"], **told)


def test_templates_without_mask_or_with_unknown_slot_are_refused(tokenizer):
    for form in ({}, FORMATTED):
        with pytest.raises(BadInput, match="needs {text} and {mask} once each"):
            encoded(tokenizer, ["x"], **form | {"template": "{text} ."})
        with pytest.raises(BadInput, match="has {pair}; allowed here: {text} and {mask} once"):
            encoded(tokenizer, ["x"], **form | {"template": "{text} {pair} {mask}"})
    with pytest.raises(BadInput, match="has {choices}; allowed here: {text} and {mask} once"):
        encoded(tokenizer, ["x"], template="{text} {choices} {mask}")
    with pytest.raises(BadInput, match="unknown input 'bare'; known: formatted, plain, pooled, prompted"):
        encoded(tokenizer, ["x"], input="bare")


# the words of classes


def test_a_masked_language_model_scores_all_tokens_of_a_word_and_a_t5_its_first(t5, tokenizer):
    words = {"0": "no", "1": "video games"}
    assert encode_words(words, tokenizer) == [
        tokenizer.convert_tokens_to_ids(each) for each in (["no"], ["video", "games"])
    ]
    assert encode_words(words, t5) == [[t5.convert_tokens_to_ids(t5.tokenize(w)[0])] for w in words.values()]
    chinese = encode_words({"0": "好", "1": "不好"}, tokenizer)
    assert chinese == [tokenizer.convert_tokens_to_ids(each) for each in (["好"], ["不", "好"])]


def test_where_options_are_shown_their_letters_are_scored(t5, tokenizer):
    for reader, letters in ((t5, "ABC"), (tokenizer, "abc")):
        found = encode_words(WORDS, reader, template="{text} {choices} {mask}", language="en")
        assert found == [[reader.convert_tokens_to_ids(letter)] for letter in letters]
    with pytest.raises(BadInput, match="letters up to P, 16; the classes are 17"):
        encode_words({str(n): "x" for n in range(17)}, t5, template=OPTIONS, language="en")


@pytest.mark.parametrize("reader", ["t5", "tokenizer"])
@pytest.mark.parametrize("word", [" ", "𐎀𐎁"])
def test_a_word_of_unknown_tokens_only_is_refused(request, reader, word):
    with pytest.raises(
        BadInput, match=f"words.csv: the word '{word}' of class 'x' has no token that the back"
    ):
        encode_words({"x": word, "y": "good"}, request.getfixturevalue(reader), source="words.csv")


def test_two_classes_that_would_always_score_alike_are_refused(t5, tokenizer):
    alike = "verbalizer: classes 'a' and 'b' are scored by the same tokens"
    with pytest.raises(BadInput, match=rf"{alike} \(supply money\); choose another word for one"):
        encode_words({"a": "money supply", "b": "supply money"}, tokenizer)
    with pytest.raises(BadInput, match=rf"{alike} \(▁good\); choose another word for one"):
        encode_words({"a": "good", "b": "good day"}, t5)
