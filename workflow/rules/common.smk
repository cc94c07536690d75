"""The configuration, and how rules ask plan/ about it. There are no rules here."""

import json
import os
import shlex
from functools import cache, partial
from pathlib import Path

from snakemake.dag import DAG
from snakemake.io import _IOFile
from snakemake.jobs import Job
from snakemake.persistence import PersistenceBase
from snakemake.resources import Resource
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.types import DeploymentMethod

from tailprompt.errors import BadInput, known, refused_as
from tailprompt.files import whole
from tailprompt.machine.cpus import CPUS
from tailprompt.machine.gpus import share, unshare, visible
from tailprompt.plan import (
    agreement,
    asked,
    blocks,
    either,
    future,
    held,
    left_open,
    leftover,
    made,
    points,
    present,
    revisions,
    rows,
    searches,
    standing,
    starts,
    unmade,
    untrained,
    writable,
)
from tailprompt.plan.brought import check_runs, refuse_targets
from tailprompt.plan.config import load, read_given, typed
from tailprompt.plan.dependencies import sources
from tailprompt.plan.jobs import data, recipes, runs, shown
from tailprompt.plan.mended import (
    end_at_any_moment,
    mend_jobs,
    mend_states,
    remake_incomplete,
    select_once_a_second,
)
from tailprompt.plan.reasons import last_words, note_failed
from tailprompt.plan.repeated import keep_commands, keep_parameters
from tailprompt.plan.runnable import check_files, check_settings
from tailprompt.plan.settled import heed, settled
from tailprompt.plan.starts import start_of, starts_of
from tailprompt.plan.suits import check_norms, check_scores

# Snakemake prints a traceback below errors of its own, and no more than the sentence of this one.
with refused_as(SystemExit):
    if workflow.modifier.is_main_snakefile():
        config.update(load(workflow.overwrite_configfiles, typed(dict(workflow.config_settings.config))))
    else:
        config.update(load([("the module's config", dict(config))]))
    results = Path(os.path.realpath("results"))
    own = [file for file in workflow.overwrite_configfiles if results in Path(file).resolve().parents]
    GIVEN = {str(file): read_given(file) for file in own}  # what searches chose
    WHOLE = blocks.shown(config)
    TAKEN = {point for block in WHOLE.values() for point in blocks.points(block)}
    POINTS = blocks.all_points(config)
    check_files(config)
    check_scores(config, WHOLE)
    check_norms(config, WHOLE)
    SETTINGS = check_settings(config, POINTS)
    DATASETS = blocks.all_datasets(config)

SCALE, DEVICE, SLOTS = config["scale"], config["device"], config.get("slots", 1)
TRAINS = config.get("train", True)  # else tables and figures are made of what is here
BACKBONES = sorted({point.backbone for point in POINTS})
weights = cache(lambda backbone: made.weights(config, backbone))

mend_states(sys.modules.get("snakemake_executor_plugin_slurm"))
mend_jobs(DAG, sys.argv)
refuse_targets(DAG, Path("results", SCALE))
heed(_IOFile, PersistenceBase)
remake_incomplete(DAG)
end_at_any_moment(JobScheduler)
select_once_a_second(JobScheduler)
keep_parameters(Resource.evaluate)  # called for each resource of each job
if workflow.dryrun:
    keep_commands(Job)

# Only the command line for a cluster gives a number of jobs (nodes) besides that of cores.
LOCAL = workflow.is_main_process and workflow.resource_settings.nodes is None
GPUS = len(visible()) if LOCAL and DEVICE != "cpu" else 0
# A resource without a limit is unlimited, and then too many jobs would start on the GPUs of this machine.
if GPUS and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", GPUS * SLOTS)

# A job runs the Python that runs Snakemake, unless conda provides one, and finds the package in src.
brought = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
path = "" if brought else f"{Path(sys.executable).parent}:"
# On this machine jobs with a model are forked from a process that has imported torch (tailprompt.machine.preload).
preload = "TAILPROMPT_PRELOAD=${{TAILPROMPT_PRELOAD-1}} " if LOCAL else ""
# `note ASKED MADE` is how a job says what its outputs are made of.
shell.prefix(
    f"export PYTHONPATH={shlex.quote(HOME)}/src TOKENIZERS_PARALLELISM=false {preload}"
    f" PATH={shlex.quote(path)}$PATH; "
    'note() {{ python -m tailprompt.plan.note "$@"; }}; '
)


def threads_of(wanted):
    """The CPU threads of a job: no more than this machine has, where it runs here."""
    return min(wanted, CPUS) if LOCAL else wanted


def of(function, *names, **options):
    """wildcards -> function(config, the wildcards called `names`), for a rule."""
    return lambda wildcards: function(config, *(getattr(wildcards, name) for name in names), **options)


def told(function, *names, **options):
    """The result of `of` as one line of JSON, the same for equal values, so that Snakemake sees only real changes."""
    return lambda wildcards: as_json(of(function, *names, **options)(wildcards))


def as_json(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def option(name, file):
    """A command-line option for an input file; empty without one."""
    return f"{name} {shlex.quote(str(file))}" if file else ""


def options(name, files):
    """A command-line option for some input files; empty without one."""
    return " ".join([name, *map(shlex.quote, files)]) if files else ""


def folder_option(name, file):
    """A command-line option for the folder of an input file; empty without one."""
    return option(name, file and Path(str(file)).parent)


def told_block(what):
    """wildcards -> the block of the table or figure that they name, as one line of JSON."""
    return lambda wildcards: as_json(shown.block(SHOWN, what, wildcards.paper, wildcards.name, WHOLE))


@cache
def in_use():
    """The files that other Snakemakes read and write here, or that killed ones did; none with --nolock."""
    heeded = workflow.execution_settings is None or workflow.execution_settings.lock
    locks = Path(".snakemake", "locks").glob("*.lock") if heeded else ()
    return {line for lock in locks for line in lock.read_text("utf-8").splitlines()}


@refused_as(SystemExit)
def told_in(name, text):
    """Write what a job is told where it reads it, and return it for Snakemake to compare."""
    file = Path("results", SCALE, "told", f"{name}.json")
    writes = not workflow.dryrun and f"results/{SCALE}/{name}.json" not in in_use()
    if writes and not (file.is_file() and file.read_text("utf-8") == text):
        with whole(file) as temporary:
            temporary.write_text(text, "utf-8")
    return text


def unless(stands, files, as_they_are=False):
    """The inputs of a job, whose age and places do not matter if it `stands`.

    as_they_are: nor are those that are there made anew for it. Snakemake would do that first, and leave out all that
    depends on the settled job, as runs to train, until the next command.
    """

    def taken(file):
        if isinstance(file, list):
            return [*map(taken, file)]
        return ancient(before_update(file) if as_they_are and Path(file).exists() else file)

    return settled({name: taken(file) for name, file in files.items()}) if stands else files


def gpus(wildcards):
    """The GPU slots of a job: a run wants the GPUs that its backbone asks for, another job one."""
    return slots_of(runs.cards(config, wildcards.point) if hasattr(wildcards, "point") else 1)


slots_of = partial(runs.slots_taken, device=DEVICE, slots=SLOTS, cards=GPUS if LOCAL else None)
if not slots_of(1):  # Snakemake is slow to call functions, and without GPUs no job takes one
    gpus = 0

report_of = partial(data.report, config)
