"""What must be made anew of a corpus that a scale leaves open (`corpora: {text: null}`), and why.

Snakemake starts no job of a plan with such a backbone or annotation, and the job that prepares such texts
ends in a sentence. `tailprompt plan` and `status` say so beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan import asked, bundled, made, standing
from tailprompt.plan.agreement import differing, digest, tolerant
from tailprompt.plan.blocks import unique
from tailprompt.plan.home import found
from tailprompt.plan.jobs import recipes
from tailprompt.plan.places import anywhere, folders_of, in_bundle, report_file
from tailprompt.plan.points import Point
from tailprompt.plan.rows import dataset_row, parts_of, recipe_row
from tailprompt.plan.schemas import read
from tailprompt.plan.settings import settings

CHANGED = "differs"
STARTS_NOT, FAILS = "snakemake will not start", "stage prepare will refuse"


@dataclass(frozen=True)
class Lack:
    """What cannot be made: a backbone or a data set.

    comes: what becomes of a command. because: why it must be made. corpora: keys that are open.
    """

    comes: str
    kind: str
    because: str
    corpora: tuple[str, ...]


def lines(config: dict, to_train: Iterable[Point], here: standing.Present, root: Path) -> list[str]:
    """A line for the backbones or data sets of runs to train that lack a corpus for one reason."""
    points = list(to_train)
    found = [(name, *backbone(config, name, points, root)) for name in unique(p.backbone for p in points)]
    datasets = unique(name for point in points for name in datasets_of(config, point))
    found += [(name, *dataset(config, name, points, here, root)) for name in datasets]
    alike: dict[Lack, dict[str, list[Point]]] = {}
    for name, lack, runs in found:
        if lack:
            alike.setdefault(lack, {})[name] = runs
    return [f"{lack.comes}: {sentence(lack, runs)}" for lack, runs in alike.items()]


def check(config: dict, point: Point, here: standing.Present, root: Path = Path(".")) -> None:
    """Raise BadInput if a run is to be trained on what no job can make, as a corpus is open."""
    found = [(point.backbone, *backbone(config, point.backbone, [point], root))]
    found += [(name, *dataset(config, name, [point], here, root)) for name in datasets_of(config, point)]
    for name, lack, runs in found:
        if lack and lack.comes == STARTS_NOT:
            raise BadInput(sentence(lack, {name: runs}))


def datasets_of(config: dict, point: Point) -> list[str]:
    """The data set of a run, and those that it joins."""
    return [point.dataset, *parts_of(config, point.dataset)]


def backbone(
    config: dict, name: str, to_train: Iterable[Point], root: Path = Path(".")
) -> tuple[Lack | None, list[Point]]:
    """What a backbone lacks, and the runs on it."""
    recipe, runs = config["backbones"][name].get("recipe"), [p for p in to_train if p.backbone == name]
    if not recipe or not (keys := lacking(config, recipe, root)):
        return None, runs
    return Lack(STARTS_NOT, "backbone", why_made(config, name, recipe, runs, root), (*keys,)), runs


def dataset(
    config: dict, name: str, to_train: Iterable[Point], here: standing.Present, root: Path = Path(".")
) -> tuple[Lack | None, list[Point]]:
    """What a data set lacks, and the runs on it."""
    row, runs = dataset_row(config, name), [p for p in to_train if name in datasets_of(config, p)]
    modelled = row.get("annotator") == "model"
    if "corpus" not in row or "path" in row:
        return None, runs
    if standing.stands(config, *(("annotated", row["name"]) if modelled else ("data", name)), root):
        return None, runs
    because = why_prepared(config, name, root) or why_trained(config, runs[0], here, root)
    return Lack(STARTS_NOT if modelled else FAILS, "data set", because, (row["corpus"],)), runs


def sentence(lack: Lack, runs: dict[str, list[Point]]) -> str:
    """What is said of the backbones or data sets with one lack. runs: on each, by its name."""
    every = unique(point for each in runs.values() for point in each)
    of = every[0].path if len(every) == 1 else f"{len(every):,} runs, as {every[0].path}"
    corpora = " and ".join(f"corpora.{key}" for key in lack.corpora)
    given = ", ".join(f"{key}: FILE" for key in lack.corpora)
    back = ", or take the change back" if CHANGED in lack.because else ""
    return (
        f"{lack.kind}{'s' * (len(runs) > 1)} {', '.join(runs)} must be made for {of}: {lack.because}; "
        f"this takes {corpora}, which this scale leaves open; name it, as in --config "
        f"'corpora={{{given}}}'{back}"
    )


def lacking(config: dict, recipe: str, root: Path) -> list[str]:
    """The open corpora that a recipe takes which must be made anew, or the one that it starts from."""
    if standing.stands(config, "checkpoint", recipe, root):
        return []
    before = recipe_row(config, recipe).get("start")
    starts = lacking(config, before, root) if before and not recipes.shipped_start(config, recipe) else []
    base = recipes.base_of(config, recipe)
    kinds = ["packed", *["vocabulary"] * ("vocabulary" in recipe_row(config, base))]
    if all(standing.stands(config, kind, base, root) for kind in kinds):
        return starts
    own = [key for key in recipes.corpus_keys(recipe_row(config, base)) if is_open(config, key, root)]
    return unique([*starts, *own])


def is_open(config: dict, key: str, root: Path) -> bool:
    """Whether a scale names no file for a key of `corpora`, and no text is here that was made for it."""
    if (config.get("corpora") or {}).get(key):
        return False
    return not (recipes.collected(config, key) and standing.stands(config, "collected", key, root))


def why_made(config: dict, name: str, recipe: str, runs: list[Point], root: Path) -> str:
    """Why a backbone is made: in which keys its recipe is another than that of what is, or was, here.

    A run.json has no more than one digest of it, so of runs from a bundle keys are named where the recipe
    that ships has that digest.
    """
    row, wanted = recipe_row(config, recipe), standing.wanted(config, "checkpoint", recipe, root)
    if noted := tolerant(root / standing.note(config, "checkpoint", recipe)):
        keys = [key.removeprefix("recipe.") for key in differing(noted, wanted)]
        return differs(recipe, keys) if keys else "its checkpoint is gone or damaged"
    records = [record for point in runs for record in records_of(config, point, root)]
    weights = [each for record in records if isinstance(each := record.get("weights"), dict)]
    told = {each["recipe"] for each in weights if isinstance(each.get("recipe"), str)}
    if not told - {digest(wanted)}:
        return "no bundle brings weights" if told else "it is not here"
    shipped = (read(root / found("config/pretraining.yaml", root)) or {}).get("pretraining", {}).get(recipe)
    if shipped:
        before = {**config, "pretraining": {**config["pretraining"], recipe: shipped}}
        if made.weights(before, name, root)["recipe"] in told:
            former = recipe_row(before, recipe)
            return differs(
                recipe, [key for key in sorted({*row, *former}) if row.get(key) != former.get(key)]
            )
    return f"pretraining.{recipe}, its corpus or its start {CHANGED} from that of the runs in a bundle"


def differs(recipe: str, keys: list[str]) -> str:
    """What is another in a recipe."""
    return f"pretraining.{recipe} {CHANGED} in {', '.join(keys)} from what is here"


def records_of(config: dict, point: Point, root: Path) -> list[dict]:
    """The run.json of a run, here and in a bundle, as far as they are there."""
    folders = folders_of(root / "results" / config["scale"], point)
    return [*filter(None, (tolerant(folder / "run.json") for folder in folders))]


def why_prepared(config: dict, name: str, root: Path) -> str:
    """In which keys the row of a data set differs from that of its report; empty where in none."""
    report = report_file(root / "results" / config["scale"], name)
    row, now = (tolerant(report) or {}).get("row") or {}, bundled.now(config, name)
    has = anywhere(row)
    keys = [key for key in sorted({*has, *now}) if row and has.get(key) != now.get(key)]
    return f"datasets.{name} {CHANGED} in {', '.join(keys)} from what is here" if keys else ""


def why_trained(config: dict, point: Point, here: standing.Present, root: Path) -> str:
    """Why a run is trained, and its texts are needed."""
    brought = in_bundle(report_file(root / "results" / config["scale"], point.dataset))
    texts = "no bundle brings texts" if brought else "texts are not here as they are asked"
    if not (records := records_of(config, point, root)):
        return texts
    wanted = asked.asked(config, point, settings(config, point), here.weights(point.backbone), root)
    keys = unique(key for record in records for key in differing(record, wanted))
    return f"{point.path} {CHANGED} in {', '.join(keys)}, and {texts}" if keys else texts
