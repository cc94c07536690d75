"""A user's folders of images: what in them is an image of a class, and what is skipped and counted."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import category

from tailprompt.data.columns import SPLITS
from tailprompt.data.pictures import ENDINGS
from tailprompt.errors import BadInput, counted, few, known

ASIDE = {"#recycle", "$recycle.bin", "lost+found", "__macosx", "system volume information"}
ASIDE |= {"thumbnails", "thumbs", "_thumbs", "previews", "cache", "_cache"}
BELOW = {"thumbnail", "thumb", "_thumb", "preview"}  # aside in a class, which itself may be called so
BREAK = re.compile(r"[\W_\d]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # as in seg_train, TrainData


def check_splits(root: Path) -> None:
    """Raise BadInput for folders that look like splits and have other names: they would be classes."""
    likely = {folder.name: split_in(folder.name) for folder in folders(root)}
    likely = {name: split for name, split in likely.items() if split}
    if all(name.lower() in SPLITS for name in likely) or len({*likely.values()}) == 1:
        return
    flat = {(split, rest_of(name)) for name, split in likely.items() if own_images(root / name)}
    repeat = len({rest for _, rest in flat}) < len(flat)  # as A of trainA and testA
    if repeat or not flat and all(folders(root / name) for name in likely):
        raise BadInput(
            f"{root}: {known(likely)} look like splits; name them train, val and test, with the folders of "
            "classes just below"
        )


def check_same(root: Path, classes: int | None) -> None:
    """Raise BadInput where most folders below those of a root are in several: either may be the classes.

    classes: how many there are, if that is stated.
    """
    inside = {
        folder.name: {below.name for below in folders(folder) if images(below)}
        for folder in folders(root)
        if not own_images(folder)
    }
    often = Counter(name for names in inside.values() for name in names)
    shared = sorted(name for name, number in often.items() if number > 1)
    if len(shared) < 2 or 2 * len(shared) < len(often) or classes == len(folders(root)):
        return
    above = [name for name, names in inside.items() if not names.isdisjoint(shared)]
    splits = all(split_in(name) for name in shared)
    raise BadInput(
        f"{root}: the folders {few(shared)} are in each of {few(above)}, so that either may be the classes; "
        "put the folders of classes in train, val and test"
        + ("" if splits else f", or state classes: {len(folders(root))} in its row for {few(above)}")
    )


def split_in(name: str) -> str | None:
    """The split that a word of a folder's name is, as of seg_train and trainA."""
    return next((SPLITS[word] for word in words_of(name) if word in SPLITS), None)


def rest_of(name: str) -> str:
    """A folder's name without words that are splits."""
    return " ".join(word for word in words_of(name) if word not in SPLITS)


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters."""
    return [word.lower() for word in BREAK.split(name)]


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
    parts = enumerate(file.relative_to(root).parts[:-1])
    return next((part for depth, part in parts if is_aside(part, below=depth > 0)), None)


def is_aside(name: str, *, below: bool = False) -> bool:
    """Whether a folder is one that a system or a program made: thumbnails, deleted files, metadata.

    below: whether it is in the folder of a class.
    """
    return name.lower() in (ASIDE | BELOW if below else ASIDE) or name.startswith("@")


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
    """The files anywhere below a folder, sorted by path. aside: also of folders that a system made."""
    return sorted(Path(at, name) for at, names in walked(folder, aside=aside) for name in names)


def walked(folder: Path, *, aside: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Each folder from this one down, through links, and the names of its files; nothing that is hidden."""
    seen = {*map(str, folder.resolve().parents)}  # a link to these would lead to other classes
    for at, below, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        below[:] = [] if real in seen else [name for name in below if visible(name, aside)]  # links may loop
        if real not in seen:
            yield at, [name for name in names if name[0] != "."]
        seen.add(real)


def states(root: Path) -> list[tuple[str, int, int]]:
    """The path below a root, size and time of each image in its folders, sorted; 0 for a link to nothing.

    Times are in whole seconds, as archives keep them.
    """
    found, endings = [], (*ENDINGS,)
    for at, names in (each for folder in folders(root) for each in walked(folder)):
        below = os.path.relpath(at, root)
        for name in names:
            if name.lower().endswith(endings):
                size, time = size_and_time(f"{at}/{name}")
                found.append((f"{below}/{name}", size, time))
    return sorted(found)


def size_and_time(file: str) -> tuple[int, int]:
    """The size of a file in bytes, and its time in whole seconds."""
    try:
        about = os.stat(file)
    except FileNotFoundError:
        return 0, 0
    return about.st_size, int(about.st_mtime)


def visible(name: str, aside: bool) -> bool:
    """Whether a folder is looked into."""
    return name[0] != "." and (aside or not is_aside(name, below=True))


def readable(found: list[Path]) -> list[Path]:
    """The files themselves; raises BadInput for names that a table cannot hold or a message cannot show."""
    if bad := [printable(str(file)) for file in found if unreadable(str(file))]:
        raise BadInput(
            f"{counted(len(bad), 'name')} of images with control characters, or bytes that are no UTF-8: "
            f"{few(bad, shown=3)}; rename them"
        )
    return found


def unreadable(name: str) -> bool:
    """Whether a name has control characters, or bytes that are not UTF-8 (lone surrogates in Python)."""
    return any(category(character) in ("Cc", "Cs") for character in name)


def printable(name: str) -> str:
    """A name as a message can show it."""
    return repr(name) if unreadable(name) else name
