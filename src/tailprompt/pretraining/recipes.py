"""Checks of the recipes in `pretraining` that a schema cannot make: numbers that must suit each other."""

from __future__ import annotations

from tailprompt.errors import BadInput
from tailprompt.pretraining.shapes import MODELS

SENTINELS = [f"<extra_id_{number}>" for number in range(100)]  # of a T5, each for one span of a row


def check(recipes: dict[str, dict]) -> None:
    """Raise BadInput, one sentence with its key, at the first recipe that cannot be trained."""
    for name, recipe in recipes.items():
        place = f"pretraining.{name}"
        check_heads(recipe["shape"], MODELS[recipe["task"]], f"{place}.shape")
        if "start" in recipe:
            check_start(recipes, name)
        check_parts(recipes, name)
        if recipe["task"] == "classification":
            check_images(recipe, place)
        else:
            check_lengths(recipe, place)


def check_heads(shape: dict, model: type, place: str) -> None:
    """Whether heads share the width."""
    width, heads = model.heads or ("", "")
    if shape.get(width, 0) % shape.get(heads, 1):
        raise BadInput(f"{place}: {width} {shape[width]} is no multiple of {heads} {shape[heads]}")


def check_start(recipes: dict[str, dict], name: str) -> None:
    """Raise BadInput unless a recipe goes on from another for the same model, and not in a circle."""
    start = recipes[name]["start"]
    if len(line_of(recipes, name)) > len(recipes):
        raise BadInput(f"pretraining.{name}.start is {start}, which leads back to it; name another recipe")
    theirs, ours = (MODELS[recipes[each]["task"]].name for each in (start, name))
    if theirs != ours:
        raise BadInput(
            f"pretraining.{name}.start is {start}, a {theirs}; "
            f"a {recipes[name]['task']} goes on from a {ours}"
        )


def line_of(recipes: dict[str, dict], name: str) -> list[str]:
    """A recipe, the one it goes on from, and so on; in a circle more than there are recipes."""
    line = [name]
    while "start" in recipes[line[-1]] and len(line) <= len(recipes):
        line.append(recipes[line[-1]]["start"])
    return line


def check_parts(recipes: dict[str, dict], name: str) -> None:
    """Raise BadInput unless the parts that a recipe reads are among those that it or its start packs."""
    parts = next((recipes[each]["parts"] for each in line_of(recipes, name) if "parts" in recipes[each]), 0)
    if wrong := [number for number in recipes[name].get("reads", []) if number > parts]:
        raise BadInput(
            f"pretraining.{name}.reads names part {wrong[0]}, and its data have {parts or 'no'} parts; "
            "correct it, or set parts in the recipe that packs them"
        )


def check_images(recipe: dict, place: str) -> None:
    """Raise BadInput unless views have whole patches and fit into the images, and Mixup has pairs."""
    shape, (low, high) = recipe["shape"], recipe["augment"]["scale"]
    size, patch = shape.get("img_size", 224), shape.get("patch_size", 16)
    if size % patch:
        raise BadInput(f"{place}.shape: img_size {size} is no multiple of patch_size {patch}")
    if size > recipe["pixels"]:
        raise BadInput(f"{place}: img_size {size} is more than pixels, {recipe['pixels']}")
    if recipe["batch"] % 2:
        raise BadInput(f"{place}.batch is {recipe['batch']}; Mixup takes an even number")
    if low > high:
        raise BadInput(f"{place}.augment.scale is [{low}, {high}]; the smaller share comes first")


def check_lengths(recipe: dict, place: str) -> None:
    """Raise BadInput unless the model has a position for each token, and some tokens are not hidden."""
    positions = recipe["shape"].get("max_position_embeddings", float("inf"))
    lengths = {"length": recipe["length"], "long.length": recipe.get("long", {}).get("length")}
    for key, length in lengths.items():
        if length is None:
            continue
        if length > positions:
            raise BadInput(f"{place}.{key} is {length}; the model has {positions} positions")
        if "rate" in recipe:
            check_hidden(recipe, length, f"{place}.rate is {recipe['rate']}, of {key} {length}")


def check_hidden(recipe: dict, length: int, place: str) -> None:
    """Raise BadInput unless some but not all tokens of a row are hidden, and each span has a sentinel.

    Tokens are counted as in `corruption`. BERT never hides the first and last token, and one more must stay.
    """
    hidden = max(1, round(recipe["rate"] * length))
    most = length - (3 if recipe["task"] == "masked_language_model" else 1)
    if hidden > most:
        raise BadInput(f"{place}: it hides {hidden} tokens, and {most} can be hidden at most; lower rate")
    spans = min(max(1, round(hidden / recipe["span"])), length - hidden) if "span" in recipe else 0
    if spans > len(SENTINELS):
        raise BadInput(
            f"{place} hides {spans} spans, and {len(SENTINELS)} have a sentinel; raise span or lower rate"
        )
