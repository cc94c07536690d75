"""What a data set is like, in numbers, for tables, scores and people."""

from __future__ import annotations

import pandas as pd

from tailprompt.data.groups import groups

THRESHOLD, MANY, FEW = 0.65, 100, 20  # of a row that states none


def describe(
    table: pd.DataFrame, classes: list[str], row: dict, *, dataset: str, sources: dict[str, str]
) -> dict:
    """The report of a canonical table; `row` is the data set's row in the configuration."""
    by_split = {split: table[table["split"] == split] for split in ("train", "dev", "test")}
    counts = {split: per_class(part, len(classes)) for split, part in by_split.items()}
    whole = table["text"] + "\0" + table["pair"] if "pair" in table else table["text"]
    keys = {split: whole[part.index] for split, part in by_split.items()}
    grouped = {"threshold": row.get("threshold", THRESHOLD), "head_source": row.get("head_source", "test")}
    return {
        "dataset": dataset,
        **{key: row.get(key) for key in ("title", "note", "language", "reported", "licence")},
        "classes": classes,
        "rows": {split: len(part) for split, part in by_split.items()},
        "counts": counts,
        **grouped,
        "groups": groups(counts, many=row.get("many", MANY), few=row.get("few", FEW), **grouped),
        "imbalance": round(imbalance(counts["train"]), 2),
        "mean_length": round(mean_length(table, row.get("language")), 1),
        "duplicates": {split: int(key.duplicated().sum()) for split, key in keys.items()},
        "shared": {f"{a},{b}": shared(keys[a], keys[b]) for a, b in PAIRS},
        "conflicts": int((table.groupby(whole)["label"].nunique() > 1).sum()),
        "majority": {split: round(max(n) / sum(n), 4) for split, n in counts.items()},
        "absent": {split: [c for c, k in enumerate(n) if not k] for split, n in counts.items()},
        "singletons": [c for c, k in enumerate(counts["train"]) if k == 1],
        "sources": sources,
    }


PAIRS = [("train", "dev"), ("train", "test"), ("dev", "test")]


def per_class(part: pd.DataFrame, classes: int) -> list[int]:
    """Examples of each class."""
    return part["label"].value_counts().reindex(range(classes), fill_value=0).tolist()


def imbalance(counts: list[int]) -> float:
    """Largest class over smallest, of the classes that have examples."""
    present = [n for n in counts if n]
    return max(present) / min(present)


def mean_length(table: pd.DataFrame, language: str | None) -> float:
    """Mean characters (zh) or white-space words of both texts, all splits, as GLEE counts.

    A pair that is an entity of the text itself is not counted again.
    """

    def length(texts):
        return texts.str.len() if language == "zh" else texts.str.split().str.len()

    columns = ["text"]
    if "pair" in table and not all(
        pair in text for text, pair in zip(table["text"], table["pair"], strict=True)
    ):
        columns.append("pair")
    return float(sum(length(table[column]).mean() for column in columns))


def shared(first: pd.Series, second: pd.Series) -> int:
    """Rows of the second split whose text stands in the first too."""
    return int(second.isin(set(first)).sum())


def sentence_of(report: dict) -> str:
    """A short report for people."""
    rows, absent = report["rows"], report["absent"]
    head = report["groups"]["test"]
    lines = [
        f"{report['dataset']}: {report['title']}" + (f" ({report['note']})" if report["note"] else ""),
        f"  rows        train {rows['train']:,}, dev {rows['dev']:,}, test {rows['test']:,}; "
        f"{len(report['classes'])} classes, imbalance {report['imbalance']:g}, "
        f"mean length {report['mean_length']}",
        f"  head, tail  {len(head['head'])}, {len(head['tail'])} (test); "
        f"many, medium, few  {len(head['many'])}, {len(head['medium'])}, {len(head['few'])} (train)",
        f"  repeats     in train {report['duplicates']['train']}, test rows also in train "
        f"{report['shared']['train,test']}, texts with several labels {report['conflicts']}",
        f"  absent      classes without examples: train {len(absent['train'])}, dev {len(absent['dev'])}, "
        f"test {len(absent['test'])}; with one in train: {len(report['singletons'])}",
    ]
    return "\n".join(lines)
