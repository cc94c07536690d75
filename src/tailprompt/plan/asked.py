"""What is asked of a run, in a small file of its own: `results/<scale>/asked/<point>.json` (`plan.standing`).

Training reads its settings there, and run.json repeats them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tailprompt.files import sha256
from tailprompt.model import adapter_config
from tailprompt.plan.agreement import digest_of_asked, read_words
from tailprompt.plan.made import read_back
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_row
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import start_of, starting

EXTRAS = ("features", "vectors")  # what figures want beside predictions: a run may hold more than is asked


def asked(
    config: dict,
    point: Point,
    told: dict,
    weights: dict | None,
    root: Path = Path("."),
    digest_of: Callable[[Point], str] | None = None,
) -> dict:
    """What is asked of a run, as it reads back from JSON.

    told: its settings. weights: what `made.weights` returns for its backbone. digest_of: `digest_asked`
    of the run that it begins from, for whoever asks for many runs that begin from one.
    """
    digest_of = digest_of or partial(digest_asked, config, weights=weights, root=root)
    words = told.get("verbalizer")
    wanted = {
        "settings": {key: value for key, value in told.items() if key not in EXTRAS},
        "extras": {key: told[key] for key in EXTRAS if key in told},
        "backbone": backbone_row(config, point.backbone),
        "weights": weights,
        "verbalizer": words and read_words(root / words),
        "start": start(config, point, digest_of, root),
    }
    return read_back(wanted)


def digest_asked(config: dict, point: Point, weights: dict | None, root: Path = Path(".")) -> str:
    """The digest of what is asked of a run from which others begin."""
    return digest_of_asked(asked(config, point, settings(config, point), weights, root))


def start(config: dict, point: Point, digest_of: Callable[[Point], str], root: Path) -> dict | None:
    """Where a run begins: a run with a digest of what is asked of it, or a folder with its digests."""
    if folder := (starting(config, point) or {}).get("folder"):
        files = {name: sha256(root / folder / name) for name in adapter_config.FILES}
        return {"folder": folder, "sha256": files}
    first = start_of(config, point)
    return first and {"run": first.path, "asked": digest_of(first)}  # both have one backbone
