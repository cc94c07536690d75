"""The numbers that papers print, config/reported/*.csv: each is one finite number of something known."""

from __future__ import annotations

import re
from pathlib import Path

from tailprompt.components.resolve import keys
from tailprompt.errors import BadInput, known
from tailprompt.files import as_read, no_file
from tailprompt.plan.printed_file import Row, file_of, rows
from tailprompt.tasks.metrics import schema

STATISTICS = (  # what tables show beside scores: of data, of models, of features
    "rows/train rows/dev rows/test mean_length classes imbalance shared "
    "parameters/tuned parameters/pool parameters/total inner/mean inner/sd inter gamma knn"
).split()
METHODS = "it is a row of methods, as lpt, lpt@pool=5 or lpt/deit-base, or one of the paper's `others`"
OTHERS = f"one of {', '.join(STATISTICS)}, or a setting"
AVERAGE = "avg"  # over the data sets of a table
NOT_PRINTED = ("claims", "search")  # kinds of tables


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
