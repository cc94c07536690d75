"""What is to be run: the settings of a point, and what the tables and figures of a scale ask of it.

Standard library only, as are `points`, `rows` and `starts` below it and `blocks` above it, which says what
points each table and figure takes.
"""

from __future__ import annotations

from tailprompt.errors import BadInput, known, named
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import backbone_of, dataset_row, form_of, kind_of
from tailprompt.plan.starts import starting

DATA_KEYS = (
    "template",
    "template_as_released",
    "max_length",
    "verbalizer",
    "form",
)  # of a data set's row, seen by training
UNVARIED = {"title", "start", "backbone"}  # of a method's row, never after its @
ALONE = {  # settings that only runs with this value of another read: others are not told them
    "pattern": ("input", "formatted"),
    "form": ("input", "formatted"),
    "decoding": ("input", "formatted"),
    "sentinel_loss": ("input", "formatted"),
    "soft_length": ("tuner", "soft_prompt"),
    "soft_init": ("tuner", "soft_prompt"),
    "soft_scale": ("tuner", "soft_prompt"),
}


def settings(config: dict, point: Point) -> dict:
    """All that training a point needs to know, flat; later wins.

    default <- data set <- protocol <- backbone <- method <- protocol's data set <- its method there <- @
    """
    protocol = named(config["protocols"], point.protocol, "protocol")
    dataset = dataset_row(config, point.dataset)
    base, changes = parse(point.method)
    default = {**config["methods"]["default"], **config["methods"][f"default_{kind_of(dataset)}"]}
    method = named(config["methods"], base, "method")
    given = {*default, *UNVARIED, *protocol["settings"], *(DATA_KEYS if kind_of(dataset) == "text" else ())}
    if foreign := method.keys() - given:
        raise BadInput(
            f"method '{base}' sets {known(foreign)}, which no run on {kind_of(dataset)} has; "
            f"data set '{dataset['name']}' is {kind_of(dataset)}"
        )
    here = protocol.get("datasets", {}).get(dataset["name"], {})
    there = protocol.get("cells", {}).get(dataset["name"], {}).get(base, {})
    merged = {
        **default,
        **data_settings(config, dataset),
        **protocol["settings"],
        **named(config["backbones"], point.backbone, "backbone").get("settings", {}),
        **method,
        **here,
        **there,
    }
    varied = merged.keys() - UNVARIED
    unknown = changes.keys() - varied
    if unknown:
        raise BadInput(f"'{point.method}': no setting {known(unknown)}; known: {known(varied)}")
    merged = only_read({**merged, **changes}, changes, point.method)
    merged["language"] = dataset["language"]
    merged["start"] = starting(config, point)
    asked = {"features": features_asked(config, point), "vectors": vectors_asked(config, point)}
    return merged | {key: value for key, value in asked.items() if value}


def only_read(settings: dict, changes: dict, method: str) -> dict:
    """The settings without what no run with these others reads; raises BadInput where `changes` sets that."""
    unread = {key for key, (other, value) in ALONE.items() if settings.get(other) != value}
    if idle := sorted(unread & changes.keys()):
        raise BadInput(f"'{method}': {idle[0]} is read only where {' is '.join(ALONE[idle[0]])}")
    return {key: value for key, value in settings.items() if key not in unread | {"title", "backbone"}}


def data_settings(config: dict, row: dict) -> dict:
    """What training is told by a data set's row; a template or length it leaves out is its language's."""
    if kind_of(row) == "image":
        return {}
    usual = config["languages"].get(row["language"], {})
    form = form_of(row)
    template = "template_with_pair" if form == "spc" else "template"
    stated = {key: row[key] for key in DATA_KEYS if key in row}
    made = {"template": usual.get(template), "max_length": usual.get("max_length"), "form": form, **stated}
    missing = [key for key, value in made.items() if value is None and key != "verbalizer"]
    if missing:
        raise BadInput(
            f"data set '{row['name']}' has no {known(missing)}, and 'languages' none for '{row['language']}' "
            f"(it has {known(config['languages'])}); state it in the data set's row"
        )
    return made


def features_asked(config: dict, point: Point) -> list[str]:
    """Classes whose feature vectors a figure wants from this run."""
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
    """A block with `vectors: true`, or those of its claims that are about features."""
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


def figure_spec(config: dict, paper: str, figure: str) -> dict:
    """A figure's block; a scale file may lay other `datasets`, `classes` or `methods` over the paper's."""
    return named(config["papers"][paper].get("figures", {}), figure, f"figure of {paper} in make")


def made(config: dict, what: str) -> list[tuple[str, str]]:
    """(paper, name) of each table or figure that this scale makes: those it lists, else all."""
    chosen = []
    for paper, limits in config["make"].items():
        everything = named(config["papers"], paper, "paper").get(what, {})
        chosen += [(paper, name) for name in limits.get(what, everything)]
    return chosen


def datasets_of(config: dict, spec: dict) -> list[str]:
    """Data sets of a table, figure or claim: named one by one, or a set that the scale defines."""
    if "datasets" in spec:
        return spec["datasets"]
    return named(config["sets"], spec["sets"], "set of data sets")


def methods_of(config: dict, spec: dict) -> list[str]:
    """Methods of a block that this scale runs, in the block's order.

    Of the protocol's `methods`, `prompt@keep=true` stands for the block's `prompt` as `prompt` itself does.
    """
    methods, limit = spec.get("methods", []), config["protocols"][spec["protocol"]].get("methods")
    if limit is None:
        return methods
    found = [entry for method in methods for entry in limit if method in (entry, parse(entry)[0])]
    return list(dict.fromkeys(found))
