"""The figure of claims: a line each, the verdict told thrice, nothing cut off, drawn from the table alone."""

import matplotlib.colors as colours
import numpy as np
import pandas as pd
import pytest
from scales import scale

from tailprompt import draw
from tailprompt.plan import blocks
from tailprompt.report.figures import claims, style
from tailprompt.report.figures.claims import LOOKS, WIDTHS

SPEC = {"kind": "claims", "paper": "glee", "name": "claims", "table": "claims", "caption": "Claims"}
PAPERS = ("glee", "lpt", "ppt", "ptuning2", "across")
ROW = {
    "section": "3.2",
    "dataset": "all",
    "direction": "greater",
    "unit": "points",
    "reported": 2.0,
    "ours": 3.0,
    "low": 1.0,
    "high": 5.0,
    "verdict": "holds",
}
NOT_RUN = {"ours": np.nan, "low": np.nan, "high": np.nan, "verdict": "not run"}


def write(root, *changes, paper="glee"):
    rows = [
        {"id": f"c{place}", "says": f"Claim {place}", "margin": np.nan, **ROW, **change}
        for place, change in enumerate(changes)
    ]
    folder = root / "tables" / paper
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "claims.csv", index=False)
    return root


@pytest.fixture
def drawn():
    """A function that draws, and what it drew is closed after the test."""
    made = []

    def figure(root, **changes):
        with style.plt.rc_context(style.SETTINGS):
            made.append(claims.claims(root, SPEC | changes))
        return made[-1]

    yield figure
    for one in made:
        style.plt.close(one)


def words(figure):
    return [text.get_text() for text in figure.texts]


def marks(figure, shape):
    return [line for axes in figure.axes for line in axes.lines if line.get_marker() == shape]


def test_a_claim_is_a_line_with_its_effect_and_verdict(tmp_path, drawn):
    figure = drawn(write(tmp_path, {}, {"ours": -1.5, "verdict": "fails"}, {"verdict": "undecided"}))
    assert words(figure)[0] == "3 claims: 1 holds, 1 fails, 1 undecided"
    assert {"+3.0", "\u22121.5", "holds", "fails", "undecided", "Claim 1\u00a0(3.2)"} <= set(words(figure))
    for verdict in LOOKS:
        assert len(marks(figure, LOOKS[verdict]["marker"])) == 1
    assert len(marks(figure, "D")) == 3


def test_a_claim_that_was_not_run_shows_what_is_printed_or_is_counted(tmp_path, drawn):
    figure = drawn(write(tmp_path, {}, NOT_RUN, {**NOT_RUN, "reported": np.nan}))
    assert words(figure)[0] == "3 claims: 1 holds, 2 not run (1 of them without a printed effect, not drawn)"
    assert words(figure).count("not run") == 1 and len(marks(figure, "D")) == 2


def test_a_table_in_which_nothing_was_run_is_drawn_as_printed(tmp_path, drawn):
    root = write(tmp_path, {**NOT_RUN}, {**NOT_RUN})
    file = root / "tables/glee/claims.csv"
    pd.read_csv(file).drop(columns=["ours", "low", "high"]).to_csv(file, index=False)
    assert len(marks(drawn(root), "D")) == 2


def test_nothing_to_draw_is_said(tmp_path, drawn):
    figure = drawn(write(tmp_path, {**NOT_RUN, "reported": np.nan}))
    assert words(figure)[0] == "1 claim: 1 not run (1 of them without a printed effect, not drawn)"


def test_each_unit_has_a_panel_of_its_own(tmp_path, drawn):
    units = [{}, {"unit": "exponent", "ours": 0.08, "low": 0.06, "high": 0.09, "reported": np.nan}, {}]
    figure = drawn(write(tmp_path, *units))
    assert [len(axes.patches) for axes in figure.axes] == [2, 1]
    low, high = figure.axes[1].get_xlim()
    assert -0.05 < low < 0 and 0.09 < high < 0.2
    assert "+0.08" in words(figure)


@pytest.mark.parametrize(
    "direction, margin, inside, outside",
    [
        ("greater", np.nan, 1, -1),
        ("greater", 2, 3, 1),
        ("not_greater", 1, 0.5, 1.5),
        ("equal", 1, 0, -1.5),
    ],
)
def test_the_side_where_a_claim_holds_is_shaded(tmp_path, drawn, direction, margin, inside, outside):
    figure = drawn(write(tmp_path, {"direction": direction, "margin": margin}))
    (patch,) = figure.axes[0].patches
    start, end = patch.get_x(), patch.get_x() + patch.get_width()
    assert start < inside < end and not start < outside < end


def test_a_wide_interval_ends_in_an_arrow_and_does_not_squeeze_the_others(tmp_path, drawn):
    figure = drawn(write(tmp_path, {}, {}, {"low": -300, "high": 306, "verdict": "undecided"}))
    low, high = figure.axes[0].get_xlim()
    assert -10 < low < 0 and 5 < high < 11
    assert len(marks(figure, "<")) == len(marks(figure, ">")) == 1


def test_one_seed_has_an_effect_and_no_interval(tmp_path, drawn):
    figure = drawn(write(tmp_path, {"low": np.nan, "high": np.nan, "verdict": "undecided"}))
    assert len(marks(figure, "s")) == 1 and "undecided" in words(figure)


def test_verdicts_differ_in_mark_and_in_grey():
    assert len({look["marker"] for look in LOOKS.values()}) == len(LOOKS)
    fills = [
        np.dot(colours.to_rgb(look["markerfacecolor"]), (0.2126, 0.7152, 0.0722)) for look in LOOKS.values()
    ]
    assert min(abs(a - b) for i, a in enumerate(fills) for b in fills[:i]) > 0.05


@pytest.mark.parametrize("paper", PAPERS)
def test_nothing_that_ships_is_cut_off_or_runs_into_the_panel(tmp_path, drawn, paper):
    """Each claim with the longest words that can stand beside it."""
    told = scale("paper")["papers"][paper]["tables"]["claims"]["claims"]
    long = {"ours": -1234.5, "reported": -1200.0, "low": -1300.0, "high": -1100.0, "verdict": "undecided"}
    rows = [{"says": one["says"], "section": one["section"], **long} for one in told.values()]
    figure = drawn(write(tmp_path, *rows, paper=paper), paper=paper)
    page, renderer = figure.bbox, figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in (*figure.texts, *figure.legends)]
    boxes += [label.get_window_extent(renderer) for axes in figure.axes for label in axes.get_xticklabels()]
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)
    assert all(page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
    left = [text for text in figure.texts if text.get_weight() == "normal" and text.get_position()[0] < 0.1]
    assert len(left) >= len(rows)
    assert max(text.get_window_extent(renderer).x1 for text in left) <= WIDTHS[0] * figure.dpi


def test_a_claim_that_the_font_cannot_print_is_called_by_its_id(tmp_path, drawn):
    figure = drawn(write(tmp_path, {"says": "\u5feb\u9012"}))
    assert "c0\u00a0(3.2)" in words(figure)


def test_it_is_written_as_pdf_png_and_page_with_the_same_bytes_each_time(tmp_path):
    root = write(tmp_path, {}, NOT_RUN)
    for name in ("a", "b"):
        draw.draw(root, SPEC, tmp_path / name)
    for ending in ("pdf", "png", "html"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf


@pytest.mark.parametrize("name", ["mini", "demo", "paper"])
def test_a_figure_of_claims_is_made_wherever_its_table_is(name):
    shown = blocks.shown(scale(name))
    tables = {
        paper for (what, paper, _), block in shown.items() if what == "tables" and block["kind"] == "claims"
    }
    figures = {
        paper for (what, paper, _), block in shown.items() if what == "figures" and block["kind"] == "claims"
    }
    assert tables == figures and tables
