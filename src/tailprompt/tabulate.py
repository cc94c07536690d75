"""Make a table of a paper: PREFIX.tex (booktabs), .md, .html, and .csv with every number.

python -m tailprompt.tabulate --root results/<scale> --spec FILE --out PREFIX

JSON is the table's block as `plan.blocks.expand` returns it, with `paper` and `name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tailprompt.errors import named, stage
from tailprompt.files import whole
from tailprompt.report import typeset
from tailprompt.report.options import options
from tailprompt.report.tables.claims import claims
from tailprompt.report.tables.feature_statistics import feature_statistics
from tailprompt.report.tables.scores import scores
from tailprompt.report.tables.search import search
from tailprompt.report.tables.statistics import statistics
from tailprompt.seals import seal


def tabulate(root: Path, spec: dict, out: Path, made_of: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write the four files of a table. made_of: what `report.options.taken` returns."""
    long, tex, md = named(KINDS, spec["kind"], "kind of table")(root, spec)
    written = {
        ".csv": long.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
        ".tex": typeset.tex(tex),
        ".md": typeset.md(md),
        ".html": typeset.html(tex),
    }
    for ending, text in written.items():
        with whole(out.with_name(out.name + ending)) as temporary:
            temporary.write_text(text, "utf-8")
    seal(*(out.with_name(out.name + ending) for ending in written), also=made_of)


def main() -> None:
    tabulate(*options("tabulate", __doc__, "table"))


KINDS = {
    "claims": claims,
    "feature_statistics": feature_statistics,
    "scores": scores,
    "search": search,
    "statistics": statistics,
}

if __name__ == "__main__":
    stage(main)
