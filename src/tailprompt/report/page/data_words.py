"""The sentences of the page on the data: size, groups of classes, the rarest class, too few test rows."""

from __future__ import annotations

import unicodedata

from tailprompt.errors import brief, counted
from tailprompt.report.figures.style import prints
from tailprompt.report.page import evidence
from tailprompt.tasks import metrics

LONG = 40  # characters of a class, above which the page shows the first ones


def looked(report: dict) -> str:
    """What the data are."""
    counts = [count for count in report["counts"]["train"] if count]
    rows = ", ".join(f"{report['rows'][split]:,} {split}" for split in ("train", "dev", "test"))
    return (
        f"{counted(len(report['classes']), 'class')}; {rows} rows; the largest class has {max(counts):,} "
        f"training rows, the smallest {min(counts):,}. Read as: {report['language']}."
        + (f" Note: {report['note']}." if report.get("note") else "")
        + (" They are a part of the data; sets in the config says what is taken." if partly(report) else "")
        + repeated(report)
    )


def partly(report: dict) -> bool:
    """Whether the data have more training rows than the round took."""
    return "train" in report["row"].get("cut", {})


def repeated(report: dict) -> str:
    """Sentences on test rows that train has too, and on contents with several labels; empty without any."""
    one, said = "an image" if report["language"] == "image" else "a text", ""
    if number := report["shared"]["train,test"]:
        rows = counted(number, "test row", "have")
        said += f" {rows} {one} that train has too, so scores on new rows may be lower."
    if number := report["conflicts"]:
        said += f" {counted(number, one.split()[1], 'have')} several labels, of which a method can give one."
    return said


def grouped(report: dict, names: list[str]) -> list[str]:
    """What the groups of classes are in this data set, in a sentence; nothing where none is shown.

    names: of the groups. Head and tail are by the rows of test, or of train if the data set says so.
    """
    found, told = report["groups"]["test"], []
    source = report.get("head_source", "test")
    for name in (name for name in names if name in found):
        split = source if name in ("head", "tail") else "train"
        told.append(group(name, [report["counts"][split][c] for c in found[name]], split))
    return [f"Groups of classes: {'; '.join(told)}."] if told else []


def group(name: str, rows: list[int], split: str) -> str:
    """A clause on a group. rows: of each of its classes in this split."""
    if not rows:
        return f"{name}, none"
    least, most = min(rows), max(rows)
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    kind = "training" if split == "train" else split
    return f"{name}, {counted(len(rows), 'class')} with {each} {kind} {'row' if most == 1 else 'rows'}"


def rare(report: dict, names: list[str]) -> list[str]:
    """Which class is the rarest, if one of the scores is of it."""
    if not any(name.endswith(f"/{metrics.RAREST}") for name in names):
        return []
    ids = metrics.rarest(report)
    called = ", ".join(isolated(report["classes"][c]) for c in ids)
    rows = {split: sum(report["counts"][split][c] for c in ids) for split in ("train", "test")}
    each = f"{rows['train']:,} training and {counted(rows['test'], 'test row')}"
    return [f"Rarest class, which the scores are of: {called}, with {each}."]


def few_rows(score: str, report: dict) -> str:
    """How many test rows there are, of all and of the classes that the score is of, and how many it takes."""
    counts, scored = report["counts"]["test"], evidence.tested(score, report)
    classes, of = counted(len(scored), "class"), "a class"
    if len(scored) < sum(n > 0 for n in counts):
        classes = f"which {sum(scored):,} are of the {classes} that {metrics.title(score)} is of"
        of = "a class that the score is of"
    return (
        f"The test set has {counted(sum(counts), 'row')}, of {classes}. A verdict takes {evidence.SMALLEST} "
        f"rows at least, and on average {evidence.EACH} of {of}: label more, or give more of the data to "
        "test (shares in the row of the data set)."
    )


def called(c: int, names: list[str]) -> str:
    """The name of a class, with its number where the pictures have no letters for it."""
    if c >= len(names):
        return "no class"
    name = isolated(names[c])
    return name if prints(names[c]) and len(names[c]) <= LONG else f"{name} (class {c})"


def isolated(name: str) -> str:
    """A name, marked where it is written from right to left, so that numbers after it stay after it."""
    leftwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in name)
    name = brief(name, LONG)
    return f"\u2068{name}\u2069" if leftwards else name
