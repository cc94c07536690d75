"""Whether what the plan reads of bundles is whole: reports of data sets, digests of corpora, records of runs.

Else runs would be trained, or left out, for another reason than the damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from pathlib import Path

from tailprompt.errors import BadInput, refused_as
from tailprompt.files import as_read
from tailprompt.plan.agreement import DIGESTS, brought_digests, damaged, tolerant
from tailprompt.plan.places import BUNDLED, in_bundle, in_bundles, report_file
from tailprompt.plan.points import Point
from tailprompt.seals import as_written


def check(results: Path, datasets: Iterable[str]) -> None:
    """Raise BadInput, with what to do, if such a file in the results of a scale is damaged."""
    reports = (report_file(results, name) for name in datasets)
    wrong = [file for file in reports if in_bundle(file) and not as_written(file)]
    told = (results / BUNDLED / "made").glob("*/.*.sha256"), (results / BUNDLED / "made").glob("*/*.json")
    notes = sorted({file.with_name(f"{file.stem.lstrip('.')}.json") for files in told for file in files})
    if wrong := wrong + [note for note in notes if not as_written(note) or corpus_in(note) is None]:
        raise BadInput(f"{wrong[0]} is not what its bundle brought; delete it, and unbundle again")


def check_runs(results: Path, points: Iterable[Point]) -> None:
    """Raise BadInput, with what to do, if a run of these lost a file, or its run.json is not the bundle's.

    points: runs that do not stand, which would be trained, or left out, by what their damaged records say.
    """
    for point in points:
        folder = in_bundles(results / "runs" / point.path)
        record = folder / "run.json"
        if record.is_file() or (folder / DIGESTS).is_file():
            digests = brought_digests(folder)
            gone = [file for name in digests if not (file := folder / name).is_file()]
            if gone or as_read(record) != digests[record.name]:
                raise BadInput(damaged((gone or [record])[0], folder))


def refuse_targets(dag: type, results: Path) -> None:
    """Let Snakemake say in a sentence that no job makes a file where bundles bring them. dag: its class."""
    begin = dag.init

    @wraps(begin)
    async def init(self, *others, **options):
        with refused_as(SystemExit):
            check_targets(map(Path, self.targetfiles), results)
        return await begin(self, *others, **options)

    dag.init = init


def check_targets(files: Iterable[Path], results: Path) -> None:
    """Raise BadInput, with what to ask for instead, if a file that is asked for is one of a bundle."""
    folder = (results / BUNDLED).absolute()
    for file in files:
        if file.absolute().is_relative_to(folder):
            there = results / file.absolute().relative_to(folder)
            raise BadInput(
                f"{file} is where bundles bring files, and no job makes any; ask for tables or figures, "
                f"which read them, or for {there}, which is made here"
            )


def corpus_in(note: Path) -> dict[str, str] | None:
    """The digests of the corpus of which a job made its outputs, by its note; None if that tells none."""
    corpus = (tolerant(note) or {}).get("corpus")
    whole = isinstance(corpus, dict) and all(isinstance(digest, str) for digest in corpus.values())
    return corpus if whole else None
