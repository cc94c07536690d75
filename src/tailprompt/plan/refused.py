"""The methods that a table's data sets do not take, as its `refused` names them, and why."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan.blocks import datasets_of, made
from tailprompt.plan.points import Point
from tailprompt.plan.rows import backbone_of
from tailprompt.plan.runnable import check_settings


def refused(config: dict, root: Path) -> list[str]:
    """A line for each method that a table of this scale names as refused, with the first reason.

    Raises BadInput if one of its data sets takes the method.
    """
    lines = []
    for paper, name in made(config, "tables"):
        spec = config["papers"][paper]["tables"][name]
        datasets = datasets_of(config, spec) if "refused" in spec else []
        for method in spec.get("refused", []):
            reasons = [reason(config, spec["protocol"], dataset, method, root) for dataset in datasets]
            lines += [f"not in {name} of {paper}: {method} on {', '.join(datasets)} ({reasons[0]})"]
    return lines


def reason(config: dict, protocol: str, dataset: str, method: str, root: Path) -> str:
    """Why a method cannot run on a data set; raises BadInput if it can."""
    try:
        backbone = backbone_of(config, protocol, dataset, method)
        point = Point(protocol, backbone, dataset, method, config["protocols"][protocol]["seeds"][0])
        check_settings(config, [point], root)
    except BadInput as wrong:
        return str(wrong)
    raise BadInput(f"{method} can run on {dataset} under {protocol}; take it from refused to methods")
