"""The configuration, and what the rules look up in it: no rules here."""

import json
import shlex
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from tailprompt.plan import blocks, points, rows, starts

from tailprompt import gpus as cards
from tailprompt.plan.config import load, typed
from tailprompt.errors import BadInput, named
from tailprompt.plan.runnable import check_files, check_settings
from tailprompt.plan.dependencies import sources

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

DECODED = (
    "name",
    "loader",
    "files",
    "path",
    "sha256",
    "folder",
    "root",
    "side",
    "fit",
    "border",
    "upright",
    "classes",
    "trained_on",
)

ANNOTATED = (
    "name",
    "corpus",
    "path",
    "sha256",
    "model",
    "examples",
    "scripts",
    "unit",
    "lengths",
    "block",
    "shares",
    "split_seed",
)

# A job runs the Python that runs Snakemake, unless conda brings one, and finds the package in src.
path = (
    ""
    if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    else Path(sys.executable).parent
)
shell.prefix(
    f"export PYTHONPATH={shlex.quote(workflow.basedir)}/src TOKENIZERS_PARALLELISM=false"
    f" PATH={shlex.quote(f'{path}:' if path else '')}$PATH; "
)


def as_json(value):
    """One line that is the same for the same value, so that Snakemake sees a change only where there is one."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def point_of(wildcards):
    """The run that a job's wildcards name."""
    names = ("protocol", "backbone", "dataset", "method")
    return points.Point(*(getattr(wildcards, name) for name in names), int(wildcards.seed))


def settings_of(wildcards):
    """All that a training job is told, as JSON: its settings change, it is run again.

    A run that no table takes may be asked for by its path.
    """
    point = point_of(wildcards)
    return as_json(SETTINGS.get(point) or check_settings(config, [point])[point])


def start_weights(wildcards):
    """Weights that a run begins from, where its method has a `start`."""
    if folder := (starts.starting(config, point_of(wildcards)) or {}).get("folder"):
        return [f"{folder}/adapter_model.safetensors"]
    nearest = starts.starts_of(config, point_of(wildcards))[:1]
    return [f"results/{wildcards.scale}/runs/{start.path}/weights.safetensors" for start in nearest]


def start_option(wildcards):
    """The option that names the folder of the run to start from, or nothing."""
    return " ".join(f"--start {shlex.quote(str(Path(file).parent))}" for file in start_weights(wildcards))


def verbalizer_of(wildcards):
    """The CSV with a word for each class, where the data set has one."""
    return rows.dataset_row(config, wildcards.dataset).get("verbalizer") or []


def words_of(wildcards):
    """The same for a run, whose method may have words of its own."""
    method = named(config["methods"], points.parse(wildcards.method)[0], "method")
    return method.get("verbalizer") or verbalizer_of(wildcards)


def user_files(wildcards):
    """The files of a data set that lie at a path of their own: shipped, or the user's."""
    row = prepared_row(wildcards)
    entries = row.get("files") or {"all": row.get("path", {})}
    paths = [entry if isinstance(entry, str) else entry.get("path") for entry in entries.values()]
    return [path for path in [*paths, row.get("lexicon")] if path]


def corpus_input(wildcards):
    """The plain text that a data set is made from, if it is made from one."""
    row = rows.dataset_row(config, wildcards.dataset)
    return row.get("path") or (corpus_named(row["corpus"]) if "corpus" in row else [])


def prepared_row(wildcards):
    """The row of a data set; one that a model annotates is prepared from what the model wrote."""
    row = rows.dataset_row(config, wildcards.dataset)
    if row.get("annotator") != "model":
        return row
    return {**row, "path": f"results/{wildcards.scale}/annotated/{row['name']}.parquet"}


def class_folders(wildcards):
    """The folders whose images a data set takes, two levels down: one that comes or goes in them is seen."""
    row = rows.dataset_row(config, wildcards.dataset)
    data_dir = config.get("data_dir")
    if row.get("loader") != "image_folder" or not ("root" in row or data_dir):
        return []
    root = Path(row["root"]) if "root" in row else Path(data_dir, row.get("folder", row["name"]))
    found = [root, *root.glob("[!.]*"), *root.glob("[!.]*/[!.]*/")]
    # Snakemake would take braces for wildcards
    return sorted(str(path) for path in found if path.is_dir() and not set("{}") & set(str(path)))


def decoded(wildcards, ending):
    """A file that decoding a data set of images makes, one for all its cuts; none of texts."""
    row = rows.dataset_row(config, wildcards.dataset)
    return f"results/{wildcards.scale}/images/{row['name']}.{ending}" if row["language"] == "image" else []


def images_of(wildcards):
    """The decoded images of a data set."""
    return decoded(wildcards, "npy")


def listing_of(wildcards):
    """The listing of a data set's decoded images."""
    return decoded(wildcards, "parquet")


def listing_option(wildcards):
    """The option that names the listing, or nothing."""
    return f"--listing {shlex.quote(listing)}" if (listing := listing_of(wildcards)) else ""


def raw_folder(wildcards):
    """Where the downloads of a data set go, whatever the scale and the cut."""
    return f"results/raw/{points.parse(wildcards.dataset)[0]}"


def dataset_json(wildcards):
    """The row of a data set with its cut, and with classes that it must have for a table's scores, as JSON."""
    row, asked = prepared_row(wildcards), blocks.classes_asked(SHOWN, wildcards.dataset)
    return as_json({**row, "asked": asked} if asked else row)


def annotated_json(wildcards):
    """What annotating a corpus needs of a data set's row, as JSON."""
    row = rows.dataset_row(config, wildcards.dataset)
    return as_json({key: row[key] for key in ANNOTATED if key in row})


def images_json(wildcards):
    """What decoding needs of a data set's row, as JSON: whatever else changes in it decodes nothing again."""
    row = rows.dataset_row(config, wildcards.dataset)
    return as_json({key: row[key] for key in DECODED if key in row})


def backbone_json(wildcards):
    """What loading a backbone needs of its row, as JSON."""
    return as_json(rows.backbone_row(config, wildcards.backbone))


def made_backbone(wildcards):
    """The checkpoint that a backbone's recipe makes, where its row names one."""
    recipe = named(config["backbones"], wildcards.backbone, "backbone").get("recipe")
    return f"{rows.made_in(config, recipe)}/model.safetensors" if recipe else []


def corpus_of(wildcards):
    """The raw data of a recipe, which the user names."""
    return corpus_named(rows.recipe_row(config, wildcards.recipe)["corpus"])


def corpus_named(key):
    """The file or folder in `corpora`; else what Snakemake then says is missing, in the plan, without a traceback."""
    return (config.get("corpora") or {}).get(key) or f"corpora.{key} (this scale leaves it open: name it)"


def shipped_start(wildcards):
    """The folder of the backbone that a recipe starts from, where that one ships; else None."""
    start = rows.recipe_row(config, wildcards.recipe).get("start")
    return config["backbones"].get(start, {}).get("path")


def base_of(wildcards):
    """The recipe whose vocabulary and packed data a recipe takes: the one it starts from, or itself."""
    recipe = wildcards.recipe
    return recipe if shipped_start(wildcards) else rows.recipe_row(config, recipe).get("start", recipe)


def tokenizer_of(wildcards):
    """The tokenizer of a recipe for text."""
    if shipped := shipped_start(wildcards):
        return f"{shipped}/tokenizer.json"
    if "vocabulary" not in rows.recipe_row(config, base_of(wildcards)):
        return []
    return f"{rows.made_in(config, base_of(wildcards))}/vocabulary/tokenizer.json"


def packed_of(wildcards):
    """The packed data of a recipe."""
    return f"{rows.made_in(config, base_of(wildcards))}/packed"


def started_from(wildcards):
    """The checkpoint that a recipe goes on from: of the backbone that ships, else of the recipe."""
    start = rows.recipe_row(config, wildcards.recipe).get("start")
    folder = shipped_start(wildcards) or (start and rows.made_in(config, start))
    return f"{folder}/model.safetensors" if folder else []


def recipe_json(*keys):
    """A function from wildcards to a recipe, or to those of its `keys` it has, as JSON."""

    def row(wildcards):
        recipe = rows.recipe_row(config, wildcards.recipe)
        return as_json({key: recipe[key] for key in keys or recipe if key in recipe})

    return row


def folder_option(option, file):
    """An option that names the folder of an input, or nothing without one."""
    return f"{option} {shlex.quote(str(Path(str(file)).parent))}" if file else ""


def cards_of(wildcards):
    """Cards of a training job: what its backbone's row says; a recipe takes one."""
    return rows.cards_of(config, wildcards.backbone) if hasattr(wildcards, "backbone") else 1


def gpus(wildcards):
    """Slots of cards for a training job: none on a CPU; `auto` follows this machine, or asks the cluster.

    A job of several cards takes them whole, as many as there are.
    """
    cards = cards_of(wildcards)
    if DEVICE == "cpu" or DEVICE == "auto" and LOCAL and not CARDS:
        return 0
    return min(cards, CARDS) * SLOTS if LOCAL and cards > 1 else cards


def host_mb(wildcards, attempt):
    """Main memory of a training job: more where its backbone is laid over cards, which may leave it some."""
    row = config["backbones"][wildcards.backbone]
    return int(12000 + row.get("megabytes", 0) * ("device_map" in row)) * attempt


def block_of(what, wildcards):
    """The block of the table or figure that wildcards name, expanded."""
    blocks = {name: block for (*of, name), block in SHOWN.items() if of == [what, wildcards.paper]}
    return named(blocks, wildcards.name, f"{what[:-1]} of {wildcards.paper} at this scale")


def spec_of(what):
    """A function from wildcards to the block of a table or figure, as JSON."""
    return lambda wildcards: as_json(block_of(what, wildcards))


def code_of(what, stage, package):
    """A function from wildcards to the code that makes a table or figure: the stage's, and its kind's alone."""

    def paths(wildcards):
        kind = block_of(what, wildcards)["kind"]
        shared = sources(f"tailprompt.{stage}", without=f"tailprompt.report.{package}")
        return sorted({*shared, *sources(f"tailprompt.report.{package}.{kind}")})

    return paths


def runs_of(what):
    """A function from wildcards to the scores of each run that a table or figure takes.

    Scores stand for all files of a run: they are made after them and again with them, and a job then has
    one input a run instead of five.
    """

    def paths(wildcards):
        points = blocks.points(block_of(what, wildcards))
        return [f"results/{wildcards.scale}/runs/{point.path}/scores.parquet" for point in points]

    return paths


def data_of(what):
    """A function from wildcards to the reports of the data sets that a table or figure takes."""

    def paths(wildcards):
        datasets = block_of(what, wildcards)["datasets"]
        return [f"results/{wildcards.scale}/data/{row['dataset']}.json" for row in datasets]

    return paths


def reported(wildcards):
    """The paper's printed numbers, where they are transcribed."""
    file = f"config/reported/{wildcards.paper}.csv"
    return file if Path(file).is_file() else []


def shown_beside(wildcards):
    """The printed numbers, for a figure of a kind that draws them."""
    kind = block_of("figures", wildcards)["kind"]
    return reported(wildcards) if kind == "accuracy_by_parameters" else []


def targets(what, *suffixes):
    """The files of all tables or figures that this scale makes."""
    return [
        f"results/{SCALE}/{what}/{paper}/{name}.{suffix}"
        for kind, paper, name in SHOWN
        if kind == what
        for suffix in suffixes
    ]
