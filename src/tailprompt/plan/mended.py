"""Faults of Snakemake, mended from outside until they are mended there."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from itertools import takewhile
from types import ModuleType

OPTION, QUERY = "--target-jobs", "query_job_status"
WILDCARD = re.compile(r'(\w+)=(?:"([^"]*)"|([^,]*))(?:,|$)')  # a value with a comma is in quotes


def mend_jobs(dag: type, arguments: list[str]) -> None:
    """Let the process of a job on a cluster build its DAG for the job that its command line names.

    Snakemake 9 quotes a value with a comma, as names of cuts have, when it submits the job, and splits it
    all the same when the job begins (snakemake/snakemake#2366). dag: Snakemake's class.
    """
    begin = dag.init

    @wraps(begin)
    async def init(self, *others, **options):
        rename(self.workflow.dag_settings.target_jobs, arguments)
        return await begin(self, *others, **options)

    if OPTION in arguments:
        dag.init = init


def rename(jobs: Iterable, arguments: list[str]) -> None:
    """Give jobs (`TargetSpec`) the wildcards that the command line names."""
    for job, wildcards in zip(jobs, named_jobs(arguments), strict=True):
        job.wildcards_dict.clear()
        job.wildcards_dict.update(wildcards)


def named_jobs(arguments: list[str]) -> list[dict[str, str]]:
    """The wildcards of each job in Snakemake's command line, in which it is `RULE:NAME=VALUE,NAME="A,B"`."""
    after = arguments[arguments.index(OPTION) + 1 :]
    entries = takewhile(lambda each: not each.startswith("-"), after)
    return [
        {name: quoted or plain for name, quoted, plain in WILDCARD.findall(entry.partition(":")[2])}
        for entry in entries
    ]


def mend_states(plugin: ModuleType | None) -> None:
    """Let the plugin for SLURM, if it is installed, know a job that was cancelled.

    sacct says `CANCELLED by 1000`, which version 2.8 takes for a running job, and it waits for ever.
    """
    if hasattr(plugin, QUERY):
        setattr(plugin, QUERY, in_a_word(getattr(plugin, QUERY)))


def in_a_word(query: Callable[..., Awaitable[tuple]]) -> Callable[..., Awaitable[tuple]]:
    """A query for the states of jobs, (job -> state, seconds), that gives the first word of each state."""

    @wraps(query)
    async def states(*arguments, **options):
        found, seconds = await query(*arguments, **options)
        return found and {job: state.split()[0] for job, state in found.items() if state.split()}, seconds

    return states


def remake_incomplete(dag: type) -> None:
    """Let Snakemake make anew what a killed driver left half done, without a flag. dag: its class."""
    check = dag.check_incomplete

    @wraps(check)
    async def check_incomplete(self):
        self.workflow.dag_settings.force_incomplete = True
        await check(self)

    dag.check_incomplete = check_incomplete


def end_at_any_moment(scheduler: type) -> None:
    """Let SIGTERM end Snakemake while it selects jobs, too. scheduler: its class.

    Its handler takes a lock that the code which it interrupts may hold, as it does for seconds where many
    jobs are ready; then Snakemake never ended. In a thread of its own the handler waits for the lock.
    """
    end = scheduler.exit_gracefully

    @wraps(end)
    def exit_gracefully(self, *arguments):
        threading.Thread(target=end, args=(self, *arguments), daemon=True).start()

    scheduler.exit_gracefully = exit_gracefully


def select_once_a_second(scheduler: type) -> None:
    """Let Snakemake look for jobs to begin where a core is free, and when it waits, once a second.

    Where it limits the rate of jobs, each look asks for another in a second, so that the looks of a second
    become as many as jobs have ended; and each takes the size of each input of each job that is ready.
    scheduler: its class.
    """
    select = scheduler.job_selector

    @wraps(select)
    def job_selector(self, jobs):
        return select(self, jobs) if self.resources["_cores"] else []

    def look_again(self, delay):
        def look():
            waiting.discard(delay)
            self._open_jobs.release()

        waiting = vars(self).setdefault("waiting", set())
        if delay not in waiting:
            waiting.add(delay)
            timer = threading.Timer(delay, look)
            timer.daemon = True  # or the command would end a second after its last job
            timer.start()

    scheduler.job_selector, scheduler._schedule_reevalutation = job_selector, look_again
