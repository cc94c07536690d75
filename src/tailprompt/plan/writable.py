"""Whether jobs can write their files, which is looked at before Snakemake meets one that they cannot."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tailprompt.errors import BadInput


def check_writable(files: Iterable[Path]) -> None:
    """Raise OSError for files that a job could not write: Snakemake itself removes those that are there."""
    check_links(files := {*files})
    for folder in sorted({next(folder for folder in file.parents if folder.exists()) for file in files}):
        if not folder.is_dir():
            raise refused(errno.ENOTDIR, folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise refused(errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES, folder)
    if shut := [file for file in files if file.exists() and is_locked(file)]:
        raise refused(errno.EPERM, min(shut))


def check_links(places: Iterable[Path]) -> None:
    """Raise BadInput if one of these, or a folder above, is a link to nowhere, as to a disk that is gone.

    Snakemake takes it to be there in one order of its looks, and not in another.
    """
    around = {each for place in places for each in (place, *place.parents)}
    if lost := [each for each in around if each.is_symlink() and not each.exists()]:
        raise BadInput(
            f"{min(lost)} is a link to {os.readlink(min(lost))}, which leads nowhere; bring back what was "
            "there, or delete the link"
        )


def is_locked(file: Path) -> bool:
    """Whether not even its owner, whom its mode lets, can write a file, as after chattr +i."""
    about = file.stat()
    own = about.st_uid == os.geteuid() and about.st_mode & stat.S_IWUSR
    return bool(own) and not os.access(file, os.W_OK)


def refused(number: int, place: Path) -> OSError:
    """What the system raises for a place, by the number of the error."""
    return OSError(number, os.strerror(number), str(place))
