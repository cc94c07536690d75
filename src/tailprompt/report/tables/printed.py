"""The effect of a claim in the paper's own numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tailprompt.report.tables.feature_statistics import beside_each

PRINTED_AS = {"score": "value", "seed_spread": "spread", "separability": "value"}  # statistic -> column


def printed_effects(claim: dict, printed: pd.DataFrame) -> dict[str, float]:
    """The paper's own effect by data set, from the table that the claim names.

    Where that table has the data sets of other claims too, the claim's `printed` names its own.
    """
    column = PRINTED_AS.get(claim.get("statistic", "score"))
    if column is None:
        return {}
    part = printed[(printed.table == claim.get("table")) & (printed.dataset != "avg")]
    part = part[part.dataset.isin(claim.get("printed", part.dataset))]
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
