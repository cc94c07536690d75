"""How long a run takes where nothing has been measured: a rule of thumb from sizes known beforehand."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import prod
from pathlib import Path

from pyarrow import parquet

from tailprompt.components.run import Run, repeated
from tailprompt.data import contents
from tailprompt.data.columns import listed
from tailprompt.data.separated import found
from tailprompt.files import reading
from tailprompt.machine.cpus import CPUS
from tailprompt.machine.gpus import visible
from tailprompt.plan.places import report_file
from tailprompt.plan.points import Point
from tailprompt.plan.rows import dataset_row, has_passages, has_tags, kind_of, parts_of
from tailprompt.plan.runnable import shape_of
from tailprompt.plan.settings import resolved
from tailprompt.seals import as_written, read_sealed

GPU = 5e13  # floating-point operations a second that a run gets from a GPU
THREAD = 5e10  # the same from a CPU thread: the demo's 24 runs had 4e10 to 1e11, by processor time
RULE = "6 x parameters x training tokens, wrong by a factor of three at times; see docs/running.md"
START = 5  # seconds
ROWS = 10_000  # training rows of a data set of unknown size
DIGITS = 1797  # images of scikit-learn's digits
BYTES = 4  # of a text, for one token
SEPARATED = {"csv": ",", "tsv": "\t", "tab": "\t"}
PLAIN = (*SEPARATED, "txt", "jsonl", "ndjson")  # formats with one row a line
COUNTED = (*PLAIN, "json", "parquet")  # formats whose rows are counted


def on_cpu(config: dict) -> bool:
    """Whether runs of a scale compute on the CPU of this machine."""
    return config["device"] == "cpu" or config["device"] == "auto" and not visible()


def by_rule(config: dict, point: Point, root: Path, *, cpu: bool) -> float:
    """The seconds of a run by RULE, on the CPU or on a GPU."""
    asked, row = resolved(config, point), dataset_row(config, point.dataset)
    backbone, asks = config["backbones"][point.backbone], asked.settings
    if kind_of(row) == "image":
        tokens = patches(backbone, shape_of(config, backbone, root))
    else:
        tokens = text_length(row, asks.get("max_length", 128), root)
    seen = passes(asked.run, asks.get("epochs", 0)) * training_rows(config, point.dataset, root)
    speed = THREAD * min(config["threads"], CPUS) if cpu else GPU
    return START + computing(seen, parameters(backbone, root), tokens, speed)


def computing(passes: float, parameters: float, tokens: float, speed: float) -> float:
    """The seconds of so many passes of a row of so many tokens, at a speed in operations a second."""
    return 2 * passes * parameters * tokens / speed


def passes(run: Run, epochs: float) -> float:
    """How often a run computes each training row: once at least, if there is a body."""
    return 0 if run.input.name == "tfidf" else max(1, of_an_epoch(run) * epochs)


def of_an_epoch(run: Run) -> int:
    """How often an epoch computes each training row: forward is one, and backward is two more.

    A frozen body is computed forward alone, and no more than once if it makes the same of a row each time.
    """
    if run.tuner.name != "frozen":
        return 3
    return 0 if "train" in repeated(run) else 1


def training_rows(config: dict, dataset: str, root: Path) -> int:
    """Training rows of a data set: by its report if it is prepared, else those of its parts, or as stated."""
    report = report_file(root / "results" / config["scale"], dataset)
    if report.is_file() and as_written(report):
        return read_sealed(report, "rows")["rows"]["train"]
    if parts := parts_of(config, dataset):
        return sum(training_rows(config, part, root) for part in parts)
    return stated(dataset_row(config, dataset), root)


def patches(backbone: dict, shape: dict) -> int:
    """The tokens that a ViT makes of an image; of 224 pixels in patches of 16 where nothing is stated."""
    return (backbone.get("size", shape.get("img_size", 224)) // shape.get("patch_size", 16)) ** 2


def text_length(row: dict, most: int, root: Path) -> float:
    """The tokens of a text, as far as they are known: from the lines of a file, else half of the most."""
    file = own_file(row, root)
    return most / 2 if file is None else min(most, size(file) / max(1, rows_in(file, row)) / BYTES)


def parameters(row: dict, root: Path) -> float:
    """The parameters of a backbone: of the weights in its folder, or by its megabytes of float32."""
    if "path" in row:
        return sum(numbers_in(file) for file in (root / row["path"]).glob("*.safetensors"))
    return row.get("megabytes", 0) * 1e6 / 4


@cache
def numbers_in(file: Path) -> int:
    """How many numbers a safetensors file holds, by its header."""
    with reading(file), open(file, "rb") as weights:
        header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
    return sum(prod(about["shape"]) for name, about in header.items() if name != "__metadata__")


def stated(row: dict, root: Path) -> int:
    """Training rows of a data set that is not prepared: by its cut, its row or its files, else ROWS."""
    cut = row["cut"]
    if "trained_on" in row:
        return 0  # it is for test only
    known = [cut.get("train"), cut.get("total"), row.get("examples")]
    if "shots" in cut:
        words = row.get("verbalizer")
        classes = row.get("classes") or (lines(root / words) - 1 if words else 0)
        known.append(cut["shots"] * classes)
    known += [DIGITS] if row.get("loader") == "digits" else []
    if file := own_file(row, root):
        known.append(rows_in(file, row))
    if row.get("loader") == "image_folder" and "root" in row:
        train = root / row["root"] / "train"
        known.append(files_below(train if train.is_dir() else train.parent))
    return next(filter(None, known), ROWS)


@contextmanager
def unpacked(file: Path) -> Iterator[io.TextIOWrapper]:
    """A file as text, unpacked; its quotes and line ends are those of any code."""
    with contents.opened(file) as data, io.TextIOWrapper(data, encoding="latin-1", newline="") as text:
        yield text


@cache
def size(file: Path) -> int:
    """The bytes of a file, unpacked."""
    if contents.kind_of(file) == "parquet":
        about = footer(file)
        return sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
    with contents.opened(file) as data:
        return sum(len(part) for part in iter(lambda: data.read(2**20), b""))


@cache
def lines(file: Path) -> int:
    """The number of lines in a file; 0 if it is missing."""
    if not file.is_file():
        return 0
    with unpacked(file) as text:
        return sum(1 for _ in text)


def rows_in(file: Path, row: dict) -> int:
    """The number of rows in the file of a data set: records, sentences of words in columns, or in JSON."""
    kind = contents.kind_of(file)
    if kind == "parquet":
        return footer(file).num_rows
    if kind == "json":
        key = "question" if has_passages(row) else listed(row.get("columns", {}).get("text", "text"))[0]
        return times(file, key)
    if has_tags(row) and kind not in PLAIN:
        return gaps(file)
    if kind in SEPARATED:
        quotes, above = row.get("quotes", True), 0 if row.get("header") else 1
        return max(1, records(file, row.get("separator"), quotes=quotes) - above)
    return lines(file)


@cache
def footer(file: Path) -> parquet.FileMetaData:
    """What a Parquet file says of its rows."""
    with reading(file), contents.opened(file) as data:
        return parquet.read_metadata(data)


@cache
def records(file: Path, separator: str | None, *, quotes: bool) -> int:
    """The number of records in a CSV or TSV file, of which one in quotes may take several lines."""
    with unpacked(file) as text:
        start = text.read(2**16)
    mark = separator or found(start, SEPARATED[contents.kind_of(file)], quotes=quotes)
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    try:
        with unpacked(file) as text:
            return sum(1 for fields in csv.reader(text, delimiter=mark, quoting=quoting) if fields)
    except csv.Error:  # stage prepare says what it is
        return lines(file)


@cache
def times(file: Path, key: str) -> int:
    """How often a file of JSON has a key; once at least, so that it counts as known."""
    with contents.opened(file) as data:
        return max(1, data.read().count(json.dumps(key).encode()))


@cache
def gaps(file: Path) -> int:
    """The number of blank lines in a file, which end sentences of words in columns."""
    with contents.opened(file) as data:
        return sum(1 for line in data if not line.strip())


@cache
def files_below(folder: Path) -> int:
    """The number of files anywhere in a folder; 0 if it is missing."""
    return sum(len(names) for *_, names in os.walk(folder))


def own_file(row: dict, root: Path) -> Path | None:
    """The file with a row a line that a data set's training rows stand in, if it is there."""
    files = row.get("files", {})
    own = files.get("train", files.get("all", row.get("path")))
    path = own.get("path") if isinstance(own, dict) else own
    plain = path and "corpus" not in row and (contents.kind_of(Path(path)) in COUNTED or has_tags(row))
    return root / path if plain and (root / path).is_file() else None
