"""The table of bad input: each kind ends in one clear sentence with the place and what is allowed.

Details of each kind are tested beside the code that refuses it; here is the whole table at a glance.
"""

import hashlib

import pytest

from tailprompt import data
from tailprompt.config import load
from tailprompt.data import sources
from tailprompt.encode import encode, encode_words
from tailprompt.errors import BadInput

ROWS = [
    ("kernel update", "os", "train"),
    ("new kernel", "os", "train"),
    ("a game", "fun", "train"),
    ("more games", "fun", "train"),
    ("kernel", "os", "dev"),
    ("game", "fun", "dev"),
    ("kernels", "os", "test"),
    ("gaming", "fun", "test"),
]
GIVEN = {"text": "text", "label": "label", "split": "split"}


def table(folder, *, rows=ROWS, header="text,label,split", words=None, encoding="utf-8", **row):
    """Load a CSV as a user's data set; `words` are lines of its verbalizer."""
    path = folder / "mine.csv"
    path.write_bytes("\n".join([header, *(",".join(line) for line in rows)]).encode(encoding))
    verbalizer = None
    if words:
        verbalizer = folder / "words.csv"
        verbalizer.write_text("\n".join(["label,words", *words]), "utf-8")
    row = {"name": "mine", "language": "en", "path": str(path), "columns": GIVEN, **row}
    return data.load(row, {"all": path}, words=verbalizer)


def changed(number, place, value):
    """ROWS with one cell changed."""
    rows = [list(row) for row in ROWS]
    rows[number][place] = value
    return rows


def file(folder, content, expected):
    """Find a shipped file whose digest the row states."""
    path = folder / "file.csv"
    path.write_bytes(content)
    row = {"name": "mine", "path": str(path), "sha256": hashlib.sha256(expected).hexdigest()}
    return sources.found(row, data_dir=None, raw=folder, lock=folder / "lock.json")


def tokens(tokenizer, **changes):
    form = {"input": "prompted", "template": "{text} {mask}", "max_length": 16, "positions": 512, **changes}
    return encode(["some text"], None, [0], ["row"], tokenizer, **form)


TABLE = {
    "missing column": (
        lambda folder, _: table(folder, header="body,label,split"),
        r"mine\.csv.*'?text'?.*body",
    ),
    "unknown label in test": (
        lambda folder, _: table(folder, rows=changed(6, 1, "music")),
        r"'mine'.*'music' \(mine\.csv:8\)",
    ),
    "empty text": (lambda folder, _: table(folder, rows=changed(2, 0, " ")), r"empty text \(mine\.csv:4\)"),
    "a class with one example": (
        lambda folder, _: table(
            folder,
            rows=[*ROWS[:4], ("one song", "music", "train")],
            columns={"text": "text", "label": "label"},
        ),
        r"1 classes have one example \(music\).*singletons: train",
    ),
    "duplicate ids": (
        lambda folder, _: table(folder, columns={**GIVEN, "id": "text"}, rows=changed(1, 0, "kernel update")),
        r"ids must be unique.*kernel update",
    ),
    "a verbalizer that names no label": (
        lambda folder, _: table(folder, words=["cat,cat", "dog,dog"]),
        r"words\.csv names no label of the data.*cat",
    ),
    "a word of unknown tokens": (
        lambda _, tokenizer: encode_words({"os": "𐎀", "fun": "game"}, tokenizer),
        r"word '𐎀' of class 'os' has no token",
    ),
    "the mask cut off": (
        lambda _, tokenizer: tokens(tokenizer, template="{text} " + "long " * 20 + "{mask}"),
        r"leaves 0 of max_length 16 tokens for text; raise max_length or shorten",
    ),
    "wrong encoding": (
        lambda folder, _: table(folder, rows=changed(0, 0, "café"), encoding="latin-1"),
        r"mine\.csv.*byte 20 \(line 2\) is not UTF-8",
    ),
    "truncated file": (
        lambda folder, _: file(folder, b"text,la", b"text,label"),
        r"file\.csv: SHA-256 is .*",
    ),
    "wrong hash": (
        lambda folder, _: file(folder, b"other", b"this"),
        r"expected .*another version or damaged",
    ),
    "text longer than the positions": (
        lambda _, tokenizer: tokens(tokenizer, max_length=600),
        r"max_length 600 is more than the 512 positions",
    ),
    "a config typo": (
        lambda *_: load(values={"protocols": {"glee": {"settings": {"epoch": 3}}}}),
        r"--config: unknown key 'epoch' in protocols\.glee\.settings; known: .*epochs",
    ),
}


@pytest.mark.parametrize("kind", TABLE)
def test_bad_input_ends_in_one_clear_sentence(tmp_path, tokenizer, kind):
    cause, sentence = TABLE[kind]
    with pytest.raises(BadInput, match=sentence) as caught:
        cause(tmp_path, tokenizer)
    assert "\n" not in str(caught.value)


def test_the_same_table_without_a_fault_is_accepted(tmp_path):
    rows, classes = table(tmp_path, words=["os,kernel", "fun,game"])
    assert len(rows) == len(ROWS) and classes == ["os", "fun"]
