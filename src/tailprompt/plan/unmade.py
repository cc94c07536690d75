"""The tables and figures that are still to make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tailprompt.plan import blocks, present, standing
from tailprompt.plan.either import run_folder
from tailprompt.plan.faults import Blocks, at_work
from tailprompt.plan.jobs import data, shown
from tailprompt.plan.made import read_back
from tailprompt.plan.points import Point


def shown_here(config: dict, whole: Blocks, is_done: Callable[[Point], bool], root: Path) -> Blocks:
    """The tables and figures that snakemake makes: of `whole`, or without training of what is here."""
    if config.get("train", True):
        return whole
    narrow = {
        key: part
        for key, block in whole.items()
        if (
            part := present.narrowed(block, is_here=is_done, prepared=lambda one: prepared(config, one, root))
        )
    }
    return blocks.with_tables(narrow)


def prepared(config: dict, dataset: str, root: Path) -> bool:
    """Whether the report of a data set is here as it is asked, made or brought by a bundle."""
    file = root / data.report(config, dataset)
    own = file.parent == root / "results" / config["scale"] / "data"
    return file.is_file() and (not own or standing.stands(config, "data", dataset, root))


def told(config: dict, whole: Blocks, is_done: Callable[[Point], bool], root: Path) -> tuple[str, bool]:
    """How many of the tables and figures are made, in words, and whether all are and the overview is.

    One is made if it is what is asked and all of its runs are done.
    """
    here, scale = shown_here(config, whole, is_done, root), config["scale"]
    results, made = root / "results" / scale, 0
    for key, block in here.items():
        points = shown.predictions(block, file=lambda point: point)
        if all(map(is_done, points)):
            read = [run_folder(results, point) / "predictions.parquet" for point in points]
            made += stands(config, "/".join(key), block, shown.made({key: block}, scale), read, root)
    spec, page = shown.overview(config, here, whole), [f"results/{scale}/overview.html"]
    read = [root / file for file in shown.made(here, scale)]
    whole_report = made == len(here) and stands(config, "overview", spec, page, read, root)
    also = "" if whole_report or made < len(here) else "; overview.html is not"
    return f"{made} of {len(here)} tables and figures are made{also}", whole_report


def stands(config: dict, name: str, spec: dict, files: list[str], read: list[Path], root: Path) -> bool:
    """Whether the files of a table or figure are there and what is asked.

    While a Snakemake works they are no older than what it has made of what they `read`.
    """
    results, made = root / "results" / config["scale"], [root / file for file in files]
    if not standing.same(made, read_back({"spec": spec}), results / f"made/{name}.json", root):
        return False
    since, oldest = at_work(results), min(file.stat().st_mtime for file in made)
    times = [file.stat().st_mtime for file in read] if since else []
    return all(time < since or time <= oldest for time in times)
