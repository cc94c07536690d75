"""What is to be run: points and their settings.

Standard library only, like `blocks` above it, which says what points each table and figure takes.

A run is a point `protocol/backbone/dataset/method/seed`. `name@key=value,key=value` is a point of a
sweep over a method's settings or a data set's cut. Values are read as JSON, else as a word. Names become
folders, so a value is plain: letters, digits and . _ + -.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from math import inf

from tailprompt.errors import BadInput, known, named

DATA_KEYS = (
    "template",
    "template_as_released",
    "max_length",
    "verbalizer",
    "form",
)  # of a data set's row, seen by training
# the least of each, in the order of a name
CUTS = {"shots": 1, "total": 1, "imbalance": 1, "train": 1, "dev": 1, "test": 1, "sample": 0}
WAYS = {"shots", "total", "imbalance", "train"}  # to cut the training rows, of which a cut takes one
DEFAULTS = {"default", "default_text", "default_image"}  # rows below all others, no methods
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
FORMS = {  # of the texts that a loader reads, where those of others may be any
    **dict.fromkeys(("msra", "next_sentence_pair"), "spc"),
    **dict.fromkeys(("race", "c3", "next_sentence_choice", "unified_choice"), "mcc"),
}
COME = {"spc": "in pairs", "mcc": "with options"}
GOES_ON = {  # tuner of images -> tuners whose weights it can begin from
    "full": {"full", "frozen"},
    "frozen": {"frozen"},
    "prompts": {"prompts"},
    "prompts_shallow": {"prompts_shallow"},
    "group_prompts": {"prompts", "group_prompts"},
}
CHANGE = re.compile(r"([A-Za-z_]+)=([A-Za-z0-9._+-]+)")
LONGEST = 200  # characters of a name: file systems take 255, and endings follow


@dataclass(frozen=True, order=True)
class Point:
    """One run."""

    protocol: str
    backbone: str
    dataset: str
    method: str
    seed: int

    @property
    def path(self) -> str:
        """The run's folder below `results/<scale>/runs`."""
        return f"{self.protocol}/{self.backbone}/{self.dataset}/{self.method}/{self.seed}"

    @classmethod
    def at(cls, path: str) -> Point:
        """The point whose `path` this is."""
        *words, seed = path.split("/")
        return cls(*words, int(seed))


def parse(name: str) -> tuple[str, dict]:
    """Split `name@key=value,...` into the name and its changes."""
    base, at, changes = name.partition("@")
    pairs = changes.split(",") if at else []
    wrong = [pair for pair in pairs if not CHANGE.fullmatch(pair)]
    if wrong:
        raise BadInput(
            f"{name!r}: after @ come key=value pairs separated by commas, values of letters, digits, . _ + "
            f"and -, not {wrong[0]!r}; other values belong in a row of their own"
        )
    if len(name) > LONGEST:
        raise BadInput(f"'{name}' is longer than {LONGEST} characters; shorter is a row of its own")
    found = {key: word(value) for key, _, value in (pair.partition("=") for pair in pairs)}
    if len(found) < len(pairs):
        raise BadInput(f"'{name}' gives a key twice")
    return base, found


def word(value: str):
    """JSON if it is JSON, else the text itself."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def vary(method: str, key: str, value) -> str:
    """`method` with one more change after its @."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{method}{',' if '@' in method else '@'}{key}={text}"


def dataset_row(config: dict, dataset: str) -> dict:
    """A data set's row with its cut (`shots`, `total`, `imbalance`, `train`, `dev`, `test`, `sample`)."""
    base, cut = parse(dataset)
    row = named(config["datasets"], base, "data set")
    for key, value in cut.items():
        least, kinds = named(CUTS, key, f"cut of '{base}',"), (int, float) if key == "imbalance" else (int,)
        if type(value) not in kinds or not least <= value < inf:
            of = "a number" if key == "imbalance" else "a whole number"
            raise BadInput(f"'{dataset}': {key} must be {of} from {least}, not {json.dumps(value)}")
    if cut and len(WAYS & cut.keys()) > 1 or cut.keys() == {"sample"}:
        raise BadInput(
            f"'{dataset}': a cut takes one of {known(WAYS)} at most, dev and test with it or alone, "
            "and sample beside any"
        )
    ordered = [(key, cut[key]) for key in CUTS if key in cut]
    plain = ",".join(f"{key}={int(value) if value == int(value) else value}" for key, value in ordered)
    if cut and dataset != f"{base}@{plain}":
        raise BadInput(f"'{dataset}' is written '{base}@{plain}', so that one cut has one name")
    return {"title": base, **row, **corpus_path(config, row), "name": base, "cut": cut}


def corpus_path(config: dict, row: dict) -> dict:
    """Where the corpus lies that a data set is made from, if it is made from one that the scale names."""
    path = (config.get("corpora") or {}).get(row.get("corpus"))
    return {"path": path} if path else {}


def backbone_row(config: dict, name: str) -> dict:
    """What loading a backbone needs of its row; one with a `recipe` lies where this scale makes it."""
    row = named(config["backbones"], name, "backbone")
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("megabytes", "note", "settings", "recipe", "title", "cards")
    }
    return {**kept, "path": made_in(config, row["recipe"])} if "recipe" in row else kept


def cards_of(config: dict, backbone: str) -> int:
    """Cards of a job with a backbone; where fewer are there, all of those."""
    return named(config["backbones"], backbone, "backbone").get("cards", 1)


def made_in(config: dict, recipe: str) -> str:
    """The folder of a backbone that this scale makes."""
    return f"results/{config['scale']}/pretraining/{recipe}"


def recipe_row(config: dict, recipe: str) -> dict:
    """A recipe of `pretraining`, without what only its card says."""
    row = named(config["pretraining"], recipe, "recipe of pretraining")
    return {key: value for key, value in row.items() if key != "card"}


def backbone_of(config: dict, protocol: str, dataset: str, method: str | None = None) -> str:
    """The protocol's backbone for the language of the data set.

    For a method with `backbone: lm` it is that of `en-lm` where the language is en.
    """
    language = dataset_row(config, dataset)["language"]
    if method is not None:
        variant = named(config["methods"], parse(method)[0], "method").get("backbone")
        language = f"{language}-{variant}" if variant else language
    backbones = config["protocols"][protocol]["backbones"]
    if language not in backbones:
        raise BadInput(
            f"protocols.{protocol}.backbones has none for '{language}', the language of data set "
            f"'{dataset}'; known: {known(backbones)}"
        )
    return backbones[language]


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


def kind_of(row: dict) -> str:
    """What a data set's examples are: text, or image."""
    return "image" if row["language"] == "image" else "text"


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


def form_of(row: dict) -> str:
    """What a text of a data set's row is: ssc (single), spc (pair) or mcc (with options), as patterns say.

    Raises BadInput where its form says otherwise than its columns or its loader.
    """
    columns = columns_of(row)
    pair = "spc" if "pair" in columns else FORMS.get(row.get("loader"))
    found = "mcc" if "choices" in columns else pair
    stated = row.get("form", found or "ssc")
    if found and stated != found:
        raise BadInput(
            f"data set '{row['name']}': its texts come {COME[found]}, so its form is {found}, not {stated}; "
            "correct form in its row, or leave it out"
        )
    if stated == "spc" and not found and is_table(row):
        raise BadInput(
            f"data set '{row['name']}': form spc is of pairs; name the column: columns: {{pair: ...}}"
        )
    return stated


def columns_of(row: dict) -> set[str]:
    """What a data set's row takes from columns of its files, beside text and label."""
    files = [entry for entry in row.get("files", {}).values() if isinstance(entry, dict)]
    return {key for part in (row, *files) for key in part.get("columns", {})}


def is_table(row: dict) -> bool:
    """Whether a data set is read from tables, which have the columns that its row names and no others."""
    return row.get("loader", "table") == "table"


def start_of(config: dict, point: Point) -> Point | None:
    """The run whose weights this one begins from; coordinates it does not name are its own."""
    start = starting(config, point)
    return Point(**{**asdict(point), **start}) if start and "folder" not in start else None


def starting(config: dict, point: Point) -> dict | None:
    """Where a run begins: the `start` of its method, or on a data set for test alone the run it tests.

    `prompts` in it becomes the unlabelled data set of the language for this form, or for all in one.
    """
    row = named(config["methods"], parse(point.method)[0], "method")
    dataset = dataset_row(config, point.dataset)
    if "trained_on" in dataset:
        return {"dataset": dataset["trained_on"]}
    start = {**config["methods"]["default"], **row}.get("start")
    if not start or "prompts" not in start:
        return start
    language = dataset["language"]
    prompts = config["languages"].get(language, {}).get("prompts", {})
    form = form_of(dataset) if start["prompts"] == "own" else start["prompts"]
    found = named(prompts, form, f"form of prompts in languages.{language}")
    return {"dataset": found, **{key: value for key, value in start.items() if key != "prompts"}}


def starts_of(config: dict, point: Point) -> list[Point]:
    """The runs that a point builds on, the nearest first; raises BadInput where they come round to it."""
    chain = [point]
    while start := start_of(config, chain[-1]):
        if start in chain:
            raise BadInput(f"method '{chain[-1].method}' starts from {start.path}, which builds on it")
        chain.append(start)
    return chain[1:]


def check_start(config: dict, point: Point) -> None:
    """Raise BadInput where a run cannot go on from the weights that its start keeps."""
    start = start_of(config, point)
    if not start:
        return
    ours, theirs = settings(config, point), settings(config, start)
    place = f"method '{point.method}' starts from {start.path}, which"
    if start.backbone != point.backbone:
        raise BadInput(f"{place} has another backbone than {point.backbone}")
    if loaded(ours) != loaded(theirs):
        raise BadInput(f"{place} has another head; head, predictor, norm and tied decide what is loaded")
    if ours["input"] == "pixels" and theirs["tuner"] not in GOES_ON[ours["tuner"]]:
        going = known(GOES_ON[ours["tuner"]])
        raise BadInput(f"{place} has the tuner {theirs['tuner']}; {ours['tuner']} goes on from {going}")
    if any(ours.get(key) != theirs.get(key) for key in ("length", "soft_length")):
        raise BadInput(f"{place} has prompts of another length")
    if ours.get("soft_scale") != theirs.get("soft_scale"):
        raise BadInput(f"{place} has no soft prompt of this scale; tuner and soft_scale must be alike")
    chain = [start, *starts_of(config, start)]
    if any(settings(config, each)["tuner"] == "full" for each in chain) and not theirs["keep"]:
        raise BadInput(f"{place} keeps its head only; {keeping(start.method)}")


def keeping(method: str) -> str:
    """Where to say that the runs of a method keep all their weights."""
    return f"set keep: true in the scale's file, methods: {{{parse(method)[0]}: {{keep: true}}}}"


def loaded(settings: dict) -> tuple:
    """What must be alike for one head to be loaded into another."""
    rest = (settings["tied"],) if settings["head"] == "verbalizer" else (settings["predictor"],)
    return (settings["head"], *rest, settings.get("norm", "none") == "none")


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
