"""A user's folders of images: what in them is an image of a class, and what is skipped and counted."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from unicodedata import category

from tailprompt.data.columns import SPLITS
from tailprompt.data.pictures import ENDINGS
from tailprompt.errors import BadInput, few, known

ASIDE = {"#recycle", "$recycle.bin", "lost+found", "__macosx", "system volume information", "thumbnails"}


def check_splits(root: Path) -> None:
    """Raise BadInput for folders that look like splits and have other names: they would be classes."""
    likely = {folder.name: split_in(folder.name) for folder in folders(root)}
    likely = {name: split for name, split in likely.items() if split and folders(root / name)}
    inside = [{below.name for below in folders(root / name)} for name in likely]
    plain = all(name.lower() in SPLITS for name in likely)
    if not plain and len({*likely.values()}) > 1 and not any(own_images(root / name) for name in likely):
        same = f", with the same {len(inside[0])} folders in each" if inside.count(inside[0]) > 1 else ""
        raise BadInput(
            f"{root}: {known(likely)} look like splits{same}; name them train, val and test, with the "
            "folders of classes just below"
        )


def split_in(name: str) -> str | None:
    """The split that a word of a folder's name is, as of seg_train."""
    return next((SPLITS[word] for word in re.split(r"[\W_\d]+", name.lower()) if word in SPLITS), None)


def own_images(folder: Path) -> bool:
    """Whether a folder has images of its own, not in folders below."""
    return any(file.suffix.lower() in ENDINGS for file in folder.iterdir())


def skipped(root: Path, taken: Iterable[Path]) -> dict[str, int]:
    """The number of files below a folder that are not `taken`, by ending; hidden files do not count.

    Those in folders that a system or a synchroniser made count under the name of the folder.
    """
    rest = {*files(root, aside=True)} - {*taken}
    endings = Counter(aside_of(file, root) or printable(file.suffix.lower()) or "no ending" for file in rest)
    return dict(sorted(endings.items()))


def aside_of(file: Path, root: Path) -> str | None:
    """The folder on the way to a file that holds no photos of a user's own."""
    return next((part for part in file.relative_to(root).parts[:-1] if is_aside(part)), None)


def is_aside(name: str) -> bool:
    """Whether a folder is one that a system or a synchroniser made: thumbnails, deleted files, metadata."""
    return name.lower() in ASIDE or name.startswith("@")


def others(skipped: dict[str, int]) -> str:
    """A clause about skipped files by ending, or an empty string."""
    endings = ", ".join(f"{ending} {number:,}" for ending, number in skipped.items())
    return f"other files skipped: {endings}" if skipped else ""


def folders(root: Path) -> list[Path]:
    """The folders in a folder, sorted by name."""
    there = (path for path in root.iterdir() if path.is_dir() and path.name[0] != ".")
    return sorted(path for path in there if not is_aside(path.name))


def images(folder: Path) -> list[Path]:
    """The image files anywhere below a folder, sorted by path."""
    return readable([file for file in files(folder) if file.suffix.lower() in ENDINGS])


def files(folder: Path, *, aside: bool = False) -> list[Path]:
    """The files anywhere below a folder, sorted by path: through links, but no hidden files or folders.

    aside: whether also of folders that a system made.
    """
    found, seen = [], set()
    for at, below, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        below[:] = [] if real in seen else [name for name in below if visible(name, aside)]  # links may loop
        if real not in seen:
            found += [Path(at, name) for name in names if name[0] != "."]
        seen.add(real)
    return sorted(found)


def visible(name: str, aside: bool) -> bool:
    """Whether a folder is looked into."""
    return name[0] != "." and (aside or not is_aside(name))


def readable(found: list[Path]) -> list[Path]:
    """The files themselves; raises BadInput for names that a table cannot hold or a message cannot show."""
    if bad := [printable(str(file)) for file in found if unreadable(str(file))]:
        raise BadInput(
            f"{len(bad)} names of images have control characters, or bytes that are no UTF-8: "
            f"{few(bad, shown=3)}; rename them"
        )
    return found


def unreadable(name: str) -> bool:
    """Whether a name has control characters, or bytes that are not UTF-8 (lone surrogates in Python)."""
    return any(category(character) in ("Cc", "Cs") for character in name)


def printable(name: str) -> str:
    """A name as a message can show it."""
    return repr(name) if unreadable(name) else name
