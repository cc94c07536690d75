"""What tables and figures can be made of the runs that are here, for `train: false`.

Without training, a block keeps its data sets that are here and takes the runs that are what is asked. It says
what it lacks; a block without any run is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from glob import escape
from pathlib import Path

from tailprompt.plan import agreement, asked, blocks, either, starts
from tailprompt.plan.blocks import WITHOUT_RUNS, points
from tailprompt.plan.places import folders_of, in_bundles
from tailprompt.plan.points import Point
from tailprompt.plan.settings import settings
from tailprompt.plan.standing import Present, run_folder
from tailprompt.plan.starts import start_of

SCORES = "scores.parquet"


def run_is_here(config: dict, point: Point, here: Present, root: Path = Path(".")) -> bool:
    """Whether a run and all that it builds on are here and what is asked, or came in a bundle without that.

    A run whose data will be prepared anew, with rows that it was not trained on, is not.
    """
    results = root / "results" / config["scale"]
    if not any((folder / "run.json").is_file() for folder in folders_of(results, point)):
        return False
    wanted = asked.asked(config, point, settings(config, point), here.weights(point.backbone), root)
    rows = here.rows(point.dataset)
    if rows is None or not agreement.stands(wanted, point, results, rows):
        return False
    first = start_of(config, point)
    folder = either.run_folder(results, point, lambda: wanted, rows)
    return not first or either.came_alone(folder) or run_is_here(config, first, here, root)


def needed(config: dict, here: Present, root: Path = Path(".")) -> list[Point]:
    """The runs of a scale, but for starts that no run needs, as those came in a bundle without them."""
    everything, results = blocks.all_points(config), root / "results" / config["scale"]
    taken = {point for block in blocks.shown(config).values() for point in points(block)}

    def came_alone(point: Point) -> bool:
        brought = (in_bundles(results / "runs" / point.path) / "run.json").is_file()  # which is sooner seen
        return (
            brought
            and run_is_here(config, point, here, root)
            and either.came_alone(run_folder(config, point, here, root))
        )

    after = starts.followers(config, everything)
    return [point for point in everything if not starts.idle(point, taken, after, came_alone)]


def narrowed(
    block: dict, *, is_here: Callable[[Point], bool], prepared: Callable[[str], bool]
) -> dict | None:
    """A block with the data sets that are here alone; None if it has no run, or no data, to show.

    `left_out` names the data sets that are gone, `lacks` the runs that are not here or not what is asked.
    A figure that is drawn from a table is kept.
    """
    if "table" in block:
        return block
    kept = {row["dataset"] for row in block["datasets"] if prepared(row["dataset"])}
    found, taken = on(block, kept), points(on(block, kept))
    lacks = [point.path for point in taken if not is_here(point)]
    if not kept or len(lacks) == len(taken) and block["kind"] not in WITHOUT_RUNS:
        return None
    gone = [row.get("title") or row["name"] for row in block["datasets"] if row["dataset"] not in kept]
    return found | {key: value for key, value in (("left_out", gone), ("lacks", lacks)) if value}


def on(block: dict, datasets: set[str]) -> dict:
    """A block on some of its data sets."""
    kept = {key: [row for row in block[key] if row["dataset"] in datasets] for key in ("datasets", "runs")}
    if "claims" in block:
        kept["claims"] = [
            {**claim, "datasets": [name for name in claim["datasets"] if name in datasets]}
            for claim in block["claims"]
        ]
    if "original" in block:
        kept["original"] = on(block["original"], datasets)
    return {**block, **kept}


def said(everything: dict, narrow: dict, results: Path, *, scored: int, runs: int) -> str:
    """What the screen shows of tables, figures and scores that are left out or lack something.

    results: of the scale, where what was made of other runs may be taken for what is asked. scored: how many
    of its `runs` the table of all scores takes.
    """
    left = [each for each in everything if each not in narrow]
    out = [f"{name} of {paper}" for _, paper, name in left]
    places = [results / what / paper / name for what, paper, name in left]
    stale = [f"{place}.*" for place in places if any(place.parent.glob(f"{escape(place.name)}.*"))]
    if not scored:
        out.append(SCORES)
        stale += [str(results / SCORES)] if (results / SCORES).is_file() else []
    part = [
        f"{name} of {paper} ({len(points(block)) - len(block.get('lacks', []))} of {len(points(whole))})"
        for (what, paper, name), whole in everything.items()
        if (block := narrow.get((what, paper, name), {})).keys() & {"lacks", "left_out"}
    ]
    part += [f"{SCORES} ({scored} of {runs})"] if 0 < scored < runs else []
    lines = [f"train: false, so {len(narrow)} of {len(everything)} tables and figures are made"]
    lines += [f"  of a part of their runs: {', '.join(part)}"] if part else []
    lines += [f"  not, as none of their runs is here: {', '.join(out)}"] if out else []
    lines += [f"  there still, of other or former runs, and stale: {', '.join(stale)}"] if stale else []
    return "\n".join(lines)
