"""The workflow in a copy of the project without results: what it plans, what it refuses, and its GPUs."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import toy_images
from made_up import write_corpus
from project import BACKBONE, TINY, WORDS, copied, edited, names, planned, snakemake, wildcards

pytestmark = pytest.mark.workflow

OWN_FILE = ("--configfile", "own.yaml")
OWN = (
    BACKBONE
    + """
scale: own
make: {mine: {tables: [table2]}}
data_dir: null
device: cpu
threads: 1
datasets: {toy: {path: tests/toy.csv, columns: {text: sentence, label: topic}, language: en}}
sets: {mine: [toy]}
protocols: {mine: {seeds: [1], backbones: {en: tiny}, methods: [cls-tanh, prompt], settings: {epochs: 2}}}
papers: {mine: {tables: {table2: {choose: {values: [3.0e-3, 1.0e-2]}}}}}
"""
)

MAKING = """
corpora: {text: corpus.txt}
backbones: {made: {family: bert, recipe: bert-tiny}}
pretraining:
  bert-tiny:
    task: masked_language_model
    corpus: text
    scripts: all
    held_out: 0.2
    vocabulary: {kind: wordpiece, size: 200, alphabet: 60}
    positions: 64
    shape: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32}
    rate: 0.2
    length: 16
    batch: 4
    steps: 4
    lr: 1.0e-3
    warmup: 2
    weight_decay: 0.01
    clip: 1.0
    precision: float32
    evaluate_every: 2
    held_out_rows: 8
    seed: 1
    card: {data: made up, licences: none, seen: nothing, limits: a test}
"""

STUB = """
import json, sys, time
from pathlib import Path

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder, begun = Path(options["--root"], "runs", options["--point"]), time.time()
time.sleep(1)
for name in ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv"):
    (folder / name).touch()
(folder / "run.json").write_text(json.dumps([begun, time.time()]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project."""
    return copied(tmp_path_factory.mktemp("copy") / "project")


def test_bad_data_end_before_training_in_one_sentence(project):
    wrong = "datasets={toy: {columns: {text: sentense}}}"
    done = snakemake(
        project, "--profile", "workflow/profiles/local", "--cores", "2", *TINY, "--config", "scale=bad", wrong
    )
    assert done.returncode and re.search(r"error: .*sentense", done.stdout) and "Traceback" not in done.stdout
    assert not (project / "results/bad/runs").exists()


def test_a_mistyped_key_ends_before_the_plan_in_one_sentence(project):
    done = snakemake(project, "-n", *TINY, "--config", "slotz=2")
    assert done.returncode and done.stdout.startswith("--config: unknown key 'slotz' in the top level")
    assert done.stdout.count("\n") == 1, "there is a traceback below"


def test_a_key_given_twice_ends_before_the_plan_in_one_sentence(project):
    (project / "twice.yaml").write_text("threads: 1\nthreads: 2\n")
    done = snakemake(project, "-n", *TINY, "twice.yaml")
    assert done.returncode and "key 'threads' is given twice, the second time in line 2" in done.stdout


@pytest.mark.parametrize(
    "target, said",
    [
        ("runs/glee/nope/toy/prompt/775/predictions.parquet", "unknown backbone 'nope'; known: .*tiny"),
        ("runs/glee/tiny/nope/prompt/775/run.json", "unknown data set 'nope'; known: .*toy"),
        ("runs/glee/tiny/toy/nope/775/run.json", "unknown method 'nope'; known: .*prompt"),
        ("runs/nope/tiny/toy/prompt/775/run.json", "unknown protocol 'nope'; known: across, glee"),
        ("tables/glee/nope.md", "make names no table 'nope' of glee; it names .*table2"),
        ("figures/glee/nope.pdf", "make names no figure 'nope' of glee; it names .*figure1"),
        ("backbones/nope.json", "unknown backbone 'nope'; known: .*tiny"),
        ("data/nope.parquet", "unknown data set 'nope'; known: .*toy"),
    ],
)
def test_a_file_asked_for_by_a_name_that_no_row_has_is_a_sentence(project, target, said):
    done = snakemake(project, f"results/tiny/{target}", "-n", *TINY)
    assert done.returncode and re.search(f"^{said}", done.stdout, re.MULTILINE), done.stdout
    assert "Traceback" not in done.stdout


def test_a_backbone_is_made_from_a_corpus_with_its_card(project):
    write_corpus(project / "corpus.txt")
    (project / "making.yaml").write_text(MAKING)
    pretraining, row = "results/tiny/pretraining", "results/tiny/backbones/made.json"
    making = (*TINY, "making.yaml", "--profile", "workflow/profiles/local", "--cores", "2")
    done = snakemake(project, f"{pretraining}/bert-tiny/README.md", row, *making)
    assert done.returncode == 0, done.stdout
    assert json.loads((project / row).read_text())["path"] == f"{pretraining}/bert-tiny"
    assert "| limits | a test |" in (project / pretraining / "bert-tiny/README.md").read_text()
    again = snakemake(project, f"{pretraining}/bert-tiny/README.md", row, *making)
    assert "Nothing to be done" in again.stdout
    left = snakemake(project, f"{pretraining}/vit-mini/README.md", "-n", *TINY, "making.yaml")
    assert "corpora.images (this scale leaves it open: name it)" in left.stdout
    assert "Traceback" not in left.stdout
    (project / "images").mkdir()
    plan = snakemake(project, "backbones", "-n", *TINY, "making.yaml", "--config", "corpora={images: images}")
    jobs = [rule for rule, _ in wildcards(plan.stdout)]
    counts = {rule: jobs.count(rule) for rule in ("vocabulary", "pack", "pretrain", "card")}
    assert counts == {"vocabulary": 2, "pack": 4, "pretrain": 4, "card": 4}  # but for bert-tiny's, done
    assert "workflow/resources/backbones/t5-mini/model.safetensors" in plan.stdout  # where t5-mini-lm starts


def test_a_backbone_of_a_corpus_that_is_left_open_is_refused_in_the_sentence_that_status_says(project):
    named = MAKING.replace("{text: corpus.txt}", "{text: null}").replace("bert-tiny", "bert-open")
    (project / "open.yaml").write_text(f"{named}protocols: {{glee: {{backbones: {{en: made}}}}}}\n")
    done = snakemake(project, "-n", *TINY, "open.yaml")
    (said,) = (line for line in done.stdout.splitlines() if "corpora.text" in line)
    assert said.startswith("backbone made must be made for glee/made/toy/") and done.returncode
    assert "it is not here; this takes corpora.text, which this scale leaves open; name it" in said
    assert "MissingInputException" not in done.stdout


@pytest.mark.parametrize("told, at_once", [([], 2), (["--resources", "gpu=1"], 1)])
def test_jobs_on_cards_are_as_many_as_slots_unless_told_otherwise(project, told, at_once):
    options = ["--until", "train", "--cores", "4", "--forcerun", "train", *told, *TINY]
    train = project / "src/tailprompt/train.py"
    with edited(train, train.read_text("utf-8"), STUB):
        settings = ["--config", "scale=cards", "device=cuda", "slots=2"]
        done = snakemake(project, "runs", *options, *settings, CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 0, done.stdout
    times = [json.loads(file.read_text()) for file in project.glob("results/cards/runs/**/run.json")]
    assert max(sum(begun <= at < ended for begun, ended in times) for at, _ in times) == at_once


def test_ones_own_file_becomes_a_table_that_names_the_winner_and_predictions(project):
    chosen = "prompt@lr=0.01,keep=true/1"
    run = project / f"results/own/runs/mine/tiny/toy/{chosen}"
    (project / "own.yaml").write_text(OWN)
    done = snakemake(project, "all", str(run.relative_to(project) / "run.json"), *OWN_FILE, "--cores", "2")
    assert done.returncode == 0, done.stdout
    table = (project / "results/own/tables/mine/table2.md").read_text("utf-8")
    assert "on toy" in table and re.search(
        r"lr with the best mean dev f1/all on toy: CLS-tuning \(T\) 0", table
    )
    command = [sys.executable, "-m", "tailprompt", "predict", str(run), "tests/toy.csv", "--text", "sentence"]
    told = {**os.environ, "PYTHONPATH": "src", "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=project, env=told, check=True)
    with open(project / "tests/toy.predictions.csv", newline="") as file:
        made = list(csv.DictReader(file))
    assert len(made) == 130 and {row["prediction"] for row in made} <= set(WORDS)


def test_ones_own_images_are_planned_from_their_folder_to_the_winner(project):
    toy_images.write_pictures(project / "photos")
    jobs = planned(project, "--configfile", "config/mine-images.yaml")
    assert names(jobs, "decode", "dataset") == names(jobs, "prepare", "dataset") == ["photos"]
    assert len(names(jobs, "train", "seed")) == 12 * 3 * 3 + 3 + 3 * 3  # three methods search no rate
    assert names(jobs, "tabulate", "name") == ["table1", "table2"]


def test_a_folder_of_images_that_took_the_place_of_another_is_decoded_whatever_its_times(project):
    listing, mine = "results/mine-images/images/photos.parquet", ("--configfile", "config/mine-images.yaml")
    braces = project / "photos/train/{braces}"  # which Snakemake would take for a wildcard
    shutil.copytree(project / "photos/train/bar", braces)
    (project / "photos").rename(project / "photos_v0")
    shutil.copytree(project / "photos_v0", project / "photos")
    next((project / "photos_v0").glob("train/bar/*")).unlink()
    for path in (project / "photos_v0", *(project / "photos_v0").rglob("*")):
        os.utime(path, (10**9, 10**9))
    assert snakemake(project, listing, "--cores", "1", *mine).returncode == 0
    (project / "photos/train/notes.txt").touch()  # and so the folder
    assert names(planned(project, *mine), "decode", "dataset") == []
    shutil.rmtree(project / "photos")
    (project / "photos_v0").rename(project / "photos")
    assert names(planned(project, *mine), "decode", "dataset") == ["photos"]
    shutil.rmtree(project / "results/mine-images")


def test_on_cards_each_run_asks_for_one(project):
    done = snakemake(project, "-n", *TINY, "--config", "device=cuda", "scale=cluster")
    assert done.stdout.count("gpu=1") == 4


def test_a_run_that_no_table_takes_is_planned_by_its_path(project):
    target = "results/tiny/runs/glee/tiny/toy/cls-relu-ldam/99/predictions.parquet"
    done = snakemake(project, "-n", "--quiet", "rules", *TINY, "--", target)
    assert done.returncode == 0 and re.search(r"^train +1$", done.stdout, re.MULTILINE), done.stdout


def test_the_papers_scale_is_planned_without_torch(project):
    command = [sys.executable, "-X", "importtime", "-m", "snakemake", "-n", "--quiet", "rules"]
    done = subprocess.run(command, cwd=project, text=True, capture_output=True)  # a fork has imported before
    assert done.returncode == 0, done.stderr
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "snakemake" in imported and not imported & {"torch", "transformers", "tailprompt.train"}
    assert re.search(r"^train +7300$", done.stdout, re.MULTILINE)


def test_snakemakes_linter_has_no_complaint(project):
    assert snakemake(project, "--lint").returncode == 0


REMOTE = """
backbones: {remote: {family: bert, hub: some/model, revision: main, megabytes: 1}}
protocols: {mine: {backbones: {en: remote}, methods: [tfidf, cls-tanh]}}
"""


def test_a_command_that_trains_nothing_asks_for_no_commit(project, tmp_path):
    (project / "own.yaml").write_text(OWN, "utf-8")
    (project / "remote.yaml").write_text(REMOTE, "utf-8")
    cached = tmp_path / "models--some--model/refs/main"
    cached.parent.mkdir(parents=True)
    cached.write_text("a" * 40, "utf-8")
    hub = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    said, lock = (*OWN_FILE, "remote.yaml", "--cores", "1"), project / "config/lock.json"
    run = "results/own/runs/mine/tfidf/toy/tfidf/1/predictions.parquet"
    done = snakemake(project, run, *said, **hub)
    assert done.returncode == 0, done.stdout
    assert "a" * 40 in lock.read_text("utf-8")
    lock.unlink()
    done = snakemake(project, "tables", *said, "--config", "train=false", **hub)
    assert done.returncode == 0, done.stdout
    assert (project / "results/own/tables/mine/table2.md").is_file() and not lock.exists()
