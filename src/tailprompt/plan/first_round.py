"""The configuration of a first, cheap round on a file, and how long it and its alternatives take."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import MappingProxyType

import pandas as pd

from tailprompt.cpus import CPUS
from tailprompt.data.looked import Looked
from tailprompt.errors import BadInput, known
from tailprompt.files import whole
from tailprompt.plan import blocks, config
from tailprompt.plan.forecast import seconds_left
from tailprompt.plan.hours import by_rule, on_cpu
from tailprompt.plan.points import Point
from tailprompt.plan.schemas import read
from tailprompt.plan.settings import settings

PAPERS = ("try", "try-images")
MOST = {"train": 1500, "dev": 300, "test": 1000}  # rows of a first round
LONGEST = 48  # tokens
SHARES = {"train": 0.7, "dev": 0.1, "test": 0.2}
TEXTS = "{lr: 5.0e-4, epochs: 2.5, warmup: 0.5, precision: float32, bucket: 8}"
IMAGES = (
    "{lr: 3.0e-3, optimizer: adamw, weight_decay: 1.0e-4, adam_eps: 1.0e-8, clip: 1.0, schedule: cosine, "
    "batch: 64, epochs: 6, warmup: 0.5, mixup: 0.0, precision: float32, bucket: 1}"
)
CONFIG = """\
# Written by `tailprompt try`; yours to edit. What each line does: {model}. Then again:
#   snakemake --cores {cores} --configfile {file} && tailprompt answer --configfile {file}
scale: {scale}                      # results go below results/{scale}
make: {{{paper}: {{}}}}
data_dir: null
device: auto
threads: 1                        # of a training job; {cores} run at once
slots: 1

datasets:
  {name}:
{row}

# A first round on part of the data, and on half of that for the learning curve. All of it: [{name}]
sets: {{mine: ["{dataset}"], curve: ["{half}", "{dataset}"]}}

protocols:
  mine:
    seeds: [1, 2, 3]
    backbones: {{{language}: {backbone}}}    # the small one that ships; {larger} learns more and takes longer
    methods: [{methods}]
    settings: {settings}

# The metric that decides: of two classes f1/rarest or average_precision/rarest, balanced: accuracy/all.
papers: {{{paper}: {{tables: {{first: {{winner: f1/all}}}}}}}}
{keep}"""
KEEP = """\
# Weights are kept, so that the winner can predict new rows; a head alone learns at a higher rate.
methods: {{{rows}}}
"""
RATES = {"linear": "{lr: 1.0e-2}"}  # of texts, where the rate of all is that of a tuned backbone


def slug(path: Path) -> str:
    """The name of a file as that of a data set and scale: small letters, digits and hyphens."""
    stem = path.name.split(".")[0] if path.is_file() else path.resolve().name
    return "my-" + (re.sub("[^a-z0-9]+", "-", stem.lower()).strip("-")[:60] or "data")


def written(looked: Looked, file: str, shared: Mapping, *, keep: list[str]) -> str:
    """The text of the configuration. shared: the configuration of config/mine.yaml, whose rows it builds on.

    keep: methods whose weights are kept.
    """
    images, name = looked.language == "image", slug(looked.path)
    paper = PAPERS[images]
    rows = {split: int(looked.rows * share) for split, share in SHARES.items()}
    cut = (
        {split: most for split, most in MOST.items() if rows[split] > most}
        if "split" not in looked.columns
        else MOST
    )
    train = min(rows["train"], MOST["train"])
    others = "".join(f",{split}={n}" for split, n in cut.items() if split != "train")
    rows_of = ({} if images else RATES) | {one: "{keep: true}" for one in keep}
    taken = name if not cut else f"{name}@" + ",".join(f"{split}={n}" for split, n in cut.items())
    return CONFIG.format(
        model="config/mine-images.yaml" if images else "config/mine.yaml",
        cores=CPUS,
        file=file,
        scale=name,
        paper=paper,
        name=name,
        row=row_of(looked),
        dataset=taken,
        half=f"{name}@train={max(1, train // 2)}{others}",
        language=looked.language,
        backbone="vit-mini" if images else "bert-mini",
        larger=shared["protocols"]["across"]["backbones"][looked.language],
        methods=", ".join(shared["papers"][paper]["tables"]["first"]["methods"]),
        settings=IMAGES if images else TEXTS,
        keep=KEEP.format(rows=", ".join(f"{name}: {told}" for name, told in rows_of.items()))
        if rows_of
        else "",
    )


def row_of(looked: Looked) -> str:
    """The row of the data set, a key a line."""
    place = quoted(str(looked.path))
    if looked.language == "image":
        lines = ["language: image", "loader: image_folder", f"root: {place}", "side: 64"]
    else:
        columns = ", ".join(f"{key}: {quoted(name)}" for key, name in looked.columns.items())
        lines = [f"path: {place}", f"columns: {{{columns}}}", f"language: {looked.language}"]
        lines += [
            f"max_length: {min(looked.length, LONGEST):<11} # tokens; most texts have up to {looked.length}"
        ]
    if looked.alone:
        lines.append(
            f"singletons: train         # {looked.alone} classes have one row; they stay in training"
        )
    return "\n".join(f"    {line}" for line in lines)


def quoted(text: str) -> str:
    """A string as YAML reads it in any place."""
    return "'" + text.replace("'", "''") + "'"


def check_same(path: Path, file: Path, asked: Mapping[str, str]) -> None:
    """Raise BadInput where the configuration in `file` is of other data than `path`, or of other columns."""
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


def keeping(scale: dict) -> list[str]:
    """The methods of a scale that keep their weights only if told to."""
    found = [
        point
        for point in blocks.all_points(scale)
        if "keep" in (told := settings(scale, point)) and told["tuner"] == "full"
    ]
    return blocks.unique(point.method.partition("@")[0] for point in found)


def told(scale: dict, root: Path = Path(".")) -> list[str]:
    """How long the round takes on this machine, by method, by the plan's rule of thumb."""
    points, cpu = blocks.all_points(scale), on_cpu(scale)
    left = seconds_left(scale, points, {}, root, cpu=cpu)
    by_method: dict[str, float] = {}
    for point in points:
        by_method[point.method] = by_method.get(point.method, 0) + left[point]
    at_once = max(1, min(CPUS, os.cpu_count() or 1)) if cpu else 1
    each = ", ".join(f"{name} {seconds / at_once / 60:.0f}" for name, seconds in by_method.items())
    total = sum(by_method.values()) / at_once / 60
    return [
        f"{len(points)} runs, about {total:.0f} minutes on {'the CPU' if cpu else 'the GPU'} by a rule of "
        "thumb (wrong by a factor of three either way at times)",
        f"minutes by method: {each}",
    ]


def elsewhere(scale: dict, runs: pd.DataFrame, root: Path = Path(".")) -> list[str]:
    """A sentence on the backbone that a full comparison would take, with its time scaled by what ran."""
    points = [
        Point("mine", run.backbone, run.dataset, run.run, run.seed) for run in runs[runs.there].itertuples()
    ]
    language = scale["datasets"][points[0].dataset.partition("@")[0]].get("language", "en")
    other = scale["protocols"]["across"]["backbones"].get(language)
    if other is None or other == points[0].backbone:
        return []
    took = median(runs[runs.there].record.map(lambda record: record["seconds"]))
    cpu = on_cpu(scale)
    times = median(
        by_rule(scale, replace(point, backbone=other), root, cpu=cpu) / by_rule(scale, point, root, cpu=cpu)
        for point in points
    )
    size = scale["backbones"][other].get("megabytes", 0)
    return [
        f"Another backbone was not tried. {other} (a download of {size:,} MB) would take about "
        f"{took * times / 60:.0f} minutes a run here, where a run took {took:.0f} s: "
        f"`backbones: {{{language}: {other}}}` in the config."
    ]


def settle(looked: Looked, file: Path, *, anew: bool, asked: Mapping[str, str] = MappingProxyType({})) -> str:
    """Write the configuration unless it is there, and say so.

    It is written twice: which methods keep weights only if told to, the first form tells. asked: columns that
    a person names. Raises BadInput where one is there that is of another file, or takes other columns.
    """
    there = file.is_file()
    if there and not anew:
        check_same(looked.path, file, asked)
        return f"config: {file} is there and is used as it is; --anew writes it anew"
    shared = config.load(["config/mine.yaml"])
    with whole(file) as temporary:
        text = written(looked, str(file), shared, keep=[])
        temporary.write_text(text, "utf-8")
        keep = keeping(config.load([temporary]))
        temporary.write_text(written(looked, str(file), shared, keep=keep), "utf-8")
    return f"config: {file} {'written anew' if there else 'written'}; edit it and run the same command again"
