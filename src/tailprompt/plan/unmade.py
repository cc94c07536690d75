"""The tables and figures that are still to make: snakemake plans them, and `tailprompt status` counts them.

One stands if it is what is asked, and made of the runs, data and code that are here (`plan.made_of`). What
only Snakemake knows, as `--forcerun` or another command of a rule, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan import blocks, present, standing
from tailprompt.plan.faults import Blocks, at_work
from tailprompt.plan.jobs import data, shown
from tailprompt.plan.made import read_back
from tailprompt.plan.made_of import is_made_of
from tailprompt.plan.places import BUNDLED, report_file
from tailprompt.plan.points import Point
from tailprompt.plan.rows import dataset_row, parts_of, tested_by

Of = dict[str, list[str]]  # as `plan.made_of` has it


def shown_here(
    config: dict, whole: Blocks, is_here: Callable[[Point], bool], root: Path = Path(".")
) -> Blocks:
    """The tables and figures that snakemake makes: of `whole`, or without training of what is here."""
    if config.get("train", True):
        return whole
    prepared = partial(is_prepared, config, whole, root)
    narrow = {
        key: part
        for key, block in whole.items()
        if (part := present.narrowed(block, is_here=is_here, prepared=prepared))
    }
    return blocks.with_tables(narrow)


def is_prepared(config: dict, whole: Blocks, root: Path, dataset: str) -> bool:
    """Whether the report of a data set is here as it is asked, made or brought by a bundle."""
    report = root / data.report(config, dataset)
    if in_bundle(report) or not report.is_file():
        return report.is_file()
    return standing.stands(config, "data", dataset, root, standing.to_prepare(config, dataset, whole, root))


def in_bundle(report: Path) -> bool:
    """Whether a report is there because a bundle brought it, so that no job makes it."""
    return BUNDLED in report.parts and report.is_file()


def stays(config: dict, whole: Blocks, root: Path, dataset: str) -> bool:
    """Whether nothing that a data set is made from, nor the data set itself, will be made anew."""
    if in_bundle(root / data.report(config, dataset)):
        return True
    row = dataset_row(config, dataset)
    first = ["images"] if row["language"] == "image" else []
    first += ["annotated"] if row.get("annotator") == "model" else []
    return (
        is_prepared(config, whole, root, dataset)
        and all(standing.stands(config, kind, row["name"], root) for kind in first)
        and all(
            stays(config, whole, root, each)
            for each in (*parts_of(config, dataset), *tested_by(config, dataset))
        )
    )


def told(config: dict, whole: Blocks, here: standing.Present, root: Path) -> tuple[str, bool]:
    """How many of the tables and figures are made, in words, and whether all are and the overview is."""
    results = root / "results" / config["scale"]
    is_here = cache(lambda point: present.run_is_here(config, point, here, root))
    kept = cache(partial(stays, config, whole, root))
    folder_of = cache(lambda point: standing.run_folder(config, point, here, root))

    def is_made(name: str, files: list[str], spec: dict, of: Of) -> bool:
        runs, places = [*map(Point.at, of["runs"])], [root / file for file in files]
        read = [folder_of(run) / "run.json" for run in runs]
        read += [report_file(results, dataset) for dataset in of["data"]]
        with suppress(BadInput):  # of a file that is not there, which keeps snakemake from starting
            return (
                all(map(is_here, runs))
                and all(map(kept, of["data"]))
                and stands(name, places, asked(spec, of), results, root, folder_of=folder_of)
                and not waits(results, places, read)
            )
        return False

    everything = shown_here(config, whole, is_here, root)
    found = {
        key: block
        for key, block in everything.items()
        if is_made("/".join(key), shown.made({key: block}, config["scale"]), block, shown.made_of(key, block))
    }
    found = blocks.with_tables(found)  # a figure waits for its table
    page, left = shown.overview(config, everything, whole), len(everything) - len(found)
    finished = not left and is_made("overview", [shown.page(config["scale"])], page, shown.page_of(page))
    also = "" if finished or left else "; overview.html is not"
    return f"{len(found)} of {len(everything)} tables and figures are made{also}", finished


def asked(spec: dict, of: Of) -> dict:
    """What is asked of a table or figure, as it reads back from JSON."""
    return read_back({"spec": spec, "of": of})


def stands(
    name: str,
    files: list[Path],
    asked: dict,
    results: Path,
    root: Path = Path("."),
    *,
    folder_of: Callable[[Point], Path],
) -> bool:
    """Whether files are what is `asked`, undamaged and made of what is here now.

    name: under which they are asked. folder_of: that of a run that is what is asked.
    """
    as_asked = standing.same(files, asked, results / f"made/{name}.json", root)
    return as_asked and is_made_of(files[0], asked["of"], results, folder_of, root)


def waits(results: Path, files: Iterable[Path], read: Iterable[Path]) -> bool:
    """Whether a Snakemake is at work that has made anew what the files are made of, and will make them."""
    since, oldest = at_work(results), min(file.stat().st_mtime for file in files)
    return bool(since) and any(since <= (time := file.stat().st_mtime) and oldest < time for file in read)
