"""Runs that shall be trained again: which they are, what begins from them, and how they are given up."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from tailprompt.errors import BadInput, few, known, to_do, why
from tailprompt.plan import blocks
from tailprompt.plan.held import claim, holder, name_of
from tailprompt.plan.places import BUNDLED, in_bundles, results_of
from tailprompt.plan.points import Point, parse
from tailprompt.plan.starts import starts_of


def chosen(config: dict, patterns: Iterable[str]) -> list[Point]:
    """The runs of a scale that a pattern names: a data set, a method, or a path as
    protocol/backbone/dataset/method/seed, perhaps below results/<scale>/runs.

    Patterns may have *, ? and []. A name without @ means all its points. Raises BadInput for one that names
    no run.
    """
    points, found = blocks.all_points(config), []
    for pattern in patterns:
        inside = pattern.rstrip("/").removeprefix(f"results/{config['scale']}/").removeprefix(f"{BUNDLED}/")
        named = [point for point in points if names(inside.removeprefix("runs/"), point)]
        if not named:
            datasets = known({parse(point.dataset)[0] for point in points})
            methods = known({parse(point.method)[0] for point in points})
            raise BadInput(
                f"'{pattern}' names no run of scale {config['scale']}; data sets: {datasets}; "
                f"methods: {methods}; or protocol/backbone/dataset/method/seed, with *"
            )
        found += named
    return list(dict.fromkeys(found))


def names(pattern: str, point: Point) -> bool:
    """Whether a pattern names a run."""
    if "/" in pattern:
        return fnmatchcase(point.path, pattern)
    words = [point.dataset, point.method, parse(point.dataset)[0], parse(point.method)[0]]
    return any(fnmatchcase(word, pattern) for word in words)


def folders(config: dict, points: Iterable[Point], root: Path = Path(".")) -> list[Path]:
    """The folders of runs that are on disk, made here or brought by a bundle.

    Those that a bundle brought and that begin from these are among them, as they would stand without them.
    """
    runs, points = root / "results" / config["scale"] / "runs", [*points]
    places = [place for point in points for place in (runs / point.path, in_bundles(runs / point.path))]
    places += [in_bundles(runs / point.path) for point in followers(config, points)]
    return [place for place in places if place.is_dir()]


def followers(config: dict, points: Iterable[Point]) -> list[Point]:
    """The other runs of a scale that begin from these, which are trained again with them."""
    given = set(points)
    others = [point for point in blocks.all_points(config) if point not in given]
    return [point for point in others if given & set(starts_of(config, point))]


def told(config: dict, points: list[Point], places: list[Path]) -> str:
    """What will be deleted, and what is trained again besides."""
    # by inode: what is kept of a finished run are links to its files
    found = [file.stat() for place in places for file in place.rglob("*") if file.is_file()]
    size = sum({(file.st_dev, file.st_ino): file.st_size for file in found}.values()) / 1e6
    lines = [f"to delete, {size:,.1f} MB:", *(f"  {place}" for place in places)]
    if after := followers(config, points):
        paths = few([point.path for point in after])
        lines.append(f"{len(after)} that begin from these are trained again too: {paths}")
    return "\n".join(lines)


def delete(places: list[Path]) -> None:
    """Delete the folders of runs of a scale, and their logs, which are of former runs then.

    Raises BadInput, before the first, if one is being trained, or if a Snakemake works there, which could
    have just finished it.
    """
    for place in places:
        if who := holder(place):
            raise BadInput(f"{place} is being trained by {name_of(who)}; stop that first")
    with claim(results_of(places[0]), "wait for its end, or stop it first"):
        for place in places:
            try:
                shutil.rmtree(place)
                log_of(place).unlink(missing_ok=True)
            except OSError as error:
                raise BadInput(f"{place} cannot be deleted ({why(error)}){to_do(error)}") from None


def log_of(place: Path) -> Path:
    """The log of the job that trained the run in a folder."""
    *point, seed = place.parts[-5:]
    return Path(results_of(place), "logs/train", *point, f"{seed}.log")
