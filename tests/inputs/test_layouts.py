"""Layouts of each input form, piece by piece, with both shipped tokenizers."""

from string import Formatter

import pandas as pd
import pytest
import torch
from batches import batch_of
from transformers import AutoTokenizer

from tailprompt.inputs.encode import encode, encode_words
from tailprompt.inputs.layouts import bare
from tailprompt.inputs.templates import TEMPLATES, template_named
from tailprompt.model.backbones import sentinel

SHIPPED = "workflow/resources/backbones"
WORDS = {"0": "no", "1": "maybe", "2": "yes"}
PUBLISHED = {"?": 58, ".": 5, ";": 117, "A": 188, "B": 279, "C": 254, "D": 308, "Q": 2247}  # T5's own
EVERY = [(name, language, form) for name, of in TEMPLATES.items() for language in of for form in of[language]]


@pytest.fixture(scope="module")
def t5():
    return AutoTokenizer.from_pretrained(f"{SHIPPED}/t5-mini")


@pytest.fixture(scope="module")
def bert():
    return AutoTokenizer.from_pretrained(f"{SHIPPED}/bert-mini")


def table(form, *, text="the film is good", options=("one", "two words", "three"), rows=1):
    content = {"id": "row 1", "label": 1, "text": text}
    content |= {"pair": "a second text"} if form == "spc" else {}
    content |= {"choices": list(options)} if form == "mcc" else {}
    return pd.DataFrame([content] * rows)


def tokens(tokenizer, template, rows, *, input="formatted", language="en"):
    told = {"input": input, "template": template, "language": language, "words": WORDS}
    examples = encode(rows, tokenizer, **told, max_length=64, positions=512)
    inputs, _ = batch_of(examples, torch.tensor([0]))
    return tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist()), inputs


def test_plain_input_is_the_tokenizers_own(bert):
    rows = pd.DataFrame({"id": ["a", "b"], "label": 0, "text": ["copper prices rose", "gold"]})
    for paired in (rows, rows.assign(pair=["metals", "gold fell sharply today"])):
        inputs, _ = batch_of(
            encode(paired, bert, input="plain", max_length=32, positions=512), torch.arange(2)
        )
        texts = [paired[slot].tolist() for slot in ("text", "pair") if slot in paired]
        own = bert(*texts, padding=True, return_tensors="pt")
        for key in ("input_ids", "token_type_ids", "attention_mask"):
            assert torch.equal(inputs[key], own[key])
        assert (inputs["position"] == 0).all()


def test_prompted_input_is_the_template_in_one_segment_and_is_read_at_the_mask(bert):
    template, rows = "{text} This is {mask} news.", table("ssc", text="gold rose")
    found, inputs = tokens(bert, template, rows, input="prompted")
    assert " ".join(found) == "[CLS] gold rose this is [MASK] news . [SEP]"
    assert inputs["position"].tolist() == [5]
    template, rows = "{text} Question: {pair} ? {mask} .", table("spc", text="a b")
    found, inputs = tokens(bert, template, rows, input="prompted")
    assert " ".join(found) == "[CLS] a b question : a second text ? [MASK] . [SEP]"
    assert (inputs["token_type_ids"] == 0).all()


@pytest.mark.parametrize(
    "name, form, wanted",
    [
        ("soft", "ssc", "{s} . X ."),
        ("soft", "spc", "{s} X . {p}"),
        ("soft", "mcc", "{s} ? A . {one} . B . {two} . C . {three} . {Answer is} X ."),
        ("hybrid", "ssc", "{s} . {It was} X ."),
        ("hybrid", "spc", "{Question} {s} ? X . {p}"),
        ("hybrid", "mcc", "{We ask} {s} ? A . {one} . B . {two} . C . {three} . {The answer is} X ."),
        ("unified", "ssc", "{s} ? A . {no} . B . {maybe} . C . {yes} . {Answer is} X ."),
        ("unified", "spc", "{s} {p} ? A . {no} . B . {maybe} . C . {yes} . {Answer is} X ."),
        ("soft_as_released", "ssc", "{s} X"),
        ("soft_as_released", "spc", "{s} X {p}"),
        ("soft_as_released", "mcc", "{s} ? A . {one} . B . {two} . C . {three} . ? {The correct one is} X"),
        ("hard_as_released", "ssc", "{s} {It was} X ."),
        ("hard_as_released", "spc", "{s} ? X . {p}"),
        (
            "unified_as_released",
            "spc",
            "{s} ? {p} . A . {no} . B . {maybe} . C . {yes} . ? {The correct one is} X",
        ),
    ],
)
def test_t5_ids_are_the_pieces_end_to_end_with_bare_marks_and_letters(t5, name, form, wanted):
    texts = {"s": "the film is good", "p": "a second text", "two": "two words", "Question": "Question:"}
    expected = []
    for literal, slot in [part[:2] for part in Formatter().parse(wanted)]:
        expected += ["<extra_id_0>" if piece == "X" else piece for piece in literal.split()]
        expected += t5.tokenize(texts.get(slot, slot)) if slot else []
    found, inputs = tokens(t5, template_named(name, "en", form), table(form))
    assert found == expected
    assert inputs["position"].tolist() == [0]  # the decoder answers at its only place


@pytest.mark.parametrize("name, language, form", EVERY)
def test_every_template_has_its_answer_in_one_place_on_both_tokenizers(t5, bert, name, language, form):
    template = template_named(name, language, form)
    found, _ = tokens(t5, template, table(form), language=language)
    assert found.count("<extra_id_0>") == 1 and "</s>" not in found
    found, inputs = tokens(bert, template, table(form), language=language)
    assert found.index("[MASK]") == inputs["position"].item() and found.count("[MASK]") == 1
    assert (found[0], found[-1]) == ("[CLS]", "[SEP]")


def test_chinese_templates_are_the_papers(bert):
    choice = table("mcc", text="天气", options=["好", "不好"])
    found, _ = tokens(bert, template_named("hybrid", "zh", "mcc"), choice, language="zh")
    assert "".join(found) == "[CLS]问题：天气？一、好。二、不好。答案是：[MASK]。[SEP]"
    found, _ = tokens(bert, template_named("hybrid", "zh", "ssc"), table("ssc", text="天气"), language="zh")
    assert "".join(found) == "[CLS]天气。这很[MASK]。[SEP]"


def test_a_passage_and_a_question_are_one_query(t5):
    rows = table("mcc").assign(pair="what is it")
    found, _ = tokens(t5, template_named("soft", "en", "mcc"), rows)
    at = found.index(";")
    assert found[at + 1 : found.index("?")] == t5.tokenize("what is it")
    found, _ = tokens(t5, "{text} we ask {pair} ? {choices} {mask}", rows)
    assert ";" not in found and found[: found.index("?")] == t5.tokenize("the film is good") + t5.tokenize(
        "we ask"
    ) + t5.tokenize("what is it")


def test_a_template_may_be_written_out(t5):
    found, _ = tokens(t5, "Just {mask} ! {text}", table("ssc"))
    assert found == [*t5.tokenize("Just"), "<extra_id_0>", "!", *t5.tokenize("the film is good")]


def test_an_unknown_word_of_a_template_keeps_its_place(bert):
    found, _ = tokens(bert, "𐎀 it was {mask} . {text}", table("ssc"))
    assert found[:5] == ["[CLS]", "[UNK]", "it", "was", "[MASK]"]


def published():
    """T5's own tokenizer, where it is in the Hugging Face cache."""
    try:
        return AutoTokenizer.from_pretrained("google/t5-v1_1-xxl", local_files_only=True)
    except OSError:
        pytest.skip("google/t5-v1_1-xxl is not in the Hugging Face cache")


def test_published_ids_of_t5():
    tokenizer = published()
    assert {mark: bare(tokenizer, mark)[0] for mark in PUBLISHED} == PUBLISHED
    words = {"yes": 4273, "no": 150, "maybe": 2087, "terrible": 9412, "bad": 1282, "good": 207, "great": 248}
    assert encode_words({word: word for word in words}, tokenizer) == [[token] for token in words.values()]
    assert sentinel(tokenizer) == 32099
