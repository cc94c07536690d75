"""Files in zip and tar archives."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tailprompt import files
from tailprompt.errors import BadInput, counted, few

BROKEN = (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError)


def extract(archive: Path, member: str, path: Path) -> None:
    """Write the only file of `archive` whose path ends in `member` to `path`."""
    try:
        with zipfile.ZipFile(archive) if zipfile.is_zipfile(archive) else tarfile.open(archive) as opened:
            names = plain_files(opened)
            found = [name for name in names if f"/{name}".endswith(f"/{member}")]
            if len(found) != 1:
                there = f"has {counted(len(found), 'file')} {member}; it has {few(sorted(names))}"
                raise BadInput(f"{archive} {there}")
            take = opened.open if isinstance(opened, zipfile.ZipFile) else opened.extractfile
            with take(found[0]) as source, files.whole(path) as temporary:
                with open(temporary, "wb") as target:
                    shutil.copyfileobj(source, target)
    except BROKEN as error:
        raise BadInput(
            f"{archive} is damaged or cut short ({error}); remove it to have it fetched again"
        ) from None


def plain_files(archive: zipfile.ZipFile | tarfile.TarFile) -> list[str]:
    """The names of the files in an archive; folders, links and devices are none."""
    if isinstance(archive, zipfile.ZipFile):
        kinds = ((each.filename, stat.S_IFMT(each.external_attr >> 16)) for each in archive.infolist())
        return [name for name, kind in kinds if not name.endswith("/") and kind in (0, stat.S_IFREG)]
    return [each.name for each in archive.getmembers() if each.isfile()]


def texts(archive: Path) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each file of a tar archive, in its order."""
    try:
        with tarfile.open(archive) as opened:
            for entry in opened:
                if entry.isfile():
                    yield entry.name, opened.extractfile(entry).read()
    except BROKEN as error:
        raise BadInput(f"{archive} is damaged or cut short ({error})") from None
