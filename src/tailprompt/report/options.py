"""The options of the stages that make a table or a figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt.files import json_option


def options(stage: str, does: str, what: str) -> tuple[Path, dict, Path]:
    """The folder of a scale, the block, and the path of its files without an ending, from a command line."""
    parser = argparse.ArgumentParser(prog=f"tailprompt {stage}", description=does.split("\n")[0])
    parser.add_argument("--root", type=Path, required=True, help="folder of a scale, results/<scale>")
    parser.add_argument(
        "--spec",
        required=True,
        metavar="JSON|FILE",
        help=f"the {what}'s block of config/papers/<paper>.yaml, expanded (snakemake -p prints it)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PREFIX", help="path of the files, without an extension"
    )
    chosen = parser.parse_args()
    return chosen.root, json_option(chosen.spec, "--spec", "kind"), chosen.out
