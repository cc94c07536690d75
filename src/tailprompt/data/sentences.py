"""Sentences of words with marked entities: CoNLL's columns, JSON, and semantic roles, one verb a line.

A loader returns `words`, `entities` (first word, word after the last, type) and the place of each sentence,
with its split if its file has one. Tags may be of any scheme (IOB1, IOB2, IOBES, BILOU): an entity begins at
B, S and U, and where another tag follows O, another type, or the end of an entity (E, S, L and U).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from unicodedata import category

import pandas as pd

from tailprompt.data.columns import ID, SPLIT
from tailprompt.data.contents import PLACE, decoded, kind_of, lines_in
from tailprompt.data.labels import invisible
from tailprompt.data.readers import json_objects
from tailprompt.errors import BadInput, counted, few, known

WORDS, TAGS, ENTITIES, TEXT, PREDICATE, PAIR = "words", "tags", "entities", "text", "predicate", "pair"
TAG = re.compile(r"O|[BIESLU]-.+")
ALONE = 500  # words of the only sentence of a file, beyond which its empty lines are lost
KINDS = "O, B-TYPE and I-TYPE, or with E-, S-, L- and U-"
OWN = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # each such character is a word
MARKS = "".join(c for c in map(chr, range(0x20000)) if category(c)[0] == "M")  # vowels, accents, ...
JOINED = rf"[{MARKS}\u200c\u200d]*"  # what belongs to the letter before it
WORD = re.compile(rf"[{OWN}]{JOINED}|(?:[^\W{OWN}]+{JOINED})+|[^\w\s]{JOINED}")
Entity = tuple[int, int, str]


def load_tags(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Sentences of one file per split, or of one for all (`paths["all"]`).

    A file .json or .jsonl has objects, which have words (or tokens) with tags or entities, or text with
    entities. Any other file has a word a line. `columns` of the row may name the keys, or number the columns
    from 1; a word is in the first and its tag in the last unless it says otherwise.
    """
    parts, columns = [], row.get("columns", {})
    for name, path in paths.items():
        is_json = kind_of(path) in ("json", "jsonl", "ndjson")
        encoding = row.get("encoding", "utf-8-sig")
        used = {key: at for key, at in columns.items() if key != SPLIT or name == "all"}
        found = (objects if is_json else lines)(path, encoding, used)
        if not found:
            raise BadInput(f"{path} has no sentences")
        if len(found) == 1 and (len(found[0][WORDS]) > ALONE or name == "all"):
            words = counted(len(found[0][WORDS]), "word")
            raise BadInput(f"{path} has one sentence of {words}; in columns an empty line ends each sentence")
        part = pd.DataFrame(found)
        parts.append(part if name == "all" else part.assign(split=name))
    return pd.concat(parts, ignore_index=True)


def lines(path: Path, encoding: str, columns: dict) -> list[dict]:
    """The sentences of a file with a word a line, and a blank line between sentences.

    Columns are separated by tabs, or else by blanks. Lines -DOCSTART- only divide. Raises BadInput for lines
    that have not as many columns as the first, and for tags that are none.
    """
    word, tag = (columns.get(key, last) for key, last in ((WORDS, 1), (TAGS, 0)))
    if not all(type(columns[key]) is int and columns[key] > 0 for key in {WORDS, TAGS} & columns.keys()):
        raise BadInput(f"{path}: columns of words and tags are numbers from 1 in a file with a word a line")
    if word == tag:
        raise BadInput(f"{path}: columns names {word} for words and for tags; they stand in two columns")
    groups = list(sentences(path, encoding))
    every = [line for group in groups for line in group]
    width = len(every[0][1]) if every else 2
    if width < max(2, word, tag):
        raise BadInput(
            f"{path}: line {every[0][0]} has {counted(width, 'column')}; {max(2, word, tag)} are needed"
        )
    refuse(path, [n for n, fields in every if len(fields) != width], f"have not {width} columns as the first")
    refuse(path, [n for n, fields in every if any(map(invisible, fields))], "have an empty column")
    refuse(path, [n for n, fields in every if not TAG.fullmatch(fields[tag - 1])], f"end in no tag ({KINDS})")
    return [
        {
            WORDS: [fields[word - 1] for _, fields in group],
            ENTITIES: entities([fields[tag - 1] for _, fields in group]),
            PLACE: f"{path.name}:{group[0][0]}",
        }
        for group in groups
    ]


def sentences(path: Path, encoding: str) -> Iterator[list[tuple[int, list[str]]]]:
    """(line number, fields) of the words of each sentence; the last need not end with a blank line."""
    group: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines_in(decoded(path, encoding)), 1):
        fields = line.split("\t") if "\t" in line.strip() else re.findall(r"[^ \t]+", line)
        if fields and fields[0] != "-DOCSTART-":
            group.append((number, fields))
        elif group:
            yield group
            group = []
    if group:
        yield group


def objects(path: Path, encoding: str, columns: dict) -> list[dict]:
    """The sentences of a JSON Lines file, or of one that is a JSON list."""
    return [
        sentence(value, columns, f"{path.name}:{number}") for number, value in json_objects(path, encoding)
    ]


def sentence(value: dict, columns: dict, place: str) -> dict:
    """A sentence of a JSON object; raises BadInput, which names its place, for one that is malformed."""
    words = value.get(columns.get(WORDS, WORDS), value.get("tokens"))
    tags, marked = (value.get(columns.get(key, key)) for key in (TAGS, ENTITIES))
    text, offsets = value.get(columns.get(TEXT, TEXT)), None
    if words is None and isinstance(text, str):
        words, offsets = split_words(text)
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words) and words):
        raise BadInput(
            f"{place} has neither a list of words (words or tokens) nor a text; it has {known(value)}"
        )
    if any(map(invisible, words)):
        raise BadInput(f"{place} has an empty word; leave it out, and its tag")
    read = partial(listed, marked, words, place=place)
    if tags is not None and offsets is None:
        if not isinstance(tags, list) or len(tags) != len(words):
            raise BadInput(f"{place} has {counted(len(words), 'word')} and not as many tags")
        if wrong := [tag for tag in tags if not (isinstance(tag, str) and TAG.fullmatch(tag))]:
            raise BadInput(f"{place} has tags that are none, {few(wrong)}; known: {KINDS}")
        found = entities(tags)
        if marked is not None and found not in read_both(read, words, text):
            raise BadInput(
                f"{place} has tags and entities that differ; both must mark the same, or leave one"
            )
    elif offsets is None:
        found, *other = read_both(read, words, None if columns.get(WORDS) and not columns.get(TEXT) else text)
        if other:
            raise BadInput(
                f"{place} has entities that may count words or characters of its text; say in the row of the "
                f"data set that they count words (columns: {{{WORDS}: ...}}), or leave out the words"
            )
    else:
        found = read(offsets)
    named = {key: text_under(value, columns[key], key, place) for key in (ID, SPLIT) if columns.get(key)}
    return {WORDS: words, ENTITIES: found, PLACE: place, **named}


def text_under(value: dict, name: str, key: str, place: str) -> str:
    """The id or split under the key that the row's columns name; raises BadInput if a sentence has none."""
    found = value.get(name)
    if type(found) not in (str, int) or not str(found).strip():
        kind = "needs a text or a whole number that is not blank"
        raise BadInput(f"{place} {kind} under '{name}' (columns: {key}); it has {known(value)}")
    return str(found)


def read_both(read: Callable[..., list[Entity]], words: list[str], text) -> list[list[Entity]]:
    """The entities that `read` finds where it counts words, and where it counts characters of the text.

    Each that fits, once. Raises BadInput where none does.
    """
    offsets = places_in(text, words) if isinstance(text, str) else None
    try:
        found = [read(None)]
    except BadInput:
        if offsets is None:
            raise
        return [read(offsets)]
    if offsets is not None:
        with suppress(BadInput):
            found += [each for each in [read(offsets)] if each not in found]
    return found


def places_in(text: str, words: list[str]) -> list[int] | None:
    """The first character of each word in a text that begins with them; None for another text."""
    found, at = [], 0
    for word in words:
        while text[at : at + 1].isspace():
            at += 1
        if not text.startswith(word, at):
            return None
        found.append(at)
        at += len(word)
    return found


def listed(marked, words: list[str], offsets: list[int] | None, place: str) -> list[Entity]:
    """Entities that an object lists by start, end (exclusive) and type or label.

    They count words, or characters of the text where the words have `offsets`. Raises BadInput for one that
    is outside, overlaps another, begins or ends within a word, or has a `text` that is not of its words.
    """
    try:
        found = [(e["start"], e["end"], e["type" if "type" in e else "label"], e.get("text")) for e in marked]
    except (TypeError, KeyError, AttributeError):
        raise BadInput(f"{place} has no tags for its words, nor entities with start, end and type") from None
    for start, end, kind, _ in found:
        if not (type(start) is type(end) is int and isinstance(kind, str)):
            raise BadInput(
                f"{place}: an entity has start {start!r}, end {end!r} and type {kind!r}; start and end must "
                "be whole numbers, and type a text"
            )
    if offsets is not None:
        starts = {start: number for number, start in enumerate(offsets)}
        ends = {start + len(word): n for n, (start, word) in enumerate(zip(offsets, words, strict=True), 1)}
        if wrong := [f"{a}-{b}" for a, b, *_ in found if a not in starts or b not in ends]:
            raise BadInput(f"{place}: entities do not begin and end with a word: characters {few(wrong)}")
        found = [(starts[a], ends[b], kind, own) for a, b, kind, own in found]
    check_entities(found, words, place)
    return sorted((first, last, kind) for first, last, kind, _ in found)


def check_entities(found: list[tuple], words: list[str], place: str) -> None:
    """Raise BadInput for an entity that overlaps another, is not there, or whose own text is not there."""
    at = 0
    for first, last, kind, own in sorted(found, key=itemgetter(0, 1, 2)):
        if not at <= first < last <= len(words) or not kind.strip():
            raise BadInput(f"{place}: the entity {first}-{last} '{kind}' overlaps another or is not there")
        there = " ".join(words[first:last])
        if isinstance(own, str) and "".join(own.split()) != "".join(there.split()):
            raise BadInput(
                f"{place}: an entity has the text '{own}', and its start and end are those of '{there}'"
            )
        at = last


def split_words(text: str) -> tuple[list[str], list[int]]:
    """The words of a text and the first character of each: runs of letters and digits, and single marks.

    A Chinese or Japanese character is a word.
    """
    found = list(WORD.finditer(text))
    return [match.group() for match in found], [match.start() for match in found]


def joined_words(words: list[str]) -> tuple[list[str], list[int]]:
    """Words, and the first character of each in the text that has a blank between two."""
    return words, [0, *accumulate(len(word) + 1 for word in words[:-1])]


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities that tags of any scheme mark."""
    found: list[Entity] = []
    before, ended = "", True  # the type of the word before, and whether an entity has ended with it
    for number, (mark, _, kind) in enumerate(tag.partition("-") for tag in tags):
        if mark != "O" and (ended or mark in "BSU" or kind != before):
            found.append((number, number + 1, kind))
        elif mark != "O":
            found[-1] = (found[-1][0], number + 1, kind)
        before, ended = kind, mark in "OESLU"
    return found


def load_roles(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """CoNLL 2005 and 2012 as P-Tuning v2 has them: number of the verb, words ||| tags, one verb a line."""
    parts = []
    for split, path in paths.items():
        kept = [(n, line) for n, line in enumerate(lines_in(decoded(path)), 1) if line.strip()]
        if not kept:
            raise BadInput(f"{path} has no sentences; it needs at least one line, `verb words ||| tags`")
        read = [(n, *map(str.split, line.partition("|||")[::2])) for n, line in kept]
        wrong = [n for n, words, tags in read if not fits(words, tags)]
        refuse(path, wrong, f"are not `verb words ||| tags` with a tag for each word ({KINDS})")
        parts += [
            {
                WORDS: words,
                ENTITIES: entities(tags),
                PREDICATE: int(verb),
                PAIR: words[int(verb)],
                PLACE: f"{path.name}:{n}",
                SPLIT: split,
            }
            for n, (verb, *words), tags in read
        ]
    return pd.DataFrame(parts)


def fits(words: list[str], tags: list[str]) -> bool:
    """Whether a line has the number of one of its words, the words, and a tag for each."""
    verb, *words = words or [""]
    there = verb.isdecimal() and int(verb) < len(words) == len(tags)
    return there and all(TAG.fullmatch(tag) for tag in tags)


def refuse(path: Path, wrong: list[int], what: str, hint: str = "") -> None:
    """Raise BadInput where there are wrong lines."""
    if wrong:
        raise BadInput(f"{path}: {counted(len(wrong), 'line', what)} (lines {few(wrong)}){hint}")
