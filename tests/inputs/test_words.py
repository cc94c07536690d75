"""Words become pieces with labels, aligned as fast tokenizers do, and windows that answer each word once."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from tailprompt.inputs.texts import UNLABELLED
from tailprompt.inputs.words import cut, encode_sentences

SENTENCES = [
    "John lives in Saint-Étienne , near Lyon .".split(),
    ["U.N.", "officials", "met", "\u200b", "Ms.", "O'Brien", "北京", "[SEP]"],
    ["one"],
    ["antidisestablishmentarianism"] * 30,
]


def like_roberta(*, prefix):
    """A tokenizer as RoBERTa's, trained on a few words. prefix: whether a blank comes before a text."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([" ".join(words) for words in SENTENCES] * 3, trainer)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    names = {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"}
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=made, model_input_names=inputs, **names)


@pytest.fixture(scope="module")
def byte_level():
    return like_roberta(prefix=True)


@pytest.fixture(params=["bert", "byte_level"])
def either(request):
    return request.getfixturevalue("tokenizer" if request.param == "bert" else request.param)


def table(sentences=SENTENCES, **columns):
    tags = [[n % 5 for n in range(len(words))] for words in sentences]
    ids = [f"s{n}" for n in range(len(sentences))]
    return pd.DataFrame({"id": ids, "words": sentences, "tags": tags, **columns})


def encoded(rows, tokenizer, max_length=400, **options):
    return encode_sentences(rows, tokenizer, max_length=max_length, positions=512, **options)


def row(examples, number):
    """The token ids and labels of an example."""
    start, length = int(examples.starts[number]), int(examples.lengths[number])
    return examples.tokens[start : start + length].tolist(), examples.labels[number, :length].tolist()


def answered(examples):
    """The labels of each sentence's words, in order, from all of its windows."""
    found = {}
    for name, labels in zip(examples.names, examples.labels.tolist(), strict=True):
        found.setdefault(name, []).extend(label for label in labels if label != UNLABELLED)
    return found


def test_pieces_and_labels_are_those_of_word_ids(either):
    rows = table()
    examples = encoded(rows, either)
    for number, (words, tags) in enumerate(zip(rows.words, rows.tags, strict=True)):
        if "\u200b" in words and either.is_fast and "[CLS]" in either.get_vocab():
            continue  # of which BERT's makes no piece; the next test is about it
        theirs = either(words, is_split_into_words=True, split_special_tokens=True)
        expected, before = [], None
        for word in theirs.word_ids():
            expected.append(UNLABELLED if word is None or word == before else tags[word])
            before = word
        assert row(examples, number) == (theirs["input_ids"], expected)


def test_a_blank_comes_before_each_word_whatever_the_tokenizer_adds(byte_level):
    with_blank, without = (encoded(table(), made) for made in (byte_level, like_roberta(prefix=False)))
    assert with_blank.tokens.tolist() == without.tokens.tolist()


def test_a_word_without_pieces_is_answered_at_the_unknown_token(tokenizer):
    tokens, labels = row(encoded(table([["a", "\u200b", "b"]]), tokenizer), 0)
    unknown = tokenizer.unk_token_id
    assert tokens[2] == unknown and labels == [UNLABELLED, 0, 1, 2, UNLABELLED]


@pytest.mark.parametrize("max_length", [8, 11, 24, 30])
def test_every_word_is_answered_once_whatever_the_length(either, max_length):
    rows = table()
    examples = encoded(rows, either, max_length)
    assert examples.lengths.max() <= max_length and len(examples) > len(rows)
    assert answered(examples) == dict(zip(rows.id, rows.tags, strict=True))


def test_a_window_is_a_run_of_the_whole_sentence_between_special_tokens(tokenizer):
    rows = table([[f"word{n}" for n in range(40)]])
    whole = row(encoded(rows, tokenizer), 0)[0]
    examples = encoded(rows, tokenizer, 32)
    text = "".join(f"{token} " for token in whole[1:-1])
    for number in range(len(examples)):
        tokens, _ = row(examples, number)
        assert (tokens[0], tokens[-1]) == (whole[0], whole[-1])
        assert "".join(f"{token} " for token in tokens[1:-1]) in text
    assert examples.truncated == 0


def test_a_word_that_no_window_holds_is_answered_at_its_first_piece(tokenizer):
    rows = table([["near", "antidisestablishmentarianism" * 3, "Lyon"]])
    examples = encoded(rows, tokenizer, 8)
    assert answered(examples) == {"s0": [0, 1, 2]} and examples.truncated == 1


def test_the_verb_comes_after_the_words_as_a_second_segment(tokenizer):
    rows = table([["He", "said", "so"]], pair=["said"])
    examples = encoded(rows, tokenizer)
    theirs = tokenizer(["He", "said", "so"], ["said"], is_split_into_words=True)
    assert row(examples, 0)[0] == theirs["input_ids"]
    assert examples.segments.tolist() == theirs["token_type_ids"]
    assert answered(examples) == {"s0": [0, 1, 2]}
    many = encoded(table([["He", "said", "so"] * 9], pair=["said"]), tokenizer, 16)
    said = tokenizer.convert_tokens_to_ids("said")
    assert len(many) > 1 and all(row(many, n)[0][-2] == said for n in range(len(many)))


def test_rows_without_tags_have_a_label_at_each_word(tokenizer):
    examples = encoded(table().drop(columns="tags"), tokenizer, 24)
    assert answered(examples) == {f"s{n}": [0] * len(words) for n, words in enumerate(SENTENCES)}
    assert len(encoded(table([]), tokenizer)) == 0


@settings(max_examples=200)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(9, 30))
def test_windows_cover_a_sentence_and_answer_each_word_within(lengths, most):
    ends = np.append(0, np.cumsum(lengths))
    windows = cut(ends, 0, most)
    assert [word for _, _, begin, end in windows for word in range(begin, end)] == [*range(len(lengths))]
    for first, last, begin, end in windows:
        assert first <= begin <= end <= last and ends[last] - ends[first] <= most
