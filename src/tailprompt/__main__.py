"""The command `tailprompt`: forecast or explain a scale, fetch its data, and run any stage by name."""

from __future__ import annotations

import argparse
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

from tailprompt.errors import BadInput, counted, known, stage

USAGE = """usage: tailprompt COMMAND ...   (in the project's folder; tailprompt COMMAND --help says more)

  try      FILE                  say which method to take on your texts or images: a first round, and a page
  answer   --configfile FILE     write that page anew, after snakemake with that file
  plan     [--configfile FILE]   show the runs, downloads and hours of a scale before it starts
  status   [--configfile FILE]   show which runs are done, running, queued, failed, stale or damaged; --watch
  retrain  NAME ...              delete the runs of data sets or methods, so that they are trained again
  explain  [RUN]                 show where each setting of a run comes from; without RUN list every setting
  fetch    [--configfile FILE]   download all data and weights of a scale, for machines without a network
  predict  RUN FILE              predict the classes of new texts or images with a finished run
  audit    RUN ...               list the rows whose label is most doubtful, class by class, in a CSV file
  export   RUN FOLDER            write the prompt, prefix or LoRA of a run as a peft adapter
  bundle   SCALE FILE            write the results of a scale into one file, without weights
  unbundle FILE ...              add bundled results to those here, for tables and figures

Stages, as the workflow calls them:
  decode | annotate | prepare | backbones     prepare data and backbones
  train | score | tabulate | draw             train runs, score them for people, make tables and figures
  choices                                     write what a search chose as a file of the configuration
  overview                                    write the first page of the report
  collect | vocabulary | pack | pretrain | card   collect text and pre-train a backbone

Without --configfile the scale is config/paper.yaml; of several files, --configfile A B, a later one wins.
plan and status take --config KEY=VALUE too, as snakemake does.
Name runs and other files before it, as for snakemake.

To run everything: snakemake --cores 2 --configfile FILE
"""
STAGES = (
    "decode",
    "annotate",
    "prepare",
    "backbones",
    "collect",
    "vocabulary",
    "pack",
    "pretrain",
    "card",
    "train",
    "score",
    "tabulate",
    "choices",
    "draw",
    "overview",
    "predict",
    "audit",
    "answer",
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


def options_of(command: str, arguments: list[str], *more: tuple[str, dict]) -> argparse.Namespace:
    """The options of a command line, in a folder that is the project's. more: others, for argparse."""
    from tailprompt.plan import config

    parser = argparse.ArgumentParser(prog=f"tailprompt {command}", description=COMMANDS[command].__doc__)
    parser.add_argument(*config.OPTION, default=[], **config.FILES)
    for name, about in more:
        parser.add_argument(*name.split(), **about)
    options = parser.parse_args(arguments)
    if not Path("Snakefile").is_file():
        raise BadInput(
            f"there is no Snakefile in {Path.cwd()}; run tailprompt {command} in the project's folder"
        )
    return options


def configured(
    command: str, arguments: list[str], *more: tuple[str, dict]
) -> tuple[dict, argparse.Namespace]:
    """The configuration that a command line names by --configfile and --config, and its options."""
    from tailprompt.plan import config

    options = options_of(command, arguments, ("--config -C", config.VALUES), *more)
    return config.load(
        options.configfile, config.values_of(options.config) if options.config else {}
    ), options


def plan(arguments: list[str]) -> None:
    """Print what a scale will run and download, what is done already, and how long the rest takes."""
    from tailprompt.plan.blocks import all_points, shown
    from tailprompt.plan.forecast import forecast
    from tailprompt.plan.runnable import check_files, check_settings
    from tailprompt.plan.searches import refused
    from tailprompt.plan.suits import check_norms, check_scores

    whole, options = configured("plan", arguments)
    check_files(whole)
    check_scores(whole, shown(whole))
    check_norms(whole, shown(whole))
    check_settings(whole, all_points(whole))
    print("\n".join([forecast(whole), *refused(whole, options.configfile)]))


def status(arguments: list[str]) -> None:
    """Print where the runs, tables and figures of a scale stand, with the reason where a job failed.

    Exit status: 0 if all is made (under train: false, all that can be), 1 if a job failed, 3 if something is
    left.
    """
    from tailprompt.plan.blocks import all_points
    from tailprompt.plan.runnable import check_settings
    from tailprompt.plan.status import DONE
    from tailprompt.plan.status import status as told

    help = "print it again every so many seconds until all is made (default: 10)"
    watch = {"nargs": "?", "const": 10.0, "type": float, "metavar": "SECONDS", "help": help}
    whole, options = configured("status", arguments, ("--watch", watch))
    check_settings(whole, all_points(whole))
    while True:
        text, code = told(whole, files=options.configfile)
        print("\033[2J\033[H" * bool(options.watch and sys.stdout.isatty()) + text, flush=True)
        if not options.watch or code == DONE:
            raise SystemExit(code)
        time.sleep(options.watch)


def retrain(arguments: list[str]) -> None:
    """Delete the folders of runs, after saying which, so that snakemake trains them again."""
    from tailprompt.plan import retrain as again
    from tailprompt.plan.config import load

    name = {"nargs": "+", "metavar": "NAME", "help": "a data set, a method or a run, with * for several"}
    yes = {"action": "store_true", "help": "delete without asking"}
    options = options_of("retrain", arguments, ("names", name), ("--yes", yes))
    whole = load(options.configfile)
    points = again.chosen(whole, options.names)
    places = again.folders(whole, points)
    if not places:
        print(f"on disk is none of {counted(len(points), 'run')}; snakemake trains what is not there")
        return
    print(again.told(whole, points, places), flush=True)
    if not options.yes and not sys.stdin.isatty():
        raise BadInput("nothing was deleted: say --yes where there is no terminal to ask")
    if not options.yes and input("delete? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing was deleted")
        return
    again.delete(places)
    print("deleted; snakemake trains them at its next start")


def explain(arguments: list[str]) -> None:
    """Print each setting of a run: its value, the layer and file that set it, and what reads it."""
    from tailprompt.plan import config
    from tailprompt.plan.explain import every_setting, explain, point_at
    from tailprompt.plan.runnable import check_settings

    place = {"nargs": "?", "metavar": "RUN", "help": "results/<scale>/runs/<point>, or its <point> alone"}
    options = options_of("explain", arguments, ("run", place))
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


def try_on(arguments: list[str]) -> None:
    """Look at a file of texts or a folder of images, run a first round of methods, and say which to take.

    Writes config/my-<name>.yaml, which is used as it is if it is there, and results/my-<name>/answer.html.
    """
    from tailprompt.attempt import attempt
    from tailprompt.data.stated import CODE, FORMS

    column = {"metavar": "COLUMN", "help": "its name, where the guess is wrong"}
    path = {"type": Path, "metavar": "FILE", "help": "CSV, TSV, JSON Lines, Parquet; a folder of images"}
    anew = {"action": "store_true", "help": "write the configuration anew, whatever it says"}
    only = {"action": "store_true", "help": "say what would be taken and how long it takes; write nothing"}
    more = ("path", path), ("--text", column), ("--label", column), ("--anew", anew), ("--look", only)
    more += tuple((f"--{key}", told) for key, told in ({"encoding": CODE} | FORMS).items())
    attempt(options_of("try", arguments, *more))


COMMANDS = {
    "try": try_on,
    "plan": plan,
    "status": status,
    "retrain": retrain,
    "explain": explain,
    "fetch": fetch,
}

if __name__ == "__main__":
    main()
