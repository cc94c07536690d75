"""How many parameters a run tunes, from what it wrote: columns of LPT Tables 1, 3, 12 and 17, in millions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt import records
from tailprompt.plan import Point
from tailprompt.tables.layout import Measure

NOTE = (
    "Parameters in millions. Tuned: without the classifier, with the prompts of the run that a run starts "
    "from and with the keys of a prompt pool, which LPT does not count. Total: with our classifier."
)


def counted(found: pd.DataFrame, kinds: list[str]) -> pd.DataFrame:
    """A row for each data set, method and kind: ours (the first run's, all seeds have the same) and n."""
    rows = []
    for (dataset, method), part in found.groupby(["dataset", "method"], sort=False):
        there = part[part.there]
        counts = in_run(there.folder.iloc[0], there.record.iloc[0]) if len(there) else {}
        line = {"dataset": dataset, "method": method, "run": part.run.iloc[0], "n": len(there)}
        line["backbone"] = part.backbone.iloc[0]
        rows += [line | {"metric": f"parameters/{kind}", "ours": counts.get(kind, np.nan)} for kind in kinds]
    return pd.DataFrame(rows)


def in_run(folder: Path, run: dict) -> dict[str, float]:
    """Millions of parameters of a run by kind."""
    tensors = tuned(folder, run)
    counts = {"tuned": sum(tensors.values()), "pool": tensors.get("body.pool", 0), "total": run["total"]}
    return {kind: count / 1e6 for kind, count in counts.items()}


def tuned(folder: Path, run: dict) -> dict[str, int]:
    """Sizes of the tensors that a run tunes or adds outside its head, with those of the run it starts from.

    Of full tuning only the head is kept: the rest of what was trained is one number.
    """
    sizes = records.sizes(folder)
    outside = {name: size for name, size in sizes.items() if name.startswith("body.")}
    if run["settings"]["tuner"] == "full":
        head = sum(size for name, size in sizes.items() if name.startswith("head."))
        outside = {"body": run["trainable"] - head}
    if start := run["settings"].get("start"):
        before = folder.parents[4] / Point(**{**run["point"], **start}).path
        return tuned(before, records.record(before)) | outside
    return outside


MEASURES = {
    f"parameters/{kind}": Measure(title, 2, None)
    for kind, title in (("tuned", "Tuned (M)"), ("pool", "Pool (M)"), ("total", "Total (M)"))
}
