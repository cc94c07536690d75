"""The sheet of every table that compares methods on data sets: methods in rows, reported beside ours.

`long` has a row for each dataset, metric and method, with the columns ours, spread, n, p, reported,
reported_spread and difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tailprompt.report.sheet import Block, Cell, Sheet, greek, number


@dataclass(frozen=True)
class Measure:
    """How a column is shown: its title, its decimals (more if the paper prints more), and what is best."""

    title: str
    places: int = 1
    best: str | None = "max"


def layout(
    long: pd.DataFrame,
    measures: dict[str, Measure],
    titles: dict[str, str],
    spec: dict,
    notes: list[str],
    outer: str,
) -> Sheet:
    """A sheet with blocks of rows by `outer` and groups of columns by the other of metric and dataset.

    titles: titles of the data sets by name.
    """
    inner = {"metric": "dataset", "dataset": "metric"}[outer]
    named = {"dataset": titles, "metric": {name: measure.title for name, measure in measures.items()}}
    shown = {name: columns(long[long[inner] == name], outer) for name in named[inner]}
    groups, heads = [("", 1)], ["Method"]
    for name, title in named[inner].items():
        groups.append((title, len(shown[name])) if len(shown[name]) > 1 else ("", 1))
        heads += shown[name] if len(shown[name]) > 1 else [title]
    if outer == "dataset":
        groups, heads = [*groups, ("", 1)], [*heads, "n"]
    cells = dict(
        zip(zip(long.dataset, long.metric, long.method, strict=True), long.itertuples(), strict=True)
    )
    looks = {key: look(part, measures[key[1]]) for key, part in long.groupby(["dataset", "metric"])}
    blocks = []
    for name, title in named[outer].items():
        keys = [(name, other) if outer == "dataset" else (other, name) for other in named[inner]]
        rows = []
        for method in spec["methods"]:
            picked = [cells[(*key, method["name"])] for key in keys]
            row = [Cell(greek(method["title"]))]
            for key, other, one in zip(keys, named[inner], picked, strict=True):
                row += numbers(one, *looks[key], shown[other])
            rows.append(row + ([Cell(number(picked[0].n or None, 0))] if outer == "dataset" else []))
        blocks.append(Block(title, rows))
    label = f"tab:{spec['paper']}-{spec['name']}"
    return Sheet(spec["caption"], label, groups, heads, "l" + "r" * (len(heads) - 1), blocks, notes)


def columns(part: pd.DataFrame, outer: str) -> list[str]:
    """The heads under one data set or metric; `reported` and `diff.` only if the paper prints a number."""
    both = part.reported.notna().any()
    return (["reported", "ours", "diff."] if both else ["ours"]) + (["n"] if outer == "metric" else [])


def look(part: pd.DataFrame, measure: Measure) -> tuple[int, dict[str, float]]:
    """The decimals of one metric on one data set, and the best number, reported and ours."""
    printed = [str(value).partition(".")[2] for value in part.reported.dropna()]
    places = max([measure.places, *(len(decimals) for decimals in printed if decimals != "0")])
    best = {name: part[name].agg(measure.best) if measure.best else None for name in ("reported", "ours")}
    return places, best


def numbers(one, places: int, best: dict[str, float | None], heads: list[str]) -> list[Cell]:
    """The cells of one method under `heads`."""
    winner = {
        name: value is not None and round(getattr(one, name), places) == round(value, places)
        for name, value in best.items()
    }
    by_head = {
        "reported": Cell(
            number(one.reported, places), number(one.reported_spread, places), best=winner["reported"]
        ),
        "ours": Cell(
            number(one.ours, places), number(one.spread, places), "*" if one.p < 0.05 else "", winner["ours"]
        ),
        "diff.": Cell(number(one.difference, places, signed=True)),
        "n": Cell(number(one.n or None, 0)),
    }
    return [by_head[head] for head in heads]
