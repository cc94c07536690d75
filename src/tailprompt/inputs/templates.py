"""Templates: words around a text, its {mask}, and perhaps a second text and options.

`pieces` takes a template apart. TEMPLATES holds those of PPT by name, language and form. A form is what a row
is: a single sentence (ssc), a pair of sentences (spc) or a question with options of its own (mcc).
"""

from __future__ import annotations

from collections import Counter
from string import Formatter

from tailprompt.errors import BadInput, named


def pieces(
    template: str, *, paired: bool, options: bool = False, where: str = "template"
) -> list[tuple[str, str | None]]:
    """The pieces of a template in order: (words, name in the braces after them).

    paired, options: whether rows have a second text, and options. where: what to call it in messages.
    Raises BadInput unless {text} and {mask} stand once, {pair} and {choices} at most once and only where rows
    have them, and nothing else stands in braces.
    """
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise BadInput(f"{where} '{template}' cannot be read ({error})") from None
    extra = [name for name, there in (("pair", paired), ("choices", options)) if there]
    allowed = ("text", "mask", *extra)
    needs = "{text} and {mask} once each" + "".join(f", {{{name}}} at most once" for name in extra)
    named = Counter(name for _, name, _, _ in parsed if name is not None)
    for _, name, form, conversion in parsed:
        if name is not None and (name not in allowed or form or conversion):
            shown = name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            raise BadInput(f"{where} '{template}' has {{{shown}}}; allowed here: {needs}")
    if named["text"] != 1 or named["mask"] != 1 or max(named[name] for name in ("pair", "choices")) > 1:
        raise BadInput(f"{where} '{template}' needs {needs}, and nothing else in braces")
    return [(words, name) for words, name, _, _ in parsed]


def template_named(name: str, language: str, form: str) -> str:
    """The template `name` of TEMPLATES for a form (ssc, spc, mcc); a name with braces is itself a template.

    Raises BadInput where there is none in that language.
    """
    if "{" in name:
        return name
    return named(named(TEMPLATES, name, "template"), language, f"language of template '{name}'")[form]


def with_pair(template: str) -> str:
    """A template that shows a passage and the question after it as one text (code of PPT)."""
    return template if "{pair}" in template else template.replace("{text}", "{text} ; {pair}")


def has_choices(template: str) -> bool:
    """Whether the input shows the options, so that the answer is the letter of one."""
    return "{choices}" in template


def letters_of(language: str, number: int, what: str) -> str:
    """The letters of the first `number` options; raises BadInput where there are not so many."""
    letters, *_ = named(LETTERS, language, "language of options")
    if number > len(letters):
        raise BadInput(f"options have letters up to {letters[-1]}, {len(letters)}; {what} are {number}")
    return letters[:number]


# letters of options, the mark after a letter and the mark after an option; past ten the Chinese ones are ours
LETTERS = {"en": ("ABCDEFGHIJKLMNOP", ".", "."), "zh": ("一二三四五六七八九十甲乙丙丁戊己", "、", "。")}

TEMPLATES = {
    "soft": {  # and PPT appendix B, Eqs. 1, 2, 3
        "en": {
            "ssc": "{text} . {mask} .",  # PPT Eq. 5
            "spc": "{text} {mask} . {pair}",  # PPT Eq. 3
            "mcc": "{text} ? {choices} Answer is {mask} .",  # PPT Eq. 4
        },
        "zh": {
            "ssc": "{text} 。 {mask} 。",
            "spc": "{text} {mask} 。 {pair}",
            "mcc": "{text} ？ {choices} 答案是 {mask} 。",
        },
    },
    "hybrid": {  # PPT appendix, Table 1
        "en": {
            "ssc": "{text} . It was {mask} .",
            "spc": "Question: {text} ? {mask} . {pair}",
            "mcc": "We ask {text} ? {choices} The answer is {mask} .",
        },
        "zh": {
            "ssc": "{text} 。 这很 {mask} 。",
            "spc": "问题： {text} ？ {mask} 。 {pair}",
            "mcc": "问题： {text} ？ {choices} 答案是： {mask} 。",
        },
    },
    "unified": {  # PPT section 3.3 in the form of Eq. 4
        "en": {
            "ssc": "{text} ? {choices} Answer is {mask} .",
            "spc": "{text} {pair} ? {choices} Answer is {mask} .",
            "mcc": "{text} ? {choices} Answer is {mask} .",
        },
        "zh": {
            "ssc": "{text} ？ {choices} 答案是 {mask} 。",
            "spc": "{text} {pair} ？ {choices} 答案是 {mask} 。",
            "mcc": "{text} ？ {choices} 答案是 {mask} 。",
        },
    },
    # what the released code has instead, in English only
    "soft_as_released": {
        "en": {
            "ssc": "{text} {mask}",
            "spc": "{text} {mask} {pair}",
            "mcc": "{text} ? {choices} ? The correct one is {mask}",
        }
    },
    "hard_as_released": {  # of full tuning
        "en": {
            "ssc": "{text} It was {mask} .",
            "spc": "{text} ? {mask} . {pair}",
            "mcc": "{text} ? {choices} ? The correct one is {mask}",
        }
    },
    "unified_as_released": {
        "en": {
            "ssc": "{text} ? {choices} ? The correct one is {mask}",
            "spc": "{text} ? {pair} . {choices} ? The correct one is {mask}",
            "mcc": "{text} ? {choices} ? The correct one is {mask}",
        }
    },
}
