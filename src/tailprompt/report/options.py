"""The options of the stages that make a table or a figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt.files import asked_of, json_option
from tailprompt.plan.made_of import OF, digest_of


def options(stage: str, does: str, what: str) -> tuple[Path, dict, Path, dict[str, str]]:
    """The folder of a scale, the block, the path of its files without an ending, what they are made of."""
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
    made_of = taken(chosen.root, chosen.spec)  # as it is before anything of it is read
    return chosen.root, json_option(chosen.spec, "--spec", "kind"), chosen.out, made_of


def taken(root: Path, spec: str) -> dict[str, str]:
    """The digest of what the file of an option asks and lists, for a seal; nothing where it lists nothing."""
    asked = asked_of(spec)
    return {OF: digest_of(asked, root)} if "of" in asked else {}
