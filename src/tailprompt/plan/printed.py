"""The numbers that papers print, config/reported/*.csv: each is one finite number of something known."""

from __future__ import annotations

import csv
import re
from io import StringIO
from pathlib import Path

from tailprompt.components.resolve import keys
from tailprompt.errors import BadInput, known, no_file
from tailprompt.files import as_read
from tailprompt.plan.home import found
from tailprompt.tasks.metrics import schema

COLUMNS = ["table", "dataset", "method", "metric", "value", "spread", "page"]
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
STATISTICS = (  # what tables show beside scores: of data, of models, of features
    "rows/train rows/dev rows/test mean_length classes imbalance shared "
    "parameters/tuned parameters/pool parameters/total inner/mean inner/sd inter gamma knn"
).split()
METHODS = "it is a row of methods, as lpt, lpt@pool=5 or lpt/deit-base, or one of the paper's `others`"
OTHERS = f"one of {', '.join(STATISTICS)}, or a setting"
AVERAGE = "avg"  # over the data sets of a table
NOT_PRINTED = ("claims", "search")  # kinds of tables
Row = tuple[int, dict[str, str]]  # the line in the file, and the cells by column


def file_of(paper: str, root: str | Path = ".") -> Path:
    """Where the printed numbers of a paper stand, if it has any."""
    return Path(root, found(f"config/reported/{paper}.csv", root))


def check_printed(config: dict, root: str | Path = ".") -> None:
    """Raise BadInput if the printed numbers of a paper that the scale makes are not there, or one is faulty.

    A paper that names `reported` or `others`, or the table of a claim, has some.
    """
    for paper in dict.fromkeys(config["papers"][name].get("reported", name) for name in config["make"]):
        of = [row for name, row in config["papers"].items() if row.get("reported", name) == paper]
        path = file_of(paper, root)
        if path.is_file():
            check_names(config, of, path, as_read(path, rows))
        elif any(row.keys() & {"reported", "others"} or claimed(row) for row in of):
            raise BadInput(f"papers.{paper}: {no_file(path)}; put the printed numbers back there")


def rows(path: Path) -> list[Row]:
    """The rows of a file of printed numbers; raises BadInput with the line of a faulty one."""
    lines = csv.reader(StringIO(text_of(path), newline=""), strict=True)
    try:
        read = [(lines.line_num, cells) for cells in lines if cells]
    except csv.Error as error:
        raise BadInput(f"{path}: line {lines.line_num} cannot be read ({error})") from None
    if not read or read[0][1] != COLUMNS:
        raise BadInput(f"{path}: the first line must be the header {','.join(COLUMNS)}")
    first: dict[tuple, int] = {}
    for line, cells in read[1:]:
        check_cells(cells, f"{path}: line {line}:")
        if (before := first.setdefault(tuple(cells[:4]), line)) != line:
            raise BadInput(
                f"{path}: line {line}: {', '.join(filter(None, cells[:4]))} is in line {before} too; keep one"
            )
    return [(line, dict(zip(COLUMNS, cells, strict=True))) for line, cells in read[1:]]


def text_of(path: Path) -> str:
    """The text of a file; raises BadInput, with the line, unless it is UTF-8."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}: byte {error.start} (line {line}) is not UTF-8; save it as UTF-8") from None


def check_cells(cells: list[str], where: str) -> None:
    """Raise BadInput if a row has too few or too many cells, or no number where one is wanted."""
    if len(cells) != len(COLUMNS):
        raise BadInput(f"{where} {len(cells)} cells; a row has {len(COLUMNS)}: {', '.join(COLUMNS)}")
    row = dict(zip(COLUMNS, cells, strict=True))
    for column in ("value", "spread"):
        if not NUMBER.fullmatch(row[column]) and (row[column] or column == "value"):
            also = " or nothing" if column == "spread" else ""
            raise BadInput(f"{where} {column} '{row[column]}' is no number; write one as 80.1{also}")


def check_names(config: dict, papers: list[dict], path: Path, printed: list[Row]) -> None:
    """Raise BadInput for the first row of a table, data set, method or metric that there is none of."""
    tables = set().union(*map(claimed, papers), *map(beside, papers))
    others = {name for paper in papers for name in paper.get("others", {})}
    datasets = {row["reported"] for row in config["datasets"].values() if row.get("reported")} | {AVERAGE}
    score = schema()
    is_score = re.compile(score["pattern"]).fullmatch
    for line, row in printed:
        metric, (method, _, backbone) = row["metric"], row["method"].partition("/")
        ours = method.partition("@")[0] in config["methods"] and backbone in {"", *config["backbones"]}
        of_data = not row["method"] and not is_score(metric)
        for column, stands, allowed in (
            ("table", row["table"] in tables, f"the paper's are {known(tables)}"),
            ("dataset", row["dataset"].partition("@")[0] in datasets, f"`reported` names {known(datasets)}"),
            ("method", ours or of_data or row["method"] in others, METHODS),
            ("metric", is_score(metric) or is_known(metric), f"it is {score['description']}, {OTHERS}"),
        ):
            if not stands:
                raise BadInput(f"{path}: line {line}: unknown {column} '{row[column]}'; {allowed}")


def is_known(metric: str) -> bool:
    """Whether a name is that of a number that is no score: a statistic, or a setting as epochs/phase1."""
    return metric in STATISTICS or metric.partition("/")[0] in keys()


def beside(paper: dict) -> set[str]:
    """The printed tables that those of a paper stand beside."""
    tables = paper.get("tables", {}).items()
    return {block.get("beside", name) for name, block in tables if block["kind"] not in NOT_PRINTED}


def claimed(paper: dict) -> set[str]:
    """The printed tables that the claims of a paper are of."""
    claims = [
        claim for block in paper.get("tables", {}).values() for claim in block.get("claims", {}).values()
    ]
    return {claim["table"] for claim in claims if "table" in claim}
