"""`tailprompt status` and `retrain`: where runs stand and why, and what is trained again."""

import logging
import os
import re
import shutil
import stat
import sys
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from scales import scale
from test_forecast import finish

from tailprompt import __main__
from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json
from tailprompt.plan import (
    agreement,
    asked,
    blocks,
    faults,
    leftover,
    made,
    made_of,
    searches,
    standing,
    starts,
)
from tailprompt.plan import retrain as again
from tailprompt.plan.config import layers_of
from tailprompt.plan.explain import explain
from tailprompt.plan.forecast import forecast
from tailprompt.plan.held import claim, held, keep
from tailprompt.plan.jobs import shown
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point, parse
from tailprompt.plan.reasons import STATES as STATES_OF_SLURM
from tailprompt.plan.reasons import last_words, note_failed, reason, why_failed
from tailprompt.plan.settings import settings
from tailprompt.plan.status import DONE, FAILED, NEVER, OPEN, comment, queued, status
from tailprompt.seals import seal, seal_of

DEMO = scale("demo")
TRACEBACK = "Traceback (most recent call last):\n  File x\n    y"
POINTS = [point for point in blocks.all_points(DEMO) if not starts.start_of(DEMO, point)]


def log_of(root, point):
    file = root / "results/demo/logs/train" / f"{point.path}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def alone(monkeypatch, root, point):
    """The demo with one run, and no table or figure to make of it."""
    monkeypatch.setattr(blocks, "all_points", lambda _: [point])
    monkeypatch.setattr(blocks, "shown", lambda _: {})
    make(root, DEMO)
    for name in ("config", "workflow"):
        (root / name).symlink_to(Path(name).absolute())


def make(root, config):
    """Make tables and figures, and the overview, as jobs do: of what is there."""
    results, whole = root / "results/demo", blocks.shown(config)
    page = shown.overview(config, whole, whole)
    jobs = {
        "/".join(key): (shown.made({key: block}, "demo"), block, shown.made_of(key, block))
        for key, block in whole.items()
    } | {"overview": ([shown.page("demo")], page, shown.page_of(page))}
    for name, (files, spec, of) in jobs.items():
        places = [root / file for file in files]
        for file in places:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
        asked_of_it = {"spec": made.read_back(spec), "of": of}
        seal(*places, also={made_of.OF: made_of.digest_of(asked_of_it, results, root=root)})


@pytest.fixture
def stood(tmp_path):
    """The project with a run in each state, and the runs."""
    done, running, waiting, failed, stale, killed = POINTS[:6]
    finish(tmp_path, DEMO, done)
    finish(tmp_path, DEMO, stale, backbone={"family": "another"})
    log_of(tmp_path, running).write_text(
        "toy: 5 of 100 steps; 0.05 steps a second, at most 30 minutes left\n"
    )
    log_of(tmp_path, failed).write_text("reading\nerror: the loss is nan; lower lr\n")
    (tmp_path / "results/demo/runs" / killed.path).mkdir(parents=True)
    log_of(tmp_path, killed).write_text("toy: 9 of 100 steps; 1 steps a second, at most 2 minutes left\n")
    return tmp_path, running, {comment("demo", waiting): "job 17, pending"}


def test_each_state_is_told_with_its_reason(stood):
    root, running, queue = stood
    with held(root / "results/demo/runs" / running.path):
        text, code = status(DEMO, root, queue)
    lines = text.splitlines()
    assert lines[0] == f"scale demo, 28 runs: 1 done, 1 running, 1 queued, 2 failed, 1 stale, {28 - 6} to do"
    assert lines[2] == "running:" and lines[3].startswith(f"  {running.path}: process {os.getpid()}")
    assert lines[3].endswith("at most 30 minutes left")
    assert f"  {POINTS[2].path}: job 17, pending" in lines
    assert f"  {POINTS[3].path}: the loss is nan; lower lr" in lines
    assert f"  {POINTS[4].path}: differs in backbone.family" in text
    assert f"  {POINTS[5].path}: it was ended without a word, as where memory ran out" in text
    assert code == FAILED


def test_a_run_that_a_snakemake_has_started_is_failed_once_that_has_ended_without_a_word(
    tmp_path, monkeypatch
):
    point, results = POINTS[0], tmp_path / "results/demo"
    alone(monkeypatch, tmp_path, point)
    (results / "runs" / point.path).mkdir(parents=True)
    with claim(results):
        log_of(tmp_path, point).touch()
        text, code = status(DEMO, tmp_path, {})
        assert "1 run: 1 starting\n" in text and code == OPEN
        log_of(tmp_path, point).write_text("error: the loss is nan\n")
        assert status(DEMO, tmp_path, {})[1] == FAILED
    log_of(tmp_path, point).write_text("")
    text, code = status(DEMO, tmp_path, {})
    assert "1 run: 1 failed\n" in text and code == FAILED


MENDED = ["asked", "data", "snakemake", "other settings", None]


@pytest.mark.parametrize(
    "kind, mended", [*((kind, mended) for kind in ("run", "data") for mended in MENDED), ("data", "code")]
)
def test_a_failure_counts_until_what_its_job_is_asked_or_reads_has_changed(
    tmp_path, monkeypatch, kind, mended
):
    point, results = POINTS[0], tmp_path / "results/demo"
    alone(monkeypatch, tmp_path, point)
    (results / "runs" / point.path).mkdir(parents=True)
    run, log, asks = kind == "run", log_of(tmp_path, point), results / f"asked/{point.path}.json"
    read = results / f"data/{point.dataset}.parquet"
    wanted = asked.asked(DEMO, point, settings(DEMO, point), made.weights(DEMO, point.backbone))
    if not run:
        log, asks = (
            results / f"logs/prepare/{point.dataset}.log",
            results / f"asked/data/{point.dataset}.json",
        )
        read = tmp_path / "words.csv"
        wanted = standing.wanted(DEMO, "data", point.dataset)
        monkeypatch.setattr(standing, "wanted", lambda *_, asked=wanted: asked)
        prepare = standing.to_prepare(DEMO, point.dataset, blocks.shown(DEMO))
        wanted = prepare | ({"code": "other"} if mended == "code" else {})
        monkeypatch.setattr("tailprompt.plan.faults.read_by", lambda *_: [read.name])
    for file in (log, asks, read):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("error: the loss is nan\n")
    write_json(
        asks, {**wanted, "replaces": 1, **({next(iter(wanted)): {}} if mended == "other settings" else {})}
    )
    newer = {"asked": asks, "data": read}.get(mended)
    for file, time in ((asks, 8), (read, 8), (log, 9), *([(newer, 10)] if newer else [])):
        os.utime(file, (time, time))
    with claim(results) if mended == "snakemake" else nullcontext():
        assert status(DEMO, tmp_path, {})[1] == (OPEN if mended else FAILED)


def test_every_rule_with_a_log_is_a_job_whose_failure_counts():
    rules = "".join(file.read_text("utf-8") for file in Path("workflow/rules").glob("*.smk"))
    named = set(re.findall(r"results/{(?:scale|SCALE)}/logs/(\w+)[/.]", rules)) - {"train"}
    mini = merge(scale("mini"), {"datasets": {"cmid": {"annotator": "model"}}})
    kinds = {job.partition("/")[0] for job in faults.planned(mini, blocks.shown(mini))}
    assert named == {faults.LOGS.get(kind, kind) for kind in kinds}


def note(root, config):
    """Leave the notes of data that were prepared as they are asked."""
    for dataset in blocks.all_datasets(config):
        told = standing.to_prepare(config, dataset, blocks.shown(config), root)
        write_json(root / standing.note(config, "data", dataset), told)


@pytest.fixture
def tabled(tmp_path):
    """A scale of one table and one figure that are made of finished runs, and its overview."""
    config = DEMO | {"make": {"glee": {"tables": ["table2"], "figures": ["figure4"]}}}
    for point in blocks.all_points(config):
        finish(tmp_path, config, point)
    (tmp_path / "src").symlink_to(Path("src").absolute())
    for dataset in blocks.all_datasets(config):
        write_json(tmp_path / f"results/demo/data/{dataset}.json", {"rows": {"train": 9}})
        (tmp_path / f"results/demo/data/{dataset}.parquet").touch()
    note(tmp_path, config)
    make(tmp_path, config)
    return tmp_path, config


def test_all_is_made_where_each_file_of_a_table_or_figure_is_there_as_it_is_asked(tabled):
    root, config = tabled
    text, code = status(config, root, {})
    assert "\n2 of 2 tables and figures are made\n" in text and code == DONE
    named = merge(config, {"papers": {"glee": {"tables": {"table2": {"caption": "Another"}}}}})
    text, code = status(named, root, {})
    assert "\n1 of 2 tables and figures are made\n" in text and code == OPEN
    (root / "results/demo/figures/glee/figure4.png").unlink()
    text, code = status(named, root, {})
    assert "\n0 of 2 tables and figures are made\n" in text and code == OPEN


def test_a_lost_overview_is_still_to_make(tabled):
    root, config = tabled
    (root / "results/demo/overview.html").unlink()
    text, code = status(config, root, {})
    assert "\n2 of 2 tables and figures are made; overview.html is not\n" in text and code == OPEN


def test_what_make_no_longer_names_is_told_with_when_and_of_how_many_runs_it_was_made(tabled):
    root, config = tabled
    table, figure = root / "results/demo/tables/glee/table2.*", root / "results/demo/figures/glee/figure4.*"
    key = ("tables", "glee", "table2")
    write_json(root / "results/demo/asked/tables/glee/table2.json", {"of": made_of_it(config, key)})
    (root / "results/demo/tables/glee/notes.md").write_text("a person's own")
    assert "no longer asked" not in status(config, root, {})[0] and not leftover.leftover(config, root)
    others = config | {"make": {"glee": {"tables": ["claims"], "figures": []}}}
    day, runs = date.today(), len(set(made_of_it(config, key)["runs"]))
    told = {str(figure): f"made on {day}", str(table): f"made on {day} of {runs} runs"}
    assert leftover.leftover(others, root) == told
    text = status(others, root, {})[0]
    assert f"\nno longer asked, and left as they are; {leftover.TO_DO}:\n" in text
    assert all(f"\n  {place}: {about}\n" in text for place, about in told.items())
    renamed = config | {"make": {"lpt": {"tables": ["table2"], "figures": ["figure4"]}}}
    assert leftover.leftover(renamed, root) == told
    write_json(root / "results/demo/asked/tables/glee/table2.json", {"replaces": 2**63})
    assert leftover.leftover(others, root)[str(table)] == f"made on {day}", "not as it was asked last"


def made_of_it(config, key):
    """What a table is made of."""
    return shown.made_of(key, blocks.shown(config)[key])


def test_a_figure_is_left_where_make_no_longer_names_its_table(tabled):
    root, config = tabled
    drawn = {"kind": "claims", "table": "claims", "protocol": "glee", "caption": "Effects"}
    config = merge(config, {"papers": {"glee": {"figures": {"drawn": drawn}}}})
    place = root / "results/demo/figures/glee/drawn.png"
    place.touch()
    seal(place)
    for tables, left in (["claims", "table2"], []), (["table2"], [f"{place.with_suffix('')}.*"]):
        asked = config | {"make": {"glee": {"tables": tables, "figures": ["figure4", "drawn"]}}}
        assert [*leftover.leftover(asked, root)] == left


def test_choices_of_a_search_that_no_longer_stands_leave_something_to_do(tabled, monkeypatch):
    root, config = tabled
    assert status(config, root, {})[1] == DONE
    monkeypatch.setattr(searches, "refused", lambda *_: ["search.yaml: its search is asked otherwise"])
    text, code = status(config, root, {}, ["search.yaml"])
    assert "\nsearch.yaml: its search is asked otherwise\n" in text and code == OPEN


@contextmanager
def of_its_time(file):
    """A file that is changed, and has the times of before."""
    times = file.stat()
    yield file
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def count(root, config):
    """How many of the two status calls made."""
    return int(re.search(r"^(\d) of 2 tables and figures", status(config, root, {})[0], re.MULTILINE)[1])


def test_tables_of_other_runs_data_or_code_are_to_make_whatever_the_times_of_the_files(tabled):
    root, config = tabled
    results, point = (
        root / "results/demo",
        next(iter(blocks.points(blocks.shown(config)["tables", "glee", "table2"]))),
    )
    for file in [each for each in results.rglob("*") if each.is_file()]:
        os.utime(file)
    assert count(root, config) == 2  # touched, and the same
    record = results / "runs" / point.path / "run.json"
    with of_its_time(record):
        write_json(record, read_json(record) | {"seconds": 7200.0})
    assert count(root, config) == 0
    make(root, config)
    with of_its_time(results / f"data/{point.dataset}.json") as report:
        write_json(report, read_json(report) | {"counts": {}})
    assert count(root, config) == 0
    make(root, config)
    (root / "src").unlink()
    assert count(root, config) == 0


def test_tables_of_a_run_that_was_edited_since_are_to_make_and_of_one_that_was_touched_are_not(tabled):
    root, config = tabled
    folder = root / "results/demo/runs" / blocks.all_points(config)[0].path
    file, record = folder / "predictions.parquet", folder / "run.json"
    write_json(record, read_json(record) | {"files": {file.name: sha256(file)}})
    make(root, config)
    os.utime(file, (2**33, 2**33))
    assert count(root, config) == 2
    file.write_text("edited")
    os.utime(file, (2**33 + 1, 2**33 + 1))
    assert count(root, config) < 2


def test_a_table_that_does_not_say_what_it_was_made_of_is_to_make(tabled):
    root, config = tabled
    seal_of(root / "results/demo/tables/glee/table2.tex").unlink()
    assert count(root, config) == 1


def test_tables_wait_for_data_that_are_prepared_anew(tabled):
    root, config = tabled
    dataset = blocks.all_datasets(config)[0]
    (root / f"results/demo/data/{dataset}.parquet").unlink()
    assert count(root, config) < 2


def test_a_figure_waits_for_the_table_that_it_is_drawn_from(tabled):
    root, config = tabled
    config = config | {"make": {"glee": {"tables": ["claims"], "figures": ["claims"]}}}
    for point in blocks.all_points(config):
        if not (root / "results/demo/runs" / point.path).exists():
            finish(root, config, point)
    note(root, config)
    make(root, config)
    assert count(root, config) == 2
    (root / "results/demo/tables/glee/claims.md").unlink()
    assert count(root, config) == 0


def test_what_a_search_chose_before_its_table_was_made_is_to_make(tabled, monkeypatch):
    root, config = tabled
    of_all = shown.made

    def with_choices(everything, scale):
        return of_all(everything, scale) + [
            f"results/{scale}/{'/'.join(key)}.yaml" for key in everything if key[0] == "tables"
        ]

    monkeypatch.setattr(shown, "made", with_choices)
    make(root, config)
    assert count(root, config) == 2
    os.utime(root / "results/demo/tables/glee/table2.yaml", (1, 1))
    assert count(root, config) == 1


def test_tables_of_what_is_finished_anew_are_to_make_while_snakemake_works(tabled):
    root, config = tabled
    with claim(root / "results/demo"):
        assert status(config, root, {})[1] == DONE
        point = blocks.all_points(config)[0]
        os.utime(root / "results/demo/runs" / point.path / "run.json", times=(2**33, 2**33))
        text, code = status(config, root, {})
        assert " of 2 tables and figures are made" in text and "2 of 2" not in text and code == OPEN
    assert status(config, root, {})[1] == DONE


def test_without_training_tables_of_a_part_of_the_runs_are_to_make_of_that_part(tabled):
    root, config = tabled
    config, point = {**config, "train": False}, blocks.all_points(config)[0]
    shutil.rmtree(root / "results/demo/runs" / point.path)
    text, code = status(config, root, {})
    assert " of 2 tables and figures are made" in text and "2 of 2" not in text and code == OPEN


@pytest.mark.parametrize("name", agreement.OUTPUTS)
def test_a_finished_run_with_a_damaged_file_is_not_done(tmp_path, name):
    point = POINTS[0]
    finish(tmp_path, DEMO, point)
    folder = tmp_path / "results/demo/runs" / point.path
    about = read_json(folder / "run.json") | {"weights_sha256": sha256(folder / agreement.OUTPUTS[0])}
    write_json(
        folder / "run.json", about | {"files": {each: sha256(folder / each) for each in agreement.CHECKED}}
    )
    keep(folder)
    assert status(DEMO, tmp_path, {})[0].startswith("scale demo, 28 runs: 1 done, ")
    copy = (folder / name).read_bytes()
    (folder / name).unlink()  # a link to what is kept
    (folder / name).write_bytes(copy + b" ")
    text, code = status(DEMO, tmp_path, {})
    assert text.startswith("scale demo, 28 runs: 1 damaged, ") and code == OPEN
    assert "\ndamaged, which snakemake leaves" in text and "stale" not in text
    assert re.search(rf"{name} is not what its run wrote .*tailprompt retrain {point.path}", text)


def test_a_running_runs_time_is_what_it_says_itself(stood, monkeypatch):
    root, running, queue = stood
    told = {}
    monkeypatch.setattr("tailprompt.plan.status.hours", lambda left, *_: told.update(left) or [])
    with held(root / "results/demo/runs" / running.path):
        log = log_of(root, running)
        written = int(log.stat().st_mtime)
        os.utime(log, (written, written))
        monkeypatch.setattr("tailprompt.plan.status.time", SimpleNamespace(time=lambda: written + 60.0))
        status(DEMO, root, queue)
    assert told[running] == 29 * 60 and len(told) == 27


def test_the_exit_status_says_whether_all_is_done_something_failed_or_is_left(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path, POINTS[0])
    assert status(DEMO, tmp_path, {})[1] == OPEN
    finish(tmp_path, DEMO, POINTS[0])
    assert status(DEMO, tmp_path, {})[1] == DONE
    logs = tmp_path / "results/demo/logs"
    (logs / "prepare").mkdir(parents=True)
    (logs / "prepare/dropped.log").write_text("error: of a data set that no table takes any more\n")
    assert status(DEMO, tmp_path, {})[1] == DONE
    log = logs / f"prepare/{POINTS[0].dataset}.log"
    log.write_text("error: cmid.csv: no column 'label'\n")
    text, code = status(DEMO, tmp_path, {})
    assert code == FAILED and f"  {log}: cmid.csv: no column 'label'" in text


def test_a_run_whose_folder_was_deleted_is_to_do_whatever_its_old_log_says(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path, POINTS[0])
    finish(tmp_path, DEMO, POINTS[0])
    log_of(tmp_path, POINTS[0]).write_text("toy: 9 of 9 steps (100%)\n")
    assert status(DEMO, tmp_path, {})[1] == DONE
    shutil.rmtree(tmp_path / "results/demo/runs" / POINTS[0].path)
    text, code = status(DEMO, tmp_path, {})
    assert text.startswith("scale demo, 1 run: 1 to do\n") and code == OPEN


def test_what_keeps_snakemake_from_starting_is_said_under_the_states(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path, POINTS[0])
    finish(tmp_path, DEMO, POINTS[0])
    name = parse(POINTS[0].dataset)[0]
    text = status(merge(DEMO, {"datasets": {name: {"lexicon": "gone.csv"}}}), tmp_path, {})[0]
    said = f"data set '{name}': there is no file gone.csv; correct its path in its row"
    assert f"snakemake will not start: {said}" in text.splitlines()
    assert "will not start" not in status(DEMO, tmp_path, {})[0]


def test_a_damaged_record_is_stale_and_not_a_crash(stood):
    root, _, queue = stood
    (root / "results/demo/runs" / POINTS[0].path / "run.json").write_text("{")
    assert "run.json is not JSON" in status(DEMO, root, queue)[0]


@pytest.mark.parametrize("damaged", range(3), ids=["data", "report", "backbone"])
def test_damaged_data_and_backbones_are_named_and_made_anew_under_runs_that_are_done(
    tmp_path, monkeypatch, damaged
):
    point, results = POINTS[0], tmp_path / "results/demo"
    alone(monkeypatch, tmp_path, point)
    names = f"data/{point.dataset}.parquet", f"data/{point.dataset}.json", f"backbones/{point.backbone}.json"
    table, report, row = files = [results / name for name in names]
    for file in (table, row):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    write_json(report, {"sha256": sha256(table), "rows": {"train": 9}})
    for file in (report, row):
        seal(file)
    finish(tmp_path, DEMO, point, data={"sha256": sha256(table)})
    assert status(DEMO, tmp_path, {})[1] == DONE
    files[damaged].write_text(files[damaged].read_text() + "~")
    text, code = status(DEMO, tmp_path, {})
    assert "1 done" in text and code == OPEN
    assert f"damaged, and made anew by snakemake:\n  {files[damaged]}\n" in text
    assert "1 of them done" in forecast(DEMO, tmp_path)


def test_a_damaged_checkpoint_is_named_and_leaves_runs_that_are_done(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path, POINTS[0])
    finish(tmp_path, DEMO, POINTS[0])
    file = tmp_path / "results/demo/pretraining/grown/config.json"
    monkeypatch.setattr(standing, "altered_checkpoints", lambda *_: [file])
    text, code = status(DEMO, tmp_path, {})
    assert f"before a run is trained on them:\n  {file}\n" in text and code == OPEN
    assert status(DEMO | {"train": False}, tmp_path, {})[1] == DONE


def test_the_queue_is_read_from_squeue_and_is_empty_without_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert queued(tmp_path) == {}
    squeue, there = tmp_path / "squeue", tmp_path.resolve()
    rows = [
        f"17|PENDING|None|{there}|rule_train_wildcards_demo_a|b",
        f"18|RUNNING|None|{there.parent}|rule_train_wildcards_demo_c",  # of another copy of the project
        f"19|PENDING|Priority|{there}|rule_train_wildcards_demo_d",
        f"20|PENDING|PartitionConfig|{there}|rule_decode_wildcards_demo_e",
        "noise",
    ]
    squeue.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    squeue.chmod(squeue.stat().st_mode | stat.S_IXUSR)
    assert queued(tmp_path) == {
        "rule_train_wildcards_demo_a|b": "job 17, pending",
        "rule_train_wildcards_demo_d": "job 19, pending (Priority)",
        "rule_decode_wildcards_demo_e": f"job 20, pending (PartitionConfig: {NEVER['PartitionConfig']})",
    }
    text, _ = status(DEMO, tmp_path)
    assert (
        "queued, of other jobs:\n  rule_decode_wildcards_demo_e: job 20, pending (PartitionConfig: " in text
    )
    squeue.write_text("#!/bin/sh\nexit 1\n")
    assert queued(tmp_path) == {}


@pytest.mark.parametrize(
    "text, says",
    [
        ("a\nerror: the loss is nan\n", "the loss is nan"),
        ("stopped by SIGTERM after step 3\n", "stopped by SIGTERM after step 3"),
        ("tailprompt train: error: --slots are numbers from 1\n", "--slots are numbers from 1"),
        ("a bar  3%|x\r 9%|y\rerror: full\n", "full"),
        (f"{TRACEBACK}\nKeyError: 'z'\n", "a fault of tailprompt (KeyError: 'z')"),
        (f"{TRACEBACK}\nKeyboardInterrupt\n", "stopped by SIGINT"),
        ("toy: 3 of 9 steps\n", None),
        ("error: at first\nall is well\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_reason_is_the_last_line_of_a_log(tmp_path, text, says):
    (tmp_path / "a.log").write_text(text)
    assert reason(tmp_path / "a.log") == says


def test_without_a_word_the_full_disk_or_the_kill_is_named(tmp_path, monkeypatch):
    assert why_failed(tmp_path / "no/such.log").startswith("it ended before it said a word")
    monkeypatch.setattr("tailprompt.plan.reasons.room", lambda _: 12)
    log = tmp_path / "no/such.log"
    assert why_failed(log) == f"the disk of {log} is full (12 bytes are free)"


def told(event, **more):
    """A record of Snakemake's logger, which is not shown where it is told to be quiet."""
    return logging.makeLogRecord({"event": event, **more})


def test_the_last_words_are_the_sentences_of_the_jobs_that_failed_for_good(tmp_path):
    for job in (3, 6):
        (tmp_path / f"{job}.log").write_text("error: the loss is nan\n")
    (tmp_path / "5.log").write_text("error: no verbalizer\n")
    failed: dict = {}
    records = [told("job_error", jobid=job, log=[str(tmp_path / f"{job}.log")]) for job in (3, 4, 5, 6)]
    records += [told("job_finished", job_id=4), told("job_info"), told("job_error", jobid=7, log=[])]
    assert all(note_failed(failed, record) for record in [*records, logging.makeLogRecord({})])
    assert [log.name for log, _ in failed.values()] == ["3.log", "5.log", "6.log"]
    assert last_words(failed.values()).splitlines() == [
        "",
        "3 jobs failed:",
        f"  {tmp_path}/3.log and 1 more: the loss is nan",
        f"  {tmp_path}/5.log: no verbalizer",
    ]
    assert last_words([]) == ""


SBATCH = (
    "SLURM sbatch failed. The error message was 'sbatch: error: Memory specification can not be satisfied\n"
)
MORE = "sbatch refused its next attempt (Memory specification can not be satisfied)"
TOO_LITTLE, SAVED = "too little memory", "stopped by SIGTERM after step 3"
ATTEMPTS = {
    "more than a node has": ([(f"error: {TOO_LITTLE}", ""), *2 * [(None, SBATCH)]], f"{TOO_LITTLE}; {MORE}"),
    "at once more than a node has": (3 * [(None, SBATCH)], MORE.replace("its next attempt", "it")),
    "another reason": ([("error: one", ""), ("error: two", "")], "two"),
    "a log that stayed": ([(SAVED, ""), (SAVED, SBATCH)], f"{SAVED}; {MORE}"),
    "its own word": ([(SAVED, "SLURM status is: 'TIMEOUT'.")], SAVED),
} | {
    state: ([("3 of 9 steps", f"SLURM-job '7' failed, SLURM status is: '{state}'. Reason: None.")], why)
    for state, why in STATES_OF_SLURM.items()
}


@pytest.mark.parametrize("attempts, why", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_last_word_is_that_of_slurm_where_the_job_had_none_and_a_refused_attempt_hides_no_reason(
    tmp_path, attempts, why
):
    failed, log = {}, tmp_path / "train.log"
    for text, message in attempts:
        log.unlink(missing_ok=True)  # as Snakemake does before each
        if text:
            log.write_text(text)
        note_failed(failed, told("job_error", jobid=1, log=[str(log)], rule_msg=message))
    assert last_words(failed.values()).splitlines()[-1] == f"  {log}: {why}"


def test_a_job_that_failed_before_its_rule_began_names_the_log_of_slurm(tmp_path):
    failed, slurm = {}, tmp_path / "17.log"
    slurm.write_text("No module named snakemake")
    logs = [str(tmp_path / "train.log"), str(slurm)]
    note_failed(failed, told("job_error", jobid=1, log=logs, rule_msg="SLURM status is: 'FAILED'."))
    assert last_words(failed.values()).endswith(f"its machine was lost; see also {slurm}")


@pytest.mark.parametrize(
    "pattern, named",
    [
        ("digits", lambda point: point.dataset.startswith("digits")),
        ("lpt*", lambda point: point.method.startswith("lpt")),
        ("results/demo/runs/glee/*/775/", lambda point: point.protocol == "glee" and point.seed == 775),
        ("glee/*/775", lambda point: point.protocol == "glee" and point.seed == 775),
        ("lpt", lambda point: point.method.partition("@")[0] == "lpt"),
    ],
)
def test_a_name_or_a_pattern_chooses_runs(pattern, named):
    expected = [point for point in blocks.all_points(DEMO) if named(point)]
    assert expected and again.chosen(DEMO, [pattern, pattern]) == expected


def test_a_name_of_no_run_is_refused_with_those_there_are():
    with pytest.raises(
        BadInput, match=r"'digit' names no run of scale demo; data sets: debian-sections, .*lpt"
    ):
        again.chosen(DEMO, ["lpt", "digit"])


def test_what_begins_from_the_runs_is_said_and_they_alone_are_deleted(tmp_path):
    first = next(point for point in blocks.all_points(DEMO) if point.method == "lpt-phase1")
    finish(tmp_path, DEMO, first)
    finish(tmp_path, DEMO, POINTS[0])
    places = again.folders(DEMO, [first], tmp_path)
    text = again.told(DEMO, [first], places)
    assert f"  {places[0]}" in text.splitlines()
    assert "1 that begin from these are trained again too: lpt/vit-mini-16/digits" in text
    with held(places[0]), pytest.raises(BadInput, match=f"is being trained by process {os.getpid()}"):
        again.delete(places)
    driver = rf"hands of another Snakemake, process {os.getpid()} .*; wait for its end, or stop it first$"
    with claim(tmp_path / "results/demo"), pytest.raises(BadInput, match=driver):
        again.delete(places)
    log_of(tmp_path, first).write_text("error: an old one\n")
    again.delete(places)
    assert not log_of(tmp_path, first).exists()
    left = {file.parent for file in tmp_path.glob("results/demo/runs/**/run.json")}
    assert left == {tmp_path / "results/demo/runs" / POINTS[0].path}


def test_with_a_start_go_the_runs_of_a_bundle_that_would_stand_without_it(tmp_path):
    first = next(point for point in blocks.all_points(DEMO) if point.method == "lpt-phase1")
    places = [
        tmp_path / f"results/demo/from_bundles/runs/{point.path}"
        for point in (first, *again.followers(DEMO, [first]))
    ]
    for place in places:
        place.mkdir(parents=True)
    assert again.folders(DEMO, [first], tmp_path) == places and len(places) == 2


def test_nothing_is_deleted_without_a_yes(tmp_path, monkeypatch, capsys):
    finish(tmp_path, DEMO, POINTS[0])
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    command = ["retrain", POINTS[0].path, "--configfile", "config/demo.yaml"]
    monkeypatch.setattr(sys, "stdin", type("Pipe", (), {"isatty": staticmethod(lambda: False)}))
    with pytest.raises(BadInput, match="nothing was deleted: say --yes"):
        __main__.dispatch(command)
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": staticmethod(lambda: True)}))
    monkeypatch.setattr("builtins.input", lambda _: "n")
    __main__.dispatch(command)
    assert "nothing was deleted" in capsys.readouterr().out and list(tmp_path.glob("results/**/run.json"))
    __main__.dispatch([*command, "--yes"])
    assert "trains them at its next start" in capsys.readouterr().out
    assert not list(tmp_path.glob("results/**/run.json"))


def test_status_ends_with_its_exit_status_and_watching_ends_when_all_is_done(tmp_path, monkeypatch, capsys):
    (tmp_path / "Snakefile").touch()
    for name in ("config", "workflow", "src"):
        (tmp_path / name).symlink_to(os.path.abspath(name))
    monkeypatch.chdir(tmp_path)
    command = ["status", "--configfile", "config/demo.yaml"]
    with pytest.raises(SystemExit) as end:
        __main__.dispatch(command)
    assert end.value.code == OPEN and "28 to do" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        __main__.dispatch([*command, "--config", "train=false", "protocols={glee: {seeds: [1]}}"])
    fewer = capsys.readouterr().out
    with pytest.raises(SystemExit):
        __main__.dispatch([*command, "-C", "train=false", "protocols={glee: {seeds: [1]}}"])
    assert capsys.readouterr().out == fewer
    assert "not here\n" in fewer and "28" not in fewer
    states = iter([("one", OPEN), ("two", FAILED), ("three", DONE)])
    monkeypatch.setattr("tailprompt.plan.status.status", lambda *_, **__: next(states))
    with pytest.raises(SystemExit) as end:
        __main__.dispatch([*command, "--watch", "0.01"])
    assert end.value.code == DONE and capsys.readouterr().out.split() == ["one", "two", "three"]


def test_without_training_no_run_is_to_do_and_what_can_be_made_decides(tmp_path, monkeypatch):
    point, untrained = POINTS[0], DEMO | {"train": False}
    alone(monkeypatch, tmp_path, point)
    text, code = status(untrained, tmp_path, {})
    assert "1 run: 1 not here\n" in text and text.endswith("nothing is trained under train: false")
    assert "hours" not in text and code == DONE
    log_of(tmp_path, point).write_text("error: the loss is nan; lower lr\n")
    log = tmp_path / f"results/demo/logs/prepare/{point.dataset}.log"
    log.parent.mkdir()
    log.write_text("error: no such class\n")
    assert status(DEMO, tmp_path, {})[1] == FAILED
    assert status(untrained, tmp_path, {})[1] == DONE, "neither would be done again"
    (tmp_path / "results/demo/overview.html").unlink()
    assert status(untrained, tmp_path, {})[1] == OPEN


def test_a_run_whose_data_will_have_other_rows_is_stale_in_plan_status_and_explain(tmp_path, monkeypatch):
    point = POINTS[0]
    alone(monkeypatch, tmp_path, point)
    finish(tmp_path, DEMO, point)
    prepared = standing.wanted(DEMO, "data", point.dataset)
    monkeypatch.setattr(standing, "wanted", lambda *_: prepared)
    note = tmp_path / standing.note(DEMO, "data", point.dataset)
    write_json(note, prepared)
    layers = layers_of(["config/demo.yaml"])
    assert status(DEMO, tmp_path, {})[1] == DONE and "1 of them done" in forecast(DEMO, tmp_path)
    assert "anew" not in explain(DEMO, layers, point, tmp_path)
    write_json(note, {**prepared, "files": ["other"]})
    text, code = status(DEMO, tmp_path, {})
    assert f"the row or the files of {point.dataset} are others now" in text and code == OPEN
    assert "0 of them done" in forecast(DEMO, tmp_path)
    assert f"Data set {point.dataset} will be prepared anew" in explain(DEMO, layers, point, tmp_path)


def test_a_run_waits_for_the_rows_of_those_that_it_begins_from_too():
    paper = scale("paper")
    point = Point("ppt", "t5-xxl", "sst2@total=32", "ppt", 10)
    first = starts.start_of(paper, point)
    assert first.dataset != point.dataset
    for changed in (point.dataset, first.dataset):
        here = standing.Present(lambda _: None, lambda name, changed=changed: None if name == changed else {})
        assert standing.waits_for_rows(paper, point, here) == [changed]
