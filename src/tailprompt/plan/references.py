"""Checks of names in the configuration: each must have a row, and each that a scale defines must be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from tailprompt.errors import BadInput, known
from tailprompt.plan.grids import tried
from tailprompt.plan.jobs.recipes import corpus_keys
from tailprompt.plan.layers import origin
from tailprompt.plan.points import parse

ROWS = {  # key -> the section that holds the row which it names
    "backbone": "backbones",
    "dataset": "datasets",
    "datasets": "datasets",
    "joined_in": "datasets",
    "joins": "datasets",
    "method": "methods",
    "methods": "methods",
    "only": "sets",
    "protocol": "protocols",
    "recipe": "pretraining",
    "sets": "sets",
    "than": "methods",
    "trained_on": "datasets",
}
OTHERS = ("trained_on", "joins", "joined_in")  # keys of a data set's row that name others
TAKERS = {  # what uses the names that a scale defines
    "protocols": "table, figure or start",
    "sets": "table, figure or start",
    "corpora": "data set or recipe",
    "methods": "table, figure, protocol or start, and has no title as one that is run by its path",
}
METHODS = "config/methods.yaml"  # whose rows need no taker


def check_names(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first name without a row, or the first name or method that nothing uses."""
    sources = [*config["datasets"].values(), *config["pretraining"].values()]
    corpora = {key for row in sources if "corpus" in row for key in corpus_keys(row)}
    taken: dict[str, set[str]] = {"protocols": set(), "sets": set(), "corpora": corpora}
    for path, names, registry in references(config):
        taken.setdefault(registry, set()).update(names)
        rows = set(reduce(lambda part, key: part.get(key, {}), registry.split(":"), config))
        for name in names:
            if name not in rows:
                place = f"{origin(layers, [*path, name])}: '{name}' in {'.'.join(map(str, path))}"
                raise BadInput(f"{place} is none of the {registry.replace(':', '.')}; known: {known(rows)}")
    for name, row in config["protocols"].items():
        listed = methods_listed(config, name)
        for method in row.get("methods", []):
            if not {method, parse(method)[0]} & listed:
                place = f"{origin(layers, ['protocols', name, 'methods'])}: '{method}' in protocols.{name}"
                raise BadInput(f"{place}.methods is in no table or figure of {name}; there: {known(listed)}")
    for registry, takers in TAKERS.items():
        for name in sorted(defined(config, registry, layers) - taken[registry]):
            place = f"{origin(layers, [registry, name])}: '{name}' in {registry}"
            raise BadInput(f"{place} is taken by no {takers}; taken: {known(taken[registry])}")


def defined(config: dict, registry: str, layers: Iterable[tuple[str, dict]]) -> set[str]:
    """The names that a scale defines; of methods those without a title, beside the rows of all scales."""
    if registry != "methods":
        return {*config.get(registry, {})}
    shared = [content["methods"] for file, content in layers if file == METHODS and content]
    names = {name for name, row in config["methods"].items() if "title" not in row}
    return names.difference(*shared) if shared else set()


def check_claims(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first claim that compares a method with itself."""
    for path, block in all_blocks(config):
        for name, claim in block.get("claims", {}).items():
            if claim["method"] == claim["than"]:
                place = f"{origin(layers, [*path, 'claims', name])}: claim '{name}' in {'.'.join(path)}"
                raise BadInput(f"{place} compares '{claim['method']}' with itself; name another in than")


def check_searches(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first table that waits for no search of its protocol, or judges that twice."""
    for path, block in all_blocks(config):
        tables = config["papers"][path[1]].get("tables", {})
        place = f"{origin(layers, path)}: {'.'.join(path)}"
        for name in block.get("searched", []):
            if (tables[name]["kind"], tables[name]["protocol"]) != ("search", block["protocol"]):
                raise BadInput(f"{place}: searched '{name}' is no search under protocol {block['protocol']}")
            check_chosen(config, layers, block["protocol"], name, tables[name])
        if block.get("original") == block["protocol"]:
            raise BadInput(f"{place}: original is its own protocol; name another, or leave original out")


def check_chosen(
    config: dict, layers: Iterable[tuple[str, dict]], protocol: str, name: str, search: dict
) -> None:
    """Raise BadInput if a cell of the protocol has a value that the search for it does not try."""
    methods = {parse(method)[0] for method in search["methods"]}
    for dataset, cells in config["protocols"][protocol].get("cells", {}).items():
        for method, cell in cells.items():
            values = tried(search, method) if method in methods else {}
            for key in sorted(values.keys() & cell.keys()):
                path = ["protocols", protocol, "cells", dataset, method, key]
                if cell[key] not in values[key]:
                    raise BadInput(
                        f"{origin(layers, path)}: {'.'.join(path)} is {cell[key]}, which search '{name}' "
                        f"does not try ({known(values[key])}); leave it out, so that the search chooses"
                    )


def check_drawn(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first figure of a table that holds no claims, or of one that make leaves out."""
    for path, block in all_blocks(config):
        if "table" not in block:
            continue
        tables = config["papers"][path[1]].get("tables", {})
        if tables[block["table"]]["kind"] != "claims":
            place = f"{origin(layers, path)}: {'.'.join(path)}"
            raise BadInput(f"{place}: table '{block['table']}' holds no claims; name a table of kind claims")
    for paper, limits in config["make"].items():
        figures, made = config["papers"][paper].get("figures", {}), limits.get("tables", [])
        for name in limits.get("figures", []):
            table = figures[name].get("table")
            if table and "tables" in limits and table not in made:
                place = f"{origin(layers, ['make', paper, 'figures'])}: make.{paper}.figures"
                raise BadInput(f"{place}: '{name}' is drawn from table '{table}'; name it in tables as well")


def all_blocks(config: dict) -> Iterator[tuple[tuple[str, ...], dict]]:
    """(place, block) of every table and figure."""
    for paper, content in config["papers"].items():
        for what in ("tables", "figures"):
            for name, block in content.get(what, {}).items():
                yield ("papers", paper, what, name), block


def methods_listed(config: dict, protocol: str) -> set[str]:
    """The methods that tables, figures and claims under a protocol list."""
    here = [block for _, block in all_blocks(config) if block["protocol"] == protocol]
    claims = [claim for block in here for claim in block.get("claims", {}).values()]
    pairs = {claim[key] for claim in claims for key in ("method", "than")}
    return pairs.union(*(block.get("methods", []) for block in here))


def references(config: dict) -> Iterator[tuple[tuple, list[str], str]]:
    """(path of keys, names there, section of their rows) for every place that names rows."""
    yield ("make",), list(config["make"]), "papers"
    for paper, limits in config["make"].items():
        for what, names in limits.items():
            yield ("make", paper, what), names, f"papers:{paper}:{what}"
    for name, row in config["backbones"].items():
        yield from named_in({key: row[key] for key in row if key == "recipe"}, "backbones", name)
    for name, row in config["datasets"].items():
        yield from named_in({key: row[key] for key in row if key in OTHERS}, "datasets", name)
    for name, row in config["languages"].items():
        yield ("languages", name, "prompts"), list(row.get("prompts", {}).values()), "datasets"
    for name, row in config["pretraining"].items():
        if "start" in row:
            yield ("pretraining", name, "start"), [row["start"]], "pretraining"
    for name, row in config["methods"].items():
        yield from named_in(row.get("start") or {}, "methods", name, "start")
    for name, row in config["protocols"].items():
        yield ("protocols", name, "backbones"), list(row["backbones"].values()), "backbones"
        yield from named_in(row, "protocols", name)
        yield ("protocols", name, "cells"), list(row.get("cells", {})), "datasets"
        for dataset, cells in row.get("cells", {}).items():
            yield from named_of(cells, "protocols", name, "cells", dataset)
    for name, datasets in config["sets"].items():
        yield ("sets", name), [parse(dataset)[0] for dataset in datasets], "datasets"
    for path, block in all_blocks(config):
        yield from named_in(block, *path)
        yield (*path, "backbones"), block.get("backbones", []), "backbones"
        choose = block.get("choose", {})
        yield from named_of(map(base_of, choose.get("of", {})), *path, "choose", "of")
        yield (*path, "choose", "cells"), list(choose.get("cells", {})), "datasets"
        for dataset, values in choose.get("cells", {}).items():
            yield from named_of(map(base_of, values), *path, "choose", "cells", dataset)
        yield (*path, "of"), list(block.get("of", {})), "methods"
        yield (*path, "searched"), block.get("searched", []), f"papers:{path[1]}:tables"
        yield (*path, "table"), [block["table"]] if "table" in block else [], f"papers:{path[1]}:tables"
        yield (*path, "original"), [block["original"]] if "original" in block else [], "protocols"
        for claim, compared in block.get("claims", {}).items():
            yield from named_in(compared, *path, "claims", claim)


def base_of(cell: str) -> str:
    """A method without what follows its @; a cell that names its backbone as it is."""
    return parse(cell)[0]


def named_of(cells: Iterable[str], *path) -> Iterator[tuple[tuple, list[str], str]]:
    """The `references` of a mapping from methods, perhaps on one backbone (`pt2/roberta-large`)."""
    parts = [cell.split("/") for cell in cells]
    yield path, [method for method, *_ in parts], "methods"
    yield path, [backbone for _, *on in parts for backbone in on], "backbones"


def named_in(block: dict, *path) -> Iterator[tuple[tuple, list[str], str]]:
    """The `references` in one block, by the keys of ROWS."""
    for key in ROWS.keys() & block.keys():
        names = [block[key]] if isinstance(block[key], str) else block[key]
        bases = list(names) if isinstance(names, dict) else [parse(name)[0] for name in names]
        yield (*path, key), bases, ROWS[key]
