"""Write the first page of a scale's report: what was run, on what and how long, and which claims hold.

python -m tailprompt.overview --root results/<scale> --spec FILE --out results/<scale>/overview.html

JSON is what `plan.jobs.shown.overview` returns.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt.errors import stage
from tailprompt.files import json_option, whole
from tailprompt.report.options import taken
from tailprompt.report.overview import overview
from tailprompt.seals import seal


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt overview", description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, required=True, help="folder of a scale, results/<scale>")
    parser.add_argument(
        "--spec", required=True, metavar="JSON|FILE", help="papers and their runs (snakemake -p prints it)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page to write")
    chosen = parser.parse_args()
    made_of = taken(chosen.root, chosen.spec)
    page = overview(chosen.root, json_option(chosen.spec, "--spec", "scale", "papers"))
    with whole(chosen.out) as temporary:
        temporary.write_text(page, "utf-8")
    seal(chosen.out, also=made_of)


if __name__ == "__main__":
    stage(main)
