"""Draw a figure of a paper: PREFIX.pdf with embedded fonts, PREFIX.png, and PREFIX.html to enlarge it.

python -m tailprompt.draw --root results/<scale> --spec FILE --out PREFIX

JSON is the figure's block as `plan.blocks.expand` returns it, with `paper` and `name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tailprompt.errors import named, stage
from tailprompt.files import whole
from tailprompt.report import browse
from tailprompt.report.figures import style
from tailprompt.report.figures.accuracy_by_parameters import accuracy_by_parameters
from tailprompt.report.figures.claims import claims
from tailprompt.report.figures.class_distribution import class_distribution
from tailprompt.report.figures.features import features
from tailprompt.report.figures.lda import lda
from tailprompt.report.figures.prompt_matching import prompt_matching
from tailprompt.report.figures.score_bars import score_bars
from tailprompt.report.figures.score_by_frequency import score_by_frequency
from tailprompt.report.figures.score_by_setting import score_by_setting
from tailprompt.report.figures.score_by_shots import score_by_shots
from tailprompt.report.figures.weight_norms import weight_norms
from tailprompt.report.options import options
from tailprompt.seals import seal

# no dates and versions, so that the bytes are the same each time
FORMATS = {"pdf": {"CreationDate": None, "ModDate": None}, "png": {"Software": None}}
DOTS = 200  # per inch
ON_SCREEN = 1.6  # the width of a figure in a window, in that on paper


def draw(root: Path, spec: dict, out: Path, made_of: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write a figure as PDF and PNG, and as a page with the PNG. made_of: as in `tabulate`."""
    kind = named(FIGURES, spec["kind"], "kind of figure")
    with style.plt.rc_context(style.SETTINGS):
        figure = kind(root, spec)
        for ending, metadata in FORMATS.items():
            with whole(out.with_name(f"{out.name}.{ending}")) as temporary:
                figure.savefig(temporary, format=ending, dpi=DOTS, metadata=metadata)
        page = browse.figure(
            out.with_name(f"{out.name}.png").read_bytes(), spec["caption"], figure.get_figwidth() * ON_SCREEN
        )
        style.plt.close(figure)
    with whole(out.with_name(f"{out.name}.html")) as temporary:
        temporary.write_text(page, "utf-8")
    seal(*(out.with_name(f"{out.name}.{ending}") for ending in (*FORMATS, "html")), also=made_of)


def main() -> None:
    draw(*options("draw", __doc__, "figure"))


FIGURES = {
    "accuracy_by_parameters": accuracy_by_parameters,
    "claims": claims,
    "class_distribution": class_distribution,
    "features": features,
    "lda": lda,
    "prompt_matching": prompt_matching,
    "score_bars": score_bars,
    "score_by_frequency": score_by_frequency,
    "score_by_setting": score_by_setting,
    "score_by_shots": score_by_shots,
    "weight_norms": weight_norms,
}

if __name__ == "__main__":
    stage(main)
