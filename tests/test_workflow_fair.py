"""Searches from their first run to claims, as docs/running.md has it: GLEE in two commands, LPT in three."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager

import pandas as pd
import pytest
import yaml
from project import BACKBONE, copied, edited, snakemake, stage, tailprompt, wildcards

from docs.results import fair

pytestmark = [pytest.mark.workflow, pytest.mark.chained]

CONFIG = (
    BACKBONE
    + """
scale: fair
make: {glee-fair: {}, lpt-fair: {}, glee: {tables: [], figures: [figure4]}}
data_dir: null
device: cpu
threads: 1
datasets:
  toy:
    {title: Toy, language: en, path: tests/toy.csv, columns: {text: sentence, label: topic}, max_length: 32,
     template: "{text} This is about {mask} .", threshold: 0.65}
sets: {long_tailed: [toy], few_shot: [], shown: [toy], fair: [toy], fair_images: ["digits@imbalance=20"]}
papers:
  glee: {figures: {figure4: {classes: [music, law], seed: 777}}}  # whose runs no test makes
  glee-fair: {tables: {search: {over: {lr: [1.0e-3, 1.0e-2], epochs: [1]}}}}
  lpt-fair:
    tables:
      search: {over: &few {lr: [1.0e-3, 1.0e-2], epochs: [1]}}
      search-phase2: {over: *few}
protocols:
  glee:
    seeds: &two [775, 776]
    backbones: &tiny {en: tiny}
    methods: &both [cls-tanh, prompt]
    settings: {lr: 1.0e-3, epochs: 1, evaluate_every: 0}
  glee-fair: {seeds: *two, backbones: *tiny, methods: *both, settings: {warmup: 0.1, evaluate_every: 0}}
  lpt: &images
    seeds: [42, 43]
    backbones: {image: vit-mini-16}
    methods: [linear, lpt-phase1, lpt]
    settings:
      {optimizer: adamw, augment: pad_crop, flip: false, mixup: 0.0, warmup: 0.1, precision: float32,
       length: 2, pool: 5}
  lpt-fair: *images
"""
)
OWN = "protocols: {lpt: {settings: {lr: 3.0e-3, epochs: 1}}}\n"  # the one rate of LPT's own protocol
FILES = ("fair.yaml", "own.yaml")
GRID = (
    "search: {over: {lr: [1.0e-3, 1.0e-2], epochs: [1]",
    "search: {over: {lr: [1.0e-3, 1.0e-2], epochs: [1, 4]",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, in which the commands were given one after another."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    (folder / "fair.yaml").write_text(CONFIG)
    (folder / "own.yaml").write_text(OWN)
    return folder


def made(folder, *searches):
    """The tables that are made when these searches are given, after `snakemake tables`."""
    files = [f"results/fair/tables/{search}.yaml" for search in searches]
    options = ("--cores", "2", "--configfile", *FILES, *files)
    done = snakemake(folder, "tables", *options)
    assert done.returncode == 0, done.stdout
    again = snakemake(folder, "tables", "-n", *options)
    assert "Nothing to be done" in again.stdout
    tables = folder / "results/fair/tables"
    return {str(file.relative_to(tables).with_suffix("")) for file in tables.glob("*/*.md")}


def test_what_searches_choose_gives_five_tables_and_claims_beside_those_of_the_paper(project):
    first = made(project)
    assert first == {"glee-fair/search", "lpt-fair/search"}
    plan = stage(project, "plan", "--configfile", *FILES)
    assert "scores of glee-fair waits for what search for 2 methods on toy chooses" in plan
    glee, phase1, phase2 = "glee-fair/search", "lpt-fair/search", "lpt-fair/search-phase2"
    assert made(project, glee, phase1) == first | {"glee-fair/scores", "glee-fair/claims", phase2}
    assert made(project, glee, phase1, phase2) >= {phase2, "lpt-fair/scores", "lpt-fair/claims"}
    for paper, claim in (("glee-fair", "prompt-f1"), ("lpt-fair", "phase2")):
        rows = pd.read_csv(project / f"results/fair/tables/{paper}/claims.csv")
        found = rows[(rows.dataset == "all") & (rows.id == claim)].iloc[0]
        assert found.seeds == found.original_seeds == 2 and found[["ours", "original_ours"]].notna().all()
    shown = fair(project / "results/fair", "glee")
    assert "4 of 4 runs of `search`" in shown and "| its own: ours |" in shown and "still undecided" in shown
    cells = yaml.safe_load((project / f"results/fair/tables/{phase2}.yaml").read_text())["protocols"]
    assert set(cells["lpt-fair"]["cells"]["digits"]["lpt"]) == {"lr", "epochs"}


def test_a_search_that_is_asked_by_its_path_settles_without_what_it_chose(project):
    chosen = project / "results/fair/tables/glee-fair/search.yaml"
    content = chosen.read_bytes()
    chosen.unlink()
    one = snakemake(project, "results/fair/tables/glee-fair/search.md", "-n", "--configfile", *FILES)
    every = snakemake(project, "tables", "-n", "--configfile", *FILES)
    chosen.write_bytes(content)
    assert "Nothing to be done" in one.stdout, one.stdout
    assert [rule for rule, _ in wildcards(every.stdout)] == ["choices", "tables"], "the table stands"


def test_what_a_search_chose_is_followed_only_while_the_search_stands(project):
    """Where `make` does not name the search, too; a command that makes it anew is not refused."""
    file, scores = (f"results/fair/tables/glee-fair/{name}" for name in ("search.yaml", "scores.csv"))
    options = ("-n", "--configfile", *FILES, file)
    assert "Nothing to be done" in snakemake(project, scores, *options).stdout
    unnamed = ("glee-fair: {}", "glee-fair: {tables: [scores, claims]}")
    with edited(project / "fair.yaml", *GRID):
        refused = snakemake(project, scores, *options)
        assert refused.returncode == 1 and "Traceback" not in refused.stdout, refused.stdout
        assert f"{file}: its search is asked" in refused.stdout and f"`snakemake {file}`" in refused.stdout
        for target in (file, "tables"):
            assert snakemake(project, target, *options).returncode == 0
        with edited(project / "fair.yaml", *unnamed):
            assert f"{file}: its search is asked" in snakemake(project, "tables", *options).stdout


GLEE = "results/fair/tables/glee-fair"
OPTIONS = ("--configfile", *FILES, f"{GLEE}/search.yaml")
RUN = "results/fair/runs/glee-fair/tiny/toy/prompt/775/run.json"


@contextmanager
def without_run(project):
    """A run of the search is gone."""
    folder = next(project.glob("results/fair/runs/glee-fair/tiny/toy/prompt@*/775"))
    shutil.move(folder, project / "gone")
    yield
    shutil.move(project / "gone", folder)


@contextmanager
def with_other_texts(project):
    """The data of the search are others."""
    file = project / "tests/toy.csv"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"song", b"songs"))
    yield
    file.write_bytes(before)


EDITS = {
    "grid": lambda project: edited(project / "fair.yaml", *GRID),
    "data": with_other_texts,
    "run of the search gone": without_run,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_plan_and_status_say_what_snakemake_does_where_a_search_no_longer_stands(project, edit):
    """It makes anew a search that is shown, and refuses what follows it, a run asked by its path too."""
    sentence = re.escape(f"{GLEE}/search.yaml: its search is asked, or has runs and data, otherwise than ")
    said = re.compile(f"^{sentence}.*this command again$", re.MULTILINE)
    assert not said.search(stage(project, "plan", *OPTIONS))
    with edit(project):
        for target in (RUN, f"{GLEE}/scores.csv"):
            refused = snakemake(project, "-n", target, *OPTIONS)
            assert refused.returncode == 1 and said.search(refused.stdout), refused.stdout
        anew = f"{GLEE}/search.yaml: snakemake without a target makes its search anew; until then "
        for make, words in (("{}", anew), ("{tables: [scores, claims]}", said.findall(refused.stdout)[0])):
            with edited(project / "fair.yaml", "glee-fair: {}", f"glee-fair: {make}"):
                planned = stage(project, "plan", *OPTIONS)
                told = tailprompt(project, "status", *OPTIONS)
                without = snakemake(project, "-n", *OPTIONS)
            assert words in planned and words in told.stdout and told.returncode == 3, told
            assert bool(without.returncode) == bool(said.search(planned)) == bool(said.search(told.stdout))
        unnamed = ("glee-fair: {}", "glee-fair: {tables: [search]}")
        with edited(project / "fair.yaml", *unnamed):
            assert said.search(snakemake(project, "-n", RUN, *OPTIONS).stdout), "a run that no table takes"


@pytest.mark.parametrize("target", [f"{GLEE}/scores.csv", RUN])
def test_an_edit_that_leaves_the_rows_of_a_search_refuses_nothing(project, target):
    """Before data are prepared by it and after. It is taken back so."""
    file = project / "tests/toy.csv"
    before = file.read_text("utf-8")
    for text in ("\ufeff" + before, before):
        file.write_text(text, "utf-8")
        for command in (("-n", target), (target, "--cores", "1"), ("-n", target)):
            done = snakemake(project, *command, *OPTIONS)
            assert done.returncode == 0, done.stdout
            assert "its search" not in stage(project, "plan", *OPTIONS)
        assert "Nothing to be done" in done.stdout


def test_without_training_a_search_stands_though_a_figure_that_names_classes_is_left_out(project):
    done = snakemake(project, "-n", f"{GLEE}/scores.csv", *OPTIONS, "--config", "train=false")
    assert "Nothing to be done" in done.stdout, done.stdout


def test_a_command_whose_search_chooses_anew_asks_to_be_run_again(project):
    """What depends on the search was planned with the former choice."""
    file = "results/fair/tables/glee-fair/search.yaml"
    options = ("tables", "--cores", "2", "--configfile", *FILES, file)
    other = ("text = json.dumps(value)", "text = json.dumps(2 * value)")
    with edited(project / "src/tailprompt/choices.py", *other):
        done = snakemake(project, *options)
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout
    said = done.stdout.splitlines()[-1]
    assert file in said and said.endswith("run the same command again, which makes what depends on them")
    refused = snakemake(project, "-n", *options)
    assert f"{file}: protocols.glee-fair.cells.toy." in refused.stdout and refused.returncode == 1
    with open(project / file, "a") as end:
        end.write("# edited")
    for command in (options, ("tables", "-n", *options[1:])):
        refused = snakemake(project, *command)
        assert refused.returncode == 1 and f"{file}: not what its search wrote" in refused.stdout
    planned = snakemake(project, "tables", "-n", "--configfile", *FILES)
    assert "rule choices:" in planned.stdout, planned.stdout
