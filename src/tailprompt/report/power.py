"""How often the test of a claim is wrong, and how often it finds what is there, by simulation.

python -m tailprompt.report.power

It makes the two tables of docs/statistics.md anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailprompt.errors import stage
from tailprompt.files import whole
from tailprompt.report import uncertainty
from tailprompt.report.bootstrap import DRAWS
from tailprompt.report.verdicts import ALPHA

DOCUMENT = Path("docs/statistics.md")
SEEDS, RATIOS = (2, 3, 5, 10), (0.0, 0.3, 1.0, 3.0)
FOUND_AT, EFFECTS = (3, 5, 10), (1, 2, 4)
CLAIMS = 40  # of LPT, the most that a paper has
RUNS = 4000


def simulated(
    effect: float, *, seeds: int, ratio: float, runs: int, random: np.random.Generator
) -> np.ndarray:
    """p of no difference in `runs` comparisons of two methods on one data set.

    The difference has an SD of 1 over seeds and of `ratio` over test sets, and is `effect` in truth. The
    variance of so many normal draws of the test set is a multiple of chi-squared.
    """
    measured = effect + random.normal(size=(runs, seeds)) + ratio * random.normal(size=(runs, 1))
    of_test = ratio**2 * random.chisquare(DRAWS - 1, runs) / (DRAWS - 1)
    of_seeds = measured.var(axis=1, ddof=1) / seeds
    size = np.abs(measured.mean(axis=1))
    return 2 * uncertainty.sum_above(size, of_seeds, np.full(runs, seeds - 1), of_test)


def share(p: np.ndarray, level: float) -> str:
    """The share of p below a level, in per cent with one decimal."""
    return f"{100 * (p < level).mean():.1f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose columns hold numbers."""
    lines = [heads, ["--:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def false_verdicts() -> str:
    """The share of true nulls that are decided, by seeds and ratio."""
    rows = []
    for seeds in SEEDS:
        random = np.random.default_rng(seeds)
        ps = [simulated(0.0, seeds=seeds, ratio=ratio, runs=RUNS, random=random) for ratio in RATIOS]
        rows.append([str(seeds), *(share(p, ALPHA) for p in ps)])
    return table(["seeds", *(f"ratio {ratio:g}" for ratio in RATIOS)], rows)


def found() -> str:
    """The share of true effects that are found, of one claim and of one among many."""
    rows = []
    for seeds in FOUND_AT:
        for ratio in RATIOS[:3]:
            random = np.random.default_rng([seeds, 1])
            ps = [simulated(size, seeds=seeds, ratio=ratio, runs=RUNS, random=random) for size in EFFECTS]
            shares = [share(p, level) for level in (ALPHA, ALPHA / CLAIMS) for p in ps]
            rows.append([str(seeds), f"{ratio:g}", *shares])
    heads = [f"{size} SD{among}" for among in ("", f", first of {CLAIMS}") for size in EFFECTS]
    return table(["seeds", "ratio", *heads], rows)


def renewed(text: str) -> str:
    """The document with its tables made again."""
    tables = iter((false_verdicts(), found()))
    return re.sub(r"^\|.*\|$(\n^\|.*\|$)*", lambda _: next(tables), text, flags=re.MULTILINE)


def main() -> None:
    text = renewed(DOCUMENT.read_text("utf-8"))
    with whole(DOCUMENT) as temporary:
        temporary.write_text(text, "utf-8")


if __name__ == "__main__":
    stage(main)
