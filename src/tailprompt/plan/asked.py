"""What a run is asked, in a small file of its own, and whether the run on disk is what is asked.

The process that builds the DAG writes `results/<scale>/asked/<point>.json` where it differs. Training reads
its settings there, and run.json repeats them. A run that agrees with what is asked stands, whatever Snakemake
remembers. For any other the file is newer than the run's outputs, so that Snakemake trains it again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from functools import cache
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json, reading, sha256, write_json
from tailprompt.model.folder import files_in
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_row, recipe_row
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import start_of, starting

OUTPUTS = ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv", "run.json")
EXTRAS = ("features", "vectors")  # what figures want beside predictions: a run may hold more than is asked
ADAPTER = ("adapter_config.json", "adapter_model.safetensors")


def asked(config: dict, point: Point, told: dict, weights: dict | None, root: Path = Path(".")) -> dict:
    """What a run is asked, as JSON reads it back. told: its settings; weights: of `weights`."""
    words = told.get("verbalizer")
    wanted = {
        "settings": {key: value for key, value in told.items() if key not in EXTRAS},
        "extras": {key: told[key] for key in EXTRAS if key in told},
        "backbone": backbone_row(config, point.backbone),
        "weights": weights,
        "verbalizer": words and read_words(root / words),
        "start": start(config, point, weights, root),
    }
    return json.loads(json.dumps(wanted))


def start(config: dict, point: Point, weights: dict | None, root: Path) -> dict | None:
    """Where a run begins: a run, with a digest of what that is asked, or a folder, with its files' own."""
    if folder := (starting(config, point) or {}).get("folder"):
        files = {name: sha256(root / folder / name) for name in ADAPTER}
        return {"folder": folder, "sha256": files}
    first = start_of(config, point)
    if first is None:
        return None
    wanted = asked(config, first, settings(config, first), weights, root)  # a start has the same backbone
    return {"run": first.path, "asked": digest({**wanted, "extras": {}})}


def weights(config: dict, backbone: str, root: Path = Path(".")) -> dict | None:
    """Digests of what a backbone's row does not pin: of the files in its folder, or of its recipe.

    A file that did not change since the rule `backbone` digested it is not read again.
    """
    row = config["backbones"][backbone]
    if "recipe" in row:
        return {"recipe": recipe_digest(config, row["recipe"], root)}
    if "path" not in row:
        return None
    report = root / f"results/{config['scale']}/backbones/{backbone}.json"
    made = tolerant(report) or {}
    known = made.get("sha256", {}) if made.get("path") == row["path"] else {}
    since = report.stat().st_mtime_ns if known else 0
    return {
        file.name: known[file.name] if file.name in known and changed(file) < since else sha256(file)
        for file in files_in(root / row["path"])
    }


def changed(file: Path) -> int:
    """When a file last took this name or content; one moved here keeps the time of its content alone."""
    status = file.stat()
    return max(status.st_mtime_ns, status.st_ctime_ns)


def recipe_digest(config: dict, recipe: str, root: Path) -> str:
    """A digest of a recipe and of what it starts from: another recipe, or a backbone that ships."""
    row = recipe_row(config, recipe)
    first = row.get("start")
    if first in config["backbones"] and "path" in config["backbones"][first]:
        return digest([row, weights(config, first, root)])
    return digest([row, first and recipe_digest(config, first, root)])


def read_words(file: Path) -> list[list[str]]:
    """The rows of a verbalizer, in its order, which is that of the classes."""
    with reading(file), open(file, encoding="utf-8-sig", newline="") as text:
        return [cells for cells in csv.reader(text) if cells]


def digest(value) -> str:
    """Hexadecimal SHA-256 of a value as JSON, the same for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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


def write(file: Path, wanted: dict, folder: Path, *, settled: bool) -> None:
    """Make `file` say what a run is asked, and be newer than the outputs in `folder` unless they stand.

    `replaces` is the time of the outputs that are to go: with it the content is never that of an earlier
    training, of which Snakemake keeps a checksum that would tell it that nothing has changed.
    """
    times = [(folder / name).stat().st_mtime_ns for name in OUTPUTS if (folder / name).is_file()]
    content = wanted if settled or not times else {**wanted, "replaces": max(times)}
    present = tolerant(file)
    if settled and present:
        present.pop("replaces", None)
    if present != content:
        write_json(file, content)
    elif not settled and times and file.stat().st_mtime_ns <= min(times):
        os.utime(file)


def read_asked(file: Path, root: Path = Path(".")) -> dict:
    """What `file` asks; raises BadInput where its words are no longer those of the verbalizer."""
    wanted = read_json(file, "settings", "extras", "backbone")
    words = keyed(wanted["settings"], file).get("verbalizer")
    if words and wanted.get("verbalizer") != read_words(root / words):
        raise BadInput(f"{words} is no longer what {file} says; run snakemake again, which reads it anew")
    wanted.pop("replaces", None)
    return wanted


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
