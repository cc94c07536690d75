"""The notes under a table of scores, which keep readers from misreading it."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from tailprompt.errors import counted, known
from tailprompt.plan.points import parse
from tailprompt.report import records
from tailprompt.report.sheet import greek
from tailprompt.tasks import metrics
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.one_class import MOST
from tailprompt.tasks.registry import recorded


def remarks(runs: pd.DataFrame, chosen: dict, long: pd.DataFrame, spec: dict, reports: dict) -> list[str]:
    """Notes on the origin of the numbers, the marks, missing runs, choices, rebuilt data and mixed runs."""
    return [
        origin(runs, spec),
        *legend(long, spec),
        *absent(runs, reports, spec),
        *flagged(runs, reports, spec),
        *peeked(long, spec),
        *picked(chosen, spec, reports),
        *data_notes(reports),
        *means(spec, reports),
        *commonest(spec, reports),
        *grouped(spec, reports),
        *diluted(long, spec, reports),
        *printed_notes(long, spec),
        *records.mixtures(runs),
    ]


def origin(runs: pd.DataFrame, spec: dict) -> str:
    """A sentence with the backbones, scale and seeds of our numbers."""
    backbones = ", ".join(dict.fromkeys(runs.backbone)) or "none"
    alone = len(spec["seeds"]) == 1 or runs[runs.there].seed.nunique() == 1
    each = "one run each, of unknown spread over seeds" if alone else "mean with SD over n seeds"
    seeds = f"{'seed' if len(spec['seeds']) == 1 else 'seeds'} {', '.join(map(str, spec['seeds']))}"
    return f"Ours: {backbones} at scale {spec['scale']}, {seeds}; points, {each}."


def printed_notes(long: pd.DataFrame, spec: dict) -> list[str]:
    """The block's notes on the printed numbers, if there are any."""
    return spec.get("notes", []) if long.reported.notna().any() else []


def data_notes(reports: dict) -> list[str]:
    """The notes in the rows of the data sets, once for all cuts of a data set."""
    noted = {row["of"]: row["note"] for row in reports.values() if row.get("note")}
    return [f"{title}: {note.rstrip('.')}." for title, note in noted.items()]


def means(spec: dict, reports: dict) -> list[str]:
    """Over which classes the means of classes are taken, if a table of single classes shows any."""
    shown = [metric.partition("/")[0] for metric in spec["metrics"] if f"/{metrics.CLASS}" not in metric]
    if not any(recorded(report) is CLASSIFICATION for report in reports.values()):
        return []
    names = {name: metrics.METRICS[name] for name in dict.fromkeys(shown)}
    of_labels = [title for name, title in names.items() if name in ("balanced_accuracy", metrics.RANKED)]
    means = [title for name, title in names.items() if name in metrics.BY_CLASS and title not in of_labels]
    told = (
        f"{' and '.join(means)}: the mean over classes that occur in the labels or the predictions of test; "
        "that of a group over its classes alone, and head and tail have classes of the labels only."
    )
    also = f"{' and '.join(of_labels)}: the mean over classes that occur in the labels of test."
    return [*([told] if means else []), *([also] if of_labels else [])]


def commonest(spec: dict, reports: dict) -> list[str]:
    """What the most frequent class gets on the test set of each data set, where the block asks for it."""
    if not spec.get("majority"):
        return []
    counts = {report["title"]: report["counts"]["test"] for report in reports.values()}
    shares = [f"{title} {100 * max(test) / sum(test):.1f}" for title, test in counts.items() if sum(test)]
    return [f"Accuracy of the most frequent class: {', '.join(shares)}."] if shares else []


def grouped(spec: dict, reports: dict) -> list[str]:
    """Why a group's column is blank, and where the largest class is head though it reaches the threshold."""
    asked = dict.fromkeys(metric.partition("/")[2] for metric in spec["metrics"])
    lines = []
    for report in reports.values():
        groups = report["groups"]["test"]
        blank = [name for name in asked if name in EMPTY and not groups.get(name)]
        if "trained_on" in report and {*SHOTS} & {*blank}:
            lines.append(f"Blank on {report['title']}: {known(SHOTS)}, as it has no training examples.")
            blank = [name for name in blank if name not in SHOTS]
        if {"head", "tail"} <= {*blank} and report.get("threshold") is None:
            lines.append(f"Blank on {report['title']}: head and tail, as its row states no threshold.")
            blank = [name for name in blank if name not in ("head", "tail")]
        lines += [f"Blank on {report['title']}: {EMPTY[name]}." for name in blank]
        if {"head", "tail"} & asked.keys() and (share := alone(report)):
            lines.append(
                f"Head of {report['title']}: its largest class alone, which has {share:.0%} of the examples "
                f"and so reaches the threshold of {report['threshold']:g} itself."
            )
    return lines


def alone(report: dict) -> float | None:
    """The share of a largest class that is head although it reaches the threshold; None for any other."""
    counts = report["counts"].get("train" if report.get("head_source") == "train" else "test", [])
    share, threshold = max(counts, default=0) / max(1, sum(counts)), report.get("threshold")
    return share if report["groups"]["test"]["head"] and threshold and share >= threshold else None


SHOTS = ("many", "medium", "few")
EMPTY = {  # why a group has no class
    "head": "head has no class, as test has examples of one class only",
    "tail": "tail has no class, as test has no examples",
    "many": "many has no class (`many` in its row says how many training examples that takes, 100 without)",
    "medium": "medium has no class (`many` and `few` in its row bound it, 100 and 20 without)",
    "few": "few has no class (`few` in its row says how few training examples that takes, 20 without)",
}


def diluted(long: pd.DataFrame, spec: dict, reports: dict) -> list[str]:
    """Accuracy if images of classes that the training set lacks are counted as wrong."""
    titles = {method["name"]: greek(method["title"]) for method in spec["methods"]}
    lines = []
    for dataset, report in reports.items():
        scored, left = report["rows"]["test"], report.get("left_out", 0)
        here = long[(long.dataset == dataset) & (long.metric == "accuracy/all") & long.ours.notna()]
        values = [
            f"{titles[row.method]} {row.ours * scored / (scored + left):.1f}" for row in here.itertuples()
        ]
        if "trained_on" in report and left and values:
            lines.append(
                f"{report['title']} with its {counted(left, 'image')} of other classes in the denominator: "
                f"{', '.join(values)}."
            )
    return lines


def legend(long: pd.DataFrame, spec: dict) -> list[str]:
    """How to read bold numbers and stars, if there are any."""
    lines = []
    if long.ours.notna().any():
        lines.append("In bold: the best of a column.")
    if "p" in long and (long.p < 0.05).any():
        lines.append(
            f"*: differs from {spec['methods'][0]['title']} (p < 0.05, paired, by Student's t over seeds and "
            "the bootstrap over test examples as for claims, not corrected for the number of cells)."
        )
    return lines


def absent(runs: pd.DataFrame, reports: dict, spec: dict) -> list[str]:
    """Which runs and data sets are missing."""
    gone, out = runs[~runs.there], spec.get("left_out")
    lines = [f"Left out, as its data are not here as they are asked: {', '.join(out)}."] if out else []
    if len(gone) == len(runs) and len(runs):
        return [*lines, "None of these runs has been made at this scale yet."]
    titles = {method["name"]: method["title"] for method in spec["methods"]}
    for dataset, part in gone.groupby("dataset", sort=False):
        seeds = part.groupby("method", sort=False).seed.agg(lambda seeds: ", ".join(map(str, seeds.unique())))
        missing = "; ".join(f"{titles[method]} (seeds {listed})" for method, listed in seeds.items())
        lines.append(f"Missing on {reports[dataset]['title']}: {missing}.")
    return lines


def flagged(runs: pd.DataFrame, reports: dict, spec: dict) -> list[str]:
    """Which runs were flagged, and for what (`training.flags`)."""
    titles, found = {method["name"]: method["title"] for method in spec["methods"]}, {}
    for run in runs[runs.there].itertuples():
        for name in run.record.get("flags", []):
            cell = f"{titles[run.method]} on {reports[run.dataset]['title']}"
            found.setdefault(name, {}).setdefault(cell, []).append(str(run.seed))
    return [
        f"{FLAGS.get(name, name)}: "
        + "; ".join(f"{cell} (seeds {', '.join(seeds)})" for cell, seeds in cells.items())
        + "."
        for name, cells in found.items()
    ]


FLAGS = {
    "still": "Training loss does not move",
    "constant": "All test examples are predicted as one class",
    "nearly_constant": f"At least {MOST:.0%} of test examples are predicted as one class, and far fewer are",
    "collapsed": "Pool of group prompts has collapsed",
}


def peeked(long: pd.DataFrame, spec: dict) -> list[str]:
    """Which methods selected their step on test, as some papers did."""
    titles = {method["name"]: method["title"] for method in spec["methods"]}
    methods = long[long.selection_split.fillna("").str.contains("test")].method.unique()
    return (
        [f"Selected on test, as the paper did: {', '.join(titles[name] for name in methods)}."]
        if len(methods)
        else []
    )


def picked(chosen: dict, spec: dict, reports: dict) -> list[str]:
    """The value of each method on each data set; of several, that which dev chose, and by which score."""
    if not chosen:
        return []
    key, by = spec["choose"]["over"], spec["choose"]["by"]
    titles = {method["name"]: method["title"] for method in spec["methods"]}
    count = Counter((run["dataset"], run["method"]) for run in spec["runs"])
    lines = []
    for dataset, report in reports.items():
        ours = {method: parse(run)[1].get(key) for (name, method), run in chosen.items() if name == dataset}
        values = [
            f"{titles[method]} {value}" + (f" (of {n})" if (n := count[dataset, method]) > 1 else "")
            for method, value in ours.items()
            if value is not None
        ]
        if values:
            several = any(count[dataset, method] > 1 for method in ours)
            best = f" with the best mean dev {by}" if several else ""
            lines.append(f"{key}{best} on {report['title']}: {', '.join(values)}.")
    return lines
