"""Whether a run on disk is what is asked, and of the data that are there: files compared, and nothing else.

It knows nothing of settings, so that a table that takes runs does not depend on how settings are made.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json, reading, sha256
from tailprompt.plan.points import Point

OUTPUTS = ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv", "run.json")


def stands(wanted: dict, point: Point, runs: Path) -> bool:
    """Whether all files of a run are below `runs` and its run.json says that it is what is asked.

    A run that began from another stands only where that other has not been trained anew since.
    """
    folder = runs / point.path
    record = tolerant(folder / "run.json")
    if record is None or not all((folder / name).is_file() for name in OUTPUTS):
        return False
    first = (wanted["start"] or {}).get("run")
    return not differing(record, wanted) and (first is None or same_start(record, runs / first))


def same_start(record: dict, start: Path) -> bool:
    """Whether a run began from the weights that its start now has."""
    made = tolerant(start / "run.json") or {}
    return "weights_sha256" in made and made["weights_sha256"] == record.get("start_sha256")


def differing(record: dict, wanted: dict) -> list[str]:
    """The keys (`settings.lr`) where a run.json is not what is asked; more features than asked are fine."""
    found = []
    for key, value in wanted.items():
        ours = record.get(key)
        if key == "extras":
            found += [f"extras.{name}" for name in value if not holds((ours or {}).get(name), value[name])]
        elif isinstance(value, dict) and isinstance(ours, dict):
            names = sorted(value.keys() | ours.keys())
            found += [f"{key}.{name}" for name in names if value.get(name) != ours.get(name)]
        elif ours != value:
            found.append(key)
    return found


def holds(has: list | bool | None, wanted: list | bool) -> bool:
    """Whether a run has the features of all classes that are asked, or all vectors."""
    return set(wanted) <= set(has or []) if isinstance(wanted, list) else has == wanted


def tolerant(file: Path) -> dict | None:
    """A file's JSON object, or None where it is not there or damaged."""
    try:
        return read_json(file) if file.is_file() else None
    except BadInput:
        return None


def read_asked(file: Path, root: Path = Path(".")) -> dict:
    """What `file` asks; raises BadInput where its words are no longer those of the verbalizer."""
    wanted = read_json(file, "settings", "extras", "backbone")
    words = keyed(wanted["settings"], file).get("verbalizer")
    if words and wanted.get("verbalizer") != read_words(root / words):
        raise BadInput(f"{words} is no longer what {file} says; run snakemake again, which reads it anew")
    wanted.pop("replaces", None)
    return wanted


def read_words(file: Path) -> list[list[str]]:
    """The rows of a verbalizer, in its order, which is that of the classes."""
    with reading(file), open(file, encoding="utf-8-sig", newline="") as text:
        return [cells for cells in csv.reader(text) if cells]


def check(folder: Path, record: dict) -> None:
    """Raise BadInput where a run is not what is asked, or its data are not those that it was trained on.

    folder: the run's, record: its run.json. Results that were brought from elsewhere without data, or without
    what was asked, are not compared with them.
    """
    file = Path(results_of(folder), "asked", *folder.absolute().parts[-5:-1], f"{folder.name}.json")
    if wanted := tolerant(file):
        wanted.pop("replaces", None)
        if wrong := differing(record, wanted):
            raise BadInput(
                f"{folder} is not what {file} asks (it differs in {', '.join(wrong)}); run snakemake again, "
                "which trains it anew"
            )
    if not of_data(record, folder):
        raise BadInput(
            f"{folder} was trained on data that {data_of(folder)} no longer holds; delete that folder to "
            "train it again, or give the changed data set a name of its own"
        )


def of_data(record: dict, folder: Path) -> bool:
    """Whether a run was trained on what its data set holds now, as far as both can be told."""
    trained, table = record.get("data", {}).get("sha256"), data_of(folder)
    return not (trained and table.is_file()) or trained == sha256_at(table, table.stat().st_mtime_ns)


def data_of(folder: Path) -> Path:
    """The Parquet of the data set of the run in `folder`."""
    return results_of(folder) / "data" / f"{folder.absolute().parent.parent.name}.parquet"


def results_of(folder: Path) -> Path:
    """The results of the scale that the run in `folder` is of."""
    return Path(*folder.absolute().parts[:-6])


@cache
def sha256_at(file: Path, _time: int) -> str:
    """A file's digest, once for all runs of a table."""
    return sha256(file)
