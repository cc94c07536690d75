"""What README and docs say is what the command would write, and what they name is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import ROOT

from docs.__main__ import PACKED, SCALE, pages, tabulated
from docs.fill import filled, names
from docs.listed import MAKERS
from docs.results import fair, judged, makers, verdicts
from tailprompt.__main__ import COMMANDS, STAGES
from tailprompt.plan.config import load
from tailprompt.report.tables.claims_sheet import ALL

README = Path("README.md")
DOCS = [README, Path("CONTRIBUTING.md"), Path("config/README.md"), *sorted(Path("docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
DIFF = re.compile(r"```diff\n(.*?)```", re.DOTALL)
FENCED = re.compile(r"```.*?```", re.DOTALL)
PATH = re.compile(r"`((?:config|src|workflow|tests|docs|benchmarks)/[\w./-]+)`")
MADE = {"config/lock.json", "config/my-tickets.yaml", "config/tickets.yaml"}  # by a command


def named(files):
    return pytest.mark.parametrize("file", files, ids=str)


def heads(text: str) -> set[str]:
    """The anchors of a page, as a forge makes them."""
    found = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in found}


@named(pages())
def test_lists_of_a_page_are_those_of_configuration_and_code(file):
    """If not: `.venv/bin/python -m docs --lists` writes them anew."""
    text = file.read_text("utf-8")
    assert filled(text, MAKERS) == text


@named(pages())
def test_each_part_of_a_page_has_a_maker(file):
    assert set(names(file.read_text("utf-8"))) <= {*MAKERS, *makers(Path())}


def test_a_part_is_filled_on_its_line_or_between_two():
    page = "a <!-- made: n x -->old<!-- end made --> b\n<!-- made: n y -->\nold\n<!-- end made -->\n"
    new = page.replace(">old<", ">x1<").replace("\nold\n", "\ny1\n")
    assert filled(page, {"n": lambda name: f"{name}1"}) == new
    assert filled(page, {}) == page


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The tables that the packed results give."""
    return tabulated(PACKED, tmp_path_factory.mktemp("packed"))


@pytest.mark.workflow
def test_numbers_of_the_pages_are_those_of_the_packed_results(results):
    """If not: `make results` writes them anew."""
    texts = {file: file.read_text("utf-8") for file in pages()}
    assert {file: filled(text, makers(results)) for file, text in texts.items()} == texts


@pytest.mark.workflow
def test_the_verdicts_are_what_the_answer_in_the_readme_says(results):
    """If not, the paragraph above its first table has to be written anew."""
    said = {
        "glee": {"prompt-f1": "holds", "prompt-tail": "holds", "approximates": "undecided"},
        "across": {"prefix-finetune": "undecided"},
    }
    for paper, wanted in said.items():
        rows = judged(results, paper)
        found = rows[rows.dataset == ALL].set_index("id").verdict
        assert {name: found[name] for name in wanted} == wanted


def test_a_search_that_lacks_runs_shows_what_it_chose_and_judges_nothing(tmp_path):
    assert fair(tmp_path, "lpt") == "Not run."
    folder = tmp_path / "tables/glee-fair"
    folder.mkdir(parents=True)
    points = [
        ("search", "cmid", "prompt", "prompt@epochs=10,lr=0.0001", 1, 41.26, True),
        ("search", "cmid", "prompt", "prompt@epochs=30,lr=0.0001", 1, 40.0, False),
        ("search", "r52-rebuilt", "prompt", "prompt@epochs=10,lr=0.0001", 0, float("nan"), False),
    ]
    columns = ["table", "dataset", "method", "run", "n", "dev", "best"]
    pd.DataFrame(points, columns=columns).to_csv(folder / "search.csv", index=False)
    said = "2 of 3 runs of `search` are here; they choose for 1 of 2 pairs of a method and a data set."
    row = "| Prompt-tuning | epochs 10, lr 0.0001 (41.3) |"
    assert fair(tmp_path, "glee").startswith(said) and fair(tmp_path, "glee").endswith(row)
    assert "searched" not in verdicts(tmp_path)


def test_tables_that_wait_for_a_search_are_made_once_it_has_chosen(tmp_path, monkeypatch):
    whole, given = load([SCALE]), []
    cells = {
        name: dict.fromkeys(
            whole["papers"]["glee-fair"]["tables"]["search"]["methods"], {"lr": 3.0e-5, "epochs": 10}
        )
        for name in ("r52-rebuilt", "cmid", "debian-sections")
    }

    def make(folder, files, cores):
        given.append([Path(file).name for file in files])
        table = folder / "results/mini/tables/glee-fair"
        table.mkdir(parents=True, exist_ok=True)
        chosen = {"cmid": cells["cmid"]} if part else cells
        (table / "search.yaml").write_text(yaml.safe_dump({"protocols": {"glee-fair": {"cells": chosen}}}))

    monkeypatch.setattr("docs.__main__.unbundle", lambda *_: None)
    monkeypatch.setattr("docs.__main__.make", make)
    for part, times in ((True, [["mini.yaml"]]), (False, [["mini.yaml"], ["mini.yaml", "search.yaml"]])):
        given.clear()
        folder = tmp_path / str(part)
        folder.mkdir()
        tabulated(PACKED, folder)
        assert given == times


def test_the_workflow_catalogue_finds_what_it_looks_for():
    """Its page "Adding workflows", and the keys that its generator reads."""
    words = README.read_text("utf-8").lower()
    assert "snakemake" in words and "workflow" in words and Path("Snakefile").is_file()
    assert any(Path("workflow/rules").glob("*.smk")) and Path("config/README.md").is_file()
    usage = yaml.safe_load(Path(".snakemake-workflow-catalog.yml").read_text("utf-8"))["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["mandatory-flags"].keys() == {"desc", "flags"}
    assert usage["software-stack-deployment"].keys() == {"conda", "apptainer", "apptainer+conda"}
    option, file = usage["mandatory-flags"]["flags"].split()
    assert option == "--configfile" and Path(file).is_file()


def test_each_paper_is_cited():
    cited = yaml.safe_load(Path("CITATION.cff").read_text("utf-8"))["references"]
    assert len(cited) == 4 and all(len(one["authors"]) > 3 and one["year"] for one in cited)


def test_the_readme_is_two_screens():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 150 and len(text.split()) <= 1500


@named(DOCS)
def test_links_lead_to_files_and_headings(file):
    for link in LINK.findall(FENCED.sub("", file.read_text("utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file.resolve()
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in heads(target.read_text("utf-8")), link


@named(DOCS)
def test_files_that_a_page_names_are_there(file):
    found = PATH.findall(FENCED.sub("", file.read_text("utf-8")))
    assert [path for path in found if path not in MADE and not Path(path).exists()] == []


def test_the_page_of_docs_lists_all_of_them():
    listed = set(LINK.findall(Path("docs/README.md").read_text("utf-8")))
    assert {file.name for file in Path("docs").glob("*.md")} - {"README.md"} <= listed


def test_what_is_shown_as_an_addition_applies_to_the_code():
    diffs = DIFF.findall(Path("docs/adding.md").read_text("utf-8"))
    assert len(diffs) == 5
    for diff in diffs:
        command = ["git", "apply", "--check", "-"]
        done = subprocess.run(command, input=diff, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + diff


@named(DOCS)
def test_commands_that_a_page_names_are_commands(file):
    said = re.findall(r"(?:^|`)tailprompt ([a-z]+)", file.read_text("utf-8"), re.MULTILINE)
    assert {*said} <= {*COMMANDS, *STAGES}
