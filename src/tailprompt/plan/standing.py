"""Whether what jobs made is what is asked now, and the files that say what is asked.

The process that builds the DAG writes such a file if its content changed. Of outputs that are not what is
asked the file is newer, so that Snakemake makes them again, whatever it remembers; outputs that are stand.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tailprompt.files import write_json
from tailprompt.model.folder import RECORD
from tailprompt.plan import asked, blocks, bundled, dependencies, either, made
from tailprompt.plan.agreement import OUTPUTS, reported, tolerant, trained_on, without_times
from tailprompt.plan.digests import altered_by, digest_of
from tailprompt.plan.jobs import data, recipes
from tailprompt.plan.note import outputs_in
from tailprompt.plan.places import in_bundle, report_file
from tailprompt.plan.places import present as place_of
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows_asked import MADE, of_rows, rows_before, tells_of_rows, without_images
from tailprompt.plan.rows_read import rows_read
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import starts_of
from tailprompt.seals import as_written

SECOND = 10**9  # nanoseconds; some file systems keep whole seconds
PLANNED = time.time_ns()  # of this process
UNSAID = {"named": []}  # what the note of an older version does not say, and what it meant


@dataclass(frozen=True)
class Kind:
    """What a rule makes.

    asks: (config, name, root) -> what is asked of it. takes: (config, name) -> its input files.
    """

    asks: Callable[..., dict]
    takes: Callable[[dict, str], dict]


class Present(NamedTuple):
    """What is here, read once for all runs.

    weights: a backbone's name -> the digests of its weights. rows: a data set's name -> `rows_to_be`.
    """

    weights: Callable[[str], dict | None]
    rows: Callable[[str], dict[str, str] | None]


def present(config: dict, root: Path = Path(".")) -> Present:
    """What is here of the backbones and data sets of a scale."""
    weights = cache(lambda backbone: made.weights(config, backbone, root))
    return Present(weights, cache(lambda dataset: rows_to_be(config, dataset, root)))


def run_folder(config: dict, point: Point, here: Present, root: Path = Path(".")) -> Path:
    """The folder of a run: of one made here and one of a bundle, that which is what is asked now."""

    def wanted() -> dict:  # which reads weights, and is seldom needed
        return asked.asked(config, point, settings(config, point), here.weights(point.backbone), root)

    return either.run_folder(root / "results" / config["scale"], point, wanted, here.rows(point.dataset))


def waits_for_rows(config: dict, point: Point, here: Present, root: Path = Path(".")) -> list[str]:
    """The data sets of a run, and of those that it begins from, with other rows to be, or ones not known."""
    results = root / "results" / config["scale"]

    def others(run: Point) -> bool:
        rows, record = here.rows(run.dataset), place_of(results / "runs" / run.path) / "run.json"
        return rows is None or not trained_on(tolerant(record) or {}, rows)

    return list(dict.fromkeys(run.dataset for run in [point, *starts_of(config, point)] if others(run)))


def stands(config: dict, kind: str, name: str, root: Path = Path("."), asked: dict | None = None) -> bool:
    """Whether all outputs of a job are there and made of what is asked now: `asked`, or else `wanted`."""
    if not all(map(Path.is_file, files := outputs(config, kind, name, root))):
        return False
    return same(files, asked or wanted(config, kind, name, root), root / note(config, kind, name), root)


def same(files: Iterable[Path], asked: dict, note: Path, root: Path = Path(".")) -> bool:
    """Whether files are all there, undamaged and made of what is asked.

    A note that is damaged, does not say all that is asked, or is of other files, is not believed. Without one
    files are, unless the file in `asked` says that they were asked something else, or are to be replaced. It
    also tells what images were in a folder where the note of an older version does not. With neither data
    sets are prepared again, which takes seconds, and what takes hours is believed.
    """
    files = [*files]
    if not all(file.is_file() and intact(file, root) for file in files):
        return False
    noted, given = said(note), said(asking(note))
    if noted is None or given and made.IMAGES in given.keys() - noted.keys():
        told = given if given is not None else {} if note.parent.name == "data" else asked
    else:
        told = noted
    replaced = told is given and "replaces" in told
    return (
        not replaced and as_far(asked, told).items() <= told.items() and are_noted(files, noted or {}, root)
    )


def said(file: Path) -> dict | None:
    """What a note, or a file in `asked`, says; None without the file, and little if it is damaged."""
    return {**UNSAID, **(tolerant(file) or {})} if file.is_file() else None


def asking(note: Path) -> Path:
    """The file in `asked` of the job that leaves a note."""
    return note.parents[2] / "asked" / note.parent.name / note.name


def as_far(asked, noted):
    """What is asked, as far as a note of an older version says what images were in a folder."""
    if not (isinstance(asked, dict) and isinstance(noted, dict)):
        return asked
    return {k: as_far(v, noted.get(k)) for k, v in asked.items() if k != made.IMAGES or k in noted}


def are_noted(files: Iterable[Path], note: dict, root: Path = Path(".")) -> bool:
    """Whether files have the digests in a note, where it has any."""
    noted = note.get(MADE)
    return not isinstance(noted, dict) or all(
        noted.get(file.name) in (None, digest_of(file, root)) for file in files
    )


def intact(file: Path, root: Path = Path(".")) -> bool:
    """Whether a file is what its job wrote.

    A prepared table has its digest in the report beside it, and weights in the record of their pre-training.
    """
    if file.name == RECORD:
        return not altered_by(file, root)
    told = reported(file.with_suffix(".json")) if file.suffix == ".parquet" else {}
    return as_written(file, partial(digest_of, root=root)) and told.get("sha256") in (
        None,
        digest_of(file, root),
    )


def damaged(
    config: dict, datasets: Iterable[str], backbones: Iterable[str], root: Path = Path(".")
) -> list[Path]:
    """The files of data sets and backbones that snakemake makes anew, as they are not what was written."""
    return [file for file in made_for_runs(config, datasets, backbones, root) if not intact(file, root)]


def altered_checkpoints(config: dict, root: Path = Path(".")) -> list[Path]:
    """The files of checkpoints that are not what pre-training wrote, whether runs are trained on them or not.

    A checkpoint costs GPU days, and so it is made anew where a run is trained on it, and not before.
    """
    recipes = config.get("pretraining") or {}
    records = [file for recipe in recipes for file in outputs(config, "checkpoint", recipe, root)]
    return [wrong for file in records if file.is_file() for wrong in altered_by(file, root)]


def made_for_runs(
    config: dict, datasets: Iterable[str], backbones: Iterable[str], root: Path = Path(".")
) -> list[Path]:
    """The files of data sets and backbones that are here."""
    first = {parse(dataset)[0] for dataset in datasets}  # one file for all cuts
    named = {"images": first, "annotated": first, "data": datasets, "backbones": backbones}
    files = [file for kind in named for name in named[kind] for file in outputs(config, kind, name, root)]
    return [file for file in files if file.is_file()]


def rows_to_be(config: dict, dataset: str, root: Path = Path(".")) -> dict[str, str] | None:
    """The digests of the rows that a data set will have; {} for those it has, None for rows not known yet.

    They are those that it has, too, if nothing says all that was asked. Of an edited file that is small
    they are read. Of data that were not prepared here a bundle's report tells (`plan.bundled`).
    """
    report = report_file(root / "results" / config["scale"], dataset)
    if in_bundle(report):
        return bundled.rows_now(config, dataset, tolerant(report) or {}, root)
    kept = root / note(config, "data", dataset)
    told = told_of_rows(kept)
    if not told or not (asked := wanted(config, "data", dataset, root)).keys() <= told.keys():
        return {}
    if not tells_of_rows(told):
        return {}
    rows, noted = of_rows(asked), of_rows(told)
    before = None if rows == noted else rows_before(kept, rows)
    if not before and without_images(rows) == without_images(noted):
        return {}
    return before or rows_read(config, dataset, root)


def told_of_rows(note: Path) -> dict | None:
    """What preparing was asked: by its note, or else by the file in `asked`, if the outputs are younger."""
    if (noted := tolerant(note)) is not None:
        return noted
    told = tolerant(asking(note)) or {}
    made = filter(Path.is_file, outputs_in(note.parents[2], "data", note.stem))
    return told if all(file.stat().st_mtime_ns > told.get("replaces", 0) for file in made) else None


def wanted(config: dict, kind: str, name: str, root: Path = Path(".")) -> dict:
    """What is asked of a job, as it reads back from JSON."""
    return made.read_back(KINDS[kind].asks(config, name, root))


def to_prepare(config: dict, dataset: str, everything: dict, root: Path = Path(".")) -> dict:
    """What the job that prepares a data set is asked, with what decides on no row of a run that stands.

    It refuses a table or figure that names a class which is not there (`named`), and is done again with other
    `code`; what takes hours asks none. everything: what `blocks.shown` returns.
    """
    code = dependencies.digest("tailprompt.prepare")
    named = blocks.classes_asked(everything, dataset)
    return wanted(config, "data", dataset, root) | {"named": named, "code": code}


def outputs(config: dict, kind: str, name: str, root: Path = Path(".")) -> list[Path]:
    """The files that a job makes; of a pattern those that are here, as of packed parts only some may be."""
    return outputs_in(root / "results" / config["scale"], kind, name)


def note(config: dict, kind: str, name: str) -> str:
    """The copy of what a job was asked, which the job leaves when it is done."""
    return f"results/{config['scale']}/made/{kind}/{name}.json"


def of_run(folder: Path) -> list[Path]:
    """The files of the run in a folder; none without the folder, which is sooner seen."""
    return [folder / name for name in OUTPUTS] if folder.is_dir() or folder.is_symlink() else []


def ask(results: Path, name: str, wanted: dict, made: Iterable[Path], *, settled: bool, apart: bool) -> Path:
    """The file that says what is asked of the job `name`, brought up to date. made: the outputs of the job.

    settled: whether they stand. apart: whether no job of this process will read the file, as in a dry run,
    and those of another may. Then the file stays as it is, and one in `planned` takes its place.
    """
    file = results / "asked" / f"{name}.json"
    if apart:
        if settled and file.is_file():
            return file
        file = results / "planned" / f"{name}.json"
    write(file, wanted, made, settled=settled)
    return file


def write(file: Path, wanted: dict, made: Iterable[Path], *, settled: bool) -> None:
    """Write what is asked to `file`, newer than the outputs `made` unless they are settled.

    `replaces` is the time of the outputs that will be replaced, and `planned` that of the plan. They make the
    content differ from that of any earlier job, also where older outputs were put back. Otherwise Snakemake,
    which keeps a checksum of it, would conclude that nothing has changed.
    """
    there = [] if settled else [output for output in made if output.exists()]
    times = [output.stat().st_mtime_ns for output in there]
    content = {**wanted, "replaces": max(times), "planned": PLANNED} if times else wanted
    present = tolerant(file)
    if settled and present:
        present = without_times(present)
    if present != content:
        write_json(file, content)
    if times and file.stat().st_mtime_ns <= min(times):
        newer = max(time.time_ns(), min(times) + SECOND)  # outputs may be of the future, by a clock set back
        os.utime(file, ns=(newer, newer))


KINDS = {
    "images": Kind(made.images, data.to_decode),
    "annotated": Kind(made.annotated, data.to_annotate),
    "data": Kind(made.table, data.to_prepare),
    "collected": Kind(made.collected, recipes.to_collect),
    "vocabulary": Kind(made.vocabulary, recipes.to_learn),
    "packed": Kind(made.packed, recipes.to_pack),
    "checkpoint": Kind(made.checkpoint, recipes.to_pretrain),
    "backbones": Kind(made.backbone, recipes.to_check),
}
