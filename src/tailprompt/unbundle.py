"""Add the runs of bundles to the results of this place, for tables, figures and claims without a GPU.

`tailprompt unbundle FILE ...` adds what `tailprompt bundle` wrote to results/<scale>/from_bundles, where
tables and figures find it: `snakemake tables figures` with the scale's configuration makes them. A run that
is there already is kept, also where it was trained twice and ended the same. Two versions of a run or data
set are refused, and a bundle that is not whole, before anything of it is written. What it brings is noted
with its SHA-256, so that tables and bundles notice an edit. Weights do not travel: a run is trained here if
another starts from it.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tailprompt.errors import BadInput, stage
from tailprompt.files import beside, given, json_object, reading, sha256, write_json, writing
from tailprompt.plan.agreement import CARRIED, DIGESTS, data_digests, same_data, tolerant, trained_on
from tailprompt.plan.places import BUNDLED, MAY_CARRY, folders_of
from tailprompt.plan.points import Point
from tailprompt.report.carried import (
    A_NAME,
    ABOUT,
    CORPORA,
    FORMAT,
    corpus_note,
    dataset_files,
    is_name,
    parts_of,
    run_files,
)
from tailprompt.report.sound import SPENT
from tailprompt.seals import as_written, seal, seal_of, sealed

NAME = r"[^/.\0][^/\0]*"
RUN = rf"runs/({NAME}/){{4}}(0|[1-9]\d{{0,9}})/({'|'.join(map(re.escape, (*CARRIED, MAY_CARRY)))})"
NOTE = rf"made/({'|'.join(CORPORA)})/{NAME}\.json"
APART = ("seconds", *SPENT, "files", "sources")  # keys of run.json in which runs that end the same may differ
PLACE = re.compile(rf"data/{NAME}\.(json|parquet)|{NOTE}|{RUN}")


def unbundle(file: Path, root: Path | None = None) -> str:
    """Add the runs of a bundle; returns a sentence about it.

    root: folder of the scale; None for results/<scale>. Raises BadInput before anything is written if the
    bundle is not whole or of another scale, or a run or data set in it is not the one that is here.
    """
    parts = members(file)
    scale = scale_of(file, *next(parts, ("", b"")))
    root = root or Path("results", scale)
    check_scale(file, scale, root)
    with beside(root.resolve()) as temporary:  # on the disk of the results, which may be a link
        source = temporary / BUNDLED
        extract(file, parts, source)
        reports, folders, notes = checked(file, source)
        notes = [note for note in notes if not note_is_here(file, note, root)]
        news = [report for report in reports if not is_here(file, report, root)]
        runs = [folder for folder in folders if not run_is_here(file, folder, root)]
        move(source, root / BUNDLED, (part for note in notes for part in (seal_of(note), note)))
        for report in news:
            table = report.with_suffix(".parquet")
            move(source, root / BUNDLED, (seal_of(report), table, report))
        for folder in runs:
            names = [name for name in (DIGESTS, *CARRIED, MAY_CARRY) if (folder / name).is_file()]
            move(source, root / BUNDLED, (folder / name for name in names))
    write_json(root / BUNDLED / ABOUT, {"scale": scale})
    kept = len(folders) - len(runs)
    return f"runs added to {root / BUNDLED} from {file}: {len(runs)}; there already: {kept}"


def members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in a bundle; raises BadInput if it is damaged."""
    with reading(file), lzma.open(file) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if not member.isfile():
                    raise BadInput(f"{file} holds {member.name!r}, which is no plain file")
                yield member.name, archive.extractfile(member).read()
        stream.read()  # damage shows at the latest where the checksum stands


def scale_of(file: Path, name: str, content: bytes) -> str:
    """The scale of a bundle by its first file; raises BadInput if this version does not read the bundle."""
    if name != ABOUT:
        raise BadInput(f"{file} is no bundle: it does not begin with {ABOUT}")
    with reading(file):
        about = json_object(content.decode(), f"{ABOUT} in {file}", "format", "scale")
    if type(about["format"]) is not int or about["format"] != FORMAT:
        raise BadInput(
            f"{file} has format {about['format']!r}, and this version of tailprompt reads format {FORMAT}; "
            f"use version {about.get('tailprompt')}, which wrote it"
        )
    if not is_name(about["scale"]):
        raise BadInput(
            f"{file} is of a scale {about['scale']!r}, which is no name of a folder; it is {A_NAME}"
        )
    return about["scale"]


def check_scale(file: Path, scale: str, root: Path) -> None:
    """Raise BadInput if `root` holds results of another scale than the bundle: brought, or made here."""
    brought, made = root / BUNDLED / ABOUT, (root / "asked").is_dir()
    told = (tolerant(brought) or {}).get("scale")  # a damaged file is written again
    there = told or (root.name if made or brought.is_file() else scale)
    if there != scale:
        raise BadInput(
            f"{file} is of scale {scale}, and {root} holds results of scale {there}; name another --root, or "
            f"leave it out for results/{scale}"
        )


def check_scales(files: list[Path]) -> None:
    """Raise BadInput if bundles that go to one folder are of several scales."""
    scales = {file: scale_of(file, *next(members(file), ("", b""))) for file in files}
    if len({*scales.values()}) > 1:
        told = ", ".join(f"{file} of {scale}" for file, scale in scales.items())
        raise BadInput(f"--root is the folder of one scale, and the bundles are of several ({told})")


def extract(file: Path, parts: Iterable[tuple[str, bytes]], folder: Path) -> None:
    """Write the files of a bundle below `folder`.

    Raises BadInput for a file that no bundle has, or twice, and if the disk is full.
    """
    for name, content in parts:
        path = folder / name
        if not PLACE.fullmatch(name) or path.exists():
            raise BadInput(f"{file} holds {name!r} twice, or where no file of a bundle is")
        with writing(f"{name} of {file}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def checked(file: Path, source: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """The reports of data sets, folders of runs and notes of corpora below `source`, now with their digests.

    Raises BadInput if one is not whole.
    """
    reports = sorted({path.with_suffix(".json") for path in source.glob("data/*")})
    folders = sorted(source.glob("runs/*/*/*/*/*"))
    notes = sorted(source.glob("made/*/*"))
    try:
        for note in notes:
            corpus_note(note)
            seal(note)
        for report in reports:
            with reading(report):
                seal(report, report.with_suffix(".parquet"))
                dataset_files(report)
        for folder in folders:
            names = [name for name in (*CARRIED, MAY_CARRY) if (folder / name).is_file()]
            write_json(folder / DIGESTS, {name: sha256(folder / name) for name in names})
            with reading(folder):
                parts_of(folder, report_of(folder))
    except BadInput as error:
        raise BadInput(f"{file} is damaged: {str(error).replace(f'{source}/', '')}") from None
    return reports, folders, notes


def report_of(folder: Path) -> Path:
    """The report of the data set of a run, in the same results."""
    return folder.parents[5] / "data" / f"{folder.parents[1].name}.json"


def is_here(file: Path, report: Path, root: Path) -> bool:
    """Whether a data set that a bundle brought is here; raises BadInput if the one here is another."""
    theirs = data_digests(report.with_suffix(".parquet"))
    brought = root / BUNDLED / "data" / report.name
    told = brought.is_file() and brought.name in sealed(brought)  # else what the bundle has takes its place
    for here in (root / "data" / report.name, *[brought] * told):
        if here.is_file() and not same_data(data_digests(here.with_suffix(".parquet")), theirs):
            raise BadInput(
                f"{here} is of other data than {report.stem} in {file}; give the changed data set a name of "
                "its own, or remove what should go"
            )
    return told and as_written(brought.with_suffix(".parquet"))


def note_is_here(file: Path, note: Path, root: Path) -> bool:
    """Whether a bundle brought the note of a corpus before; raises BadInput if that one is another."""
    brought = root / BUNDLED / Path(*note.parts[-3:])
    told = brought.is_file() and as_written(brought)
    if told and corpus_note(brought) != corpus_note(note):
        raise BadInput(
            f"{brought} is of another corpus than {note.stem} in {file}; remove the one that should go, with "
            "what was pre-trained on it"
        )
    return told


def run_is_here(file: Path, folder: Path, root: Path) -> bool:
    """Whether a run is here; raises BadInput if it is another version of it."""
    folders = folders_of(root, Point.at("/".join(folder.parts[-5:])))
    there = [each for each in folders if (each / "run.json").is_file()]
    if not there:
        return False
    data = data_digests(report_of(folder).with_suffix(".parquet"))
    if others := [each for each in there if not trained_on(tolerant(each / "run.json") or {}, data)]:
        raise BadInput(
            f"{others[0]} was trained on other data than {folder.parents[1].name} in {file}; remove what "
            "should go"
        )
    theirs = run_files(folder, report_of(folder))
    ours = [run_files(each, report_of(folder)) for each in there]  # of the same data
    if any(repeats(each, theirs) for each in ours):
        return True
    differing = [
        [name for name in (*CARRIED, MAY_CARRY) if each.get(name) != theirs.get(name)] for each in ours
    ]
    if all(differing):
        raise BadInput(
            f"{there[0]} is another version of the run than that in {file} (they differ in "
            f"{', '.join(differing[0])}); remove the one that should go"
        )
    return True


def repeats(ours: dict[str, bytes], theirs: dict[str, bytes]) -> bool:
    """Whether a run, as the content of its files, ended as another did, in whatever time and memory."""
    told = [json_object(files["run.json"].decode(), "run.json") for files in (ours, theirs)]
    first, second = ({key: value for key, value in one.items() if key not in APART} for one in told)
    differing = {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
    return "weights_sha256" in first and first == second and differing <= {"run.json", "curve.csv"}


def move(source: Path, target: Path, files: Iterable[Path]) -> None:
    """Move files to the same places below `target`, one after another."""
    for file in files:
        path = target / file.relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tailprompt unbundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a bundle, or several to merge")
    parser.add_argument(
        "--root",
        type=given,
        metavar="FOLDER",
        help="folder of the scale to add to (default: results/<scale> by the scale that was bundled)",
    )
    options = parser.parse_args()
    if options.root:
        check_scales(options.files)
    for file in options.files:
        print(unbundle(file, options.root))


if __name__ == "__main__":
    stage(main)
