"""The sentences and tables of the page."""

from __future__ import annotations

import shlex

import numpy as np

from tailprompt.errors import counted
from tailprompt.report import verdicts
from tailprompt.report.figures.style import prints
from tailprompt.report.page import data_words, evidence
from tailprompt.report.page.evidence import LEAST, More, Row, Worst
from tailprompt.report.page.lengths import SHORT
from tailprompt.report.sheet import Block, Cell, Sheet, chance, number
from tailprompt.tasks import metrics

NAMED = 8  # classes without an F1 that are named


def headline(rows: list[Row], score: str, report: dict, *, of: int = 0) -> str:
    """Who wins against every other method, or who leads and why nobody wins. of: methods that were asked."""
    first = rows[0]
    said = f"{metrics.title(score)} {number(first.scores[score])} on test"
    if len(rows) == 1:
        return f"{first.title} is the only method with all its runs: {said}."
    nearest = min(rows[1:], key=lambda row: (-row.dev, row.seconds, row.method))  # as the table has it
    beside = f"{said}, {lead(nearest)} against {nearest.title}, the next on dev"
    if evidence.wins(rows):
        every = " against every other method" if len(rows) > 2 else ""
        ran = " that ran" if of > len(rows) else ""
        return f"{first.title} wins{every}{ran}: {beside}."
    why = "no method wins clearly"
    if evidence.too_small(score, report):
        why = "the test set is too small for a verdict"
    elif all(row.worse for row in rows[1:]):
        short = [row for row in rows[1:] if row.length.hardly]
        why = f"against {listed(short)}, hardly trained, that is no verdict"
    best = max(rows[1:], key=lambda row: row.scores[score])
    if best.scores[score] > first.scores[score]:
        ahead = (
            f"{best.title} has the best test score, {number(best.scores[score])} ({number(best.dev)} on dev)"
        )
        return f"{first.title} is the best on dev ({number(first.dev)}), but {why}: {beside}. {ahead}."
    return f"{first.title} leads, but {why}: {beside}."


def lead(row: Row) -> str:
    """How far the leader is before a method, and how sure that is."""
    points, low, high, p = row.lead
    said = f"{number(-points, signed=True)} points"
    if np.isnan(low):
        return f"{said} ({unknown(len(row.seeds))})"
    if np.isnan(p):  # too few rows for a verdict, and for an interval that says anything
        return said
    return (
        f"{said} (95 % interval {number(-high, signed=True)} to {number(-low, signed=True)}, p {chance(p)})"
    )


def unknown(seeds: int) -> str:
    """Why there is no interval."""
    return "no interval: one seed" if seeds < 2 else "no interval: the scores never vary"


def advice(rows: list[Row], score: str, report: dict) -> list[str]:
    """What is as good as can be told and cheaper, what was hardly trained, or that nothing is left open."""
    if len(rows) == 1:
        return ["There is nothing to compare it with yet."]
    if evidence.too_small(score, report):
        return [data_words.few_rows(score, report), *hardly(rows)]
    near = [row for row in rows[1:] if not row.worse]
    if not near:
        return ["All other methods score clearly lower.", *hardly(rows)]
    words = f"Not clearly worse: {listed(near)}. It takes more seeds or test rows to tell them apart."
    best = max(near, key=lambda row: row.lead[0])
    if best.seconds < rows[0].seconds:
        words += (
            f" The best of these on test, {best.title}, is cheaper: {time(best.seconds)} a run, not "
            f"{time(rows[0].seconds)}."
        )
    return [words, *hardly(rows)]


def cost(row: Row) -> str:
    """What a run of a method takes."""
    return (
        f"A run of {row.title} took {time(row.seconds)} and {row.memory:,.0f} MB here, and trained "
        f"{row.trained:,.0f} parameters."
    )


def hardly(rows: list[Row]) -> list[str]:
    """What was hardly trained, and what to change."""
    short = [row for row in rows if row.length.hardly]
    if not short:
        return []
    return [
        f"Hardly trained, so not a verdict on them: {listed(short)}. They took fewer than {SHORT} steps, or "
        "dev was still rising at the last evaluation; raise epochs and patience in the config, and run the "
        "same command again."
    ]


def listed(rows: list[Row]) -> str:
    """The titles of methods."""
    return ", ".join(row.title for row in rows)


def trained(rows: list[Row]) -> str:
    """How much the methods were trained."""
    by_steps = [row.length for row in rows if row.length.steps]
    seen = f"{rows[0].length.rows:,} rows"
    if not by_steps:
        return f"Trained on {seen}, by heads that are fitted without steps."
    steps = [f"{n:,}" for n in sorted({round(each.steps) for each in by_steps})]
    epochs = list(dict.fromkeys(number(each) for each in sorted(each.epochs for each in by_steps)))
    return (
        f"Trained on {seen}; methods that learn by steps took {span(steps)} steps ({span(epochs)} "
        f"{'epoch' if epochs == ['1.0'] else 'epochs'})."
    )


def read(rows: list[Row]) -> list[str]:
    """How much of the texts the methods read, and how many texts are longer."""
    most: dict[int, float] = {}
    for row in rows:  # a template leaves less of a text
        if tokens := row.length.tokens:
            most[tokens] = max(row.length.cut, most.get(tokens, 0.0))
    whole = [row.title for row in rows if not row.length.tokens]
    others = f" ({', '.join(whole)}: whole)" if whole else ""
    return [
        f"Of each text the first {tokens} tokens are read{others}; {100 * cut:.0f} % of the texts are "
        "longer. A larger max_length in the config reads more and takes longer."
        if cut
        else f"Texts are read whole: none has more than {tokens} tokens."
        for tokens, cut in sorted(most.items())
    ]


def span(values: list) -> str:
    """The least and the largest of some sorted values."""
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def time(seconds: float) -> str:
    """A duration for people."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def methods(rows: list[Row], names: list[str], metric: str, groups: list[str], *, searched: str) -> Sheet:
    """Methods by score: the lead of the leader, groups of classes by `metric`, training, cost.

    names: the score that decides, and others beside it. searched: what searches the settings of each method,
    if these were not chosen on dev for each.
    """
    score, *others = names
    of = "" if score.startswith(f"{metric}/") else f" {metrics.METRICS[metric]}"
    heads = ["method", metrics.title(score), "behind by", *(f"{metrics.GROUPS[name]}{of}" for name in groups)]
    heads += [metrics.title(name) for name in others]
    heads += ["trained for", "trained parameters", "seconds a run", "memory, MB"]
    shown = [f"{metric}/{name}" for name in groups] + others
    best = {name: max(row.scores[name] for row in rows) for name in shown}
    lines = []
    for place, row in enumerate(rows):
        spread = number(float(np.std(row.seeds, ddof=1))) if len(row.seeds) > 1 else ""
        cells = [Cell(row.title, best=place == 0), Cell(number(row.scores[score]), spread, best=place == 0)]
        cells += [Cell(behind(row) if place else "")]
        cells += [Cell(number(row.scores[name]), best=row.scores[name] == best[name]) for name in shown]
        cells += [Cell(duration(row))]
        cells += [Cell(f"{row.trained:,.0f}"), Cell(number(row.seconds, 0)), Cell(f"{row.memory:,.0f}")]
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
        "ran on it."
    ]
    if searched:
        notes.append(f"One learning rate a method, not searched: a first round. {searched} searches it.")
    return sheet("Methods", heads, lines, notes, words=1)


def duration(row: Row) -> str:
    """How long a method was trained, and whether that was enough."""
    length = row.length
    if not length.steps:
        return "fitted"
    told = f"{length.steps:,.0f} steps, {number(length.epochs)} epochs"
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
    return sheet(caption, heads, lines, [], words=1, last="l")


def left_out(report: dict, found: list[Worst]) -> list[str]:
    """Which classes are not told of, and that no other has an error."""
    counts, names = report["counts"]["test"], report["classes"]
    told = evidence.told_of(counts)
    few = [c for c in range(len(names)) if c not in told]
    words = (
        [] if found else [f"No error in the {counted(len(told), 'class')} with {LEAST} test rows or more."]
    )
    if few:
        shown = ", ".join(called(c, names) for c in few[:NAMED]) + (", ..." if len(few) > NAMED else "")
        one = len(few) == 1
        words.append(
            f"{counted(len(few), 'class')} {'has' if one else 'have'} fewer than {LEAST} test rows and "
            f"{'is' if one else 'are'} left out here, as an F1 of so few is chance: {shown}."
        )
    return words


def called(c: int, names: list[str]) -> str:
    """The name of a class, with its number where the pictures have no letters for it."""
    if c >= len(names):
        return "no class"
    name = data_words.isolated(names[c])
    return name if prints(names[c]) else f"{name} (class {c})"


def sheet(caption: str, heads: list[str], lines: list, notes: list[str], *, words: int, last="r") -> Sheet:
    """A table with words in the first columns (and perhaps the last), numbers in the others."""
    align = ["l"] * words + ["r"] * (len(heads) - words - 1) + [last]
    return Sheet(caption, "", [("", len(heads))], heads, align, [Block("", lines)], notes)


def growth(data: More, row: Row, *, leads: bool, small: bool = False, part: bool = False) -> str:
    """What more data gave a method, and what that says of still more.

    leads: whether it is the leader. small: whether the test set has too few rows for a verdict.
    part: whether the data have more training rows than the round took.
    """
    sizes = sorted(data.points[data.points.method == row.method].rows)
    if data.effect is None or len(sizes) < 2:
        return "What more data would give is unknown: no run on a part of the data is finished."
    low, high = evidence.on_scale(*verdicts.interval(data.effect))
    ends = f"95 % interval {number(low, signed=True)} to {number(high, signed=True)}"
    gain = f"{number(data.effect.value, signed=True)} points ({ends})"
    if small:
        gain = f"{number(data.effect.value, signed=True)} points"
    elif np.isnan(low):
        gain = f"{number(data.effect.value, signed=True)} points ({unknown(data.effect.seeds)})"
    words = f"From {sizes[-2]:,} to {sizes[-1]:,} training rows {row.title} gains {gain}."
    if not leads:
        words += " The leader takes longer and was not trained on half of the rows; it may gain more or less."
    if small:
        return f"{words} The test set is too small to tell whether more rows would help."
    if low > 0:
        rows = "The rest of the training rows is" if part else "More labelled rows are"
        return f"{words} {rows} likely to help; as curves flatten, expect less of the same step."
    return f"{words} This round cannot tell whether more rows would help."


def command(folder: str, kept: bool, method: str, *, images: bool) -> list[str]:
    """How to predict new rows with the leader."""
    line = f"tailprompt predict {shlex.quote(folder)} {'folder-of-new-images' if images else 'new.csv'}"
    if kept:
        return [line]
    return [f"# first, in the config: methods: {{{method}: {{keep: true}}}}, and snakemake again", line]
