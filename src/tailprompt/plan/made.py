"""What is asked of the jobs that make data and backbones, and whether what they made is that.

It stands in `results/<scale>/asked/<kind>/<name>.json`, as what a run is asked (`plan.asked`). A job that is
done leaves a copy in `results/<scale>/made`. What was made before there were such copies is believed.
"""

from __future__ import annotations

import json
from pathlib import Path

from tailprompt.plan.agreement import digest, read_words, tolerant
from tailprompt.plan.brought import corpus_in
from tailprompt.plan.digests import ORDER, digest_of, digest_of_images, digests, digests_in, told_apart
from tailprompt.plan.jobs import data, recipes
from tailprompt.plan.places import BUNDLED
from tailprompt.plan.points import parse
from tailprompt.plan.rows import backbone_row, parts_of, recipe_row, tested_by

HERE = Path(".")
IMAGES = "images_sha256"  # of what images are in a folder; the notes of older versions lack it
SAID = (  # keys of a data set's row that change what is said of its rows, or asked of runs, but no row
    "title note licence reported source template template_as_released max_length verbalizer threshold "
    "head_source many few joined_in"
).split()


def images(config: dict, dataset: str, root: Path = HERE) -> dict:
    """What decoding is asked: keys of the row, files, and what images are in its folder."""
    files = [root / file for file in data.user_files(config, dataset, root)]
    wanted = {"row": data.row_to_decode(config, dataset), "files": digests(files, root)}
    found = images_in_folder(config, dataset, root)
    return wanted | {IMAGES: found} if found else wanted


def images_in_folder(config: dict, dataset: str, root: Path) -> str | None:
    """The digest of paths, sizes and times of a data set's images; None without a folder of them.

    Of a folder that is not there any more it is that of when the job was done.
    """
    folder = data.image_folder(config, dataset)
    if folder is not None and not (root / folder).is_dir():
        note = root / f"results/{config['scale']}/made/images/{parse(dataset)[0]}.json"
        return (tolerant(note) or {}).get(IMAGES)
    return folder and digest_of_images((root / folder).absolute())


def annotated(config: dict, dataset: str, root: Path = HERE) -> dict:
    """What annotating is asked: keys of the row, the corpus and the model."""
    corpus, model = data.corpus(config, dataset), data.annotator(config, dataset)
    return {
        "row": data.row_to_annotate(config, dataset),
        "corpus": corpus_of(config, "annotated", dataset, corpus, root),
        "model": digests_in(root / model, root=root) if model else {},
    }


def table(config: dict, dataset: str, root: Path = HERE) -> dict:
    """What preparing is asked: the row, the files it names, its words, and what it is made from in turn."""
    row, words, first = data.prepared_row(config, dataset), data.verbalizer(config, dataset), None
    files = data.user_files(config, dataset, root)
    if row["language"] == "image":
        first = images(config, dataset, root)
    elif row.get("annotator") == "model":
        files, first = files[1:], annotated(config, dataset, root)
    return {
        "row": row,
        "files": digests([root / file for file in files if (root / file).is_file()], root),
        "words": read_words(root / words) if words else None,
        "first": first,
        "parts": {
            part: table(config, part, root)
            for part in [*parts_of(config, dataset), *tested_by(config, dataset)]
        },
    }


def collected(config: dict, key: str, root: Path = HERE) -> dict:
    """What collecting a text is asked: the row, which pins the commit."""
    return {"row": recipes.article_row(config, key)}


def corpora(config: dict, kind: str, recipe: str, root: Path) -> dict[str, str] | None:
    """Digests of the corpora of a recipe: of the user's files, and of what collecting the others is asked."""
    keys = recipes.corpus_keys(recipe_row(config, recipe))
    made = {key: digest(collected(config, key)) for key in keys if recipes.collected(config, key)}
    own = [recipes.corpus_named(config, key) for key in keys if key not in made]
    found = corpus_of(config, kind, recipe, own, root) if own else {}
    return in_order(found, made, keys, own) if found is not None else None


def in_order(found: dict[str, str], made: dict[str, str], keys: list[str], own: list[str]) -> dict[str, str]:
    """Digests of corpora, with their order unless it is the usual one: articles first, then files by name.

    found: of the user's files, in the order of `own`. made: of articles. keys: of all.
    """
    names = [name for name in found if name not in {*made, ORDER}]
    named, paths = dict(zip(dict.fromkeys(own), names, strict=False)), iter(own)
    order = [key if key in made else named.get(next(paths), "") for key in keys]
    usual = "" in order or len({*own}) < len(names) or order == [*sorted(made), *sorted(names)]
    return {**{name: found[name] for name in names}, **made, **({} if usual else {ORDER: ", ".join(order)})}


def vocabulary(config: dict, recipe: str, root: Path = HERE) -> dict:
    """What learning a vocabulary is asked: keys of the recipe, and the corpus."""
    told = recipes.part(config, recipe, keys=recipes.LEARNED)
    return {"recipe": told, "corpus": corpora(config, "vocabulary", recipe, root)}


def packed(config: dict, recipe: str, root: Path = HERE) -> dict:
    """What packing is asked: keys of the recipe, the corpus or images, and the vocabulary."""
    told = recipes.part(config, recipe, keys=recipes.PACKED)
    wanted = {"recipe": told, "corpus": corpora(config, "packed", recipe, root)}
    if recipes.shipped_start(config, recipe):
        return {**wanted, "tokenizer": digest_of(root / recipes.tokenizer(config, recipe), root)}
    learned = "vocabulary" in recipe_row(config, recipe)
    return {**wanted, "tokenizer": digest(vocabulary(config, recipe, root)) if learned else None}


def checkpoint(config: dict, recipe: str, root: Path = HERE) -> dict:
    """What pre-training is asked: the recipe, the packed data, and the checkpoint that it goes on from."""
    row = recipe_row(config, recipe)
    before, shipped = row.get("start"), recipes.shipped_start(config, recipe)
    start = weights(config, before, root) if shipped else before and checkpoint(config, before, root)
    return {
        "recipe": row,
        "packed": digest(packed(config, recipes.base_of(config, recipe), root)),
        "start": start and digest(start),
    }


def backbone(config: dict, name: str, root: Path = HERE) -> dict:
    """What looking at a backbone is asked: its row and its weights."""
    return {"row": backbone_row(config, name), "weights": weights(config, name, root)}


def weights(config: dict, backbone: str, root: Path = HERE) -> dict | None:
    """Digests of what a backbone's row does not pin: the files in its folder, or what its recipe is asked.

    None for a pinned revision.
    """
    row = config["backbones"][backbone]
    if "recipe" in row:
        return {"recipe": digest(checkpoint(config, row["recipe"], root))}
    if "path" not in row:
        return None
    return digests_in(root / row["path"], row["family"], root)


def corpus_of(config: dict, kind: str, name: str, corpus: str | list, root: Path) -> dict[str, str] | None:
    """Digests of a corpus, or of the tables in a folder of images: single images are too many to read.

    A text that was renamed has the name of when the job was done, as its content alone counts. Of a corpus
    that is not there any more they are those of when the job was done, here or where a bundle comes from;
    None if it never was, or if what is there of it was another then.
    """
    paths = [Path(path) for path in ([corpus] if isinstance(corpus, str) else corpus)]
    there = [path for path in paths if (root / path).exists()]
    files = [file for path in there for file in tables_in(path, root)]
    found = {name: digest_of(root / file, root) for name, file in told_apart(files).items()}
    results = root / "results" / config["scale"]
    told = [corpus_in(place / f"made/{kind}/{name}.json") for place in (results, results / BUNDLED)]
    notes, others = [corpus for corpus in told if corpus is not None], {*config.get("articles", {}), ORDER}
    if paths and len(there) == len(paths):
        own = [{name: told for name, told in each.items() if name not in others} for each in notes]
        texts = not any((root / path).is_dir() for path in paths)
        return next((each for each in own if texts and [*each.values()] == [*found.values()]), found)
    return next((each for each in notes if {*found.values()} <= {*each.values()}), None)


def tables_in(path: Path, root: Path) -> list[Path]:
    """A corpus, or the tables in a folder of images, as they are named below `root`."""
    folder = root / path
    return [path / file.name for file in sorted(folder.glob("*.parquet"))] if folder.is_dir() else [path]


def read_back(value):
    """A value as it reads back from JSON."""
    return json.loads(json.dumps(value))
