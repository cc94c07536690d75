"""Scores of methods: reported | ours (mean, SD over seeds) | difference | n, per data set and on average."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.report import records
from tailprompt.report.parameters import counted
from tailprompt.report.sheet import Sheet
from tailprompt.report.tables.comparison import gains, winners
from tailprompt.report.tables.layout import Measure, layout
from tailprompt.report.tables.notes import remarks
from tailprompt.tasks import metrics

AVERAGE = "avg"
AS_RELEASED = "-as-released"
NAMES = ["dataset", "method", "metric"]
PARAMETERS = {
    f"parameters/{kind}": Measure(title, 2, None)
    for kind, title in (("tuned", "Tuned (M)"), ("pool", "Pool (M)"), ("total", "Total (M)"))
}
COUNTED = (
    "Parameters in millions. Tuned: without the classifier, with the prompts of the run that a run starts "
    "from and with the keys of a prompt pool, which LPT does not count. Total: with our classifier."
)
TESTED = ("gain", "low", "high", "p")


def scores(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """The numbers of the table in points, and sheets by metric for LaTeX and by data set for Markdown."""
    names = [*spec["metrics"], *([spec["winner"]] if "winner" in spec else [])]
    runs, table, chosen = records.taken(root, spec, names)
    reports, printed = records.reports(root, spec), records.printed(spec)
    parts = [ours(table, runs, spec)]
    if "parameters" in spec:
        parts.insert(0, counted(runs, spec["parameters"]))
    long = with_reported(pd.concat(parts, ignore_index=True), printed, spec, reports)
    long = with_comparison(long, runs, spec, reports)
    if spec.get("average") and len(reports) > 1:
        long = pd.concat([long, average(long, spec, reports)], ignore_index=True)
    measures = {name: PARAMETERS[name] for name in long.metric.unique() if name in PARAMETERS}
    measures |= {name: Measure(metrics.title(name)) for name in spec["metrics"]}
    long, shown = with_others(long, printed, spec, reports)
    long = long.assign(table=spec["name"], difference=long.ours - long.reported)
    notes = [*winners(table, runs, spec, reports), *remarks(runs, chosen, long, spec, reports)]
    notes += [COUNTED] if "parameters" in spec else []
    names = {name: reports[name]["title"] if name in reports else "Average" for name in long.dataset.unique()}
    by_metric, by_dataset = (
        layout(long, measures, names, shown, notes, outer) for outer in ("metric", "dataset")
    )
    return long, by_metric if len(reports) > 1 else by_dataset, by_dataset


def ours(table: pd.DataFrame, runs: pd.DataFrame, spec: dict) -> pd.DataFrame:
    """A row for each data set, method and metric: mean, spread and n over the existing seeds."""
    test = table[(table.split == "test") & table.value.notna()]
    values = test.groupby(["dataset", "method", "score"], sort=False).value.agg(list).to_dict()
    rows = []
    for (dataset, method), part in runs.groupby(["dataset", "method"], sort=False):
        missing = ",".join(str(seed) for seed in part[~part.there].seed)
        splits = {run.get("selection_split", "dev") for run in part[part.there].record}
        for metric in spec["metrics"]:
            seen = [100 * value for value in values.get((dataset, method, metric), [])]
            row = {"dataset": dataset, "method": method, "metric": metric, "run": part.run.iloc[0]}
            row |= {"backbone": part.backbone.iloc[0], "missing_seeds": missing, "n": len(seen)}
            row |= {"selection_split": ",".join(sorted(splits))}
            rows.append(row | {"ours": np.mean(seen) if seen else np.nan, "spread": spread(seen)})
    place = ["dataset", "method", "metric", "run", "backbone", "selection_split", "missing_seeds"]
    columns = [*place, "n", "ours", "spread"]
    return pd.DataFrame(rows, columns=columns).astype({"ours": float, "spread": float})


def spread(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n - 1), as in GLEE's subscripts; None for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def with_reported(long: pd.DataFrame, printed: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Add to each row the printed number of its data set and method; an as-released row has its method's."""
    printed = printed[printed.table == spec.get("beside", spec["name"])][
        ["dataset", "method", "metric", "value", "spread", "page"]
    ]
    names = {"dataset": "key", "method": "row", "value": "reported", "spread": "reported_spread"}
    keys = {name: records.printed_name(report) or f"none: {name}" for name, report in reports.items()}
    rows = long.assign(
        key=long.dataset.map(lambda name: keys.get(name, name)),
        row=long.method.str.replace(AS_RELEASED, "", regex=False),
    )
    merged = rows.merge(printed.rename(columns=names), on=["key", "row", "metric"], how="left")
    types = {"reported": float, "reported_spread": float}
    return merged.drop(columns=["key", "row"]).astype(types)


def with_comparison(long: pd.DataFrame, runs: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Add to each row the gain over the table's first method on common seeds: points, 95% interval and p."""
    first = spec["methods"][0]["name"] if spec["methods"] else None
    tested = {}
    for dataset, report in reports.items():
        tested |= gains(runs[runs.dataset == dataset], first, spec["metrics"], report)
    keys = zip(long.dataset, long.method, long.metric, strict=True)
    values = pd.DataFrame([tested.get(key, (np.nan,) * 4) for key in keys], columns=TESTED, index=long.index)
    return pd.concat([long.assign(versus=first), values], axis=1)


def with_others(
    long: pd.DataFrame, printed: pd.DataFrame, spec: dict, reports: dict
) -> tuple[pd.DataFrame, dict]:
    """The table and its block, with printed rows of methods that we do not run added at the end."""
    keys = {name: records.printed_name(reports[name]) if name in reports else name for name in long.dataset}
    here = printed[(printed.table == spec.get("beside", spec["name"])) & printed.dataset.isin(keys.values())]
    others = [name for name in here.method.unique() if name in spec.get("others", {})]
    if not others:
        return long, spec
    places = pd.MultiIndex.from_product([keys, others, long.metric.unique()], names=NAMES).to_frame(
        index=False
    )
    rows = places.assign(key=places.dataset.map(keys), n=0).merge(
        here[[*NAMES, "value", "page"]].rename(columns={"dataset": "key", "value": "reported"}),
        on=["key", "method", "metric"],
        how="left",
    )
    titles = [{"name": name, "title": spec["others"][name]} for name in others]
    both = pd.concat([long, rows.drop(columns="key")], ignore_index=True)
    return both, {**spec, "methods": spec["methods"] + titles}


def average(long: pd.DataFrame, spec: dict, reports: dict) -> pd.DataFrame:
    """Means over data sets of methods that ran on all; the paper's beside them if its sets are the same."""
    means = long.groupby(["method", "metric"], sort=False).agg(
        ours=("ours", lambda values: values.mean(skipna=False)), n=("n", "min")
    )
    rows = means.reset_index().assign(dataset=AVERAGE, spread=np.nan, versus=None)
    printed = records.printed(spec)
    shown = printed[printed.table == spec.get("beside", spec["name"])]
    columns = shown[shown.dataset != AVERAGE].dataset
    same = {records.printed_name(report) for report in reports.values()} == set(columns)
    return with_reported(rows, printed if same else printed.iloc[:0], spec, reports)
