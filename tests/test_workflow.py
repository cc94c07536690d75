"""The workflow in a copy of the project: a made-up CSV to the report, then what each edit makes stale."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import toy_images
from made_up import write_corpus

pytestmark = pytest.mark.workflow

ROOT = Path(__file__).parents[1]
LEFT = shutil.ignore_patterns(".*", "results", "__pycache__", "*.egg-info")
WORDS = {
    "music": ("song", "guitar"),
    "sport": ("match", "goal"),
    "food": ("bread", "soup"),
    "law": ("court", "judge"),
}
TINY = ("--configfile", "tests/tiny.yaml")
JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):\n((?:    .*\n)*)", re.MULTILINE)

OWN_FILE = ("--configfile", "own.yaml")
OWN = """
scale: own
make: {mine: {tables: [table2]}}
data_dir: null
device: cpu
threads: 1
backbones:
  tiny:
    family: bert
    path: workflow/resources/backbones/bert-mini
    random: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
datasets: {toy: {path: tests/toy.csv, columns: {text: sentence, label: topic}, language: en}}
sets: {mine: [toy]}
protocols: {mine: {seeds: [1], backbones: {en: tiny}, methods: [cls-tanh, prompt], settings: {epochs: 2}}}
papers: {mine: {tables: {table2: {choose: {values: [3.0e-3, 1.0e-2]}}}}}
"""

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
    """A copy of the project with made-up data, in which the tiny scale was run to its end."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(ROOT, folder, ignore=LEFT)
    write_toy(folder / "tests/toy.csv")
    done = snakemake(folder, "all", "scores", "--profile", "workflow/profiles/local", "--cores", "2", *TINY)
    assert done.returncode == 0, done.stdout
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
    command = [sys.executable, "-m", "snakemake", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def planned(folder, *arguments):
    """(rule, wildcards) of each job of a dry run, but for rules that only gather."""
    done = snakemake(folder, "all", "scores", "-n", *(arguments or TINY))
    assert done.returncode == 0, done.stdout
    jobs = [(rule, dict(re.findall(r"(\w+)=([^,\s]+)", about))) for rule, about in wildcards(done.stdout)]
    return [job for job in jobs if job[0] not in ("all", "runs", "tables", "figures")]


def wildcards(text):
    """(rule, its line of wildcards) of each job that a dry run prints."""
    for rule, body in JOB.findall(text):
        found = re.search(r"^    wildcards: (.*)$", body, re.MULTILINE)
        yield rule, found[1] if found else ""


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


def commented(file):
    """`file` with one more line."""
    return edited(file, file.read_text("utf-8"), file.read_text("utf-8") + "\n# edited\n")


def test_data_become_scores_tables_figures_and_a_report(project):
    done = snakemake(project, *TINY, "--report", "results/tiny/report.html")
    assert done.returncode == 0, done.stdout
    results = project / "results/tiny"
    run = results / "runs/glee/tiny/toy/prompt/775"
    made = {file.name for file in run.iterdir()}
    assert made >= {"weights.safetensors", "predictions.parquet", "curve.csv", "run.json", "scores.parquet"}
    assert "state.pt" not in made
    for table in ("claims", "table1", "table2"):
        assert {file.suffix for file in (results / "tables/glee").glob(f"{table}.*")} == {
            ".tex",
            ".md",
            ".csv",
            ".html",
        }
    for figure in ("figure1", "figure3", "figure4", "frequency"):
        assert all(
            (results / f"figures/glee/{figure}.{kind}").stat().st_size > 1000 for kind in ("pdf", "png")
        )
    report = (results / "report.html").read_text("utf-8")
    assert "Comparison of classifiers" in report and "Norms of the vectors" in report


def test_a_finished_scale_has_nothing_to_do(project):
    assert planned(project) == []


def test_touching_sources_data_and_config_re_plans_nothing(project):
    files = [*project.glob("src/**/*.py"), *project.glob("config/**/*.yaml"), project / "tests/toy.csv"]
    for file in [*files, *project.glob("workflow/**/*.smk"), project / "Snakefile"]:
        file.touch()
    assert planned(project) == []


def test_editing_a_figures_code_re_plans_that_figure_only(project):
    with commented(project / "src/tailprompt/figures/weight_norms.py"):
        jobs = planned(project)
    assert names(jobs, "draw", "name") == ["figure3"] and len(jobs) == 1


def test_editing_a_tables_code_re_plans_tables_of_its_kind_only(project):
    with commented(project / "src/tailprompt/tables/statistics.py"):
        jobs = planned(project)
    assert names(jobs, "tabulate", "name") == ["table1"] and len(jobs) == 1


def test_one_methods_learning_rate_re_plans_its_runs_and_what_shows_them(project):
    with edited(
        project / "config/methods.yaml", "{title: CLS-tuning (T), ", "{lr: 2.0e-3, title: CLS-tuning (T), "
    ):
        jobs = planned(project)
    assert set(names(jobs, "train", "method")) == set(names(jobs, "score", "method")) == {"cls-tanh"}
    assert len(names(jobs, "train", "seed")) == 2
    assert names(jobs, "tabulate", "name") == ["claims", "table2"] and not names(jobs, "prepare", "dataset")


def test_a_methods_title_re_plans_no_run(project):
    jobs = planned(project, *TINY, "--config", "methods={cls-tanh: {title: Another}}")
    assert {rule for rule, _ in jobs} == {"tabulate", "draw"}


def test_editing_a_loader_remakes_its_data_and_no_run(project):
    with commented(project / "src/tailprompt/data/tables.py"):
        jobs = planned(project)
    assert names(jobs, "prepare", "dataset") == ["toy"]
    assert not names(jobs, "train", "seed") and len(names(jobs, "score", "seed")) == 4


@pytest.mark.parametrize("module", ["train", "loop", "losses", "heads", "backbones"])
def test_editing_how_runs_are_trained_re_plans_none(project, module):
    with commented(project / f"src/tailprompt/{module}.py"):
        assert planned(project) == []


def test_one_more_seed_re_plans_its_runs_only(project):
    jobs = planned(project, *TINY, "--config", "protocols={glee: {seeds: [775, 776, 777]}}")
    assert names(jobs, "train", "seed") == names(jobs, "score", "seed") == ["777", "777"]


def test_where_a_run_is_computed_makes_nothing_stale(project):
    assert planned(project, *TINY, "--config", "threads=2", "slots=3") == []


def test_bad_data_end_before_training_in_one_sentence(project):
    wrong = "datasets={toy: {columns: {text: sentense}}}"
    done = snakemake(
        project, "--profile", "workflow/profiles/local", "--cores", "2", *TINY, "--config", "scale=bad", wrong
    )
    assert done.returncode and re.search(r"error: .*sentense", done.stdout) and "Traceback" not in done.stdout
    assert not (project / "results/bad/runs").exists()


def test_a_mistyped_key_ends_before_the_plan_in_one_sentence(project):
    done = snakemake(project, "-n", *TINY, "--config", "slotz=2")
    assert done.returncode and "\n--config: unknown key 'slotz' in the top level" in done.stdout


def test_a_key_given_twice_ends_before_the_plan_in_one_sentence(project):
    (project / "twice.yaml").write_text("threads: 1\nthreads: 2\n")
    done = snakemake(project, "-n", *TINY, "twice.yaml")
    assert done.returncode and "key 'threads' is given twice, the second time in line 2" in done.stdout


@pytest.mark.parametrize(
    "target, said",
    [
        ("runs/glee/nope/toy/prompt/775/scores.parquet", "unknown backbone 'nope'; known: .*tiny"),
        ("runs/glee/tiny/nope/prompt/775/run.json", "unknown data set 'nope'; known: .*toy"),
        ("runs/glee/tiny/toy/nope/775/run.json", "unknown method 'nope'; known: .*prompt"),
        ("runs/nope/tiny/toy/prompt/775/run.json", "unknown protocol 'nope'; known: glee"),
        ("tables/glee/nope.md", "unknown table of glee at this scale 'nope'; known: .*table2"),
        ("figures/glee/nope.pdf", "unknown figure of glee at this scale 'nope'; known: .*figure1"),
        ("backbones/nope.json", "unknown backbone 'nope'; known: .*tiny"),
        ("data/nope.parquet", "unknown data set 'nope'; known: .*toy"),
    ],
)
def test_a_file_asked_for_by_a_name_that_no_row_has_is_a_sentence(project, target, said):
    done = snakemake(project, f"results/tiny/{target}", "-n", *TINY)
    assert done.returncode and re.search(f"BadInput: {said}", done.stdout), done.stdout
    assert "KeyError" not in done.stdout


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
    assert "recipe 'vit-mini' is made from corpora.images, which this scale leaves open" in left.stdout
    (project / "images").mkdir()
    plan = snakemake(project, "backbones", "-n", *TINY, "making.yaml", "--config", "corpora={images: images}")
    jobs = [rule for rule, _ in wildcards(plan.stdout)]
    counts = {rule: jobs.count(rule) for rule in ("vocabulary", "pack", "pretrain", "card")}
    assert counts == {"vocabulary": 2, "pack": 3, "pretrain": 4, "card": 4}  # but for bert-tiny's, done


def test_a_scale_does_not_take_over_the_backbone_of_another(project):
    jobs = planned(project, *TINY, "--config", "scale=other", "backbones={tiny: {random: {hidden_size: 16}}}")
    assert {"backbone", "train", "score", "tabulate", "draw"} <= {rule for rule, _ in jobs}
    assert planned(project) == []


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
    assert len(names(jobs, "train", "seed")) == len(names(jobs, "score", "seed")) == 10 * 3 * 3 + 3
    assert names(jobs, "tabulate", "name") == ["table1", "table2"]


def test_an_image_that_comes_or_goes_is_seen_by_its_folder(project):
    (project / "photos/train/{braces}").mkdir(parents=True)  # which Snakemake would take for a wildcard
    (project / "photos/train/bar").mkdir(exist_ok=True)
    listing = "results/mine-images/images/photos.parquet"
    done = snakemake(project, listing, "-n", "--configfile", "config/mine-images.yaml")
    assert "input: photos, " in done.stdout and "photos/train/bar" in done.stdout, done.stdout
    assert "braces" not in done.stdout
    (project / "photos/train/{braces}").rmdir()


def test_on_cards_each_run_asks_for_one(project):
    done = snakemake(project, "-n", *TINY, "--config", "device=cuda", "scale=cluster")
    assert done.stdout.count("gpu=1") == 4


def test_the_papers_scale_is_planned_in_a_minute_without_torch(project):
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = snakemake(project, "-n", "--quiet", "rules", PYTHONPROFILEIMPORTTIME="1")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", done.stdout, re.MULTILINE))
    assert "snakemake" in imported and not imported & {"torch", "transformers", "tailprompt.train"}
    assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 60
    assert set(re.findall(r"^(train|score) +(\d+)$", done.stdout, re.MULTILINE)) == {
        ("train", "4501"),
        ("score", "4501"),
    }


def test_snakemakes_linter_has_no_complaint(project):
    assert snakemake(project, "--lint").returncode == 0
