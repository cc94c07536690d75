"""What searches chose in the results of a scale, and which runs follow a search that no longer stands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tailprompt.plan import blocks, standing, unmade
from tailprompt.plan.faults import Blocks
from tailprompt.plan.points import Point


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
    config: dict, whole: Blocks, files: Iterable[str | Path], here: standing.Present, root: Path = Path(".")
) -> dict[str, list[Point]]:
    """File of choices whose search is to be made anew -> the runs of `whole` that follow it.

    files: of the configuration. Those that no search of this scale writes are the user's own, and not judged.
    """
    return {
        file: followers(config, whole, block)
        for file, (paper, name) in given(config, files, root).items()
        if (block := searched(config, whole, paper, name))
        and not unmade.is_standing(config, whole, ("tables", paper, name), block, here, root)
    }


def searched(config: dict, whole: Blocks, paper: str, name: str) -> dict | None:
    """The block of a search, though `make` may not name it; None for one that nothing is trained for."""
    if ("tables", paper, name) in whole or not config.get("train", True):
        return whole.get(("tables", paper, name))
    return blocks.of_paper(config, config["papers"][paper]["tables"][name], paper, name)


def followers(config: dict, whole: Blocks, search: dict) -> list[Point]:
    """The runs under the protocol of a search, of the blocks that name it."""
    tried = {*blocks.points(search)}
    return [
        point
        for (what, paper, name), block in whole.items()
        if paper == search["paper"]
        and search["name"] in config["papers"][paper][what][name].get("searched", [])
        for point in blocks.points(block)
        if point.protocol == search["protocol"] and point not in tried
    ]
