"""Templates: their pieces, those of PPT by name, and the letters of options."""

import pytest

from tailprompt.errors import BadInput
from tailprompt.inputs.templates import (
    TEMPLATES,
    has_choices,
    letters_of,
    pieces,
    template_named,
    with_pair,
)

PART = {"ssc": "{text}", "spc": "{pair}", "mcc": "{choices}"}  # what a form shows


@pytest.mark.parametrize(
    "template",
    [
        "{text}",
        "{mask}",
        "{text} {mask} {mask}",
        "{text} {pair} {mask}",
        "{text} {choices} {mask}",
        "{text} {masks}",
        "{text {mask}",
        "{text} {text} {mask}",
        "{text!r} {mask}",
        "{text:>10} {mask}",
        "{text[0]} {mask}",
        "{text} {mask} {}",
        "text} {mask}",
        "",
    ],
)
def test_a_template_needs_the_text_and_one_mask_and_knows_no_other_names(template):
    with pytest.raises(BadInput, match="^template '"):
        pieces(template, paired=False)


@pytest.mark.parametrize(
    "template, says",
    [
        (
            "{text} .",
            "'sick': template '{text} .' needs {text} and {mask} once each, {pair} at most once, and",
        ),
        (
            "{text} {choices} {mask}",
            "has {choices}; allowed here: {text} and {mask} once each, {pair} at most",
        ),
        (
            "{text} {pair} {pair} {mask}",
            "needs {text} and {mask} once each, {pair} at most once, and nothing",
        ),
        ("{text {mask}", "'sick': template '{text {mask}' cannot be read"),
    ],
)
def test_the_sentence_says_where_a_template_is_and_what_it_may_name(template, says):
    with pytest.raises(BadInput) as refused:
        pieces(template, paired=True, where="'sick': template")
    assert says in str(refused.value)


def test_a_template_may_name_the_pair_where_there_is_one():
    assert pieces("{pair} {text} {mask}.", paired=True) == [
        ("", "pair"),
        (" ", "text"),
        (" ", "mask"),
        (".", None),
    ]


@pytest.mark.parametrize(
    "name, language, form",
    [(name, language, form) for name, of in TEMPLATES.items() for language in of for form in of[language]],
)
def test_every_template_shows_all_of_its_form(name, language, form):
    template = template_named(name, language, form)
    slots = [slot for _, slot in pieces(template, paired=form == "spc", options=True) if slot]
    assert PART[form] in template and has_choices(template) == ("choices" in slots)
    assert has_choices(template) or not name.startswith("unified")


def test_a_template_is_taken_by_name_or_as_it_is_written():
    assert template_named("soft", "en", "spc") == "{text} {mask} . {pair}"  # PPT Eq. 3
    assert template_named("Just {mask} ! {text}", "en", "ssc") == "Just {mask} ! {text}"
    with pytest.raises(BadInput, match="unknown template 'sofd'; known: hard_as_released, hybrid"):
        template_named("sofd", "en", "ssc")
    with pytest.raises(BadInput, match="unknown language of template 'soft_as_released' 'zh'; known: en"):
        template_named("soft_as_released", "zh", "ssc")


def test_a_passage_and_a_question_are_one_text_where_a_template_has_no_place_for_both():
    assert with_pair("{text} ? {choices} {mask}") == "{text} ; {pair} ? {choices} {mask}"
    assert with_pair("{text} we ask {pair} ? {mask}") == "{text} we ask {pair} ? {mask}"


def test_options_have_as_many_letters_as_their_language_has_here():
    assert letters_of("en", 3, "the classes") == "ABC" and letters_of("zh", 2, "the classes") == "一二"
    with pytest.raises(BadInput, match="options have letters up to P, 16; the classes are 17"):
        letters_of("en", 17, "the classes")
    with pytest.raises(BadInput, match="unknown language of options 'fr'; known: en, zh"):
        letters_of("fr", 0, "the classes")
