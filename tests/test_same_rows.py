"""An edit of a data file that leaves its rows trains nothing; another trains the runs on that data set."""

from __future__ import annotations

import csv
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from project import TINY, copied, edited, snakemake, values, wildcards

pytestmark = [pytest.mark.workflow, pytest.mark.chained]

CONFIG = """
make: {glee: {tables: [table2], figures: []}}
datasets:
  toy: {path: own/toy.csv, verbalizer: own/words.csv}
  other:
    title: Other
    language: en
    path: own/other.csv
    columns: {text: sentence, label: topic}
    template: "{text} It was {mask} ."
    max_length: 32
sets: {long_tailed: [toy, other]}
methods: {prompt-focal: {start: {method: prompt}}}
papers: {glee: {tables: {table2: {methods: [cls-tanh, prompt, prompt-focal]}}}}
protocols: {glee: {seeds: [775], methods: [cls-tanh, prompt, prompt-focal], settings: {epochs: 1}}}
"""
OPTIONS = ("tables", *TINY, "same.yaml")
RUNS = {f"toy/{method}" for method in ("cls-tanh", "prompt", "prompt-focal")}
SMALL = ("src/tailprompt/plan/own_rows.py", "SMALL = 2**24", "SMALL = 0")  # the plan reads no file


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project whose runs are finished."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    (folder / "same.yaml").write_text(CONFIG)
    (folder / "own").mkdir()
    for name in ("toy", "other"):
        shutil.copy(folder / "tests/toy.csv", folder / f"own/{name}.csv")
    (folder / "own/words.csv").write_text("label,words\nmusic,song\nsport,match\nfood,bread\nlaw,court\n")
    run(folder)
    return folder


def run(folder):
    """Make the table, after which there is nothing left to do."""
    done = snakemake(folder, *OPTIONS, "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in snakemake(folder, "-n", *OPTIONS).stdout


def planned(folder):
    """The jobs of a dry run."""
    done = snakemake(folder, "-n", *OPTIONS)
    assert done.returncode == 0, done.stdout
    jobs = [(rule, values(about)) for rule, about in wildcards(done.stdout) if rule != "tables"]
    return {f"{rule} {name(about)}" for rule, about in jobs}


def name(about):
    """What a job is for."""
    return f"{about['dataset']}/{about['method']}" if "method" in about else about.get("dataset", "table2")


def records(folder):
    """What run.json of each run on toy says."""
    return {
        file.parts[-3]: file.read_text()
        for file in folder.glob("results/tiny/runs/glee/tiny/toy/*/*/run.json")
    }


def marked(text):
    """With a byte-order mark."""
    return f"\ufeff{text}"


def wider(text):
    """With a column that nothing reads."""
    first, *rows = text.splitlines()
    return "\n".join([f"note,{first}", *(f"seen,{row}" for row in rows)]) + "\n"


def quoted(text):
    """With quotes around each cell, and other ends of lines."""
    return "".join(f'"{sentence}","{topic}"\r\n' for sentence, topic in csv.reader(text.splitlines()))


def reworded(text):
    """With another word in the last text."""
    return text[: text.rindex("number")] + "numeral" + text[text.rindex("number") + 6 :]


@pytest.mark.parametrize("edit", [marked, wider, quoted])
def test_an_edit_that_leaves_the_rows_prepares_them_anew_and_trains_nothing(project, edit):
    file, before = project / "own/toy.csv", records(project)
    table = (project / "results/tiny/tables/glee/table2.csv").read_bytes()
    text = file.read_text("utf-8")
    with edited(file, text, edit(text)):
        assert planned(project) == {"prepare toy", "tabulate table2"}
        run(project)
        assert records(project) == before
        assert (project / "results/tiny/tables/glee/table2.csv").read_bytes() == table
    run(project)


def test_an_edit_of_one_text_trains_the_runs_of_that_set(project):
    file = project / "own/toy.csv"
    with edited(file, text := file.read_text("utf-8"), reworded(text)):
        assert planned(project) == {"prepare toy", "tabulate table2", *(f"train {run}" for run in RUNS)}


def test_a_class_that_a_verbalizer_lists_elsewhere_trains_the_runs_of_that_set(project):
    """The rows of the file are the same, and the numbers of their classes are not."""
    with edited(project / "own/words.csv", "music,song\nsport,match", "sport,match\nmusic,song"):
        assert planned(project) >= {f"train {run}" for run in RUNS}


def test_finished_runs_are_put_back_where_only_preparing_shows_that_the_rows_are_the_same(project):
    """As of large files. A start is put back, and so is what begins from it."""
    file, before = project / "own/toy.csv", records(project)
    text = file.read_text("utf-8")
    with edited(project / SMALL[0], *SMALL[1:]), edited(file, text, marked(wider(text))):
        assert {f"train {run}" for run in RUNS} <= planned(project)
        run(project)
        assert records(project) == before
        log = project / "results/tiny/logs/train/glee/tiny/toy/prompt-focal/775.log"
        assert log.read_text().endswith("is finished already; its files are in place\n")
    run(project)
    with edited(project / SMALL[0], *SMALL[1:]), edited(file, text, reworded(text)):
        run(project)
        others = records(project)
        assert not others.items() & before.items()


def test_an_edit_while_jobs_run_is_said_at_the_end(project):
    table, log = (
        project / "results/tiny/tables/glee/table2.md",
        project / "results/tiny/logs/tabulate/glee/table2.log",
    )
    own = project / "own/toy.csv"
    before = own.read_text()
    table.unlink()
    log.unlink(missing_ok=True)

    def edit():
        while not log.is_file():
            time.sleep(0.02)
        own.write_text(before + "\n")

    with ThreadPoolExecutor() as beside:
        done = beside.submit(edit), snakemake(project, *OPTIONS, "--cores", "2")
    own.write_text(before)
    assert done[1].returncode and "own/toy.csv has changed since this command began; run" in done[1].stdout
    assert table.is_file()
    run(project)
