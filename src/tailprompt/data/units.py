"""Units of text (lines or sentences) of a corpus, and which of them become examples.

Documents are read in blocks, so that memory holds two blocks and the wanted examples, whatever the size of
the corpus. A digest of the document, the place in it and a seed decides which units become examples, and each
unit has its own random generator. So a larger set of examples contains a smaller one. A digest of its text
decides the split of a document. Lengths are in words, where a Chinese character counts as a word; the encoder
cuts to tokens later.
"""

from __future__ import annotations

import hashlib
import heapq
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pandas as pd

from tailprompt.data.columns import ID, LABEL, SPLIT
from tailprompt.data.corpus import is_held_out, kept
from tailprompt.data.quotas import quotas, shares_of
from tailprompt.errors import BadInput, counted, named

BLOCK = 1000  # documents
LONGEST = 5_000_000  # characters of a document, as released
LEAST_WORDS = 5  # in each unit of a pair
COPIES = 4  # documents that supply wrong options (the released code shuffles the corpus four times)
WORD = re.compile(r"[㐀-鿿]|[^\s㐀-鿿]+")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True)
class Unit:
    """A unit of text in its block of documents, with its own random generator."""

    block: list[list[str]]
    document: int
    place: int
    chance: random.Random

    @property
    def text(self) -> str:
        return self.own[self.place]

    @property
    def own(self) -> list[str]:
        """All units of its document."""
        return self.block[self.document]

    def neighbours(self) -> list[str]:
        """The units just before and just after it."""
        return [self.own[at] for at in (self.place - 1, self.place + 1) if 0 <= at < len(self.own)]

    def apart(self, count: int) -> list[str]:
        """`count` units of its document that are not next to it."""
        before, after = max(0, self.place - 1), min(self.place + 2, len(self.own))
        return [self.own[at] for at in drawn(self.chance, len(self.own), range(before, after), count)]

    def elsewhere(self, count: int) -> list[str]:
        """`count` units from `COPIES` other documents; fewer if those are short."""
        own, others = range(self.document, self.document + 1), len(self.block) - 1
        numbers = drawn(self.chance, len(self.block), own, min(COPIES, count, others))
        shares = [count // len(numbers) + (n < count % len(numbers)) for n in range(len(numbers))]
        found = [
            self.chance.sample(self.block[number], min(share, len(self.block[number])))
            for number, share in zip(numbers, shares, strict=True)
        ]
        return [text for part in found for text in part]


def drawn(chance: random.Random, size: int, without: range, count: int) -> list[int]:
    """`count` places below `size` and outside the range `without`, drawn without a list of all places."""
    places = chance.sample(range(size - len(without)), count)
    return [at if at < without.start else at + len(without) for at in places]


def collected(
    paths: dict[str, Path],
    row: dict,
    example: Callable[[Unit], dict | None],
    *,
    units: int,
    least: int,
    words: int = 1,
    classes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The examples of a corpus, in train, dev and test.

    units: the fewest units of a document, each of at least `least` characters and `words` words. classes: if
    given, each class gets an equal part of the examples. Raises BadInput if a split has none.
    """
    labels = classes or [None]
    found = {
        split: {label: Lowest(size // len(labels)) for label in labels}
        for split, size in quotas(row, len(labels)).items()
    }
    seed, number = row.get("split_seed", 0), 0
    for block in blocks(documents(paths["all"], row, units, least, words), row.get("block", BLOCK)):
        number += len(block)
        for at, document in enumerate(block):
            lowest = found[split_of(document, row)]
            for place, key in enumerate(keys(document, seed)):
                if any(each.wants(key) for each in lowest.values()):
                    keep(lowest, key, example(Unit(block, at, place, random.Random(key))))
    rows = [
        {SPLIT: split, ID: f"{split}-{key:016x}", **part}
        for split, lowest in found.items()
        for key, part in sorted((key, part) for each in lowest.values() for key, part in each.found.items())
    ]
    if empty := sorted(found.keys() - {each[SPLIT] for each in rows}):
        raise BadInput(
            f"'{row['name']}': {paths['all']} gives no {' or '.join(empty)} example; "
            f"{counted(number, 'document')} "
            f"of {LONGEST:,} characters at most have {units} or more texts of {least} or more characters; "
            "name a larger corpus, in which an empty line ends each document"
        )
    return pd.DataFrame(rows)


def keep(lowest: dict[str | None, Lowest], key: int, made: dict | None) -> None:
    """Keep the example of a unit, if there is one and its class still wants it."""
    if made and (each := lowest.get(made[LABEL], lowest.get(None))).wants(key):
        each.add(key, made)


@dataclass
class Lowest:
    """The examples with the `size` lowest keys among all that are offered."""

    size: int
    found: dict[int, dict] = field(default_factory=dict)
    heap: list[int] = field(default_factory=list)

    def wants(self, key: int) -> bool:
        """Whether an example with this key would be kept; none is kept twice."""
        return key not in self.found and (
            len(self.heap) < self.size or (self.size > 0 and key < -self.heap[0])
        )

    def add(self, key: int, example: dict) -> None:
        """Keep an example that is wanted, in place of the one with the highest key."""
        self.found[key] = example
        heapq.heappush(self.heap, -key)
        if len(self.heap) > self.size:
            del self.found[-heapq.heappop(self.heap)]


def split_of(document: list[str], row: dict) -> str:
    """The split of a document, which depends on its text."""
    shares = shares_of(row)
    if is_held_out(document, shares["test"]):
        return "test"
    return "dev" if is_held_out(document, shares["test"] + shares["dev"]) else "train"


def keys(document: list[str], seed: int) -> Iterator[int]:
    """A key for each unit of a document, which depends on the text of the document and the seed."""
    start = hashlib.blake2b("\n".join([str(seed), *document]).encode(), digest_size=8)
    for place in range(len(document)):
        unit = start.copy()
        unit.update(f"\0{place}".encode())
        yield int.from_bytes(unit.digest())


def documents(path: Path, row: dict, units: int, least: int, words: int) -> Iterator[list[str]]:
    """The documents of a corpus as lists of sufficiently long units; documents with too few are left out."""
    divide = named(UNITS, row.get("unit", "line"), "unit")
    for document in kept(path, row.get("scripts", "all"), longest=LONGEST):
        found = [text for text in divide(document) if len(text) >= least and worded(text) >= words]
        if len(found) >= units:
            yield found


def sentences(document: list[str]) -> list[str]:
    """The sentences of a document, which end in a full stop, question mark or exclamation mark."""
    return [text for line in document for part in SENTENCE.split(line) if (text := part.strip())]


def blocks(stream: Iterator[list[str]], size: int) -> Iterator[list[list[str]]]:
    """Blocks of `size` documents; a smaller last block is joined to the one before it."""
    block = list(islice(stream, size))
    while len(following := list(islice(stream, size))) == size:
        yield block
        block = following
    yield block + following


def worded(text: str) -> int:
    """The number of words of a text, counted up to LEAST_WORDS."""
    return sum(1 for _ in islice(WORD.finditer(text), LEAST_WORDS))


def shortened(text: str, words: int) -> str:
    """The first words of a text."""
    *_, last = islice(WORD.finditer(text), words)
    return text[: last.end()]


UNITS = {"line": list, "sentence": sentences}
