"""What Snakemake tells a job on a cluster, what SLURM says of it, and SIGTERM are taken as meant."""

import asyncio
import time
from signal import SIGTERM
from threading import Lock, Semaphore
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from tailprompt.plan.mended import end_at_any_moment, mend_states, rename, select_once_a_second

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
    class Ending(JobScheduler):
        def __init__(self):
            self._lock, self._open_jobs, self._user_kill = Lock(), Semaphore(0), None

    end_at_any_moment(Ending)
    scheduler = Ending()
    with scheduler._lock:  # as while it selects
        scheduler.exit_gracefully(SIGTERM, None)
        assert scheduler._user_kill is None
    assert scheduler._open_jobs.acquire(timeout=60)
    assert scheduler._user_kill == "graceful"


class Scheduler:
    """As Snakemake's, of which it has what is mended."""

    def __init__(self, cores):
        self.resources, self.looks, self._open_jobs = {"_cores": cores}, 0, Semaphore(0)

    def job_selector(self, jobs):
        self.looks += 1
        return list(jobs)


def test_jobs_are_looked_for_where_a_core_is_free_and_one_look_waits_at_a_time():
    class Mended(Scheduler):
        pass

    select_once_a_second(Mended)
    busy, free = Mended(0), Mended(1)
    assert busy.job_selector({1}) == [] and not busy.looks
    assert free.job_selector({1}) == [1] and free.looks == 1
    for _ in range(2):  # the next one waits again, so that none is forgotten
        for _ in range(20):
            free._schedule_reevalutation(0.2)
        assert free._open_jobs.acquire(timeout=60)
        time.sleep(0.4)
        assert not free._open_jobs.acquire(blocking=False)


def test_what_is_mended_is_in_snakemake():
    """Of another name it would be mended in vain."""
    assert callable(JobScheduler.job_selector) and callable(JobScheduler._schedule_reevalutation)
