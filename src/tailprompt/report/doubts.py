"""Which labels are most doubtful, by the probabilities that several methods give to held-out rows.

Scores are cleanlab's (Northcutt et al. 2021; Kuan and Mueller 2022), with its correction for classes that a
model trusts less. A rare class is one of these: a plain ranking would give all its rows away. So rows are
ranked within their class, and no class may lose more than a share of its rows, and never half.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tailprompt.errors import counted

SHARE = 0.2  # of the rows of a class that are advised to be checked
CHECK, KEEP = "check", "keep"


def self_confidence(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The probability of the given label. shares: `[rows, classes]`."""
    return shares[np.arange(len(labels)), labels]


def normalized_margin(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(1 + the label's probability - the best other one's) / 2: below 0.5 if another class is likelier."""
    others = shares.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return (1 + self_confidence(shares, labels) - others.max(axis=1)) / 2


def usual(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each class the mean probability of its own rows; of a class without rows the largest of them."""
    counts = np.bincount(labels, minlength=shares.shape[1])
    totals = np.bincount(labels, self_confidence(shares, labels), minlength=shares.shape[1])
    means = np.divide(totals, counts, out=np.full(len(counts), -np.inf), where=counts > 0)
    return np.where(counts > 0, means, means.max())


def adjusted(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probabilities less what is usual of their class, which trusted and distrusted classes then share."""
    own = usual(shares, labels)
    raised = shares - own + own.max()
    return raised / raised.sum(axis=1, keepdims=True)


def allowed(rows: int, share: float = SHARE) -> int:
    """How many rows of a class may be doubted: a share of them, rounded up, and fewer than half."""
    return min(math.ceil(share * rows), (rows - 1) // 2)


def doubtful(by_method: dict[str, np.ndarray], labels: np.ndarray, *, share: float = SHARE) -> pd.DataFrame:
    """The rows whose label is doubtful, by their place, the first of each class first.

    by_method: method -> probabilities `[rows, classes]`. A row is doubtful if another class is likelier,
    adjusted for its class, and at least half of the methods decide for another class than its label.
    """
    each = np.stack([*by_method.values()])
    shares = each.mean(axis=0)
    fair = adjusted(shares, labels)
    margin, place = normalized_margin(fair, labels), np.arange(len(labels))
    others = shares.copy()
    others[place, labels] = -np.inf
    suggested = others.argmax(axis=1)
    decided = each.argmax(axis=2)
    against = (decided != labels).sum(axis=0)
    counts, right = np.bincount(labels, minlength=shares.shape[1]), (decided == labels).mean(axis=0)
    table = pd.DataFrame(
        {
            "place": place,
            "label": labels,
            "suggested": suggested,
            "margin": margin,
            "label_probability": self_confidence(shares, labels),
            "suggested_probability": shares[place, suggested],
            "usual_probability": usual(shares, labels)[labels],
            "agree": (decided == suggested).sum(axis=0),
            "methods": len(each),
            "class_rows": counts[labels],
            "class_recall": (np.bincount(labels, right, len(counts)) / np.maximum(1, counts))[labels],
        }
    )
    table = table[(margin < 0.5) & (2 * against >= len(each))].sort_values("margin", kind="stable")
    table["rank"] = 1 + table.groupby("label").cumcount()
    within = table["rank"] <= table.class_rows.map(lambda rows: allowed(rows, share))
    table["advice"] = np.where(within, CHECK, KEEP)
    return table.sort_values(["advice", "rank", "margin"], kind="stable", ignore_index=True)


def reason(row: pd.Series, classes: list[str]) -> str:
    """Why a row is doubted, or is kept in its class though it is, for people."""
    say = f"{row.agree} of {counted(row.methods, 'method')} {'says' if row.agree == 1 else 'say'}"
    words = (
        f"{say} {classes[row.suggested]} ({row.suggested_probability:.2f}); "
        f"{classes[row.label]} gets {row.label_probability:.2f}, "
        f"where its rows usually get {row.usual_probability:.2f}"
    )
    if row.advice == KEEP:
        words += (
            f"; kept: {row['rank'] - 1} of the {counted(row.class_rows, 'row')} of its class doubted more, "
            "and the "
            f"methods get {row.class_recall:.0%} of them right, so they say little about its labels"
        )
    return words


def contradictions(table: pd.DataFrame) -> dict[str, list[str]]:
    """id -> the other labels (ids) that rows with the same text carry, case and blanks apart."""
    key = table["text"].str.split().str.join(" ").str.casefold()
    if "pair" in table:
        key = key + "\0" + table["pair"].str.split().str.join(" ").str.casefold()
    several = table[key.groupby(key).transform("size") > 1]
    found = {}
    for _, part in several.groupby(key):
        if part.label.nunique() > 1:
            found |= {
                row.id: sorted({*part.label} - {row.label}) for row in part[["id", "label"]].itertuples()
            }
    return found
