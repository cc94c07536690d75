"""Whether a run on disk is the one that is asked for, trained on the present data. It only compares files.

It does not import the code that makes settings, so that a table of runs does not depend on that code.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shlex
from collections.abc import Callable
from dataclasses import fields
from glob import escape
from pathlib import Path

from tailprompt.errors import BadInput, counted
from tailprompt.files import as_read, read_json, reading
from tailprompt.plan.places import (
    BUNDLED,
    brought,
    copy_of_report,
    data_of,
    file_asking,
    folders_of,
    results_of,
)
from tailprompt.plan.points import Point
from tailprompt.seals import as_written, check_prepared

OUTPUTS = ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv", "run.json")
CHECKED = OUTPUTS[1:4]  # their digests stand in run.json, beside that of the weights
FINISHED, DIGESTS = ".finished", "sha256.json"  # what is kept of a finished run; digests of its files
DATA = ("rows_sha256", "sha256")  # digests of a data set: that of its rows goes before that of its file
ASKED = ("settings", "extras", "backbone", "weights", "verbalizer", "start")  # of a run, by its run.json too
CARRIED = ("weights.json", *OUTPUTS[1:])  # of a run from a bundle; the file has what tables read in weights


def stands(wanted: dict, point: Point, results: Path, rows: dict[str, str] | None = None) -> bool:
    """Whether a run is complete in `results` and its run.json agrees with what is asked.

    A run stands only on the rows that its data set has now, and on the weights of the run that it began from.
    rows: digests of those that the data set will have, if others.
    """
    return any(stands_in(folder, wanted, rows) for folder in folders_of(results, point))


def stands_in(folder: Path, wanted: dict, rows: dict[str, str] | None = None, began: bool = True) -> bool:
    """The same of the run in `folder`, made here or brought by a bundle. began: whether its start counts."""
    record = tolerant(folder / "run.json")
    if record is None or not complete(folder) or not is_of(folder, record) or differing(record, wanted):
        return False
    report = data_of(folder).with_suffix(".json")
    rows = rows or reported(report) or reported(copy_of_report(report))  # of a data set that is gone
    return trained_on(record, rows) and (not began or same_start(record, folder, wanted))


def complete(folder: Path) -> bool:
    """Whether the folder of a run has all its files."""
    return all((folder / name).is_file() for name in (CARRIED if brought(folder) else OUTPUTS))


def is_of(folder: Path, record: dict) -> bool:
    """Whether a run.json is that of the run in `folder`, and not copied there; True if it does not say."""
    point = record.get("point")
    own = [str(point.get(field.name)) for field in fields(Point)] if isinstance(point, dict) else []
    return point is None or own == [*folder.absolute().parts[-5:]]


def trained_on(record: dict, present: dict[str, str]) -> bool:
    """Whether a run was trained on the data that have these digests; True where either has none."""
    trained = digests_of(record.get("data"))
    return not (trained and present) or same_data(trained, present)


def same_data(ours: dict[str, str], theirs: dict[str, str]) -> bool:
    """Whether two data sets hold the same rows, by their digests; their files may differ.

    The files are compared where one of the two was written before there were digests of rows.
    """
    both = [key for key in DATA if key in ours and key in theirs]
    return bool(both) and ours[both[0]] == theirs[both[0]]


def digests_of(about) -> dict[str, str]:
    """The digests of a data set in its report, or in what run.json says of data; {} without them."""
    return {key: about[key] for key in DATA if about.get(key)} if isinstance(about, dict) else {}


def reported(report: Path) -> dict[str, str]:
    """The digests of a data set in its report; {} without one, or if it is damaged."""
    return as_read(report, whole_digests) if report.is_file() else {}


def whole_digests(report: Path) -> dict[str, str]:
    """The digests of a data set in a report that is there."""
    return digests_of(tolerant(report)) if as_written(report) else {}


def same_start(record: dict, folder: Path, wanted: dict) -> bool:
    """Whether the run in `folder` began from the weights that its start has now; True without a start.

    The start is here or in a bundle. If it is in neither as it is asked, a run that a bundle brought stands,
    as weights do not travel: what its start was asked stands in its run.json.
    """
    start = wanted.get("start") or {}
    if "run" not in start:
        return True
    digests = {about.get("weights_sha256") for about in records_of(start, folder)} - {None}
    return record.get("start_sha256") in digests or brought(folder) and not start_is_here(start, folder)


def start_is_here(start: dict, folder: Path) -> bool:
    """Whether the start of the run in `folder` is here, or in a bundle, as it is asked."""
    asked, records = start.get("asked"), records_of(start, folder)
    return any(about.get("weights_sha256") and asked in (None, digest_of_asked(about)) for about in records)


def records_of(start: dict, folder: Path) -> list[dict]:
    """The run.json of the start of the run in `folder`, here and in a bundle; {} where it is not."""
    folders = folders_of(results_of(folder), Point.at(start["run"]))
    return [tolerant(each / "run.json") or {} for each in folders]


def digest_of_asked(about: dict) -> str:
    """The digest of what is asked of a run from which others begin. about: what is asked, or its run.json."""
    return digest({key: about.get(key) for key in ASKED} | {"extras": {}})


def digest(value) -> str:
    """Hexadecimal SHA-256 of a value as JSON; equal values have equal digests."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def differing(record: dict, wanted: dict) -> list[str]:
    """The keys (`settings.lr`) in which a run.json differs from what is asked; extra features are allowed."""
    differs = []
    for key, value in wanted.items():
        has = record.get(key)
        if key == "extras" and isinstance(value, dict):
            own = has if isinstance(has, dict) else {}
            differs += [f"extras.{name}" for name in value if not holds(own.get(name), value[name])]
        elif isinstance(value, dict) and isinstance(has, dict):
            names = sorted(value.keys() | has.keys())
            differs += [f"{key}.{name}" for name in names if value.get(name) != has.get(name)]
        elif has != value:
            differs.append(key)
    return differs


def holds(has: list | bool | None, wanted: list | bool) -> bool:
    """Whether a run has the features of all classes that are asked for, or all vectors."""
    return set(wanted) <= set(has or []) if isinstance(wanted, list) else has == wanted


def check_intact(folder: Path, record: dict) -> None:
    """Raise BadInput if a folder holds another run, or a file that its run.json has another digest of.

    The digest of run.json itself is with what is kept of the run; those of a run from a bundle, whose files
    have another form, stand beside them. Runs that an older version trained have no such digests.
    """
    if not is_of(folder, record):
        raise BadInput(f"{folder} has the run.json of another run; delete this folder")
    digests = brought_digests(folder) if brought(folder) else own_digests(folder, record)
    for name, digest in digests.items():
        file = folder / name
        if not file.is_file() or as_read(file) != digest:
            raise BadInput(damaged(file, folder))
    if (kept := folder / FINISHED / DIGESTS).is_file():
        found, others = tolerant(kept) or {}, dict(record.get("files", {}))
        others |= {OUTPUTS[0]: record["weights_sha256"]} if "weights_sha256" in record else {}
        if found.keys() != {*OUTPUTS} or any(found[name] != digest for name, digest in others.items()):
            raise BadInput(
                f"{kept} has other digests than the run's files; it was damaged or edited. Delete "
                f"{kept.parent}: nothing needs it once a run is finished"
            )


def brought_digests(folder: Path) -> dict[str, str]:
    """The digests that `unbundle` wrote of the files of a run; raises BadInput without those of all."""
    digests = tolerant(folder / DIGESTS) or {}
    if not {*CARRIED} <= digests.keys():
        raise BadInput(
            f"{folder / DIGESTS} is gone or damaged, without which nothing tells whether the run is what its "
            f"bundle brought; delete {folder}, and unbundle it again"
        )
    return digests


def own_digests(folder: Path, record: dict) -> dict[str, str]:
    """The digests of the files of a run that was made here, by its run.json, or by what is kept of it."""
    kept, told = tolerant(folder / FINISHED / DIGESTS) or {}, record.get("files", {})
    if not isinstance(told, dict):
        raise BadInput(damaged(folder / "run.json", folder))
    return {name: kept[name] for name in OUTPUTS[1:] if name in kept} | told


def check_weights(folder: Path, digest_of: Callable[[Path], str] = as_read) -> None:
    """Raise BadInput if the weights of a run are not those that its run.json has the digest of.

    digest_of: that of a file; `plan.digests` has one that keeps those of large files.
    """
    file, digest = folder / "weights.safetensors", read_json(folder / "run.json").get("weights_sha256")
    if digest and file.is_file() and digest_of(file) != digest:
        raise BadInput(damaged(file, folder))


def damaged(file: Path, folder: Path) -> str:
    """The sentence for a file that is not what a run wrote."""
    if brought(folder):
        return f"{file} is not what its bundle brought (SHA-256); delete {folder}, and unbundle it again"
    return (
        f"{file} is not what its run wrote (SHA-256); it was damaged or edited. To train the run again: "
        f"tailprompt retrain {shlex.quote('/'.join(folder.absolute().parts[-5:]))}"
    )


def tolerant(file: Path) -> dict | None:
    """The JSON object in a file, or None if the file is missing or damaged."""
    try:
        return read_json(file) if file.is_file() else None
    except BadInput:
        return None


def without_times(asked: dict) -> dict:
    """What is asked, without the times of the outputs that it replaces and of the plan."""
    return {key: value for key, value in asked.items() if key not in ("replaces", "planned")}


def read_words(file: Path) -> list[list[str]]:
    """The rows of a verbalizer file in order, which is the order of the classes."""
    with reading(file), open(file, encoding="utf-8-sig", newline="") as text:
        return [cells for cells in csv.reader(text) if cells]


def check(folder: Path, record: dict) -> None:
    """Raise BadInput if a run is not the one that is asked for, is damaged, or its data have changed since.

    folder: of the run. record: its run.json. Results that were copied here without their data, or without
    the file that asks for them, are not compared.
    """
    if wanted := asked_of(folder):
        if wrong := differing(record, wanted):
            raise BadInput(
                f"{folder} is not what {file_asking(folder)} asks (it differs in {', '.join(wrong)}); run "
                "snakemake again, which trains it anew"
            )
        if not same_start(record, folder, wanted):
            raise BadInput(
                f"{folder} began from {wanted['start']['run']}, which has other weights now; run snakemake "
                "again, which trains it anew"
            )
    if not of_data(record, folder):
        check_table(data_of(folder))
        others = outdated(folder)
        also = f", and so {'was' if others == 1 else 'were'} {counted(others, 'other run')}" if others else ""
        raise BadInput(
            f"{folder} was trained on data that {data_of(folder)} no longer holds{also}; run snakemake "
            f"again, which trains {'them' if others else 'it'} anew, or give the changed data another name"
        )
    check_intact(folder, record)


def asked_of(folder: Path) -> dict | None:
    """What the run in `folder` is asked by its file in `asked`; None without one, or if it is damaged."""
    wanted = tolerant(file_asking(folder))
    return wanted and without_times(wanted)


def outdated(folder: Path) -> int:
    """How many other runs were trained on former data of the run's data set."""
    results, dataset = results_of(folder), folder.absolute().parts[-3]
    roots = (results / "runs", results / BUNDLED / "runs")
    runs = [path.parent for root in roots for path in root.glob(f"*/*/{escape(dataset)}/*/*/run.json")]
    return sum(not of_data(tolerant(run / "run.json") or {}, run) for run in runs) - 1


def of_data(record: dict, folder: Path) -> bool:
    """Whether a run was trained on the present data; True if its digests or the data are missing."""
    return trained_on(record, data_digests(data_of(folder)))


def check_table(table: Path) -> None:
    """Raise BadInput, with what to do, if a data set that was prepared here is not that of its report."""
    if table.is_file() and table.parent.parent.name != BUNDLED:
        check_prepared(table)


def data_digests(table: Path) -> dict[str, str]:
    """The digests of a data set, {} without it; a bundle brings them in the report, without the texts.

    Of another file than that of its report, as one that was edited, there is the digest of the file alone.
    """
    told = reported(table.with_name(f"{table.stem}.json"))
    if table.parent.parent.name == BUNDLED:
        return told
    found = {"sha256": as_read(table)} if table.is_file() else {}
    return told if same_data(found, told) else found
