"""Fetch the weights of a backbone where they are missing, and write their digests.

`python -m tailprompt.backbones --name NAME --row JSON --out FILE`. The weights are a folder, or a repository
of the Hugging Face hub at a pinned revision, which goes into the usual cache.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # before torch is imported: a process that has imported it may run this
    from tailprompt.machine.preload import run

    sys.exit(run("tailprompt.backbones"))

import argparse
from contextlib import suppress
from pathlib import Path

import torch

from tailprompt.errors import BadInput
from tailprompt.files import asked_of, json_option, sha256, write_json
from tailprompt.model.backbones import CPU, load
from tailprompt.model.checkpoints import check_pinned, source, unavailable
from tailprompt.model.folder import files_in, names_of
from tailprompt.plan.digests import check_folder
from tailprompt.seals import seal

WEIGHTS = "model.safetensors"


def fetch(row: dict) -> dict[str, str]:
    """Download the weights if they are missing, and return the SHA-256 of each file."""
    where, pinned = source(row)
    if not where:  # TF-IDF has no weights
        return {}
    check_pinned(row)
    folder = Path(snapshot(row) if pinned else where)
    digests = {name: sha256(file) for name, file in files_in(folder, row["family"]).items()}
    check_digest(row, digests.get(WEIGHTS), where)
    return digests


def check_digest(row: dict, found: str | None, where: str) -> None:
    """Raise BadInput for weights that are not those of the row's digest."""
    if row.get("sha256", found) != found:
        raise BadInput(
            f"backbone {where}: {WEIGHTS} has the SHA-256 {found}, and its row says {row['sha256']}; "
            "other weights have been published under this name"
        )


def snapshot(row: dict) -> str:
    """Folder of the pinned revision in the Hugging Face cache, downloaded if it is missing.

    Raises BadInput if the hub cannot be reached or lacks it.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    asked = {"repo_id": row["hub"], "revision": row["revision"], "allow_patterns": names_of(row["family"])}
    try:
        return snapshot_download(**asked)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        with suppress(LocalEntryNotFoundError):  # the hub's library 1.33 lists a pinned revision online first
            return snapshot_download(**asked, local_files_only=True)
        raise unavailable(row, error) from error


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt backbones", description=__doc__.split("\n")[0])
    parser.add_argument("--name", required=True, help="name of the backbone in config/backbones.yaml")
    parser.add_argument(
        "--row",
        required=True,
        metavar="JSON|FILE",
        help='its row there as JSON, as {"family": "bert", "hub": "...", "revision": COMMIT}',
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON file for its row and digests")
    options = parser.parse_args()
    row = json_option(options.row, "--row", "family")
    digests = fetch(row)
    load(row, torch.device("meta") if "device_map" in row else CPU)  # shows a fault before any training job
    check_folder(asked_of(options.row).get("weights"), Path(row.get("path", "")), row["family"])
    write_json(options.out, {"name": options.name, **row, "sha256": digests})
    seal(Path(options.out))
