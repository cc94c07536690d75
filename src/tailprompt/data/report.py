"""The report of a data set: its numbers, for scores, tables and people."""

from __future__ import annotations

import pandas as pd

from tailprompt.data import checks, tagged
from tailprompt.data.columns import CHOICES, SET
from tailprompt.data.folders import others
from tailprompt.data.groups import groups
from tailprompt.errors import counted

THRESHOLD, MANY, FEW = 0.65, 100, 20  # for a row that states none


def describe(
    table: pd.DataFrame,
    classes: list[str],
    row: dict,
    *,
    dataset: str,
    task: str,
    sources: dict[str, str],
    **more,
) -> dict:
    """The report of a canonical table; `row` is the data set's row in the configuration.

    more: what stage decode reports of images: left_out (a number), converted (numbers by mode) and skipped
    (numbers by ending); of joined sets met: how many training rows of each were left out, as dev or test of
    another has them; read: sentences about how files and labels were taken. For images, duplicates, shared
    and conflicts compare pixels.
    """
    by_split = {split: table[table["split"] == split] for split in ("train", "dev", "test")}
    counts = {split: per_class(part, len(classes)) for split, part in by_split.items()}
    whole = pd.Series(pd.factorize(content(table))[0], index=table.index)  # a number is quick to compare
    keys = {split: whole[part.index] for split, part in by_split.items()}
    shot = {"many": row.get("many", MANY), "few": row.get("few", FEW), "shots": row.get("shots", "survey")}
    grouped = {"threshold": row.get("threshold", THRESHOLD), "head_source": row.get("head_source", "test")}
    return {
        "dataset": dataset,
        "task": task,
        **{key: row.get(key) for key in ("title", "note", "language", "reported", "licence")},
        "classes": classes,
        "rows": {split: len(part) for split, part in by_split.items()},
        "counts": counts,
        **grouped,
        "groups": without_shots(groups(counts, **shot, **grouped), row),
        "shots": shot["shots"],
        "imbalance": imbalance(counts["train"]),
        "mean_length": mean_length(table, row.get("language")),
        "duplicates": {split: int(key.duplicated().sum()) for split, key in keys.items()},
        "shared": {f"{a},{b}": shared(keys[a], keys[b]) for a, b in PAIRS},
        "conflicts": conflicts(table, whole),
        "majority": {split: round(max(n) / max(1, sum(n)), 4) for split, n in counts.items()},
        "absent": {split: [c for c, k in enumerate(n) if not k] for split, n in counts.items()},
        "singletons": [c for c, k in enumerate(counts["train"]) if k == 1],
        **drawn(table, row),
        **({"options": odd} if CHOICES in table and (odd := checks.odd_options(table)) else {}),
        **({"roles": True} if "predicate" in table and SET not in table else {}),
        "row": {key: value for key, value in row.items() if key != "asked"},
        "sources": sources,
        **more,
        **evaluated(table, row),
    }


def without_shots(found: dict, row: dict) -> dict:
    """Groups of classes; a test set of another data set's runs has no training counts, so no shot groups."""
    if "trained_on" not in row:
        return found
    none = {"many": [], "medium": [], "few": []}
    return {split: {**each, **none} for split, each in found.items()}


PAIRS = [("train", "dev"), ("train", "test"), ("dev", "test")]


def content(table: pd.DataFrame) -> pd.Series:
    """The content by which two examples are the same: their texts, or the digest of their pixels."""
    if "image" in table:
        return table["digest"]
    if "tags" in table:
        return tagged.content(table)
    parts = [table[column] for column in ("text", "pair") if column in table]
    if "choices" in table:
        parts.append(table["choices"].map("\0".join))
    return parts[0].str.cat(parts[1:], sep="\0")


def conflicts(table: pd.DataFrame, whole: pd.Series) -> int:
    """The number of contents that have several labels."""
    labels = table["tags"].map(tuple) if "tags" in table else table["label"]
    return int((labels.groupby(whole).nunique() > 1).sum())


def drawn(table: pd.DataFrame, row: dict) -> dict:
    """The ids of the train and dev examples that a few-shot cut keeps."""
    if not {"shots", "total"} & row.get("cut", {}).keys():
        return {}
    return {"drawn": {split: list(table.loc[table["split"] == split, "id"]) for split in ("train", "dev")}}


def evaluated(table: pd.DataFrame, row: dict) -> dict:
    """How a test set for the classes of another data set is scored.

    trained_on: the data set whose runs are evaluated on it. among: the class ids that a prediction is chosen
    from, which are those that are correct for some image; null means all classes.
    """
    if "trained_on" not in row:
        return {}
    present = row.get("among") == "present"
    among = sorted({int(c) for accepted in table["accepted"] for c in accepted}) if present else None
    return {"trained_on": row["trained_on"], "among": among}


def per_class(part: pd.DataFrame, classes: int) -> list[int]:
    """The number of examples of each class; of tagging, of entities of each type."""
    if "tags" in part:
        return tagged.entity_counts(part, classes)
    return part["label"].value_counts().reindex(range(classes), fill_value=0).tolist()


def imbalance(counts: list[int]) -> float | None:
    """The size of the largest class over that of the smallest non-empty one; None without examples."""
    present = [n for n in counts if n]
    return round(max(present) / min(present), 2) if present else None


def mean_length(table: pd.DataFrame, language: str | None) -> float | None:
    """Mean number of characters (zh) or words of both texts, over all splits, as in GLEE; None for images.

    A second text that is part of the first is not counted again.
    """
    if "words" in table:
        count = (lambda words: len("".join(words))) if language == "zh" else len
        return round(float(table["words"].map(count).mean()), 1)
    if "text" not in table:
        return None

    def length(text: str) -> int:
        return len(text) if language == "zh" else len(text.split())

    columns = ["text"]
    if "pair" in table and not all(
        pair in text for text, pair in zip(table["text"], table["pair"], strict=True)
    ):
        columns.append("pair")
    return round(sum(sum(map(length, table[column])) for column in columns) / max(1, len(table)), 1)


def shared(first: pd.Series, second: pd.Series) -> int:
    """The number of rows of the second split whose content is also in the first."""
    return int(second.isin(set(first)).sum())


def sentence_of(report: dict) -> str:
    """The report in a few lines, for people."""
    rows, absent = report["rows"], report["absent"]
    head, images = report["groups"]["test"], report["mean_length"] is None
    kind = "images" if images else "texts"
    lines = [
        f"{report['dataset']}: {report['title']}" + (f" ({report['note']})" if report["note"] else ""),
        f"  rows        train {rows['train']:,}, dev {rows['dev']:,}, test {rows['test']:,}; "
        + counted(len(report["classes"]), "class")
        + (f", imbalance {report['imbalance']:g}" if report["imbalance"] else "")
        + ("" if images else f", mean length {report['mean_length']}"),
        f"  head, tail  {len(head['head'])}, {len(head['tail'])} (test); "
        f"many, medium, few  {len(head['many'])}, {len(head['medium'])}, {len(head['few'])} "
        f"(train, {report['shots']})",
        f"  repeats     in train {report['duplicates']['train']}, test rows also in train "
        f"{report['shared']['train,test']}, {kind} with several labels {report['conflicts']}",
        f"  absent      classes without examples: train {len(absent['train'])}, dev {len(absent['dev'])}, "
        f"test {len(absent['test'])}; with one in train: {len(report['singletons'])}",
    ]
    lines += [f"  read        {note}" for note in report.get("read", [])]
    if odd := report.get("options"):
        lines.append(f"  options     {odd}")
    if "met" in report:
        met = ", ".join(f"{name} {number:,}" for name, number in report["met"].items())
        lines.append(f"  joined      training rows left out that dev or test of another set has: {met}")
    if images:
        converted = ", ".join(f"{n:,} from {mode}" for mode, n in report["converted"].items())
        skipped = others(report.get("skipped", {}))
        lines.append(
            f"  images      converted to RGB: {converted or 'none'}; left out {report['left_out']:,}"
            f"{skipped and f'; {skipped}'}"
        )
    return "\n".join(lines)
