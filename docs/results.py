"""Tables and verdicts of a scale's results, as README and docs show them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pandas as pd
import yaml

from docs.fill import Makers, table
from tailprompt.plan.points import parse
from tailprompt.report.sheet import chance, greek, number
from tailprompt.report.tables.claims_sheet import ALL, places, span
from tailprompt.report.typeset import md_text

PAPERS = {"glee": "GLEE", "lpt": "LPT", "ppt": "PPT", "ptuning2": "P-Tuning v2", "across": "across"}
FAIR = {"glee": "glee-fair", "lpt": "lpt-fair"}  # paper -> the same with settings searched alike
SEARCHED = {name: f"{PAPERS[paper]}, searched" for paper, name in FAIR.items()}
VERDICTS = ("holds", "fails", "undecided", "not run")
JUDGED = ("ours", "low", "high", "p_holm", "verdict")  # columns of a claim that a protocol changes
ASKED = {  # the claims that answer the README's question
    "glee": ("prompt-tail", "approximates"),
    "glee-fair": ("prompt-tail",),
    "ptuning2": ("near-ft-ner",),
    "across": ("prefix-finetune",),
}
FRONT = {  # what the README compares: paper -> a table, its methods in order, and the score
    "glee": ("table3", ("cls-tanh", "cls-relu-ptln", "prompt"), "f1/tail"),
    "lpt": ("table4", ("vpt", "lpt"), "accuracy/all"),
    "ptuning2": ("table3", ("finetune", "pt2", "pt-input"), "f1/all"),
}
ASIDE = re.compile(r" \(([^()]{50,})\)$")
BRIEF = {"lpt": "cifar100-resplit@imbalance=100"}  # of them what is one line, and of which data


def makers(results: Path) -> Makers:
    """The parts of pages that are made of a scale's results, by name."""
    made = {
        "contents": contents,
        "verdicts": verdicts,
        "claims": claims,
        "tables": tables,
        "asked": asked,
        "scores": scores,
        "brief": brief,
        "gain": gain,
        "first": first,
        "fair": fair,
    }
    return {name: partial(maker, results) for name, maker in made.items()}


def judged(results: Path, paper: str) -> pd.DataFrame:
    """The claims of a paper: a row for each, and one for each of its data sets. Empty if none has runs."""
    file = results / "tables" / paper / "claims.csv"
    return pd.read_csv(file, dtype={"section": str}) if file.is_file() else pd.DataFrame()


def verdicts(results: Path) -> str:
    """How many claims of each paper hold, fail, are undecided or not run.

    Claims under searched settings stand there once any of them is judged.
    """
    searched = {name: says for name, says in SEARCHED.items() if ran(results, name)}
    rows = [[says, *map(str, counted(results, paper))] for paper, says in (PAPERS | searched).items()]
    return table(("paper", "claims", *VERDICTS), rows, "l" + "r" * 5)


def ran(results: Path, paper: str) -> bool:
    """Whether any claim of a paper could be judged."""
    rows = judged(results, paper)
    return not rows.empty and bool((rows.verdict != VERDICTS[-1]).any())


def counted(results: Path, paper: str) -> list[int]:
    """The number of claims of a paper, then of each verdict."""
    rows = judged(results, paper)
    if rows.empty:
        spec = yaml.safe_load(Path(f"config/papers/{paper}.yaml").read_text("utf-8"))
        stated = len(spec["papers"][paper]["tables"]["claims"]["claims"])
        return [stated, 0, 0, 0, stated]
    found = rows[rows.dataset == ALL].verdict.value_counts()
    return [int(found.sum()), *(int(found.get(verdict, 0)) for verdict in VERDICTS)]


def claims(results: Path, paper: str) -> str:
    """The claims of a paper that were judged, with what each says on single data sets."""
    rows = judged(results, paper)
    each = rows[rows.dataset == ALL]
    header = (
        "claim",
        "section",
        "effect",
        "printed",
        "ours",
        "95 % interval",
        "p (Holm)",
        "verdict",
        "holds on",
        "fails on",
    )
    lines = [
        [
            md_text(row.says),
            row.section,
            compared(row),
            *effect(row),
            *(where(rows, row.id, kind) for kind in VERDICTS[:2]),
        ]
        for _, row in each.iterrows()
    ]
    return table(header, lines, "lllrrrrlll")


def asked(results: Path) -> str:
    """The claims of all papers that compare prompt-tuning with fine-tuning."""
    lines, labels = [], PAPERS | SEARCHED
    for paper, names in ASKED.items():
        rows = judged(results, paper)
        rows = rows[rows.dataset == ALL].set_index("id")
        lines += [
            [labels[paper], md_text(rows.loc[name].says), compared(rows.loc[name]), *effect(rows.loc[name])]
            for name in names
        ]
    return table(
        ("paper", "claim", "effect", "printed", "ours", "95 % interval", "p (Holm)", "verdict"),
        lines,
        "lllrrrrl",
    )


def compared(row: pd.Series) -> str:
    """Which row's score is taken from which other row's."""
    return f"`{row.method}`\u2212`{row.than}`"


def effect(row: pd.Series) -> list[str]:
    """The cells of a claim: effect printed and ours, interval, p and verdict."""
    verdict = f"**{row.verdict}**" if row.verdict in VERDICTS[:2] else row.verdict
    sizes = [number(value, places(row), signed=True) for value in (row.reported, row.ours)]
    return [*sizes, span(row), chance(row.p_holm).replace("<", "\\<"), verdict]


def where(rows: pd.DataFrame, claim: str, verdict: str) -> str:
    """The data sets on which a claim has a verdict."""
    found = rows[(rows.id == claim) & (rows.dataset != ALL) & (rows.verdict == verdict)].dataset
    return "; ".join(map(title, found))


def compared_scores(results: Path, paper: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows of a paper that have a reported and our score, and the titles of its methods."""
    name, methods, metric = FRONT[paper]
    rows = pd.read_csv(results / "tables" / paper / f"{name}.csv")
    rows = rows[(rows.metric == metric) & rows.method.isin(methods) & (rows.dataset != "avg")]
    known = yaml.safe_load(Path("config/methods.yaml").read_text("utf-8"))["methods"]
    return rows[rows.reported.notna() & rows.ours.notna()], {
        method: known[method]["title"] for method in methods
    }


def scores(results: Path, paper: str) -> str:
    """Reported and our scores of some methods of a paper, on each data set that has both."""
    rows, methods = compared_scores(results, paper)
    sets = list(dict.fromkeys(rows.dataset))
    header = ["method", *(f"{title(one)}: {whose}" for one in sets for whose in ("reported", "ours"))]
    lines = [
        [says, *(text for one in sets for text in pair(rows, method, one))]
        for method, says in methods.items()
    ]
    return table(header, lines, "l" + "rr" * len(sets))


def brief(results: Path, paper: str) -> str:
    """The same of one data set, in a line: reported, then ours."""
    rows, methods = compared_scores(results, paper)
    return ", ".join(
        f"{says} {' / '.join(pair(rows, method, BRIEF[paper]))}" for method, says in methods.items()
    )


def gain(results: Path, paper: str, claim: str) -> str:
    """The effect of a claim in a line: printed, then ours with its interval."""
    rows = judged(results, paper)
    row = rows[(rows.dataset == ALL) & (rows.id == claim)].iloc[0]
    printed, ours, interval, *_ = effect(row)
    return f"{printed} / {ours} ({interval})"


def pair(rows: pd.DataFrame, method: str, dataset: str) -> list[str]:
    """The reported and our score of a method on a data set."""
    found = rows[(rows.method == method) & (rows.dataset == dataset)]
    if found.empty:
        return ["", ""]
    row = found.iloc[0]
    ours = number(row.ours) + (f" \u00b1 {number(row.spread)}" if row.spread == row.spread else "")
    return [number(row.reported), ours]


def first(results: Path) -> str:
    """F1 on tail classes of what one would try first, with its tuned parameters."""
    rows = pd.read_csv(results / "tables/across/table3.csv")
    rows = rows[rows.dataset != "avg"]
    tail, tuned = rows[rows.metric == "f1/tail"], rows[rows.metric == "parameters/tuned"]
    sets = list(dict.fromkeys(rows.dataset))
    best = tail.groupby("dataset").ours.max()
    known = yaml.safe_load(Path("config/methods.yaml").read_text("utf-8"))["methods"]
    lines = [
        [known[method]["title"], f"{most.ours:.2f} M", *scored(tail, method, best[sets])]
        for method, of_method in tuned.groupby("method", sort=False)
        for most in [of_method.loc[of_method.ours.idxmax()]]
    ]
    return table(("method", "tuned", *map(title, sets)), lines, "lr" + "r" * len(sets))


def scored(rows: pd.DataFrame, method: str, best: pd.Series) -> list[str]:
    """A method's score on each data set, the best of a data set in bold."""
    of_method = rows[rows.method == method].set_index("dataset")
    texts = []
    for dataset, highest in best.items():
        row = of_method.loc[dataset]
        value = f"**{number(row.ours)}**" if number(row.ours) == number(highest) else number(row.ours)
        texts.append(f"{value} \u00b1 {number(row.spread)}")
    return texts


def contents(results: Path, *papers: str) -> str:
    """Links to the tables of papers in one line."""
    there = [paper for paper in papers if paper not in SEARCHED or ran(results, paper)]
    headings = [heading(file) for paper in there for file in shown(results, paper)]
    return " · ".join(f"[{says}](#{anchor(says)})" for says in headings)


def anchor(says: str) -> str:
    """What a forge calls a heading in a link."""
    return re.sub(r"[^\w\- ]", "", says.lower()).replace(" ", "-")


def tables(results: Path, paper: str) -> str:
    """All tables of a paper but its claims, of which only the notes: the verdicts stand above."""
    judging = results / "tables" / paper / "claims.md"
    notes = [rest_of(judging)] if judging.is_file() else []
    parts = (f"### {heading(file)}\n\n{aside(file)}{body(file)}" for file in shown(results, paper))
    return "\n\n".join([*notes, *parts])


def shown(results: Path, paper: str) -> list[Path]:
    """The tables of a paper in order, without its claims."""
    files = sorted((results / "tables" / paper).glob("*.md"), key=in_order)
    return [file for file in files if file.stem != "claims"]


def in_order(file: Path) -> list:
    """Where a table stands: numbers by their size, words before them."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.stem)]


def heading(file: Path) -> str:
    """What a table shows, after the number that it has in the paper."""
    caption, printed = ASIDE.sub("", captioned(file)), re.match(r"table(\d+)", file.stem)
    return f"Table {printed[1]}: {caption}" if printed else caption


def captioned(file: Path) -> str:
    """The caption of a table."""
    return file.read_text("utf-8").splitlines()[0].strip("*").rstrip(".")


def aside(file: Path) -> str:
    """What a caption says in brackets at its end, as a paragraph, where it is too long for a heading."""
    said = ASIDE.search(captioned(file))
    return f"{said[1][0].upper()}{said[1][1:]}.\n\n" if said else ""


def body(file: Path) -> str:
    """A table without its caption."""
    return file.read_text("utf-8").split("\n", 1)[1].strip()


def rest_of(file: Path) -> str:
    """What stands below the last row of a table, folded."""
    lines = body(file).splitlines()
    last = max(i for i, line in enumerate(lines) if line.startswith("|"))
    notes = "\n".join(lines[last + 1 :]).strip()
    summary = "<summary>How these verdicts were reached, and what is missing</summary>"
    return f"<details>{summary}\n\n{notes}\n\n</details>"


def title(dataset: str) -> str:
    """A data set's title, with the imbalance that it is cut to."""
    rows = yaml.safe_load(Path("config/datasets.yaml").read_text("utf-8"))["datasets"]
    name, _, changes = dataset.partition("@")
    cut = changes.removeprefix("imbalance=") if changes.startswith("imbalance=") else ""
    return rows.get(name, {}).get("title", name) + (f", 1:{cut}" if cut else "")


def fair(results: Path, paper: str) -> str:
    """A paper's comparison with settings searched alike: what is run, what was chosen, claims and tables."""
    name = FAIR[paper]
    files = sorted((results / "tables" / name).glob("search*.csv"))
    searches = [pd.read_csv(file) for file in files]
    parts = [progress(name, searches)]
    parts += [choice(points) for points in searches if points.best.any()]
    if ran(results, name):
        parts += [side_by_side(judged(results, name)), tables(results, name)]
    return "\n\n".join(parts)


def progress(paper: str, searches: list[pd.DataFrame]) -> str:
    """How many runs of each search are there, and how many methods have a choice."""
    specs = yaml.safe_load(Path(f"config/papers/{paper.partition('-')[0]}.yaml").read_text("utf-8"))
    said = []
    for points in searches:
        name = points.table.iloc[0]
        seeds = len(specs["papers"][paper]["tables"][name]["seeds"])
        sure = points.groupby(["dataset", "method"]).best.any()
        said.append(
            f"{points.n.sum()} of {len(points) * seeds} runs of `{name}` are here; they choose for "
            f"{sure.sum()} of {len(sure)} pairs of a method and a data set."
        )
    return " ".join(said) or "Not run."


def choice(points: pd.DataFrame) -> str:
    """What a search chose for each method on each data set, with its score of dev."""
    best = points[points.best]
    sets, methods = list(dict.fromkeys(best.dataset)), list(dict.fromkeys(points.method))
    known = yaml.safe_load(Path("config/methods.yaml").read_text("utf-8"))["methods"]
    found = {(row.dataset, row.method): settled(row.run, row.dev) for row in best.itertuples()}
    lines = [
        [greek(known[method]["title"]), *(found.get((one, method), "") for one in sets)] for method in methods
    ]
    return table(("method", *(f"{title(one)}: chosen (dev)" for one in sets)), lines, "l" * (1 + len(sets)))


def settled(run: str, dev: float) -> str:
    """The searched settings in the name of a run, and its score."""
    pairs = ", ".join(f"{key} {value}" for key, value in parse(run)[1].items())
    return f"{pairs} ({number(dev)})"


def side_by_side(rows: pd.DataFrame) -> str:
    """Each claim under the paper's own settings, then under those searched alike, and what became of it."""
    judgement = ("ours", "95 % interval", "p (Holm)", "verdict")
    header = ["claim", "effect", "printed"]
    header += [f"{protocol}: {name}" for protocol in ("its own", "searched") for name in judgement]
    lines = []
    for _, row in rows[rows.dataset == ALL].iterrows():
        own = effect(pd.Series({**row, **{name: row.get(f"original_{name}") for name in JUDGED}}))
        change = row.change if isinstance(row.change, str) else ""
        lines.append([md_text(row.says), compared(row), *own, *effect(row)[1:], change])
    return table((*header, "change"), lines, "llr" + "rrrl" * 2 + "l")
