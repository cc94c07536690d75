"""`tailprompt try`: --look writes nothing, the screen is short, and what Snakemake says is in a log."""

import argparse
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from project import BACKBONE, copied

from tailprompt import attempt
from tailprompt.data.looked import look
from tailprompt.plan import first_round


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the project's files and a table of tickets."""
    for name in ("config", "workflow", "src", "Snakefile"):
        (tmp_path / name).symlink_to(Path(name).resolve())
    (tmp_path / "config").unlink()
    (tmp_path / "config").mkdir()
    for file in Path("config").resolve().iterdir():
        (tmp_path / "config" / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"text": [f"text {i}" for i in range(60)], "label": list("aab") * 20})
    rows.to_csv("tickets.csv", index=False)
    return tmp_path


def options(**more):
    told = {"path": Path("tickets.csv"), "text": None, "label": None, "configfile": [], "anew": False}
    return argparse.Namespace(**{**told, "look": False, **more})


def test_a_look_writes_nothing(project, capsys):
    before = sorted(project.rglob("*"))
    attempt.attempt(options(look=True))
    said = capsys.readouterr().out
    assert sorted(project.rglob("*")) == before
    assert "config/my-tickets.yaml would be written" in said and "27 runs, about" in said
    assert "rule of thumb" in said and "label: column 'label'" in said


def snakemake(tmp_path, monkeypatch, *, code, lines):
    """A stand-in for Snakemake that prints lines."""
    script = tmp_path / "snakemake.py"
    said = "print('a line', flush=True)"
    script.write_text(
        f"import time\nfor i in range({lines}):\n    {said}\n    time.sleep(0.02)\nraise SystemExit({code})"
    )
    popen = attempt.subprocess.Popen
    monkeypatch.setattr(attempt.subprocess, "Popen", lambda _, **how: popen([sys.executable, script], **how))
    monkeypatch.setattr(attempt, "PAUSE", 0.3)
    done = iter(range(1000))
    monkeypatch.setattr(attempt.first_hours, "left", lambda _: f"{next(done) // 2} of 9 runs done")


def test_the_screen_has_a_few_lines_and_the_log_has_all(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snakemake(tmp_path, monkeypatch, code=0, lines=100)
    assert attempt.ran({"scale": "mine"}, ["c.yaml"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "log: results/mine/logs/try.log" and 2 <= len(said) <= 20
    assert said[1:] == [f"{n} of 9 runs done" for n in range(len(said) - 1)]
    assert len(Path("results/mine/logs/try.log").read_text().splitlines()) == 100


def test_a_round_that_does_not_begin_shows_the_end_of_the_log(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snakemake(tmp_path, monkeypatch, code=3, lines=1)
    monkeypatch.setattr(attempt, "status", lambda _: ("", 0))
    with pytest.raises(SystemExit, match="3"):
        attempt.ran({"scale": "mine"}, ["c.yaml"])
    assert "a line" in capsys.readouterr().err


OVER = """
make: {try: {tables: [first]}}
protocols: {mine: {seeds: [1], backbones: {en: tiny}, settings: {select: last}}}
methods: {linear: {lr: 1.0e+30, epochs: 1, warmup: 0, evaluate_every: 0}}
papers: {try: {tables: {first: {methods: [tfidf, linear]}}}}
"""


@pytest.mark.workflow
def test_a_method_that_fails_leaves_the_page_of_the_others(tmp_path, monkeypatch, capsys):
    folder = copied(tmp_path / "project")
    monkeypatch.chdir(folder)
    shutil.copy("tests/toy.csv", "tickets.csv")
    first_round.settle(look(Path("tickets.csv")), Path("config/my-tickets.yaml"), anew=False)
    Path("over.yaml").write_text(BACKBONE + OVER)
    with pytest.raises(SystemExit, match="1"):
        attempt.attempt(options(configfile=["config/my-tickets.yaml", "over.yaml"]))
    said, page = capsys.readouterr(), Path("results/my-tickets/answer.md").read_text()
    failed = "Failed: Linear (1 of 1 run): training has diverged"
    assert failed in page.partition("##")[0] and failed in said.err and "page: results" in said.out
    assert "TF-IDF + logistic regression is the only method with all its runs" in page
