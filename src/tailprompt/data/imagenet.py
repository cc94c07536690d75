"""Test sets of ImageNet's classes under another distribution (LPT, Tables 6 and 16).

`accepted` lists the ImageNet class ids, of 1,000, that are correct for an image; its label is the first of
them. Classes are named by their WordNet ids, in the order of the class ids. Images without such a class are
left out and counted.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from tailprompt.data.folders import folders, images
from tailprompt.data.listings import CONTENT, Listing, rooted
from tailprompt.errors import BadInput, counted, few
from tailprompt.files import read_json, reading


def wordnet_folders(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """A folder for each class, named by its WordNet id: ImageNet-Sketch, -A and -R."""
    number = {name: c for c, name in enumerate(synsets())}
    below = {folder.name: folder for folder in folders(rooted(root, row))}
    strange = [name for name in below if name not in number]
    if strange:
        raise BadInput(f"'{row['name']}': {root} has folders that are no class of ImageNet: {few(strange)}")
    return accepting(root, {folder: [number[name]] for name, folder in below.items()})


def numbered_folders(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """A folder for each class, named by its class id: ImageNet-V2."""
    below = folders(rooted(root, row))
    strange = [folder.name for folder in below if not (folder.name.isdecimal() and int(folder.name) < 1000)]
    if strange:
        raise BadInput(f"'{row['name']}': {root} has folders that are no number below 1000: {few(strange)}")
    return accepting(root, {folder: [int(folder.name)] for folder in below})


def real(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """ImageNet's validation images with all their correct labels (Beyer et al. 2020).

    Images without a correct label are left out, as by the authors.
    """
    accepted = json.loads(shipped("imagenet_real_labels.json").read_text("utf-8"))
    files = {file.stem: file for file in images(rooted(root, row))}
    names = [f"ILSVRC2012_val_{number:08d}" for number in range(1, len(accepted) + 1)]
    absent = [name for name, right in zip(names, accepted, strict=True) if right and name not in files]
    if absent:
        raise BadInput(f"'{row['name']}': {root} lacks {counted(len(absent), 'image')}: {few(absent)}")
    return listing(root, {files.get(n, Path(n)): right for n, right in zip(names, accepted, strict=True)})


def objectnet(paths: dict[str, Path], row: dict, root: Path | None) -> Listing:
    """ObjectNet's images of classes that are in ImageNet, by its own `mappings` (Barbu et al. 2019)."""
    mappings = rooted(root, row) / "mappings"
    ids = {line: int(c) for c, line in read_json(mappings / "pytorch_to_imagenet_2012_id.json").items()}
    with reading(mappings / "imagenet_to_label_2012_v2"):
        names = (mappings / "imagenet_to_label_2012_v2").read_text("utf-8").splitlines()
    number = {name.strip(): ids[line] for line, name in enumerate(names) if line in ids}
    shared = read_json(mappings / "objectnet_to_imagenet_1k.json")
    called = read_json(mappings / "folder_to_objectnet_label.json")
    with reading(mappings / "objectnet_to_imagenet_1k.json"):
        right = {
            folder: [number[name] for name in shared[label].split("; ")]
            for folder, label in called.items()
            if label in shared
        }
    return accepting(root, {folder: right.get(folder.name, []) for folder in folders(root / "images")})


def accepting(root: Path, accepted: dict[Path, list[int]]) -> Listing:
    """The images of each folder, with the class ids that are correct for all of them."""
    return listing(root, {file: right for folder, right in accepted.items() for file in images(folder)})


def listing(root: Path, accepted: dict[Path, list[int]]) -> Listing:
    """A test split of the files that have a class."""
    classes = synsets()
    rows = [
        (str(file.relative_to(root)), "test", classes[right[0]], right, file)
        for file, right in accepted.items()
        if right
    ]
    if not rows:
        raise BadInput(f"{root}: no image of a class of ImageNet is there")
    table = pd.DataFrame(rows, columns=["id", "split", "label", "accepted", CONTENT])
    return Listing(table, classes, left_out=len(accepted) - len(rows))


def synsets() -> list[str]:
    """WordNet ids of ImageNet's 1,000 classes, in the order of the class ids."""
    return shipped("imagenet_synsets.txt").read_text("utf-8").split()


def shipped(name: str) -> Path:
    """A file that ships with timm, found without importing timm."""
    return Path(find_spec("timm").submodule_search_locations[0], "data", "_info", name)


LISTINGS = {
    "wordnet_folders": wordnet_folders,
    "numbered_folders": numbered_folders,
    "imagenet_real": real,
    "objectnet": objectnet,
}
