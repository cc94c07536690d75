"""The files of runs, read for tables and figures: predictions and their scores, vectors, sizes, run.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput
from tailprompt.files import read_json, read_parquet
from tailprompt.plan import agreement, either, printed_file
from tailprompt.plan.places import report_file, results_of
from tailprompt.plan.points import Point
from tailprompt.report.answers import answers
from tailprompt.seals import check_sealed, read_sealed
from tailprompt.tasks.metrics import CLASS, RAREST, ranks, rarest
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import Added, once, value


def runs(root: Path, spec: dict) -> pd.DataFrame:
    """The runs of a block, with columns dataset, method, run, backbone, seed, folder, record and there.

    method: its row in the table. run: the method with what was varied. record: the content of run.json; None,
    with `there` false, for a missing run, as a block `lacks`. Raises BadInput if a run is not what is asked.
    """
    lacks = set(spec.get("lacks", []))
    rows = [
        {**run, "seed": seed, "folder": either.run_folder(root, point), "lacks": point.path in lacks}
        for run in spec["runs"]
        for seed in spec["seeds"]
        for point in [Point(spec["protocol"], run["backbone"], run["dataset"], run["run"], seed)]
    ]
    names = ["dataset", "method", "run", "backbone", "seed", "folder"]
    frame = pd.DataFrame(rows, columns=names)
    kept = [None if row["lacks"] else record(row["folder"]) for row in rows]
    for folder, one in zip(frame.folder, kept, strict=True):
        if one is not None:
            agreement.check(folder, one)
    return frame.assign(record=pd.Series(kept, dtype=object), there=[run is not None for run in kept])


def report(root: Path, dataset: str) -> dict:
    """The report that `prepare` wrote about a data set; raises BadInput if there is none."""
    path = report_file(root, dataset)
    if not path.is_file():
        raise BadInput(f"{path}: not there; the data set has not been prepared")
    check_sealed(path.with_suffix(".parquet"))
    agreement.check_table(path.with_suffix(".parquet"))
    return read_sealed(path, "classes", "rows", "counts", "groups")


def reports(root: Path, spec: dict) -> dict[str, dict]:
    """The reports of a block's data sets by name, with `of`: the title without the cut.

    If several data sets have the same title, the cut after their @ is added to it.
    """
    by_name = {row["dataset"]: report(root, row["dataset"]) for row in spec["datasets"]}
    times = Counter(one["title"] for one in by_name.values())
    for name, one in by_name.items():
        cut = name.partition("@")[2].replace("=", " ").replace(",", ", ")
        one["of"] = one["title"]
        one["title"] += f", {cut}" if times[one["of"]] > 1 and cut else ""
    return by_name


def groups(report: dict, split: str = "test") -> dict[str, list[int]]:
    """Class ids by the name of a group in scores of a split, and by `class:NAME` for each single class."""
    each = {f"{CLASS}{name}": [i] for i, name in enumerate(report["classes"])}
    return report["groups"][split] | {RAREST: rarest(report)} | each


def record(folder: Path) -> dict | None:
    """The content of a run's run.json, or None if it is missing."""
    path = folder / "run.json"
    return read_json(path) if path.is_file() else None


def scores(root: Path, frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The scores `names`, as `f1/tail`, of the runs that exist, on dev and test."""
    about = {dataset: report(root, dataset) for dataset in frame.dataset.unique()}
    rows = [
        {"dataset": run.dataset, "method": run.method, "run": run.run, "seed": run.seed, **score}
        for run in frame[frame.there & bool(names)].itertuples()
        for score in scored(run.folder, about[run.dataset], names)
    ]
    columns = ["dataset", "method", "run", "seed", "split", "score", "value"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float})


def scored(folder: Path, report: dict, names: Iterable[str]) -> list[dict]:
    """The scores `names` of a run, computed from its predictions, which takes a few milliseconds."""
    task, scores, report = recorded(report), [], ranking(report, names)
    for split, part in answers(folder, agreement.data_of(folder), report).items():
        if part.empty:  # dev of a test set for runs on other data
            continue
        summed, of = once(task.added(part, report)), groups(report, split)
        for name in dict.fromkeys(names):
            scores.append({"split": split, "score": name, "value": float(value(task, name, summed, of))})
    return scores


def ranking(report: dict, names: Iterable[str | None]) -> dict:
    """The report, told whether these scores need the scores of all classes (`ranked`), which are large."""
    return {**report, "ranked": True} if ranks(names) else report


def choose(table: pd.DataFrame, by: str) -> dict[tuple[str, str], str]:
    """(dataset, method) -> the run with the best mean dev score `by` over seeds; the first of equals.

    A run that lacks seeds of others is not compared, because one lucky seed would win. Raises BadInput if
    the score is undefined.
    """
    dev = table[(table.split == "dev") & (table.score == by)]
    means = dev.groupby(["dataset", "method", "run"], sort=False).value.agg(["mean", "count"])
    cells = means.groupby(level=["dataset", "method"], sort=False)
    for (dataset, method), part in cells:
        if part["mean"].isna().all():
            raise BadInput(f"choose: {by} of {method} is undefined on dev of {dataset}; take another")
    return {key: part[part["count"] == part["count"].max()]["mean"].idxmax()[2] for key, part in cells}


def taken(root: Path, spec: dict, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """The runs of a block, their scores `names`, and what was chosen. `choose` keeps the best runs on dev."""
    frame = runs(root, spec)
    if "choose" not in spec:
        return frame, scores(root, frame, names), {}
    table = scores(root, frame, [*names, spec["choose"]["by"]])
    chosen = choose(table, spec["choose"]["by"])
    kept = [chosen.get((run.dataset, run.method), run.run) == run.run for run in frame.itertuples()]
    scored = [chosen.get((row.dataset, row.method)) == row.run for row in table.itertuples()]
    return frame[kept], table[scored], chosen


def statistics(frame: pd.DataFrame, report: dict) -> dict[tuple[str, int], Added]:
    """(method, seed) -> what each test example of a data set adds to the sums, in the order of ids.

    Raises BadInput if runs have different test examples.
    """
    task, order, added = recorded(report), None, {}
    for run in frame[frame.there].itertuples():
        parts = answers(run.folder, agreement.data_of(run.folder), report)
        table = parts["test"].sort_values("id")
        if order is not None and not np.array_equal(order, table.id.to_numpy()):
            raise BadInput(
                f"{run.folder}: its test examples are not those of the other runs on {run.dataset}"
            )
        order = table.id.to_numpy()
        added[run.method, run.seed] = task.added(table, report)
    return added


def test_ids(frame: pd.DataFrame) -> list[str]:
    """The ids of the test examples of a data set in order, which all its runs share; [] without runs."""
    for run in frame[frame.there].itertuples():
        table = read_parquet(run.folder / "predictions.parquet", "id", "split")
        return sorted(table.id[table["split"] == "test"].astype(str))
    return []


def vectors(folder: Path, *, complete: bool = True) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Split -> features `[examples, width]` and labels `[examples]` of a run, in the order of ids.

    Raises BadInput if they must be `complete` and train or test is missing.
    """
    path = folder / "features.parquet"
    table = read_parquet(path, "id", "split", "label", "vector").sort_values("id")
    if complete and not {"train", "test"} <= set(table.split):
        raise BadInput(f"{path} lacks train or test examples; the run was not told to write all vectors")
    parts = table.groupby("split", sort=False)
    return {split: (np.stack(part.vector), part.label.to_numpy()) for split, part in parts}


def prompts(folder: Path) -> pd.DataFrame:
    """The label and the chosen group prompts (a list of ids) of each test example of a run."""
    table = read_parquet(folder / "predictions.parquet", "split", "label", "prompts")
    return table[table.split == "test"]


def printed_name(report: dict) -> str | None:
    """The name of a data set in the paper's printed numbers, with its cut; None if it has none."""
    _, at, cut = report["dataset"].partition("@")
    return f"{report['reported']}{at}{cut}" if report.get("reported") else None


def printed(spec: dict) -> pd.DataFrame:
    """The printed numbers that stand beside those of a block."""
    return reported(spec.get("reported", spec["paper"]))


def reported(paper: str) -> pd.DataFrame:
    """The printed numbers of a paper, in points; empty for a paper without a file (your own data)."""
    path = printed_file.file_of(paper)
    if not path.is_file():
        return pd.DataFrame(columns=printed_file.COLUMNS).astype({"value": float, "spread": float})
    printed_file.rows(path)  # says what pandas would not
    return pd.read_csv(path, dtype={"value": float, "spread": float})


def mixtures(frame: pd.DataFrame) -> list[str]:
    """A sentence for each difference between the runs that is no difference of methods, data sets or seeds.

    All runs, and those that they start from, have one source code, set of packages, device and number of
    threads. The seeds of a cell are asked the same in all else and read the same data.
    """
    runs = frame[frame.there]
    kept = [*runs.record, *starts(runs)]
    sentences = unlike(runs)
    for key, name in (
        ("sources", "versions of the source code"),
        ("versions", "sets of package versions"),
        ("threads", "numbers of CPU threads"),
    ):
        kinds = Counter(json.dumps(run.get(key), sort_keys=True) for run in kept)
        if len(kinds) > 1:
            counts = ", ".join(str(count) for count in sorted(kinds.values(), reverse=True))
            sentences.append(
                f"These runs mix {len(kinds)} {name} ({counts} runs); run.json of each says which."
            )
    devices = Counter(str(run.get("device")) for run in kept)
    if len(devices) > 1:
        counts = ", ".join(f"{device} {count}" for device, count in sorted(devices.items()))
        sentences.append(f"These runs mix devices: {counts}.")
    return sentences


SAME = ("settings", "backbone", "weights", "verbalizer", "data", "computed_in")  # for all seeds of a cell


def unlike(runs: pd.DataFrame) -> list[str]:
    """A sentence for each cell whose seeds were not asked the same, or not trained on the same data.

    What a run of an older version does not say is not compared.
    """
    found = []
    for _, cell in runs.groupby([runs.folder.map(lambda folder: folder.parent.as_posix())], sort=False):
        said = [key for key in SAME if all(key in record for record in cell.record)]
        first, *others = [{key: record[key] for key in said} for record in cell.record]
        keys = {key for each in others for key in agreement.differing(of_rows(each, first), first)}
        if keys:
            what = ", ".join(sorted(keys))
            found.append(f"The seeds of {cell.method.iloc[0]} on {cell.dataset.iloc[0]} differ in {what}.")
    return found


def of_rows(record: dict, first: dict) -> dict:
    """What a run says of itself, with the digests of the data of the first run if the rows are the same."""
    ours, theirs = (agreement.digests_of(each.get("data")) for each in (record, first))
    if not agreement.same_data(ours, theirs):
        return record
    data = {key: value for key, value in record["data"].items() if key not in agreement.DATA}
    return record | {"data": data | theirs}


def starts(runs: pd.DataFrame) -> list[dict]:
    """What run.json says of each run that these runs build on and that is there."""
    found, waiting = {}, list(zip(runs.folder, runs.record, strict=True))
    while waiting:
        folder, about = waiting.pop()
        path = (about.get("start") or {}).get("run")
        if path and path not in found:
            first = either.run_folder(results_of(folder), Point.at(path))
            if (of_first := record(first)) is not None:
                found[path] = of_first
                waiting.append((first, of_first))
    return list(found.values())
