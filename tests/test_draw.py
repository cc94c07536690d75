"""Figures: drawn for whatever was run, the same bytes each time, fonts inside, no boxes for Chinese."""

import base64

import made_up
import numpy as np
import pandas as pd
import pytest
from blocks import block, results
from scales import scale

from tailprompt import draw
from tailprompt.errors import BadInput
from tailprompt.plan import blocks
from tailprompt.plan import settings as plan
from tailprompt.report.figures import style
from tailprompt.report.figures.features import features
from tailprompt.report.figures.score_by_frequency import binned

METHODS = ["cls-tanh", "cls-tanh-focal", "prompt"]
BLOCKS = {
    "class_distribution": {"methods": []},
    "weight_norms": {"methods": METHODS, "normalised": True},
    "features": {"methods": METHODS[1:], "classes": ["earn", "\u5feb\u9012"], "features": 4},
    "score_by_frequency": {"methods": METHODS},
    "score_by_shots": {"methods": METHODS, "score": "f1/all"},
    "score_bars": {"methods": METHODS},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return results(tmp_path_factory.mktemp("figures"), block("any", METHODS, seeds=[1, 2]))


def figure(kind, **changes):
    return block(kind, seeds=[1, 2], name=kind, **BLOCKS[kind]) | changes


@pytest.fixture(scope="module")
def drawn(root, tmp_path_factory):
    """A folder with a figure of each kind; a missing glyph would warn, and warnings are errors."""
    folder = tmp_path_factory.mktemp("drawn")
    for kind in BLOCKS:
        draw.draw(root, figure(kind), folder / kind)
    return folder


def test_the_page_of_a_figure_holds_its_png_and_enlarges_it(drawn):
    page = (drawn / "class_distribution.html").read_text("utf-8")
    png = base64.b64encode((drawn / "class_distribution.png").read_bytes()).decode()
    assert f'src="data:image/png;base64,{png}"' in page and "onclick" in page
    assert '<div class="wide"><img' in page and 'name="viewport"' in page and "http" not in page
    assert page.count(BLOCKS["class_distribution"].get("caption", "A comparison")) == 3


@pytest.mark.parametrize("kind", BLOCKS)
def test_each_kind_is_drawn_as_pdf_and_png(drawn, kind):
    pdf = (drawn / f"{kind}.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert b"CreationDate" not in pdf
    assert (drawn / f"{kind}.png").read_bytes()[1:4] == b"PNG"


def test_the_same_figure_is_the_same_bytes(root, drawn, tmp_path):
    draw.draw(root, figure("class_distribution"), tmp_path / "again")
    for ending in ("pdf", "png"):
        first, again = drawn / f"class_distribution.{ending}", tmp_path / f"again.{ending}"
        assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    "kind", ["weight_norms", "features", "score_by_frequency", "score_by_shots", "score_bars"]
)
def test_what_was_not_run_is_said_in_its_panel(tmp_path, kind):
    made_up.data(tmp_path)
    with style.plt.rc_context(style.SETTINGS):
        drawn = draw.FIGURES[kind](tmp_path, figure(kind))
    words = [text.get_text() for axes in drawn.axes for text in axes.texts]
    style.plt.close(drawn)
    assert set(words) == {"not run"}


def test_a_class_that_the_data_lack_is_one_sentence(root):
    with pytest.raises(BadInput, match="'perl' is no class of made"):
        features(root, figure("features", classes=["perl"]))


def test_an_unknown_kind_is_one_sentence(root, tmp_path):
    with pytest.raises(BadInput, match="unknown kind of figure 'pie'"):
        draw.draw(root, block("pie"), tmp_path / "x")


def test_a_figure_with_classes_asks_its_runs_for_features_and_no_others():
    paper = scale("paper")
    asked = {point.path for point in blocks.all_points(paper) if "features" in plan.settings(paper, point)}
    figure4 = paper["papers"]["glee"]["figures"]["figure4"]
    shown = {point.path for point in blocks.points(blocks.expand(paper, figure4))}
    assert asked == shown and len(shown) == 4


@pytest.mark.parametrize("long", [1, 10, 25, 50])
def test_a_legend_has_as_many_columns_as_fit(long):
    with style.plt.rc_context(style.SETTINGS):
        drawn, (axes,) = style.panels(1, 1, 2.5)
        for place in range(5):
            axes.plot([1, 2], label=f"{place} " + "a" * long)
        style.legend(drawn)
        drawn.canvas.draw()
        (made,) = drawn.legends
        width = made.get_window_extent().width
        style.plt.close(drawn)
    assert len(made.get_texts()) == 5 and width < drawn.bbox.width


@pytest.mark.parametrize("kind", ["score_by_shots", "score_bars"])
def test_an_axis_names_the_classes_that_its_score_is_of(root, kind):
    with style.plt.rc_context(style.SETTINGS):
        drawn = draw.FIGURES[kind](root, figure(kind, score="f1/tail"))
    assert {axes.get_ylabel() for axes in drawn.axes} == {"Tail F1 on test"}
    style.plt.close(drawn)


def test_more_lines_than_can_be_told_apart_are_refused(root, tmp_path):
    with pytest.raises(BadInput, match="at most 6 methods"):
        draw.draw(root, figure("score_by_frequency", methods=[{"name": "prompt"}] * 7), tmp_path / "x")


@pytest.mark.parametrize("name", ["\u5feb\u9012", "\u0939\u093f", "\u0e44\u0e17\u0e22", "\U0001f389"])
def test_classes_that_the_font_cannot_print_go_by_their_id(name):
    assert style.printable(name, 3) == "class 3" and style.printable("tea & co_1", 4) == "tea & co_1"


def test_what_is_between_dollars_is_no_formula():
    figure = style.plt.figure()
    text = figure.text(0, 0, style.printable("from $10 to $_$20", 0))
    figure.canvas.draw()  # which a formula of this kind would end
    assert text.get_text().count(r"\$") == 3
    style.plt.close(figure)


def test_bins_hold_about_as_many_classes_and_ties_stay_together():
    counts = np.array([1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256], float)
    centres, means = binned(pd.DataFrame({"count": counts, "value": np.arange(12.0)})).to_numpy().T
    assert centres[0] == pytest.approx(1.0) and means[0] == 1.5
    assert list(centres) == sorted(centres)


def test_one_class_makes_one_bin():
    centres, means = binned(pd.DataFrame({"count": [5.0], "value": [40.0]})).to_numpy().T
    assert centres == pytest.approx([5.0]) and means == pytest.approx([40.0])
