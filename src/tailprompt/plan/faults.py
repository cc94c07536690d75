"""Which logs tell of a failure that stands: of a job of this configuration, and nothing has mended it since.

A log is of the past if it is older than a file that its job reads, or than the Snakemake that is at work,
which starts the job again; and if the job was asked something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan import blocks, standing
from tailprompt.plan.agreement import differing, tolerant
from tailprompt.plan.dependencies import sources
from tailprompt.plan.either import run_folder
from tailprompt.plan.held import LOCK, holder
from tailprompt.plan.jobs import data, recipes, runs, shown
from tailprompt.plan.made import read_back
from tailprompt.plan.points import Point
from tailprompt.plan.reasons import reason
from tailprompt.plan.rows import dataset_row, recipe_row, tested_by

LOGS = {  # kind of job -> the folder of its logs, where that has another name
    "images": "decode",
    "annotated": "annotate",
    "data": "prepare",
    "collected": "collect",
    "packed": "pack",
    "checkpoint": "pretrain",
    "tables": "tabulate",
    "figures": "draw",
}
Blocks = dict[tuple[str, str, str], dict]  # what `blocks.shown` returns


def at_work(results: Path) -> float:
    """Since when a Snakemake works in the results of a scale, by the clock of its files; 0 if none does."""
    return (results / LOCK).stat().st_mtime if holder(results) is not None else 0.0


def of_a_run(config: dict, point: Point, log: Path, wanted: Callable[[], dict], root: Path) -> bool:
    """Whether the log of a run is not of the past. wanted: what the run is asked."""
    return stands(config, log, point.path, flat(runs.to_train(config, point)), wanted, root)


def of_other_jobs(config: dict, everything: Blocks, root: Path) -> list[tuple[str, str]]:
    """(reason, log) of the jobs that failed, but for training."""
    found = []
    for job in planned(config, everything):
        kind = job.partition("/")[0]
        name = f"{LOGS.get(kind, kind)}{job.removeprefix(kind)}"
        log = root / f"results/{config['scale']}/logs/{name}.log"
        wanted = partial(asked_of, config, everything, job, root)
        if (why := reason(log)) and stands(config, log, job, read_by(config, everything, job), wanted, root):
            found.append((why, str(log)))
    return found


def stands(
    config: dict, log: Path, job: str, files: list[str], wanted: Callable[[], dict], root: Path
) -> bool:
    """Whether a log is as young as what its job reads and as the Snakemake at work, and of what is asked."""
    results = root / "results" / config["scale"]
    asked = results / f"asked/{job}.json"
    read = [file for file in (asked, *(root / file for file in files)) if file.exists()]
    if log.stat().st_mtime < max([at_work(results), *(file.stat().st_mtime for file in read)]):
        return False
    told = tolerant(asked)
    with suppress(BadInput):  # of a file that is not there, which keeps snakemake from starting
        return told is None or not differing(told, wanted())
    return True


def planned(config: dict, everything: Blocks) -> list[str]:
    """The jobs of a scale but for training, by the names under which they are asked.

    Without training those of tables and figures alone: the others are of what is not shown, or stands.
    """
    searches = [key for key, block in everything.items() if block["kind"] == "search"]
    chosen = [f"choices/{paper}/{name}" for _, paper, name in searches]
    last = [*chosen, *("/".join(key) for key in everything), "overview", "scores"]
    if not config.get("train", True):
        return last
    datasets = blocks.all_datasets(config)
    datasets = blocks.unique([*datasets, *(each for name in datasets for each in tested_by(config, name))])
    rows = [dataset_row(config, name) for name in datasets]
    backbones = blocks.unique(point.backbone for point in blocks.all_points(config))
    made = made_here(config, backbones)
    articles = [key for name in made for key in recipes.corpus_keys(recipe_row(config, name))]
    named = {
        "images": [row["name"] for row in rows if row["language"] == "image"],
        "annotated": [row["name"] for row in rows if row.get("annotator") == "model"],
        "data": datasets,
        "backbones": backbones,
        "collected": [key for key in articles if recipes.collected(config, key)],
        **dict.fromkeys(("vocabulary", "packed", "checkpoint", "card"), made),
    }
    jobs = [f"{kind}/{name}" for kind, names in named.items() for name in blocks.unique(names)]
    return [*jobs, *last]


def made_here(config: dict, backbones: Iterable[str]) -> list[str]:
    """The recipes of backbones and those whose corpora the scale names, with those that they start from."""
    found: list[str] = []
    own = [config["backbones"][name].get("recipe") for name in backbones]
    waiting = [*recipes.to_make(config), *filter(None, own)]
    while waiting:
        if (recipe := waiting.pop()) not in found:
            found.append(recipe)
            start = recipe_row(config, recipe).get("start")
            waiting += [start] if start and not recipes.shipped_start(config, recipe) else []
    return found


def read_by(config: dict, everything: Blocks, job: str) -> list[str]:
    """The files that a job reads, beside what it is asked."""
    kind, _, name = job.partition("/")
    if kind in standing.KINDS:
        return flat(standing.KINDS[kind].takes(config, name))
    if kind == "card":
        return [recipes.checkpoint(config, name)]
    if kind == "choices":
        return [f"results/{config['scale']}/tables/{name}.csv"]
    if kind in ("tables", "figures"):
        return read_for(config, everything[kind, *name.split("/")], kind)
    every = [read_for(config, block, what) for (what, *_), block in everything.items()]
    made = shown.made(everything, config["scale"]) if kind == "overview" else []
    return [*sources(f"tailprompt.{'score' if kind == 'scores' else kind}"), *sum(every, []), *made]


def read_for(config: dict, block: dict, what: str) -> list[str]:
    """The files that a table or figure is made of."""
    results = Path("results", config["scale"])
    predictions = shown.predictions(
        block, file=lambda point: str(run_folder(results, point) / "predictions.parquet")
    )
    reports = shown.reports(block, file=lambda name: data.report(config, name))
    others = {"reported": shown.reported(block), "beside": shown.drawn_from(block)}
    return [*predictions, *reports, *flat(others), *shown.code(block, stage=LOGS[what])]


def asked_of(config: dict, everything: Blocks, job: str, root: Path) -> dict:
    """What a job is asked now, as far as that is known without Snakemake."""
    kind, _, name = job.partition("/")
    if kind == "data":
        return standing.to_prepare(config, name, everything, root)
    if kind in standing.KINDS:
        return standing.wanted(config, kind, name, root)
    spec = everything.get((kind, *name.split("/")))
    return read_back({"spec": spec}) if spec else {}


def flat(files: dict[str, str | list[str]]) -> list[str]:
    """The files of a rule's named inputs."""
    return [one for each in files.values() for one in ([each] if isinstance(each, str) else each)]
