"""The sentences and tables of the page."""

from __future__ import annotations

import shlex

import numpy as np

from tailprompt.report import verdicts
from tailprompt.report.figures.style import printable
from tailprompt.report.page.evidence import LEAST, More, Row, Worst
from tailprompt.report.sheet import Block, Cell, Sheet, chance, number
from tailprompt.tasks import metrics


def headline(rows: list[Row], score: str) -> str:
    """Who wins, or who leads without a clear win."""
    first = rows[0]
    said = f"{metrics.title(score)} {number(first.scores[score])} on test"
    if len(rows) == 1:
        return f"{first.title} is the only method with all its runs: {said}."
    clear = rows[1].worse
    verb = "wins" if clear else "leads, but no method wins clearly"
    return f"{first.title} {verb}: {said}, {lead(rows[1])} against {rows[1].title}, the next on dev."


def lead(row: Row) -> str:
    """How far the leader is before a method, and how sure that is."""
    points, low, high, p = row.lead
    if np.isnan(p):
        return f"{number(-points, signed=True)} (no interval: one seed, or scores that never vary)"
    ends = f"{number(-high, signed=True)} to {number(-low, signed=True)}"
    return f"{number(-points, signed=True)} points (95 % interval {ends}, p {chance(p)})"


def advice(rows: list[Row]) -> str:
    """What is as good as can be told and cheaper, or that nothing is."""
    near = [row for row in rows[1:] if not row.worse]
    if len(rows) == 1:
        return "There is nothing to compare it with yet."
    if not near:
        return "All other methods are clearly worse."
    cheap = min(near, key=lambda row: row.seconds)
    names = ", ".join(row.title for row in near)
    words = f"Not clearly worse: {names}. More seeds would tell them apart (seeds in the config)."
    if cheap.seconds < rows[0].seconds:
        words += (
            f" Of these {cheap.title} is cheapest: {time(cheap.seconds)} a run, not {time(rows[0].seconds)}."
        )
    return words


def time(seconds: float) -> str:
    """A duration for people."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def methods(rows: list[Row], score: str, groups: list[str], *, searched: bool) -> Sheet:
    """Methods by score: the lead of the leader, groups of classes, cost.

    searched: whether settings were chosen on dev for each method.
    """
    metric = score.partition("/")[0]
    heads = ["method", metrics.title(score), "behind by", *(metrics.GROUPS[name] for name in groups)]
    heads += ["trained parameters", "seconds a run", "memory, MB"]
    best = {name: max(row.scores[f"{metric}/{name}"] for row in rows) for name in groups}
    lines = []
    for place, row in enumerate(rows):
        spread = number(float(np.std(row.seeds, ddof=1))) if len(row.seeds) > 1 else ""
        each = [row.scores[f"{metric}/{name}"] for name in groups]
        cells = [Cell(row.title, best=place == 0), Cell(number(row.scores[score]), spread, best=place == 0)]
        cells += [Cell(behind(row) if place else "")]
        cells += [Cell(number(v), best=v == best[name]) for v, name in zip(each, groups, strict=True)]
        cells += [Cell(f"{row.trained:,.0f}"), Cell(number(row.seconds, 0)), Cell(f"{row.memory:,.0f}")]
        lines.append(cells)
    runs = f"mean ± SD of {len(rows[0].seeds)} seeds" if len(rows[0].seeds) > 1 else "one seed"
    notes = [
        f"Points on test, {runs}; methods in the order of dev, by which the leader is taken. Behind by: the "
        "leader's lead with its 95 % interval (Student's t over seeds, bootstrap over test rows). Seconds "
        "and memory are those of this machine, with what else ran on it."
    ]
    if not searched:
        notes.append("One learning rate a method, not searched: a first round. config/mine.yaml searches it.")
    return sheet("Methods", heads, lines, notes, words=1)


def behind(row: Row) -> str:
    """The leader's lead over a method, short."""
    points, low, high, p = row.lead
    known = "" if np.isnan(p) else f" ({number(-high)} to {number(-low)})"
    return number(-points) + known


def classes(found: list[Worst], names: list[str]) -> Sheet:
    """The worst classes and what they are taken for. names: of all classes."""
    lines = []
    for one in found:
        taken = ", ".join(f"{called(c, names)} {100 * share:.0f} %" for c, share in one.taken)
        lines.append(
            [Cell(called(one.id, names)), Cell(f"{one.train:,}"), Cell(f"{one.test:,}"), Cell(number(one.f1))]
        )
        lines[-1].append(Cell(taken or "nothing else"))
    heads = ["class", "training rows", "test rows", "F1", "its test rows are taken for"]
    notes = [f"Classes with fewer than {LEAST} test rows are not told of: their F1 is chance."]
    return sheet(f"The {len(found)} worst classes of the leader", heads, lines, notes, words=1, last="l")


def called(c: int, names: list[str]) -> str:
    """The name of a class, with its number where the pictures have no letters for it."""
    if c >= len(names):
        return "no class"
    return names[c] if printable(names[c], c) == names[c] else f"{names[c]} (class {c})"


def sheet(caption: str, heads: list[str], lines: list, notes: list[str], *, words: int, last="r") -> Sheet:
    """A table with words in the first columns (and perhaps the last), numbers in the others."""
    align = ["l"] * words + ["r"] * (len(heads) - words - 1) + [last]
    return Sheet(caption, "", [("", len(heads))], heads, align, [Block("", lines)], notes)


def growth(data: More, leader: Row) -> str:
    """What more data gave the leader, and what that says of still more."""
    sizes = sorted(data.points[data.points.method == leader.method].rows)
    if data.effect is None or len(sizes) < 2:
        return "What more data would give is unknown: no run on a part of the data is finished."
    low, high = verdicts.interval(data.effect)
    ends = f"95 % interval {number(low, signed=True)} to {number(high, signed=True)}"
    gain = f"{number(data.effect.value, signed=True)} points ({ends})"
    if np.isnan(low):
        gain = f"{number(data.effect.value, signed=True)} points (no interval: one seed)"
    words = f"From {sizes[-2]:,} to {sizes[-1]:,} training rows {leader.title} gains {gain}."
    if low > 0:
        return (
            f"{words} More labelled rows are likely to help; as curves flatten, expect less of the same step."
        )
    return f"{words} This round cannot tell whether more rows would help."


def looked(report: dict) -> str:
    """What the data are."""
    counts = [count for count in report["counts"]["train"] if count]
    rows = ", ".join(f"{report['rows'][split]:,} {split}" for split in ("train", "dev", "test"))
    return (
        f"{len(report['classes'])} classes; {rows} rows; the largest class has {max(counts):,} training "
        f"rows, the smallest {min(counts):,}. Language: {report['language']}."
    )


def command(folder: str, kept: bool, method: str) -> list[str]:
    """How to predict new rows with the leader."""
    line = f"tailprompt predict {shlex.quote(folder)} new.csv"
    if kept:
        return [line]
    return [f"# first, in the config: methods: {{{method}: {{keep: true}}}}, and snakemake again", line]
