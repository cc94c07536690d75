"""Make sure that the weights of a backbone are here, and write their digests.

`python -m tailprompt.backbones --name NAME --row JSON --out FILE`. Weights are a folder, or a hub repository
at a pinned revision in the ordinary Hugging Face cache.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from tailprompt.errors import stage
from tailprompt.files import json_object, sha256, write_json
from tailprompt.model.backbones import CPU, load
from tailprompt.model.checkpoints import source, unavailable
from tailprompt.model.folder import FILES, files_in


def fetch(row: dict) -> dict[str, str]:
    """Bring the weights here if they are not, and return the SHA-256 of each file."""
    where, pinned = source(row)
    folder = Path(snapshot(row) if pinned else where)
    return {file.name: sha256(file) for file in files_in(folder)}


def snapshot(row: dict) -> str:
    """Folder of the pinned revision in the Hugging Face cache, downloaded where it is missing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return snapshot_download(row["hub"], revision=row["revision"], allow_patterns=FILES)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise unavailable(row, error) from error


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tailprompt.backbones", description="Make sure that a backbone is here."
    )
    parser.add_argument("--name", required=True, help="the backbone's name in config/backbones.yaml")
    parser.add_argument("--row", required=True, help="its row, as JSON")
    parser.add_argument("--out", required=True, help="where to write its row and digests, as JSON")
    options = parser.parse_args()
    row = json_object(options.row, "--row", "family")
    digests = fetch(row)
    load(row, torch.device("meta") if "device_map" in row else CPU)  # a fault shows before a training job
    write_json(options.out, {"name": options.name, **row, "sha256": digests})


if __name__ == "__main__":
    stage(main)
