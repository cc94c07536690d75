"""Scores of methods: reported | ours (mean, SD over seeds) | difference | n, per data set and on average."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt import metrics, records
from tailprompt.sheet import Block, Cell, Sheet, number
from tailprompt.tables.comparison import gains, winners
from tailprompt.tables.notes import remarks, sentence

AVERAGE = "avg"
TITLES = {"accuracy": "Accuracy", "f1": "F1", "precision": "Precision", "recall": "Recall"}
GROUPS = {"all": "", "head": "Head", "tail": "Tail", "many": "Many", "medium": "Medium", "few": "Few"}
AS_RELEASED = "-as-released"
TESTED = ("gain", "low", "high", "p")


def scores(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """The table's numbers (points), laid out by metric for LaTeX and by data set for Markdown."""
    found = records.runs(root, spec)
    table = records.scores(found)
    chosen = {}
    if "choose" in spec:
        chosen = records.choose(table, spec["choose"]["by"])
        found = found[
            [chosen.get((run.dataset, run.method), run.run) == run.run for run in found.itertuples()]
        ]
        table = table[[chosen.get((row.dataset, row.method)) == row.run for row in table.itertuples()]]
    reports = records.reports(root, spec)
    long = ours(table, found, spec)
    long = with_reported(long, records.reported(spec["paper"]), spec, reports)
    long = with_comparison(long, found, spec, reports)
    if spec.get("average") and len(reports) > 1:
        long = pd.concat([long, average(long, spec, reports)], ignore_index=True)
    long = long.assign(table=spec["name"], difference=long.ours - long.reported)
    notes = [*winners(table, found, spec, reports), *remarks(found, chosen, long, spec, reports)]
    many = len(reports) > 1
    by_metric, by_dataset = (layout(long, spec, reports, notes, outer) for outer in ("metric", "dataset"))
    return long, by_metric if many else by_dataset, by_dataset


def ours(table: pd.DataFrame, found: pd.DataFrame, spec: dict) -> pd.DataFrame:
    """A row for each data set, method and metric: mean, spread and n over the seeds that are there."""
    test = table[(table.split == "test") & table.value.notna()]
    values = test.groupby(["dataset", "method", "score"], sort=False).value.agg(list).to_dict()
    rows = []
    for (dataset, method), part in found.groupby(["dataset", "method"], sort=False):
        missing = ",".join(str(seed) for seed in part[~part.there].seed)
        splits = {run.get("selection_split", "dev") for run in part[part.there].record}
        for metric in spec["metrics"]:
            seen = [100 * value for value in values.get((dataset, method, metric), [])]
            row = {"dataset": dataset, "method": method, "metric": metric, "run": part.run.iloc[0]}
            row |= {"backbone": part.backbone.iloc[0], "missing_seeds": missing, "n": len(seen)}
            row |= {"selection_split": ",".join(sorted(splits))}
            rows.append(row | {"ours": np.mean(seen) if seen else np.nan, "spread": metrics.spread(seen)})
    place = ["dataset", "method", "metric", "run", "backbone", "selection_split", "missing_seeds"]
    columns = [*place, "n", "ours", "spread"]
    return pd.DataFrame(rows, columns=columns).astype({"ours": float, "spread": float})


def with_reported(long: pd.DataFrame, printed: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Beside each number the printed one of its data set and method (an as-released row has its method's)."""
    printed = printed[printed.table == spec.get("beside", spec["name"])][
        ["dataset", "method", "metric", "value", "spread", "page"]
    ]
    names = {"dataset": "key", "method": "row", "value": "reported", "spread": "reported_spread"}
    keys = {dataset: report.get("reported") or f"none: {dataset}" for dataset, report in reports.items()}
    rows = long.assign(
        key=long.dataset.map(lambda name: keys.get(name, name)),
        row=long.method.str.removesuffix(AS_RELEASED),
    )
    merged = rows.merge(printed.rename(columns=names), on=["key", "row", "metric"], how="left")
    types = {"reported": float, "reported_spread": float}
    return merged.drop(columns=["key", "row"]).astype(types)


def with_comparison(long: pd.DataFrame, found: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Gain over the table's first method on the seeds both have: points, 95% interval and p."""
    first = spec["methods"][0]["name"] if spec["methods"] else None
    tested = {}
    for dataset, report in reports.items():
        tested |= gains(found[found.dataset == dataset], first, spec["metrics"], report)
    keys = zip(long.dataset, long.method, long.metric, strict=True)
    values = pd.DataFrame([tested.get(key, (np.nan,) * 4) for key in keys], columns=TESTED, index=long.index)
    return pd.concat([long.assign(versus=first), values], axis=1)


def average(long: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Means over data sets of methods run on all; the paper's beside them if the sets are its own."""
    means = long.groupby(["method", "metric"], sort=False).agg(
        ours=("ours", lambda values: values.mean(skipna=False)), n=("n", "min")
    )
    rows = means.reset_index().assign(dataset=AVERAGE, spread=np.nan, versus=None)
    printed = records.reported(spec["paper"])
    shown = printed[printed.table == spec.get("beside", spec["name"])]
    columns = shown[shown.dataset != AVERAGE].dataset
    same = {report.get("reported") for report in reports.values()} == set(columns)
    return with_reported(rows, printed if same else printed.iloc[:0], spec, reports)


def layout(long: pd.DataFrame, spec: dict, reports: dict, notes: list[str], outer: str) -> Sheet:
    """Blocks of rows by `outer`, groups of columns by the other of metric and dataset."""
    inner = {"metric": "dataset", "dataset": "metric"}[outer]
    titles = {
        "dataset": {
            name: reports[name]["title"] if name in reports else "Average" for name in long.dataset.unique()
        },
        "metric": {name: metric_title(name) for name in spec["metrics"]},
    }
    shown = {name: columns(long[long[inner] == name], outer) for name in titles[inner]}
    groups, heads = [("", 1)], ["Method"]
    for name, title in titles[inner].items():
        groups.append((title, len(shown[name])) if len(shown[name]) > 1 else ("", 1))
        heads += shown[name] if len(shown[name]) > 1 else [title]
    if outer == "dataset":
        groups, heads = [*groups, ("", 1)], [*heads, "n"]
    cells = {(row.dataset, row.metric, row.method): row for row in long.itertuples()}
    best = long.groupby(["dataset", "metric"])[["ours", "reported"]].max().round(1)
    blocks = []
    for name, title in titles[outer].items():
        rows = []
        for method in spec["methods"]:
            keys = [(name, other) if outer == "dataset" else (other, name) for other in titles[inner]]
            picked = [cells[(*key, method["name"])] for key in keys]
            row = [Cell(sentence(method["title"]))]
            for key, other, one in zip(keys, titles[inner], picked, strict=True):
                row += numbers(one, best.loc[key], shown[other])
            rows.append(row + ([Cell(number(picked[0].n or None, 0))] if outer == "dataset" else []))
        blocks.append(Block(title, rows))
    label = f"tab:{spec['paper']}-{spec['name']}"
    return Sheet(spec["caption"], label, groups, heads, "l" + "r" * (len(heads) - 1), blocks, notes)


def columns(part: pd.DataFrame, outer: str) -> list[str]:
    """Heads under one data set or metric: those of the paper only where it prints something there."""
    both = part.reported.notna().any()
    return (["reported", "ours", "diff."] if both else ["ours"]) + (["n"] if outer == "metric" else [])


def numbers(one, best: pd.Series, heads: list[str]) -> list[Cell]:
    """The cells of one method under those heads."""
    made = {
        "reported": Cell(
            number(one.reported), number(one.reported_spread), best=round(one.reported, 1) == best.reported
        ),
        "ours": Cell(
            number(one.ours), number(one.spread), "*" if one.p < 0.05 else "", round(one.ours, 1) == best.ours
        ),
        "diff.": Cell(number(one.difference, signed=True)),
        "n": Cell(number(one.n or None, 0)),
    }
    return [made[head] for head in heads]


def metric_title(name: str) -> str:
    """A score's name for people: `f1/tail` is Tail F1."""
    metric, _, group = name.partition("/")
    return f"{GROUPS.get(group, group.removeprefix('class:'))} {TITLES.get(metric, metric)}".strip()
