"""Statistics of data sets, ours beside the paper's (GLEE Tables 1 and 4)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.report import records
from tailprompt.report.sheet import Block, Cell, Sheet, number
from tailprompt.report.tables.notes import data_notes

# metric, title, decimals, whether papers print it
COLUMNS = [
    ("rows/train", "Train", 0, True),
    ("rows/dev", "Dev", 0, True),
    ("rows/test", "Test", 0, True),
    ("mean_length", "Mean length", 1, True),
    ("classes", "Classes", 0, True),
    ("imbalance", "Imbalance", 0, False),
    ("shared", "Test in train", 0, False),
]


def statistics(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """Counts, classes, imbalance and mean length of each data set, ours and reported."""
    printed = records.printed(spec)
    printed = printed[printed.table == spec["name"]].set_index(["dataset", "metric"]).value
    reports, rows = records.reports(root, spec), []
    for dataset, report in reports.items():
        for metric, ours in measured(report).items():
            reported = printed.get((records.printed_name(report), metric))
            rows.append({"dataset": dataset, "metric": metric, "reported": reported, "ours": ours})
    long = pd.DataFrame(rows, columns=["dataset", "metric", "reported", "ours"])
    long = long.assign(table=spec["name"], difference=long.ours - long.reported.astype(float))
    sheet = layout(long, reports, spec)
    return long, sheet, sheet


def measured(report: dict) -> dict[str, float | None]:
    """The statistics in the report of a data set."""
    rows = {f"rows/{split}": report["rows"].get(split) for split in ("train", "dev", "test")}
    return rows | {
        "mean_length": report.get("mean_length"),
        "classes": len(report["classes"]),
        "imbalance": report.get("imbalance"),
        "shared": report.get("shared", {}).get("train,test"),
    }


def layout(long: pd.DataFrame, reports: dict, spec: dict) -> Sheet:
    """A row for each data set; two columns, reported and ours, where the paper prints a number."""
    cells = long.set_index(["dataset", "metric"])
    both = {metric for metric, part in long.groupby("metric") if part.reported.notna().any()}
    there = {metric for metric, part in long.groupby("metric") if part.ours.notna().any()}
    shown = [column for column in COLUMNS if column[0] in there]
    groups, heads = [("", 1)], ["Data set"]
    for metric, title, _, _ in shown:
        groups.append((title, 2) if metric in both else ("", 1))
        heads += ["reported", "ours"] if metric in both else [title]
    rows = []
    for dataset, report in reports.items():
        row = [Cell(report["title"])]
        for metric, _, places, _ in shown:
            one = cells.loc[(dataset, metric)]
            row += [Cell(number(one.reported, places))] if metric in both else []
            row += [Cell(number(one.ours, places), best=differs(one, places))]
        rows.append(row)
    notes = data_notes(reports)
    if any(cell.best for row in rows for cell in row):
        notes.append("In bold: ours differs from the number the paper prints.")
    length = "Mean length: characters (Chinese) or words. " if "mean_length" in there else ""
    notes.append(
        "Imbalance: examples of the most frequent class per example of the rarest, in train. "
        f"{length}Test in train: test examples that also occur in train."
    )
    align = "l" + "r" * (len(heads) - 1)
    label = f"tab:{spec['paper']}-{spec['name']}"
    return Sheet(spec["caption"], label, groups, heads, align, [Block("", rows)], notes)


def differs(one: pd.Series, places: int) -> bool:
    """Whether our number differs from the reported one when both are rounded as printed."""
    return pd.notna(one.reported) and number(one.ours, places) != number(one.reported, places)
