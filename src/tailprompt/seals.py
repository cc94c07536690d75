"""Seals: the digests of the files of a job, beside them, by which damage and edits are seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tailprompt.errors import BadInput
from tailprompt.files import read_json, reading, sha256, whole
from tailprompt.plan.places import BUNDLED, in_bundle


def seal(
    *files: Path, also: Mapping[str, str] = MappingProxyType({}), digest: Callable[[Path], str] = sha256
) -> None:
    """Write the digests of a job's files, which have one stem, in a hidden file beside them.

    Those of other jobs' files of that stem stay there. also: digests of what is no file, by name. digest: of
    large files `plan.digests.digest_of`, which need not read them again.
    """
    digests = sealed(files[0]) | {file.name: digest(file) for file in files} | also
    with whole(seal_of(files[0])) as temporary:
        temporary.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()), "utf-8")


def sealed(file: Path) -> dict[str, str]:
    """Name -> digest of the files that `seal` wrote beside a file, and of itself; {} without any."""
    seal = seal_of(file)
    lines = seal.read_text("utf-8", "replace").splitlines() if seal.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def as_written(file: Path, digest: Callable[[Path], str] = sha256) -> bool:
    """Whether a file is there with the digest that `seal` wrote; True without one.

    Of what a bundle brought there always is one.
    """
    digests = sealed(file)
    if file.name not in digests:
        return BUNDLED not in {folder.name for folder in file.absolute().parents[1:3]}
    return file.is_file() and digests[file.name] == digest(file)


def check_sealed(*files: Path, digest: Callable[[Path], str] = sha256) -> None:
    """Raise BadInput, with what to do, if a file is not what a job wrote or a bundle brought."""
    for file in files:
        if not as_written(file, digest):
            raise BadInput(
                f"{file} is not what its bundle brought (SHA-256); delete it, and unbundle again"
                if in_bundle(file)
                else f"{file} is not what its job wrote (SHA-256); run snakemake again, which makes it anew"
            )


def read_sealed(path: Path, *keys: str) -> dict:
    """The JSON object in a file that a job wrote; raises BadInput, with what to do, where it is damaged."""
    check_sealed(path)
    try:
        return read_json(path, *keys)
    except BadInput as error:  # of a version that wrote no digest
        raise BadInput(f"{error}; delete it, and snakemake makes it anew") from None


def check_prepared(table: Path) -> str:
    """The digest of a prepared data set; raises BadInput, with what to do, if its report has another."""
    report = table.with_suffix(".json")
    told = read_sealed(report).get("sha256") if report.is_file() else None
    with reading(table):
        found = sha256(table)
    if told and found != told:
        raise BadInput(
            f"{table} is not what prepare wrote (SHA-256, in {report}); it was damaged or edited; run "
            "snakemake again, which prepares it anew"
        )
    return found


def seal_of(file: Path) -> Path:
    """Where the digest of a file stands."""
    return file.with_name(f".{file.stem}.sha256")
