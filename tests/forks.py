"""Snakemake in a fork of a process that has imported it: a plan takes half the time."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from tempfile import NamedTemporaryFile

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["snakemake.cli", "snakemake.executors.dryrun", "yaml", "jsonschema", "pandas"])


def said(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit status of Snakemake there, and what it prints."""
    with NamedTemporaryFile("r") as screen:
        child = SERVER.Process(target=run, args=(folder, arguments, screen.name))
        child.start()
        child.join()
        return child.exitcode, screen.read()


def run(folder: Path, arguments: tuple[str, ...], screen: str) -> None:
    """Be Snakemake."""
    from snakemake.cli import main

    os.chdir(folder)
    written = os.open(screen, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(written, stream)
    main(list(arguments))
