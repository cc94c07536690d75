"""Pack raw data into the arrays that pre-training reads.

`python -m tailprompt.pack --recipe JSON --data PATH [--tokenizer FOLDER] --out FOLDER` writes train.bin and
held_out.bin for text (token ids as uint16, with a separator after each document), and train.npz and
held_out.npz for images (pixels, labels).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from tailprompt.data.corpus import is_held_out, kept
from tailprompt.errors import BadInput, stage
from tailprompt.files import json_option, sha256, whole, write_json
from tailprompt.pretraining import labelled
from tailprompt.progress import shown

TOGETHER = 1000  # documents encoded at a time


def pack_text(recipe: dict, corpus: Path, tokenizer: Path, folder: Path) -> dict:
    """Write the token ids of the corpus, one stream for training and one held out; returns the counts.

    Raises BadInput if the tokenizer has more than 2^16 tokens, or a stream is shorter than one row.
    """
    from transformers import AutoTokenizer

    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    words = AutoTokenizer.from_pretrained(tokenizer)
    if len(words) > 2**16:
        raise BadInput(f"tokenizer {tokenizer}: {len(words)} tokens; at most {2**16} can be packed")
    end = words.eos_token_id if words.sep_token_id is None else words.sep_token_id
    counts = {"documents": 0, "train": 0, "held_out": 0}
    with whole(folder / "train.bin") as train, whole(folder / "held_out.bin") as held:
        with open(train, "wb") as train_file, open(held, "wb") as held_file:
            for document, ids in encoded(kept(corpus, recipe["scripts"]), words):
                out = is_held_out(document, recipe["held_out"])
                np.asarray([*ids, end], np.uint16).tofile(held_file if out else train_file)
                counts["held_out" if out else "train"] += len(ids) + 1
                counts["documents"] += 1
    short = [split for split in ("train", "held_out") if counts[split] <= recipe["length"]]
    if short:
        raise BadInput(
            f"corpus {corpus}: {counts[short[0]]} tokens for {short[0]} are not one row of "
            f"{recipe['length']}; name a larger corpus or raise held_out"
        )
    return counts


def encoded(documents: Iterator[list[str]], words) -> Iterator[tuple[list[str], list[int]]]:
    """Each document with its token ids, encoded many documents at a time."""
    done = 0
    with shown("pack", total=None, unit="document") as show:
        while group := list(islice(documents, TOGETHER)):
            texts = [" ".join(document) for document in group]
            ids = words(texts, add_special_tokens=False, split_special_tokens=True, verbose=False)
            yield from zip(group, ids["input_ids"], strict=True)
            show(done := done + len(group))


def pack_images(recipe: dict, source: Path, folder: Path) -> dict:
    """Write the images of `source` and their labels; returns the counts.

    Pixels are uint8 (images, height, width, 3) at the recipe's size.
    """
    splits, classes = labelled.read(source, size=recipe["pixels"], held_out=recipe["held_out"])
    for split, (pixels, labels) in splits.items():
        with whole(folder / f"{split}.npz") as temporary, open(temporary, "wb") as file:
            np.savez(file, pixels=pixels, labels=labels)
    return {"classes": classes, **{split: len(labels) for split, (_, labels) in splits.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt pack", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--recipe",
        required=True,
        metavar="JSON|FILE",
        help="scripts, held_out and length (text) or pixels and held_out (images) of a recipe in "
        'config/pretraining.yaml, as {"pixels": 64, "held_out": 0.01}',
    )
    parser.add_argument(
        "--data", required=True, type=Path, metavar="PATH", help="the corpus, or the folder of images"
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="for text: folder of the tokenizer")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="folder for the arrays")
    options = parser.parse_args()
    if options.tokenizer:
        recipe = json_option(options.recipe, "--recipe", "scripts", "held_out", "length")
        counts = pack_text(recipe, options.data, options.tokenizer, options.out)
    else:
        recipe = json_option(options.recipe, "--recipe", "pixels", "held_out")
        counts = pack_images(recipe, options.data, options.out)
    digests = {file.name: sha256(file) for file in tables_of(options.data)}
    write_json(options.out / "pack.json", {**counts, "sha256": digests})


def tables_of(source: Path) -> list[Path]:
    """The corpus, or the Parquet files in a folder of images. Single images are too many to list."""
    return [source] if source.is_file() else sorted(source.glob("*.parquet"))


if __name__ == "__main__":
    stage(main)
