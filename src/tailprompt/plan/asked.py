"""What a run is asked, in a small file of its own, and whether the run on disk is what is asked.

The process that builds the DAG writes `results/<scale>/asked/<point>.json` where it differs. Training reads
its settings there, and run.json repeats them. A run that agrees with what is asked stands, whatever Snakemake
remembers. For any other the file is newer than the run's outputs, so that Snakemake trains it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from tailprompt.files import sha256, write_json
from tailprompt.model import adapter_config
from tailprompt.model.folder import files_in
from tailprompt.plan.agreement import OUTPUTS, read_words, tolerant
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_row, recipe_row
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import start_of, starting

EXTRAS = ("features", "vectors")  # what figures want beside predictions: a run may hold more than is asked


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
        files = {name: sha256(root / folder / name) for name in adapter_config.FILES}
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


def digest(value) -> str:
    """Hexadecimal SHA-256 of a value as JSON, the same for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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
