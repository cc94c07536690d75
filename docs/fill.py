"""Parts of a page that a command writes: `<!-- made: NAME -->...<!-- end made -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

PART = re.compile(r"(<!-- made: ([\w -]+) -->)(\n?)(.*?)(<!-- end made -->)", re.DOTALL)

Makers = Mapping[str, Callable[..., str]]


def filled(page: str, makers: Makers) -> str:
    """A page whose parts are what their makers return; parts of other names stay as they are.

    A part is named by its maker and perhaps an argument: `claims glee`. On one line it stands in a sentence.
    """

    def made(part: re.Match) -> str:
        begin, name, newline, text, end = part.groups()
        maker, *arguments = name.split()
        if maker in makers:
            text = makers[maker](*arguments) + newline
        return f"{begin}{newline}{text}{end}"

    return PART.sub(made, page)


def names(page: str) -> list[str]:
    """The makers that a page names."""
    return [name.split()[0] for _, name, *_ in PART.findall(page)]


def table(header: Iterable[str], rows: Iterable[Iterable[str]], align: str) -> str:
    """A table in Markdown. align: `l` or `r` for each column."""
    rules = {"l": "---", "r": "--:"}
    lines = [header, [rules[side] for side in align], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Words that stand in a cell whatever they hold."""
    return re.sub(r"([|<>*])", r"\\\1", text)
