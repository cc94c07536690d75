"""The table of a comparison: a row a part and system."""

from __future__ import annotations

import pandas as pd

from benchmarks.job import Job
from benchmarks.parts import BARE, BASELINES
from benchmarks.watch import Watch

HEADS = {
    "part": "what",
    "system": "system",
    "rate": "per second",
    "unit": "of",
    "ratio": "to Trainer or AMP",
    "of_bare": "of the bare step",
    "of_matmul": "of the matmul rate",
    "peak": "peak GiB",
    "first": "first step, s",
    "note": "note",
}
DIGITS = {"rate": ",.1f", "ratio": ".2f", "of_bare": ".0%", "of_matmul": ".1%", "peak": ".1f", "first": ".2f"}


def row(part: str, system: str, job: Job, watch: Watch, *, matmul: float, peak: float, note: str) -> dict:
    """What was measured of a system. matmul: FLOPs a second of the machine. peak: GiB."""
    count = job.batch if job.unit == "images" else 1
    return {
        "part": part,
        "system": system,
        "rate": watch.rate * count,
        "unit": job.unit,
        "of_matmul": watch.rate * job.batch * job.flops / matmul,
        "peak": peak,
        "first": watch.first,
        "note": note,
    }


def compared(rows: list[dict]) -> pd.DataFrame:
    """The rows with their ratios to the baseline and the bare step of their part."""
    table = pd.DataFrame(rows, columns=[*HEADS])
    for column, systems in {"ratio": BASELINES, "of_bare": tuple(BARE)}.items():
        rates = table[table["system"].isin(systems)].groupby("part")["rate"].first()
        table[column] = table["rate"] / table["part"].map(rates).astype(float)
    return table


def markdown(table: pd.DataFrame) -> str:
    """The table for a README, with empty cells for what was not measured."""
    shown = table.copy()
    for column, digits in DIGITS.items():
        shown[column] = ["" if pd.isna(value) else format(value, digits) for value in table[column]]
    shown["part"] = shown["part"].mask(shown["part"].duplicated(), "")
    lines = [HEADS.values(), ["--:" if column in DIGITS else "---" for column in HEADS], *shown.to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
