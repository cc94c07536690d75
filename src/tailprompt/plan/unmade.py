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
from tailprompt.plan import agreement, blocks, present, standing
from tailprompt.plan.faults import Blocks, at_work
from tailprompt.plan.jobs import data, shown
from tailprompt.plan.made import read_back
from tailprompt.plan.made_of import is_made_of
from tailprompt.plan.places import in_bundle, report_file
from tailprompt.plan.points import Point
from tailprompt.plan.rows import dataset_row, parts_of, tested_by
from tailprompt.seals import sealed

Of = dict[str, list[str]]  # as `plan.made_of` has it


def shown_here(
    config: dict, whole: Blocks, is_here: Callable[[Point], bool], root: Path = Path(".")
) -> Blocks:
    """The tables and figures that snakemake makes: of `whole`, or without training of what is here."""
    if config.get("train", True):
        return whole
    prepared = partial(is_prepared, config, root)
    narrow = {
        key: part
        for key, block in whole.items()
        if (part := present.narrowed(block, is_here=is_here, prepared=prepared))
    }
    return blocks.with_tables(narrow)


def is_prepared(config: dict, root: Path, dataset: str) -> bool:
    """Whether the report of a data set is here as it is asked, made or brought by a bundle."""
    report = root / data.report(config, dataset, root)
    if in_bundle(report) or not report.is_file():
        return report.is_file()
    return standing.stands(config, "data", dataset, root)


def stays(config: dict, whole: Blocks, root: Path, dataset: str) -> bool:
    """Whether neither a data set nor what it is made from will be made anew."""
    report = root / data.report(config, dataset, root)
    if in_bundle(report) or not report.is_file():
        return report.is_file()
    row = dataset_row(config, dataset)
    first = ["images"] * (row["language"] == "image") + ["annotated"] * (row.get("annotator") == "model")
    others = (*parts_of(config, dataset), *tested_by(config, dataset))
    asked = standing.to_prepare(config, dataset, whole, root)
    return (
        standing.stands(config, "data", dataset, root, asked)
        and all(standing.stands(config, kind, row["name"], root) for kind in first)
        and all(stays(config, whole, root, other) for other in others)
    )


def told(config: dict, whole: Blocks, here: standing.Present, root: Path) -> tuple[str, bool]:
    """How many of the tables and figures are made, in words, and whether all are and the overview is."""
    found, all_made = made(config, whole, here, root)
    count, every = sum(found.values()), len(found)
    also = "" if all_made or count < every else "; overview.html is not"
    return f"{count} of {every} tables and figures are made{also}", all_made


def made(
    config: dict, whole: Blocks, here: standing.Present, root: Path = Path(".")
) -> tuple[dict[tuple[str, str, str], bool], bool]:
    """Whether each of the tables and figures is made, and whether all are and the overview is."""
    is_here = cache(lambda point: present.run_is_here(config, point, here, root))
    is_made = judge(config, whole, here, root)
    everything = shown_here(config, whole, is_here, root)
    found = {
        key: block
        for key, block in everything.items()
        if is_made(shown.made({key: block}, config["scale"]), block, shown.made_of(key, block))
    }
    found = blocks.with_tables(found)  # a figure waits for its table
    page = shown.overview(config, everything, whole)
    all_made = len(found) == len(everything) and is_made(
        [shown.page(config["scale"])], page, shown.page_of(page)
    )
    return {key: key in found for key in everything}, all_made


def judge(
    config: dict, whole: Blocks, here: standing.Present, root: Path, *, rows: bool = False
) -> Callable[[list[str], dict, Of], bool]:
    """Whether a table or figure is made, as a function of its files, its block and what it is made of.

    rows: whether data may be made anew where it is known which rows that gives.
    """
    results = root / "results" / config["scale"]
    is_here = cache(lambda point: present.run_is_here(config, point, here, root))
    kept = cache(lambda dataset: rows and here.rows(dataset) or stays(config, whole, root, dataset))
    folder_of = cache(lambda point: standing.run_folder(config, point, here, root))

    def is_made(files: list[str], spec: dict, of: Of) -> bool:
        runs, places = [*map(Point.at, of["runs"])], [root / file for file in files]
        read = [folder_of(run) / "run.json" for run in runs]
        read += [report_file(results, dataset) for dataset in of["data"]]
        with suppress(BadInput):  # of a file that is not there, which keeps snakemake from starting
            return (
                all(map(is_here, runs))
                and all(map(kept, of["data"]))
                and stands(places, asked(spec, of), results, root, folder_of=folder_of)
                and not waits(results, places, read)
                and not is_before_table(places)
            )
        return False

    return is_made


def is_standing(
    config: dict, whole: Blocks, key: tuple[str, str, str], block: dict, here: standing.Present, root: Path
) -> bool:
    """Whether one table or figure is made of the runs that are asked, on rows that stay as they are."""
    files = shown.made({key: block}, config["scale"])
    return judge(config, whole, here, root, rows=True)(files, block, shown.made_of(key, block))


def asked(spec: dict, of: Of) -> dict:
    """What is asked of a table or figure, as it reads back from JSON."""
    return read_back({"spec": spec, "of": of})


def stands(
    files: list[Path],
    asked: dict,
    results: Path,
    root: Path = Path("."),
    *,
    folder_of: Callable[[Point], Path],
) -> bool:
    """Whether files are there, undamaged, and made of what is here now as it is `asked`.

    folder_of: that of a run that is what is asked.
    """
    whole = all(file.name in sealed(file) and standing.intact(file, root) for file in files)
    if not (whole and is_made_of(files[0], asked, results, folder_of, root)):
        return False
    oldest = min(file.stat().st_mtime for file in files)
    return not any(is_edited(folder_of(Point.at(run)), oldest) for run in asked["of"]["runs"])


def is_before_table(files: Iterable[Path]) -> bool:
    """Whether what a search chose (.yaml) is older than its table, of which another job makes it."""
    chosen = [file for file in files if file.suffix == ".yaml"]
    return any(file.stat().st_mtime < file.with_suffix(".csv").stat().st_mtime for file in chosen)


def is_edited(folder: Path, time: float) -> bool:
    """Whether the predictions of a run are younger than `time` and the run is damaged or edited."""
    file = folder / "predictions.parquet"
    if file.is_file() and file.stat().st_mtime > time:
        try:
            agreement.check_intact(folder, agreement.tolerant(folder / "run.json") or {})
        except BadInput:
            return True
    return False


def waits(results: Path, files: Iterable[Path], read: Iterable[Path]) -> bool:
    """Whether a Snakemake is at work that has made anew what the files are made of, and will make them."""
    since, oldest = at_work(results), min(file.stat().st_mtime for file in files)
    return bool(since) and any(since <= (time := file.stat().st_mtime) and oldest < time for file in read)
