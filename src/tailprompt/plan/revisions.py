"""Which commit `revision: main` is: found out once, by the process that plans, and the same for all jobs.

It stands in config/lock.json, where the digests of first downloads are: the cache of weights is one for all
scales too. Without an entry it is the commit that runs here were trained with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock

from tailprompt.data.lock import LOCK, locked, record
from tailprompt.errors import BadInput
from tailprompt.plan.agreement import tolerant
from tailprompt.plan.places import BUNDLED

MAIN = "main"
COMMIT = re.compile("[0-9a-f]{40}")
PATIENCE = 10.0  # seconds for an answer of the hub


def pinned(config: dict, root: Path = Path(".")) -> dict:
    """The configuration with known commits in the place of main.

    Raises BadInput if the lock file has something else than a commit.
    """
    known = locked(root / LOCK)

    def at(model: dict, backbone: str = "") -> dict:
        if model.get("revision") != MAIN:
            return model
        commit = known.get(name_of(model["hub"])) or trained_with(config, backbone, model["hub"], root)
        if commit and not COMMIT.fullmatch(str(commit)):
            raise BadInput(f"{LOCK}: {name_of(model['hub'])} is {commit!r}, which is no commit; remove it")
        return {**model, "revision": commit} if commit else model

    backbones = {name: at(row, name) for name, row in config["backbones"].items()}
    datasets = {
        name: {**row, "model": at(row["model"])} if "model" in row else row
        for name, row in config["datasets"].items()
    }
    return {**config, "backbones": backbones, "datasets": datasets}


def name_of(hub: str) -> str:
    """The entry of a repository in the lock file."""
    return f"hub:{hub}@{MAIN}"


def trained_with(config: dict, backbone: str, hub: str, root: Path) -> str | None:
    """The commit of the first run of a scale on a backbone, made here or brought by a bundle."""
    results = root / "results" / config["scale"]
    for place in (results, results / BUNDLED) if backbone else ():
        for file in sorted(place.glob(f"runs/*/{backbone}/*/*/*/run.json"))[:1]:
            row = (tolerant(file) or {}).get("backbone") or {}
            if row.get("hub") == hub and COMMIT.fullmatch(row.get("revision", "")):
                return row["revision"]
    return None


def resolved(
    config: dict, names: Iterable[str], root: Path = Path("."), *, ask: Callable | None = None
) -> dict:
    """The configuration with commits for these backbones and data sets, which are recorded.

    A repository whose commit nobody knows, as without a network, keeps main; its job says so. ask: hub -> its
    commit, or None.
    """
    rows = [config[kind].get(name, {}) for name in names for kind in ("backbones", "datasets")]
    models = [row.get("model", row) for row in rows]
    hubs = dict.fromkeys(model["hub"] for model in models if model.get("revision") == MAIN)
    if not hubs:
        return config
    (root / "results").mkdir(exist_ok=True)
    with FileLock(root / "results/.lock"):  # another command may do the same
        for hub in hubs:
            if name_of(hub) not in locked(root / LOCK) and (commit := (ask or commit_of)(hub)):
                record(root / LOCK, name_of(hub), commit)
    return pinned(config, root)


def commit_of(hub: str) -> str | None:
    """The commit that main of a repository is: by the hub, else in its cache here; None if neither says."""
    from huggingface_hub import HfApi, constants  # takes a second that a plan does not have

    from tailprompt.data.download import offline

    try:
        if offline():
            raise ConnectionError
        return HfApi().model_info(hub, revision=MAIN, timeout=PATIENCE).sha
    except Exception:  # of no network, or of whatever HTTP library the hub's uses
        kept = Path(constants.HF_HUB_CACHE, f"models--{hub.replace('/', '--')}", "refs", MAIN)
        return kept.read_text("utf-8").strip() if kept.is_file() else None
