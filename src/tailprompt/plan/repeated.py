"""What Snakemake would find out again and again for a job, found out once. It checks as much as before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from snakemake.common import get_function_params, overwrite_function_params


def keep_parameters(function: Callable) -> None:
    """Let Snakemake inspect the parameters of a function once, and not at each call."""
    overwrite_function_params(function, get_function_params(function))


def keep_commands(job: type) -> None:
    """Let Snakemake put the command of a job together once, in a dry run, where it stays the same.

    It does so three times to print it. job: Snakemake's class.
    """
    job.shellcmd = property(cache(job.shellcmd.fget))
