"""Layers of configuration files: which values win, and which file they come from."""

from __future__ import annotations

from collections.abc import Iterable


def merge(below: dict, above: dict) -> dict:
    """`below` overridden by `above`, key by key at every depth; neither is changed."""
    both = {
        key: merge(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}


def origin(layers: Iterable[tuple[str, dict]], path: list) -> str:
    """The last file that has a value at `path`, or at as many of its first keys as any file has."""
    deepest = max(reversed([*layers]), key=lambda layer: depth(layer[1], path))
    files = [layer for layer in layers if layer[0] != "--config"]
    return (deepest if depth(deepest[1], path) else files[-1])[0]


def depth(layer, path: list) -> int:
    """How many of the first keys of `path` exist in a layer."""
    for step, key in enumerate(path):
        try:
            layer = layer[key]
        except (KeyError, IndexError, TypeError):
            return step
    return len(path)
