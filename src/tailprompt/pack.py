"""Pack raw data into the arrays that pre-training reads.

`python -m tailprompt.pack --recipe JSON --data PATH [--tokenizer FOLDER] --out FOLDER` writes train.bin and
held_out.bin for text (token ids as uint16, with a separator after each document), and train.npz and
held_out.npz for images (pixels, labels). With `parts` in the recipe the training text is in train-1.bin,
train-2.bin and so on, among which its documents are dealt.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tailprompt.data.corpus import is_held_out, kept, named_files, part_of
from tailprompt.errors import BadInput, counted, stage
from tailprompt.files import asked_of, json_option, sha256, whole, write_json
from tailprompt.machine.progress import shown
from tailprompt.plan.digests import check_corpora, digest_of, told_apart
from tailprompt.pretraining import labelled
from tailprompt.pretraining.folders import packed_in, tokenizer_in
from tailprompt.seals import check_sealed, seal

TOGETHER = 1000  # documents encoded at a time


def pack_text(recipe: dict, corpora: list[Path], tokenizer: Path, folder: Path) -> dict:
    """Write the token ids of the corpora, a stream held out and one or more to train on; returns the counts.

    Raises BadInput if the tokenizer has more than 2^16 tokens, or a stream is shorter than one row.
    """
    from transformers import AutoTokenizer

    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    words = AutoTokenizer.from_pretrained(tokenizer)
    if len(words) > 2**16:
        raise BadInput(
            f"tokenizer {tokenizer}: {counted(len(words), 'token')}; at most {2**16} can be packed"
        )
    end = words.eos_token_id if words.sep_token_id is None else words.sep_token_id
    parts, number = training_parts(recipe), 0
    tokens = dict.fromkeys([*parts, "held_out"], 0)
    documents = chain.from_iterable(kept(corpus, recipe["scripts"]) for corpus in corpora)
    with ExitStack() as stack:
        files = {name: opened(stack, folder / f"{name}.bin") for name in tokens}
        for number, (document, ids) in enumerate(encoded(documents, words), 1):  # noqa: B007
            out = is_held_out(document, recipe["held_out"])
            name = "held_out" if out else parts[part_of(document, len(parts)) - 1]
            np.asarray([*ids, end], np.uint16).tofile(files[name])
            tokens[name] += len(ids) + 1
    if short := [name for name, count in tokens.items() if count <= recipe["length"]]:
        raise BadInput(
            f"{named_files(corpora)}: {tokens[short[0]]} tokens for {short[0]} are not one row of "
            f"{recipe['length']}; name a larger corpus or raise held_out"
        )
    held = tokens.pop("held_out")
    counts = {"documents": number, "train": sum(tokens.values()), "held_out": held}
    return {**counts, "parts": tokens} if "parts" in recipe else counts


def training_parts(recipe: dict) -> list[str]:
    """The names of the streams for training: train, or train-1, train-2 and so on with `parts`."""
    return [f"train-{n}" for n in range(1, recipe["parts"] + 1)] if "parts" in recipe else ["train"]


def opened(stack: ExitStack, path: Path) -> BinaryIO:
    """A file to write, which gets its name when the stack closes without an error."""
    return stack.enter_context(open(stack.enter_context(whole(path)), "wb"))


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
        help="scripts, held_out, length and parts (text) or pixels and held_out (images) of a recipe in "
        'config/pretraining.yaml, as {"pixels": 64, "held_out": 0.01}',
    )
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        type=Path,
        metavar="PATH",
        help="one or more corpora, or a folder of images",
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="for text: folder of the tokenizer")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="folder for the arrays")
    options = parser.parse_args()
    check_sealed(*options.data, *tokenizer_in(options.tokenizer), digest=digest_of)
    if options.tokenizer:
        recipe = json_option(options.recipe, "--recipe", "scripts", "held_out", "length")
        counts = pack_text(recipe, options.data, options.tokenizer, options.out)
    else:
        recipe = json_option(options.recipe, "--recipe", "pixels", "held_out")
        (source,) = options.data
        counts = pack_images(recipe, source, options.out)
    tables = [file for source in options.data for file in tables_of(source)]
    check_corpora(asked_of(options.recipe).get("corpus"), tables)
    digests = {name: sha256(file) for name, file in told_apart(tables).items()}
    write_json(options.out / "pack.json", {**counts, "sha256": digests})
    for file in packed_in(options.out):
        seal(file)


def tables_of(source: Path) -> list[Path]:
    """The corpus, or the Parquet files in a folder of images. Single images are too many to list."""
    return [source] if source.is_file() else sorted(source.glob("*.parquet"))


if __name__ == "__main__":
    stage(main)
