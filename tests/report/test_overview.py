"""The first page of the report: what was run, on what and how long, which claims hold; it stands alone."""

import base64
import json
import re

import blocks
import pandas as pd
import pytest

from tailprompt.report.overview import overview, time

METHODS = ("cls-tanh", "prompt")
CLAIM = {
    "section": "3.2",
    "dataset": "all",
    "unit": "points",
    "reported": 7.8,
    "ours": 12.3,
    "low": 9.0,
    "high": 15.6,
}


@pytest.fixture
def root(tmp_path):
    """Runs on two devices, and a table of claims with its figure."""
    blocks.results(tmp_path, blocks.block("scores", METHODS, seeds=[1, 2]))
    for place, file in enumerate(sorted(tmp_path.glob("runs/*/*/*/*/*/run.json"))):
        device = "NVIDIA H200" if place else "cpu"
        about = {"device": device, "seconds": 1800.0, "memory_mb": 1500, "versions": {"torch": "2.11"}}
        file.write_text(json.dumps(json.loads(file.read_text()) | about))
    rows = [
        {**CLAIM, "says": "Prompt-tuning <wins>", "verdict": "holds"},
        {**CLAIM, "says": "It loses", "verdict": "fails", "ours": -1.0, "reported": None},
        {**CLAIM, "says": "Who knows", "verdict": "undecided"},
        {**CLAIM, "says": "On one data set", "dataset": "made", "verdict": "holds"},
    ]
    for folder in ("tables/glee", "figures/glee"):
        (tmp_path / folder).mkdir(parents=True)
    pd.DataFrame(rows).to_csv(tmp_path / "tables/glee/claims.csv", index=False)
    (tmp_path / "figures/glee/claims.png").write_bytes(b"a picture")
    return tmp_path


def spec(**changes):
    runs = [f"glee/mini/made/{method}/{seed}" for method in METHODS for seed in (1, 2)]
    claims = {
        "title": "GLEE",
        "table": "tables/glee/claims.csv",
        "figure": "figures/glee/claims.png",
        "caption": "C",
    }
    papers = [{"title": "GLEE", "runs": runs, "planned": 6}]
    return {"scale": "tiny", "runs": runs, "planned": 6, "papers": papers, "claims": [claims]} | changes


def plain(page):
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL).split())


def test_it_says_what_was_run_on_what_and_how_long(root):
    text = plain(overview(root, spec()))
    assert (
        "4 of 6 planned runs are here, of 2 methods on 1 data set with mini. They took 2.0 h in all" in text
    )
    assert "NVIDIA H200 (3), cpu (1) 2.0 h 1.5 GB" in text and "torch 2.11" in text


def test_a_number_is_there_once_and_papers_without_claims_are_named(root):
    text = plain(overview(root, spec()))
    assert "GLEE 4 of 6 2 1 2 mini" in text and "All, each run once 4 of 6 2 1 mini" in text
    whole = [{**spec()["papers"][0], "planned": 4}, {**spec()["papers"][0], "title": "PPT", "planned": 4}]
    text = plain(overview(root, spec(papers=whole)))
    assert "GLEE 4 2 1 2 mini" in text and "This scale judges no claims of: PPT." in text


def test_it_counts_claims_over_all_data_sets_and_names_those_that_are_decided(root):
    page = overview(root, spec())
    assert "Paper holds fails undecided not run GLEE 1 1 1 0" in plain(page)
    assert "Prompt-tuning &lt;wins&gt;: +12.3 points (+9.0 to +15.6), printed +7.8" in page
    assert "It loses: \u22121.0 points (+9.0 to +15.6)</li>" in page and "Who knows" not in page


def test_its_figures_are_in_it_and_enlarge_without_a_script(root):
    page = overview(root, spec())
    assert f'src="data:image/png;base64,{base64.b64encode(b"a picture").decode()}"' in page
    assert page.count('<div class="wide"><table>') == page.count("<table>") == 2  # on a phone
    assert page.count('<div class="figure"><img') == page.count("<img") == 1
    assert "onclick" in page and "<script" not in page and "http" not in page


def test_what_claims_without_a_figure_or_runs_leave_is_said(root):
    page = overview(root, spec(claims=[{**spec()["claims"][0], "figure": None}]))
    assert "<img" not in page and "Prompt-tuning &lt;wins&gt;" in page
    nothing = plain(overview(root, spec(runs=[], papers=[], claims=[])))
    assert "None of 6 planned runs is here" in nothing and "judges no claims" in nothing


@pytest.mark.parametrize("seconds, said", [(5, "5 s"), (90, "2 min"), (5400, "1.5 h"), (7.2e6, "2,000.0 h")])
def test_times_are_for_people(seconds, said):
    assert time(seconds) == said
