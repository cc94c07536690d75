"""What Snakemake tells a job on a cluster, what SLURM says of it, and SIGTERM are taken as meant."""

import asyncio
from signal import SIGTERM
from threading import Lock, Semaphore
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from tailprompt.plan.mended import end_at_any_moment, mend_states, rename

TEXTS, CUT = "glee/bert/sections/cls-tanh/1", "glee/bert/sections@train=1000,dev=300,test=9/prompt/775"
TWICE = "a/b/d@train=10,dev=2/m@dev=1,scale=2,head.scale=3/0"  # a change is called as a wildcard is
NAMES = {"name": [TEXTS], "cut": [CUT], "same key twice": [TWICE], "群组": ["a/b/中文@k=1,j=-2.5e+3/m/1"]}
NAMES |= {"a quote inside": ['5"']}  # as a workflow may have that takes this one as a module
NAMES |= {"a group of jobs": [CUT, TEXTS, TWICE]}


@pytest.mark.parametrize("points", NAMES.values(), ids=NAMES)
def test_a_job_on_a_cluster_is_the_one_that_was_submitted(points):
    submitted = [TargetSpec("train", {"scale": "demo", "point": point}) for point in points]
    entries = encode_target_jobs_cli_args(submitted)
    jobs = parse_target_jobs_cli_args(entries)
    rename(
        jobs, ["snakemake", "--snakefile", "Snakefile", "--target-jobs", *entries, "--allowed-rules", "train"]
    )
    assert jobs == submitted


def test_a_job_that_was_cancelled_is_known_as_that_and_other_states_stay():
    said = {"1": "CANCELLED by 1000", "2": "RUNNING", "3": "NODE_FAIL", "4": ""}

    async def query(command, logger):
        return (said, 0.1) if command else (None, None)

    plugin = SimpleNamespace(query_job_status=query)
    mend_states(plugin)
    states = asyncio.run(plugin.query_job_status("sacct", logger=None))
    assert states == ({"1": "CANCELLED", "2": "RUNNING", "3": "NODE_FAIL"}, 0.1)
    assert asyncio.run(plugin.query_job_status("", None)) == (None, None)


def test_without_the_plugin_there_is_nothing_to_mend():
    mend_states(None)
    mend_states(SimpleNamespace())  # of a version that works in another way


def test_sigterm_ends_snakemake_while_it_selects_jobs():
    class Scheduler(JobScheduler):
        def __init__(self):
            self._lock, self._open_jobs, self._user_kill = Lock(), Semaphore(0), None

    end_at_any_moment(Scheduler)
    scheduler = Scheduler()
    with scheduler._lock:  # as while it selects
        scheduler.exit_gracefully(SIGTERM, None)
        assert scheduler._user_kill is None
    assert scheduler._open_jobs.acquire(timeout=60)
    assert scheduler._user_kill == "graceful"
