"""The claims of a paper tested on our runs: its effect, ours with an interval, and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import named
from tailprompt.report import bootstrap, records, separability, trained, verdicts
from tailprompt.report.sheet import Block, Cell, Sheet, greek, number
from tailprompt.report.tables.feature_statistics import beside_each
from tailprompt.tasks.registry import recorded

UNITS = {"score": "points", "seed_spread": "doublings", "norm_slope": "exponent"}
DISTANCES = {"gamma": "ratio"}  # units of separability, distances else and points for K-NN
FEW_SEEDS = 5
READING = "An effect is the mean over data sets and seeds, for the first method named."
MEANING = {
    "doublings": "Doublings: log2 of the ratio of SDs over seeds.",
    "exponent": "Exponent: by how much the slope of log norm on log count is nearer to zero.",
    "distance": "Distance: Euclidean, of features.",
    "ratio": "Ratio: of the distance within classes to that between them.",
}
METHOD = (
    "Intervals and p: bootstrap over seeds and test examples (classes for norms and distances; F "
    "distribution for spreads), paired by seed and example. p is two-sided, with Holm's correction over all "
    "claims judged; verdicts on single data sets are without it. A claim holds or fails at p < 0.05, else it "
    "is undecided."
)
ALL = "all"
NOT_RUN = "not run"


def claims(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """A row for each claim over all data sets, with Holm's correction, and a row on each data set."""
    runs, _, _ = records.taken(root, spec, [])
    reports = records.reports(root, spec)
    evidence = {dataset: gather(runs[runs.dataset == dataset], spec, reports[dataset]) for dataset in reports}
    printed = records.reported(spec["paper"])
    rows = [row for claim in spec["claims"] for row in judged(claim, evidence, reports, printed)]
    long = pd.DataFrame(rows)
    overall = (long.dataset == ALL) & long.p.notna()
    long.loc[overall, "p_holm"] = verdicts.holm(long.p[overall].tolist())
    decided = [verdicts.verdict(row.p_holm, row.speaks_for) for row in long[overall].itertuples()]
    long.loc[overall, "verdict"] = decided
    long = long.drop(columns="speaks_for")
    sheet = layout(long, spec, reports, [*chosen(spec), *records.mixtures(runs)])
    return long, sheet, sheet


def gather(runs: pd.DataFrame, spec: dict, report: dict) -> dict:
    """What the claims on one data set need: values of each (method, seed) in every draw, or of each class."""
    here = [claim for claim in spec["claims"] if report["dataset"] in claim["datasets"]]
    about = {kind: [claim for claim in here if kind_of(claim) == kind] for kind in STATISTICS}
    scored = about["score"] + about["seed_spread"]
    names = sorted({claim[key] for claim in scored for key in ("metric", "beyond") if key in claim})
    random = bootstrap.stream(report["dataset"])
    task, groups = recorded(report), records.groups(report)
    added = records.statistics(runs, report) if names else {}
    drawn = bootstrap.replicates(task, names, groups, added, random)
    return {
        "drawn": drawn,
        "norms": {run: trained.norms(folder) for run, folder in compared(runs, about["norm_slope"])},
        "features": features(runs, about["separability"], report, random),
        "train": np.asarray(report["counts"]["train"]),
    }


def kind_of(claim: dict) -> str:
    """The statistic of a claim."""
    return claim.get("statistic", "score")


def compared(runs: pd.DataFrame, claims: list[dict]) -> list[tuple[tuple[str, int], Path]]:
    """((method, seed), folder) of the existing runs that these claims compare."""
    methods = {claim[key] for claim in claims for key in ("method", "than")}
    here = runs[runs.there & runs.method.isin(methods)]
    return [((run.method, run.seed), run.folder) for run in here.itertuples()]


def features(
    runs: pd.DataFrame, claims: list[dict], report: dict, random: np.random.Generator
) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Run -> each statistic that claims name, of its features, in every draw of test examples or classes."""
    names = sorted({claim["metric"] for claim in claims})
    pairs = compared(runs, claims)
    if not pairs:
        return {}
    examples, classes = (
        bootstrap.times(size, bootstrap.DRAWS, random)
        for size in (report["rows"]["test"], len(report["classes"]))
    )
    measured = {}
    for run, folder in pairs:
        splits = records.vectors(folder)
        measured[run] = separability.statistics(names, splits["train"], splits["test"], examples, classes)
    return measured


def measured(claim: dict, evidence: dict, random: np.random.Generator) -> verdicts.Effect | None:
    """The effect of a claim on one data set; None if no seed has both methods."""
    source, pick, effect = named(STATISTICS, kind_of(claim), "statistic of a claim")
    both = pair(evidence[source], claim, partial(pick, claim))
    return effect(*both, random, evidence["train"]) if both else None


def pair(kept: dict, claim: dict, pick: Callable) -> list[np.ndarray]:
    """The values `[seeds, ...]` of both methods on the seeds that both have; [] if there are none."""
    method, than = claim["method"], claim["than"]
    seeds = sorted(seed for name, seed in kept if name == method and (than, seed) in kept)
    return [np.array([pick(kept[name, seed]) for seed in seeds]) for name in (method, than)] if seeds else []


def drawn_score(claim: dict, scores: dict[str, np.ndarray]) -> np.ndarray:
    """The score of a run in every draw, or its difference from another score of the run (`beyond`)."""
    return scores[claim["metric"]] - (scores[claim["beyond"]] if "beyond" in claim else 0)


def features_apart(claim: dict, statistics: dict[str, np.ndarray]) -> np.ndarray:
    """How well the features of a run separate classes in every draw: points for K-NN, else distances."""
    return statistics[claim["metric"]] * (100 if unit(claim) == "points" else 1)


def judged(claim: dict, evidence: dict, reports: dict, printed: pd.DataFrame) -> list[dict]:
    """The rows of one claim: over all its data sets, then on each."""
    effects = {
        name: measured(claim, evidence[name], bootstrap.stream(name, claim["id"]))
        for name in claim["datasets"]
    }
    effects = {dataset: effect for dataset, effect in effects.items() if effect is not None}
    printed_effect = printed_effects(claim, printed)
    mean = float(np.mean(list(printed_effect.values()))) if printed_effect else np.nan
    rows = [row(claim, ALL, verdicts.over_all(list(effects.values())) if effects else None, mean)]
    return rows + [
        row(claim, name, effect, printed_effect.get(records.printed_name(reports[name]), np.nan))
        for name, effect in effects.items()
    ]


def row(claim: dict, dataset: str, effect: verdicts.Effect | None, reported: float) -> dict:
    """One line of the long table."""
    keys = ("id", "says", "section", "method", "than", "metric", "beyond", "direction", "margin")
    line = {key: claim.get(key) for key in keys}
    line |= {"statistic": kind_of(claim), "unit": unit(claim), "dataset": dataset, "reported": reported}
    if effect is None:
        return line | {"p": np.nan, "speaks_for": False, "seeds": 0, "verdict": NOT_RUN}
    low, high = bootstrap.interval(effect.draws)
    p, speaks_for = verdicts.decide(claim["direction"], effect.draws, claim.get("margin", 0.0))
    line |= {"ours": effect.value, "low": low, "high": high, "p": p, "speaks_for": speaks_for}
    return line | {"seeds": effect.seeds, "verdict": verdicts.verdict(p, speaks_for)}


def unit(claim: dict) -> str:
    """The unit of a claim's effect."""
    if kind_of(claim) != "separability":
        return UNITS[kind_of(claim)]
    return (
        "points"
        if claim["metric"].startswith(separability.KNN)
        else DISTANCES.get(claim["metric"], "distance")
    )


def printed_effects(claim: dict, printed: pd.DataFrame) -> dict[str, float]:
    """The paper's own effect by data set, from the table that the claim names."""
    column = {"score": "value", "seed_spread": "spread", "separability": "value"}.get(kind_of(claim))
    if column is None:
        return {}
    part = printed[(printed.table == claim.get("table")) & (printed.dataset != "avg")]
    part = beside_each(part, [claim["metric"]])
    first, second = (printed_of(part[part.method == claim[key]], claim, column) for key in ("method", "than"))
    with np.errstate(divide="ignore"):
        effects = np.log2(second / first) if column == "spread" else first - second
    return effects[np.isfinite(effects)].to_dict()


def printed_of(rows: pd.DataFrame, claim: dict, column: str) -> pd.Series:
    """What the paper prints for one method of a claim, by data set."""
    metric, beyond = (
        rows[rows.metric == name].set_index("dataset")[column]
        for name in (claim["metric"], claim.get("beyond"))
    )
    return metric - beyond if "beyond" in claim else metric


def chosen(spec: dict) -> list[str]:
    """A sentence about what was chosen on dev before anything was compared."""
    if "choose" not in spec:
        return []
    over, by = spec["choose"]["over"], spec["choose"]["by"]
    return [f"Of each method on each data set the {over} with the best mean dev {by}."]


def layout(long: pd.DataFrame, spec: dict, reports: dict, mixtures: list[str]) -> Sheet:
    """A row for each claim; if there are several data sets, the verdicts on each are at its right."""
    several = list(reports) if len(reports) > 1 else []
    heads = ["Claim", "Section", "Unit", "reported", "ours", "95% interval", "p (Holm)", "seeds", "Verdict"]
    groups = [("", 3), ("Effect", 3), ("", 3)] + ([("Verdict on", len(several))] if several else [])
    each = long.set_index(["id", "dataset"])
    rows = []
    for claim in spec["claims"]:
        one = each.loc[(claim["id"], ALL)]
        rows.append(
            [
                Cell(greek(claim["says"])),
                Cell(claim["section"]),
                Cell(one.unit),
                Cell(number(one.reported, places(one), signed=True)),
                Cell(number(one.get("ours"), places(one), signed=True)),
                Cell(span(one)),
                Cell(number(one.get("p_holm"), 3)),
                Cell(number(one.seeds or None, 0)),
                Cell(one.verdict, best=one.verdict in ("holds", "fails")),
                *(Cell(each.verdict.get((claim["id"], name), "")) for name in several),
            ]
        )
    heads += [reports[name]["title"] for name in several]
    align = [r">{\raggedright\arraybackslash}p{7cm}", *"llrrrrrl", *("l" * len(several))]
    label = f"tab:{spec['paper']}-{spec['name']}"
    return Sheet(
        spec["caption"], label, groups, heads, align, [Block("", rows)], remarks(long, spec, mixtures)
    )


def places(one: pd.Series) -> int:
    """The decimals of an effect: one for points, three for ratios, two otherwise."""
    return {"points": 1, "ratio": 3}.get(one.unit, 2)


def span(one: pd.Series) -> str:
    """An interval for people."""
    if pd.isna(one.get("low")):
        return ""
    return f"{number(one.low, places(one), signed=True)} to {number(one.high, places(one), signed=True)}"


def remarks(long: pd.DataFrame, spec: dict, mixtures: list[str]) -> list[str]:
    """Notes on how the verdicts are reached, and why to read them with care."""
    seeds = long.seeds[long.seeds > 0]
    meanings = [words for name, words in MEANING.items() if name in set(long.unit)]
    margins = [
        f"{claim['says']}: margin {claim['margin']:g}, {claim['margin_reason']}."
        for claim in spec["claims"]
        if "margin" in claim
    ]
    few = [f"Fewer than five seeds here ({seeds.min()} at least): spread over seeds is hardly known."]
    if seeds.max() == 1:
        few = ["One seed here: spread over seeds is unknown, and intervals are those of test examples alone."]
    return [
        f"Ours at scale {spec['scale']}. {' '.join([READING, *meanings])}",
        METHOD,
        *(few if len(seeds) and seeds.min() < FEW_SEEDS else []),
        *margins,
        *mixtures,
    ]


STATISTICS = {  # key of the evidence, (claim, a run's evidence) -> values, and the effect of both methods
    "score": ("drawn", drawn_score, lambda a, b, random, _: verdicts.score(a.T, b.T, random)),
    "seed_spread": (
        "drawn",
        lambda claim, scores: scores[claim["metric"]][0],
        lambda a, b, random, _: verdicts.seed_spread(a, b, bootstrap.DRAWS, random),
    ),
    "norm_slope": (
        "norms",
        lambda _, norms: norms,
        lambda a, b, random, train: verdicts.norm_slope(a, b, train, bootstrap.DRAWS, random),
    ),
    "separability": (
        "features",
        features_apart,
        lambda a, b, random, _: verdicts.difference(a.T, b.T, random),
    ),
}
