"""What the page says of the methods on a data set, as numbers: the leader, its leads, classes, and more data.

The leader is the best on dev, so that its leads on test are between methods chosen beforehand. Leads and the
gain from more data have the errors of claims: Student's t over seeds, the bootstrap over test examples.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput, counted, known
from tailprompt.plan import agreement
from tailprompt.report import bootstrap, records, verdicts
from tailprompt.report.answers import answers
from tailprompt.report.page.collapsed import Collapsed, collapsed
from tailprompt.report.page.lengths import Length, length
from tailprompt.report.sheet import greek
from tailprompt.report.tables.comparison import gains, ranked
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.metrics import ALL, CLASS, GROUPS, RAREST
from tailprompt.tasks.registry import recorded

# Test rows of all, and on average of a class that a score is of, below which nothing is decided. At that
# size 5 to 8 % of true nulls of macro F1 are decided, and below it up to 30 %, by a simulation that does not
# ship; it was of scores of all classes.
SMALLEST, EACH = 50, 8
WORST = 10  # classes
LEAST = 3  # test rows of a class that is told of: the F1 of fewer is chance
NONE = (np.nan,) * 4  # of a lead that is not known
SHOWN = [name for name in GROUPS if name not in (ALL, RAREST)]
TAKEN = 3  # classes that one is taken for, at most
LEADS, WORSE, NEAR, OPEN = "leads", "clearly worse", "not clearly worse", "no verdict"  # a method's standing


@dataclass(frozen=True)
class Row:
    """A method: scores in points (mean over seeds), its lead over the leader with interval and p, cost.

    p is corrected for the number of methods (Holm); it is NaN of the leader, and where nothing is decided.
    """

    method: str
    title: str
    run: str
    scores: dict[str, float]  # of test, `f1/tail` and others
    seeds: list[float]  # the score of each run
    dev: float
    lead: tuple[float, float, float, float]  # over the leader: points, 95 % interval, p
    trained: float  # parameters
    length: Length
    seconds: float  # of a run
    memory: float  # MB, the most of a run
    predicting: float = np.nan  # seconds for a thousand rows of test
    hardware: str = ""  # that predicted
    only: Collapsed | None = None  # the class that it names alone

    @property
    def worse(self) -> bool:
        """Whether it is clearly worse than the leader; False where this is unknown."""
        return bool(self.lead[0] < 0 and self.lead[3] < verdicts.ALPHA)

    @property
    def learned(self) -> bool:
        """Whether it names several classes, so that verdicts count it."""
        return self.only is None

    @property
    def judged(self) -> bool:
        """Whether there may be a verdict on it: it learned, and was trained long enough to be done."""
        return self.learned and not self.length.hardly


@dataclass(frozen=True)
class Worst:
    """A class: its id and rows, the leader's F1 in points, and (id, share) of what it is taken for."""

    id: int
    train: int
    test: int
    f1: float
    taken: list[tuple[int, float]]


@dataclass(frozen=True)
class More:
    """Training rows -> mean score of each method, and what the last step of data gave the leader."""

    points: pd.DataFrame  # method, rows, value
    effect: verdicts.Effect | None


def standing(root: Path, spec: dict) -> tuple[list[Row], pd.DataFrame, dict]:
    """The methods of a block, the leader first and then by dev; their chosen runs; the data set's report.

    Raises BadInput unless the block is of one data set of classes with a method that has all its seeds.
    """
    score, (dataset, report) = spec["winner"], one(records.reports(root, spec), spec)
    names = list(dict.fromkeys([score, *spec["metrics"]]))
    runs, table, _ = records.taken(root, spec, names)
    part = table[table.score == score].groupby(["split", "method"]).value.agg(["mean", "count"])
    dev = (part.loc["dev"] if "dev" in part.index else part.iloc[:0]).dropna()
    if dev.empty:
        raise BadInput(f"{root}: no run of {known(row['name'] for row in spec['methods'])} is finished")
    order = ranked(dev, runs)
    leader, test = order.index[0], 100 * part.loc["test", "mean"]
    others = sorted(order.index[1:], key=lambda method: -test[method])
    leads = gains(runs[runs.method.isin(order.index)], leader, [score], report)
    leads = judged({method: leads.get((dataset, method, score), NONE) for method in others}, score, report)
    titles = {method["name"]: greek(method["title"]) for method in spec["methods"]}
    rows = []
    for method in [leader, *others]:
        here = runs[(runs.method == method) & runs.there]
        test = 100 * table[(table.split == "test") & (table.method == method)].set_index("score").value
        means = test.groupby(level=0, sort=False).mean().to_dict()
        cost = pd.DataFrame(list(here.record)).reindex(columns=["trainable", "seconds", "memory_mb"])
        predicting, hardware = prediction(here.record)
        rows.append(
            Row(
                method,
                titles[method],
                here.run.iloc[0],
                means,
                test[test.index == score].tolist(),
                100 * order.loc[method, "mean"],
                leads.get(method, NONE),
                cost.trainable.max(),
                length(here),
                cost.seconds.median(),
                cost.memory_mb.max(),
                predicting,
                hardware,
                collapsed(here, report),
            )
        )
    return rows, runs, report


def prediction(runs: pd.Series) -> tuple[float, str]:
    """The seconds for a thousand rows of test, a median over runs, and on what; NaN where none says it.

    Of a CPU they are processor time, which other jobs hardly change; on a GPU they are by the clock.
    """
    each, places = [], set()
    for one in (one for one in runs if "prediction_cpu_seconds" in one):
        on_cpu = "CPU" in one["device"]
        took = one["prediction_cpu_seconds" if on_cpu else "prediction_seconds"]
        each.append(1000 * took / max(1, one["data"]["rows"]["test"]))
        threads = f" ({counted(one['threads'], 'thread')}, processor time)" if on_cpu else ""
        places.add(f"{one['device']}{threads}")
    return (float(np.median(each)), " or ".join(sorted(places))) if each else (np.nan, "")


def judged(leads: dict[str, tuple], score: str, report: dict) -> dict[str, tuple]:
    """Leads with intervals on the scale of points, and p by Holm over all; without p on too few test rows."""
    known_of = [method for method, lead in leads.items() if not np.isnan(lead[3])]
    ps = dict(zip(known_of, verdicts.holm([leads[method][3] for method in known_of]), strict=True))
    if too_small(score, report):
        ps = {}
    return {method: (points, *on_scale(low, high), ps.get(method, np.nan))
            for method, (points, low, high, _) in leads.items()}  # fmt: skip


def on_scale(low: float, high: float) -> tuple[float, float]:
    """The part of an interval that a difference of two scores may have."""
    return float(np.maximum(-100, low)), float(np.minimum(100, high))


def too_small(score: str, report: dict) -> bool:
    """Whether the test set has too few rows, of all or of the classes that a score is of, for a verdict."""
    scored = tested(score, report)
    return sum(report["counts"]["test"]) < SMALLEST or not scored or sum(scored) < EACH * len(scored)


def tested(score: str, report: dict) -> list[int]:
    """The test rows of each class that a score is of, as of the rarest alone, but for those with none."""
    counts, group = report["counts"]["test"], score.partition("/")[2]
    ids = range(len(counts)) if group == ALL else records.groups(report)[group]
    return [counts[c] for c in ids if counts[c]]


def verdict(row: Row, rows: list[Row]) -> str:
    """The standing of a method: what pictures show of it and sentences say; one of those above.

    The leader may be one that was hardly trained, as more steps would not take its lead away; its sentence
    says so. Of any other such method nothing is told, and against a leader that did not learn of none.
    """
    if row is rows[0]:
        return LEADS if row.learned else OPEN
    if not (row.judged and rows[0].learned) or np.isnan(row.lead[3]):
        return OPEN
    return WORSE if row.worse else NEAR


def wins(rows: list[Row]) -> bool:
    """Whether the leader is clearly better than all others that learned, each trained enough to be judged."""
    others = [verdict(row, rows) for row in rows[1:] if row.learned]
    return bool(others) and set(others) == {WORSE}


def one(reports: dict[str, dict], spec: dict) -> tuple[str, dict]:
    """The only data set of a block, with its report."""
    if len(reports) != 1 or recorded(next(iter(reports.values()))) is not CLASSIFICATION:
        raise BadInput(
            f"{spec['name']} of {spec['paper']}: the page is of one data set with a class for each row; "
            f"this block has {known(reports)}"
        )
    return next(iter(reports.items()))


def groups(rows: list[Row], metric: str) -> tuple[str, list[str]]:
    """The metric of groups of classes, and the groups that have it, in order; F1 where this one has none."""
    for one in (metric, "f1"):
        if names := [name for name in SHOWN if rows[0].scores.get(f"{one}/{name}", -1) >= 0]:
            return one, names
    return metric, []


def worst(runs: pd.DataFrame, leader: str, report: dict) -> list[Worst]:
    """The classes of test with the lowest F1 of the leader over its seeds, of equals the larger first.

    Classes without an error are left out, and those with fewer than LEAST test rows unless all are so small.
    """
    folders = runs[(runs.method == leader) & runs.there].folder
    parts = [answers(folder, agreement.data_of(folder), report)["test"] for folder in folders]
    names = [f"f1/{CLASS}{name}" for name in report["classes"]]
    scored = [records.scored(folder, report, names) for folder in folders]
    each = pd.DataFrame([line for run in scored for line in run if line["split"] == "test"])
    f1 = 100 * each.groupby("score", sort=False).value.mean().reindex(names).to_numpy()
    pooled, train, test = pd.concat(parts), *(report["counts"][split] for split in ("train", "test"))
    order = sorted((c for c in told_of(test) if f1[c] < 100), key=lambda c: (f1[c], -test[c]))[:WORST]
    found = []
    for c in order:
        guesses = pooled.prediction[pooled.label == c].to_numpy()
        others = Counter(guesses[guesses != c].tolist()).most_common(TAKEN)
        taken = [(k, n / len(guesses)) for k, n in others]
        found.append(Worst(c, train[c], test[c], f1[c], taken))
    return found


def told_of(test: list[int]) -> list[int]:
    """The ids of the classes with enough test rows for an F1. test: the rows of each class."""
    there = [c for c, n in enumerate(test) if n]
    return [c for c in there if test[c] >= LEAST] or there


def more(root: Path, spec: dict, leader: str, score: str) -> More:
    """Scores on cuts of the training rows, and the leader's gain from the last but one to the last."""
    reports = records.reports(root, spec)
    runs, table, _ = records.taken(root, spec, [score])
    test = table[(table.split == "test") & (table.score == score)]
    points = test.groupby(["dataset", "method"], sort=False, as_index=False).value.mean()
    rows = points.dataset.map({name: report["rows"]["train"] for name, report in reports.items()})
    points = points.assign(rows=rows, value=100 * points.value)
    sizes = sorted(reports, key=lambda name: reports[name]["rows"]["train"])
    drawn = [of_seeds(runs[(runs.dataset == name) & (runs.method == leader)], reports[name], score)
             for name in sizes[-2:]]  # fmt: skip
    seeds = sorted(set.intersection(*(set(each) for each in drawn))) if len(drawn) == 2 else []
    few, many = ([each[seed] for seed in seeds] for each in drawn) if seeds else ([], [])
    effect = verdicts.score(np.stack(many, 1), np.stack(few, 1)) if seeds else None
    return More(points.sort_values("rows", kind="stable"), effect)


def of_seeds(runs: pd.DataFrame, report: dict, score: str) -> dict[int, np.ndarray]:
    """Seed -> the score of a method in every draw of test examples, which cuts of a data set share."""
    added = records.statistics(runs, records.ranking(report, [score]))
    random = bootstrap.stream(*records.test_ids(runs))
    drawn = bootstrap.replicates(recorded(report), [score], records.groups(report), added, random)
    return {seed: values[score] for (_, seed), values in drawn.items()}


def predicting(runs: pd.DataFrame, leader: str) -> tuple[Path, bool]:
    """The leader's run of its first seed, and whether it kept all that it trained."""
    here = runs[(runs.method == leader) & runs.there].sort_values("seed", kind="stable").iloc[0]
    settings = here.record["settings"]
    return here.folder, settings.get("tuner") != "full" or bool(settings.get("keep"))
