"""The files of a data set, from a folder of the user or from a pinned address, checked by digest.

A broken download resumes where it stopped, in this run or a later one; the loop is ours, because the retries
of requests do not cover a body that breaks off. A digest that the configuration does not state is recorded in
a lock file at the first download and enforced afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import requests
from filelock import FileLock

from tailprompt import files
from tailprompt.data import archives
from tailprompt.data.contents import opened
from tailprompt.data.lock import LOCK, locked, record
from tailprompt.data.places import file_name, places, stated
from tailprompt.errors import BadInput
from tailprompt.files import no_file
from tailprompt.machine.progress import shown

WAIT = 1.0  # seconds before the second attempt, doubled each time
GIVE_UP = {400, 401, 403, 404, 405, 410}  # status codes that a second attempt will not change
BROKEN = (requests.RequestException, EOFError)


def offline() -> bool:
    """Whether the user asked for no network."""
    asked = (os.environ.get(name, "") for name in ("TAILPROMPT_OFFLINE", "HF_HUB_OFFLINE"))
    return any(value.strip().lower() in ("1", "true", "yes", "on") for value in asked)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that tell a stage where the files of a data set are."""
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="JSON|FILE",
        help="its row of config/datasets.yaml as JSON, with its name and cut: "
        '{"name": "sst2", "language": "en", ..., "cut": {"shots": 16}}',
    )
    parser.add_argument(
        "--data-dir",
        type=folder,
        metavar="DIR",
        help="folder that holds the public files; null downloads them",
    )
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR", help="folder for downloads")
    parser.add_argument(
        "--lock",
        type=Path,
        default=LOCK,
        metavar="FILE",
        help="digests recorded at first downloads (default: config/lock.json)",
    )


def folder(text: str) -> Path | None:
    """The folder that an option names, or None for null."""
    return None if text in ("", "null", "None") else Path(text)


def found(
    row: dict, *, data_dir: Path | None, raw: Path, lock: Path
) -> tuple[dict[str, Path], dict[str, str]]:
    """Local paths of a row's files and the digests of their (decompressed) content, by file name."""
    paths, digests, by_key = {}, {}, {}
    for key, entry in stated(row).items():
        path = located(row, entry, data_dir) or downloaded(row, entry, raw, lock)
        # for an archive, the lock has the digest of the archive, not of the file in it
        expected = entry.get("sha256") or ("member" not in entry and locked(lock).get(entry.get("url", "")))
        digest = content_digest(path)
        if expected and digest != expected:
            raise BadInput(
                f"{path}: SHA-256 is {digest}, expected {expected}; it is another version or damaged"
            )
        paths[key], digests[file_name(entry)], by_key[key] = path, digest, digest
    check_apart(row, paths, by_key)
    return paths, digests


def own(paths: dict[str, Path], raw: Path) -> list[Path]:
    """Those of the files of a row that are not downloaded."""
    return [path for path in paths.values() if raw not in path.parents]


def check_apart(row: dict, paths: dict[str, Path], digests: dict[str, str]) -> None:
    """Raise BadInput where the file of another split holds what that of train does. Dev may be test."""
    for key in digests.keys() - {"train"}:
        if digests[key] == digests.get("train"):
            raise BadInput(
                f"'{row['name']}': {paths['train']} (train) and {paths[key]} ({key}) hold the same; name "
                f"another file for {key}, or leave it out to have {key} cut from train"
            )


def content_digest(path: Path) -> str:
    """The SHA-256 of a file's (decompressed) content, read a piece at a time."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def located(row: dict, entry: dict, data_dir: Path | None) -> Path | None:
    """The file on this machine: at its own path, or in the user's folder, plain or .xz."""
    if "path" not in entry and data_dir and not Path(data_dir).is_dir():
        raise BadInput(f"data_dir {data_dir} is no folder; correct it, or set data_dir: null to download")
    around = places(row, entry, data_dir)
    if not around:
        return None
    for place in around:
        if place.is_file():
            return place
        if place.is_dir():
            raise BadInput(f"'{row['name']}': {place} is a folder; name one file, which has all rows in it")
    found = [wrong for place in around if not (wrong := no_file(place)).startswith("there is no")]
    absent = f"there is no {' or '.join(map(str, around))}"
    raise BadInput(f"'{row['name']}': {found[0] if found else absent}" + advice(row, entry))


def advice(row: dict, entry: dict) -> str:
    """What the user can do about a missing file, and where it is to be had if it cannot be downloaded."""
    if "path" in entry:
        wanted = ", ".join(f"{key} in '{name}'" for key, name in row.get("columns", {}).items())
        return f"; correct its path in the data set's row{wanted and f' (its columns: {wanted})'}"
    if "url" in entry:
        return "; put it there, or set data_dir: null to download it"
    return f"; put it there{had(row)}"


def had(row: dict) -> str:
    """A clause about where the files of a data set are to be had, if its row says so."""
    return f"; it is to be had from {row['source']}" if "source" in row else ""


def downloaded(row: dict, entry: dict, raw: Path, lock: Path) -> Path:
    """The file in `raw`, downloaded if it is not there yet; its digest is recorded if none was stated.

    A file that is published in an archive is extracted from it. The archive is downloaded once and kept.
    """
    path = Path(raw) / file_name(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    if "member" in entry and not path.is_file():
        archive = downloaded(row, {"url": entry["url"]}, raw, lock)
        archives.extract(archive, entry["member"], path)
    with FileLock(path.with_name(f".{path.name}.lock")):  # cuts of one data set may be prepared at once
        if path.is_file():
            return path
        if "url" not in entry:
            raise BadInput(
                f"'{row['name']}': {path.name} is published nowhere; set data_dir to a folder that has it"
                + had(row)
            )
        if offline():
            raise BadInput(
                f"'{row['name']}': {path} is not there and the network is off; fetch it beforehand"
            )
        expected = entry.get("sha256") or locked(lock).get(entry["url"])
        digest = download(entry["url"], path, sha256=expected)
        if not expected:
            with FileLock(path.parent.parent / ".lock"):  # other data sets may record theirs at once
                record(lock, entry["url"], digest)
    return path


def download(
    url: str, path: Path, *, sha256: str | None = None, attempts: int = 5, sleep: Callable = time.sleep
) -> str:
    """Download `url` to `path`, whole or not at all; returns the SHA-256.

    Raises BadInput after `attempts` failures, at once for a status that will not change, or if the digest of
    the content is not `sha256`.
    """
    part = path.with_name(f"{path.name}.part")
    if not sha256:  # nothing would tell that a part kept from before is of another version
        part.unlink(missing_ok=True)
    reason = ""
    for attempt in range(attempts):
        try:
            stream(url, part)
            break
        except BROKEN as error:
            reason = str(error) or type(error).__name__
            sleep(WAIT * 2**attempt if attempt + 1 < attempts else 0)
    else:
        raise BadInput(
            f"{url} could not be downloaded in {attempts} attempts ({reason}); try again, it goes on there"
        )
    digest = files.sha256(part)
    if sha256 and digest != sha256:
        part.unlink()
        raise BadInput(
            f"{url}: SHA-256 is {digest}, expected {sha256}; the file was changed or damaged on the way"
        )
    os.replace(part, path)
    return digest


def stream(url: str, part: Path) -> None:
    """Append the missing rest of `url` to `part`; raises EOFError if the connection ends too early."""
    start = part.stat().st_size if part.exists() else 0
    # identity: a range of a compressed stream would not be a range of the file
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code == 416:  # nothing is left, or the part is of another file
            part.unlink()
            raise EOFError("the part kept from before does not fit; starting again")
        if answer.status_code in GIVE_UP:
            raise BadInput(
                f"{url} cannot be downloaded: the server answers {answer.status_code} {answer.reason}"
            )
        if not answer.ok:
            raise EOFError(f"the server answers {answer.status_code} {answer.reason}")
        start = start if answer.status_code == 206 else 0
        save(answer, part, start, name=url.rpartition("/")[2])


def save(answer: requests.Response, part: Path, start: int, *, name: str) -> None:
    """Write the body from byte `start` on, with a progress bar, and check its length."""
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length else None
    files.check_room(part, int(length or 0), "the download")
    with (
        files.writing(part, part),
        open(part, "r+b" if start else "wb") as file,
        shown(name, total=total, done=start, unit="byte") as show,
    ):
        file.seek(start)
        for chunk in answer.iter_content(1 << 16):
            file.write(chunk)
            show(file.tell())
    if total and part.stat().st_size < total:
        raise EOFError(f"it ended after {part.stat().st_size} of {total} bytes")
