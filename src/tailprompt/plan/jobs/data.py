"""The inputs and parameters of the jobs for a data set: annotate, decode, prepare."""

from __future__ import annotations

from pathlib import Path

from tailprompt.data.places import image_root, places
from tailprompt.model.folder import files_in
from tailprompt.plan import blocks
from tailprompt.plan.agreement import tolerant
from tailprompt.plan.jobs.recipes import corpus_named
from tailprompt.plan.places import report_file
from tailprompt.plan.points import parse
from tailprompt.plan.rows import dataset_row, parts_of, tested_by

DECODED = "name loader files path sha256 folder root side fit border upright bits transparency".split()
DECODED += "most_pixels classes trained_on".split()
ANNOTATED = "name corpus path sha256 model examples scripts unit lengths block shares split_seed".split()


def verbalizer(config: dict, dataset: str) -> str | list:
    """The CSV file with a word for each class, if the data set has one."""
    return dataset_row(config, dataset).get("verbalizer") or []


def user_files(config: dict, dataset: str, root: Path = Path(".")) -> list[str]:
    """The files of a data set that are not downloaded: those that ship, the user's, those below data_dir.

    A file that data_dir lacks is left out, for the job to name.
    """
    row, data_dir = prepared_row(config, dataset), config.get("data_dir")
    entries = row.get("files") or {"all": row.get("path", {})}
    found = []
    for entry in entries.values():
        entry = {"path": entry} if isinstance(entry, str) else entry
        paths = [path for path in places(row, entry, data_dir) if "path" in entry or (root / path).is_file()]
        found += map(str, paths[:1])
    return [*found, row["lexicon"]] if row.get("lexicon") else found


def annotator(config: dict, dataset: str) -> str | None:
    """The folder of the model that annotates a data set, if it is in one of the user's."""
    return dataset_row(config, dataset).get("model", {}).get("folder")


def parts(config: dict, dataset: str) -> list[str]:
    """The prepared data sets that a joined one is made of; none for others."""
    return [f"results/{config['scale']}/data/{part}.parquet" for part in parts_of(config, dataset)]


def corpus(config: dict, dataset: str) -> str | list:
    """The plain text that a data set is made from, if it is made from one."""
    row = dataset_row(config, dataset)
    return row.get("path") or (corpus_named(config, row["corpus"]) if "corpus" in row else [])


def image_folder(config: dict, dataset: str) -> Path | None:
    """The folder whose images are a data set, if no list names them."""
    row = dataset_row(config, dataset)
    return image_root(row, config.get("data_dir")) if row.get("loader") == "image_folder" else None


def images(config: dict, dataset: str) -> str | list:
    """The decoded images of a data set, one file for all its cuts; [] for texts."""
    return decoded(config, dataset, "npy")


def listing(config: dict, dataset: str) -> str | list:
    """The listing of a data set's decoded images, one for all its cuts; [] for texts."""
    return decoded(config, dataset, "parquet")


def decoded(config: dict, dataset: str, ending: str) -> str | list:
    """A file that stage decode writes for a data set of images; [] for texts."""
    row = dataset_row(config, dataset)
    return f"results/{config['scale']}/images/{row['name']}.{ending}" if row["language"] == "image" else []


def learned(config: dict, dataset: str) -> str | list:
    """The report with the classes of a test set's runs, if its own files do not number them; else []."""
    return next((report(config, each) for each in tested_by(config, dataset)), [])


def raw_folder(_config: dict, dataset: str) -> str:
    """The folder for the downloads of a data set, the same for all scales and cuts."""
    return f"results/raw/{parse(dataset)[0]}"


def prepared_row(config: dict, dataset: str) -> dict:
    """The row of a data set; if a model annotates it, its path is the file that the model wrote."""
    row = dataset_row(config, dataset)
    if row.get("annotator") != "model":
        return row
    return {**row, "path": f"results/{config['scale']}/annotated/{row['name']}.parquet"}


def row_to_prepare(config: dict, dataset: str, *, shown: dict) -> dict:
    """The row of a data set with its cut and the classes that the scores of tables name."""
    row, asked = prepared_row(config, dataset), blocks.classes_asked(shown, dataset)
    return {**row, "asked": asked} if asked else row


def report(config: dict, dataset: str, root: Path = Path(".")) -> str:
    """The report of a data set that tables read; that of a bundle if it tells of the present row and rows."""
    from tailprompt.plan import bundled  # which reads files by what jobs are asked

    here = Path("results", config["scale"], "data", f"{dataset}.json")
    file = report_file(root / here.parents[1], dataset)
    brought = file != root / here and bundled.tells(config, dataset, tolerant(file) or {}, root)
    return str(file.relative_to(root) if brought else here)


def row_to_annotate(config: dict, dataset: str) -> dict:
    """The keys of a data set's row that annotating reads."""
    row = dataset_row(config, dataset)
    return {key: row[key] for key in ANNOTATED if key in row}


def row_to_decode(config: dict, dataset: str) -> dict:
    """The keys of a data set's row that decoding reads, so that a change of others decodes nothing again."""
    row = dataset_row(config, dataset)
    return {key: row[key] for key in DECODED if key in row}


def to_decode(config: dict, dataset: str) -> dict[str, str | list]:
    """The input files of decoding, but for the images of a folder."""
    return {"files": user_files(config, dataset)}


def to_annotate(config: dict, dataset: str) -> dict[str, str | list]:
    """The input files of annotating."""
    folder = annotator(config, dataset)
    model = [str(file) for file in files_in(Path(folder)).values()] if folder else []
    return {"corpus": corpus(config, dataset), "model": model}


def to_prepare(config: dict, dataset: str) -> dict[str, str | list]:
    """The input files of preparing, but for source files."""
    return {
        "verbalizer": verbalizer(config, dataset),
        "files": user_files(config, dataset),
        "listing": listing(config, dataset),
        "learned": learned(config, dataset),
        "parts": parts(config, dataset),
    }
