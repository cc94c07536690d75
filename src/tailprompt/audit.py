"""List the rows of a data set whose label is most doubtful, class by class, by the predictions of its runs.

`tailprompt audit PLACE ...`: PLACE is a run's folder or above it (results/my-tickets/runs). Of cuts of one
data set the runs with the most training rows judge.
Rows of dev and test are judged, which no run trained on. Methods count alike, however many runs each has;
those that get less than half as many rows right as the best are left out. Rows whose text stands elsewhere
with another label are listed too, those of train among them. Nothing is changed: the list is a CSV for
people, the first of each class before the second of any, with the file and line that a row stands at.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from pyarrow import parquet

from tailprompt.data.origins import origins
from tailprompt.errors import BadInput, counted, known, stage
from tailprompt.files import read_json, read_parquet, whole
from tailprompt.plan import agreement
from tailprompt.plan.places import brought, results_of
from tailprompt.report import doubts
from tailprompt.report.answers import SPLITS
from tailprompt.tasks.classification import CLASSIFICATION, softmax
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import SCORES

COLUMNS = ["id", "file", "line", "split", "label", "suggested", "advice", "margin", "label_probability"]
COLUMNS += ["suggested_probability", "rank", "class_rows", "reasons", "text"]


def audit(places: list[Path], out: Path | None, share: float) -> tuple[pd.DataFrame, Path, str]:
    """The list of doubtful rows, the file that it is written to, and by what and of what it was judged."""
    folders = of_one(runs(places))
    data = agreement.data_of(folders[0])
    report = read_json(data.with_suffix(".json"), "classes", "dataset")
    if recorded(report) is not CLASSIFICATION:
        raise BadInput(
            f"{report['dataset']}: audit is of rows with one class each, and these have other labels"
        )
    every, rows = judged(folders)
    by_method = able(every, rows.label.to_numpy())
    methods = f"{len(by_method)} of {counted(len(every), 'method')}"
    about = (
        f"{methods} judged the {counted(len(rows), 'row')} of dev and test of {report['dataset']}. "
        f"Its {counted(report['rows']['train'], 'training row', 'are')} not judged, as "
        "methods learnt their labels; they are listed only where the same text has two labels"
    )
    texts = {"text", "pair"} & {*parquet.read_schema(data).names}
    table = read_parquet(data, "id", "split", "label", *texts)
    listed = with_reasons(doubts.doubtful(by_method, rows.label.to_numpy(), share=share), rows, table, report)
    listed, unknown = with_places(listed, report)
    out = out or results_of(folders[0]) / "audit" / f"{report['dataset']}.csv"
    with whole(out) as temporary:
        listed.to_csv(temporary, index=False, float_format="%.4f", lineterminator="\n")
    return listed, out, about + unknown


def runs(places: list[Path]) -> list[Path]:
    """The folders of the finished runs in these places."""
    found = {file.parent for place in places for file in place.rglob("run.json")}
    if not found:
        raise BadInput(f"no finished run in {known(places)}; name folders of results/<scale>/runs")
    for folder in found:
        agreement.check(folder, read_json(folder / "run.json"))
        if brought(folder):
            raise BadInput(f"{folder} came in a bundle, which has no probabilities; audit needs them")
    return sorted(found)


def of_one(folders: list[Path]) -> list[Path]:
    """The runs on one data set; of cuts of it those with the most training rows, which know most."""
    names = {folder.parts[-3]: folder for folder in folders}
    if len({name.partition("@")[0] for name in names}) > 1:
        raise BadInput(
            f"audit is of one data set, and these runs are on {known(names)}; name the runs of one"
        )
    rows = {name: trained_on(folder) for name, folder in names.items()} if len(names) > 1 else {}
    most = max(rows, key=lambda name: (rows[name], "@" not in name), default=next(iter(names)))
    return [folder for folder in folders if folder.parts[-3] == most]


def trained_on(folder: Path) -> int:
    """The number of training rows of the data set of a run."""
    return read_json(agreement.data_of(folder).with_suffix(".json"), "rows")["rows"]["train"]


def judged(folders: list[Path]) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """Backbone and method -> mean probabilities over its runs; and the id, split and label of each row."""
    found, rows = {}, None
    for folder in folders:
        table = read_parquet(folder / "predictions.parquet", "id", "split", "label", SCORES)
        table = table[table["split"].isin(SPLITS)].sort_values(["split", "id"], ignore_index=True)
        if rows is not None and not rows.equals(table[["id", "split", "label"]]):
            raise BadInput(f"{folder}: its rows are not those of {folders[0]}")
        rows = table[["id", "split", "label"]]
        found.setdefault("/".join((folder.parts[-4], folder.parts[-2])), []).append(np.stack(table[SCORES]))
    shares = {name: np.mean([softmax(one) for one in each], axis=0) for name, each in found.items()}
    return shares, rows


def able(by_method: dict[str, np.ndarray], labels: np.ndarray) -> dict[str, np.ndarray]:
    """The methods that get at least half as many rows right as the best: others know too little to judge."""
    right = {name: (shares.argmax(axis=1) == labels).mean() for name, shares in by_method.items()}
    return {name: by_method[name] for name in by_method if 2 * right[name] >= max(right.values())}


def with_reasons(listed: pd.DataFrame, rows: pd.DataFrame, table: pd.DataFrame, report: dict) -> pd.DataFrame:
    """The list as it is written: names, reasons, and the contradictory rows at its end."""
    classes = report["classes"]
    listed = listed.assign(
        **rows.loc[listed.place, ["id", "split"]].reset_index(drop=True),
        reasons=[doubts.reason(row, classes) for _, row in listed.iterrows()],
    )
    twice = doubts.contradictions(table) if "text" in table else {}
    stated = {
        i: f"the same text also has label {', '.join(classes[c] for c in cs)}" for i, cs in twice.items()
    }
    listed["reasons"] = [
        f"{words}; {stated[i]}" if i in stated else words
        for i, words in zip(listed.id, listed.reasons, strict=True)
    ]
    more = table[table.id.isin(stated.keys() - {*listed.id})][["id", "split", "label"]]
    more = more.assign(
        advice=doubts.CHECK, reasons=more.id.map(stated), suggested=more.id.map(lambda i: twice[i][0])
    )
    both = pd.concat([listed, more], ignore_index=True)
    texts = dict(zip(table.id, table["text"] if "text" in table else table.id, strict=True))
    names = {key: [classes[int(c)] for c in both[key]] for key in ("label", "suggested")}
    whole_numbers = {key: both[key].astype("Int64") for key in ("rank", "class_rows")}
    return both.assign(text=both.id.map(texts), **names, **whole_numbers)


def with_places(listed: pd.DataFrame, report: dict) -> tuple[pd.DataFrame, str]:
    """The list with file and line of each row, and a sentence where these are not known."""
    found = origins(report, listed.id)
    if found is None:
        unknown = ". Where rows stand is not known: their files are not here, or have changed since"
        return listed.assign(file=pd.NA, line=pd.NA)[COLUMNS], unknown
    return listed.merge(found, on="id", how="left", validate="many_to_one")[COLUMNS], ""


def where(row) -> str:
    """A row of the list as the screen names it: its id, and its file and line if these are known."""
    if pd.isna(row.file):
        return row.id
    return f"{row.id} ({row.file}{'' if pd.isna(row.line) else f':{row.line}'})"


def told(listed: pd.DataFrame, out: Path, about: str) -> str:
    """What the screen says of a list."""
    check = listed[listed.advice == doubts.CHECK]
    rows = f"{counted(len(check), 'row')} of {counted(check.label.nunique(), 'class')}"
    lines = [
        f"{rows} to check, {len(listed) - len(check)} doubted but kept in their class: {out}",
        about,
    ]
    lines += [
        f"  {where(row)} {row.label} -> {row.suggested}: {row.reasons}" for row in check.head(10).itertuples()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt audit", description=__doc__.split("\n")[0])
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="PLACE", help="folders of runs, or above them"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: results/<scale>/audit/<data set>.csv"
    )
    help = f"most rows of a class to advise on, as a share of it (default: {doubts.SHARE})"
    parser.add_argument("--share", type=float, default=doubts.SHARE, metavar="SHARE", help=help)
    chosen = parser.parse_args()
    if not 0 < chosen.share <= 1:
        parser.error(f"--share {chosen.share} is no share; take one above 0 and up to 1")
    print(told(*audit(chosen.places, chosen.out, chosen.share)))


if __name__ == "__main__":
    stage(main)
