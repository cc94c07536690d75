"""The settings that a block tries for its methods: one key by `choose`, several by a table of kind `search`.

A search has runs of its own, and what it chooses comes back as a file of the configuration. So the DAG is
known beforehand, and a block that waits for a search is planned when that file is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from tailprompt.errors import BadInput
from tailprompt.plan.points import Point, parse, vary
from tailprompt.plan.starts import starts_of


def tried(spec: dict, method: str, dataset: str = "", backbone: str = "") -> dict[str, list]:
    """Key -> the values that a block tries for a method, as `lr`; {} if it tries none (`of` may have []).

    `cells` may have others for a data set, and both for a method on one backbone, {pt2/bert-mini: [...]}, or
    with what its name changes, {"pt2@loss=focal": [...]}.
    """
    base = parse(method)[0]
    if spec["kind"] == "search":
        return spec["over"] | spec.get("of", {}).get(base, {})
    if "choose" not in spec:
        return {}
    choose = spec["choose"]
    of = choose.get("of", {}) | choose.get("cells", {}).get(parse(dataset)[0], {})
    names = [*([method] if method != base else []), f"{base}/{backbone}", base]
    values = next((of[name] for name in names if name in of), choose["values"])
    return {choose["over"]: values} if values else {}


def each_tried(spec: dict, method: str, dataset: str = "", backbone: str = "") -> list[str]:
    """The names of the runs that a block takes for a method on a data set, as `prompt@epochs=10,lr=3e-05`.

    Raises BadInput for a method whose name already gives a value.
    """
    values, (base, changes) = tried(spec, method, dataset, backbone), parse(method)
    if given := sorted(values.keys() & changes.keys()):
        key, (of, said) = given[0], ("of", "over")
        values_of = f"{{{base}: {{{key}: [...]}}}}"
        if spec["kind"] != "search":
            of, said, values_of = "choose", "choose: over", f"{{of: {{{base}: [...]}}}}"
        raise BadInput(
            f"'{method}': its table varies {key} already ({said}); leave {key} out of the name, or state the "
            f"values for {base} in {of}: {values_of}"
        )
    names = []
    for combination in product(*(values[key] for key in sorted(values))):
        name = method
        for key, value in zip(sorted(values), combination, strict=True):
            name = vary(name, key, value)
        names.append(name)
    return names


def check_search(name: str, cells: Iterable[tuple[str, str, str | None]]) -> None:
    """Raise BadInput if two cells of a search would choose for the same cell of the protocol.

    cells: (data set, method, backbone). What follows an @ has no cell of its own.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for dataset, method, _ in cells:
        cell = parse(dataset)[0], parse(method)[0]
        if cell in found:
            other = " on ".join(reversed(found[cell]))
            raise BadInput(
                f"{name}: {method} on {dataset} and {other} share one cell of the protocol, "
                f"{'.'.join(cell)}; search one of them, or give the other a row of its own"
            )
        found[cell] = dataset, method


def unsearched(
    config: dict, spec: dict, tables: dict, points: Iterable[Point]
) -> Iterator[tuple[str, str, str]]:
    """(search, data set, method) of which a search that a block names has not chosen yet what its runs need.

    Of the runs that these start from, too. tables: of the block's paper.
    """
    if "searched" not in spec:
        return
    given = config["protocols"][spec["protocol"]].get("cells", {})
    for point in points:
        for run in (point, *starts_of(config, point)):
            (method, changes), dataset = parse(run.method), parse(run.dataset)[0]
            chosen = given.get(dataset, {}).get(method, {}).keys() | changes.keys()
            for search in spec["searched"]:
                listed = method in {parse(name)[0] for name in tables[search]["methods"]}
                if listed and not tried(tables[search], method).keys() <= chosen:
                    yield search, dataset, method
