"""Listings of a data set's images: one row per image, with id, label (class name), split and content.

A loader lists image files without reading them. Missing splits are made later, as those of texts are. Classes
are in id order: the source's own order, or otherwise that of `labels.in_order`.
"""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath

import numpy as np
import pandas as pd

from tailprompt.data.columns import SPLITS
from tailprompt.data.contents import PLACE, decoded, lines_in
from tailprompt.data.folders import check_same, check_splits, folders, images, own_images, skipped
from tailprompt.data.labels import merged
from tailprompt.data.pictures import ENDINGS
from tailprompt.errors import BadInput, counted, few, known
from tailprompt.files import reading

CONTENT = "content"  # bytes, a path or pixels


@dataclass(frozen=True)
class Listing:
    """The images of a data set.

    table: id, label, content, and if known split, place and accepted (correct class ids). classes: names in
    id order, if the source states them. left_out: number of images that are not used. skipped: number of
    other files in a user's folder, by ending. told: what a user should know of how labels were taken.
    """

    table: pd.DataFrame
    classes: list[str] | None = None
    left_out: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


def cifar100(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """CIFAR-100 (Krizhevsky 2009): the public archive, or a Parquet file of images for each split."""
    if "all" not in paths:
        parts = [table(path, label="fine_label").assign(split=split) for split, path in paths.items()]
        return Listing(pd.concat(parts, ignore_index=True))
    with reading(paths["all"]), tarfile.open(paths["all"]) as archive:
        parts = {
            name: Numbers(archive.extractfile(f"cifar-100-python/{name}"), encoding="latin1").load()
            for name in ("meta", "train", "test")
        }
    classes = list(parts["meta"]["fine_label_names"])
    rows = [
        (f"{split}:{number}", split, classes[label], pixels.reshape(3, 32, 32).transpose(1, 2, 0))
        for split in ("train", "test")
        for number, (label, pixels) in enumerate(
            zip(parts[split]["fine_labels"], parts[split]["data"], strict=True)
        )
    ]
    return Listing(pd.DataFrame(rows, columns=["id", "split", "label", CONTENT]), classes)


class Numbers(pickle.Unpickler):
    """Reads pickles of plain values and numpy arrays only, so that no code can run."""

    def find_class(self, module: str, name: str):
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np._core.multiarray._reconstruct
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of CIFAR-100")


def table(path: Path, *, image: str = "image", label: str = "label") -> pd.DataFrame:
    """Encoded images and labels of a Parquet file; the id of a row is its place."""
    try:
        frame = pd.read_parquet(path, columns=[image, label])
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: needs the columns {image} and {label} ({error})") from None
    contents = [value["bytes"] if isinstance(value, dict) else value for value in frame[image]]
    places = [f"{path.name}:{number}" for number in range(1, len(frame) + 1)]
    return pd.DataFrame({"id": places, "label": frame[label].astype(str), CONTENT: contents})


def image_lists(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """Lists with `path label` on each line, one for each split or one for all; paths are below the root.

    Labels that are numbers are class ids. If each class has a folder of its own, that names the class.
    """
    root, parts = rooted(root, row), []
    for split, path in paths.items():
        part = list_lines(path)
        parts.append(part if split == "all" else part.assign(split=SPLITS[split]))
    listed = pd.concat(parts, ignore_index=True)
    listed["id"] = listed["id"].map(normpath)  # ./a.png is a.png
    listed[CONTENT] = [root / name for name in listed["id"]]
    number = listed["label"].str.fullmatch(r"-?\d{1,9}")
    if not number.any():
        listed["label"], told = merged(listed["label"])
        return Listing(listed, told=told + strays(listed))
    if not number.all():
        odd = listed[~number]
        wrong = few([f"{label} ({place})" for label, place in zip(odd["label"], odd[PLACE], strict=True)])
        raise BadInput(
            f"'{row['name']}': {counted(len(odd), 'label', 'are')} no whole number, as others are: "
            f"{wrong}; a list has class ids from 0, or names that are no numbers"
        )
    labels = listed["label"].astype(int)
    classes = row.get("classes") or labels.max() + 1
    if classes > len(listed):
        label = f"label {labels.max()} ({listed[PLACE][labels.idxmax()]})"
        said = f"classes: {classes} in its row" if "classes" in row else label
        raise BadInput(
            f"'{row['name']}': {said} is more than its {counted(len(listed), 'image')} can have; class ids "
            "go from 0 to the number of classes less 1"
        )
    return called(listed.assign(label=labels.astype(str)), [str(number) for number in range(classes)])


def called(listed: pd.DataFrame, numbers: list[str]) -> Listing:
    """The listing, with classes named by their folders if every class has a folder of its own."""
    parents = [Path(name).parent.name for name in listed["id"]]
    names = pd.DataFrame({"number": listed["label"], "name": parents}).drop_duplicates()
    alone = names["number"].is_unique and names["name"].is_unique
    if not alone or set(names["number"]) != set(numbers):
        return Listing(listed, numbers, told=strays(listed))
    return Listing(listed.assign(label=parents), list(names.set_index("number")["name"][numbers]))


def strays(listed: pd.DataFrame) -> list[str]:
    """A sentence about images whose folder holds another label, where folders are classes otherwise."""
    parents = listed["id"].map(lambda name: Path(name).parent.name)
    usual = listed["label"].groupby(parents).agg(lambda labels: labels.value_counts().index[0])
    stray = listed["label"] != parents.map(usual)
    if not 0 < stray.sum() <= len(listed) / 10 or not usual.is_unique:
        return []
    shown = few([f"{row.id} ({row.label})" for row in listed[stray].itertuples()], shown=3)
    return [f"{counted(stray.sum(), 'image', 'have')} a label that others in their folder have not: {shown}"]


def list_lines(path: Path) -> pd.DataFrame:
    """Path, label and place of each line that is not blank.

    The last blank divides them, or the last tab, after which a label may have blanks.
    """
    lines = [(n, line.strip()) for n, line in enumerate(lines_in(decoded(path)), 1) if line.strip()]
    fields = [(*divided(line), f"{path.name}:{n}") for n, line in lines]
    short = [field[-1] for field in fields if len(field) != 3]
    if short or not fields:
        what = (
            f"{counted(len(short), 'line', 'hold')} no path and label ({few(short)})"
            if short
            else "it has no lines"
        )
        raise BadInput(f"{path}: {what}; a line is relative/path and a label, with a blank between")
    return pd.DataFrame(fields, columns=["id", "label", PLACE])


def divided(line: str) -> list[str]:
    """A line at its last tab, or else at its last blank; a path may be Windows's."""
    name, *label = line.rsplit("\t" if "\t" in line else None, 1)
    return [name.strip().replace("\\", "/"), *(each.strip() for each in label)]


def image_folder(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """A folder for each class, with images anywhere below it; or train, val and test with such folders."""
    root = rooted(root, row)
    check_splits(root)
    halves = {folder.name: folder for folder in folders(root) if folder.name.lower() in SPLITS}
    classes = [folder.name for folder in folders(root) if folder.name not in halves]
    if classes and len({SPLITS[name.lower()] for name in halves}) > 1:
        raise BadInput(
            f"{root}: the folders {few(classes)} are beside {known(halves)}; a folder has classes, or train, "
            "val and test alone with the classes in them"
        )
    for parent in [root] if classes or not halves else halves.values():
        check_same(parent, row.get("classes"))
    if classes or not halves:
        listed = checked(folder_rows(root, root), [root])
    else:
        parts = [folder_rows(half, root).assign(split=SPLITS[name.lower()]) for name, half in halves.items()]
        listed = checked(pd.concat(parts, ignore_index=True), halves.values())
    listed["label"], told = merged(listed["label"])
    told += [
        line for parent in ([root] if classes or not halves else halves.values()) for line in together(parent)
    ]
    return Listing(listed, skipped=skipped(root, listed[CONTENT]), told=told)


def together(parent: Path) -> list[str]:
    """A sentence about classes whose images are all in several folders, which may be the classes."""
    inside = {each.name: [below.name for below in folders(each) if images(below)] for each in folders(parent)}
    held = [
        f"{name} ({few(names, shown=3)})"
        for name, names in inside.items()
        if len(names) > 1 and not own_images(parent / name)
    ]
    return [f"folders below a class are taken together: {few(held, shown=3)}"] if held else []


def checked(table: pd.DataFrame, parents: Iterable[Path]) -> pd.DataFrame:
    """The table itself; raises BadInput if a class has no image in any of the `parents`."""
    found = {below.name for parent in parents for below in folders(parent)}
    if empty := sorted(found - set(table["label"])):
        raise BadInput(
            f"{counted(len(empty), 'folder of a class', 'have')} no image: {few(empty)}; fill or remove "
            f"them, images end in {known(ENDINGS)}"
        )
    return table


def folder_rows(folder: Path, root: Path) -> pd.DataFrame:
    """The images of the classes in a folder; the id is the path below the root."""
    rows = [
        (str(file.relative_to(root)), below.name, file) for below in folders(folder) for file in images(below)
    ]
    if not rows:
        held = few([f"{ending} {number:,}" for ending, number in skipped(folder, ()).items()]) or "nothing"
        raise BadInput(
            f"{folder}: no folder of images for each class is there (in it is: {held}); put the images of "
            "each class in a folder of its name, and texts in a table, as a CSV of text and label"
        )
    return pd.DataFrame(rows, columns=["id", "label", CONTENT])


def rooted(root: Path | None, row: dict) -> Path:
    """The folder of the images; raises BadInput if it is not there."""
    if root is None:
        raise BadInput(
            f"'{row['name']}': its images are the user's to get; name their folder, root: DIR in "
            f"datasets.{row['name']}, or put it below data_dir as {row.get('folder', row['name'])}"
        )
    if not root.is_dir():
        raise BadInput(f"'{row['name']}': there is no folder {root}; correct its root, or data_dir")
    return root


def digits(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """1,797 handwritten digits of 8 x 8 pixels that ship with scikit-learn (Alpaydin and Kaynak 1998)."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = (found.images * (255 / 16)).round().astype(np.uint8)[..., None].repeat(3, axis=-1)
    ids = [f"digit-{number:04d}" for number in range(len(pixels))]
    return Listing(pd.DataFrame({"id": ids, "label": found.target.astype(str), CONTENT: list(pixels)}))


LISTINGS = {
    "cifar100": cifar100,
    "image_lists": image_lists,
    "image_folder": image_folder,
    "digits": digits,
}
