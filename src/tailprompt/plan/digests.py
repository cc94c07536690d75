"""SHA-256 digests of files, computed again only for a file that changed: a plan reads no weights twice.

`results/digests.json` holds the digest of each large file with the size and the times that the file had, and
a check of all that, without which an entry is not believed.
A job compares what it has read with the digests that it was asked for, since files may change after a plan.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from tailprompt.errors import BadInput, known
from tailprompt.files import read_json, sha256, write_json
from tailprompt.model.folder import RECORD, WHOLE, anew, files_in, weights_in
from tailprompt.plan.agreement import digest, tolerant
from tailprompt.seals import as_written

KEPT = Path("results/digests.json")
LARGE = 10**6  # bytes; a smaller file is read faster than it is looked up
ORDER = "in this order"  # beside the digests of corpora, where it is not the usual one
QUIET = 2 * 10**9  # nanoseconds: a file that changed just now may change again and keep its times


def digests(files: Iterable[Path], root: Path = Path(".")) -> list[str]:
    """The digest of each file. root: the project's folder, which keeps those of large files."""
    return [digest_of(file, root) for file in files]


def digest_of(
    file: Path, root: Path = Path("."), of: str = "", read: Callable[[Path], str] | None = None
) -> str:
    """The digest of one file. of: what `read` has the digest of, if not of the file as it is."""
    read = read or sha256
    status = file.stat()
    if status.st_size < LARGE:
        return read(file)
    # a file that is moved here keeps its modification time, and the other tells of the move
    state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    name, kept = " ".join(filter(None, [str(file.absolute()), of])), root / KEPT
    known = noted(kept)
    if known.get(name, [])[:3] != state:
        found = read(file)
        if time.time_ns() - max(state[1:]) < QUIET:
            return found
        known[name] = [*state, found, check_of(name, [*state, found])]
        with suppress(BadInput):  # of a place that takes no writes, where they are computed each time
            write_json(kept, {**entries(kept), **known})
    return known[name][3]


def digests_in(folder: Path, family: str = "", root: Path = Path(".")) -> dict[str, str]:
    """The digest of each file of a backbone in its folder, by name."""
    return {name: digest_of(file, root) for name, file in files_in(folder, family).items()}


@cache
def digest_of_images(root: Path) -> str:
    """The digest of the paths, sizes and times of the images in a folder; to read them all would take hours.

    It is computed once for all cuts. root: an absolute path.
    """
    from tailprompt.data.folders import states  # with pandas, which is slow to import

    return digest(states(root))


def check_images(asked: str | None, root: Path | None) -> None:
    """Raise BadInput if the images that a job will read are not those that it was asked."""
    if asked and root and digest_of_images(root.absolute()) != asked:
        refuse([root])


def check_folder(asked: dict[str, str] | None, folder: Path, family: str = "") -> None:
    """Raise BadInput if the backbone that a job has read is not what it was asked; None compares nothing.

    Of a checkpoint that a recipe makes the digest of the recipe is asked; compared are the digests beside it.
    """
    if asked and "recipe" in asked:
        check_checkpoint(folder)
    elif asked:
        found = digests_in(folder, family)
        names = asked.keys() | found.keys()
        refuse([folder / name for name in names if asked.get(name) != found.get(name)])


def check_checkpoint(folder: Path) -> None:
    """Raise BadInput if a file that pre-training wrote is not there or another, or if one was added."""
    record = folder / RECORD
    if not record.is_file():
        return
    weights_in(folder)  # says which are missing
    about = read_json(record)
    if wrong := altered(folder, about):
        raise BadInput(f"{wrong[0]} is not what pre-training wrote (SHA-256, in {record}); {anew(folder)}")
    told = told_of(folder, about)
    if "config.json" in told and (added := sorted(files_in(folder).keys() - told.keys())):
        raise BadInput(f"{folder / added[0]} is not of the checkpoint, whose files {record} names; delete it")


def altered(folder: Path, record: dict, root: Path = Path(".")) -> list[Path]:
    """The files of a checkpoint that do not have the digests that are told of them, or are not there."""
    files = {folder / name: digest for name, digest in told_of(folder, record).items()}
    return [file for file in files if not file.is_file() or digest_of(file, root) != files[file]]


def altered_by(record: Path, root: Path = Path(".")) -> list[Path]:
    """The files of a checkpoint that are not what its record says; the record, if that is damaged."""
    about = tolerant(record)
    return [record] if about is None else altered(record.parent, about, root)


def told_of(folder: Path, record: dict) -> dict[str, str]:
    """The digests of a checkpoint's files by its record: of its weights, and of the others in `files`.

    The record of an older version has no `files`. Those of a backbone stand in what the look at it wrote,
    `backbones/NAME.json`; before that they are not compared.
    """
    told = record.get("sha256") or {}
    weights = told if isinstance(told, dict) else {WHOLE: told}
    if "files" in record:
        return {**weights, **record["files"]}
    folder = folder.absolute()
    for file in filter(as_written, sorted(folder.parents[1].glob("backbones/*.json"))):
        look = tolerant(file) or {}
        found, is_of = look.get("sha256"), Path(look.get("path", "")).parts[-2:] == folder.parts[-2:]
        if is_of and isinstance(found, dict) and weights.items() <= found.items():
            return found
    return weights


def check_read(asked: dict) -> None:
    """Raise BadInput if the backbone or adapter that a run has read is not the one that it was asked."""
    row, start = asked["backbone"], asked.get("start") or {}
    check_folder(asked.get("weights"), Path(row.get("path", "")), row["family"])
    if "folder" in start:
        check_files(start["sha256"].values(), [Path(start["folder"], name) for name in start["sha256"]])


def check_files(asked: Collection[str] | None, files: Iterable[Path]) -> None:
    """Raise BadInput if the digest of a file that a job has read is not among those that it was asked."""
    if asked is not None:
        refuse([file for file in files if digest_of(file) not in asked])


def check_corpora(asked: dict[str, str] | None, files: Iterable[Path]) -> None:
    """Raise BadInput if a corpus that a job has read has another digest than the one asked under its name.

    Those that were renamed have the digests asked, in their order. Texts that are made of articles have none.
    """
    told, read = {name: told for name, told in (asked or {}).items() if name != ORDER}, told_apart(files)
    made = {key: f"{key}.txt.gz" for key in told}  # of articles
    own = {name: file for name, file in read.items() if told and file.name not in made.values()}
    articles = {file.name for file in read.values()} & {*made.values()}
    found = {name: digest_of(file) for name, file in own.items()}
    if [*found.values()] != [told[name] for name in told if made[name] not in articles]:
        digests = {name: [told[name]] if name in told else told.values() for name in own}
        refuse([file for name, file in own.items() if found[name] not in digests[name]])


def told_apart(files: Iterable[Path]) -> dict[str, Path]:
    """The files by name, and by path where several have one name."""
    files = list(files)
    times = Counter(file.name for file in dict.fromkeys(files))
    return {file.name if times[file.name] == 1 else file.as_posix(): file for file in files}


def refuse(changed: list[Path]) -> None:
    """Raise BadInput if there are files that changed."""
    if changed:
        raise BadInput(
            f"changed after this job was planned: {known(map(str, changed))}; run snakemake again, which "
            "plans with what is there now"
        )


@cache
def noted(kept: Path) -> dict[str, list]:
    """The digests that a project keeps, with size, times and check, by absolute path."""
    return entries(kept)


def entries(kept: Path) -> dict[str, list]:
    """The entries of the file that are whole; what is missing or damaged is made anew."""
    try:
        found = read_json(kept) if kept.is_file() else {}
    except BadInput:
        return {}
    return {name: one for name, one in found.items() if isinstance(one, list) and is_whole(name, one)}


def is_whole(name: str, entry: list) -> bool:
    """Whether an entry has the check of what it says. Those of older versions have none."""
    return len(entry) == 5 and entry[4] == check_of(name, entry[:4])


def check_of(name: str, entry: list) -> str:
    """A short digest of an entry with its path, in which a flipped bit is seen."""
    return digest([name, *entry])[:8]
