"""What searches chose in the results of a scale, and which runs follow a search that no longer stands."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from tailprompt.plan import blocks, present, standing, unmade
from tailprompt.plan.config import read_given
from tailprompt.plan.faults import Blocks
from tailprompt.plan.points import Point, parse
from tailprompt.plan.starts import starts_of


def given(config: dict, files: Iterable[str | Path], root: Path = Path(".")) -> dict[str, tuple[str, str]]:
    """File -> (paper, search), of those files of the configuration that searches of this scale write."""
    tables = Path(root, "results", config["scale"], "tables").resolve()
    places = {file: Path(root, file).resolve() for file in map(str, files)}
    found = {
        file: (place.parent.name, place.stem) for file, place in places.items() if place.suffix == ".yaml"
    }
    return {
        file: (paper, name)
        for file, (paper, name) in found.items()
        if places[file].parent.parent == tables and is_search(config, paper, name)
    }


def is_search(config: dict, paper: str, name: str) -> bool:
    """Whether a paper has a search of this name."""
    return config["papers"].get(paper, {}).get("tables", {}).get(name, {}).get("kind") == "search"


def outdated(
    config: dict,
    whole: Blocks,
    shown: Blocks,
    files: Iterable[str | Path],
    here: standing.Present,
    root: Path = Path("."),
) -> list[str]:
    """The files of choices whose search is to be made anew.

    whole: what the scale asks for. shown: what of that is made, which is less where nothing is trained.
    files: of the configuration. Those that no search of this scale writes are the user's own, and not judged.
    """
    return [
        file
        for file, (paper, name) in given(config, files, root).items()
        if (block := searched(config, shown, paper, name))
        and not unmade.is_standing(config, whole, ("tables", paper, name), block, here, root)
    ]


def searched(config: dict, shown: Blocks, paper: str, name: str) -> dict | None:
    """The block of a search, though `make` may not name it; None for one that nothing is trained for."""
    if ("tables", paper, name) in shown or not config.get("train", True):
        return shown.get(("tables", paper, name))
    return blocks.of_paper(config, config["papers"][paper]["tables"][name], paper, name)


def follows(config: dict, point: Point, chosen: dict) -> bool:
    """Whether a run, or one that it begins from, takes what a search chose. chosen: what its file says."""
    for run in (point, *starts_of(config, point)):
        (method, changes), dataset = parse(run.method), parse(run.dataset)[0]
        cells = chosen.get("protocols", {}).get(run.protocol, {}).get("cells", {})
        if cells.get(dataset, {}).get(method, {}).keys() - changes.keys():
            return True
    return False


def refusal(file: str) -> str:
    """The sentence on choices that runs follow and whose search no longer stands."""
    file = os.path.relpath(file)
    return (
        f"{file}: its search is asked, or has runs and data, otherwise than when it chose; make it anew with "
        f"`snakemake {file}` and the options of this command, and then run this command again"
    )


def made_anew(file: str) -> str:
    """The sentence on such choices of a search that the scale asks for."""
    return (
        f"{os.path.relpath(file)}: snakemake without a target makes its search anew; until then a single "
        "table or run that follows it is refused"
    )


def refused(config: dict, files: Iterable[str | Path], root: Path = Path(".")) -> list[str]:
    """What snakemake does about tables and runs of the scale that follow choices of such a search.

    A command without a target makes anew the searches that are shown, and refuses what follows others.
    """
    if not (own := given(config, files, root)):
        return []
    whole, here = blocks.shown(config), standing.present(config, root)
    is_here = cache(partial(present.run_is_here, config, here=here, root=root))
    shown = unmade.shown_here(config, whole, is_here, root)
    return [
        made_anew(file) if ("tables", *own[file]) in shown else refusal(file)
        for file in outdated(config, whole, shown, own, here, root)
        if any(follows(config, point, read_given(Path(root, file))) for point in blocks.all_points(config))
    ]
