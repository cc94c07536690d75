"""Runs of a bundle stand while the files of their data, where those are here, give the rows of the bundle."""

from __future__ import annotations

import shutil

import pytest
from project import copied, edited, rewritten, snakemake, stage, tailprompt, wildcards

pytestmark = [pytest.mark.workflow, pytest.mark.chained]

CONFIG = """
scale: own
make: {mine: {tables: [table2]}}
data_dir: null
device: cpu
threads: 1
datasets: {toy: {path: tests/toy.csv, columns: {text: sentence, label: topic}, language: en, max_length: 32}}
sets: {mine: [toy]}
protocols: {mine: {seeds: [1], backbones: {en: bert-mini}, methods: [tfidf], settings: {epochs: 1}}}
papers: {mine: {tables: {table2: {choose: {values: [2.0e-4]}}}}}
"""
OPTIONS = ("--configfile", "own.yaml")
SMALL = ("src/tailprompt/plan/own_rows.py", "SMALL = 2**24", "SMALL = 0")  # the plan reads no file
ANEW = {"prepare", "train", "tabulate", "overview"}


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A copy of the project to which a bundle brought its run, with its data and table."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    (folder / "own.yaml").write_text(CONFIG)
    run(folder)
    stage(folder, "bundle", "own", "own.tar.xz")
    before = tables(folder)
    shutil.rmtree(folder / "results")
    stage(folder, "unbundle", "own.tar.xz")
    run(folder)
    assert tables(folder) == before and not trained(folder)
    return folder


@pytest.fixture
def project(brought, tmp_path):
    """The same, to change."""
    return shutil.copytree(brought, tmp_path / "project", symlinks=True)


def run(folder):
    """Make all in one command, after which there is nothing left to do."""
    done = snakemake(folder, *OPTIONS, "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert planned(folder) == set()


def planned(folder):
    """The rules of a dry run that make something of data; `tailprompt status` says the same of the run."""
    done = snakemake(folder, "-n", *OPTIONS)
    assert done.returncode == 0, done.stdout
    rules = {rule for rule, _ in wildcards(done.stdout)} - {"all", "backbone"}
    assert f"scale own, 1 run: 1 {'stale' if 'train' in rules else 'done'}\n" in told(folder)
    return rules


def told(folder):
    """What status prints, whatever it exits with."""
    return tailprompt(folder, "status", *OPTIONS).stdout


def tables(folder):
    """Name -> content of the tables."""
    return {file.name: file.read_bytes() for file in folder.glob("results/own/tables/mine/[!.]*")}


def trained(folder):
    """The runs that were trained here."""
    return [*folder.glob("results/own/runs/*/*/*/*/*/run.json")]


def swapped(text):
    """With other labels."""
    return text.replace(",music\n", ",law\n", 30)


def test_other_rows_in_the_file_are_prepared_and_trained_though_the_tables_were_made(project):
    before = tables(project)
    text = (project / "tests/toy.csv").read_text()
    (project / "tests/toy.csv").write_text(swapped(text))
    assert planned(project) == ANEW
    run(project)
    assert len(trained(project)) == 1 and tables(project) != before
    (project / "tests/toy.csv").write_text(text)
    assert planned(project) == ANEW - {"train"}, "the run of the bundle stand again"
    run(project)
    assert tables(project) == before


def test_an_edit_that_leaves_the_rows_makes_nothing_anew_and_a_file_that_is_gone_neither(project):
    file = project / "tests/toy.csv"
    file.write_text("\ufeff" + file.read_text(), "utf-8")
    assert planned(project) == set()
    file.unlink()
    assert planned(project) == set()


@pytest.mark.parametrize("untrained", [True, False])
def test_where_only_preparing_shows_the_rows_a_run_is_trained_if_those_are_others(project, untrained):
    """As of large files. Nothing is left of what stood in for the outputs of jobs."""
    file, before = project / "tests/toy.csv", tables(project)
    text = file.read_text("utf-8")
    file.write_text("\ufeff" + text if untrained else swapped(text), "utf-8")
    with edited(project / SMALL[0], *SMALL[1:]):
        assert planned(project) == ANEW
        run(project)
    assert (trained(project) == []) == (tables(project) == before) == untrained
    logs = [log.read_text() for log in project.glob("results/own/logs/train/*/*/*/*/*.log")]
    said = "is the run that is asked, on these rows\n"
    assert len(logs) == 1 and all(log.endswith(said) == untrained for log in logs)


def test_an_edit_of_the_row_that_changes_rows_trains_in_one_command(project):
    rewritten(project / "own.yaml", "language: en,", "language: en, shares: {dev: 0.25, test: 0.25},")
    assert planned(project) == ANEW
    rewritten(project / SMALL[0], *SMALL[1:])
    assert planned(project) == ANEW
    run(project)
    assert len(trained(project)) == 1
