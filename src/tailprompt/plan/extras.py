"""What tables and figures need of a run besides its predictions: feature vectors."""

from __future__ import annotations

from tailprompt.plan.blocks import datasets_of, figure_spec, made, methods_of
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_of


def extras(config: dict, point: Point, takers: list[tuple[str, dict]] | None = None) -> dict:
    """What a run writes besides predictions: `features` of some classes, `vectors` of all, or nothing.

    takers: what `takers_of` returns, which whoever asks for many runs need not find for each.
    """
    takers = takers_of(config) if takers is None else takers
    taken = [(what, spec) for what, spec in takers if asks(config, spec, point)]
    classes = {name for what, spec in taken if what == "features" for name in spec["classes"]}
    vectors = any(what == "vectors" for what, _ in taken)
    return ({"features": sorted(classes)} if classes else {}) | ({"vectors": True} if vectors else {})


def takers_of(config: dict) -> list[tuple[str, dict]]:
    """(features or vectors, block) of each block, or claim as a block, that takes some of its runs."""
    figures = [figure_spec(config, paper, name) for paper, name in made(config, "figures")]
    tables = [
        config["papers"][paper].get("tables", {}).get(name, {}) for paper, name in made(config, "tables")
    ]
    vectors = [part for spec in (*tables, *figures) for part in taking_vectors(spec)]
    features = [("features", spec) for spec in figures if spec.get("classes")]
    return [*features, *(("vectors", part) for part in vectors)]


def taking_vectors(spec: dict) -> list[dict]:
    """A block with `vectors: true`, or its claims about features, each as a block."""
    claims = [claim for claim in spec.get("claims", {}).values() if claim.get("statistic") == "separability"]
    compared = [{**spec, **claim, "methods": [claim["method"], claim["than"]]} for claim in claims]
    return [spec] if spec.get("vectors") else compared


def asks(config: dict, spec: dict, point: Point) -> bool:
    """Whether a block takes this run."""
    if point.protocol != spec["protocol"] or spec.get("seed", point.seed) != point.seed:
        return False
    if point.dataset not in datasets_of(config, spec) or point.method not in methods_of(config, spec):
        return False
    usual = backbone_of(config, point.protocol, point.dataset, point.method)
    return point.backbone in spec.get("backbones", [usual])
