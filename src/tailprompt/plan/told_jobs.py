"""Which job a process on a cluster is told to do, where a wildcard has commas, as the names of cuts do.

Snakemake 9 quotes such a value when it submits the job, and then splits it at its commas all the same
(snakemake/snakemake#2366). Here its command line is read as it was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

OPTION = "--target-jobs"
WILDCARD = re.compile(r'(\w+)=(?:"([^"]*)"|([^",]*))(?:,|$)')  # a value with a comma is in quotes


def told_jobs(arguments: list[str]) -> list[dict[str, str]]:
    """The wildcards of each job in Snakemake's command line."""
    after = arguments[arguments.index(OPTION) + 1 :] if OPTION in arguments else []
    return [wildcards_of(entry) for entry in takewhile(lambda each: not each.startswith("-"), after)]


def wildcards_of(entry: str) -> dict[str, str]:
    """The wildcards of one job, `RULE:NAME=VALUE,NAME="VALUE,WITH,COMMAS"`."""
    return {name: quoted or plain for name, quoted, plain in WILDCARD.findall(entry.partition(":")[2])}


def mend(jobs: Iterable, arguments: list[str]) -> None:
    """Give Snakemake's jobs (`TargetSpec`), in the order of the command line, the wildcards that it names."""
    for job, wildcards in zip(jobs, told_jobs(arguments), strict=False):
        job.wildcards_dict.clear()
        job.wildcards_dict.update(wildcards)
