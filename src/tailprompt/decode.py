"""Decode all images of a data set into one array and a listing, which all of its cuts share.

python -m tailprompt.decode --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out NAME.npy

NAME.npy is uint8 [images, side, side, 3]. NAME.parquet beside it has the columns id, label (class name),
image (row of the array), digest (of the pixels), split where the source has splits, and accepted (class ids)
for a test set of ImageNet's classes. A faulty list or image is reported in one sentence before any training.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from tqdm import tqdm

from tailprompt import files, seals
from tailprompt.data import download as sources
from tailprompt.data import imagenet as shifted
from tailprompt.data import listings, preflight
from tailprompt.data import table as data
from tailprompt.data.folders import others
from tailprompt.data.labels import in_order
from tailprompt.data.listings import CONTENT
from tailprompt.data.pixels import check_space, damaged, filled
from tailprompt.data.places import image_root
from tailprompt.errors import BadInput, counted, named, stage
from tailprompt.machine.cpus import threads
from tailprompt.plan.digests import check_files, check_images, digest_of

LISTINGS = {**listings.LISTINGS, **shifted.LISTINGS}
SIDE = 256  # pixels of a row that states none
STATED = {"bits": "bits", "transparency": "transparency", "most_pixels": "most"}  # key of a row -> option
UPRIGHT = ("image_folder", "image_lists")  # loaders whose images are turned as their EXIF says, unless told


def decode(
    row: dict, paths: dict[str, Path], digests: dict[str, str], root: Path | None, out: Path, *, threads: int
) -> dict:
    """Write the array and the listing of a data set's row; returns the metadata of the listing.

    Raises BadInput with all faults of the list and of the images, and then writes nothing.
    """
    listing = named(LISTINGS, row["loader"], "loader of images")(paths, row, root)
    table, side = listing.table, row.get("side", SIDE)
    wrong = preflight.faults(listing, row)
    if wrong:  # reported at once, since decoding all images may take hours
        tqdm.write(f"'{row['name']}': {'; '.join(wrong)}; its images are looked at too before this ends")
    with files.whole(out) as array, files.whole(out.with_suffix(".parquet")) as temporary:
        check_space(out, len(table) * side**2 * 3)  # the files of killed processes are gone by now
        pixels = np.lib.format.open_memmap(array, "w+", np.uint8, (len(table), side, side, 3))
        options = {"side": side, "fit": row.get("fit", "crop"), "border": row.get("border", 0)}
        options["upright"] = row.get("upright", row["loader"] in UPRIGHT)
        options |= {key: row[name] for name, key in STATED.items() if name in row}
        done = filled(pixels, list(table[CONTENT]), options, threads, row["name"])
        if wrong := wrong + damaged(table, done):
            raise BadInput(f"'{row['name']}': {'; '.join(wrong)}")
        modes = Counter(mode for _, mode in done)
        check_bits(modes, row["name"])
        pixels.flush()
        about = {
            "classes": listing.classes or in_order(table["label"]),
            "sources": digests,
            "left_out": listing.left_out,
            "skipped": listing.skipped,
            **({"read": listing.told} if listing.told else {}),
            "decoded": options,
            "converted": {mode: modes[mode] for mode in sorted(modes) if mode != "RGB"},
        }
        columns = {"image": range(len(table)), "digest": [digest for digest, _ in done]}
        data.write_table(table.drop(columns=CONTENT).assign(**columns), temporary, about)
    seals.seal(out, out.with_suffix(".parquet"), digest=digest_of)
    return about


def check_bits(modes: Counter, name: str) -> None:
    """Raise BadInput where all images of 16 bits leave the upper ones unused: they would be black."""
    deep = [mode for mode in modes if mode.startswith("I;16")]
    if deep and all("in use" in mode for mode in deep):
        most = max(int(mode.split()[2]) for mode in deep)
        raise BadInput(
            f"'{name}': its images have 16 bits a pixel and use at most {most} of them; state bits: {most} "
            "in its row (or as many as the camera has), or bits: 16 if they are meant to be dark"
        )


def main() -> None:
    """Find or download the source files, decode the images, and print a summary."""
    parser = argparse.ArgumentParser(
        prog="tailprompt decode",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sources.add_options(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="the .npy file to write; the listing goes beside it (.parquet)",
    )
    parser.add_argument(
        "--threads", type=threads, default=1, help="images to decode in parallel (default: 1)"
    )
    options = parser.parse_args()
    row = files.json_option(options.dataset, "--dataset", "name", "loader")
    if options.out.suffix != ".npy":
        parser.error("--out must end in .npy")
    needs = bool({"files", "path"} & row.keys())
    where = {"data_dir": options.data_dir, "raw": options.raw, "lock": options.lock}
    paths, digests = sources.found(row, **where) if needs else ({}, {})
    asked = files.asked_of(options.dataset)
    check_files(asked.get("files"), sources.own(paths, options.raw))
    root = image_root(row, options.data_dir)
    check_images(asked.get("images_sha256"), root)
    about = decode(row, paths, digests, root, options.out, threads=options.threads)
    skipped = others(about["skipped"])
    print(
        f"{options.out}: {row['name']}, {counted(len(about['classes']), 'class')}, converted "
        f"{about['converted']}{skipped and f'; {skipped}'}"
    )


if __name__ == "__main__":
    stage(main)
