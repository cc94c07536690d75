"""What is asked of a run, in a small file of its own: `results/<scale>/asked/<point>.json`.

The process that builds the DAG writes the file if its content changed. Training reads its settings there,
and run.json repeats them. A run that agrees with what is asked stands, whatever Snakemake remembers of it.
For any other run the file is newer than the outputs, so that Snakemake trains the run again.
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
    """What is asked of a run, as it reads back from JSON.

    told: its settings. weights: what `weights` returns for its backbone.
    """
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
    """Where a run begins: a run with a digest of what is asked of it, or a folder with its digests."""
    if folder := (starting(config, point) or {}).get("folder"):
        files = {name: sha256(root / folder / name) for name in adapter_config.FILES}
        return {"folder": folder, "sha256": files}
    first = start_of(config, point)
    if first is None:
        return None
    wanted = asked(config, first, settings(config, first), weights, root)  # both have one backbone
    return {"run": first.path, "asked": digest({**wanted, "extras": {}})}


def weights(config: dict, backbone: str, root: Path = Path(".")) -> dict | None:
    """Digests of what a backbone's row does not pin: the files in its folder, or its recipe.

    None for a pinned revision. A file that is unchanged since the rule `backbone` ran is not read again.
    """
    row = config["backbones"][backbone]
    if "recipe" in row:
        return {"recipe": recipe_digest(config, row["recipe"], root)}
    if "path" not in row:
        return None
    report = root / f"results/{config['scale']}/backbones/{backbone}.json"
    recorded = tolerant(report) or {}
    known = recorded.get("sha256", {}) if recorded.get("path") == row["path"] else {}
    since = report.stat().st_mtime_ns if known else 0
    return {
        file.name: known[file.name] if file.name in known and changed(file) < since else sha256(file)
        for file in files_in(root / row["path"], row["family"])
    }


def changed(file: Path) -> int:
    """When a file last changed in content or name; a file that is moved here keeps its modification time."""
    status = file.stat()
    return max(status.st_mtime_ns, status.st_ctime_ns)


def recipe_digest(config: dict, recipe: str, root: Path) -> str:
    """A digest of a recipe and of its start: another recipe, or a backbone that ships with the project."""
    row = recipe_row(config, recipe)
    first = row.get("start")
    if first in config["backbones"] and "path" in config["backbones"][first]:
        return digest([row, weights(config, first, root)])
    return digest([row, first and recipe_digest(config, first, root)])


def digest(value) -> str:
    """Hexadecimal SHA-256 of a value as JSON; equal values have equal digests."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def write(file: Path, wanted: dict, folder: Path, *, settled: bool) -> None:
    """Write what is asked of a run to `file`, newer than the outputs in `folder` unless they are settled.

    settled: whether the run stands. `replaces` is the time of the outputs that will be replaced. It makes the
    content differ from that of any earlier training. Otherwise Snakemake, which keeps a checksum of it, would
    conclude that nothing has changed.
    """
    there = [] if settled else [folder / name for name in OUTPUTS if (folder / name).is_file()]
    times = [output.stat().st_mtime_ns for output in there]
    content = {**wanted, "replaces": max(times)} if times else wanted
    present = tolerant(file)
    if settled and present:
        present.pop("replaces", None)
    if present != content:
        write_json(file, content)
    elif times and file.stat().st_mtime_ns <= min(times):
        os.utime(file)
