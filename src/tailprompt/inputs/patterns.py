"""The patterns of PPT by name, language and form, and the letters of options.

A pattern is a template with {text}, {pair}, {choices} and {mask}. A form is what a row is: a single sentence
(ssc), a pair (spc) or a question with options of its own (mcc).
"""

from __future__ import annotations

from tailprompt.errors import BadInput, named


def pattern_of(name: str, language: str, form: str) -> str:
    """The pattern `name` for a form (ssc, spc, mcc); a name with braces is a pattern itself.

    Raises BadInput where there is none in that language.
    """
    if "{" in name:
        return name
    return named(named(PATTERNS, name, "pattern"), language, f"language of pattern '{name}'")[form]


def has_choices(pattern: str) -> bool:
    """Whether the options stand in the input, so that the answer is the letter of one."""
    return "{choices}" in pattern


def letters_of(language: str, number: int, what: str) -> str:
    """The letters of the first options; raises BadInput where there are not so many."""
    letters, *_ = named(LETTERS, language, "language of options")
    if number > len(letters):
        raise BadInput(f"options have letters up to {letters[-1]}, {len(letters)}; {what} are {number}")
    return letters[:number]


# letters of options, the mark after a letter and that after an option; past ten the Chinese ones are ours
LETTERS = {"en": ("ABCDEFGHIJKLMNOP", ".", "."), "zh": ("一二三四五六七八九十甲乙丙丁戊己", "、", "。")}

PATTERNS = {
    "soft": {  # PPT Eqs. 3, 4, 5; appendix B, Eqs. 1, 2, 3
        "en": {
            "ssc": "{text} . {mask} .",
            "spc": "{text} {mask} . {pair}",
            "mcc": "{text} ? {choices} Answer is {mask} .",
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
