"""How many parameters a run tunes and how many its model has, from the files of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.plan.either import run_folder
from tailprompt.plan.places import results_of
from tailprompt.plan.points import Point
from tailprompt.report import records, trained


def counted(runs: pd.DataFrame, kinds: list[str]) -> pd.DataFrame:
    """A row for each data set, method and kind: `ours` (of the first run, as seeds do not differ) and n."""
    rows = []
    for (dataset, method), part in runs.groupby(["dataset", "method"], sort=False):
        there = part[part.there]
        counts = in_run(there.folder.iloc[0], there.record.iloc[0]) if len(there) else {}
        line = {"dataset": dataset, "method": method, "run": part.run.iloc[0], "n": len(there)}
        line["backbone"] = part.backbone.iloc[0]
        rows += [line | {"metric": f"parameters/{kind}", "ours": counts.get(kind, np.nan)} for kind in kinds]
    return pd.DataFrame(rows)


def in_run(folder: Path, run: dict) -> dict[str, float]:
    """Millions of parameters by kind: `tuned` (without the classifier), in the prompt `pool`, and in `total`.

    run: the content of run.json.
    """
    tensors = tuned(folder, run)
    counts = {"tuned": sum(tensors.values()), "pool": tensors.get("body.pool", 0), "total": run["total"]}
    return {kind: count / 1e6 for kind, count in counts.items()}


def tuned(folder: Path, run: dict) -> dict[str, int]:
    """Sizes of the tensors that a run and its start tune or add outside the head, by name.

    Full tuning writes only the head, so the rest of what it trained is one number, `body`.
    """
    sizes = trained.sizes(folder)
    outside = {name: size for name, size in sizes.items() if name.startswith("body.")}
    if run["settings"]["tuner"] == "full":
        head = sum(size for name, size in sizes.items() if name.startswith("head."))
        outside = {"body": run["trainable"] - head}
    start = run["settings"].get("start")
    if start and "folder" not in start:
        # a start may say more than which run it is: that the head is fresh
        point = {key: start.get(key, value) for key, value in run["point"].items()}
        before = run_folder(results_of(folder), Point(**point))
        return tuned(before, records.record(before)) | outside
    return outside
