"""The inputs and parameters of the jobs that make a backbone: vocabulary, pack, pretrain, card."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import named
from tailprompt.model.folder import files_in
from tailprompt.plan.rows import made_in, recipe_row

LEARNED = ("vocabulary", "scripts", "held_out", "positions")  # keys of a recipe that its stages read
PACKED = ("scripts", "held_out", "length", "pixels")


def corpus_named(config: dict, key: str) -> str:
    """The file or folder of a key of `corpora`; if it is open, words for Snakemake to report as missing."""
    return (config.get("corpora") or {}).get(key) or f"corpora.{key} (this scale leaves it open: name it)"


def corpus(config: dict, recipe: str) -> str:
    """The raw data of a recipe, which the user names in `corpora`."""
    return corpus_named(config, recipe_row(config, recipe)["corpus"])


def shipped_start(config: dict, recipe: str) -> str | None:
    """The folder of the backbone that a recipe starts from, if that backbone ships; else None."""
    start = recipe_row(config, recipe).get("start")
    return config["backbones"].get(start, {}).get("path")


def base_of(config: dict, recipe: str) -> str:
    """The recipe whose vocabulary and packed data a recipe uses: its start, or itself."""
    shipped = shipped_start(config, recipe)
    return recipe if shipped else recipe_row(config, recipe).get("start", recipe)


def tokenizer(config: dict, recipe: str) -> str | list:
    """The tokenizer file of a recipe for text; [] for images."""
    if shipped := shipped_start(config, recipe):
        return f"{shipped}/tokenizer.json"
    base = base_of(config, recipe)
    if "vocabulary" not in recipe_row(config, base):
        return []
    return f"{made_in(config, base)}/vocabulary/tokenizer.json"


def packed(config: dict, recipe: str) -> str:
    """The folder with the packed data of a recipe."""
    return f"{made_in(config, base_of(config, recipe))}/packed"


def started_from(config: dict, recipe: str) -> str | list:
    """The checkpoint that a recipe starts from, which ships or is made by another recipe; [] for none."""
    start = recipe_row(config, recipe).get("start")
    folder = shipped_start(config, recipe) or (start and made_in(config, start))
    return f"{folder}/model.safetensors" if folder else []


def to_learn(config: dict, recipe: str) -> dict[str, str]:
    """The input files of learning a vocabulary."""
    return {"corpus": corpus(config, recipe)}


def to_pack(config: dict, recipe: str) -> dict[str, str | list]:
    """The input files of packing."""
    return {"data": corpus(config, recipe), "tokenizer": tokenizer(config, recipe)}


def to_pretrain(config: dict, recipe: str) -> dict[str, str | list]:
    """The input files of pre-training."""
    return {
        "packed": packed(config, recipe),
        "tokenizer": tokenizer(config, recipe),
        "start": started_from(config, recipe),
    }


def to_check(config: dict, backbone: str) -> dict[str, list]:
    """The input files of looking at a backbone."""
    return {"files": backbone_files(config, backbone)}


def part(config: dict, recipe: str, *, keys: tuple[str, ...] = ()) -> dict:
    """A recipe, or only those of `keys` that it has."""
    row = recipe_row(config, recipe)
    return {key: row[key] for key in keys or row if key in row}


def card_texts(config: dict, recipe: str) -> dict:
    """The texts of a recipe's model card."""
    return named(config["pretraining"], recipe, "recipe")["card"]


def backbone_files(config: dict, backbone: str) -> list[str]:
    """The checkpoint that a backbone's recipe makes, or the files in the backbone's own folder."""
    row = named(config["backbones"], backbone, "backbone")
    if "recipe" in row:
        return [f"{made_in(config, row['recipe'])}/model.safetensors"]
    return [str(file) for file in files_in(Path(row["path"]), row["family"])] if "path" in row else []
