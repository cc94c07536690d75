"""Write the finished runs of a scale into one file, from which tables and figures are made elsewhere.

`tailprompt bundle SCALE FILE` writes what tables, figures and claims read: settings, versions, digests,
predictions, curves, and features that figures ask for; of data sets the reports, and the ids and labels of
dev and test; of corpora the digests. Weights, texts and images stay here. `tailprompt unbundle FILE` adds
the runs to the results of another place. FILE is a .tar.xz, the same for the same results.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path

from tailprompt import __version__
from tailprompt.errors import BadInput, few, stage
from tailprompt.files import whole
from tailprompt.plan.agreement import complete, tolerant
from tailprompt.plan.either import taken
from tailprompt.plan.places import BUNDLED
from tailprompt.report.carried import (
    A_NAME,
    ABOUT,
    CORPORA,
    FORMAT,
    as_json,
    corpus_note,
    dataset_files,
    is_name,
    run_files,
)

ENDING = ".tar.xz"


def bundle(root: Path, file: Path, only: list[str]) -> list[str]:
    """Write the runs of a scale to `file`; returns lines about it.

    root: folder of the scale. only: patterns of the paths of runs; [] takes all, and data sets without runs.
    A run that is not finished, or is not what its run.json says, is left out.
    """
    if not file.name.endswith(ENDING):
        raise BadInput(f"{file}: a bundle is a {ENDING} file; name it so")
    scale, folders = root.resolve().name, chosen(root, only)
    if not is_name(scale):
        raise BadInput(f"{root}: '{scale}' is no name of a scale; rename the folder: a name is {A_NAME}")
    runs = {point: folder for point, folder in folders.items() if complete(folder)}
    used = {dataset_of(point) for point in runs}
    reports = {
        path.stem: path for path in found(root, "data/*.json").values() if not only or path.stem in used
    }
    noted = {name: note for kind in CORPORA for name, note in found(root, f"made/{kind}/*.json").items()}
    notes = {name: note for name, note in noted.items() if (tolerant(note) or {}).get("corpus")}
    with whole(file) as temporary:
        wrong = write(temporary, scale, runs, reports, notes)
        kept, size = len(runs) - len(wrong), temporary.stat().st_size / 1e6
        if not kept:
            raise BadInput(f"{root}: none of its runs is finished and what it says{example(wrong)}")
    lines = [f"runs in {file}: {kept} ({size:.1f} MB)"]
    if unfinished := len(folders) - len(runs):
        lines.append(f"runs left out as not finished: {unfinished}")
    return lines + ([f"runs left out: {len(wrong)}{example(wrong)}"] if wrong else [])


def chosen(root: Path, only: list[str]) -> dict[str, Path]:
    """Point -> folder of the runs whose points match one of the patterns, or of all.

    Raises BadInput if there is no run, or a pattern matches none.
    """
    folders = {
        path.removeprefix("runs/"): taken(root / path)
        for path, folder in found(root, "runs/*/*/*/*/*").items()
        if folder.is_dir()
    }
    if not folders:
        raise BadInput(f"{root} has no runs; name a scale, or its folder results/<scale>")
    matched = {pattern: [point for point in folders if fnmatchcase(point, pattern)] for pattern in only}
    if empty := [pattern for pattern, points in matched.items() if not points]:
        raise BadInput(
            f"--only {empty[0]}: no run in {root} is like it; one is protocol/backbone/dataset/method/seed"
        )
    kept = {point for points in matched.values() for point in points} if only else {*folders}
    return {point: folders[point] for point in sorted(kept, key=lambda point: (dataset_of(point), point))}


def found(root: Path, pattern: str) -> dict[str, Path]:
    """Path below its root -> path, of what a bundle brought and what was made here, which goes before."""
    roots = (root / BUNDLED, root)
    paths = {str(path.relative_to(base)): path for base in roots for path in base.glob(pattern)}
    return dict(sorted(paths.items()))


def dataset_of(point: str) -> str:
    """The data set of a run's path."""
    return point.split("/")[2]


def write(
    file: Path, scale: str, runs: dict[str, Path], reports: dict[str, Path], notes: dict[str, Path]
) -> list[str]:
    """Write a bundle; returns why runs were left out.

    runs: point -> folder, those on one data set together, as they are compressed well beside each other.
    reports: data set -> its .json file. notes: name in the bundle -> note of a job that took a corpus.
    """
    wrong = []
    with tarfile.open(file, "w:xz") as archive:
        add(archive, ABOUT, as_json({"format": FORMAT, "scale": scale, "tailprompt": __version__}))
        for name, note in notes.items():
            add(archive, name, corpus_note(note))
        for report in reports.values():
            for name, content in dataset_files(report).items():
                add(archive, f"data/{name}", content)
        for point, folder in runs.items():
            try:
                files = run_files(folder, reports.get(dataset_of(point)))
            except (BadInput, OSError) as error:
                wrong.append(str(error))
                continue
            for name, content in files.items():
                add(archive, f"runs/{point}/{name}", content)
    return wrong


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file without owner and time."""
    about = tarfile.TarInfo(name)
    about.size = len(content)
    archive.addfile(about, io.BytesIO(content))


def example(reasons: list[str]) -> str:
    """The first reason in brackets, or nothing."""
    return f" ({few(reasons, shown=1)})" if reasons else ""


def root_of(scale: str) -> Path:
    """The folder of a scale that is given by its name or its folder."""
    name = scale.rstrip("/")
    return Path("results", name) if name and Path(name).name == name else Path(scale)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tailprompt bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scale", metavar="SCALE", help="name of a scale, or its folder results/<scale>")
    parser.add_argument("file", metavar="FILE", type=Path, help=f"the bundle to write, as mini{ENDING}")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="take only runs like protocol/backbone/dataset/method/seed, as 'glee/*' or '*/prompt/775'; may "
        "be repeated (default: all runs)",
    )
    options = parser.parse_args()
    print("\n".join(bundle(root_of(options.scale), options.file, options.only)))


if __name__ == "__main__":
    stage(main)
