"""The inputs and parameters of the jobs for tables and figures, and the files that they make."""

from __future__ import annotations

from collections.abc import Callable

from tailprompt.errors import BadInput, known
from tailprompt.plan import blocks
from tailprompt.plan.dependencies import sources
from tailprompt.plan.points import Point
from tailprompt.plan.printed_file import file_of

PACKAGES = {"tabulate": "tailprompt.report.tables", "draw": "tailprompt.report.figures"}
STAGES = {"tables": "tabulate", "figures": "draw"}
ENDINGS = {"tables": ("tex", "md", "csv", "html"), "figures": ("pdf", "png", "html")}


def block(everything: dict, what: str, paper: str, name: str, whole: dict) -> dict:
    """The expanded block of a table or figure.

    everything: what is made of `whole`, which `blocks.shown` returns.
    """
    specs = {one: spec for (*of, one), spec in everything.items() if of == [what, paper]}
    if name not in specs:
        if (what, paper, name) in whole:
            raise BadInput(f"train: false, and none of the runs of {what[:-1]} '{name}' of {paper} is here")
        waits = any(spec["kind"] == "search" for spec in specs.values())
        others = "; others wait for what a search chooses" if waits else ""
        raise BadInput(f"make names no {what[:-1]} '{name}' of {paper}; it names {known(specs)}{others}")
    return specs[name]


def code(block: dict, *, stage: str) -> list[str]:
    """The source files that make a table or figure: those of the stage (tabulate, draw) and of its kind."""
    package = PACKAGES[stage]
    shared = sources(f"tailprompt.{stage}", without=package)
    return sorted({*shared, *sources(f"{package}.{block['kind']}")})


def predictions(block: dict, *, file: Callable[[Point], str]) -> list[str]:
    """The predictions of each run that a table or figure takes; `file` names them.

    They stand for all files of a run, which one job makes. A table thus has one input a run instead of five.
    """
    lacks = set(block.get("lacks", []))
    return [file(point) for point in blocks.points(block) if point.path not in lacks]


def reports(block: dict, *, file: Callable[[str], str]) -> list[str]:
    """The reports of the data sets in a table or figure, each with its data's digest; `file` names them."""
    return [file(row["dataset"]) for row in block["datasets"]]


def reported(block: dict) -> str | list:
    """The CSV file of the numbers that the paper prints; [] if there is none."""
    file = file_of(block.get("reported", block["paper"]))
    return str(file) if file.is_file() else []


def drawn_from(block: dict) -> str | list:
    """The table, or else the printed numbers, that a kind of figure draws."""
    if "table" in block:
        return f"results/{block['scale']}/tables/{block['paper']}/{block['table']}.csv"
    return reported(block) if block["kind"] == "accuracy_by_parameters" else []


def made_of(key: tuple[str, str, str], block: dict) -> dict[str, list[str]]:
    """What a table or figure is made of, as `plan.made_of` has it."""
    stage = STAGES[key[0]]
    beside = drawn_from(block) if stage == "draw" else reported(block)
    return {
        "runs": predictions(block, file=lambda point: point.path),
        "data": reports(block, file=str),
        "files": [*([beside] if beside else []), *code(block, stage=stage)],
    }


def overview(config: dict, everything: dict, whole: dict) -> dict:
    """What the first page of the report is told: by paper its title and runs, and how to find its claims.

    everything: what is made. whole: what the scale asks for, which is more where nothing is trained.
    """
    runs, planned = by_paper(everything), by_paper(whole)
    figures = {
        (paper, block["table"]): (f"figures/{paper}/{name}.png", block["caption"])
        for (what, paper, name), block in everything.items()
        if "table" in block
    }
    claims = []
    for (what, paper, name), block in everything.items():
        if what == "tables" and block["kind"] == "claims":
            figure, caption = figures.get((paper, name), (None, block["caption"]))
            place = {"table": f"tables/{paper}/{name}.csv", "figure": figure, "caption": caption}
            claims.append({"title": config["papers"][paper]["title"], **place})
    return {
        "scale": config["scale"],
        "runs": list(dict.fromkeys(run for taken in runs.values() for run in taken)),  # papers share some
        "planned": len({run for taken in planned.values() for run in taken}),
        "papers": [
            {"title": config["papers"][paper]["title"], "runs": runs.get(paper, []), "planned": len(taken)}
            for paper, taken in planned.items()
            if taken
        ],
        "claims": claims,
    }


def page(scale: str) -> str:
    """The first page of the report."""
    return f"results/{scale}/overview.html"


def page_of(overview: dict) -> dict[str, list[str]]:
    """What the first page is made of, as `plan.made_of` has it. overview: what it is told."""
    claims = [one[kind] for kind in ("table", "figure") for one in overview["claims"] if one[kind]]
    drawn = [f"results/{overview['scale']}/{file}" for file in claims]
    return {"runs": overview["runs"], "data": [], "files": [*drawn, *sources("tailprompt.overview")]}


def by_paper(everything: dict) -> dict[str, list[str]]:
    """Paper -> the paths of the runs in its tables and figures, each once."""
    found: dict[str, dict[str, None]] = {}
    for (_, paper, _), block in everything.items():
        found.setdefault(paper, {}).update(dict.fromkeys(predictions(block, file=lambda point: point.path)))
    return {paper: list(runs) for paper, runs in found.items()}


def targets(everything: dict, scale: str, what: str, *suffixes: str) -> list[str]:
    """The files of all tables or figures that a scale makes, with what searches choose."""
    return [
        f"results/{scale}/{what}/{paper}/{name}.{suffix}"
        for (kind, paper, name), block in everything.items()
        if kind == what
        for suffix in (*suffixes, *(["yaml"] if block["kind"] == "search" else []))
    ]


def made(everything: dict, scale: str) -> list[str]:
    """The files of all tables and figures."""
    return [file for what in ENDINGS for file in targets(everything, scale, what, *ENDINGS[what])]
