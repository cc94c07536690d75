"""What a command may be told of how a CSV or TSV file is read, as a data set's row says it."""

from __future__ import annotations

from argparse import ArgumentTypeError


def truth(word: str) -> bool:
    """`true` or `false` as a person writes it."""
    if word not in ("true", "false"):
        raise ArgumentTypeError(f"'{word}' is neither true nor false")
    return word == "true"


def character(word: str) -> str:
    """One character; a tab may be written \\t."""
    word = {"\\t": "\t"}.get(word, word)
    if len(word) != 1:
        raise ArgumentTypeError(f"'{word}' is not one character")
    return word


FORMS = {
    "quotes": {
        "type": truth,
        "metavar": "true|false",
        "help": "whether double quotes enclose fields, or are of the texts (usual: as in the run's data)",
    },
    "separator": {
        "type": character,
        "metavar": "CHARACTER",
        "help": "what separates fields (usual: found out)",
    },
    "escape": {
        "type": character,
        "metavar": "CHARACTER",
        "help": "what stands before a quote of a text (usual: another quote)",
    },
    "header": {"nargs": "+", "metavar": "COLUMN", "help": "the columns of a file without a header line"},
}
CODE = {"metavar": "CODE", "help": "encoding of the file, as cp1252 or gb18030 (usual: utf-8)"}
