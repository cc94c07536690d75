"""Labels made comparable: which are one class written in several ways, which look alike, which are several.

One value in two forms is one class: `1` and `1.0`, as Parquet and JSON have them, and a letter with an
accent as one character or two (Unicode's NFC). That is merged and told. Labels that differ in blanks, case,
invisible characters, width, a look-alike of another alphabet, the marks between words, how a number is
written or how a program garbled them may be a slip or may be meant: they are refused, unless a verbalizer
names both. A cell that holds several labels is refused too.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from html import unescape
from unicodedata import category, normalize

import pandas as pd

from tailprompt.errors import counted, few

# shown as nothing, though they are letters, marks or symbols: fillers, joiners and the Braille blank
UNSEEN = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0xFE00, 0xFE10))}
# letters that look like Latin ones, small or as capitals, and Arabic ones as a Persian keyboard has them
ALIKE = str.maketrans("авекмнорстухіјѕһαβεζηικμνορτυχکیى", "abekmhopctyxijshabezhikmvoptyxكيي")
MARKS = {ord(mark): "'" for mark in "’‘´`′ʼ"} | {ord(mark): "-" for mark in "‐‑‒–—―−"} | {0x640: None}
WHOLE = re.compile(r"(-?(?:0|[1-9]\d{0,300}))\.0+", re.ASCII)  # a whole number with decimals
NUMBER = re.compile(r"([+-]?\d+)(?:[.,](\d*))?(?:e([+-]?\d{1,3}))?(?: ?(%))?", re.ASCII)
GROUPED = re.compile(r"[+-]?\d{1,3}(?:[ ,']\d{3})+(?:\.\d*)?", re.ASCII)  # by thousands
DIGIT = re.compile(r"\d")  # of any script
JOINT = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")  # what is between the words of a name
CALL = re.compile(r"\w+\((.*)\)", re.DOTALL)  # as Python shows an array or a frozenset
NUMBERS = re.compile(r"\[[\d.\s]+\]", re.ASCII)  # as NumPy shows an array
SEVERAL = re.compile(r"[,;|\n]|\s(?=__label__)")
BETWEEN = re.compile(r"[,;|\n/+&]|\s(?=__label__)")
LISTS = list, tuple, dict
NOT_GIVEN = {*"? - -- . .. n/a n.a. na nan none null nil nul missing undefined unlabeled unlabelled".split()}
NOT_GIVEN |= {"#n/a", "<na>", "not available", "no label", "to do", "todo", "tbd", "无", "空", "未知"}


def invisible(text: str) -> bool:
    """Whether a text shows nothing: it has only blanks, control characters and marks without width."""
    return all(unseen(character) or category(character) in ("Zs", "Zl", "Zp") for character in text)


def unseen(character: str) -> bool:
    """Whether a character is shown as nothing and is no blank."""
    return category(character) in ("Cc", "Cf") or character in UNSEEN


def plainly(words: str) -> str:
    """Words in lower case, with single blanks."""
    return " ".join(words.split()).casefold()


def same(label: str) -> str:
    """The form that all ways of writing one value share."""
    whole = WHOLE.fullmatch(label)
    return normalize("NFC", str(int(whole[1])) if whole else label)


def seen(label: str) -> str:
    """What a reader sees of a label: the same for labels that look alike, and for one number."""
    # marks before NFKC, which makes a blank and an accent of an accent alone
    wide = normalize("NFKC", repaired(unescape(label)).translate(MARKS))
    plain = plainly("".join(each for each in wide if not unseen(each) or each.isspace())).translate(ALIKE)
    plain = DIGIT.sub(lambda digit: str(int(digit[0])), plain)
    number = re.sub("[ ,']", "", plain) if GROUPED.fullmatch(plain) else plain
    if found := NUMBER.fullmatch(number):
        whole, decimals, power, percent = found.groups(default="")
        whole, _, decimals = f"{Decimal(f'{whole}.{decimals}e{power or 0}'):f}".partition(".")
        return f"{whole}.{decimals.rstrip('0')}{percent}"
    return normalize("NFKC", JOINT.sub(" ", plain))


def repaired(text: str) -> str:
    """A text as it was meant where its UTF-8 was read as Windows's encoding; any other as it is."""
    try:
        return text.encode("cp1252").decode()
    except UnicodeError:
        return text


def gives_none(text: str) -> bool:
    """Whether a text says that there is none."""
    return plainly(text) in NOT_GIVEN


def not_given(labels: pd.Series) -> list[str]:
    """A sentence about labels that may say that there is none."""
    counts = labels.value_counts()
    found = [f"'{label}' ({number:,})" for label, number in counts.items() if gives_none(label)]
    return [f"taken for classes, though they may mean that there is no label: {few(found)}"] if found else []


def merged(labels: pd.Series, classes: Iterable[str] = ()) -> tuple[pd.Series, list[str]]:
    """The labels with one name for each value, and a sentence about each name that went.

    classes: names that a verbalizer gives, which are kept as it has them.
    """
    counts, stated = labels.value_counts(), {*classes}
    ways: dict[str, list[str]] = {}
    for label in sorted({*counts.index} | stated):
        ways.setdefault(same(label), []).append(label)
    names = {}
    for value, forms in ways.items():
        known = [form for form in forms if form in stated]
        if len(forms) > 1 and len(known) < 2:
            names |= dict.fromkeys(forms, known[0] if known else value)
    new = {old: name for old, name in names.items() if old != name and old in counts}
    told = [
        f"{counted(counts[old], 'label')} {shown(old, name)} taken for {shown(name, old)}"
        for old, name in new.items()
    ]
    return (labels.map(lambda label: new.get(label, label)) if new else labels), told


def respelled(labels: pd.Series) -> dict[str, str]:
    """Labels that look like a more frequent label, and that label."""
    first: dict[str, str] = {}
    kept = {label: first.setdefault(seen(label), label) for label in labels.value_counts().index}
    return {label: other for label, other in kept.items() if label != other}


def difference(alike: dict[str, str]) -> str:
    """In what labels differ from the ones they look like."""
    blanks = all(plainly(label) == plainly(other) for label, other in alike.items())
    return (
        "blanks or case only"
        if blanks
        else "characters that look alike, marks between words or how a number is written only"
    )


def pairs(alike: dict[str, str]) -> list[str]:
    """Labels beside the ones they look like, as a message shows them."""
    return [f"{shown(label, other)} beside {shown(other, label)}" for label, other in alike.items()]


def shown(label: str, beside: str) -> str:
    """A label in quotes, escaped where it looks like `beside`, so that one can see the difference."""
    plain = plainly(label) == plainly(beside) or label.isascii() and label.isprintable()
    return f"'{label}'" if plain else f"'{label.encode('unicode_escape').decode('ascii')}'"


def listed(label: str) -> bool:
    """Whether the text of a label is a list or an object, of JSON, Python, NumPy or Postgres."""
    text = label.strip()
    if call := CALL.fullmatch(text):
        text = call[1].strip()
    if text[:1] + text[-1:] not in ("[]", "{}", "()"):
        return False
    if NUMBERS.fullmatch(text) or text[0] in "[{" and len(parts_of(text[1:-1], SEVERAL)) > 1:
        return True
    for read in (json.loads, ast.literal_eval):
        try:
            return isinstance(read(text), LISTS)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return False


def parts_of(label: str, marks: re.Pattern) -> list[str]:
    """What stands between the marks of a label, as a reader sees it, but for what is empty."""
    return [seen(part) for part in marks.split(label) if part.strip()]


def several(labels: pd.Series) -> pd.Series:
    """Whether a cell holds several labels.

    It does where it is a list, or its parts all stand alone elsewhere. So it does where its parts, between
    commas and the like, all stand in other cells and one of them in another place, unlike in a hierarchy.
    """
    known = [*labels.unique()]
    parts = {label: parts_of(label, SEVERAL) for label in known}
    cells = Counter(part for each in parts.values() for part in {*each})
    places = Counter(
        part for part, _ in {(part, n) for each in parts.values() for n, part in enumerate(each)}
    )
    alone = {each[0] for each in parts.values() if len(each) == 1}

    def holds(label: str) -> bool:
        apart, every = {*parts[label]}, {*parts_of(label, BETWEEN)}
        moved = (
            len(apart) > 1 and all(cells[part] > 1 for part in apart) and any(places[p] > 1 for p in apart)
        )
        return moved or len(every) > 1 and every <= alone or listed(label)

    return labels.map({label: holds(label) for label in known}).astype(bool)


def in_order(labels: pd.Series) -> list[str]:
    """Distinct labels, sorted by number if all are whole numbers that Python can read, otherwise by name."""
    found = sorted(set(labels))
    return sorted(found, key=int) if all(re.fullmatch(r"-?\d{1,4300}", label) for label in found) else found
