"""One run of the command ends with runs that are what the configuration asks, and trains no other anew.

Training is a stand-in that writes what it was asked, and weights that are others each time. Fetching a
backbone is one too. Each test leaves the project finished, with its edit in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest
from project import TINY, copied, snakemake, wildcards
from stand_ins import WORDS

pytestmark = [pytest.mark.workflow, pytest.mark.chained]

SCALE = """
make: {glee: {tables: [table2], figures: []}}
datasets:
  toy: {verbalizer: tests/words.csv}
  other:
    title: Other
    language: zh
    path: tests/toy.csv
    columns: {text: sentence, label: topic}
    template: "{text} It was {mask} ."
    max_length: 32
sets: {long_tailed: [toy, other]}
backbones:
  second:
    family: bert
    path: second
    random: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 16}
methods:
  cls-tanh: {eta: 1.5}
  prompt: {eta: 1.5, keep: true}
  prompt-focal: {start: {method: prompt}}
papers:
  glee:
    tables: {table2: {methods: [cls-tanh, prompt, prompt-focal]}}
    figures: {figure4: {methods: [cls-tanh]}}
protocols:
  glee: {seeds: [775], backbones: {zh: second, en: tiny}, methods: [cls-tanh, prompt, prompt-focal]}
"""
TRAIN = """
import json, sys, time
from pathlib import Path

from tailprompt.files import sha256
from tailprompt.plan.asked_file import read_asked

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
root, point = Path(options["--root"]), options["--point"]
folder, data = root / "runs" / point, root / "data" / f"{point.split('/')[2]}.parquet"
for name in ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv"):
    (folder / name).write_text(str(time.time_ns()))
about = {**read_asked(Path(options["--asked"])), "data": {"sha256": sha256(data)}, "seconds": 1.0}
start = about["start"] and root / "runs" / about["start"]["run"] / "weights.safetensors"
about["start_sha256"] = start and sha256(start)
about["weights_sha256"] = sha256(folder / "weights.safetensors")
(folder / "run.json").write_text(json.dumps(about))
"""
FETCH = """
import json, sys
from pathlib import Path

from tailprompt.files import json_option, sha256
from tailprompt.model.folder import files_in

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
row = json_option(options["--row"], "--row")
digests = {name: sha256(file) for name, file in files_in(Path(row["path"]), row["family"]).items()}
Path(options["--out"]).write_text(json.dumps({**row, "sha256": digests}))
"""
METHODS = ("cls-tanh", "prompt", "prompt-focal")  # the last starts from the one before
RUNS = {f"{dataset}/{method}" for dataset in ("toy", "other") for method in METHODS}
BACKBONES = {"toy": "tiny", "other": "second"}
FILES = [f"results/tiny/runs/glee/{BACKBONES[run.split('/')[0]]}/{run}/775/run.json" for run in sorted(RUNS)]
OPTIONS = (*FILES, *TINY, "asked.yaml")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project whose six runs are finished."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    (folder / "asked.yaml").write_text(SCALE)
    (folder / "tests/words.csv").write_text(WORDS)
    (folder / "src/tailprompt/train.py").write_text(TRAIN)
    (folder / "src/tailprompt/backbones.py").write_text(FETCH)
    shutil.copytree(folder / "workflow/resources/backbones/bert-mini", folder / "second")
    assert trained(folder) == RUNS
    return folder


def trained(folder):
    """The runs that one run of the command trains; afterwards there is nothing left to do."""
    before = {file: file.stat().st_mtime_ns for file in records(folder).values()}
    done = snakemake(folder, *OPTIONS, "--profile", "workflow/profiles/local", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in snakemake(folder, "-n", *OPTIONS).stdout
    return {name for name, file in records(folder).items() if file.stat().st_mtime_ns != before.get(file)}


def planned(folder):
    """The rule of each job of a dry run."""
    return [rule for rule, _ in wildcards(snakemake(folder, "-n", *OPTIONS).stdout)]


def records(folder):
    """run.json of each run, by data set and method."""
    return {"/".join(file.parts[-4:-2]): file for file in folder.glob("results/tiny/runs/**/run.json")}


def said(folder, run):
    """What run.json of a run says."""
    return json.loads(records(folder)[run].read_text())


def rewrite(file, old, new):
    """Replace `old` by `new` for good."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def of(dataset):
    """The runs on a data set."""
    return {run for run in RUNS if run.startswith(f"{dataset}/")}


def test_a_template_retrains_the_runs_that_read_it(project):
    rewrite(project / "asked.yaml", "It was", "All in all , it was")  # a row that prepare is told too
    assert trained(project) == of("other") - {"other/cls-tanh"}
    assert said(project, "other/prompt")["settings"]["template"] == "{text} All in all , it was {mask} ."


def test_a_word_retrains_the_runs_that_read_it(project):
    rewrite(project / "tests/words.csv", "food,bread", "food,soup")
    assert trained(project) == of("toy") - {"toy/cls-tanh"}
    assert ["food", "soup"] in said(project, "toy/prompt")["verbalizer"]


def test_a_backbones_row_and_its_folder_retrain_its_runs(project):
    rewrite(project / "asked.yaml", "intermediate_size: 16", "intermediate_size: 24")
    assert trained(project) == of("other")
    assert said(project, "other/prompt")["backbone"]["random"]["intermediate_size"] == 24
    before = said(project, "other/prompt")["weights"]
    with open(project / "second/tokenizer_config.json", "a") as file:
        file.write("\n")
    assert trained(project) == of("other")
    assert said(project, "other/prompt")["weights"] != before


def test_a_rate_edited_together_with_a_loaders_code_retrains_its_runs(project):
    rewrite(project / "asked.yaml", "cls-tanh: {eta: 1.5}", "cls-tanh: {eta: 2.5}")
    with open(project / "src/tailprompt/data/readers.py", "a") as file:
        file.write("\n# edited\n")
    assert trained(project) == {"toy/cls-tanh", "other/cls-tanh"}
    assert said(project, "toy/cls-tanh")["settings"]["eta"] == 2.5


def test_a_rate_edited_after_snakemakes_memory_was_lost_retrains_its_runs_and_their_followers(project):
    shutil.rmtree(project / ".snakemake")
    assert trained(project) == set()
    shutil.rmtree(project / ".snakemake")
    rewrite(project / "asked.yaml", "prompt: {eta: 1.5", "prompt: {eta: 2.5")
    assert trained(project) == {f"{dataset}/{each}" for dataset in ("toy", "other") for each in METHODS[1:]}
    assert said(project, "toy/prompt")["settings"]["eta"] == 2.5


def test_a_run_that_is_another_is_retrained_though_snakemake_remembers_the_same_file(project):
    file = records(project)["toy/cls-tanh"]
    rewrite(file, '"eta": ', '"eta": 1')
    assert trained(project) == {"toy/cls-tanh"}


def test_a_start_that_is_trained_anew_retrains_what_starts_from_it(project):
    shutil.rmtree(records(project)["toy/prompt"].parent)
    assert trained(project) == {"toy/prompt", "toy/prompt-focal"}


def test_a_comment_in_prepare_retrains_nothing_and_so_once_it_is_put_back_with_its_old_time(project):
    file, kept = project / "src/tailprompt/prepare.py", project / "prepare.kept"
    shutil.copy2(file, kept)
    with open(file, "a") as code:
        code.write("\n# edited\n")
    for _ in range(2):
        assert set(planned(project)) == {"prepare"}
        assert trained(project) == set()
        shutil.copy2(kept, file)


def test_an_edit_that_is_reverted_before_anything_ran_retrains_nothing(project):
    rewrite(project / "asked.yaml", "max_length: 32", "max_length: 31")
    assert planned(project).count("train") == 3
    rewrite(project / "asked.yaml", "max_length: 31", "max_length: 32")
    assert trained(project) == set()


def test_features_that_a_figure_asks_for_later_retrain_the_runs_that_lack_them(project):
    rewrite(project / "asked.yaml", "figures: []", "figures: [figure4]")
    assert trained(project) == {"toy/cls-tanh"}
    assert said(project, "toy/cls-tanh")["extras"] == {"features": ["law", "music"]}
    rewrite(project / "asked.yaml", "figures: [figure4]", "figures: []")
    assert trained(project) == set()


POLY = (
    """@component("poly")
class Poly:
    \"""Leng et al. 2022, Eq. 6.\"""

    poly_weight: float = key(1.0, "epsilon", minimum=0)


""",
    """def poly(logits: Logits, labels: Labels, counts: Counts, *, poly_weight: float) -> PerExample:
    \"""Cross-entropy plus a multiple of one less the probability of the label (Leng et al. 2022, Eq. 6).\"""
    cost = cross_entropy(logits, labels, counts)
    return cost + poly_weight * (1 - torch.exp(-cost))


""",
)


def test_a_new_loss_is_one_function_and_its_declaration_and_trains_nothing_anew(project):
    declared, function = (project / f"src/tailprompt/{room}/losses.py" for room in ("components", "training"))
    rewrite(declared, "Loss = (\n    CrossEntropy", f"{POLY[0]}Loss = (\n    Poly | CrossEntropy")
    rewrite(function, "LOSSES = {", f'{POLY[1]}LOSSES = {{\n    "poly": poly,')
    assert planned(project) == []
    run = "results/tiny/runs/glee/tiny/toy/cls-tanh@loss=poly,poly_weight=2/775/run.json"
    done = snakemake(project, "-n", run, *OPTIONS[len(FILES) :])
    assert [rule for rule, _ in wildcards(done.stdout)] == ["train"], done.stdout
    refused = snakemake(project, "-n", run.replace("weight=2", "weight=-1"), *OPTIONS[len(FILES) :])
    assert "poly_weight" in refused.stdout and refused.returncode


def test_another_default_of_a_component_trains_the_runs_with_it_and_no_others(project):
    declared = project / "src/tailprompt/components/losses.py"
    above, focal, below = declared.read_text().partition("class Focal:")
    assert "gamma: float = key(1.0" in below
    declared.write_text(above + focal + below.replace("key(1.0", "key(2.0", 1))
    assert trained(project) == {"toy/prompt-focal", "other/prompt-focal"}
    assert said(project, "toy/prompt-focal")["settings"]["gamma"] == 2.0


def test_an_asked_file_that_cannot_be_written_ends_in_a_sentence_and_not_in_nothing_to_do(project):
    file = project / "results/tiny/asked/glee/tiny/toy/cls-tanh/775.json"
    before = file.read_bytes()
    file.unlink()
    file.mkdir()
    rewrite(project / "asked.yaml", "cls-tanh: {eta: 2.5}", "cls-tanh: {eta: 3.5}")
    assert planned(project).count("train") == 2  # which writes elsewhere
    done = snakemake(project, "--cores", "2", *OPTIONS)
    assert (
        done.returncode and "775.json is a folder" in done.stdout and "Nothing to be done" not in done.stdout
    )
    file.rmdir()
    file.write_bytes(before)
    assert trained(project) == {"toy/cls-tanh", "other/cls-tanh"}


@contextmanager
def in_use(project, **files):
    """While another Snakemake works there, or after one was killed: the locks that it holds."""
    locks = project / ".snakemake/locks"
    locks.mkdir(exist_ok=True)
    for kind, names in files.items():
        (locks / f"0.{kind}.lock").write_text("".join(f"{name}\n" for name in names))
    yield
    shutil.rmtree(locks, ignore_errors=True)  # as Snakemake itself removes it in the end, with all locks


def with_eta(project, eta):
    """Another eta of method cls-tanh."""
    file = project / "asked.yaml"
    file.write_text(re.sub(r"(cls-tanh: \{eta: )[\d.]+", rf"\g<1>{eta}", file.read_text()))


def test_jobs_read_nothing_that_a_plan_writes_while_another_snakemake_works_here(project):
    with_eta(project, 4.5)
    run = "results/tiny/runs/glee/tiny/toy/cls-tanh/775/run.json"
    asked = project / "results/tiny/asked/glee/tiny/toy/cls-tanh/775.json"
    with in_use(project, input=["results/other/data/toy.parquet"], output=["results/other/data/x.json"]):
        done = snakemake(project, "-p", "--cores", "1", run, *OPTIONS[len(FILES) :])
        assert done.returncode == 0 and "results/tiny/planned" not in done.stdout, done.stdout
        assert json.loads(asked.read_text())["settings"]["eta"] == 4.5
    with in_use(project, input=[FILES[0].replace("runs", "asked")], output=["results/tiny/data/toy.json"]):
        assert trained(project) == {"other/cls-tanh"}  # no file of that Snakemake is made


def test_a_job_whose_settings_another_snakemake_reads_is_not_begun(project):
    with_eta(project, 5.5)
    asked = "results/tiny/asked/glee/tiny/toy/cls-tanh/775.json"
    before = (project / asked).read_bytes()
    with in_use(project, input=[asked]):
        done = snakemake(project, "--cores", "1", *OPTIONS)
    assert done.returncode and f"{asked} belongs to a Snakemake" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout and (project / asked).read_bytes() == before
    assert trained(project) == {"toy/cls-tanh", "other/cls-tanh"}


def test_a_snakemake_that_the_lock_refuses_changes_nothing_that_the_other_reads(project):
    told = project / "results/tiny/told/data/toy.json"
    before = told.read_bytes()
    with in_use(project, output=["results/tiny/data/toy.json", "results/tiny/data/toy.parquet"]):
        options = ("--config", "datasets={toy: {threshold: 0.5}}")
        done = snakemake(project, "--cores", "1", "results/tiny/data/toy.json", *OPTIONS[-3:], *options)
    assert done.returncode and "--unlock" in done.stdout and told.read_bytes() == before, done.stdout


def test_two_files_of_one_rule_can_be_asked_for_at_once_in_a_new_folder(project):
    reports = [f"results/new/data/{name}.json" for name in ("toy", "other")]
    done = snakemake(project, "-n", *reports, *OPTIONS[-3:], "--config", "scale=new")
    assert [rule for rule, _ in wildcards(done.stdout)] == ["prepare", "prepare"], done.stdout


def edited_rows(project):
    """The rows of toy are others."""
    with open(project / "tests/toy.csv", "a") as file:
        file.write("one more song,music\n")


def test_other_rows_that_were_prepared_and_removed_retrain_at_the_next_run(project):
    edited_rows(project)
    report = "results/tiny/data/toy.json"
    done = snakemake(project, "--cores", "2", report, *OPTIONS[len(FILES) :])
    assert done.returncode == 0, done.stdout
    shutil.rmtree(project / "results/tiny/data")
    assert trained(project) == RUNS, "of both data sets, which have one file"


@pytest.mark.parametrize("edit", ["rows", "settings"])
def test_files_of_the_future_are_one_sentence_before_any_job_and_its_command_mends_them(project, edit):
    later = time.time() + 86400
    for file in [each for each in (project / "results").rglob("*") if each.is_file()]:
        os.utime(file, (later, later))
    edited_rows(project) if edit == "rows" else with_eta(project, 6.5)
    before = {file: file.stat().st_mtime_ns for file in (project / "results/tiny").glob("[dr]*/**/*.json")}
    done = snakemake(project, "--cores", "2", *OPTIONS)
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout
    said = done.stdout.splitlines()[-1]
    assert re.match(r"results/tiny/asked/.*json is of the future by the clock", said), done.stdout
    assert before == {file: file.stat().st_mtime_ns for file in before}
    subprocess.run(said.partition("or run: ")[2], shell=True, check=True, cwd=project)
    assert trained(project) == (RUNS if edit == "rows" else {"toy/cls-tanh", "other/cls-tanh"})
