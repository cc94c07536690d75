"""What a file holds: its bytes, unpacked as their first ones say, and its text in an encoding that fits.

A byte-order mark settles the encoding. No other is taken by guess: a wrong guess among encodings of one byte
a character reads every file, and reads it wrong. So charset-normalizer's guess, which is there with requests,
is named in the refusal with what it reads, beside what other common encodings read, to be stated. Of 13 short
files in seven languages the guess alone read six right, and one of those named is right for all.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from unicodedata import category

import pandas as pd
import pyarrow as pa

from tailprompt.errors import BadInput

PLACE = "file:line"  # the column with the place of each row
NOTES = "notes"  # what a table's `attrs` say of how it was read
LARGE, TIMES = 2**28, 200  # bytes that any packed file may hold, and how often its own size
SAMPLE = 2**16  # bytes by which an encoding is guessed
SHOWN = 30  # characters by which a person sees whether an encoding is right
COMMON = "cp1252 cp1250 iso8859-2 cp1251 cp1253 cp1254 cp1256 koi8-r mac-roman cp850".split()
COMMON += ["gb18030", "big5", "shift-jis", "euc-kr"]
CONTROL = re.compile("[\x80-\x84\x86-\x9f]")  # Latin-1's control characters, of which no text has one
LINE_END = re.compile("\r\n|\r|\n")
NUL = "\0"


class WrongEncoding(BadInput):
    """A file does not have the encoding that it is read with."""


def bare(name: str) -> str:
    """A file's name without the ending of its packing."""
    stem, _, ending = name.rpartition(".")
    return stem if stem and f".{ending.lower()}" in PACKED else name


def kind_of(path: Path) -> str:
    """The format of a file, as its name says: csv, jsonl, ...; empty without an ending."""
    return Path(bare(path.name)).suffix[1:].lower()


def plain(path: Path) -> bytes:
    """The bytes of a file, unpacked; raises BadInput for far more of them than any text gives."""
    most, held = max(LARGE, TIMES * path.stat().st_size), io.BytesIO()
    with opened(path) as file:
        while part := file.read(2**24):
            held.write(part)
            if held.tell() > most:
                raise BadInput(
                    f"{path} unpacks to more than {TIMES} times its size, as no text does; if that is meant, "
                    "unpack it first"
                )
    return held.getvalue()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file opened for reading bytes, unpacked if its first bytes are those of gz, bz2, xz or zst."""
    with open(path, "rb") as file:
        start = file.read(6)
    packing = next((ending for ending, (magic, _) in PACKED.items() if start.startswith(magic)), None)
    if not packing and start and path.suffix.lower() in PACKED:
        raise BadInput(f"{path} is damaged or cut short (it does not begin as a {path.suffix} file)")
    try:
        with PACKED[packing][1](path) if packing else open(path, "rb") as file:
            yield file
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise BadInput(f"{path} is damaged or cut short ({error})") from None
    except OSError as error:
        if not packing:
            raise
        raise BadInput(f"{path} is damaged or cut short ({error})") from None


def decoded(path: Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file; raises WrongEncoding with the first byte that does not fit, and its line."""
    return text_of(plain(path), path, encoding)


def text_of(data: bytes, path: Path, encoding: str) -> str:
    """The text of a file's bytes, without its byte-order mark."""
    if kind := next((kind for start, kind in FOREIGN.items() if data.startswith(start)), None):
        raise BadInput(f"{path} is {kind}, whatever its name; save its table as CSV (UTF-8)")
    encoding = marked(data) or encoding
    try:
        text = single(data.decode(encoding).lstrip("\ufeff"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        wanted = encoding.removesuffix("-sig").upper()
        raise WrongEncoding(
            f"{path}: byte {error.start} (line {line}) is not {wanted}; save the file as UTF-8{guess(data)}"
        ) from None
    except (LookupError, ValueError):
        raise BadInput(
            f"{path}: there is no encoding '{encoding}' for it; known are utf-8, gb18030, latin-1, ..."
        ) from None
    check_text(text, data, path, encoding)
    return text


def check_text(text: str, data: bytes, path: Path, encoding: str) -> None:
    """Raise WrongEncoding for a text that an encoding of another file would give without an error."""
    start = text[:SAMPLE]
    if start.count(NUL) > len(start) // 8:
        zeros = data[:SAMPLE:2].count(0), data[1:SAMPLE:2].count(0)
        likely = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
        raise WrongEncoding(
            f"{path} has a zero for each second character; save it as UTF-8 (it looks like {likely})"
        )
    if not encoding.lower().startswith("utf") and not data.isascii() and is_utf8(data):
        raise BadInput(f"{path} is UTF-8, and is to be read as {encoding}; leave the encoding out")
    if CONTROL.search(text) and codecs.lookup(encoding).name in ("iso8859-1", "iso8859-15"):
        raise WrongEncoding(
            f"{path} has control characters where it is read as {encoding}, so it is in another encoding"
            f"{guess(data)}"
        )


def single(text: str) -> str:
    """A text without the second carriage return of each line end, as programs on Windows may write it."""
    doubled = text.count("\r\r\n")
    return text.replace("\r\r\n", "\r\n") if doubled and doubled == text.count("\n") else text


def lines_in(text: str) -> list[str]:
    """The lines of a text, whichever system ended them, without byte-order marks, as joined files have them.

    Not splitlines(), which would also cut at Unicode's line separators. What ends the last line begins none.
    """
    lines = [line.lstrip("\ufeff") for line in LINE_END.split(text)]
    return lines if lines[-1] else lines[:-1]


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8, as those of another encoding hardly ever are by chance."""
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


def marked(data: bytes) -> str | None:
    """The encoding that a byte-order mark tells, UTF-8 apart."""
    return next((encoding for mark, encoding in MARKS.items() if data.startswith(mark)), None)


def guess(data: bytes) -> str:
    """A clause with the encoding that a file may have, or an empty string.

    Encodings of one byte a character all read it: the clause has how the common ones do, for a person to see.
    """
    from charset_normalizer import from_bytes  # slow to import

    wrong = next((at for at in range(0, len(data), SAMPLE) if not data[at : at + SAMPLE].isascii()), 0)
    near = data[max(0, wrong - SAMPLE) : wrong + SAMPLE]
    best = from_bytes(near).best()
    if not best:
        return ""
    names: dict[str, str] = {}  # what is read -> the first encoding that reads it
    for name in [best.encoding, *(COMMON if len(str(best)) == len(near) else ())]:
        if read := first_words(near, name):
            names.setdefault(read, name.replace("_", "-"))
    readings = ", ".join(f"{name} reads '{read}'" for read, name in names.items())
    return f" (it looks like {best.encoding.replace('_', '-')}{readings and f'; {readings}'})"


def first_words(data: bytes, encoding: str) -> str | None:
    """The first words with other letters than ASCII's, in an encoding; None where it does not fit."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        return None
    words = [*dict.fromkeys(re.findall("[^\\W\\d_]*[^\0-\x7f]+[^\\W\\d_]*", text))]
    drawn = {category(character) for character in "".join(words)} & {"So", "Sm", "Cf", "Co"}
    return None if drawn or CONTROL.search(text) else " ".join(words)[:SHOWN]


def noted(table: pd.DataFrame, told: Iterable[str]) -> pd.DataFrame:
    """The table, with sentences about how it was read that a report repeats."""
    table.attrs[NOTES] = list(told)
    return table


def open_zst(path: Path) -> BinaryIO:
    """A file in Zstandard's form, which Python 3.11 cannot read alone."""
    return pa.input_stream(str(path), compression="zstd")


MARKS = {  # in this order: a mark of UTF-32 begins as one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
FOREIGN = {
    b"PK\x03\x04": "a zip file or a sheet of Excel (.xlsx)",
    b"\xd0\xcf\x11\xe0": "a sheet of Excel (.xls)",
    b"PAR1": "a Parquet file",
    b"%PDF-": "a PDF",
    b"version https://git-lfs": "a pointer of Git LFS, in whose place git lfs pull puts the file",
    b"<!DOCTYPE html": "a web page",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
}
PACKED = {
    ".gz": (b"\x1f\x8b", gzip.open),
    ".bz2": (b"BZh", bz2.open),
    ".xz": (b"\xfd7zXZ\0", lzma.open),
    ".zst": (b"\x28\xb5\x2f\xfd", open_zst),
}
