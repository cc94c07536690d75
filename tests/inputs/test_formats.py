"""Rows in PPT's formats: ids piece by piece, the mask, options and answers, with both shipped tokenizers."""

from string import Formatter

import pandas as pd
import pytest
import torch
from transformers import AutoTokenizer

from tailprompt.errors import BadInput
from tailprompt.inputs import formats
from tailprompt.inputs.patterns import PATTERNS, has_choices, pattern_of

SHIPPED = "workflow/resources/backbones"
WORDS = {"0": "no", "1": "maybe", "2": "yes"}
PUBLISHED = {"?": 58, ".": 5, ";": 117, "A": 188, "B": 279, "C": 254, "D": 308, "Q": 2247}  # T5's own
EVERY = [(name, language, form) for name, of in PATTERNS.items() for language in of for form in of[language]]


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


def tokens(tokenizer, pattern, rows, *, language="en", max_length=64, row=0, **changes):
    examples = formats.encode(
        rows,
        tokenizer,
        pattern=pattern,
        language=language,
        words=WORDS,
        max_length=max_length,
        positions=512,
        **changes,
    )
    inputs, _ = examples.batch(torch.tensor([row]))
    return tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist()), inputs


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
    found, inputs = tokens(t5, pattern_of(name, "en", form), table(form))
    assert found == expected
    assert inputs["position"].tolist() == [0]  # the decoder answers at its only place


@pytest.mark.parametrize("name, language, form", EVERY)
def test_every_pattern_has_its_answer_in_one_place_on_both_tokenizers(t5, bert, name, language, form):
    pattern = pattern_of(name, language, form)
    found, _ = tokens(t5, pattern, table(form), language=language)
    assert found.count("<extra_id_0>") == 1 and "</s>" not in found
    found, inputs = tokens(bert, pattern, table(form), language=language)
    assert found.index("[MASK]") == inputs["position"].item() and found.count("[MASK]") == 1
    assert (found[0], found[-1]) == ("[CLS]", "[SEP]")


def test_chinese_patterns_are_the_papers(bert):
    choice = table("mcc", text="天气", options=["好", "不好"])
    found, _ = tokens(bert, pattern_of("hybrid", "zh", "mcc"), choice, language="zh")
    assert "".join(found) == "[CLS]问题：天气？一、好。二、不好。答案是：[MASK]。[SEP]"
    found, _ = tokens(bert, pattern_of("hybrid", "zh", "ssc"), table("ssc", text="天气"), language="zh")
    assert "".join(found) == "[CLS]天气。这很[MASK]。[SEP]"


@pytest.mark.parametrize("length", [26, 30, 40])
def test_the_mask_and_the_words_around_it_survive_truncation(t5, bert, length):
    for tokenizer, mask in ((t5, "<extra_id_0>"), (bert, "[MASK]")):
        rows = table("mcc", text="a long tale " * 50, options=["one", "two", "three"])
        found, _ = tokens(tokenizer, pattern_of("soft", "en", "mcc"), rows, max_length=length)
        assert len(found) == length and found.count(mask) == 1
        whole, _ = tokens(tokenizer, pattern_of("soft", "en", "mcc"), rows, max_length=512)
        assert found[-18:] == whole[-18:]  # the passage is cut, not its options


def test_a_passage_and_a_question_are_one_query(t5):
    rows = table("mcc").assign(pair="what is it")
    found, _ = tokens(t5, pattern_of("soft", "en", "mcc"), rows)
    at = found.index(";")
    assert found[at + 1 : found.index("?")] == t5.tokenize("what is it")
    found, _ = tokens(t5, "{text} we ask {pair} ? {choices} {mask}", rows)
    assert ";" not in found and found[: found.index("?")] == t5.tokenize("the film is good") + t5.tokenize(
        "we ask"
    ) + t5.tokenize("what is it")


def test_answers_are_first_tokens_of_words_or_bare_letters(t5, bert):
    def ids(tokenizer, pattern, language="en", words=WORDS):
        return formats.answer_ids(words, tokenizer, pattern=pattern, language=language, source="words.csv")

    plain, options = "{text} {mask}", "{text} {choices} {mask}"
    assert ids(t5, plain) == [[t5.convert_tokens_to_ids(t5.tokenize(word)[0])] for word in WORDS.values()]
    assert ids(t5, options) == [[t5.convert_tokens_to_ids(letter)] for letter in "ABC"]
    assert ids(bert, options) == [[bert.convert_tokens_to_ids(letter)] for letter in "abc"]
    assert ids(bert, plain, "zh", {"0": "好", "1": "不好"}) == [
        bert.convert_tokens_to_ids(w) for w in (["好"], ["不", "好"])
    ]
    with pytest.raises(
        BadInput, match="words.csv: the words of classes 'x' and 'y' begin with the same token"
    ):
        ids(t5, plain, words={"x": "good", "y": "good day"})
    for word in (" ", "</s>", "<pad>", "<unk>"):
        with pytest.raises(BadInput, match=f"no token but special ones for '{word}' of class 'x'"):
            ids(t5, plain, words={"x": word, "y": "good"})
    with pytest.raises(BadInput, match="letters up to P, 16; the classes are 17"):
        ids(t5, options, words={str(i): "x" for i in range(17)})


def test_rows_say_how_many_options_they_have(t5):
    rows = pd.concat([table("mcc"), table("mcc", options=["one", "two"])], ignore_index=True)
    _, inputs = tokens(t5, pattern_of("soft", "en", "mcc"), rows, row=1)
    assert inputs["options"].tolist() == [2]
    for options in (["one"], list("abcd")):
        with pytest.raises(BadInput, match=f"row 1 has {len(options)} options and the right one is number 2"):
            tokens(t5, pattern_of("soft", "en", "mcc"), table("mcc", options=options))


def test_what_does_not_fit_is_one_sentence(t5):
    with pytest.raises(BadInput, match="leaves 0 of max_length 8 tokens"):
        tokens(t5, pattern_of("soft", "en", "mcc"), table("mcc"), max_length=8)
    with pytest.raises(BadInput, match="has {pair}; allowed here"):
        tokens(t5, pattern_of("soft", "en", "spc"), table("ssc"))
    with pytest.raises(BadInput, match="unknown language of pattern 'soft_as_released' 'zh'; known: en"):
        pattern_of("soft_as_released", "zh", "ssc")
    with pytest.raises(BadInput, match="600 is more than the 512 positions of the backbone beside its soft"):
        tokens(t5, "{text} {mask}", table("ssc"), max_length=600)


def test_a_pattern_may_be_written_out(t5):
    found, _ = tokens(t5, pattern_of("Just {mask} ! {text}", "en", "ssc"), table("ssc"))
    assert found == [*t5.tokenize("Just"), "<extra_id_0>", "!", *t5.tokenize("the film is good")]
    assert not has_choices("Just {mask} ! {text}")


def published():
    """T5's own tokenizer, where it is in the Hugging Face cache."""
    try:
        return AutoTokenizer.from_pretrained("google/t5-v1_1-xxl", local_files_only=True)
    except OSError:
        pytest.skip("google/t5-v1_1-xxl is not in the Hugging Face cache")


def test_published_ids_of_t5():
    tokenizer = published()
    assert {mark: formats.bare(tokenizer, mark)[0] for mark in PUBLISHED} == PUBLISHED
    words = {"yes": 4273, "no": 150, "maybe": 2087, "terrible": 9412, "bad": 1282, "good": 207, "great": 248}
    ids = formats.answer_ids(
        {w: w for w in words}, tokenizer, pattern="{text} {mask}", language="en", source=""
    )
    assert ids == [[token] for token in words.values()]
    assert formats.sentinel(tokenizer) == 32099
