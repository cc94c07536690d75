"""`tailprompt try`: --look writes nothing, the screen is short, and what Snakemake says is in a log."""

import argparse
import sys
from pathlib import Path

import pandas as pd
import pytest

from tailprompt import attempt


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
    return argparse.Namespace(**told, **{"look": False, **more})


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
    said = f"print(i + 1, 'of {lines} steps (1%) done', flush=True)"
    script.write_text(
        f"import time\nfor i in range({lines}):\n    {said}\n    time.sleep(0.02)\nraise SystemExit({code})"
    )
    popen = attempt.subprocess.Popen
    monkeypatch.setattr(attempt.subprocess, "Popen", lambda _, **how: popen([sys.executable, script], **how))
    monkeypatch.setattr(attempt, "PAUSE", 0.3)
    monkeypatch.setattr(attempt.first_hours, "left", lambda _: "about 3 minutes left")


def test_the_screen_has_a_few_lines_and_the_log_has_all(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snakemake(tmp_path, monkeypatch, code=0, lines=50)
    assert attempt.ran({"scale": "mine"}, ["c.yaml"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "log: results/mine/logs/try.log" and 2 <= len(said) <= 20
    assert all(line.endswith("of 50 steps done; about 3 minutes left") for line in said[1:])
    assert len(Path("results/mine/logs/try.log").read_text().splitlines()) == 50


def test_a_round_that_fails_says_why_and_where_more_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snakemake(tmp_path, monkeypatch, code=3, lines=1)
    monkeypatch.setattr(attempt, "status", lambda _: ("failed:\n  a run: no memory", attempt.FAILED))
    assert attempt.ran({"scale": "mine"}, ["c.yaml"]) == 3
    said = capsys.readouterr().err
    assert "a run: no memory" in said and "results/mine/logs/try.log says more" in said
