"""What tables and figures need of a run besides its predictions: feature vectors."""

from __future__ import annotations

from tailprompt.plan.blocks import datasets_of, figure_spec, made, methods_of
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_of


def extras(config: dict, point: Point) -> dict:
    """What a run writes besides predictions: `features` of some classes, `vectors` of all, or nothing."""
    asked = {"features": features_asked(config, point), "vectors": vectors_asked(config, point)}
    return {key: value for key, value in asked.items() if value}


def features_asked(config: dict, point: Point) -> list[str]:
    """The classes of this run whose feature vectors a figure needs."""
    specs = [figure_spec(config, paper, figure) for paper, figure in made(config, "figures")]
    return sorted({name for spec in specs for name in spec.get("classes", []) if asks(config, spec, point)})


def vectors_asked(config: dict, point: Point) -> bool:
    """Whether a table or figure takes the feature vectors of all training and test examples of this run."""
    specs = [
        config["papers"][paper].get(what, {}).get(name, {})
        for what in ("tables", "figures")
        for paper, name in made(config, what)
    ]
    under = [spec for spec in specs if spec.get("protocol") == point.protocol]
    return any(asks(config, part, point) for spec in under for part in taking_vectors(spec))


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
