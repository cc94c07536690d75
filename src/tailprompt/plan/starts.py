"""The run from whose weights another run begins, and whether any run needs it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict

from tailprompt.errors import BadInput, named
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import dataset_row, form_of


def start_of(config: dict, point: Point) -> Point | None:
    """The run from whose weights a run begins; coordinates that `start` omits are those of the run itself."""
    start = starting(config, point)
    if not start or "folder" in start:
        return None
    return Point(**{**asdict(point), **{key: value for key, value in start.items() if key != "head"}})


def starting(config: dict, point: Point) -> dict | None:
    """Where a run begins: at the `start` of its method, or, on a data set for test only, at the run it tests.

    `prompts` becomes the language's unlabelled data set for the form of this data set, or for all forms; or,
    with the same cut, the joined sets in which the row of this data set says that it is.
    """
    row = named(config["methods"], parse(point.method)[0], "method")
    dataset = dataset_row(config, point.dataset)
    if "trained_on" in dataset:
        return {"dataset": dataset["trained_on"]}
    start = row.get("start")
    if not start or "prompts" not in start:
        return start or None
    rest = {key: value for key, value in start.items() if key != "prompts"}
    if start["prompts"] == "joined":
        return {"dataset": joined_of(dataset, point), **rest}
    language = dataset["language"]
    prompts = config["languages"].get(language, {}).get("prompts", {})
    form = form_of(dataset) if start["prompts"] == "own" else start["prompts"]
    unlabelled = named(prompts, form, f"form of prompts in languages.{language}")
    return {"dataset": unlabelled, **rest}


def joined_of(row: dict, point: Point) -> str:
    """The joined sets in which a data set is, with its cut; raises BadInput where its row names none."""
    if "joined_in" not in row:
        raise BadInput(
            f"method '{point.method}' starts from joined sets, and data set '{row['name']}' is in none; name "
            "them in its row as joined_in, or leave the set out"
        )
    return row["joined_in"] + point.dataset.removeprefix(row["name"])


def starts_of(config: dict, point: Point) -> list[Point]:
    """The runs that a point builds on, the nearest first; raises BadInput if they form a circle."""
    chain = [point]
    while start := start_of(config, chain[-1]):
        if start in chain:
            raise BadInput(f"method '{chain[-1].method}' starts from {start.path}, which builds on it")
        chain.append(start)
    return chain[1:]


def followers(config: dict, points: Iterable[Point]) -> dict[Point, list[Point]]:
    """Start -> those of the points that begin from it."""
    found: dict[Point, list[Point]] = {}
    for point in points:
        if first := start_of(config, point):
            found.setdefault(first, []).append(point)
    return found


def idle(
    point: Point,
    taken: Container[Point],
    after: Mapping[Point, list[Point]],
    came_alone: Callable[[Point], bool],
) -> bool:
    """Whether no table takes a run, and all that begin from it stand without it, or are idle too.

    taken: the runs of tables and figures. after: what `followers` returns. came_alone: whether a run stands
    that a bundle brought without its start.
    """
    others = [] if point in taken else after.get(point, [])
    return bool(others) and all(came_alone(each) or idle(each, taken, after, came_alone) for each in others)


def keeping(method: str) -> str:
    """Advice on how to make the runs of a method keep all their weights."""
    return f"set keep: true in the scale's file, methods: {{{parse(method)[0]}: {{keep: true}}}}"
