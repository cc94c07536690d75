"""The table of claims for people: a row for each claim, and notes on how to read it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.report.sheet import Block, Cell, Sheet, chance, greek, number

ALL = "all"
DECIDED = ("holds", "fails")  # verdicts
FEW_SEEDS = 5
READING = (
    "An effect is the mean over data sets and seeds of one method's score minus another's. It is positive "
    "where the method that the claim calls better is ahead; where the claim calls two alike, or one little "
    "better, it is positive where the facts would speak against that."
)
MEANING = {
    "doublings": "Doublings: log2 of the ratio of SDs over seeds.",
    "exponent": "Exponent: by how much the slope of log norm on log count is nearer to zero.",
    "distance": "Distance: Euclidean, of features.",
    "ratio": "Ratio: of the distance within classes to that between them.",
}
METHOD = (
    "Intervals and p: the variance over seeds of the paired difference, with Student's t, and that of test "
    "examples (classes for norms and distances), by the bootstrap; F distribution for spreads. p is "
    "two-sided, with Holm's correction over all claims judged; verdicts on single data sets are without it. "
    "A claim holds or fails at p < 0.05, else it is undecided, as it always is at one seed."
)


def overall(file: Path) -> pd.DataFrame:
    """The claims over all data sets, in a table of claims that `tabulate` wrote."""
    table = pd.read_csv(file, dtype={"section": str}, keep_default_na=False, na_values=[""])
    return table[table.dataset == ALL]


def chosen(spec: dict) -> list[str]:
    """A sentence about what was chosen on dev before anything was compared."""
    if "choose" not in spec:
        return []
    over, by = spec["choose"]["over"], spec["choose"]["by"]
    return [f"Of each method on each data set the {over} with the best mean dev {by}, where it has several."]


def layout(long: pd.DataFrame, spec: dict, reports: dict, others: list[str]) -> Sheet:
    """A row for each claim; if there are several data sets, the verdicts on each are at its right."""
    several = list(reports) if len(reports) > 1 else []
    heads = ["Claim", "Section", "Unit", "reported", "ours", "95% interval", "p (Holm)", "seeds"]
    heads += ["sets", "Verdict"] if several else ["Verdict"]
    groups = [("", 3), ("Effect", 3), ("", len(heads) - 6)]
    if "original" in spec:
        heads += ["ours", "p (Holm)", "seeds", "Verdict", "Change"]
        groups += [(f"Under {spec['original']['protocol']}", 4), ("", 1)]
    groups += [("Verdict on", len(several))] if several else []
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
                Cell(chance(one.get("p_holm"))),
                Cell(number(one.seeds or None, 0)),
                *([Cell(one.sets)] if several else []),
                Cell(one.verdict, best=one.verdict in DECIDED),
                *(under_original(one) if "original" in spec else []),
                *(Cell(each.verdict.get((claim["id"], name), "")) for name in several),
            ]
        )
    heads += [reports[name]["title"] for name in several]
    align = [r">{\raggedright\arraybackslash}p{7cm}", *"llrrrrr", *("rl" if several else "l")]
    align += ["r", "r", "r", "l", "l"] if "original" in spec else []
    align += ["l"] * len(several)
    label = f"tab:{spec['paper']}-{spec['name']}"
    return Sheet(
        spec["caption"], label, groups, heads, align, [Block("", rows)], remarks(long, spec, reports, others)
    )


def under_original(one: pd.Series) -> list[Cell]:
    """What a claim is under the original protocol, and what became of its verdict."""
    return [
        Cell(number(one.get("original_ours"), places(one), signed=True)),
        Cell(chance(one.get("original_p_holm"))),
        Cell(number(one.original_seeds or None, 0)),
        Cell(one.original_verdict, best=one.original_verdict in DECIDED),
        Cell(one.change),
    ]


def compared_with(spec: dict) -> list[str]:
    """How the judgement under the original protocol is to be read."""
    before, now = spec["original"]["protocol"], spec["protocol"]
    lines = [
        f"Left under {now}, then under {before}: the same claims on the same data sets and test examples, "
        "each protocol with its own settings, seeds and Holm's correction. Change is what became of the "
        "verdict."
    ]
    if len(spec["seeds"]) != len(spec["original"]["seeds"]):
        lines.append("The protocols differ in their number of seeds, which alone can change a verdict.")
    return lines


def places(one: pd.Series) -> int:
    """The decimals of an effect: one for points, three for ratios, two otherwise."""
    return {"points": 1, "ratio": 3}.get(one.unit, 2)


def span(one: pd.Series) -> str:
    """An interval for people."""
    if pd.isna(one.get("low")):
        return ""
    return f"{number(one.low, places(one), signed=True)} to {number(one.high, places(one), signed=True)}"


def remarks(long: pd.DataFrame, spec: dict, reports: dict, others: list[str]) -> list[str]:
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
        few = ["One seed here: spread over seeds is unknown, so there is no interval and no verdict."]
    return [
        f"Ours at scale {spec['scale']}. {' '.join([READING, *meanings])}",
        METHOD,
        *(few if len(seeds) and seeds.min() < FEW_SEEDS else []),
        *margins,
        *partial(long, reports),
        *others,
    ]


def partial(long: pd.DataFrame, reports: dict) -> list[str]:
    """Which data sets a claim that is judged lacks, once for all claims that lack the same."""
    judged = long[(long.dataset == ALL) & (long.lacks != "") & (long.seeds > 0)]
    return [
        f"Without {', '.join(reports[name]['title'] for name in lacks.split(' '))}, where no seed has both "
        f"methods: {'; '.join(claims.says)}."
        for lacks, claims in judged.groupby("lacks", sort=False)
    ]
