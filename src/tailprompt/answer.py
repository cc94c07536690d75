"""Write the page that answers which method to take on your data: results/<scale>/answer.html and answer.md.

`tailprompt answer --configfile FILE`, after snakemake with that file; `tailprompt try` does both. The page
is of the table `first` of the scale, and of its table `curve` (the same methods on cuts), if there is one.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tailprompt.errors import BadInput, stage
from tailprompt.files import whole
from tailprompt.plan import blocks, config, first_open
from tailprompt.plan.first_hours import elsewhere
from tailprompt.plan.first_round import MODELS, PAPERS
from tailprompt.report.page import data_words, evidence, pictures, sheets, words
from tailprompt.report.page.write import Section, html, markdown, on_screen

AUDITED = "Rows of dev and test are judged, by all methods; no method trained on them."


def answer(scale: dict, root: Path = Path(".")) -> tuple[str, str, Path]:
    """The page as HTML and as Markdown, and the folder of results that it belongs in."""
    first, curve = (block_of(scale, name) for name in ("first", "curve"))
    if first is None:
        raise BadInput(
            f"scale {scale['scale']} makes no table `first` of {' or '.join(PAPERS)}, which the page is of"
        )
    states = first_open.states(scale, root)
    lacks = first_open.told(scale, states, root)
    first, curve = (block and first_open.ended(scale, block, states, root) for block in (first, curve))
    if first is None:
        raise BadInput(" ".join([f"no run of {scale['scale']} has ended.", *lacks]))
    results, score = root / "results" / scale["scale"], first["winner"]
    names = list(dict.fromkeys([score, *first["metrics"]]))
    rows, runs, report = evidence.standing(results, first)
    metric, groups = evidence.groups(rows, score.partition("/")[0])
    others, small = elsewhere(scale, runs, root), evidence.too_small(score, report)
    worst, images = evidence.worst(runs, rows[0].method, report), report["language"] == "image"
    folder, kept = evidence.predicting(runs, rows[0].method)
    searched = "" if "choose" in first else f"config/{MODELS[images]}.yaml"
    sections = [
        Section(
            "",
            [*lacks, words.cost(rows[0], images=images), *words.advice(rows, score, report)],
            pictures.svg(pictures.ranking(rows, score)),
        ),
        Section(
            "Head and tail, and the cost" if groups else "The cost",
            [
                words.trained(rows),
                *words.read(rows),
                *data_words.grouped(report, groups),
                *data_words.rare(report, names),
            ],
            pictures.svg(pictures.by_group(rows, metric, groups)) if groups else "",
            sheets.methods(
                rows, names[:1] if groups else names, metric, groups, searched=searched, images=images
            ),
        ),
        Section(
            "Where it goes wrong",
            words.left_out(report, worst),
            pictures.svg(pictures.confusion(worst, report["classes"])) if worst else "",
            sheets.classes(worst, report["classes"]) if worst else None,
        ),
        Section(
            "What more would give",
            *further(results, curve, rows, score, others, small=small, part=data_words.partly(report)),
        ),
        Section(
            "To predict new rows",
            [],
            commands=tuple(words.command(str(folder), kept, rows[0].method, images=images)),
        ),
        Section(
            "To check the labels",
            [AUDITED],
            commands=(f"tailprompt audit {shlex.quote(str(folder.parents[4]))}",),
        ),
        Section("The data", [data_words.looked(report)]),
    ]
    title, said = (
        f"Which method to take on {report['title']}",
        words.headline(rows, score, report, of=len(first["methods"])),
    )
    return html(title, said, sections), markdown(title, said, sections), results


def block_of(scale: dict, name: str) -> dict | None:
    """The expanded table of this name of a first round; None if the scale does not make it."""
    found = [
        block for (what, paper, one), block in blocks.shown(scale).items()
        if what == "tables" and paper in PAPERS and one == name
    ]  # fmt: skip
    return found[0] if found else None


def further(
    results: Path, curve: dict | None, rows: list, score: str, others: list[str], *, small: bool, part: bool
) -> tuple[list[str], str]:
    """The sentences on more data and other backbones, and the learning curve.

    small: whether the test set is. part: whether the round took a part of the rows.
    """
    if curve is None:
        return ["Nothing is known of more data: no table `curve` is made, or none of its runs.", *others], ""
    there = {method["name"] for method in curve["methods"]}
    row = next((row for row in rows if row.method in there), rows[0])  # the leader, if it is there
    data = evidence.more(results, curve, row.method, score)
    said = words.growth(data, row, leads=row is rows[0], small=small, part=part)
    return [said, *others], pictures.svg(pictures.learning(data, rows, score))


def write(scale: dict) -> tuple[str, Path]:
    """Write both forms of the page; returns the Markdown, and the path of the HTML."""
    page, text, folder = answer(scale)
    for name, content in (("answer.html", page), ("answer.md", text)):
        with whole(folder / name) as temporary:
            temporary.write_text(content, "utf-8")
    return text, folder / "answer.html"


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt answer", description=__doc__.split("\n")[0])
    parser.add_argument(*config.OPTION, required=True, **config.FILES)
    text, place = write(config.load(parser.parse_args().configfile))
    print(f"{on_screen(text)}\npage: {place}")


if __name__ == "__main__":
    stage(main)
