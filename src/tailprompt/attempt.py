"""`tailprompt try`: look at a file of texts or a folder of images, run a first round, and write its page.

The screen has what was taken, how far the round is, and the page; all that Snakemake says is in a log.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tailprompt import answer
from tailprompt.data.looked import look
from tailprompt.data.readers import FORM
from tailprompt.machine.cpus import CPUS
from tailprompt.plan import first_hours, first_open, first_round, first_rows
from tailprompt.plan.config import load
from tailprompt.plan.status import FAILED, status
from tailprompt.report.page.write import on_screen

STATED = ("encoding", *FORM)  # what may be said of how a table is read, as in a data set's row
PAUSE = 30.0  # seconds between two lines on the screen


def attempt(options: argparse.Namespace) -> None:
    """All of it. options: path, text, label, STATED, configfile, anew and look."""
    stated = {key: told for key in STATED if (told := getattr(options, key, None)) is not None}
    looked = look(options.path, text=options.text, label=options.label, stated=stated)
    print("\n".join([*looked.said, *first_round.unread(looked)]))
    files = options.configfile or [f"config/{first_round.slug(options.path)}.yaml"]
    asked = {key: name for key in ("text", "label") if (name := getattr(options, key))}
    if options.look:
        print("\n".join(only_looked(looked, files, asked=asked, anew=options.anew)))
        return
    print(first_round.settle(looked, Path(files[-1]), anew=options.anew, asked=asked))
    scale = load(files)
    print("\n".join(first_hours.told(scale)), flush=True)
    code = ran(scale, files)
    text, page = answer.write(scale)
    print(f"\n{on_screen(text)}\npage: {page}", flush=True)
    if code:
        lacks = first_open.told(scale, first_open.states(scale))
        print("\n".join(["", "Not all of the round has ended.", *lacks]), file=sys.stderr)
        raise SystemExit(code)


def only_looked(looked, files: list[str], *, asked: dict[str, str], anew: bool) -> list[str]:
    """What --look says: the configuration and the times of a round; nothing is written."""
    file, hint = Path(files[-1]), "--look writes nothing and runs nothing"
    if file.is_file() and not anew:
        said = first_round.settle(looked, file, anew=False, asked=asked)
        return [said, *first_hours.told(load(files)), hint]
    with TemporaryDirectory() as folder:
        first_round.settle(looked, Path(folder, file.name), anew=True)
        scale = load([*files[:-1], str(Path(folder, file.name))])
    return [*first_rows.taken(looked), f"config: {file} would be written", *first_hours.told(scale), hint]


def ran(scale: dict, files: list[str]) -> int:
    """Run the round, and say now and then how far it is; the exit status of Snakemake."""
    command = [sys.executable, "-m", "snakemake", "--cores", str(CPUS), "--quiet", "rules", "--keep-going"]
    log = Path("results", scale["scale"], "logs/try.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"log: {log}", flush=True)
    with (
        open(log, "wb") as out,
        subprocess.Popen([*command, "--configfile", *files], stdout=out, stderr=out) as process,
    ):
        try:
            for said in progress(process, scale):
                print(said, flush=True)
        except KeyboardInterrupt:
            process.wait()  # it ends its jobs, which keep what they have
            raise
    if process.returncode and status(scale)[1] != FAILED:  # it did not begin
        print(log.read_text("utf-8", "replace")[-2000:], file=sys.stderr)
        raise SystemExit(process.returncode)
    return process.returncode


def progress(process: subprocess.Popen, scale: dict) -> Iterator[str]:
    """How many runs are done, at most every PAUSE seconds, until the process ends."""
    said = ""
    while True:
        try:
            process.wait(PAUSE)
            return
        except subprocess.TimeoutExpired:
            if (now := first_hours.left(scale)) != said:
                said = now
                yield said
