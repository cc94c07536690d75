"""The inputs and parameters of the jobs that make a backbone: vocabulary, pack, pretrain, card."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import named
from tailprompt.model.folder import INDEX, WHOLE, files_in
from tailprompt.plan.rows import made_in, recipe_row

LEARNED = ("vocabulary", "scripts", "held_out", "positions")  # keys of a recipe that its stages read
PACKED = ("scripts", "held_out", "length", "parts", "pixels")


def corpus_named(config: dict, key: str) -> str:
    """The file or folder of a key of `corpora`; if it is open, words for Snakemake to report as missing."""
    return (config.get("corpora") or {}).get(key) or f"corpora.{key} (this scale leaves it open: name it)"


def corpus_keys(row: dict) -> list[str]:
    """The keys of `corpora` that a recipe names."""
    return [row["corpus"]] if isinstance(row["corpus"], str) else row["corpus"]


def collected(config: dict, key: str) -> str | None:
    """The text that is made of the articles of a key of `corpora`; None for the user's own files."""
    return f"results/{config['scale']}/corpora/{key}.txt.gz" if key in config.get("articles", {}) else None


def corpora(config: dict, recipe: str) -> list[str]:
    """The raw data of a recipe: what the user names in `corpora`, and texts that are made of articles."""
    keys = corpus_keys(recipe_row(config, recipe))
    return [collected(config, key) or corpus_named(config, key) for key in keys]


def article_row(config: dict, key: str) -> dict:
    """The row of `articles` for a key of `corpora`."""
    return named(config.get("articles", {}), key, "articles")


def to_make(config: dict) -> list[str]:
    """The recipes whose corpora the scale names; all if it names none of any, so that it is told to."""
    told = config.get("corpora") or {}
    ready = [name for name, row in config["pretraining"].items() if all(map(told.get, corpus_keys(row)))]
    return ready or list(config["pretraining"])


def shipped_start(config: dict, recipe: str) -> str | None:
    """The folder of the backbone that a recipe starts from, if that backbone ships; else None."""
    start = recipe_row(config, recipe).get("start")
    return config["backbones"].get(start, {}).get("path")


def base_of(config: dict, recipe: str) -> str:
    """The recipe whose vocabulary and packed data a recipe uses: the first of its starts, or itself."""
    start = recipe_row(config, recipe).get("start")
    return recipe if start is None or shipped_start(config, recipe) else base_of(config, start)


def tokenizer(config: dict, recipe: str) -> str | list:
    """The tokenizer file of a recipe for text; [] for images."""
    if shipped := shipped_start(config, recipe):
        return f"{shipped}/tokenizer.json"
    base = base_of(config, recipe)
    if base != recipe:
        return tokenizer(config, base)
    if "vocabulary" not in recipe_row(config, base):
        return []
    return f"{made_in(config, base)}/vocabulary/tokenizer.json"


def packed(config: dict, recipe: str) -> str:
    """The folder with the packed data of a recipe."""
    return f"{made_in(config, base_of(config, recipe))}/packed"


def started_from(config: dict, recipe: str) -> str | list:
    """The checkpoint that a recipe starts from, which ships or is made by another recipe; [] for none."""
    start = recipe_row(config, recipe).get("start")
    if folder := shipped_start(config, recipe):
        return f"{folder}/{WHOLE}"
    return checkpoint(config, start) if start else []


def checkpoint(config: dict, recipe: str) -> str:
    """The file of weights that a recipe makes, or the index of several."""
    return f"{made_in(config, recipe)}/{INDEX if 'shards' in recipe_row(config, recipe) else WHOLE}"


def sharded(config: dict) -> list[str]:
    """The recipes whose weights are several files."""
    return [name for name, row in config["pretraining"].items() if "shards" in row]


def to_collect(config: dict, key: str) -> dict[str, str]:
    """The input of collecting a text: a clone of the repository, whose commit is pinned."""
    return {"repository": corpus_named(config, key)}


def to_learn(config: dict, recipe: str) -> dict[str, list]:
    """The input files of learning a vocabulary."""
    return {"corpus": corpora(config, recipe)}


def to_pack(config: dict, recipe: str) -> dict[str, str | list]:
    """The input files of packing."""
    return {"data": corpora(config, recipe), "tokenizer": tokenizer(config, recipe)}


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
        return [checkpoint(config, row["recipe"])]
    return list(map(str, files_in(Path(row["path"]), row["family"]).values())) if "path" in row else []
