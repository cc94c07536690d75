"""What the jobs of a data set take and are told: annotating, decoding, preparing."""

from __future__ import annotations

from pathlib import Path

from tailprompt.plan import blocks
from tailprompt.plan.jobs.recipes import corpus_named
from tailprompt.plan.points import parse
from tailprompt.plan.rows import dataset_row

DECODED = (
    "name",
    "loader",
    "files",
    "path",
    "sha256",
    "folder",
    "root",
    "side",
    "fit",
    "border",
    "upright",
    "classes",
    "trained_on",
)
ANNOTATED = (
    "name",
    "corpus",
    "path",
    "sha256",
    "model",
    "examples",
    "scripts",
    "unit",
    "lengths",
    "block",
    "shares",
    "split_seed",
)


def verbalizer(config: dict, dataset: str) -> str | list:
    """The CSV with a word for each class, where the data set has one."""
    return dataset_row(config, dataset).get("verbalizer") or []


def user_files(config: dict, dataset: str) -> list[str]:
    """The files of a data set that lie at a path of their own: shipped, or the user's."""
    row = prepared_row(config, dataset)
    entries = row.get("files") or {"all": row.get("path", {})}
    paths = [entry if isinstance(entry, str) else entry.get("path") for entry in entries.values()]
    return [path for path in [*paths, row.get("lexicon")] if path]


def corpus(config: dict, dataset: str) -> str | list:
    """The plain text that a data set is made from, if it is made from one."""
    row = dataset_row(config, dataset)
    return row.get("path") or (corpus_named(config, row["corpus"]) if "corpus" in row else [])


def class_folders(config: dict, dataset: str) -> list[str]:
    """The folders whose images a data set takes, two levels down: one that comes or goes in them is seen."""
    row = dataset_row(config, dataset)
    data_dir = config.get("data_dir")
    if row.get("loader") != "image_folder" or not ("root" in row or data_dir):
        return []
    root = Path(row["root"]) if "root" in row else Path(data_dir, row.get("folder", row["name"]))
    found = [root, *root.glob("[!.]*"), *root.glob("[!.]*/[!.]*/")]
    # Snakemake would take braces for wildcards
    return sorted(str(path) for path in found if path.is_dir() and not set("{}") & set(str(path)))


def images(config: dict, dataset: str) -> str | list:
    """The decoded images of a data set, one file for all its cuts; none of texts."""
    return decoded(config, dataset, "npy")


def listing(config: dict, dataset: str) -> str | list:
    """The listing of a data set's decoded images, one for all its cuts; none of texts."""
    return decoded(config, dataset, "parquet")


def decoded(config: dict, dataset: str, ending: str) -> str | list:
    """A file that decoding a data set of images makes."""
    row = dataset_row(config, dataset)
    return f"results/{config['scale']}/images/{row['name']}.{ending}" if row["language"] == "image" else []


def raw_folder(_config: dict, dataset: str) -> str:
    """Where the downloads of a data set go, whatever the scale and the cut."""
    return f"results/raw/{parse(dataset)[0]}"


def prepared_row(config: dict, dataset: str) -> dict:
    """The row of a data set; one that a model annotates is prepared from what the model wrote."""
    row = dataset_row(config, dataset)
    if row.get("annotator") != "model":
        return row
    return {**row, "path": f"results/{config['scale']}/annotated/{row['name']}.parquet"}


def row_to_prepare(config: dict, dataset: str, *, shown: dict) -> dict:
    """The row of a data set with its cut, and with classes that it must have for a table's scores."""
    row, asked = prepared_row(config, dataset), blocks.classes_asked(shown, dataset)
    return {**row, "asked": asked} if asked else row


def row_to_annotate(config: dict, dataset: str) -> dict:
    """What annotating a corpus needs of a data set's row."""
    row = dataset_row(config, dataset)
    return {key: row[key] for key in ANNOTATED if key in row}


def row_to_decode(config: dict, dataset: str) -> dict:
    """What decoding needs of a data set's row: whatever else changes in it decodes nothing again."""
    row = dataset_row(config, dataset)
    return {key: row[key] for key in DECODED if key in row}
