"""What of a run and of a data set travels in a bundle, as the content of files.

Of a run all but its weights travels, and of its predictions and of the vectors of all examples what is
computed from them. Of a data set its
report travels, with the digests of its rows and of its Parquet file, and of the dev and test examples the ids
and labels. What has travelled is the same when it travels again.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from pyarrow import parquet

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json, read_parquet, reading, sha256
from tailprompt.plan.agreement import DATA, check_intact, complete, data_digests, digests_of, same_data
from tailprompt.plan.places import anywhere, brought
from tailprompt.report import separated
from tailprompt.report.answers import SPLITS, answers
from tailprompt.report.sound import check_answers, check_curve, check_record, check_summary, check_vectors
from tailprompt.report.trained import summary
from tailprompt.seals import check_sealed
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import SCORES

ABOUT, FORMAT = "bundle.json", 1  # the first file of a bundle, and the version of its layout
PROMPTS = "prompts"  # a column of runs that choose group prompts
FEATURES = ("id", "split", "label", "vector")
CORPORA = ("annotated", "packed", "vocabulary")  # kinds of jobs whose notes say of which corpus they were
A_NAME = "letters, digits, . _ and -, at most 100, and does not begin with . or -"


def is_name(scale) -> bool:
    """Whether a bundle may be of this scale: the name of a folder, as a configuration may have it."""
    return isinstance(scale, str) and bool(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", scale))


def dataset_files(report: Path) -> dict[str, bytes]:
    """Name -> content of the files of a data set. report: its .json file, beside the Parquet file."""
    path = report.with_suffix(".parquet")
    check_sealed(report, path)
    about = read_json(report, "dataset", "classes", "groups")
    if about["dataset"] != report.stem:
        raise BadInput(f"{report} is the report of data set {about['dataset']}")
    keyed(about.get("sources") or {}, report)
    task = recorded(about)
    table = read_parquet(path, "id", "split", task.gold, *task.reads(about)[1])
    about |= {"row": anywhere(about.get("row", {}))}
    about = {key: value for key, value in about.items() if key not in DATA} | data_digests(path)
    return {report.name: as_json(about), path.name: as_parquet(table[table["split"].isin(SPLITS)])}


def corpus_note(note: Path) -> bytes:
    """The digests of the corpus that a job took, of all that its note says; raises BadInput without them."""
    corpus = keyed(read_json(note, "corpus")["corpus"], f"corpus in {note}")
    if not all(isinstance(digest, str) for digest in corpus.values()):
        raise BadInput(f"{note}: corpus has a SHA-256 for each file")
    return as_json({"corpus": corpus})


def run_files(folder: Path, report: Path | None) -> dict[str, bytes]:
    """Name -> content of the files of a run that is whole."""
    rows, weights, vectors, apart = parts_of(folder, report)
    if apart and not brought(folder):
        classes, wanted = read_json(report, "classes")["classes"], read_json(folder / "run.json")["extras"]
        shown = [classes.index(name) for name in wanted.get("features", [])]
        vectors = vectors[(vectors["split"] == "test") & vectors["label"].isin(shown)]
        features = as_parquet(vectors)
    else:
        features = (folder / "features.parquet").read_bytes()
    return {
        **({separated.SUMMARY: json.dumps(apart, separators=(",", ":")).encode()} if apart else {}),
        "weights.json": as_json(weights),
        "predictions.parquet": as_parquet(rows),
        "features.parquet": features,
        **{name: (folder / name).read_bytes() for name in ("curve.csv", "run.json")},
    }


def parts_of(folder: Path, report: Path | None) -> tuple[pd.DataFrame, dict, pd.DataFrame, dict | None]:
    """What travels of a run: its predictions, what is read in its weights, and vectors with their summary.

    report: of its data set, a .json file beside the Parquet file. Raises BadInput if the run is not what its
    run.json says.
    """
    if not complete(folder):
        raise BadInput(f"{folder} is not finished")
    if report is None:
        raise BadInput(f"{folder} is there without its data set")
    record = read_json(folder / "run.json")
    check_record(folder / "run.json", record)
    check_intact(folder, record)
    data = report.with_suffix(".parquet")
    trained = digests_of(keyed(record["data"], folder / "run.json", "sha256"))
    if not same_data(trained, data_digests(data)):
        raise BadInput(f"{folder} was trained on data that {data} no longer holds")
    if not brought(folder) and sha256(folder / "weights.safetensors") != record.get("weights_sha256"):
        raise BadInput(f"{folder} has weights that are not those of its run.json")
    vectors = read_parquet(folder / "features.parquet", *FEATURES)
    check_vectors(folder / "features.parquet", vectors)
    check_curve(folder / "curve.csv")
    about, weights = read_json(report, "classes"), summary(folder)
    rows, task = predictions(folder, data, about), recorded(about)
    outputs = len(task.outputs(about["classes"]))
    others = record["settings"].get("decoding") == "open"  # one more output, which is no class
    check_answers(folder / "predictions.parquet", rows, task.gold, outputs + others)
    one = record["settings"].get("input") == "options"  # one output scores each option
    norms = (1,) if one else (outputs, outputs + others)
    check_summary(folder / "weights.json", weights, norms)
    separated.check(folder, len(about["classes"]), int((rows["split"] == "test").sum()))
    wanted = record.get("extras", {})
    apart = separated.summary(folder, len(about["classes"])) if wanted.get("vectors") else None
    if wanted.get("vectors") and apart is None:
        raise BadInput(f"{folder} lacks the vectors of train or test, and {separated.SUMMARY} beside them")
    return rows, weights, vectors, apart


def predictions(folder: Path, data: Path, report: Mapping) -> pd.DataFrame:
    """The predictions of a run as they travel: decided, without scores, with the chosen group prompts."""
    task, path = recorded(report), folder / "predictions.parquet"
    rows = pd.concat(answers(folder, data, report).values())
    columns = dict.fromkeys(["id", "split", task.gold, *task.reads(report)[0]])
    kept = task.decided(rows, report)[[name for name in columns if name != SCORES]]
    with reading(path):
        pooled = PROMPTS in parquet.read_schema(path).names
    return kept.assign(**{PROMPTS: read_parquet(path, PROMPTS)[PROMPTS]}) if pooled else kept


def as_json(value: Mapping) -> bytes:
    """A JSON object as UTF-8 text."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def as_parquet(table: pd.DataFrame) -> bytes:
    """A table as Parquet, neither compressed nor packed to bits, so that what is alike is found."""
    content = io.BytesIO()
    table.to_parquet(content, index=False, compression=None, use_dictionary=["split", "label"])
    return content.getvalue()
