"""A table as cells, blocks of rows and notes, independent of the format in which it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A number or words, with a spread, a mark, and whether it is the best."""

    text: str = ""
    spread: str = ""
    mark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Block:
    """Rows with a title above them."""

    title: str
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Sheet:
    """A table. groups: (title, number of columns) above the column heads. align: LaTeX column types."""

    caption: str
    label: str
    groups: Sequence[tuple[str, int]]
    heads: Sequence[str]
    align: Sequence[str]
    blocks: Sequence[Block]
    notes: Sequence[str] = field(default_factory=tuple)


def greek(text: str) -> str:
    """A method's title with Greek letters where names are spelt out."""
    return text.replace("eta-norm", "\u03b7-norm").replace("tau-norm", "\u03c4-norm")


def number(value: float | None, places: int = 1, *, signed: bool = False) -> str:
    """A number for people, with a true minus sign but no minus zero; empty if it is undefined."""
    if value is None or value != value:
        return ""
    text = f"{value:{'+' if signed else ''},.{places}f}"
    if not text.strip("+-0.,"):
        text = text.lstrip("+-")
    return text.replace("-", "\u2212")


def chance(p: float | None) -> str:
    """A p value for people."""
    return "<0.001" if p is not None and p < 0.0005 else number(p, 3)
