"""Multi-task P-Tuning v2 through the workflow: sets are joined, a prefix is pre-trained, and tuned on one."""

import json
import random

import pytest
from project import BACKBONE, copied, snakemake, stage, wildcards

pytestmark = pytest.mark.workflow

OWN = (
    BACKBONE
    + """
scale: own
make: {mine: {tables: [table2]}}
device: cpu
threads: 1
datasets:
  names: {path: names.conll, loader: tags, language: en, joined_in: both}
  firms: {path: firms.conll, loader: tags, language: en, joined_in: both}
  both: {language: en, joins: [names, firms]}
sets: {mine: [names, firms]}
protocols:
  mine:
    seeds: [1]
    backbones: {en: tiny}
    methods: [mpt2]
    settings: {head: predictor, batch: 8, epochs: 2}
    datasets: {both: {lr: 1.0e-2}}
papers:
  mine:
    tables: {table2: {methods: [mpt2], choose: {values: [3.0e-3]}, metrics: [f1/all], parameters: [tuned]}}
"""
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with two files of tagged sentences."""
    folder, draw = copied(tmp_path_factory.mktemp("joined") / "project"), random.Random(0)
    for file, words, kind in (("names", "Ann Bob Eve", "PER"), ("firms", "Acme Initech", "ORG")):
        sentences = [f"{draw.choice(words.split())} B-{kind}\nleft O\nnumber{i} O\n" for i in range(60)]
        (folder / f"{file}.conll").write_text("\n".join(sentences))
    (folder / "own.yaml").write_text(OWN)
    return folder


def test_a_prefix_of_joined_sets_is_tuned_on_each_and_tabulated(project):
    options = ("--profile", "workflow/profiles/local", "--cores", "2", "--configfile", "own.yaml")
    done = snakemake(project, *options)
    assert done.returncode == 0, done.stdout
    runs = project / "results/own/runs/mine/tiny"
    joined = json.loads((runs / "both/mpt2-joined/1/run.json").read_text())
    assert joined["data"]["sets"] == ["names", "firms"] and joined["classes"] == ["names/PER", "firms/ORG"]
    for name in ("names", "firms"):
        about = json.loads((runs / name / "mpt2@lr=0.003/1/run.json").read_text())
        assert about["start_sha256"] == joined["weights_sha256"] and len(about["classes"]) == 1
    assert "Multi-task P-Tuning v2" in (project / "results/own/tables/mine/table2.md").read_text()
    assert snakemake(project, "scores", *options).returncode == 0  # those of the joined sets, too
    assert "runs left out" not in (said := stage(project, "bundle", "own", "own.tar.xz")), said
    assert "Nothing to be done" in snakemake(project, *options).stdout


def test_other_ends_of_lines_in_a_part_of_joined_sets_train_nothing_and_a_word_trains_all(project):
    file = project / "names.conll"
    before = file.read_bytes()
    for edited, trains in ((before.replace(b"\n", b"\r\n"), 0), (before.replace(b"left", b"went", 1), 3)):
        file.write_bytes(edited)
        rules = [rule for rule, _ in wildcards(snakemake(project, "-n", "--configfile", "own.yaml").stdout)]
        assert rules.count("train") == trains and "prepare" in rules
    file.write_bytes(before)
