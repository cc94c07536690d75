"""The configuration, and how rules ask plan/ about it: no rules here."""

import json
import shlex
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from tailprompt import gpus as cards
from tailprompt.errors import BadInput
from tailprompt.plan import asked, blocks, points, rows
from tailprompt.plan.config import load, typed
from tailprompt.plan.dependencies import sources
from tailprompt.plan.jobs import data, recipes, runs, shown
from tailprompt.plan.runnable import check_files, check_settings

try:
    config.update(load(workflow.overwrite_configfiles, typed(dict(workflow.config_settings.config))))
    SHOWN = blocks.shown(config)
    POINTS = blocks.all_points(config)
    check_files(config)
    SETTINGS = check_settings(config, POINTS)
    DATASETS = blocks.all_datasets(config)
except BadInput as error:
    raise WorkflowError(str(error)) from None

SCALE, DEVICE, SLOTS = config["scale"], config["device"], config.get("slots", 1)
BACKBONES = sorted({point.backbone for point in POINTS})
RUNS = [f"results/{SCALE}/runs/{point.path}" for point in POINTS]

# Only a cluster's command line has a number of jobs (nodes) beside that of cores.
LOCAL = workflow.is_main_process and workflow.resource_settings.nodes is None
CARDS = len(cards.visible()) if LOCAL and DEVICE != "cpu" else 0
# A resource without a limit is unlimited: jobs would crowd on the cards of this machine.
if CARDS and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", CARDS * SLOTS)

# A job runs the Python that runs Snakemake, unless conda brings one, and finds the package in src.
brought = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
path = "" if brought else f"{Path(sys.executable).parent}:"
shell.prefix(
    f"export PYTHONPATH={shlex.quote(workflow.basedir)}/src TOKENIZERS_PARALLELISM=false"
    f" PATH={shlex.quote(path)}$PATH; "
)


def of(function, *names, **options):
    """A function of wildcards for a rule: what `function` of plan/ says of the configuration and of `names` in them."""
    return lambda wildcards: function(config, *(getattr(wildcards, name) for name in names), **options)


def told(function, *names, **options):
    """The same as one line of JSON, equal for equal values: Snakemake sees a change only where there is one."""
    return lambda wildcards: as_json(of(function, *names, **options)(wildcards))


def as_json(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def option(name, file):
    """An option that names an input, or nothing without one."""
    return f"{name} {shlex.quote(str(file))}" if file else ""


def folder_option(name, file):
    """The same that names the folder of the input."""
    return option(name, file and Path(str(file)).parent)


def shown_by(what, function, **options):
    """A function of wildcards: what `function` says of the block of the table or figure that they name."""
    block = lambda wildcards: shown.block(SHOWN, what, wildcards.paper, wildcards.name)
    return lambda wildcards: function(block(wildcards), **options)


def run_inputs(wildcards):
    """What training takes: nothing that is newer trains a run anew that already is what it is asked to be."""
    parts = ("protocol", "backbone", "dataset", "method", "seed")
    point = points.Point.at("/".join(getattr(wildcards, part) for part in parts))
    return unless(stands(point), runs.to_train(config, point))


def recipe_inputs(wildcards):
    """What pre-training takes: the same of a checkpoint that its recipe made as it is now."""
    return unless(recipes.stands(config, wildcards.recipe), recipes.to_pretrain(config, wildcards.recipe))


def unless(settled, files):
    """Inputs of a job, whose age does not matter where `settled`."""
    return {name: ancient(file) for name, file in files.items()} if settled else files


@cache
def stands(point):
    """Whether a run is what is asked of it; a run that no table takes may be asked for by its path."""
    settings = SETTINGS.get(point) or check_settings(config, [point])[point]
    return runs.stands(config, point, settings, weights(point.backbone), write=workflow.is_main_process)


weights = cache(lambda backbone: asked.weights(config, backbone))


def cards_of(wildcards):
    """Cards of a training job: what its backbone's row says; a recipe takes one."""
    return rows.cards_of(config, wildcards.backbone) if hasattr(wildcards, "backbone") else 1


def gpus(wildcards):
    """Slots of cards for a training job."""
    cards_here = CARDS if LOCAL else None
    return runs.slots_taken(cards_of(wildcards), device=DEVICE, slots=SLOTS, cards=cards_here)


def host_mb(wildcards, attempt):
    """Main memory of a training job."""
    return runs.host_mb(config, wildcards.backbone) * attempt
