"""The tiny scale through the SLURM profile on a running cluster: what jobs ask for, retries, ctrl-C."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

import pytest
from project import TINY, copied, edited, snakemake


def answer(*command):
    """What a command of SLURM prints, by lines; nothing where it fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def partition():
    """The first partition whose nodes have cards and two CPUs, or nothing."""
    rows = [line.split() for line in answer("sinfo", "-h", "-o", "%R %c %G")]
    return next((name for name, cpus, gres in rows if "gpu" in gres and int(cpus.strip("+")) > 1), "")


def missing():
    """Why these tests cannot run here, or nothing."""
    if os.getuid():
        return "not root: jobs would be sent to a cluster that others use"
    if not all(shutil.which(tool) for tool in ("sbatch", "sacct", "sinfo")):
        return "SLURM is not installed"
    if not find_spec("snakemake_executor_plugin_slurm"):
        return "Snakemake's plugin for SLURM is not installed (the extra slurm)"
    if not answer("sinfo", "-h"):
        return "slurmctld is not up"
    if not answer("sacctmgr", "-n", "list", "cluster"):
        return "SLURM has no accounting"
    return "" if partition() else "no partition has cards and two CPUs a node"


REASON = missing()
pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(REASON), reason=REASON)]

SUBMITTED = re.compile(r"SLURM jobid (\d+) \(log: \S*/rule_train/\S*_(\S+)_775/\d+\.log\)")
FAIL_ONCE = """
import sys
from pathlib import Path
if "/prompt/" in sys.argv[4] and not Path("failed").exists():
    Path("failed").touch()
    sys.exit("made to fail once")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with made-up data, whose training jobs fit a small node even when asked again."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    profile = folder / "workflow/profiles/slurm/profile.yaml"
    with (
        edited(folder / "src/tailprompt/plan/jobs/runs.py", "int(12000 +", "int(2000 +"),
        edited(profile, "slurm_partition: gpu", f"slurm_partition: {partition()}"),
    ):
        yield folder


def told(scale, *options, **settings):
    """Options of Snakemake: the shipped profile, one seed, and a card a run.

    The cards may be made up, so runs ask for one and are computed on the CPU.
    """
    own = ("--jobs", "4", "--set-resources", "train:gpu=1", *options)
    return ("runs", "--profile", "workflow/profiles/slurm", *own, *TINY, *config(scale, **settings))


def config(scale, **settings):
    """Options of Snakemake: the scale, with one seed and these settings."""
    protocol = f"protocols={{glee: {{seeds: [775], settings: {settings}}}}}"
    return ("--config", f"scale={scale}", "device=cpu", "threads=2", protocol)


def test_training_jobs_ask_for_a_card_and_for_more_when_asked_again(project):
    train = project / "src/tailprompt/train.py"
    with edited(train, 'if __name__ == "__main__":', f'{FAIL_ONCE}\nif __name__ == "__main__":'):
        done = snakemake(project, *told("cluster", "--slurm-init-seconds-before-status-checks", "2"))
    assert done.returncode == 0, done.stdout
    methods = dict(SUBMITTED.findall(done.stdout))
    fields = "JobID,State,ReqCPUS,ReqMem,TimelimitRaw,ReqTRES"
    rows = [line.split("|") for line in answer("sacct", "-XPnj", ",".join(methods), "-o", fields)]
    assert all("gres/gpu=1" in row[-1].split(",") for row in rows)
    assert sorted((methods[number], *about) for number, *about, _ in rows) == [
        ("cls-tanh", "COMPLETED", "2", "2000M", "240"),
        ("prompt", "COMPLETED", "2", "4000M", "480"),
        ("prompt", "FAILED", "2", "2000M", "240"),
    ]
    assert len(list(project.glob("results/cluster/runs/**/predictions.parquet"))) == 2


def test_an_interrupt_empties_the_queue(project):
    # At the profile's own pace: an interrupt in the middle of a status query would cancel nothing.
    command = [sys.executable, "-m", "snakemake", *told("cut", epochs=100000, patience=100000)]
    path, numbers = project / "cut.log", []

    def queued(state):
        """The run's jobs in the queue that are in one of these states, once both were submitted."""
        numbers[:] = dict(SUBMITTED.findall(path.read_text()))
        return len(numbers) == 2 and answer("squeue", "-h", "-t", state, "-j", ",".join(numbers))

    with open(path, "w") as log:
        driver = subprocess.Popen(
            command,
            cwd=project,
            stdout=log,
            stderr=log,
            # In the background of a shell that is not interactive, SIGINT would be ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait(lambda: queued("running"))
        driver.send_signal(signal.SIGINT)
        assert driver.wait(timeout=120)
        wait(lambda: not queued("pending,running,completing"))
    finally:
        driver.kill()
        driver.wait()
        answer("scancel", *numbers)
    states = answer("sacct", "-XPnj", ",".join(numbers), "-o", "State")
    assert [state.split()[0] for state in states] == ["CANCELLED"] * 2
    assert not list(project.glob(".snakemake/locks/*"))


COUNTED = """
    with open("trained", "a") as file:
        print(point.path, file=file)
    torch.manual_seed(point.seed)
"""


def test_a_killed_driver_with_queued_jobs_is_started_again_and_nothing_is_trained_twice(project):
    options = told("twice", "--slurm-init-seconds-before-status-checks", "2", epochs=60, patience=100)
    path, begun = project / "twice.log", project / "trained"
    with edited(project / "src/tailprompt/train.py", "\n    torch.manual_seed(point.seed)\n", COUNTED):
        with open(path, "w") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", "snakemake", *options], cwd=project, stdout=log, stderr=log
            )
        wait(lambda: len(SUBMITTED.findall(path.read_text())) == 2, seconds=180)
        driver.kill()
        driver.wait()
        assert snakemake(project, "--unlock", *options).returncode == 0
        done = snakemake(project, *options)
    assert done.returncode == 0, done.stdout
    assert sorted(begun.read_text().split()) == sorted(
        f"glee/tiny/toy/{method}/775" for method in ("cls-tanh", "prompt")
    )


def test_a_job_at_its_time_limit_saves_its_state_and_says_so(project):
    more = ("--retries", "0", "--set-resources", "train:runtime=1", "train:gpu=1")
    pace = ("--slurm-init-seconds-before-status-checks", "5")
    done = snakemake(project, *told("late", *pace, epochs=10**7, patience=10**7), *more)
    assert done.returncode
    assert len(list(project.glob("results/late/runs/**/state.pt"))) == 2
    last = done.stdout.rstrip().splitlines()[-1]
    assert "stopped by SIGTERM after step " in last and "goes on from there" in last, done.stdout


@contextmanager
def driver(project, log, *options):
    """Snakemake in the background."""
    with open(log, "w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *options], cwd=project, stdout=file, stderr=file
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        answer("scancel", *dict(SUBMITTED.findall(log.read_text())))


AT_ONCE = ("--slurm-init-seconds-before-status-checks", "2", "--set-threads", "train=1")
SHORT = {"epochs": 20, "patience": 100}  # 60 steps
PAUSED = """
                progress.step += 1
                with open("steps", "a") as file:
                    print(label, progress.step, sep="@", file=file)
                while progress.step == 20 and not signals and not Path("go").is_file():
                    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def counted(project):
    """The project, where training writes down each step, and waits after the 20th for a signal or `go`."""
    with edited(
        project / "src/tailprompt/training/loop.py", "\n                progress.step += 1\n", PAUSED
    ):
        yield project


@pytest.fixture(scope="module")
def undisturbed(counted):
    """The runs of `counted` without SLURM, and nothing in their way."""
    go = counted / "go"
    go.touch()
    options = ("--cores", "2", "--set-threads", "train=1", *TINY, *config("undisturbed", **SHORT))
    done = snakemake(counted, "runs", *options)
    assert done.returncode == 0, done.stdout
    assert taken(counted) == upto(60)
    go.unlink()
    return numbers(counted, "undisturbed")


def taken(project):
    """The steps that were taken, each as often as it was."""
    steps = project / "steps"
    return sorted(steps.read_text().splitlines()) if steps.is_file() else []


def upto(last):
    """The steps of both runs up to the last, each once."""
    return sorted(
        f"toy {method} 775@{step}" for method in ("cls-tanh", "prompt") for step in range(1, last + 1)
    )


def numbers(project, scale):
    """The bytes of what both runs of a scale learned and predict."""
    runs = project / "results" / scale / "runs"
    return {
        str(file.relative_to(runs)): file.read_bytes()
        for name in ("weights.safetensors", "predictions.parquet")
        for file in runs.glob(f"**/775/{name}")
    }


def check_went_on(project, scale, options, undisturbed):
    """The next driver ends the runs: each step was taken once, and the numbers are those of `undisturbed`."""
    assert taken(project) == upto(20)
    assert len(list(project.glob(f"results/{scale}/runs/**/state.pt"))) == 2
    done = snakemake(project, *options)
    assert done.returncode == 0, done.stdout
    assert taken(project) == upto(60)
    assert numbers(project, scale) == undisturbed
    assert not list(project.glob(f"results/{scale}/runs/**/state.pt"))


def test_a_cancelled_job_ends_the_wait_and_the_next_driver_goes_on_there(counted, undisturbed):
    (counted / "steps").unlink()
    options = told("cancelled", *AT_ONCE, "--retries", "0", **SHORT)
    log = counted / "cancelled.log"
    with driver(counted, log, *options) as process:
        wait(lambda: taken(counted) == upto(20), seconds=240)
        answer("scancel", *dict(SUBMITTED.findall(log.read_text())))
        assert process.wait(timeout=120) == 1, log.read_text()
    last = log.read_text().rstrip().splitlines()[-1]
    assert "stopped by SIGTERM after step 20 " in last and "goes on from there" in last, log.read_text()
    check_went_on(counted, "cancelled", options, undisturbed)


def test_runs_whose_node_was_lost_say_so_and_the_next_driver_goes_on_there(counted, undisturbed):
    """What is submitted again leaves out the lost node, and here there is no other."""
    (counted / "steps").unlink()
    log, options = counted / "lost.log", told("lost", *AT_ONCE, **SHORT)
    [node] = set(answer("sinfo", "-h", "-N", "-o", "%N"))
    with driver(counted, log, *options) as process:
        wait(lambda: taken(counted) == upto(20), seconds=240)
        try:
            answer("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
            assert process.wait(timeout=240) == 1, log.read_text()
            jobs = ",".join(dict(SUBMITTED.findall(log.read_text())))
            assert not answer("squeue", "-h", "-j", jobs), "SLURM itself tries again what Snakemake gave up"
        finally:
            answer("scontrol", "update", f"nodename={node}", "state=resume")
    last = log.read_text().rstrip().splitlines()[-1]
    assert "stopped by SIGTERM after step 20 " in last or "its node was lost" in last, log.read_text()
    assert "; sbatch refused its next attempt (" in last, log.read_text()
    check_went_on(counted, "lost", options, undisturbed)


def wait(look, seconds=60):
    """What `look` finds, once it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "nothing found in time"
        time.sleep(0.5)
    return found
