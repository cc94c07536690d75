"""The workflow in a copy of the project: a made-up CSV to the report, then what each edit makes stale."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import ExitStack
from datetime import date

import pandas as pd
import pytest
from project import (
    TINY,
    commented,
    copied,
    edited,
    names,
    planned,
    rewritten,
    snakemake,
    stage,
    wildcards,
    write_toy,
)
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from tailprompt.plan import asked, config, made
from tailprompt.plan.points import Point
from tailprompt.plan.settings import settings

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project in which the tiny scale was run to its end."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    done = snakemake(folder, "all", "scores", "--profile", "workflow/profiles/local", "--cores", "2", *TINY)
    assert done.returncode == 0, done.stdout
    return folder


def test_data_become_scores_tables_figures_and_a_report(project):
    done = snakemake(project, *TINY, "--report", "results/tiny/report.html")
    assert done.returncode == 0, done.stdout
    results = project / "results/tiny"
    run = results / "runs/glee/tiny/toy/prompt/775"
    made = {file.name for file in run.iterdir()}
    assert made >= {"weights.safetensors", "predictions.parquet", "curve.csv", "run.json"}
    assert "state.pt" not in made
    assert len(pd.read_parquet(results / "scores.parquet")[["method", "seed"]].drop_duplicates()) == 4
    for table in ("claims", "table1", "table2"):
        assert {file.suffix for file in (results / "tables/glee").glob(f"{table}.*")} == {
            ".tex",
            ".md",
            ".csv",
            ".html",
        }
    for figure in ("claims", "figure1", "figure3", "figure4", "frequency"):
        assert all(
            (results / f"figures/glee/{figure}.{kind}").stat().st_size > 1000
            for kind in ("pdf", "png", "html")
        )
    report = (results / "report.html").read_text("utf-8")
    assert "Comparison of classifiers" in report and "Norms of the vectors" in report
    assert "4 of 4 planned runs are here" in report and "Which claims hold" in report


def test_a_finished_scale_has_nothing_to_do_though_sources_data_and_config_are_touched(project):
    files = [*project.glob("src/**/*.py"), *project.glob("config/**/*.yaml"), project / "tests/toy.csv"]
    for file in [*files, *project.glob("workflow/**/*.smk"), project / "Snakefile"]:
        file.touch()
    assert planned(project) == []
    assert "Nothing to be done" in snakemake(project, "all", "-n", *TINY).stdout


@pytest.mark.parametrize(
    "name, rules",
    {
        "overview.html": {"overview"},
        "scores.parquet": {"score"},
        "backbones/tiny.json": {"backbone"},
        "data/toy.json": {"prepare", "tabulate", "draw", "overview", "score"},
        "tables/glee/table1.md": {"tabulate"},
        "figures/glee/figure3.png": {"draw"},
    }.items(),
)
def test_one_flipped_byte_in_what_is_made_of_runs_makes_it_again_and_trains_nothing(project, name, rules):
    file = project / "results/tiny" / name
    content, times = file.read_bytes(), file.stat()
    middle = len(content) // 2
    file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = snakemake(project, "all", "scores", str(file.relative_to(project)), "-n", *TINY)
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert {rule for rule, _ in wildcards(done.stdout)} - {
        "all",
        "runs",
        "tables",
        "figures",
        "scores",
    } == rules


def test_the_table_of_scores_refuses_a_damaged_run(project, tmp_path):
    copy = shutil.copytree(project, tmp_path / "copy")
    with open(copy / "results/tiny/runs/glee/tiny/toy/prompt/775/predictions.parquet", "ab") as file:
        file.write(b"~")
    done = snakemake(copy, "scores", "--cores", "1", *TINY)
    said = r"scores\.log: .*prompt/775/predictions\.parquet is not what its run wrote .*tailprompt retrain "
    assert done.returncode == 1 and re.search(said, done.stdout), done.stdout


def test_the_table_of_scores_has_the_runs_that_the_configuration_asks(project, tmp_path):
    copy = shutil.copytree(project, tmp_path / "copy")
    file = copy / "results/tiny/scores.parquet"
    fewer = ("--config", "protocols={glee: {seeds: [775]}}")
    assert snakemake(copy, "scores", "--cores", "1", *TINY, *fewer).returncode == 0
    runs = pd.read_parquet(file)[["method", "seed"]].drop_duplicates()
    assert runs.values.tolist() == [["cls-tanh", 775], ["prompt", 775]], (
        "others are on disk, of this configuration or a former"
    )


@pytest.mark.parametrize("edit", ["learning rate", "own data"])
def test_without_training_the_table_of_scores_has_no_run_that_is_not_what_is_asked(project, tmp_path, edit):
    copy = shutil.copytree(project, tmp_path / "copy")
    if edit == "own data":
        with open(copy / "tests/toy.csv", "a", encoding="utf-8") as file:
            file.write("a song,music\n")
    else:
        rewritten(copy / "tests/tiny.yaml", "lr: 1.0e-3", "lr: 2.0e-3")
    file = copy / "results/tiny/scores.parquet"
    before = file.read_bytes()
    done = snakemake(copy, "all", "scores", "--cores", "1", *TINY, "--config", "train=false")
    assert done.returncode == 0 and not {"score", "train"} & {rule for rule, _ in wildcards(done.stdout)}
    assert re.search("not, as none of their runs is here: .*, scores.parquet\n", done.stdout)
    assert re.search("and stale: .*, results/tiny/scores.parquet\n", done.stdout)
    named = snakemake(copy, file.relative_to(copy), "--cores", "1", *TINY, "--config", "train=false")
    assert named.returncode == 1 and "scores.parquet: no run that is asked is here" in named.stdout
    assert file.read_bytes() == before


def test_editing_a_figures_code_re_plans_that_figure_only(project):
    with commented(project / "src/tailprompt/report/figures/weight_norms.py"):
        jobs = planned(project)
    assert names(jobs, "draw", "name") == ["figure3"] and len(jobs) == 1


def test_editing_a_tables_code_re_plans_tables_of_its_kind_only(project):
    with commented(project / "src/tailprompt/report/tables/statistics.py"):
        jobs = planned(project)
    assert names(jobs, "tabulate", "name") == ["table1"] and len(jobs) == 1


def test_one_methods_learning_rate_re_plans_its_runs_and_what_shows_them(project):
    with edited(
        project / "config/methods.yaml", "{title: CLS-tuning (T), ", "{lr: 2.0e-3, title: CLS-tuning (T), "
    ):
        jobs = planned(project)
    assert set(names(jobs, "train", "method")) == {"cls-tanh"}
    assert len(names(jobs, "train", "seed")) == 2
    assert names(jobs, "tabulate", "name") == ["claims", "table2"] and not names(jobs, "prepare", "dataset")


def test_a_methods_title_re_plans_no_run(project):
    jobs = planned(project, *TINY, "--config", "methods={cls-tanh: {title: Another}}")
    assert {rule for rule, _ in jobs} == {"tabulate", "draw"}


def test_editing_a_loader_remakes_its_data_and_no_run(project):
    with commented(project / "src/tailprompt/data/readers.py"):
        jobs = planned(project)
    assert names(jobs, "prepare", "dataset") == ["toy"]
    assert {rule for rule, _ in jobs} == {"prepare", "tabulate", "draw", "score"}


def test_editing_how_scores_are_computed_remakes_what_shows_them_and_no_run(project):
    with commented(project / "src/tailprompt/report/answers.py"):
        jobs = planned(project)
    assert {rule for rule, _ in jobs} == {"tabulate", "draw", "score"}
    assert set(names(jobs, "tabulate", "name")) >= {"claims", "table2"}
    with commented(project / "src/tailprompt/tasks/classification.py"):
        assert not names(planned(project), "train", "seed")


def test_other_groups_of_a_data_set_remake_what_shows_them_and_no_run(project):
    jobs = planned(project, *TINY, "--config", "datasets={toy: {threshold: 0.3}}")
    assert {rule for rule, _ in jobs} == {"prepare", "tabulate", "draw", "score"}


def test_editing_how_runs_are_trained_re_plans_none(project):
    with ExitStack() as edits:
        for module in ("train", "training/loop", "training/losses", "model/heads", "model/backbones"):
            edits.enter_context(commented(project / f"src/tailprompt/{module}.py"))
        assert planned(project) == []


def test_another_command_for_training_re_plans_no_finished_run_and_force_all(project):
    with edited(
        project / "workflow/rules/runs.smk", "python -m tailprompt.train", "python -u -m tailprompt.train"
    ):
        assert planned(project) == []
        assert len(names(planned(project, *TINY, "--forcerun", "train"), "train", "seed")) == 4
        for rule, others in (("tabulate", ["score"]), ("backbone", [])):
            jobs = {rule for rule, _ in planned(project, *TINY, "--forcerun", rule)}
            assert jobs - {*others, "draw"} == {rule}, "forcing another rule trains nothing"
        one = "results/tiny/runs/glee/tiny/toy/prompt/775/run.json"
        assert names(planned(project, *TINY, "--forcerun", one), "train", "seed") == ["775"]


def test_force_all_holds_where_a_backbone_is_made_anew_too(project):
    with edited(project / "results/tiny/made/backbones/tiny.json", "{", "["):
        jobs = planned(project, *TINY, "--forcerun", "train")
        assert len(names(jobs, "train", "seed")) == 4
        assert "backbone" in {rule for rule, _ in jobs}


def test_one_more_seed_re_plans_its_runs_only(project):
    jobs = planned(project, *TINY, "--config", "protocols={glee: {seeds: [775, 776, 777]}}")
    assert names(jobs, "train", "seed") == ["777", "777"]


def test_what_make_no_longer_names_is_said_and_stays(project):
    table = project / "results/tiny/tables/glee/table2.md"
    fewer = ("--config", "make={glee: {tables: [table1, claims]}}")
    done, all_asked = (snakemake(project, "-n", *TINY, *options) for options in (fewer, ()))
    assert done.returncode == 0 and table.is_file()
    left = f"results/tiny/tables/glee/table2.* (made on {date.today()} of 4 runs)"
    line = f"no longer asked, and left as they are: {left}; delete them, or name them in make"
    assert [each for each in done.stdout.splitlines() if "no longer asked" in each] == [line]
    assert "no longer asked" not in all_asked.stdout


def test_where_a_run_is_computed_makes_nothing_stale(project):
    assert planned(project, *TINY, "--config", "threads=2", "slots=3") == []


def test_a_job_on_a_cluster_may_be_of_a_name_with_commas(project):
    point = "glee/tiny/toy/prompt@lr=0.1,epochs=1/775"
    asked_of_it = project / f"results/tiny/asked/{point}.json"  # the driver would have written it
    asked_of_it.parent.mkdir(parents=True)
    asked_of_it.write_text("{}")
    [job] = encode_target_jobs_cli_args([TargetSpec("train", {"scale": "tiny", "point": point})])
    done = snakemake(
        project, "-n", "--target-jobs", job, "--allowed-rules", "train", "--mode", "remote", *TINY
    )
    assert done.returncode == 0, done.stdout
    assert list(wildcards(done.stdout)) == [("train", f"scale=tiny, point={point}")]


def test_a_scale_does_not_take_over_the_backbone_of_another(project):
    jobs = planned(project, *TINY, "--config", "scale=other", "backbones={tiny: {random: {hidden_size: 16}}}")
    assert {"backbone", "train", "tabulate", "draw"} <= {rule for rule, _ in jobs}


@pytest.fixture(scope="module")
def elsewhere(project, tmp_path_factory):
    """A copy of the project without its data, to which a bundle brought the tiny scale's runs."""
    folder = copied(tmp_path_factory.mktemp("copy") / "elsewhere")
    (folder / "tests/toy.csv").unlink()
    file = folder.parent / "tiny.tar.xz"
    stage(project, "bundle", "tiny", file)
    assert f"from {file}: 4;" in stage(folder, "unbundle", file)
    return folder


def test_tables_and_figures_of_bundled_runs_are_the_same_and_nothing_else_is_planned(project, elsewhere):
    assert {rule for rule, _ in planned(elsewhere)} == {"tabulate", "draw", "score"}
    done = snakemake(elsewhere, "all", "--cores", "2", *TINY)
    assert done.returncode == 0, done.stdout
    for what in ("tables/glee", "figures/glee"):  # but for seals, as a bundle brings other reports of data
        here, there = (
            {file.name: file.read_bytes() for file in (root / "results/tiny" / what).glob("[!.]*")}
            for root in (project, elsewhere)
        )
        assert here == there and here
    assert "Nothing to be done" in snakemake(elsewhere, "-n", *TINY).stdout


def test_data_that_are_prepared_where_a_bundle_brought_the_same_make_nothing_anew(elsewhere, tmp_path):
    folder = shutil.copytree(elsewhere, tmp_path / "prepared")
    for target in ("tables", "results/tiny/data/toy.json"):
        assert snakemake(folder, target, "--cores", "2", *TINY).returncode == 0
        write_toy(folder / "tests/toy.csv")
    assert (folder / "results/tiny/data/toy.json").is_file()
    assert not names(planned(folder), "tabulate", "name")


def test_a_bundled_run_that_is_not_what_is_asked_is_trained_here(elsewhere):
    write_toy(elsewhere / "tests/toy.csv")
    jobs = planned(elsewhere, *TINY, "--config", "methods={prompt: {lr: 0.5}}")
    assert names(jobs, "train", "method") == ["prompt", "prompt"] and names(jobs, "prepare", "dataset") == [
        "toy"
    ]


def test_a_bundled_run_is_trained_here_if_another_starts_from_it(elsewhere):
    write_toy(elsewhere / "tests/toy.csv")
    begun = "methods={prompt-focal: {start: {method: prompt}}}"
    methods = "protocols={glee: {methods: [cls-tanh, prompt, prompt-focal]}}"
    jobs = planned(elsewhere, *TINY, "--config", begun, methods)
    assert names(jobs, "train", "method") == ["prompt", "prompt", "prompt-focal", "prompt-focal"]


def test_a_bundled_run_that_is_asked_goes_before_one_made_here_that_is_not(project, elsewhere):
    write_toy(elsewhere / "tests/toy.csv")
    runs = elsewhere / "results/tiny/runs"
    shutil.copytree(project / "results/tiny/runs", runs)
    for file in runs.rglob("run.json"):
        about = json.loads(file.read_text())
        file.write_text(json.dumps(about | {"settings": about["settings"] | {"lr": 0.5}}))
    started = "methods={prompt-focal: {start: {method: prompt}}}"
    methods = "protocols={glee: {methods: [cls-tanh, prompt, prompt-focal]}}"
    try:
        assert not names(planned(elsewhere), "train", "method")
        untrained = snakemake(elsewhere, "tables", "-n", *TINY, "--config", "train=false").stdout
        assert "so 8 of 8 tables and figures are made\n" in untrained
        assert "from_bundles/runs" in snakemake(elsewhere, "tables", "-n", "-R", "tabulate", *TINY).stdout
        assert "4 done\n" in stage(elsewhere, "status", *TINY)
        jobs = planned(elsewhere, *TINY, "--config", started, methods)
        assert names(jobs, "train", "method") == ["prompt", "prompt", "prompt-focal", "prompt-focal"]
    finally:
        shutil.rmtree(runs)


def test_a_bundled_run_whose_start_did_not_travel_stands_and_the_start_is_not_trained(elsewhere, tmp_path):
    folder = tmp_path / "alone"
    shutil.copytree(elsewhere, folder, ignore=shutil.ignore_patterns(".snakemake"))
    write_toy(folder / "tests/toy.csv")
    changes = {
        "methods": {"prompt-focal": {"start": {"method": "prompt"}}},
        "protocols": {"glee": {"methods": ["cls-tanh", "prompt-focal"]}},
        "make": {"glee": {"tables": ["table2"], "figures": []}},
    }
    (folder / "focal.yaml").write_text(json.dumps(changes))
    whole = config.load([folder / "tests/tiny.yaml", folder / "focal.yaml"], root=folder)
    for seed in (775, 776):
        point = Point("glee", "tiny", "toy", "prompt-focal", seed)
        brought = folder / "results/tiny/from_bundles/runs/glee/tiny/toy"
        (brought / "prompt" / str(seed)).rename(brought / "prompt" / f"was-{seed}")
        run = brought / "prompt-focal" / str(seed)
        shutil.copytree(brought / "prompt" / f"was-{seed}", run)
        wanted = asked.asked(
            whole, point, settings(whole, point), made.weights(whole, "tiny", folder), folder
        )
        about = {**json.loads((run / "run.json").read_text()), **wanted, "start_sha256": "of its start"}
        about["point"] = vars(point)
        (run / "run.json").write_text(json.dumps(about))
    files = (*TINY, "focal.yaml")
    assert not names(planned(folder, *files), "train", "method")
    assert "scale tiny: 4 runs, 4 of them done, on" in stage(folder, "plan", *files)
    forced = names(planned(folder, *files, "--forcerun", "train"), "train", "method")
    assert forced == ["cls-tanh", "cls-tanh", "prompt", "prompt", "prompt-focal", "prompt-focal"]
    untrained = ("-n", "--configfile", *files[1:], "--config", "train=false")
    assert not names(planned(folder, *files, "-F", "--config", "train=false"), "train", "method")
    place = "results/tiny/runs/glee/tiny/toy/prompt-focal/775"
    for told in ([f"{place}/predictions.parquet"], ["tables", "--forcerun", f"{place}/predictions.parquet"]):
        done = snakemake(folder, *told, *untrained)
        assert done.returncode == 1 and f"train: false, and {place} would be trained" in done.stdout
    shutil.rmtree(run)
    assert names(planned(folder, *files), "train", "method") == ["prompt", "prompt-focal"]


def test_without_training_tables_are_made_of_the_runs_that_are_here_and_say_what_is_missing(elsewhere):
    some = ("--config", "train=false", "protocols={glee: {methods: [cls-tanh, prompt, prompt-focal]}}")
    assert {rule for rule, _ in planned(elsewhere, *TINY, *some)} <= {"tabulate", "draw", "score"}
    done = snakemake(elsewhere, "tables", "--cores", "1", *TINY, *some)
    assert done.returncode == 0, done.stdout
    assert "made\n  of a part of their runs: claims of glee (4 of 6), table2 of glee (4 of 6)" in done.stdout
    assert ", scores.parquet (4 of 6)\n" in done.stdout
    table = (elsewhere / "results/tiny/tables/glee/table2.md").read_text()
    assert "Missing on Toy: Prompt-tuning w/ focal loss (seeds 775, 776)." in table
    none = snakemake(
        elsewhere,
        "tables",
        "-n",
        *TINY,
        "--config",
        "train=false",
        "methods={cls-tanh: {eta: 2.0}, prompt: {eta: 2.0}}",
    )
    assert "not, as none of their runs is here: claims of glee, table2 of glee" in none.stdout
    assert not list(wildcards(none.stdout)), "a stale run is not shown, nor trained"
    assert "  there still, of other or former runs, and stale: results/tiny/tables/glee/" in none.stdout
    assert "results/tiny/tables/glee/table2.*" in none.stdout


def test_data_of_a_bundle_are_prepared_here_if_their_row_is_another(elsewhere):
    jobs = planned(elsewhere, *TINY, "--config", "datasets={toy: {title: Another}}")
    assert names(jobs, "prepare", "dataset") == ["toy"] and not names(jobs, "train", "seed")
