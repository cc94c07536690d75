"""The command `tailprompt`: forecast or explain a scale, fetch its data, and run any stage by name."""

from __future__ import annotations

import argparse
import runpy
import signal
import subprocess
import sys
from pathlib import Path

from tailprompt.errors import BadInput, known, stage

USAGE = """usage: tailprompt COMMAND ...   (in the project's folder; tailprompt COMMAND --help says more)

  plan     [--configfile FILE]   show the runs, downloads and hours of a scale before it starts
  explain  [RUN]                 show where each setting of a run comes from; without RUN list every setting
  fetch    [--configfile FILE]   download all data and weights of a scale, for machines without a network
  predict  RUN FILE              predict the classes of new texts or images with a finished run
  export   RUN FOLDER            write the soft prompt of a run as a peft adapter

Stages, as the workflow calls them:
  decode | annotate | prepare | backbones     prepare data and backbones
  train | score | tabulate | draw             train and score runs, make tables and figures
  vocabulary | pack | pretrain | card         pre-train a backbone

Without --configfile the scale is config/paper.yaml. To run everything: snakemake --cores 2 --configfile FILE
"""
CONFIGFILE = "YAML file of the scale (default: config/paper.yaml); repeat the option to combine several"
STAGES = (
    "decode",
    "annotate",
    "prepare",
    "backbones",
    "vocabulary",
    "pack",
    "pretrain",
    "card",
    "train",
    "score",
    "tabulate",
    "draw",
    "predict",
    "export",
)


def main() -> None:
    """Run the command that the first argument names."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `tailprompt plan | head` ends quietly
    stage(lambda: dispatch(sys.argv[1:]))


def dispatch(arguments: list[str]) -> None:
    """Run `arguments`. Each stage is a module, which is imported only when it is called."""
    command = arguments[0] if arguments else "--help"
    if command in ("-h", "--help"):
        print(USAGE, end="")
    elif command in STAGES:
        sys.argv = [f"tailprompt {command}", *arguments[1:]]
        runpy.run_module(f"tailprompt.{command}", run_name="__main__")
    elif command in COMMANDS:
        COMMANDS[command](arguments[1:])
    else:
        raise BadInput(f"unknown command '{command}'; known: {known([*COMMANDS, *STAGES])}")


def configfiles(command: str, arguments: list[str]) -> list[str]:
    """The --configfile values of a command line; raises BadInput outside the project's folder."""
    parser = argparse.ArgumentParser(prog=f"tailprompt {command}", description=COMMANDS[command].__doc__)
    parser.add_argument("--configfile", action="append", default=[], metavar="FILE", help=CONFIGFILE)
    files = parser.parse_args(arguments).configfile
    if not Path("Snakefile").is_file():
        raise BadInput(
            f"there is no Snakefile in {Path.cwd()}; run tailprompt {command} in the project's folder"
        )
    return files


def plan(arguments: list[str]) -> None:
    """Print what a scale will run and download, what is done already, and how long the rest takes."""
    from tailprompt.plan.blocks import all_points
    from tailprompt.plan.config import load
    from tailprompt.plan.forecast import forecast
    from tailprompt.plan.runnable import check_files, check_settings

    whole = load(configfiles("plan", arguments))
    check_files(whole)
    check_settings(whole, all_points(whole))
    print(forecast(whole))


def explain(arguments: list[str]) -> None:
    """Print each setting of a run: its value, the layer and file that set it, and what reads it."""
    from tailprompt.plan import config
    from tailprompt.plan.explain import every_setting, explain, point_at

    run = arguments.pop(0) if arguments and not arguments[0].startswith("-") else None
    files = configfiles("explain", arguments)
    if run is None:
        print(every_setting())
        return
    scale, point = point_at(run)
    files = files or [str(file) for file in [Path(f"config/{scale}.yaml")] if scale and file.is_file()]
    print(explain(config.load(files), config.layers_of(files), point))


def fetch(arguments: list[str]) -> None:
    """Download and prepare all data and weights of a scale, so that jobs need no network."""
    from tailprompt.plan import config

    files = configfiles("fetch", arguments)
    config.load(files)  # reports a fault in one sentence, where Snakemake would print a traceback
    options = ["--configfile", *files] if files else []
    command = [sys.executable, "-m", "snakemake", "fetch", "--profile", "workflow/profiles/local", *options]
    raise SystemExit(subprocess.run(command).returncode)


COMMANDS = {"plan": plan, "explain": explain, "fetch": fetch}

if __name__ == "__main__":
    main()
