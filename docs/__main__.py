"""Write the numbers of README and docs from the runs that ship: `make results`, or `python -m docs`.

The packed results go to a folder of their own, in which Snakemake makes their tables without training; then
each part `<!-- made: NAME -->` of a page is written anew. `--lists` leaves out what is made of runs: that
takes seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from docs.fill import Makers, filled, names
from docs.listed import MAKERS
from docs.results import makers as made_of
from tailprompt.plan import config
from tailprompt.plan.blocks import shown
from tailprompt.unbundle import unbundle

PACKED = Path("workflow/resources/results/mini.tar.xz")
SCALE = "config/mini.yaml"
PROJECT = ("config", "workflow", "src")  # folders that are read below the working directory
DRAWN = {
    f"claims-{paper}": f"figures/{paper}/claims.png" for paper in ("glee", "lpt", "ppt", "ptuning2", "across")
}
DRAWN["first"] = "figures/across/figure2.png"  # by the name of its picture beside the pages


def pages() -> list[Path]:
    """The pages that have parts to be made."""
    return [
        file
        for file in (Path("README.md"), *sorted(Path("docs").glob("*.md")))
        if names(file.read_text("utf-8"))
    ]


def tabulated(packed: Path, folder: Path, cores: int = 1) -> Path:
    """The results that a bundle gives in an empty folder, with their tables and the figures of claims.

    What a search chooses gives more tables, from which another search may begin.
    """
    for name in PROJECT:
        (folder / name).symlink_to(Path(name).resolve())
    results, asked = folder / "results/mini", [SCALE]
    unbundle(packed, results)
    make(folder, asked, cores)
    while shown(config.load(chosen := [SCALE, *choices(results)])).keys() - shown(config.load(asked)).keys():
        make(folder, asked := chosen, cores)
    return results


def choices(results: Path) -> list[str]:
    """What the searches of a scale chose, as files of its configuration."""
    return [str(file.resolve()) for file in sorted(results.glob("tables/*/search*.yaml"))]


def make(folder: Path, files: list[str], cores: int) -> None:
    """Let Snakemake make the tables and the figures of claims there without training."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-s",
        Path("Snakefile").resolve(),
        "tables",
        *(f"results/mini/{figure}" for figure in DRAWN.values()),
    ]
    options = ["--cores", str(cores), "--configfile", *files, "--config", "train=false", "--quiet"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the tables of {PACKED} could not be made:\n{done.stderr}")


def pictured(results: Path) -> None:
    """Copy figures beside the pages, small, since each version stays in the history."""
    for name, figure in DRAWN.items():
        with Image.open(results / figure) as image:
            image.convert("RGB").quantize(256).save(f"docs/images/{name}.png", optimize=True)


def write(makers: Makers, files: Iterable[Path]) -> list[Path]:
    """Fill the parts of pages; returns those that changed."""
    changed = []
    for file in files:
        old = file.read_text("utf-8")
        if (new := filled(old, makers)) != old:
            file.write_text(new, "utf-8")
            changed.append(file)
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("--lists", action="store_true", help="only what is made of configuration and code")
    parser.add_argument("--packed", type=Path, default=PACKED, metavar="FILE", help=f"default: {PACKED}")
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="take the tables of this scale as they are"
    )
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="default: all")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        makers = dict(MAKERS)
        if not options.lists:
            results = options.results or tabulated(options.packed, Path(folder), options.cores)
            makers |= made_of(results)
            pictured(results)
        changed = write(makers, pages())
    print("\n".join(map(str, changed)) or "every page was as it is made")


if __name__ == "__main__":
    main()
