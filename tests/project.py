"""A copy of the project, in which tests run Snakemake."""

from __future__ import annotations

import csv
import random
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from forks import said

ROOT = Path(__file__).parents[1]
LEFT = shutil.ignore_patterns(".*", "results", "__pycache__", "*.egg-info")
WORDS = {
    "music": ("song", "guitar"),
    "sport": ("match", "goal"),
    "food": ("bread", "soup"),
    "law": ("court", "judge"),
}
TINY = ("--configfile", "tests/tiny.yaml")
BACKBONE = """
backbones:
  tiny:
    family: bert
    path: workflow/resources/backbones/bert-mini
    random: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
"""  # a small random one, for a configuration of its own
JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):\n((?:    .*\n)*)", re.MULTILINE)


def copied(folder: Path) -> Path:
    """Copy the project into a folder that is not there, with made-up data and without results; returns it."""
    shutil.copytree(ROOT, folder, ignore=LEFT)
    write_toy(folder / "tests/toy.csv")
    return folder


def write_toy(path):
    """130 sentences of four classes, long-tailed."""
    draw = random.Random(0)
    counts = zip(WORDS, (60, 40, 20, 10), strict=True)
    rows = [
        (f"{' and '.join(draw.choices(WORDS[topic], k=3))} number {i}", topic)
        for topic, n in counts
        for i in range(n)
    ]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("sentence", "topic"), *rows])


def snakemake(folder, *arguments, **environment):
    """Run Snakemake there; standard output and error together."""
    status, screen, _ = said(folder, "snakemake", *arguments, apart=False, OMP_NUM_THREADS="1", **environment)
    return subprocess.CompletedProcess(["snakemake", *arguments], status, screen)


def stage(folder, *arguments):
    """What a stage prints there."""
    done = tailprompt(folder, *arguments)
    done.check_returncode()
    return done.stdout


def tailprompt(folder, *arguments):
    """A command of ours that ran there: its status, output and errors."""
    status, out, errors = said(folder, "tailprompt", *arguments, PYTHONPATH=f"{folder}/src")
    return subprocess.CompletedProcess(["tailprompt", *arguments], status, out, errors)


def planned(folder, *arguments):
    """(rule, wildcards) of each job of a dry run, but for rules that only gather."""
    done = snakemake(folder, "all", "scores", "-n", *(arguments or TINY))
    assert done.returncode == 0, done.stdout
    jobs = [(rule, values(about)) for rule, about in wildcards(done.stdout)]
    return [job for job in jobs if job[0] not in ("all", "runs", "tables", "figures", "scores", "overview")]


def wildcards(text):
    """(rule, its line of wildcards) of each job that a dry run prints."""
    for rule, body in JOB.findall(text):
        found = re.search(r"^    wildcards: (.*)$", body, re.MULTILINE)
        yield rule, found[1] if found else ""


def values(about):
    """The wildcards in a line, with the parts of a point."""
    each = dict(re.findall(r"(\w+)=(.+?)(?:, |$)", about))
    parts = ("protocol", "backbone", "dataset", "method", "seed") if "point" in each else ()
    return {**each, **dict(zip(parts, each.get("point", "").split("/"), strict=False))}


def names(jobs, rule, key):
    """The values of a wildcard among the jobs of a rule."""
    return sorted(values[key] for name, values in jobs if name == rule)


@contextmanager
def edited(file, old, new):
    """`file` with `old` replaced by `new`, then as it was."""
    before = file.read_text("utf-8")
    assert old in before
    file.write_text(before.replace(old, new), "utf-8")
    try:
        yield
    finally:
        file.write_text(before, "utf-8")


def rewritten(file, old, new):
    """Replace `old` by `new` in a file, for good."""
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def commented(file):
    """`file` with one more line."""
    return edited(file, file.read_text("utf-8"), file.read_text("utf-8") + "\n# edited\n")
