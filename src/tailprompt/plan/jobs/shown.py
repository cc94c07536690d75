"""What the jobs of tables and figures take and are told, and the files that they make."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import named
from tailprompt.plan import blocks
from tailprompt.plan.dependencies import sources

PACKAGES = {"tabulate": "tailprompt.report.tables", "draw": "tailprompt.report.figures"}


def block(everything: dict, what: str, paper: str, name: str) -> dict:
    """The block of a table or figure, expanded. everything: of `blocks.shown`."""
    found = {one: spec for (*of, one), spec in everything.items() if of == [what, paper]}
    return named(found, name, f"{what[:-1]} of {paper} at this scale")


def code(block: dict, *, stage: str) -> list[str]:
    """The code that makes a table or figure: the stage's (tabulate, draw), and its kind's alone."""
    package = PACKAGES[stage]
    shared = sources(f"tailprompt.{stage}", without=package)
    return sorted({*shared, *sources(f"{package}.{block['kind']}")})


def scores(block: dict) -> list[str]:
    """The scores of each run that a table or figure takes.

    Scores stand for all files of a run: they are made after them and again with them, and a job then has
    one input a run instead of five.
    """
    runs = f"results/{block['scale']}/runs"
    return [f"{runs}/{point.path}/scores.parquet" for point in blocks.points(block)]


def reports(block: dict) -> list[str]:
    """The reports of the data sets that a table or figure takes."""
    return [f"results/{block['scale']}/data/{row['dataset']}.json" for row in block["datasets"]]


def reported(block: dict) -> str | list:
    """The paper's printed numbers, where they are transcribed."""
    file = f"config/reported/{block['paper']}.csv"
    return file if Path(file).is_file() else []


def drawn_beside(block: dict) -> str | list:
    """The printed numbers, for a figure of a kind that draws them."""
    return reported(block) if block["kind"] == "accuracy_by_parameters" else []


def targets(everything: dict, scale: str, what: str, *suffixes: str) -> list[str]:
    """The files of all tables or figures that a scale makes."""
    return [
        f"results/{scale}/{what}/{paper}/{name}.{suffix}"
        for kind, paper, name in everything
        if kind == what
        for suffix in suffixes
    ]
