"""A number of a recipe that only changed its form, as from 5 to 5.0, is the number that it was.

What a recipe made is known by digests of JSON, in which the two differ. A number that equals the one that was
asked before keeps that one's form, so that what is on disk stands whichever form it was made with.
"""

from __future__ import annotations

from pathlib import Path

from tailprompt.plan.agreement import tolerant

ASKED = tuple(
    f"{told}/{kind}" for kind in ("vocabulary", "packed", "checkpoint") for told in ("asked", "made")
)


def as_before(config: dict, root: Path = Path(".")) -> dict:
    """The configuration with the numbers of its recipes in the forms that jobs of its scale were asked."""
    results = root / "results" / config["scale"]
    recipes = {}
    for name, recipe in config["pretraining"].items():
        for place in ASKED:  # the checkpoint's last, of whose recipe the others were asked a part
            told = tolerant(results / place / f"{name}.json") or {}
            recipe = in_form(recipe, told.get("recipe"))
        recipes[name] = recipe
    return {**config, "pretraining": recipes}


def in_form(value, before):
    """A value with each number in the form of an equal one before: 5 for 5.0, and 5.0 for 5."""
    if isinstance(value, dict) and isinstance(before, dict):
        return {key: in_form(each, before.get(key)) for key, each in value.items()}
    if isinstance(value, list) and isinstance(before, list) and len(value) == len(before):
        return [in_form(*pair) for pair in zip(value, before, strict=True)]
    return before if {type(value), type(before)} <= {int, float} and value == before else value
