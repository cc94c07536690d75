"""The configuration, and how rules ask plan/ about it. There are no rules here."""

import json
import shlex
from functools import cache, partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from tailprompt.gpus import share, unshare, visible
from tailprompt.errors import refused_as
from tailprompt.plan import asked, blocks, points, rows
from tailprompt.plan.config import load, typed
from tailprompt.plan.dependencies import sources
from tailprompt.plan.jobs import data, recipes, runs, shown
from tailprompt.plan.runnable import check_files, check_settings

with refused_as(WorkflowError):
    config.update(load(workflow.overwrite_configfiles, typed(dict(workflow.config_settings.config))))
    SHOWN = blocks.shown(config)
    POINTS = blocks.all_points(config)
    check_files(config)
    SETTINGS = check_settings(config, POINTS)
    DATASETS = blocks.all_datasets(config)

SCALE, DEVICE, SLOTS = config["scale"], config["device"], config.get("slots", 1)
BACKBONES = sorted({point.backbone for point in POINTS})
weights = cache(lambda backbone: asked.weights(config, backbone))

# Only the command line for a cluster gives a number of jobs (nodes) besides that of cores.
LOCAL = workflow.is_main_process and workflow.resource_settings.nodes is None
GPUS = len(visible()) if LOCAL and DEVICE != "cpu" else 0
# A resource without a limit is unlimited, and then too many jobs would start on the GPUs of this machine.
if GPUS and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", GPUS * SLOTS)

# A job runs the Python that runs Snakemake, unless conda provides one, and finds the package in src.
brought = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
path = "" if brought else f"{Path(sys.executable).parent}:"
# On this machine training jobs are forked from a process that has imported torch (tailprompt.preload).
preload = "TAILPROMPT_PRELOAD=${{TAILPROMPT_PRELOAD-1}} " if LOCAL else ""
shell.prefix(
    f"export PYTHONPATH={shlex.quote(workflow.basedir)}/src TOKENIZERS_PARALLELISM=false {preload}"
    f" PATH={shlex.quote(path)}$PATH; "
)


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


def folder_option(name, file):
    """A command-line option for the folder of an input file; empty without one."""
    return option(name, file and Path(str(file)).parent)


def shown_by(what, function, **options):
    """wildcards -> function(block of the table or figure that they name)."""
    block = lambda wildcards: shown.block(SHOWN, what, wildcards.paper, wildcards.name)
    return lambda wildcards: function(block(wildcards), **options)


def run_inputs(wildcards):
    """The inputs of training. A newer input does not retrain a run that already is what is asked."""
    parts = ("protocol", "backbone", "dataset", "method", "seed")
    point = points.Point.at("/".join(getattr(wildcards, part) for part in parts))
    return unless(stands(point), runs.to_train(config, point))


def recipe_inputs(wildcards):
    """The inputs of pre-training. A newer input does not retrain a checkpoint of the present recipe."""
    return unless(recipes.stands(config, wildcards.recipe), recipes.to_pretrain(config, wildcards.recipe))


def unless(settled, files):
    """The inputs of a job, whose age does not matter if `settled`."""
    return {name: ancient(file) for name, file in files.items()} if settled else files


@cache
def stands(point):
    """Whether a run is what is asked. A run that no table takes can be requested by its path."""
    settings = SETTINGS.get(point) or check_settings(config, [point])[point]
    return runs.stands(config, point, settings, weights(point.backbone), write=workflow.is_main_process)


def predictions(point):
    """The predictions of a run, where they are if the run is what is asked."""
    return runs.predictions(SCALE, point, settled=stands(point))


report_of = partial(data.report, config)


def cards_of(wildcards):
    """The GPUs of a training job: `cards` in its backbone's row; one for a recipe."""
    return rows.cards_of(config, wildcards.backbone) if hasattr(wildcards, "backbone") else 1


def gpus(wildcards):
    """The GPU slots of a training job."""
    here = GPUS if LOCAL else None
    return runs.slots_taken(cards_of(wildcards), device=DEVICE, slots=SLOTS, cards=here)


def host_mb(wildcards, attempt):
    """The main memory of a training job in MB; a retry asks for more."""
    return runs.host_mb(config, wildcards.backbone) * attempt


with refused_as(WorkflowError):  # an input function's own error would pass for nothing to be done
    PREDICTIONS = [predictions(point) for point in POINTS]
