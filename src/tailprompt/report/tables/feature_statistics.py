"""How well the features of each method separate classes (LPT Tables 2, 10 and 13)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.report import records, separability, separated
from tailprompt.report.sheet import Sheet
from tailprompt.report.tables.layout import Measure, layout
from tailprompt.report.tables.notes import absent, data_notes, origin, printed_notes
from tailprompt.report.tables.scores import spread, with_reported

MEASURES = {
    "inner/mean": Measure("R, mean over classes", 2, None),
    "inner/sd": Measure("R, SD over classes", 2, None),
    "inter": Measure("D", 2, None),
    "gamma": Measure("R / D", 3, "min"),
}
READING = (
    "R: mean Euclidean distance of a class's examples to their centre. D: mean distance of two centres. Both "
    "of test examples, on the vectors that the classifier sees. K-NN: accuracy on test of the majority of "
    "the K nearest training examples by cosine; the paper states no K, so its number stands beside each."
)


def feature_statistics(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """The mean and SD over seeds of each statistic; K-NN is in points."""
    runs, reports = records.runs(root, spec), records.reports(root, spec)
    each = [measured(runs[runs.dataset == name], spec["separability"], reports[name]) for name in reports]
    long = pd.concat(each, ignore_index=True)
    printed = beside_each(records.printed(spec), spec["separability"])
    long = with_reported(long, printed, spec, reports)
    long = long.assign(table=spec["name"], difference=long.ours - long.reported, p=np.nan)
    titles = {name: report["title"] for name, report in reports.items()}
    measures = {name: measure(name) for name in spec["separability"]}
    notes = [origin(runs, spec), READING, *absent(runs, reports, spec), *data_notes(reports)]
    sheet = layout(
        long, measures, titles, spec, [*notes, *printed_notes(long, spec), *records.mixtures(runs)], "dataset"
    )
    return long, sheet, sheet


def measure(name: str) -> Measure:
    """How the column of a statistic is shown."""
    return MEASURES.get(name) or Measure(f"{name.removeprefix(separability.KNN)}-NN accuracy")


def measured(runs: pd.DataFrame, names: list[str], report: dict) -> pd.DataFrame:
    """A row for each method and statistic on one data set: mean, spread and n over the existing seeds."""
    rows = []
    for method, part in runs.groupby("method", sort=False):
        seeds = [of_run(folder, names, len(report["classes"])) for folder in part[part.there].folder]
        for name in names:
            values = [values[name] for values in seeds]
            line = {"dataset": part.dataset.iloc[0], "method": method, "metric": name, "n": len(values)}
            line |= {"ours": np.mean(values) if values else np.nan, "spread": spread(values)}
            rows.append(line | {"backbone": part.backbone.iloc[0]})
    return pd.DataFrame(rows).astype({"ours": float, "spread": float})


def of_run(folder: Path, names: list[str], classes: int) -> dict[str, float]:
    """The statistics of one run; K-NN is in points."""
    values = separated.statistics(folder, names, np.ones((1, classes)))
    units = {name: 100 if name.startswith(separability.KNN) else 1 for name in names}
    return {name: units[name] * float(values[name][0]) for name in names}


def beside_each(printed: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The printed numbers, with those of K-NN repeated for each K because the paper states no K."""
    unstated = printed[printed.metric == separability.KNN.rstrip("/")]
    numbers = [name for name in names if name.startswith(separability.KNN)]
    return pd.concat([printed, *(unstated.assign(metric=name) for name in numbers)], ignore_index=True)
