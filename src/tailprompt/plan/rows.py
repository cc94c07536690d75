"""The rows of data sets, backbones and recipes in the configuration, by name, and what they say."""

from __future__ import annotations

import json
from math import inf

from tailprompt.errors import BadInput, known, named
from tailprompt.plan.points import parse

# the least value of each, in the order in which a name gives them
CUTS = {"shots": 1, "total": 1, "imbalance": 1, "train": 1, "dev": 1, "test": 1, "sample": 0}
WAYS = {"shots", "total", "imbalance", "train"}  # ways to cut the training rows, of which a cut takes one
FORMS = {  # loader -> form of the texts that it reads; other loaders read any
    **dict.fromkeys(("msra", "next_sentence_pair", "wsc", "multirc", "record", "squad"), "spc"),
    **dict.fromkeys(("race", "c3", "copa", "next_sentence_choice", "unified_choice"), "mcc"),
}
COME = {"spc": "in pairs", "mcc": "with options"}


def dataset_row(config: dict, dataset: str) -> dict:
    """The row of a data set with its cut (`shots`, `total`, `imbalance`, `train`, `dev`, `test`, `sample`).

    Raises BadInput if the data set is unknown or the cut malformed.
    """
    base, cut = parse(dataset)
    row = named(config["datasets"], base, "data set")
    for key, value in cut.items():
        least, kinds = named(CUTS, key, f"cut of '{base}',"), (int, float) if key == "imbalance" else (int,)
        if type(value) not in kinds or not least <= value < inf:
            of = "a number" if key == "imbalance" else "a whole number"
            raise BadInput(f"'{dataset}': {key} must be {of} from {least}, not {json.dumps(value)}")
    if cut and len(WAYS & cut.keys()) > 1 or cut.keys() == {"sample"}:
        raise BadInput(
            f"'{dataset}': a cut takes one of {known(WAYS)} at most, dev and test with it or alone, "
            "and sample beside any"
        )
    ordered = [(key, cut[key]) for key in CUTS if key in cut]
    plain = ",".join(f"{key}={int(value) if value == int(value) else value}" for key, value in ordered)
    if cut and dataset != f"{base}@{plain}":
        raise BadInput(f"'{dataset}' is written '{base}@{plain}', so that one cut has one name")
    return {
        "title": base,
        **row,
        **read_as(config, row),
        **corpus_path(config, row),
        "name": base,
        "cut": cut,
    }


def read_as(config: dict, row: dict) -> dict:
    """How the parts of joined sets are read, which are read alike."""
    joins = row.get("joins")
    return {"loader": named(config["datasets"], joins[0], "data set").get("loader", "table")} if joins else {}


def parts_of(config: dict, dataset: str) -> list[str]:
    """The data sets that a joined one joins, with the cut of that; none of other data sets."""
    base, at, cut = dataset.partition("@")
    return [f"{part}{at}{cut}" for part in named(config["datasets"], base, "data set").get("joins", ())]


def corpus_path(config: dict, row: dict) -> dict:
    """The path of the corpus that a data set is made from, if the scale names it."""
    path = (config.get("corpora") or {}).get(row.get("corpus"))
    return {"path": path} if path else {}


def backbone_row(config: dict, name: str) -> dict:
    """The keys of a backbone's row that loading needs; the path of a recipe is where this scale makes it."""
    row = named(config["backbones"], name, "backbone")
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("megabytes", "note", "settings", "recipe", "title", "cards")
    }
    return {**kept, "path": made_in(config, row["recipe"])} if "recipe" in row else kept


def cards_of(config: dict, backbone: str) -> int:
    """The number of GPUs that a job with this backbone asks for; it takes all if there are fewer."""
    return named(config["backbones"], backbone, "backbone").get("cards", 1)


def made_in(config: dict, recipe: str) -> str:
    """The folder of a checkpoint that this scale makes from a recipe."""
    return f"results/{config['scale']}/pretraining/{recipe}"


def recipe_row(config: dict, recipe: str) -> dict:
    """A recipe of `pretraining`, without the texts of its model card."""
    row = named(config["pretraining"], recipe, "recipe of pretraining")
    return {key: value for key, value in row.items() if key != "card"}


def backbone_of(config: dict, protocol: str, dataset: str, method: str | None = None) -> str:
    """The protocol's backbone for the language of a data set.

    A method with `backbone: lm` takes the one for `en-lm` if the language is en, and with the name of a
    backbone that one. Raises BadInput if the protocol has none.
    """
    language = dataset_row(config, dataset)["language"]
    if method is not None:
        variant = named(config["methods"], parse(method)[0], "method").get("backbone")
        if variant in config["backbones"]:
            return variant
        language = f"{language}-{variant}" if variant else language
    backbones = config["protocols"][protocol]["backbones"]
    if language not in backbones:
        raise BadInput(
            f"protocols.{protocol}.backbones has none for '{language}', the language of data set "
            f"'{dataset}'; known: {known(backbones)}"
        )
    return backbones[language]


def kind_of(row: dict) -> str:
    """What the examples of a data set are: text or image."""
    return "image" if row["language"] == "image" else "text"


def form_of(row: dict) -> str:
    """The form of a data set's texts: ssc (single sentence), spc (sentence pair) or mcc (multiple choice).

    The abbreviations are PPT's. Raises BadInput if the row's `form` contradicts its columns or loader.
    """
    columns = columns_of(row)
    pair = "spc" if "pair" in columns else FORMS.get(row.get("loader"))
    implied = "mcc" if "choices" in columns else pair
    stated = row.get("form", implied or "ssc")
    if implied and stated != implied:
        raise BadInput(
            f"data set '{row['name']}': its texts come {COME[implied]}, so its form is {implied}, not "
            f"{stated}; correct form in its row, or leave it out"
        )
    if stated == "spc" and not implied and is_table(row):
        raise BadInput(
            f"data set '{row['name']}': form spc is of pairs; name the column: columns: {{pair: ...}}"
        )
    return stated


def columns_of(row: dict) -> set[str]:
    """The fields that a data set's row reads from named columns of its files."""
    files = [entry for entry in row.get("files", {}).values() if isinstance(entry, dict)]
    return {key for part in (row, *files) for key in part.get("columns", {})}


def has_tags(row: dict) -> bool:
    """Whether the words of a data set have tags."""
    return row.get("loader") in ("tags", "roles")


def tested_by(config: dict, dataset: str) -> list[str]:
    """The data set whose runs a data set of tags tests, and which numbers its types; none for others."""
    row = dataset_row(config, dataset)
    return [row["trained_on"]] if "trained_on" in row and has_tags(row) else []


def has_passages(row: dict) -> bool:
    """Whether the answers of a data set are pieces of its second texts."""
    return row.get("loader") == "squad"


def is_table(row: dict) -> bool:
    """Whether a data set is read from tables, in which only the columns that its row names count."""
    return row.get("loader", "table") == "table"
