"""What a scale makes: the expanded block of each table and figure, and the runs and data sets it takes.

It needs the standard library only.
"""

from __future__ import annotations

from tailprompt.components.resolve import is_choice, options
from tailprompt.errors import BadInput, named
from tailprompt.plan.grids import check_search, each_tried, unsearched
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import backbone_of, dataset_row, parts_of
from tailprompt.plan.starts import starts_of

FILLED_IN = "sets only methods claims backbones refused".split()  # keys that an expanded block has no more
WITHOUT_RUNS = ("statistics", "class_distribution")  # kinds that show data alone
OF_A_PAPER = {"others", "reported"}  # keys of a paper that its tables and figures are told


def expand(config: dict, spec: dict) -> dict:
    """The block of a table or figure with every choice of the scale filled in, as one JSON value.

    Adds `datasets` (a few keys of each row), `methods` (name and title), `seeds`, `scale` and `runs` (data
    set, method, name of the run's method, and backbone). `original` becomes the block under that protocol.
    A figure that is drawn from a `table` takes none of them.
    """
    protocol = named(config["protocols"], spec["protocol"], "protocol")
    if "table" in spec:
        return {**spec, "datasets": [], "methods": [], "seeds": [], "runs": [], "scale": config["scale"]}
    seeds = spec.get("seeds") or ([spec["seed"]] if "seed" in spec else protocol["seeds"])
    claims = claims_of(config, spec)
    cells = cells_of(config, spec, claims)
    datasets = unique(dataset for dataset, *_ in cells) if "claims" in spec else datasets_of(config, spec)
    runs = [
        {"dataset": dataset, "method": on(method, backbone), "run": run, "backbone": body}
        for dataset, method, backbone in cells
        for body in [backbone or backbone_of(config, spec["protocol"], dataset, method)]
        for run in each_tried(spec, method, dataset, body)
    ]
    rows = unique((method, backbone) for _, method, backbone in cells)
    rows = rows or [(method, None) for method in methods_of(config, spec)]
    backbones = unique(backbone for _, backbone in rows)
    rows.sort(key=lambda row: backbones.index(row[1]))
    return {
        **{key: value for key, value in spec.items() if key not in FILLED_IN},
        **({"claims": claims} if "claims" in spec else {}),
        **({"original": expand(config, under_original(spec))} if "original" in spec else {}),
        "datasets": [about(config, dataset) for dataset in datasets],
        "methods": [{"name": on(*row), "title": title(config, *row)} for row in rows],
        "seeds": seeds,
        "runs": runs,
        "scale": config["scale"],
    }


def under_original(spec: dict) -> dict:
    """The block of a table of claims under the protocol that it names as the original."""
    return {key: value for key, value in spec.items() if key != "original"} | {"protocol": spec["original"]}


def claims_of(config: dict, spec: dict) -> list[dict]:
    """The claims of a table, each with its data sets; none if this scale omits one of its two methods."""
    claims, only = [], config["sets"][spec["only"]] if "only" in spec else None
    for name, claim in spec.get("claims", {}).items():
        run = {key: methods_of(config, {**spec, "methods": [claim[key]]}) for key in ("method", "than")}
        pair = {key: methods[0] if methods else claim[key] for key, methods in run.items()}
        titles = {f"{key}_title": title(config, method) for key, method in pair.items()}
        pair = {key: on(method, claim.get("backbone")) for key, method in pair.items()}
        rest = {key: value for key, value in claim.items() if key != "sets"} | pair
        datasets = [dataset for dataset in datasets_of(config, claim) if only is None or dataset in only]
        if only is not None and not datasets:
            continue
        datasets = datasets if all(run.values()) else []
        claims.append({"id": name, **rest, **titles, "datasets": datasets})
    return claims


def cells_of(config: dict, spec: dict, claims: list[dict]) -> list[tuple[str, str, str | None]]:
    """Each (data set, method, backbone) of a block once; the backbone is None for the protocol's.

    A table of claims takes only what its claims compare.
    """
    if "claims" in spec:
        parts = [(one["datasets"], (one["method"], one["than"]), [one.get("backbone")]) for one in claims]
    else:
        parts = [(datasets_of(config, spec), methods_of(config, spec), spec.get("backbones", [None]))]
    return unique(
        (dataset, method.partition("/")[0], backbone)
        for datasets, methods, backbones in parts
        for dataset in datasets
        for method in methods
        for backbone in backbones
    )


def unique(values) -> list:
    """Each value once, in the order of first appearance."""
    return list(dict.fromkeys(values))


def about(config: dict, dataset: str) -> dict:
    """What a table says of a data set: its name in the results, and its row's name, title and note."""
    row = dataset_row(config, dataset)
    return {key: row.get(key) for key in ("name", "title", "note")} | {"dataset": dataset}


def on(method: str, backbone: str | None) -> str:
    """The name of a method's row in a table, as `lpt/vit-small` where the block compares backbones."""
    return f"{method}/{backbone}" if backbone else method


def title(config: dict, method: str, backbone: str | None = None) -> str:
    """The title of a method with what follows its @, and with the backbone's if a block compares several."""
    base, changes = parse(method)
    text = named(config["methods"], base, "method").get("title", base)
    parts = [text, *(titled(key, value) for key, value in changes.items())]
    return ", ".join(parts + ([config["backbones"][backbone].get("title", backbone)] if backbone else []))


def titled(key: str, value) -> str:
    """What a table calls a change of one setting."""
    component = options(key.rpartition(".")[2]).get(value) if is_choice(key) else None
    return getattr(component, "title", None) or f"{key} {value}".replace("_", " ")


def points(expanded: dict) -> list[Point]:
    """The runs that an expanded table or figure takes."""
    if not expanded.get("methods"):
        return []
    here = [
        Point(expanded["protocol"], run["backbone"], run["dataset"], run["run"], seed)
        for run in expanded["runs"]
        for seed in expanded["seeds"]
    ]
    return here + points(expanded.get("original", {}))


def shown(config: dict) -> dict[tuple[str, str, str], dict]:
    """Everything that this scale makes: (tables or figures, paper, name) -> its block, expanded."""
    blocks = {}
    for what in ("tables", "figures"):
        for paper, name in made(config, what):
            spec = named(config["papers"][paper].get(what, {}), name, f"{what[:-1]} of {paper} in make")
            block = of_paper(config, spec, paper, name)
            if searches_of(config, paper, spec, block):
                continue
            blocks[what, paper, name] = block
            place = f"{what[:-1]} {name} of {paper}"
            if spec["kind"] == "search":
                check_search(place, cells_of(config, spec, []))
            if "table" in spec:
                continue
            if "claims" not in spec and not block["datasets"]:
                wanted = f"name some in sets.{spec.get('sets')}"
                raise BadInput(f"{place} has no data set; {wanted}, or leave it out of make")
            if block["kind"] not in WITHOUT_RUNS and not block["runs"]:
                wanted = f"name methods of it in protocols.{spec['protocol']}.methods"
                if "only" in spec and not block["claims"]:
                    wanted = f"name in sets.{spec['only']} data sets that its claims are about"
                raise BadInput(f"{place} has no run; {wanted}, or leave it out of make")
    if not blocks:
        raise BadInput("make asks for no table and no figure")
    return with_tables(blocks)


def of_paper(config: dict, spec: dict, paper: str, name: str) -> dict:
    """The expanded block of a table or figure, with what its paper says of all of them."""
    about = config["papers"][paper]
    shared = {key: about[key] for key in OF_A_PAPER & about.keys()}
    return {**expand(config, spec), "paper": paper, "name": name, **shared}


def with_tables(everything: dict[tuple[str, str, str], dict]) -> dict[tuple[str, str, str], dict]:
    """The blocks without figures of tables that are not made. everything: what `shown` returns."""
    return {
        (what, paper, name): block
        for (what, paper, name), block in everything.items()
        if "table" not in block or ("tables", paper, block["table"]) in everything
    }


def searches_of(config: dict, paper: str, spec: dict, block: dict) -> list[tuple[str, str, str]]:
    """(search, data set, method) for which a block waits: what was chosen is not in the configuration yet."""
    one = {**block, "seeds": block["seeds"][:1], "original": {}}
    return unique(unsearched(config, spec, config["papers"][paper]["tables"], points(one)))


def waiting(config: dict) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """(paper, table) -> the (search, data set, method) it waits for, of the tables this scale would make."""
    found = {}
    for paper, name in made(config, "tables"):
        spec = config["papers"][paper]["tables"][name]
        if "searched" in spec and (searches := searches_of(config, paper, spec, expand(config, spec))):
            found[paper, name] = searches
    return found


def all_points(config: dict) -> list[Point]:
    """Every run of this scale once, with the runs that they start from."""
    taken = unique(point for block in shown(config).values() for point in points(block))
    return unique([*taken, *(start for point in taken for start in starts_of(config, point))])


def all_datasets(config: dict) -> list[str]:
    """Every data set of this scale, including those without runs, and the parts of joined ones."""
    named_in_blocks = [row["dataset"] for block in shown(config).values() for row in block["datasets"]]
    taken = unique([*named_in_blocks, *(point.dataset for point in all_points(config))])
    return unique([*taken, *(part for dataset in taken for part in parts_of(config, dataset))])


def classes_asked(everything: dict[tuple[str, str, str], dict], dataset: str) -> list[str]:
    """The classes of a data set that tables name in a score, as `f1/class:NAME`, and figures in `classes`.

    everything: what `shown` returns.
    """
    scores, drawn = set(), set()
    for block in everything.values():
        if dataset in [row["dataset"] for row in block["datasets"]]:
            drawn |= {*block.get("classes", [])}
            scores |= {*block.get("metrics", []), block.get("winner"), block.get("choose", block).get("by")}
        claims = block.get("claims", [])
        scores |= {claim.get("metric") for claim in claims if dataset in claim["datasets"]}
    parts = [(score or "").partition("/class:") for score in scores]
    return sorted({name for _, asks, name in parts if asks} | drawn)


def figure_spec(config: dict, paper: str, figure: str) -> dict:
    """The block of a figure; raises BadInput if the paper has none of that name."""
    return named(config["papers"][paper].get("figures", {}), figure, f"figure of {paper} in make")


def made(config: dict, what: str) -> list[tuple[str, str]]:
    """(paper, name) of each table or figure that this scale makes: those that it lists, otherwise all."""
    chosen = []
    for paper, limits in config["make"].items():
        everything = named(config["papers"], paper, "paper").get(what, {})
        chosen += [(paper, name) for name in limits.get(what, everything)]
    return chosen


def datasets_of(config: dict, spec: dict) -> list[str]:
    """The data sets of a table, figure or claim: listed one by one, or a set that the scale defines."""
    if "datasets" in spec:
        return spec["datasets"]
    return named(config["sets"], spec["sets"], "set of data sets")


def methods_of(config: dict, spec: dict) -> list[str]:
    """The methods of a block that this scale runs, in the order of the block.

    The protocol's `methods` may name the block's `prompt` as it is, or with changes as `prompt@keep=true`;
    `lpt` there allows every point of it that the block takes, as `lpt@pool=5`.
    """
    methods, limit = spec.get("methods", []), config["protocols"][spec["protocol"]].get("methods")
    if limit is None:
        return methods
    allowed = [
        entry if method in (entry, parse(entry)[0]) else method
        for method in methods
        for entry in limit
        if allows(entry, method)
    ]
    return unique(allowed)


def allows(entry: str, method: str) -> bool:
    """Whether an entry of a protocol's `methods` names the method of a block."""
    return method in (entry, parse(entry)[0]) or entry == parse(method)[0]


def limits(config: dict) -> dict[str, tuple[dict[str, list[str]], list[str]]]:
    """By protocol: methods that its `methods` leave out, with their blocks; entries that no block names."""
    named_by: dict[str, dict[str, list[str]]] = {}
    for what in ("tables", "figures"):
        for paper, name in made(config, what):
            spec = config["papers"][paper][what][name]
            pairs = [(claim["method"], claim["than"]) for claim in spec.get("claims", {}).values()]
            for method in unique([*spec.get("methods", []), *(method for pair in pairs for method in pair)]):
                named_by.setdefault(spec["protocol"], {}).setdefault(method, []).append(name)
    found = {}
    for protocol, methods in named_by.items():
        entries = config["protocols"][protocol].get("methods") or list(methods)
        out = {m: names for m, names in methods.items() if not any(allows(entry, m) for entry in entries)}
        idle = [entry for entry in entries if not any(allows(entry, m) for m in methods)]
        found[protocol] = (out, idle)
    return found
