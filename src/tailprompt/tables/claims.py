"""A paper's claims judged from our runs: its effect, ours with an interval, and a verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt import bootstrap, records
from tailprompt import claims as judge
from tailprompt.errors import named
from tailprompt.sheet import Block, Cell, Sheet, number
from tailprompt.tables.notes import sentence

UNITS = {"score": "points", "seed_spread": "doublings", "norm_slope": "exponent"}
FEW_SEEDS = 5
READING = (
    "An effect is the mean over data sets and seeds, for the first method named. Doublings: log2 of the "
    "ratio of SDs over seeds. Exponent: by how much the slope of log norm on log count is nearer to zero."
)
METHOD = (
    "Intervals and p: bootstrap over seeds and test examples (classes for norms; F distribution for "
    "spreads), paired by seed and example. p is two-sided, with Holm's correction over all claims judged; "
    "verdicts on single data sets are without it. A claim holds or fails at p < 0.05, else it is undecided."
)
ALL = "all"
NOT_RUN = "not run"


def claims(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """A row for each claim over all data sets and on each; Holm's correction over the former."""
    found = records.runs(root, spec)
    reports = records.reports(root, spec)
    evidence = {
        dataset: gather(found[found.dataset == dataset], spec, reports[dataset]) for dataset in reports
    }
    printed = records.reported(spec["paper"])
    rows = [row for claim in spec["claims"] for row in judged(claim, evidence, reports, printed)]
    long = pd.DataFrame(rows)
    overall = (long.dataset == ALL) & long.p.notna()
    long.loc[overall, "p_holm"] = judge.holm(long.p[overall].tolist())
    decided = [judge.verdict(row.p_holm, row.speaks_for) for row in long[overall].itertuples()]
    long.loc[overall, "verdict"] = decided
    long = long.drop(columns="speaks_for")
    made = layout(long, spec, reports, records.mixtures(found))
    return long, made, made


def gather(found: pd.DataFrame, spec: dict, report: dict) -> dict:
    """What claims on one data set need: scores in every draw by (method, seed), norms, training counts."""
    here = [claim for claim in spec["claims"] if report["dataset"] in claim["datasets"]]
    names = sorted({claim["metric"] for claim in here if "metric" in claim})
    random = bootstrap.stream(report["dataset"])
    gold, predicted = records.predictions(found)
    drawn, norms = {}, {}
    if gold is not None and names:
        groups, classes = records.groups(report), len(report["classes"])
        drawn = bootstrap.replicates(names, groups, gold, predicted, classes, random)
    wanted = {
        m
        for claim in here
        if claim.get("statistic") == "norm_slope"
        for m in (claim["method"], claim["than"])
    }
    for run in found[found.there].itertuples():
        if run.method in wanted:
            norms[run.method, run.seed] = records.norms(run.folder)
    return {"drawn": drawn, "norms": norms, "train": np.asarray(report["counts"]["train"])}


def pair(kept: dict, claim: dict, pick) -> list[np.ndarray]:
    """`[seeds, ...]` of both methods on the seeds that both have."""
    method, than = claim["method"], claim["than"]
    seeds = sorted(seed for name, seed in kept if name == method and (than, seed) in kept)
    return [np.array([pick(kept[name, seed]) for seed in seeds]) for name in (method, than)] if seeds else []


def score(claim: dict, evidence: dict, random: np.random.Generator) -> judge.Effect | None:
    """Effect of a claim about a score."""
    both = pair(evidence["drawn"], claim, lambda scores: scores[claim["metric"]])
    if not both:
        return None
    return judge.score(*(values.T for values in both), random)


def seed_spread(claim: dict, evidence: dict, random: np.random.Generator) -> judge.Effect | None:
    """Effect of a claim about the spread of a score over seeds."""
    both = pair(evidence["drawn"], claim, lambda scores: scores[claim["metric"]][0])
    return judge.seed_spread(*both, bootstrap.DRAWS, random) if both else None


def norm_slope(claim: dict, evidence: dict, random: np.random.Generator) -> judge.Effect | None:
    """Effect of a claim about the norms of class vectors."""
    both = pair(evidence["norms"], claim, lambda norms: norms)
    return judge.norm_slope(*both, evidence["train"], bootstrap.DRAWS, random) if both else None


def judged(claim: dict, evidence: dict, reports: dict, printed: pd.DataFrame) -> list[dict]:
    """Rows of one claim: over all its data sets, then on each."""
    measure = named(STATISTICS, claim.get("statistic", "score"), "statistic of a claim")
    effects = {
        name: measure(claim, evidence[name], bootstrap.stream(name, claim["id"]))
        for name in claim["datasets"]
    }
    effects = {dataset: effect for dataset, effect in effects.items() if effect is not None}
    theirs = printed_effects(claim, printed)
    mean = float(np.mean(list(theirs.values()))) if theirs else np.nan
    rows = [row(claim, ALL, judge.over_all(list(effects.values())) if effects else None, mean)]
    return rows + [
        row(claim, name, effect, theirs.get(reports[name].get("reported"), np.nan))
        for name, effect in effects.items()
    ]


def row(claim: dict, dataset: str, effect: judge.Effect | None, reported: float) -> dict:
    """One line of the long table."""
    statistic = claim.get("statistic", "score")
    keys = ("id", "says", "section", "method", "than", "metric", "direction", "margin")
    line = {key: claim.get(key) for key in keys}
    line |= {"statistic": statistic, "unit": UNITS[statistic], "dataset": dataset, "reported": reported}
    if effect is None:
        return line | {"p": np.nan, "speaks_for": False, "seeds": 0, "verdict": NOT_RUN}
    low, high = bootstrap.interval(effect.draws)
    p, speaks_for = judge.decide(claim["direction"], effect.draws, claim.get("margin", 0.0))
    line |= {"ours": effect.value, "low": low, "high": high, "p": p, "speaks_for": speaks_for}
    return line | {"seeds": effect.seeds, "verdict": judge.verdict(p, speaks_for)}


def printed_effects(claim: dict, printed: pd.DataFrame) -> dict[str, float]:
    """The paper's own effect by data set, from the table the claim names."""
    statistic = claim.get("statistic", "score")
    part = printed[(printed.table == claim.get("table")) & (printed.metric == claim.get("metric"))]
    part = part[part.dataset != "avg"]
    column = {"score": "value", "seed_spread": "spread"}.get(statistic)
    if column is None or part.empty:
        return {}
    wide = part.pivot(index="dataset", columns="method", values=column)
    first, second = (wide.get(claim[key], np.nan * wide.iloc[:, 0]) for key in ("method", "than"))
    with np.errstate(divide="ignore"):
        effects = first - second if statistic == "score" else np.log2(second / first)
    return effects[np.isfinite(effects)].to_dict()


def layout(long: pd.DataFrame, spec: dict, reports: dict, mixtures: list[str]) -> Sheet:
    """One row a claim; the verdicts on single data sets stand at its right when there are several."""
    several = list(reports) if len(reports) > 1 else []
    heads = ["Claim", "Section", "Unit", "reported", "ours", "95% interval", "p (Holm)", "seeds", "Verdict"]
    groups = [("", 3), ("Effect", 3), ("", 3)] + ([("Verdict on", len(several))] if several else [])
    each = long.set_index(["id", "dataset"])
    rows = []
    for claim in spec["claims"]:
        one = each.loc[(claim["id"], ALL)]
        rows.append(
            [
                Cell(sentence(claim["says"])),
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
    """Decimals of an effect: one for points, two else."""
    return 1 if one.unit == "points" else 2


def span(one: pd.Series) -> str:
    """An interval for people."""
    if pd.isna(one.get("low")):
        return ""
    return f"{number(one.low, places(one), signed=True)} to {number(one.high, places(one), signed=True)}"


def remarks(long: pd.DataFrame, spec: dict, mixtures: list[str]) -> list[str]:
    """How the verdicts come about, and why to be careful."""
    seeds = long.seeds[long.seeds > 0]
    margins = [
        f"{claim['says']}: margin {claim['margin']:g}, {claim['margin_reason']}."
        for claim in spec["claims"]
        if "margin" in claim
    ]
    few = [f"Fewer than five seeds here ({seeds.min()} at least): spread over seeds is hardly known."]
    return [
        f"Ours at scale {spec['scale']}. {READING}",
        METHOD,
        *(few if len(seeds) and seeds.min() < FEW_SEEDS else []),
        *margins,
        *mixtures,
    ]


STATISTICS = {"score": score, "seed_spread": seed_spread, "norm_slope": norm_slope}
