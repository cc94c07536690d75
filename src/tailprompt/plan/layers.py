"""Configuration files laid over one another: the values that win, and the file that says them."""

from __future__ import annotations

from collections.abc import Iterable


def merge(below: dict, above: dict) -> dict:
    """`above` over `below`, deeply; neither is changed."""
    both = {
        key: merge(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}


def origin(layers: Iterable[tuple[str, dict]], path: list) -> str:
    """The last file that says something at a place."""
    found = max(reversed([*layers]), key=lambda layer: depth(layer[1], path))
    files = [layer for layer in layers if layer[0] != "--config"]
    return (found if depth(found[1], path) else files[-1])[0]


def depth(layer, path: list) -> int:
    """How many steps of `path` exist in a layer."""
    for step, key in enumerate(path):
        try:
            layer = layer[key]
        except (KeyError, IndexError, TypeError):
            return step
    return len(path)
