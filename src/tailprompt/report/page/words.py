"""The sentences and tables of the page."""

from __future__ import annotations

import shlex

import numpy as np

from tailprompt.errors import counted
from tailprompt.report import verdicts
from tailprompt.report.page import data_words, evidence
from tailprompt.report.page.evidence import LEAST, More, Row, Worst
from tailprompt.report.page.lengths import SHORT
from tailprompt.report.page.sheets import alone, brief
from tailprompt.report.sheet import chance, number
from tailprompt.tasks import metrics

NAMED = 8  # classes without an F1 that are named


def headline(rows: list[Row], score: str, report: dict, *, of: int = 0) -> str:
    """Who wins against every other method, or who leads and why nobody wins. of: methods that were asked."""
    first = rows[0]
    said = f"{metrics.title(score)} {number(first.scores[score])} on test"
    others = [row for row in rows[1:] if row.learned]
    if len(rows) == 1:
        return f"{first.title} is the only method with all its runs: {said}{longer(first)}."
    if not others and not first.learned:
        return f"No method learned: {first.title} has {said}."
    if not others:
        return f"{first.title} is the only method that learned: {said}{longer(first)}."
    trained = [row for row in others if row.judged]
    nearest = min(trained or others, key=lambda row: (-row.dev, row.seconds, row.method))  # as the table
    some = " of those that learned" if len(others) < len(rows) - 1 else ""
    some = " of those trained enough" if 0 < len(trained) < len(others) else some
    beside = f"{said}, {lead(nearest)} against {nearest.title}, the next on dev{some}{longer(first)}"
    if evidence.wins(rows):
        every = " against every other method" if len(rows) > 2 else ""
        ran = " that learned" if some else " that ran" if of > len(rows) else ""
        return f"{first.title} wins{every}{ran}: {beside}."
    why = unsettled(rows, score, report)
    best, why = max(others, key=lambda row: row.scores[score]), f"{why}. {first.title} has {beside}"
    if best.scores[score] > first.scores[score]:
        ahead = (
            f"{best.title} has the best test score, {number(best.scores[score])} ({number(best.dev)} on dev)"
        )
        return f"{first.title} is the best on dev ({number(first.dev)}), but {why}. {ahead}."
    return f"{first.title} leads, but {why}."


def unsettled(rows: list[Row], score: str, report: dict) -> str:
    """Why no method wins."""
    if evidence.too_small(score, report):
        return "the test set is too small for a verdict"
    if not rows[0].learned:
        return "it did not learn, so that is no verdict"
    short = [row for row in rows[1:] if row.learned and not row.judged]
    left = [row for row in rows[1:] if row.judged and evidence.verdict(row, rows) != evidence.WORSE]
    if left or not short:
        return "no method wins clearly"
    if any(row.judged for row in rows[1:]):
        was, them = ("was", "it") if len(short) == 1 else ("were", "them")
        return f"{listed(short)} {was} hardly trained, so there is no verdict on {them}"
    others = "all methods" if rows[0].length.hardly else "all other methods"
    return f"{others} were hardly trained, so that is no verdict"


def longer(row: Row) -> str:
    """That more steps may change the score of the leader, if it was hardly trained."""
    if row.judged or not row.learned:
        return ""
    if row.length.steps < SHORT:
        return (
            f"; it took only {counted(round(row.length.steps), 'step')}, and more steps may raise its score"
        )
    return "; its score on dev was still rising when its steps ended, and more steps may raise it"


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
        return ["There is nothing to compare it with yet.", *doubts(rows)]
    if evidence.too_small(score, report):
        return [data_words.few_rows(score, report), *doubts(rows)]
    others = [row for row in rows[1:] if row.judged and rows[0].learned]
    near = [row for row in others if evidence.verdict(row, rows) != evidence.WORSE]
    if not near:
        learned = [row for row in rows[1:] if row.learned]
        which = " that learned" if len(learned) < len(rows) - 1 else ""
        which = " that were trained enough" if len(others) < len(learned) else which
        return [*([f"All other methods{which} score clearly lower."] if others else []), *doubts(rows)]
    told = any(evidence.verdict(row, rows) == evidence.NEAR for row in near)  # else all p are unknown
    words = (
        f"{'Not clearly worse' if told else 'No verdict on'}: {listed(near)}. It takes more seeds or test "
        "rows to tell them apart."
    )
    best = max(near, key=lambda row: row.lead[0])
    if best.seconds < rows[0].seconds:
        words += (
            f" The best of these on test, {best.title}, is cheaper: {time(best.seconds)} a run, not "
            f"{time(rows[0].seconds)}."
        )
    return [words, *doubts(rows)]


def cost(row: Row, *, images: bool) -> str:
    """What a run of a method takes, and what its predictions take where that was measured."""
    things = "images" if images else "texts"
    predicts = (
        "" if np.isnan(row.predicting) else f" It predicts 1,000 {things} in {brief(row.predicting)} s."
    )
    return (
        f"A run of {row.title} took {time(row.seconds)} and {row.memory:,.0f} MB here, and trained "
        f"{row.trained:,.0f} parameters.{predicts}"
    )


def doubts(rows: list[Row]) -> list[str]:
    """Which methods did not learn, and which were hardly trained."""
    return [f"{row.title} {alone(row.only)}." for row in rows if row.only] + hardly(rows)


def hardly(rows: list[Row]) -> list[str]:
    """What was hardly trained but for the leader, of which the answer says so, and what to change."""
    short = [row for row in rows if row.learned and not row.judged]
    if not short:
        return []
    others = [row for row in short if row is not rows[0]]
    said = (
        f"Hardly trained, so no verdict on {'them' if len(others) > 1 else 'it'}: {listed(others)}. "
        f"{why_hardly(others)} "
        if others
        else ""
    )
    return [
        f"{said}To train longer, raise epochs and patience in the config, and run the same command again."
    ]


def why_hardly(rows: list[Row]) -> str:
    """What shows that methods were hardly trained."""
    few = [row for row in rows if row.length.steps < SHORT]
    if few and len(few) < len(rows):
        return (
            f"{listed(few)} took fewer than {SHORT} steps, and the score of the others on dev was still "
            "rising at the last evaluation."
        )
    it, its = ("It", "Its") if len(rows) == 1 else ("They", "Their")
    if few:
        return f"{it} took fewer than {SHORT} steps."
    return f"{its} score on dev was still rising at the last evaluation."


def listed(rows: list[Row]) -> str:
    """The titles of methods."""
    *others, last = (row.title for row in rows)
    return f"{', '.join(others)} and {last}" if others else last


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


def left_out(report: dict, found: list[Worst]) -> list[str]:
    """Which classes are not told of, and that no other has an error."""
    counts, names = report["counts"]["test"], report["classes"]
    told = evidence.told_of(counts)
    few = [c for c in range(len(names)) if c not in told]
    words = (
        [] if found else [f"No error in the {counted(len(told), 'class')} with {LEAST} test rows or more."]
    )
    if few:
        shown = ", ".join(data_words.called(c, names) for c in few[:NAMED]) + (
            ", ..." if len(few) > NAMED else ""
        )
        one = len(few) == 1
        words.append(
            f"{counted(len(few), 'class')} {'has' if one else 'have'} fewer than {LEAST} test rows and "
            f"{'is' if one else 'are'} left out here, as an F1 of so few is chance: {shown}."
        )
    return words


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
    if row.learned and not row.judged:
        words += " It was hardly trained, and more steps may change this."
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
