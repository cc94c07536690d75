"""The run whose weights another begins from."""

from __future__ import annotations

from dataclasses import asdict

from tailprompt.errors import BadInput, named
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import dataset_row, form_of


def start_of(config: dict, point: Point) -> Point | None:
    """The run whose weights this one begins from; coordinates it does not name are its own."""
    start = starting(config, point)
    return Point(**{**asdict(point), **start}) if start and "folder" not in start else None


def starting(config: dict, point: Point) -> dict | None:
    """Where a run begins: the `start` of its method, or on a data set for test alone the run it tests.

    `prompts` in it becomes the unlabelled data set of the language for this form, or for all in one.
    """
    row = named(config["methods"], parse(point.method)[0], "method")
    dataset = dataset_row(config, point.dataset)
    if "trained_on" in dataset:
        return {"dataset": dataset["trained_on"]}
    start = row.get("start")
    if not start or "prompts" not in start:
        return start
    language = dataset["language"]
    prompts = config["languages"].get(language, {}).get("prompts", {})
    form = form_of(dataset) if start["prompts"] == "own" else start["prompts"]
    found = named(prompts, form, f"form of prompts in languages.{language}")
    return {"dataset": found, **{key: value for key, value in start.items() if key != "prompts"}}


def starts_of(config: dict, point: Point) -> list[Point]:
    """The runs that a point builds on, the nearest first; raises BadInput where they come round to it."""
    chain = [point]
    while start := start_of(config, chain[-1]):
        if start in chain:
            raise BadInput(f"method '{chain[-1].method}' starts from {start.path}, which builds on it")
        chain.append(start)
    return chain[1:]


def keeping(method: str) -> str:
    """Where to say that the runs of a method keep all their weights."""
    return f"set keep: true in the scale's file, methods: {{{parse(method)[0]}: {{keep: true}}}}"
