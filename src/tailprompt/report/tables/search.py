"""Settings tried alike for every method: the dev score of each point, and the best of each method.

No score of test is read. `tailprompt choices` writes what was chosen as a file of the configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tailprompt.errors import BadInput, counted, known
from tailprompt.plan.points import parse
from tailprompt.report import records
from tailprompt.report.sheet import Block, Cell, Sheet, greek, number
from tailprompt.report.tables.notes import FLAGS, data_notes, origin
from tailprompt.tasks import metrics

COLUMNS = ["table", "protocol", "dataset", "method", "run", "score", "n", "dev", "best"]
SEVERAL = 3  # values of a key from which on an end of the range says something
READING = (
    "Scores of dev, never of test. In bold: the best of a method, of equal ones the first. They stand in the "
    ".yaml beside this table, to give as one more --configfile."
)


def search(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """A row for each point of each method and data set: its mean dev score, and whether it is the best."""
    runs, reports = records.runs(root, spec), records.reports(root, spec)
    scores = records.scores(root, runs, [spec["by"]])
    dev = scores[scores.split == "dev"]
    check_dev(runs, dev, reports, spec)
    means = dev.groupby(["dataset", "method", "run"], sort=False).value.agg(["mean", "count"])
    best = records.choose(dev[whole(dev, runs)], spec["by"])
    rows = []
    for run in runs.drop_duplicates(["dataset", "method", "run"]).itertuples():
        key = (run.dataset, run.method)
        mean, n = means.loc[(*key, run.run)] if (*key, run.run) in means.index else (float("nan"), 0)
        chosen = best.get(key) == run.run
        rows.append((spec["name"], spec["protocol"], *key, run.run, spec["by"], int(n), 100 * mean, chosen))
    long = pd.DataFrame(rows, columns=COLUMNS)
    notes = [origin(runs, spec), READING, *at_ends(long, spec, reports), *missing(runs, reports, spec)]
    notes += [*flagged(runs, reports, spec), *data_notes(reports), *spec.get("notes", [])]
    sheet = layout(long, spec, reports, [*notes, *records.mixtures(runs)])
    return long, sheet, sheet


def check_dev(runs: pd.DataFrame, dev: pd.DataFrame, reports: dict, spec: dict) -> None:
    """Raise BadInput for a data set without examples to choose by."""
    lacking = sorted({*runs[runs.there].dataset} - {*dev.dataset})
    if lacking:
        raise BadInput(
            f"{spec['name']}: {known(reports[name]['title'] for name in lacking)} has no dev examples to "
            "choose by; give its row a share of train, as shares: {dev: 0.1}"
        )


def whole(dev: pd.DataFrame, runs: pd.DataFrame) -> pd.Series:
    """Which scores are of a method and data set that lack no run: nothing is chosen among a part."""
    lacking = {(run.dataset, run.method) for run in runs[~runs.there].itertuples()}
    return pd.Series([(row.dataset, row.method) not in lacking for row in dev.itertuples()], dev.index, bool)


def missing(runs: pd.DataFrame, reports: dict, spec: dict) -> list[str]:
    """Where nothing is chosen, as runs are missing."""
    found = of_each(runs, ~runs.there, reports, spec)
    return [f"Nothing is chosen where runs are missing: {found}."] if found else []


def flagged(runs: pd.DataFrame, reports: dict, spec: dict) -> list[str]:
    """How many runs of each method were flagged, and for what (`training.flags`)."""
    flags = [set((record or {}).get("flags", [])) for record in runs.record]
    return [
        f"{FLAGS.get(name, name)}: {of_each(runs, [name in has for has in flags], reports, spec)}."
        for name in sorted(set().union(*flags))
    ]


def of_each(runs: pd.DataFrame, which: Sequence[bool], reports: dict, spec: dict) -> str:
    """How many runs of each method and data set are so, as a list in words; empty if none is."""
    titles = {method["name"]: greek(method["title"]) for method in spec["methods"]}
    parts = runs.assign(which=which).groupby(["dataset", "method"], sort=False).which.agg(["sum", "count"])
    return "; ".join(
        f"{titles[method]} on {reports[dataset]['title']} ({part['sum']} of {counted(part['count'], 'run')})"
        for (dataset, method), part in parts.iterrows()
        if part["sum"]
    )


def points_of(names: pd.Series, spec: dict) -> list[tuple]:
    """The searched values in the names of runs, each once, sorted; the keys are those of `over` in order."""
    return sorted(
        {values_in(name, spec) for name in names}, key=lambda values: [rank(v) for v in values[::-1]]
    )


def values_in(name: str, spec: dict) -> tuple:
    """The value of each searched key in the name of a run."""
    changes = parse(name)[1]
    return tuple(changes.get(key) for key in keys(spec))


def keys(spec: dict) -> list[str]:
    """All keys that are searched for some method."""
    return list(
        dict.fromkeys([*spec["over"], *(key for tried in spec.get("of", {}).values() for key in tried)])
    )


def rank(value) -> tuple:
    """By what values are sorted: none, numbers by size, then words."""
    number = isinstance(value, int | float)
    return value is not None, not number, value if number else 0, str(value)


def told(values: tuple, spec: dict) -> str:
    """Values with their keys, as `lr 3e-05, epochs 30`."""
    return ", ".join(
        f"{key} {value}" for key, value in zip(keys(spec), values, strict=True) if value is not None
    )


def layout(long: pd.DataFrame, spec: dict, reports: dict, notes: list[str]) -> Sheet:
    """Methods in rows, the points in columns, under what all keys but the first are."""
    points = points_of(long.run, spec)
    groups, heads = [("", 1)], ["Method"]
    for values in points:
        above = told((None, *values[1:]), spec)
        groups = (
            [*groups[:-1], (above, groups[-1][1] + 1)] if above == groups[-1][0] else [*groups, (above, 1)]
        )
        heads.append(told((values[0], *[None] * (len(values) - 1)), spec))
    groups, heads = [*groups, ("", 1)], [*heads, "best on dev"]
    blocks = []
    for dataset, report in reports.items():
        here = long[long.dataset == dataset]
        rows = [row(method, here[here.method == method["name"]], points, spec) for method in spec["methods"]]
        blocks.append(Block(f"{report['title']}, dev {metrics.title(spec['by'])}", rows))
    label = f"tab:{spec['paper']}-{spec['name']}"
    align = "l" + "r" * len(points) + "l"
    return Sheet(spec["caption"], label, groups, heads, align, blocks, notes)


def row(method: dict, part: pd.DataFrame, points: list[tuple], spec: dict) -> list[Cell]:
    """The scores of one method on one data set; a point that it did not try is blank."""
    found = {values_in(one.run, spec): one for one in part.itertuples()}
    scores = [found.get(at) for at in points]
    cells = [Cell(number(one.dev), best=bool(one.best)) if one else Cell() for one in scores]
    best = [told(values, spec) for values, one in found.items() if one.best]
    return [Cell(greek(method["title"])), *cells, Cell(best[0] if best else "")]


def at_ends(long: pd.DataFrame, spec: dict, reports: dict) -> list[str]:
    """Which best values are the smallest or largest tried, beyond which a better one may lie."""
    titles = {method["name"]: greek(method["title"]) for method in spec["methods"]}
    found: dict[str, list[str]] = {}
    for (dataset, method), part in long.groupby(["dataset", "method"], sort=False):
        all_tried = zip(*(values_in(name, spec) for name in part.run), strict=True)
        for best in [values_in(name, spec) for name in part.run[part.best]]:
            for key, value, tried in zip(keys(spec), best, all_tried, strict=True):
                if end := end_of(value, sorted(set(tried), key=rank)):
                    who = f"{titles[method]} on {reports[dataset]['title']}"
                    found.setdefault(f"{end} {key} tried ({value})", []).append(who)
    return [
        f"Best at the {end}, so a better one may lie beyond: {'; '.join(who)}." for end, who in found.items()
    ]


def end_of(value, tried: list) -> str | None:
    """Whether a value is the smallest or largest of the numbers tried; of two, one always is, so None."""
    if len(tried) < SEVERAL or not all(isinstance(each, int | float) for each in tried):
        return None
    return {tried[0]: "smallest", tried[-1]: "largest"}.get(value)
