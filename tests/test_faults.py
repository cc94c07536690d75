"""Faults while the workflow runs: what is kept, what goes on, and that nothing is trained twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from project import TINY, copied, edited, rewritten, snakemake

from tailprompt.plan.held import claim, holder

pytestmark = pytest.mark.workflow

COUNTED = """
    with open("trained", "a") as file:
        print(point.path, file=file)
    torch.manual_seed(point.seed)
"""
RUNS = ("glee/tiny/toy/cls-tanh/775", "glee/tiny/toy/prompt/775")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project that notes each training, with data and backbone prepared."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    rewritten(folder / "src/tailprompt/train.py", "\n    torch.manual_seed(point.seed)\n", COUNTED)
    return folder


def told(scale, epochs):
    """Options of Snakemake for two runs of so many epochs in a scale of their own."""
    protocol = f"protocols={{glee: {{seeds: [775], settings: {{epochs: {epochs}, patience: 1000000}}}}}}"
    own = ("--config", f"scale={scale}", protocol)
    return ("runs", "--profile", "workflow/profiles/local", "--cores", "2", *TINY, *own)


def folder_of(project, scale, run):
    return project / f"results/{scale}/runs/{run}"


def trainings(project):
    """The runs in the order in which their training was begun; the list is emptied."""
    file = project / "trained"
    text = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    return sorted(text.split())


@contextmanager
def driver(project, *arguments):
    """Snakemake in the background, as a terminal starts it; its output is in the file `driver.log`."""
    command = [sys.executable, "-m", "snakemake", *arguments]
    with open(project / "driver.log", "w") as log:
        process = subprocess.Popen(
            command,
            cwd=project,
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait(look, seconds=180):
    """What `look` finds, once it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "nothing found in time"
        time.sleep(0.05)
    return found


def test_a_killed_drivers_jobs_end_and_the_next_driver_trains_nothing_twice(project):
    folders = [folder_of(project, "orphans", run) for run in RUNS]
    with driver(project, *told("orphans", 60)) as process:
        wait(lambda: all(map(holder, folders)))
        process.kill()  # the driver alone: its jobs live on
        process.wait()
    assert snakemake(project, "--unlock", *told("orphans", 60)).returncode == 0
    done = snakemake(project, *told("orphans", 60))
    assert done.returncode == 0, done.stdout
    assert trainings(project) == sorted(RUNS)
    assert "Nothing to be done" in snakemake(project, *told("orphans", 60)).stdout


def test_two_drivers_train_each_run_once(project):
    options = ("--nolock", *told("both", 40))
    # The data first: of two drivers that make one file, one finds that the other has removed it.
    assert snakemake(project, "fetch", *options[2:]).returncode == 0
    with driver(project, *options) as first:
        second = snakemake(project, *options)
        assert second.returncode == 0, second.stdout
        assert first.wait() == 0, (project / "driver.log").read_text()
    assert trainings(project) == sorted(RUNS)


@pytest.mark.parametrize("same", [False, True], ids=["another checkout", "another configuration"])
def test_a_second_driver_in_the_results_of_a_scale_is_refused(project, tmp_path, same):
    scale, other = f"shared{same}".lower(), project
    results = project / f"results/{scale}"
    if not same:
        other = copied(tmp_path / "other")
        (other / "results").symlink_to(project / "results")
    with driver(project, *told(scale, 100000)) as process:
        folders = [folder_of(project, scale, run) for run in RUNS]
        wait(lambda: all(map(holder, folders)))
        asked = {file: file.read_bytes() for file in results.glob("asked/**/*.json")}
        second = snakemake(other, *told(scale, 2))
        said = f"results/{scale} is in the hands of another Snakemake, process {process.pid} on "
        assert second.returncode == 1 and said in second.stdout.splitlines()[-1], second.stdout
        assert "Traceback" not in second.stdout
        assert snakemake(other, "-n", *told(scale, 2)).returncode == 0
        assert asked == {file: file.read_bytes() for file in results.glob("asked/**/*.json")}
        process.kill()  # the driver alone
        process.wait()
        claim(results).close()
        for folder in folders:
            os.kill(holder(folder)["pid"], signal.SIGKILL)
    trainings(project)


ENDED = {
    "terminated": (signal.SIGTERM, "stopped by SIGTERM after step "),
    "out of memory": (signal.SIGKILL, "it was ended without a word, as where memory ran out"),  # of the host
}


@pytest.mark.parametrize("number, says", ENDED.values(), ids=ENDED)
def test_a_job_that_is_ended_says_why_and_goes_on_where_it_was_saved(project, monkeypatch, number, says):
    monkeypatch.setenv("TAILPROMPT_PRELOAD", "")  # which may have read the file before it was edited
    scale = signal.Signals(number).name.lower()
    folders = [folder_of(project, scale, run) for run in RUNS]
    logs = [project / f"results/{scale}/logs/train/{run}.log" for run in RUNS]
    often = ("SAVE_SECONDS = 120.0", "SAVE_SECONDS = 0.5")
    with edited(project / "src/tailprompt/training/stopping.py", *often):
        with driver(project, *told(scale, 100000)) as process:
            wait(lambda: all(map(holder, folders)) and len(trainings_begun(project)) == 2)
            wait(lambda: all(log.is_file() and " steps" in log.read_text("utf-8") for log in logs))
            wait(lambda: all((folder / "state.pt").is_file() for folder in folders))
            for folder in folders:
                os.kill(holder(folder)["pid"], number)
            assert process.wait(120) == 1
        trainings(project)
        assert all((folder / "state.pt").is_file() for folder in folders)
        log = (project / "driver.log").read_text()
        assert says in log.splitlines()[-1], log
        with driver(project, *told(scale, 100000)) as process:
            wait(lambda: all(log.is_file() and "going on after step" in log.read_text() for log in logs))
            process.send_signal(signal.SIGINT)
            os.killpg(process.pid, signal.SIGINT)
            process.wait(120)
    trainings(project)


def trainings_begun(project):
    file = project / "trained"
    return file.read_text().split() if file.exists() else []


def test_a_forced_run_is_trained_again(project):
    assert snakemake(project, *told("forced", 2)).returncode == 0
    assert trainings(project) == sorted(RUNS)
    kept = [folder_of(project, "forced", run) / ".finished" for run in RUNS]
    times = [folder.stat().st_ctime_ns for folder in kept]
    for forced, expected in ((), []), (["prepare"], []), (["train"], sorted(RUNS)):
        options = ("--forcerun", *forced) if forced else ()
        assert snakemake(project, *options, *told("forced", 2)).returncode == 0
        assert trainings(project) == expected
        assert ([folder.stat().st_ctime_ns for folder in kept] == times) == (not expected)
