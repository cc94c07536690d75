"""The files in the folder of a backbone: weights, configuration, tokenizer. No torch: the plan asks too."""

from __future__ import annotations

import os
from pathlib import Path

from tailprompt.errors import BadInput, known
from tailprompt.files import keyed, read_json

TYPES = {  # model_type in a config.json, by family: those whose layers have the family's names
    "bert": ("bert", "big_bird", "megatron-bert"),
    "roberta": ("roberta", "camembert", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    "t5": ("t5", "mt5"),
    "deberta": ("deberta",),
    "deberta-v2": ("deberta-v2",),
    "vit": (None,),  # timm's, which has an architecture instead
}
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"  # of the weights, in one file or several
RECORD = "pretraining.json"  # of a checkpoint that pre-training made
INDEXES = (INDEX, "pytorch_model.bin.index.json")
FILES = [
    "config.json",
    WHOLE,
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    *INDEXES,
    "model-*.safetensors",
    "pytorch_model*.bin",
    "special_tokens_map.json",  # this and what follows transformers reads beside the others
    "added_tokens.json",
    "tokenizer.*.json",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "adapter_config.json",
    "adapter_model.*",
]
OWN = {"deberta": ["vocab.json"], "deberta-v2": ["spm.model"]}  # of a family, beside them


def names_of(family: str = "") -> list[str]:
    """The files that a backbone of a family may have (by default one without files of its own)."""
    return [*FILES, *OWN.get(family, [])]


def files_in(folder: Path, family: str = "") -> dict[str, Path]:
    """The files that a backbone of a family has in its folder, and those that an index there names, by name.

    Raises BadInput for a damaged index.
    """
    files = [file for name in names_of(family) for file in folder.glob(name)]
    files += [folder / name for index in INDEXES for name in indexed(folder / index)]
    return {os.path.relpath(file, folder): file for file in sorted({*files}) if file.is_file()}


def indexed(index: Path) -> set[str]:
    """The names of the files that an index names; none without the index."""
    return {*map(str, read_json(index, "weight_map")["weight_map"].values())} if index.is_file() else set()


def weights_in(folder: Path) -> list[Path]:
    """The files that hold the weights in a folder: those that an index names, or else model.safetensors.

    Raises BadInput, with its name, for one that is missing.
    """
    named = {WHOLE} if (folder / WHOLE).is_file() else indexed(folder / INDEX) or {WHOLE}
    files = [folder / name for name in sorted(named)]
    if absent := [file.name for file in files if not file.is_file()]:
        what = anew(folder) if is_made(folder) else "bring the files of its weights"
        raise BadInput(f"backbone folder {folder}: {known(absent)} not found; {what}")
    return files


def check_complete(row: dict, root: Path = Path(".")) -> None:
    """Raise BadInput if a file is missing from the folder of a backbone's row."""
    needed = FILES[: 2 if row["family"] == "vit" else 3]
    folder = root / row["path"]
    missing = [file for file in needed if not (folder / file).is_file()]
    if WHOLE in missing and (folder / INDEX).is_file() and row["family"] != "vit":
        missing.remove(WHOLE)
        weights_in(folder)
    if missing:
        folder = Path(row["path"])
        what = anew(folder) if is_made(root / folder) else f"it needs {', '.join(needed)}"
        raise BadInput(f"backbone folder {folder}: {', '.join(missing)} not found; {what}")


def is_made(folder: Path) -> bool:
    """Whether pre-training made the checkpoint in a folder, and not elsewhere."""
    return folder.parent.name == "pretraining" and (folder / RECORD).is_file()


def anew(folder: Path) -> str:
    """What to do about a damaged checkpoint that pre-training made here."""
    return f"run snakemake again, with {folder / RECORD} as its target if nothing trains, which makes it anew"


def check_family(row: dict, root: Path = Path(".")) -> None:
    """Raise BadInput if the config.json of a backbone is of another family than its row says.

    A configuration that cannot be read is not judged.
    """
    file = root / row["path"] / "config.json"
    try:
        stated = keyed(read_json(file), file)
    except BadInput:
        return
    found, allowed = stated.get("model_type"), TYPES.get(row["family"], ())
    if found is None and "architecture" not in stated:
        return
    if allowed and found not in allowed:
        says = f"model_type {found}" if found else f"architecture {stated['architecture']} (of timm)"
        of = [name for name, types in TYPES.items() if found in types]
        raise BadInput(
            f"backbone folder {row['path']}: its config.json has {says}, but its row says family: "
            f"{row['family']}; {f'say family: {of[0]}' if of else f'known: {known(TYPES)}'}"
        )
