"""Comparison of methods: gains with intervals, paired by seed and test example, and the winner."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tailprompt.report import bootstrap, records, verdicts
from tailprompt.report.sheet import chance, greek, number
from tailprompt.tasks.registry import recorded


def gains(runs: pd.DataFrame, first: str, names: list[str], report: dict) -> dict[tuple, tuple]:
    """(dataset, method, metric) -> (gain over `first`, low, high, p) on one data set, in points.

    They are those of a claim on one data set; low, high and p are NaN at one seed.
    """
    added = records.statistics(runs, records.ranking(report, names))
    random = bootstrap.stream(*records.test_ids(runs))
    drawn = bootstrap.replicates(recorded(report), names, records.groups(report), added, random)
    results = {}
    for method in dict.fromkeys(method for method, _ in drawn if method != first):
        seeds = sorted(seed for name, seed in drawn if name == method and (first, seed) in drawn)
        for metric in names if seeds else ():
            ours, base = (np.stack([drawn[m, seed][metric] for seed in seeds], 1) for m in (method, first))
            effect = verdicts.score(ours, base)
            p, _ = verdicts.decide("greater", effect)
            results[runs.dataset.iloc[0], method, metric] = effect.value, *verdicts.interval(effect), p
    return results


def winners(table: pd.DataFrame, runs: pd.DataFrame, spec: dict, reports: dict) -> list[str]:
    """A sentence for each data set about the best method by the score `winner`, and its lead over the next.

    The methods are ranked on dev. Their lead on test is thus between two methods chosen beforehand, and not
    a lucky maximum.
    """
    if "winner" not in spec:
        return []
    return [winner(table, runs[runs.dataset == name], spec, report) for name, report in reports.items()]


def winner(table: pd.DataFrame, runs: pd.DataFrame, spec: dict, report: dict) -> str:
    """The sentence about one data set; methods that lack seeds of others are not ranked."""
    score, dataset = spec["winner"], report["dataset"]
    part = table[(table.dataset == dataset) & (table.score == score)]
    means = part.groupby(["split", "method"]).value.agg(["mean", "count"])
    dev = (means.loc["dev"] if "dev" in means.index else means.iloc[:0]).dropna()
    order = ranked(dev, runs).index
    if len(order) < 2:
        return f"Which method wins on {report['title']} is open: fewer than two have been run with all seeds."
    first, second = order[:2]
    pair = runs[runs.method.isin([first, second])]
    gain, low, high, p = gains(pair, second, [score], report)[dataset, first, score]
    titles = {method["name"]: greek(method["title"]) for method in spec["methods"]}
    if p < verdicts.ALPHA and gain > 0:
        begin = f"{titles[first]} wins on {report['title']}"
    else:
        begin = f"No method wins clearly on {report['title']}; {titles[first]} is the best on dev"
    known = f"95% interval {number(low, signed=True)} to {number(high, signed=True)}, p {chance(p)}"
    if np.isnan(p):
        known = "no interval: one seed, or scores that never vary"
    return (
        f"{begin}: {score} {100 * means.loc[('test', first), 'mean']:.1f} on test, "
        f"{number(gain, signed=True)} ({known}) against {titles[second]}, the next on dev."
    )


def ranked(dev: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The methods that have all seeds, the best on dev first; of equals the one whose runs took less time.

    dev: method -> mean and count.
    """
    there = runs[runs.there]
    took = there.record.map(lambda record: record.get("seconds", 0)).groupby(there.method).median()
    kept = dev[dev["count"] == dev["count"].max()].join(took.rename("seconds"))
    return kept.sort_values(["mean", "seconds"], ascending=[False, True], kind="stable")
