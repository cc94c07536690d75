"""Windows of passages, labels in them, and the way back to characters, beside transformers' own; options."""

import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from batches import batch_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from tailprompt.errors import BadInput
from tailprompt.inputs.encode import encode
from tailprompt.inputs.options import encode_options
from tailprompt.inputs.passages import encode_questions

TEXTS = [
    "The Normans (Norman: Nourmands; French: Normands) were the people, in the 10th and 11th centuries.",
    "  Zürich’s naïve café — 5½ sacks … 東京 and 🙂 emoji\u00a0here, don't split\tme\n\nplease. ",
    "x",
    "@highlight [MASK] </s> <mask> a  b   c",
]


@pytest.fixture(scope="module")
def byte_level():
    """A byte-level BPE tokenizer as RoBERTa's, trained on the texts; a character may be several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    marks = dict(
        zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special, strict=True)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="<s>",
        sep_token="</s>",
        **marks,
        model_input_names=["input_ids", "attention_mask"],
    )


@pytest.fixture(params=["bert", "byte-level"])
def either(request, tokenizer, byte_level):
    return tokenizer if request.param == "bert" else byte_level


def table(number=40):
    """Questions on passages of up to 60 words, with answers of a few words or none, some of them twice."""
    draw, rows = random.Random(0), []
    words = [word for text in TEXTS for word in text.split()]
    passages = [
        draw.choice(["", " "]) + " ".join(draw.choices(words, k=draw.randint(1, 60)))
        for _ in range(number // 2)
    ]
    for n in range(number):
        passage, starts, answers = draw.choice(passages), [], []
        for _ in range(draw.choice([0, 1, 2])):
            begin = draw.randrange(len(passage))
            answer = passage[begin : begin + draw.randint(1, 12)]
            if answer.strip() == answer:
                starts, answers = [*starts, begin], [*answers, answer]
        rows.append(
            {
                "id": f"q{n}",
                "text": "what is " + " ".join(draw.choices(words, k=draw.randint(1, 5))),
                "pair": passage,
                "answers": answers,
                "starts": starts,
                "label": 0,
            }
        )
    return pd.DataFrame(rows)


def encoded(rows, tokenizer, *, max_length=48, stride=8, **changes):
    how = {"n_best": 20, "longest_answer": 30, "null_threshold": 0.0, "unanswerable": True, **changes}
    return encode_questions(rows, tokenizer, max_length=max_length, positions=512, stride=stride, **how)


def theirs(rows, tokenizer, *, max_length=48, stride=8):
    """What the released code has of transformers: overflowing tokens, offsets; labels found by walking."""
    made = tokenizer(
        rows["text"].tolist(), rows["pair"].tolist(), truncation="only_second",
        max_length=max_length, stride=stride, return_overflowing_tokens=True,
        return_offsets_mapping=True, split_special_tokens=True,
    )  # fmt: skip
    labels = []
    for window, offsets in enumerate(made["offset_mapping"]):
        row, kinds = rows.iloc[made["overflow_to_sample_mapping"][window]], made.sequence_ids(window)
        inside = [place for place, kind in enumerate(kinds) if kind == 1]
        if not len(row.starts):
            labels.append((0, 0))
            continue
        start, end = row.starts[0], row.starts[0] + len(row.answers[0])
        first, last = inside[0], inside[-1]
        if not (offsets[first][0] <= start and offsets[last][1] >= end):
            labels.append((0, 0))
            continue
        while first < len(offsets) and first <= inside[-1] and offsets[first][0] <= start:
            first += 1
        while last >= inside[0] and offsets[last][1] >= end:
            last -= 1
        labels.append((first - 1, last + 1))
    return made, labels


def test_windows_and_their_labels_are_those_of_the_released_code(either):
    rows = table()
    ours, (made, labels) = encoded(rows, either), theirs(rows, either)
    assert len(ours) > len(rows) and ours.names == [f"q{row}" for row in made["overflow_to_sample_mapping"]]
    for window, ids in enumerate(made["input_ids"]):
        start, end = ours.starts[window], ours.starts[window + 1]
        assert ours.tokens[start:end].tolist() == ids
        if "token_type_ids" in made:
            assert ours.segments[start:end].tolist() == made["token_type_ids"][window]
    assert [tuple(each) for each in ours.labels.tolist()] == labels
    assert sum(label != (0, 0) for label in labels) > 10


def test_tokens_lead_back_to_the_characters_of_the_passage_exactly(either):
    rows = table()
    ours, (made, _) = encoded(rows, either), theirs(rows, either)
    for window, offsets in enumerate(made["offset_mapping"]):
        inside = [place for place, kind in enumerate(made.sequence_ids(window)) if kind == 1]
        at, starts, ends = ours.aligned.characters(window)
        assert at == inside[0] and [*zip(starts, ends, strict=True)] == [offsets[place] for place in inside]


def test_a_label_leads_back_to_text_that_holds_the_answer(either):
    rows, found = table(), 0
    ours = encoded(rows, either)
    for window, (name, (first, last)) in enumerate(zip(ours.names, ours.labels.tolist(), strict=True)):
        if not last:
            continue
        row = rows[rows.id == name].iloc[0]
        at, starts, ends = ours.aligned.characters(window)
        begin, end = int(starts[first - at]), int(ends[last - at])
        assert row.answers[0] in row.pair[begin:end]
        found += row.pair[begin:end] == row.answers[0]
    assert found > 2


def test_every_token_of_a_passage_is_in_a_window_and_neighbours_share_the_stride(either):
    rows = table()
    ours = encoded(rows, either)
    windows = pd.DataFrame(ours.aligned.windows._asdict())
    for row, part in windows.groupby("row"):
        ends = part["first"] + part["count"]
        assert part["first"].iloc[0] == 0 and ends.iloc[-1] == ours.aligned.located.tokens.lengths[row]
        assert (ends.to_numpy()[:-1] - part["first"].to_numpy()[1:] == 8).all()
    assert int(ours.lengths.max()) == 48


def test_new_questions_have_no_answers_and_of_a_data_set_without_empty_ones_there_always_is_one(tokenizer):
    rows = table()[["id", "text", "pair"]]
    ours = encoded(rows, tokenizer, unanswerable=False)
    assert not ours.labels.any() and not ours.aligned.unanswerable
    assert [len(each) for each in ours.aligned.answers] == [0] * len(rows)


def test_a_question_that_leaves_no_room_is_named(tokenizer):
    rows = pd.DataFrame({"id": ["a", "b"], "text": ["why", "why " * 60], "pair": ["so"] * 2})
    with pytest.raises(BadInput, match=r"1 question leaves .* max_length 48 than the 8 .*\(b\); shorten"):
        encoded(rows, tokenizer)


def test_a_tokenizer_without_offsets_is_refused(tokenizer):
    slow = SimpleNamespace(is_fast=False)
    with pytest.raises(BadInput, match="SimpleNamespace does not say where its tokens are"):
        from tailprompt.inputs.passages import locate

        locate(slow, ["a"])


# options


def asked():
    choices = [["one cat", "two"], ["a dog ran far", "x", "no"]]
    return pd.DataFrame(
        {"id": ["a", "b"], "text": ["it was because", "so"], "choices": choices, "label": [1, 2]}
    )


def test_each_option_is_a_sequence_of_its_own(tokenizer):
    ours = encode_options(asked(), tokenizer, most=3, max_length=32, positions=512)
    inputs, labels = batch_of(ours, torch.tensor([1, 0]))
    assert len(ours) == 2 and labels.tolist() == [2, 1] and inputs["options"].tolist() == [3, 2]
    for place, (text, option) in enumerate(
        [
            ("so", "a dog ran far"),
            ("so", "x"),
            ("so", "no"),
            ("it was because", "one cat"),
            ("it was because", "two"),
        ]
    ):
        ids, mask = inputs["input_ids"][place], inputs["attention_mask"][place].bool()
        assert ids[mask].tolist() == tokenizer(text, option)["input_ids"]
    assert ours.lengths.tolist() == [
        len(tokenizer(*each)["input_ids"])
        for each in (("it was because", "one cat"), ("so", "a dog ran far"))
    ]


def test_a_pair_stands_before_its_options(tokenizer):
    rows = asked().assign(pair=["why", "who"])
    ours = encode_options(rows, tokenizer, most=3, max_length=32, positions=512)
    flat = pd.DataFrame({"id": ["a"], "text": ["it was because"], "pair": ["why two"], "label": [0]})
    alone = encode(flat, tokenizer, input="plain", max_length=32, positions=512)
    assert ours.tokens[ours.starts[1] : ours.starts[2]].tolist() == alone.tokens.tolist()


def test_more_options_than_classes_are_refused_with_the_row(tokenizer):
    with pytest.raises(BadInput, match="b has 3 options; the classes are 2"):
        encode_options(asked(), tokenizer, most=2, max_length=32, positions=512)


def test_no_rows_make_no_examples(tokenizer):
    assert len(encoded(table().iloc[:0], tokenizer)) == 0
    assert len(encode_options(asked().iloc[:0], tokenizer, most=3, max_length=32, positions=512)) == 0
    assert np.asarray(encoded(table().iloc[:0], tokenizer).labels).shape == (0, 2)
