"""The claims of a paper tested on our runs: its effect, ours with an interval, and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import named
from tailprompt.report import bootstrap, records, separability, separated, trained, verdicts
from tailprompt.report.sheet import Sheet
from tailprompt.report.tables.claims_sheet import ALL, chosen, compared_with, layout
from tailprompt.report.tables.notes import absent
from tailprompt.report.tables.printed import printed_effects
from tailprompt.tasks.registry import recorded

UNITS = {"score": "points", "seed_spread": "doublings", "norm_slope": "exponent"}
DISTANCES = {"gamma": "ratio"}  # units of separability, distances else and points for K-NN
NOT_RUN = "not run"
CHANGES = {  # verdict under the original protocol, and now
    ("holds", "holds"): "survives",
    ("holds", "undecided"): "no longer shown",
    ("holds", "fails"): "turns round",
    ("undecided", "holds"): "now holds",
    ("undecided", "undecided"): "still undecided",
    ("undecided", "fails"): "now fails",
    ("fails", "holds"): "turns round",
    ("fails", "undecided"): "no longer refuted",
    ("fails", "fails"): "fails still",
}


def claims(root: Path, spec: dict) -> tuple[pd.DataFrame, Sheet, Sheet]:
    """A row for each claim over all data sets, with Holm's correction, and a row on each data set.

    Under the protocol that the block names as the original the claims are judged in the same way.
    """
    reports = records.reports(root, spec)
    long, notes = judgements(root, spec, reports)
    if "original" in spec:
        before, more = judgements(root, {**spec, **spec["original"]}, reports)
        long = beside(long, before)
        notes += [note for note in [*compared_with(spec), *more] if note not in notes]
    sheet = layout(long, spec, reports, notes)
    return long, sheet, sheet


def judgements(root: Path, spec: dict, reports: dict) -> tuple[pd.DataFrame, list[str]]:
    """The rows of all claims under one protocol, and notes on its runs."""
    runs, _, _ = records.taken(root, spec, [])
    evidence = {dataset: gather(runs[runs.dataset == dataset], spec, reports[dataset]) for dataset in reports}
    printed = records.printed(spec)
    rows = [row for claim in spec["claims"] for row in judged(claim, evidence, reports, printed)]
    long = pd.DataFrame(rows)
    overall = (long.dataset == ALL) & long.p.notna()
    long.loc[overall, "p_holm"] = verdicts.holm(long.p[overall].tolist())
    decided = [verdicts.verdict(row.p_holm, row.speaks_for) for row in long[overall].itertuples()]
    long.loc[overall, "verdict"] = decided
    notes = [*chosen(spec), *absent(runs, reports, spec), *records.mixtures(runs)]
    return long.drop(columns="speaks_for"), notes


def beside(long: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """The rows of claims with their judgement under the original protocol, and what became of it."""
    columns = ["ours", "low", "high", "p", "p_holm", "seeds", "verdict"]
    then = before[["id", "dataset", *(name for name in columns if name in before)]]
    names = {name: f"original_{name}" for name in columns}
    both = long.merge(then.rename(columns=names), on=["id", "dataset"], how="left", validate="1:1")
    pairs = zip(both.original_verdict, both.verdict, strict=True)
    return both.assign(change=[CHANGES.get(pair, "") for pair in pairs])


def gather(runs: pd.DataFrame, spec: dict, report: dict) -> dict:
    """What the claims on one data set need: values of each (method, seed) in every draw, or of each class."""
    here = [claim for claim in spec["claims"] if report["dataset"] in claim["datasets"]]
    about = {kind: [claim for claim in here if kind_of(claim) == kind] for kind in STATISTICS}
    scored = about["score"] + about["seed_spread"]
    names = sorted({claim[key] for claim in scored for key in ("metric", "beyond") if key in claim})
    task, groups, ids = recorded(report), records.groups(report), records.test_ids(runs)
    added = records.statistics(runs, records.ranking(report, names)) if names else {}
    classes = bootstrap.times(len(report["classes"]), bootstrap.DRAWS, bootstrap.stream(*report["classes"]))
    return {
        "drawn": bootstrap.replicates(task, names, groups, added, bootstrap.stream(*ids)),
        "norms": {run: trained.norms(folder) for run, folder in compared(runs, about["norm_slope"])},
        "features": features(runs, about["separability"], ids, classes),
        "train": np.asarray(report["counts"]["train"]),
        "classes": classes,
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
    runs: pd.DataFrame, claims: list[dict], ids: list[str], classes: np.ndarray
) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Run -> each statistic that claims name, of its features, in every draw of test examples or classes."""
    names = sorted({claim["metric"] for claim in claims})
    pairs = compared(runs, claims)
    if not pairs:
        return {}
    examples = bootstrap.times(len(ids), bootstrap.DRAWS, bootstrap.stream(*ids))
    return {run: separated.statistics(folder, names, classes, examples) for run, folder in pairs}


def measured(claim: dict, evidence: dict) -> verdicts.Effect | None:
    """The effect of a claim on one data set; None if no seed has both methods."""
    source, pick, effect = named(STATISTICS, kind_of(claim), "statistic of a claim")
    both = pair(evidence[source], claim, partial(pick, claim))
    return effect(*both, evidence) if both else None


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
    effects = {name: measured(claim, evidence[name]) for name in claim["datasets"]}
    there = {name: one for name, one in effects.items() if one is not None and not np.isnan(one.value)}
    run = [effect for effect in effects.values() if effect is not None]
    printed_effect = printed_effects(claim, printed)
    mean = float(np.mean(list(printed_effect.values()))) if printed_effect else np.nan
    total = row(claim, ALL, verdicts.over_all(run) if run else None, mean)
    total["lacks"] = " ".join(name for name in effects if name not in there)
    total["sets"] = f"{len(there)} of {len(effects)}" if total["lacks"] else str(len(effects) or "")
    return [total] + [
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
    low, high = verdicts.interval(effect)
    p, speaks_for = verdicts.decide(claim["direction"], effect, claim.get("margin", 0.0))
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


STATISTICS = {  # key of the evidence, (claim, a run's evidence) -> values, and the effect of both methods
    "score": ("drawn", drawn_score, lambda a, b, _: verdicts.score(a.T, b.T)),
    "seed_spread": (
        "drawn",
        lambda claim, scores: scores[claim["metric"]][0],
        lambda a, b, _: verdicts.seed_spread(a, b),
    ),
    "norm_slope": (
        "norms",
        lambda _, norms: norms,
        lambda a, b, evidence: verdicts.norm_slope(a, b, evidence["train"], evidence["classes"]),
    ),
    "separability": ("features", features_apart, lambda a, b, _: verdicts.difference(a.T, b.T)),
}
