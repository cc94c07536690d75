"""Documents of a plain text file: each line is a paragraph, and an empty line ends a document."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
import zlib
from collections.abc import Iterator
from math import inf
from pathlib import Path

from tailprompt.errors import BadInput, named
from tailprompt.files import no_file

OPENERS = {".txt": open, ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
HAN = re.compile(r"[㐀-鿿]")


def documents(path: str | Path, *, longest: float = inf) -> Iterator[list[str]]:
    """The documents of a UTF-8 text file (.txt, or compressed .gz, .xz, .bz2), each a list of paragraphs.

    The file is read line by line, so memory holds one document whatever the size of the corpus. Documents of
    more than `longest` characters are skipped. Raises BadInput, with the line, if the file is missing,
    damaged or not UTF-8.
    """
    path, paragraphs, characters, line = Path(path), [], 0, 0
    opener = named(OPENERS, path.suffix, f"ending of the corpus {path.name}")
    if wrong := no_file(path):
        raise BadInput(f"{wrong}; correct the path of the corpus")
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            for line, text in enumerate(file, 1):  # noqa: B007
                if text := text.strip():
                    characters += len(text)
                    if characters <= longest:
                        paragraphs.append(text)
                    else:
                        paragraphs = []
                    continue
                if paragraphs:
                    yield paragraphs
                paragraphs, characters = [], 0
    except UnicodeDecodeError as error:
        raise BadInput(f"corpus {path}: not UTF-8 after line {line} ({error.reason})") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise BadInput(f"corpus {path} cannot be read after line {line} ({error})") from None
    if paragraphs:
        yield paragraphs


def is_held_out(document: list[str], share: float) -> bool:
    """Whether a document belongs to the held-out `share`, which depends on nothing but its text."""
    return number_of(document, 0) < share * 2**32


def part_of(document: list[str], parts: int) -> int:
    """Which of `parts` parts a document belongs to, from 1; it does not depend on whether it is held out."""
    return number_of(document, 1) % parts + 1


def is_sampled(document: list[str], share: float) -> bool:
    """Whether a document belongs to a sample of the `share`, whatever part it belongs to."""
    return number_of(document, 2) < share * 2**32


def number_of(document: list[str], which: int) -> int:
    """One of five numbers below 2^32 that the text of a document alone gives."""
    digest = hashlib.sha1("\n".join(document).encode()).digest()
    return int.from_bytes(digest[4 * which : 4 * which + 4])


def named_files(corpora: list[Path]) -> str:
    """The corpora in words, for messages."""
    return f"corpus {' and '.join(map(str, corpora))}"


def is_latin(document: list[str]) -> bool:
    """Whether less than one character in a hundred is Chinese."""
    text = "".join(document)
    return len(HAN.findall(text)) < len(text) / 100


def kept(path: str | Path, scripts: str, *, longest: float = inf) -> Iterator[list[str]]:
    """The documents in `scripts`: all, latin (no Chinese), or han (Chinese)."""
    keep = named(SCRIPTS, scripts, "scripts")
    return filter(keep, documents(path, longest=longest))


SCRIPTS = {"all": lambda document: True, "latin": is_latin, "han": lambda document: not is_latin(document)}
