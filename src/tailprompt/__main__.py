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
  bundle   SCALE FILE            write the results of a scale into one file, without weights
  unbundle FILE ...              add bundled results to those here, for tables and figures

Stages, as the workflow calls them:
  decode | annotate | prepare | backbones     prepare data and backbones
  train | score | tabulate | draw             train runs, score them for people, make tables and figures
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
    "bundle",
    "unbundle",
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


def options_of(command: str, arguments: list[str], **words: str) -> argparse.Namespace:
    """The options of a command line, in a folder that is the project's. words: others, that may be absent."""
    parser = argparse.ArgumentParser(prog=f"tailprompt {command}", description=COMMANDS[command].__doc__)
    parser.add_argument(
        "--configfile", action="append", default=[], metavar="FILE", help="the scale; may be repeated"
    )
    for word, help in words.items():
        parser.add_argument(word, nargs="?", metavar=word.upper(), help=help)
    options = parser.parse_args(arguments)
    if not Path("Snakefile").is_file():
        raise BadInput(
            f"there is no Snakefile in {Path.cwd()}; run tailprompt {command} in the project's folder"
        )
    return options


def plan(arguments: list[str]) -> None:
    """Print what a scale will run and download, what is done already, and how long the rest takes."""
    from tailprompt.plan.blocks import all_points, shown
    from tailprompt.plan.config import load
    from tailprompt.plan.forecast import forecast
    from tailprompt.plan.runnable import check_files, check_settings
    from tailprompt.plan.suits import check_norms, check_scores

    whole = load(options_of("plan", arguments).configfile)
    check_files(whole)
    check_scores(whole, shown(whole))
    check_norms(whole, shown(whole))
    check_settings(whole, all_points(whole))
    print(forecast(whole))


def explain(arguments: list[str]) -> None:
    """Print each setting of a run: its value, the layer and file that set it, and what reads it."""
    from tailprompt.plan import config
    from tailprompt.plan.explain import every_setting, explain, point_at
    from tailprompt.plan.runnable import check_settings

    options = options_of("explain", arguments, run="results/<scale>/runs/<point>, or its <point> alone")
    if options.run is None:
        print(every_setting())
        return
    scale, point = point_at(options.run)
    files = options.configfile or ([f"config/{scale}.yaml"] if scale else [])
    if not options.configfile and scale and not Path(files[0]).is_file():
        raise BadInput(f"there is no {files[0]}; name the files of scale {scale} with --configfile")
    whole = config.load(files)
    if scale not in (None, whole["scale"]):
        raise BadInput(f"{options.run} is of scale {scale}, and {' '.join(files)} of scale {whole['scale']}")
    check_settings(whole, [point])
    print(explain(whole, config.layers_of(files), point))


def fetch(arguments: list[str]) -> None:
    """Download and prepare all data and weights of a scale, so that jobs need no network."""
    from tailprompt.plan import config

    files = options_of("fetch", arguments).configfile
    config.load(files)  # its sentence, where Snakemake's own reading of them would end in a traceback
    options = ["--configfile", *files] if files else []
    command = [sys.executable, "-m", "snakemake", "fetch", "--profile", "workflow/profiles/local", *options]
    raise SystemExit(subprocess.run(command).returncode)


COMMANDS = {"plan": plan, "explain": explain, "fetch": fetch}

if __name__ == "__main__":
    main()
