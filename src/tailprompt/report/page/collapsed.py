"""Methods that name one class alone, or nearly: they did not learn, and no verdict counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from tailprompt.plan import agreement
from tailprompt.report.answers import answers
from tailprompt.tasks.one_class import one_class


@dataclass(frozen=True)
class Collapsed:
    """The classes that runs name alone, their least share of the predictions, and how many runs of all."""

    names: tuple[str, ...]  # "" where it is no class
    share: float
    runs: int
    of: int


def collapsed(runs: pd.DataFrame, report: Mapping) -> Collapsed | None:
    """What the runs of a method name alone; None if each names other classes as well."""
    each = [answers(folder, agreement.data_of(folder), report)["test"] for folder in runs.folder]
    found = [only for rows in each if (only := one_class(rows))]
    if not found:
        return None
    ids, shares = zip(*found, strict=True)
    names = [report["classes"][c] if c < len(report["classes"]) else "" for c in dict.fromkeys(ids)]
    return Collapsed(tuple(names), min(shares), len(found), len(each))
