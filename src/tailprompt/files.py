"""Atomic writes (temporary file, then rename), digests of files, and JSON with its required keys."""

from __future__ import annotations

import argparse
import errno
import glob
import hashlib
import json
import os
import platform
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tailprompt.errors import BadInput, known, to_do, why

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
HOST = f"{zlib.crc32(platform.node().encode()):08x}"  # process ids are unique on one machine only
ASKED = ("spec", "row", "recipe")  # what of a job's file its stage reads
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room on the disk, in a quota, or for so large a file
LOST = (errno.EIO, errno.ESTALE, errno.EROFS, errno.EPERM, errno.EACCES)  # a disk or a server fails meanwhile


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which is renamed to `path` only if the block succeeds.

    Raises BadInput before the block if `path` cannot be written, and after it if the disk is full or does not
    take the name.
    """
    path = Path(path)
    if not path.name or path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it to write to")
    temporary = temporary_of(path)
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        clear(path)
        temporary.touch()
        mode = temporary.stat().st_mode
    try:
        with writing(path, temporary):
            yield temporary
        with naming(path):
            os.chmod(temporary, mode)  # safetensors would keep a file from a group that shares the folder
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What the system refuses while it makes a place for `path`, as BadInput with that name."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename
        place = (
            path.parent if Path(place or path).suffix == ".part" else place
        )  # the name of no file of theirs
        raise BadInput(f"{path} cannot be written ({why(error)}: {place}){to_do(error)}") from None


@contextmanager
def writing(path: str | Path, part: Path | None = None) -> Iterator[None]:
    """What a disk that is full or fails raises, which names no file, as BadInput with the name of the file.

    part: what is written of it so far, whose bytes are told.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL and (error.errno not in LOST or error.filename):
            raise
        size = f" after {part.stat().st_size:,} bytes" if part and part.is_file() else ""
        reason = f"{os.strerror(error.errno)}{size}; {room(path):,} bytes are free"
        raise BadInput(f"{path} cannot be written ({reason})") from None


def room(path: str | Path) -> int:
    """The bytes that are free where `path` is or will be."""
    folder = next(folder for folder in Path(path).absolute().parents if folder.is_dir())
    return shutil.disk_usage(folder).free


def check_room(path: str | Path, size: int, what: str) -> None:
    """Raise BadInput if `size` bytes do not fit where `path` will be. what: they are for."""
    if size > (free := room(path)):
        raise BadInput(f"{path}: {what} may take {size:,} bytes, and {free:,} are free there; make room")


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, which is removed in the end.

    Those that killed processes of this machine left there are removed too.
    """
    temporary = temporary_of(folder)
    with naming(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        clear(folder)
        temporary.mkdir()
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def temporary_of(path: Path) -> Path:
    """Where this process writes what becomes `path`."""
    return path.with_name(f".{path.name}.{HOST}-{os.getpid()}.part")


def given(text: str) -> Path:
    """The path of an option, for argparse; an empty one, as of an unset variable, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def clear(path: Path) -> None:
    """Remove the half-written copies of `path` that killed processes of this machine left behind."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.{HOST}-*.part"):
        try:
            os.kill(int(part.stem.rpartition("-")[2]), 0)  # signal 0 only asks whether the process exists
        except ProcessLookupError:
            shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        except PermissionError:  # the process is another user's
            pass


def write_json(path: str | Path, value) -> None:
    """Write `value` as indented UTF-8 JSON, atomically; raises BadInput for a number that is not finite."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError:
        raise BadInput(f"{path} is not written: a number in it is not finite") from None
    with whole(path) as temporary:
        temporary.write_text(text + "\n", "utf-8")


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn any exception of a reader, as for a missing or damaged file, into BadInput with its name."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # each file format raises its own exceptions
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise BadInput(f"{path} cannot be read ({reason})") from None


def read_json(path: str | Path, *keys: str) -> dict:
    """The JSON object in a file; raises BadInput unless it has `keys`."""
    with reading(path):
        return json_object(Path(path).read_text("utf-8-sig"), path, *keys)


def read_parquet(path: str | Path, *columns: str) -> pd.DataFrame:
    """These columns of a Parquet file; raises BadInput if one is missing."""
    import pandas as pd  # slow to import, and the plan, which imports this module, does not need it

    with reading(path):
        return pd.read_parquet(path, columns=list(columns))


def json_option(text: str, option: str, *keys: str) -> dict:
    """The JSON object that an option gives, as itself or as the name of a file with it.

    In a file that says what a job is asked it is one of ASKED.
    """
    if not text.endswith(".json"):
        return json_object(text, option, *keys)
    value = read_json(text)
    return keyed(next(told(value), value), text, *keys)


def told(value: dict) -> Iterator[dict]:
    """What stands under the keys of ASKED."""
    return (value[name] for name in ASKED if isinstance(value.get(name), dict))


def asked_of(option: str) -> dict:
    """All that a job is asked, if an option of `json_option` names the file that says so; else nothing."""
    value = read_json(option) if option.endswith(".json") else {}
    return value if any(told(value)) else {}


def json_object(text: str, place: str | Path, *keys: str) -> dict:
    """The JSON object in a text; raises BadInput, which names `place`, unless it has `keys`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place} is not JSON ({error})") from None
    return keyed(value, place, *keys)


def keyed(value, place: str | Path, *keys: str) -> dict:
    """`value` itself; raises BadInput, which names `place`, unless it is a JSON object with `keys`."""
    if not isinstance(value, dict):
        raise BadInput(f"{place} must be a JSON object, not a {type(value).__name__}")
    if not set(keys) <= set(value):
        raise BadInput(f"{place} lacks {known(set(keys) - set(value))}; it has {known(value) or 'no keys'}")
    return value


def no_file(path: str | Path, root: str | Path = ".") -> str:
    """Why a path below `root` is no file to read, as a clause; empty for a file."""
    place = Path(root, path)
    if place.is_file():
        return ""
    if place.is_symlink() and not place.exists():
        return f"{path} is a link to {os.readlink(place)}, which leads to no file"
    kinds = [
        (place.is_dir(), "a folder"),
        (place.is_fifo(), "a pipe"),
        (place.is_socket(), "a socket"),
        (place.exists(), "a device"),
    ]
    kind = next((kind for holds, kind in kinds if holds), None)
    return f"{path} is {kind}, where a file is wanted" if kind else f"there is no file {path}"


def sha256(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_read(file: Path, read: Callable[[Path], T] = sha256) -> T:
    """What `read` returns of a file, found once in this process until the times of the file change."""
    status = file.stat()
    return read_at(file, read, status.st_mtime_ns, status.st_ctime_ns)


@cache
def read_at(file: Path, read: Callable[[Path], T], *_times: int) -> T:
    """The same of a file with these times."""
    return read(file)
