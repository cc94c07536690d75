"""The configuration of a first, cheap round on a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tailprompt.data.looked import Looked
from tailprompt.errors import BadInput, brief, known
from tailprompt.files import whole
from tailprompt.machine.cpus import CPUS
from tailprompt.plan import config
from tailprompt.plan.first_budget import (
    BATCH,
    OF_IMAGES,
    SECONDS,
    cheaper,
    firsts,
    lengths,
    longest,
    schedule,
    steps,
    unknown,
    unspoken,
)
from tailprompt.plan.first_rows import cut_of, row_of, sets_of, taken
from tailprompt.plan.hours import parameters, patches
from tailprompt.plan.runnable import shape_of
from tailprompt.plan.schemas import read
from tailprompt.plan.settings import resolved

PAPERS = ("try", "try-images")
BACKBONES = ("bert-mini", "vit-mini")  # which ship
MODELS = ("mine", "mine-images")  # the papers and configurations of a whole comparison
ENOUGH = 50  # dev rows, from which they choose the step; fewer would choose by chance, so the last is kept
TEXTS = "lr: 5.0e-4, precision: float32, bucket: 8"
IMAGES = (
    "lr: 3.0e-3, optimizer: adamw, weight_decay: 1.0e-4, adam_eps: 1.0e-8, clip: 1.0, schedule: cosine, "
    "mixup: 0.0, precision: float32, bucket: 1"
)
CONFIG = """\
# Written by `tailprompt try`; yours to edit. What each line does: {model}. Then again:
#   snakemake --cores {cores} --configfile {file} && tailprompt answer --configfile {file}
scale: {scale}                      # results go below results/{scale}
make: {{{paper}: {{{tables}}}}}
data_dir: null
device: auto
threads: 1                        # of a training job; {cores} run at once
slots: 1

datasets:
  {name}:
{row}

# {taken}
sets: {{mine: ["{dataset}"], curve: [{curve}]}}

protocols:
  mine:
    seeds: [1, 2, 3]
    backbones: {{{language}: {backbone}}}    # the small one that ships; {larger} learns more and takes longer
    # epochs: {steps} steps of {batch} rows in the {train:,} of training. More steps: more epochs, and patience, with which
    # training stops after so many epochs without a better dev score. select: {chosen}
    settings: {{{settings}, batch: {batch}, {schedule}, select: {select}}}

# Any method of {model} joins by its name, as {others}.
# winner: the metric that decides. {why}
papers:
  {paper}:
    tables:
      first: {{winner: {winner}, metrics: &metrics [{metrics}], methods: &methods [{methods}]}}
      curve: {{metrics: *metrics, methods: [{quick}]}}    # of those that take seconds; *methods takes all
{keep}"""  # noqa: E501
KEEP = """\
# A frozen body makes steps cheap, so there are more{frozen}.
# keep: all that was trained is kept, so that the winner can predict new rows.
methods:
{rows}
"""
WHOLE = {"augment": "none", "flip": "false"}  # so that a frozen body computes an image once
OWN = {  # settings of single methods; of texts a rate, where that of all is for a tuned backbone
    "text": {"linear": {"lr": "3.0e-3"}},
    "image": {"linear": WHOLE, "linear-balanced": WHOLE},
}
FROZEN = {"text": ", and its head learns at a higher rate", "image": ", of whole images, which it reads once"}
WORDS = "verbalizer"  # the head that reads the names of classes
USUAL = {"quotes": True, "encoding": "utf-8-sig"}  # where a row says nothing
SHARED = "config/backbones.yaml"
UNKNOWN = 0.05  # share of a text's tokens, from which it is said
ALIKE = 1.5  # times the rows of the smallest class, up to which the largest makes no tail
BINARY = "f1/rarest, average_precision/rarest, balanced_accuracy/all, accuracy/all"
TAIL = "f1/all, f1/head, f1/tail, f1/many, f1/medium, f1/few, accuracy/all, balanced_accuracy/all"
METRICS = {  # of which the first decides, and why
    "balanced": ("accuracy/all, f1/all", "All classes are about as large."),
    "binary": (BINARY, "Of two classes the rare one is what is looked for."),
    "tail": (TAIL, "Each class counts alike, the rare ones too."),
}


def slug(path: Path) -> str:
    """The name of a file as that of a data set and scale: small letters, digits and hyphens."""
    stem = path.name.split(".")[0] if path.is_file() else path.resolve().name
    return "my-" + (re.sub("[^a-z0-9]+", "-", stem.lower()).strip("-")[:60] or "data")


def written(looked: Looked, file: str, shared: Mapping, own: Mapping[str, Mapping[str, str]]) -> str:
    """The text of the configuration. shared: the configuration of config/mine.yaml, whose rows it builds on.

    own: settings of single methods.
    """
    images, name = looked.language == "image", slug(looked.path)
    paper, model = PAPERS[images], MODELS[images]
    methods = shared["papers"][paper]["tables"]["first"]["methods"]
    if not images and unspoken(looked.names, shared["backbones"][BACKBONES[0]]):
        methods = [name for name in methods if shared["methods"][name].get("head") != WORDS]
    cost, (metrics, why) = Cost.of(looked, shared), METRICS[kind_of(looked)]
    return CONFIG.format(
        model=f"config/{model}.yaml",
        cores=CPUS,
        file=file,
        scale=name,
        paper=paper,
        name=name,
        row=row_of(looked, cost.longest, cost.cut),
        language=looked.language,
        backbone=BACKBONES[images],
        larger=shared["protocols"]["across"]["backbones"][looked.language],
        methods=", ".join(methods),
        quick=", ".join(shared["papers"][paper]["tables"]["curve"]["methods"]),
        others=", ".join(also(shared["papers"][model]["tables"]["table2"]["methods"], methods)),
        settings=IMAGES if images else TEXTS,
        keep=KEEP.format(
            frozen=FROZEN["image" if images else "text"],
            rows="\n".join(f"  {name}: {flow(told)}" for name, told in own.items()),
        )
        if own
        else "",
        winner=metrics.partition(",")[0],
        metrics=metrics,
        why=why,
        **sets_of(looked, name),
        **budget(looked, cost),
    )


def unread(looked: Looked) -> list[str]:
    """Sentences on tokens of the texts, and on classes, that the backbone that ships does not know."""
    if looked.language == "image":
        return []
    backbone, said = read(Path(SHARED))["backbones"][BACKBONES[0]], []
    if (share := unknown(looked.texts, backbone)) >= UNKNOWN:
        said = [f"{share:.0%} of the tokens are unknown to {BACKBONES[0]}, which reads all of them alike"]
    if names := unspoken(looked.names, backbone):
        said += [
            f"methods that read the names of classes are left out: {BACKBONES[0]} has no tokens of its own "
            f"for {known(map(brief, names))}; a verbalizer in the row of the data set gives each class words"
        ]
    return said


def also(methods: list[str], taken: list[str]) -> list[str]:
    """Some methods that a round does not take."""
    return [method for method in methods if method not in taken][:3]


@dataclass(frozen=True)
class Cost:
    """What a step costs: parameters of the backbone, and tokens of a row (a mean) as it is read."""

    parameters: float
    tokens: float
    longest: int = 0  # tokens that texts are cut to
    cut: float = 0.0  # share of the texts that are longer

    @classmethod
    def of(cls, looked: Looked, shared: Mapping) -> Cost:
        """That of the backbone that ships. shared: as in `written`."""
        backbone = shared["backbones"][BACKBONES[looked.language == "image"]]
        numbers = parameters(backbone, Path())
        if looked.language == "image":
            return cls(numbers, patches(backbone, shape_of(shared, backbone, ".")))
        usual = shared["languages"][looked.language]
        template = usual["template_with_pair" if "pair" in looked.columns else "template"]
        tokens = lengths(looked.texts, backbone, template)
        most = longest(tokens, numbers)
        return cls(numbers, np.minimum(tokens, most).mean(), most, (tokens > most).mean())


def budget(looked: Looked, cost: Cost) -> dict[str, str | int]:
    """How long methods whose backbone learns are trained, whatever the number of rows."""
    rows = {split: cut_of(looked).get(split, sum(looked.splits[split])) for split in ("train", "dev")}
    number, enough = steps(3, cost.parameters, cost.tokens, allowed(looked)), rows["dev"] >= ENOUGH
    chosen = f"the dev score, or last; under {ENOUGH} dev rows the best step is one by chance"
    return {
        "steps": number,
        "batch": BATCH,
        "train": rows["train"],
        "schedule": flow(schedule(number, rows["train"])).strip("{}"),
        "select": "f1" if enough else "last",
        "chosen": chosen,
    }


def allowed(looked: Looked) -> float:
    """The seconds of a run, by the rule."""
    return OF_IMAGES if looked.language == "image" else SECONDS


def kind_of(looked: Looked) -> str:
    """Which of METRICS suits the classes, by the rows of each in training."""
    counts = [n for n in looked.splits["train"] if n]
    if max(counts) <= ALIKE * min(counts):
        return "balanced"
    return "binary" if len(counts) == 2 else "tail"


def flow(settings: Mapping[str, str]) -> str:
    """Settings on one line of YAML."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def check_same(path: Path, file: Path, asked: Mapping[str, str], stated: Mapping) -> None:
    """Raise BadInput where the configuration in `file` is of other data than `path`, or of other columns.

    stated: how a person says that the file is read, which it then must say too.
    """
    datasets = read(file).get("datasets")
    rows = [row for row in datasets.values() if isinstance(row, dict)] if isinstance(datasets, dict) else []
    data = {row["path" if "path" in row else "root"]: row for row in rows if {"path", "root"} & {*row}}
    ours = {place: row for place, row in data.items() if Path(place).resolve() == path.resolve()}
    anew = "--anew writes it anew, and --configfile names another"
    if data and not ours:
        raise BadInput(f"{file} is there and is of {known(data)}, not of {path}; {anew}")
    for key, name in asked.items():
        taken = {row.get("columns", {}).get(key, key) for row in ours.values()}
        if taken and name not in taken:
            raise BadInput(
                f"{file} is there and takes the column {known(taken)} as {key}, not {name}; {anew}"
            )
    for key, told in stated.items():
        if any(row.get(key, USUAL.get(key)) != told for row in ours.values()):
            raise BadInput(f"{file} is there and does not say {key}: {json.dumps(told)}; {anew}")


def at_first(looked: Looked) -> dict[str, dict[str, str]]:
    """The settings of single methods from which their cost follows."""
    return OWN["image" if looked.language == "image" else "text"]


def own_settings(looked: Looked, scale: dict, cost: Cost) -> dict[str, dict[str, str]]:
    """The settings of single methods: steps of cheaper ones, and weights that are kept only if told to.

    Heads that are fitted choose among settings on dev, however few its rows are.
    """
    train = cut_of(looked).get("train", sum(looked.splits["train"]))
    own = {method: {**told} for method, told in at_first(looked).items()}
    for method, told in cheaper(scale, cost.parameters, cost.tokens, train, allowed(looked)).items():
        own[method] = own.get(method, {}) | told
    for method, point in firsts(scale).items():
        told = resolved(scale, point)
        if "keep" in told.settings and told.run.tuner.name == "full":
            own[method] = own.get(method, {}) | {"keep": "true"}
        if told.run.training is None and told.settings["select"] == "last":
            own[method] = {"select": "f1"}
    return own


def settle(looked: Looked, file: Path, *, anew: bool, asked: Mapping[str, str] = MappingProxyType({})) -> str:
    """Write the configuration unless it is there, and say so.

    It is written twice: what single methods are to be told, the first form tells. asked: columns that
    a person names. Raises BadInput where one is there that is of another file, or takes other columns.
    """
    there = file.is_file()
    if there and not anew:
        check_same(looked.path, file, asked, looked.stated)
        return f"config: {file} is there and is used as it is; --anew writes it anew"
    shared = config.load(["config/mine.yaml"])
    with whole(file) as temporary:
        temporary.write_text(written(looked, str(file), shared, at_first(looked)), "utf-8")
        own = own_settings(looked, config.load([temporary]), Cost.of(looked, shared))
        temporary.write_text(written(looked, str(file), shared, own), "utf-8")
    done = "written anew" if there else "written"
    said = f"config: {file} {done}; to change the round, edit it and run the same command again"
    return "\n".join([*taken(looked), said])
