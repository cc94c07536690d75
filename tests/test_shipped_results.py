"""What the README prints of GLEE is what the shipped bundle gives: one table, and one claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from scales import scale

from tailprompt.plan import blocks
from tailprompt.report.sheet import number
from tailprompt.report.tables.claims import claims
from tailprompt.report.tables.claims_sheet import ALL, span
from tailprompt.report.tables.scores import scores
from tailprompt.unbundle import unbundle

README = Path("README.md")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The mini scale's results as the shipped bundle brings them."""
    root = tmp_path_factory.mktemp("results") / "mini"
    unbundle(Path("workflow/resources/results/mini.tar.xz"), root)
    return root


def lines_with(text: str) -> list[str]:
    """The rows of the README's tables that begin so."""
    found = [line for line in README.read_text("utf-8").splitlines() if line.startswith(f"| {text}")]
    assert found, f"the README has no row {text}"
    return found


def test_the_table_of_glee_in_the_readme_is_that_of_the_shipped_runs(results):
    block = blocks.shown(scale("mini"))["tables", "glee", "table2"]
    long, _, _ = scores(results, block)
    ours = long[(long.dataset != "avg") & long.metric.isin(["f1/all", "f1/tail"])]
    titles = {"cls-tanh": "CLS-tuning (T) |", "prompt": "Prompt-tuning |"}
    for method, title in titles.items():
        rows = ours[ours.method == method]
        assert len(rows) == 2 * len(block["datasets"]) and rows.missing_seeds.eq("").all()
        printed = [f"| {number(row.ours)} \u00b1 {number(row.spread)} |" for row in rows.itertuples()]
        assert any(all(cell in line for cell in printed) for line in lines_with(title)), printed


def test_a_claim_in_the_readme_is_that_of_the_shipped_runs(results):
    block = blocks.shown(scale("mini"))["tables", "glee", "claims"]
    one = [claim for claim in block["claims"] if claim["id"] == "prompt-f1"]
    runs = [run for run in block["runs"] if run["method"] in ("prompt", "cls-tanh")]
    long, _, _ = claims(results, {**block, "claims": one, "runs": runs})
    row = long[long.dataset == ALL].iloc[0]
    printed = f"| {number(row.ours, signed=True)} | {span(row)} |"
    assert any(printed in line for line in lines_with(row.says)), printed
    assert row.verdict == "holds"
