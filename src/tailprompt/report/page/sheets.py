"""The tables of the page: the methods by score, and the worst classes."""

from __future__ import annotations

import numpy as np

from tailprompt.errors import counted
from tailprompt.report.page.collapsed import Collapsed
from tailprompt.report.page.data_words import called, isolated
from tailprompt.report.page.evidence import Row, Worst
from tailprompt.report.page.lengths import SHORT
from tailprompt.report.sheet import Block, Cell, Sheet, number
from tailprompt.tasks import metrics


def methods(
    rows: list[Row], names: list[str], metric: str, groups: list[str], *, searched: str, images: bool = False
) -> Sheet:
    """Methods by score: the lead of the leader, groups of classes by `metric`, training, cost.

    names: the score that decides, and others beside it. searched: what searches the settings of each method,
    if these were not chosen on dev for each. images: whether rows are images.
    """
    score, *others = names
    of = "" if score.startswith(f"{metric}/") else f" {metrics.METRICS[metric]}"
    heads = ["method", metrics.title(score), "behind by", *(f"{metrics.GROUPS[name]}{of}" for name in groups)]
    heads += [metrics.title(name) for name in others]
    heads += ["trained for", "trained parameters", "seconds a run", "memory, MB"]
    timed = any(not np.isnan(row.predicting) for row in rows)
    heads += [f"seconds for 1,000 {'images' if images else 'texts'}"] if timed else []
    shown = [f"{metric}/{name}" for name in groups] + others
    best = {name: max(row.scores[name] for row in rows) for name in shown}
    lines = []
    for place, row in enumerate(rows):
        spread = number(float(np.std(row.seeds, ddof=1))) if len(row.seeds) > 1 else ""
        name = f"{row.title} {alone(row.only)}" if row.only else row.title
        cells = [Cell(name, best=place == 0), Cell(number(row.scores[score]), spread, best=place == 0)]
        cells += [Cell(behind(row) if place else "")]
        cells += [Cell(number(row.scores[name]), best=row.scores[name] == best[name]) for name in shown]
        cells += [Cell(duration(row))]
        cells += [Cell(f"{row.trained:,.0f}"), Cell(number(row.seconds, 0)), Cell(f"{row.memory:,.0f}")]
        cells += [Cell(brief(row.predicting))] if timed else []
        lines.append(cells)
    runs = f"mean ± SD of {len(rows[0].seeds)} seeds" if len(rows[0].seeds) > 1 else "one seed"
    judged = (
        " with its 95 % interval (Student's t over seeds, bootstrap over test rows); clearly worse is a p "
        f"below 0.05 among {len(rows) - 1} comparisons (Holm)"
        if any(not np.isnan(row.lead[3]) for row in rows)
        else ""
    )
    notes = [
        f"Points on test, {runs}. The leader is the best on dev; the others follow by their score on test. "
        f"Behind by: the leader's lead{judged}. Seconds and memory are those of this machine, with what else "
        "ran on it.",
        *(predicting(rows, images=images) if timed else []),
    ]
    if searched:
        notes.append(f"One learning rate a method, not searched: a first round. {searched} searches it.")
    return sheet("Methods", heads, lines, notes, words={"method", "trained for"})


def alone(only: Collapsed) -> str:
    """That a method names one class alone, and so did not learn."""
    names = " or ".join(f"'{isolated(name)}'" if name else "no class" for name in only.names)
    said = f"names only {names} ({100 * only.share:.0f} % of test rows)"
    if only.runs < only.of:
        those = "this" if only.runs == 1 else "these"
        return f"{said} in {only.runs} of {only.of} runs: {those} did not learn"
    return f"{said}: it did not learn"


def brief(value: float) -> str:
    """A cost with two digits or more; empty where it is unknown."""
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.01 else "<0.01"


def predicting(rows: list[Row], *, images: bool) -> list[str]:
    """What the seconds of predictions are of, and on what they were measured."""
    made = "decoding images" if images else "making tokens"
    written = [] if images else [row.title for row in rows if not row.length.tokens]
    but = f" ({', '.join(written)}: with counting the terms)" if written else ""
    places = sorted({row.hardware for row in rows if row.hardware})
    return [
        f"Seconds for 1,000 {'images' if images else 'texts'}: to predict the rows of test in batches on "
        f"{' or '.join(places)}, without loading the model and {made}{but}."
    ]


def duration(row: Row) -> str:
    """How long a method was trained, and whether that was enough."""
    length = row.length
    if not length.steps:
        return "fitted"
    told = f"{length.steps:,.0f}\N{NO-BREAK SPACE}steps, {number(length.epochs)}\N{NO-BREAK SPACE}epochs"
    if not length.hardly:
        return told
    return f"{told}: {'too few' if length.steps < SHORT else 'still rising'}"


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
        lines[-1].append(Cell(taken or "nothing else; others are taken for it"))
    heads = ["class", "training rows", "test rows", "F1", "its test rows are taken for"]
    caption = (
        f"The {counted(len(found), 'class')} of the lowest F1 of the leader"
        if len(found) > 1
        else "The worst class"
    )
    return sheet(caption, heads, lines, [], words={heads[0], heads[-1]})


def sheet(caption: str, heads: list[str], lines: list, notes: list[str], *, words: set[str]) -> Sheet:
    """A table of numbers, which stay on a line, but for the columns of words."""
    align = ["l" if head in words else "r" for head in heads]
    return Sheet(caption, "", [("", len(heads))], heads, align, [Block("", lines)], notes)
