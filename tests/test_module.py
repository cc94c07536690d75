"""Another workflow takes this one as a module, from a folder of its own."""

from __future__ import annotations

import pytest
import yaml
from project import ROOT, names, snakemake, values, wildcards, write_toy

from tailprompt.plan.home import at_home, found

SNAKEFILE = """
configfile: "outer.yaml"


module tailprompt:
    snakefile:
        config["home"] + "/Snakefile"
    config:
        config["tailprompt"]


use rule * from tailprompt as tailprompt_*


rule all:
    default_target: True
    input:
        "answer.md",


rule answer:
    input:
        "results/mine/tables/mine/table2.md",
    output:
        "answer.md",
    shell:
        "cp {input} {output}"
"""
SCALE = {
    "scale": "mine",
    "make": {"mine": {"tables": ["table2"]}},
    "data_dir": None,
    "device": "cpu",
    "threads": 1,
    "datasets": {
        "topics": {"path": "toy.csv", "columns": {"text": "sentence", "label": "topic"}, "language": "en"}
    },
    "sets": {"mine": ["topics"]},
    "protocols": {"mine": {"seeds": [1], "backbones": {"en": "bert-mini"}, "methods": ["tfidf", "cls-tanh"]}},
}


@pytest.fixture
def outer(tmp_path):
    """A project of somebody else, with data and a Snakefile."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE, "utf-8")
    (tmp_path / "outer.yaml").write_text(yaml.dump({"home": str(ROOT), "tailprompt": SCALE}), "utf-8")
    write_toy(tmp_path / "toy.csv")
    return tmp_path


@pytest.mark.workflow
def test_another_workflow_plans_ours_with_rows_that_lie_beside_our_snakefile(outer):
    done = snakemake(outer, "-n", PYTHONPATH="")
    assert done.returncode == 0, done.stdout
    jobs = [(rule, values(about)) for rule, about in wildcards(done.stdout)]
    assert {rule for rule, _ in jobs} >= {"all", "answer", "tailprompt_prepare", "tailprompt_tabulate"}
    methods = {method.partition("@")[0] for method in names(jobs, "tailprompt_train", "method")}
    assert methods == {"tfidf", "cls-tanh"}


@pytest.mark.workflow
def test_another_workflow_makes_what_ours_makes(outer):
    said = {**SCALE, "protocols": {"mine": {**SCALE["protocols"]["mine"], "methods": ["tfidf"]}}}
    (outer / "outer.yaml").write_text(yaml.dump({"home": str(ROOT), "tailprompt": said}), "utf-8")
    done = snakemake(outer, "--cores", "1", PYTHONPATH="")
    assert done.returncode == 0, done.stdout
    assert "TF-IDF" in (outer / "answer.md").read_text("utf-8")
    for forced, trained in (((), False), (("-R", "tailprompt_train"), True)):
        done = snakemake(outer, "-n", *forced, PYTHONPATH="")
        assert done.returncode == 0, done.stdout
        assert ("tailprompt_train" in {rule for rule, _ in wildcards(done.stdout)}) == trained


@pytest.mark.workflow
def test_a_fault_of_a_modules_configuration_is_one_sentence(outer):
    (outer / "outer.yaml").write_text(
        yaml.dump({"home": str(ROOT), "tailprompt": {**SCALE, "sed": 1}}), "utf-8"
    )
    done = snakemake(outer, "-n", PYTHONPATH="")
    assert done.returncode != 0
    assert "the module's config: unknown key 'sed'" in done.stdout, done.stdout


def test_a_file_of_the_other_project_wins(tmp_path):
    row = {"verbalizer": "config/verbalizers/cmid.csv", "title": "config", "path": "cmid.csv"}
    assert at_home(row, tmp_path) == {**row, "verbalizer": str(ROOT / row["verbalizer"])}
    (tmp_path / "config/verbalizers").mkdir(parents=True)
    (tmp_path / row["verbalizer"]).touch()
    assert at_home(row, tmp_path) == row


def test_in_this_project_a_path_stays_as_it_is():
    assert found("config/methods.yaml") == "config/methods.yaml"
    assert found("config/absent.yaml") == "config/absent.yaml"
