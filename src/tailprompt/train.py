"""Train one run: the data's Parquet and the settings of a point become weights and predictions.

`python -m tailprompt.train --root results/demo --point glee/bert-mini/cmid/prompt/775 --asked FILE`: what the
run is asked, as `plan.asked` writes it. Everything is written whole into the run's folder. A killed run
leaves `state.pt` there and goes on from it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # before torch is imported: a process that has imported it may run this
    from tailprompt.machine.preload import run

    sys.exit(run("tailprompt.train"))

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from tailprompt.components.resolve import run_of
from tailprompt.components.run import Run
from tailprompt.data import table as data
from tailprompt.data.prepared import Prepared, check_rows, class_words
from tailprompt.errors import BadInput, known
from tailprompt.files import keyed, read_json, sha256, write_json
from tailprompt.inputs.examples import examples_of, word_ids, word_texts
from tailprompt.inputs.images import Images
from tailprompt.inputs.label_words import scored, unread
from tailprompt.machine.cpus import threads
from tailprompt.machine.gpus import DEVICE, SLOTS, free
from tailprompt.machine.progress import say
from tailprompt.model import backbones
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.compose import Model, compose
from tailprompt.model.weights import file_of, learns_whole, load_trained, need_not_hold, tuned, write_weights
from tailprompt.plan import untrained
from tailprompt.plan.agreement import CHECKED
from tailprompt.plan.asked_file import read_asked
from tailprompt.plan.digests import check_read, digest_of
from tailprompt.plan.held import finished, held, keep
from tailprompt.plan.places import begins_at
from tailprompt.plan.points import Point, parse
from tailprompt.plan.starts import keeping
from tailprompt.seals import check_sealed
from tailprompt.tasks.registry import TASKS, told
from tailprompt.tasks.task import Task
from tailprompt.training.batches import predict
from tailprompt.training.fitting import fit_model
from tailprompt.training.flags import flags
from tailprompt.training.outcome import (
    asked_features,
    chosen_prompts,
    write_curve,
    write_features,
    write_predictions,
)
from tailprompt.training.precision import computed_in
from tailprompt.training.provenance import code, costs, surroundings
from tailprompt.training.record import about_cards, about_data, about_size, about_training, learned
from tailprompt.training.repeats import with_vectors
from tailprompt.training.selection import check_dev, chosen_threshold, dev_scores, predicted, scorer_of


def train(
    root: Path, point: Point, asked: dict, device: torch.device, start: Path | None, *, capture: bool = True
) -> None:
    """Train `point` and write its folder. asked: as `plan.asked.asked` says it, which run.json repeats.

    capture: whether a GPU may run steps as CUDA graphs.
    """
    folder, begun, run = root / "runs" / point.path, time.monotonic(), run_of(asked["settings"])
    prepared = read(root / "data" / f"{point.dataset}.parquet", run, asked["extras"])
    torch.manual_seed(point.seed)
    check_read(asked)  # and once it is read
    backbone = backbones.load(asked["backbone"], device, learns=run.tuner.name == "full")
    task = TASKS[told(prepared.table)]
    outputs = task.outputs(learned(prepared, run, start, task))
    model, changed = begun_model(backbone, run, prepared, start, task, outputs)
    check_read(asked)
    pixels = root / "images" / f"{parse(point.dataset)[0]}.npy"
    check_sealed(pixels, digest=digest_of)
    view = partial(
        examples_of,
        backbone=backbone,
        run=run,
        words=prepared.words,
        pixels=pixels,
        device=device,
        kept=root / "tokens",
    )
    splits = {split: view(part, training=split == "train") for split, part in prepared.parts.items()}
    as_evaluated = partial(view, prepared.parts["train"], training=False)  # made where it is asked for
    if getattr(run.head, "fitted", False):
        splits["train"] = as_evaluated()
    model.to(device)
    if run.training and run.training.images and run.training.images.compile and device.type == "cuda":
        model.body.compile_blocks()
    if getattr(run.head, "head_start", None) == "class_means" and not start:
        start_from_means(model, as_evaluated())
    origin = start and sha256(file_of(start))
    made_of = [asked["backbone"], asked.get("weights"), prepared.words, prepared.digests["rows_sha256"]]
    same = [vars(point), asked["settings"], *made_of, origin, code()]
    scorer = scorer_of(task, prepared.report)
    seen = with_vectors(model, splits, run)
    progress = fit_model(
        model,
        seen,
        outputs,
        run,
        scorer,
        seed=point.seed,
        capture=capture,
        state=folder / "state.pt",
        key=json.dumps(same, sort_keys=True),
        label=f"{point.dataset} {point.method} {point.seed}",
    )
    logits, tau, took = predicted(model, seen, run, scorer)
    threshold = chosen_threshold(task, logits, splits, start)
    prompts = chosen_prompts(model, splits, run)
    chooses = "accepted" in prepared.table  # perhaps among some classes (`tasks.classification.chosen`)
    path = folder / "predictions.parquet"
    rows = write_predictions(path, logits, splits, prompts, task, threshold, exact=chooses)
    features = asked_features(model, splits["test"], as_evaluated, prepared.classes, asked["extras"])
    write_features(folder / "features.parquet", features)
    write_weights(
        folder / "weights.safetensors", model, tuned=changed, keep=bool(getattr(run.tuner, "keep", None))
    )
    write_curve(folder / "curve.csv", progress)
    about = {"point": vars(point), **asked, "start_sha256": origin, "tuned": changed}
    about |= {"weights_sha256": sha256(folder / "weights.safetensors")}
    about |= {"files": {name: sha256(folder / name) for name in CHECKED}}
    about |= about_data(prepared, splits) | about_size(model)
    dev, chosen = dev_scores(logits, splits, scorer), {"tau": tau, "threshold": threshold, "start": start}
    about |= about_training(progress, run, prepared, dev, predicting=took, **chosen)
    flagged = flags(progress.curve, rows, prepared.classes, pool=getattr(run.tuner, "pool", 0))
    about |= {"tried": model.head.tried} if hasattr(model.head, "tried") else {}
    about |= {"pieces": about_words(prepared, backbone, run), "flags": warned(flagged)}
    about |= {"seconds": round(time.monotonic() - begun, 2), **costs(), **about_cards(backbone)}
    about |= {"computed_in": computed_in(device, run.precision)} | surroundings(device)
    write_json(folder / "run.json", about)
    (folder / "state.pt").unlink(missing_ok=True)


def about_words(prepared: Prepared, backbone: Backbone | VisionBackbone, run: Run) -> dict[str, list[str]]:
    """The pieces that score each class, for run.json; what of a word is not read is printed."""
    if run.head.name != "verbalizer":
        return {}
    words, tokenizer = prepared.words, backbone.tokenizer
    ids = word_ids(prepared.classes, words, backbone, run)
    for sentence in unread(words, ids, tokenizer, template=getattr(run.input, "template", None)):
        tqdm.write(sentence)
    return scored(words, ids, tokenizer)


def warned(flagged: dict[str, str]) -> list[str]:
    """The names of a run's flags, for run.json; what they say is printed."""
    for sentence in flagged.values():
        tqdm.write(f"warning: {sentence}")
    return [*flagged]


def read(path: Path, run: Run, extras: dict) -> Prepared:
    """A prepared data set; raises BadInput where a run of these settings cannot be made on it."""
    digests = check_rows(path)
    table, classes = data.read(path)
    if absent := set(extras.get("features", [])) - set(classes):
        raise BadInput(
            f"features: no class {known(absent)} in {path}, which a figure asks for; known: {known(classes)}"
        )
    words = class_words(classes, getattr(run.head, "verbalizer", None)) if reads_words(run) else {}
    prepared = Prepared(path, table, classes, words, digests)
    check_dev(run, {split: len(part) for split, part in prepared.parts.items()}, path)
    return prepared


def reads_words(run: Run) -> bool:
    """Whether the classes have words: for the head, or to count the options that a row may have."""
    return run.head.name == "verbalizer" or run.input.name == "options"


def begun_model(
    backbone: Backbone | VisionBackbone,
    run: Run,
    prepared: Prepared,
    start: Path | None,
    task: Task,
    outputs: list[str],
) -> tuple[Model, bool]:
    """The model as it begins, with the weights of the run at `start`, where there is one.

    And whether its network is not, or will not be, the checkpoint's. outputs: of its head. Raises BadInput
    where `start` and the run's settings do not agree on there being one.
    """
    if bool(start) != bool(run.start):
        raise BadInput("start is the folder of the run that the settings name in start: give both or neither")
    source = getattr(run.head, "verbalizer", None) or f"class names of {prepared.path}"
    words = word_ids(outputs, prepared.words, backbone, run, source=source)
    texts = word_texts(prepared.parts["train"], backbone, run)
    sets = [task.outputs_of(prepared.classes, name) for name in prepared.sets]
    model = compose(backbone, run, words=words, texts=texts, unit=task.unit, sets=sets)
    before = bool(start) and tuned(start)
    if getattr(model.head, "drawn", False) and not start:
        say("the backbone's checkpoint has no pooler: that of the head is drawn, and learns")
    if start:
        lacking, fresh = need_not_hold(model, tuned=before), run.start.get("head") == "fresh"
        load_trained(model, start, tuned=before, lacking=lacking, hint=hint(start), head=not fresh)
    return model, before or learns_whole(model)


def hint(run: Path) -> str:
    """How the runs of this one's method keep all their weights."""
    if not (run / "run.json").is_file():
        return ""
    point = keyed(read_json(run / "run.json", "point")["point"], f"point of {run}", "method")
    return keeping(point["method"])


@torch.no_grad()
def start_from_means(model: Model, examples: Images) -> None:
    """Give each class's vector in the head the direction of the mean feature of its examples.

    As LIFT does (Shi et al. 2024); a class without examples keeps its random one.
    """
    features, labels = predict(model, examples, apply=model.features), examples.labels.cpu()
    vectors = model.head.class_vectors()
    for label in labels.unique().tolist():
        vectors[label] = torch.nn.functional.normalize(features[labels == label].mean(0), dim=0)


def repeatable(threads: int) -> None:
    """The same run on the same machine gives the same numbers."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_num_threads(threads)


def point_at(path: str) -> Point:
    """The point of the command line."""
    try:
        point = Point.at(path)
    except (TypeError, ValueError):
        raise BadInput(f"--point {path} is not protocol/backbone/dataset/method/seed") from None
    if not 0 <= point.seed < 2**32:
        raise BadInput(f"--point {path}: a seed is a number from 0 to {2**32 - 1}")
    return point


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt train", description="Train one run.")
    parser.add_argument("--root", required=True, type=Path, help="folder of a scale, results/<scale>")
    parser.add_argument("--point", required=True, help="the run: protocol/backbone/dataset/method/seed")
    parser.add_argument(
        "--asked",
        required=True,
        type=Path,
        metavar="FILE",
        help="what is asked of the run: results/<scale>/asked/<point>.json, which snakemake writes",
    )
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help=DEVICE)
    parser.add_argument("--slots", type=int, default=1, help=SLOTS)
    parser.add_argument(
        "--cards", type=int, default=1, help="GPUs for a backbone with device_map (default: 1)"
    )
    parser.add_argument("--threads", type=threads, default=1, help="CPU threads of the job (default: 1)")
    parser.add_argument("--eager", action="store_true", help="capture no step as a CUDA graph, to compare")
    parser.add_argument("--alone", type=int, default=0, help="1 if nothing takes its weights (default: 0)")
    options = parser.parse_args()
    if min(options.slots, options.cards) < 1:
        parser.error("--slots and --cards are numbers from 1")
    point = point_at(options.point)
    asked = read_asked(options.asked)
    keyed(asked["settings"], options.asked, "input")
    keyed(asked["backbone"], options.asked, "family")
    repeatable(options.threads)
    folder, replaced = options.root / "runs" / point.path, read_json(options.asked).get("replaces", 0)
    start = begins_at(options.root, keyed(asked.get("start") or {}, options.asked))
    origin = start and sha256(file_of(start))
    with held(folder):  # before a GPU is taken, which one that waits does not need
        if finished(folder, asked, start=origin, replaced=replaced):
            say(f"{folder} is finished already; its files are in place")
            return
        if options.alone and untrained.stands(folder, asked):
            say(f"{untrained.stand_in(folder)} is the run that is asked, on these rows")
            return
        with free(options.device, slots=options.slots, wanted=options.cards) as device:
            device = torch.device(device)
            train(options.root, point, asked, device, start, capture=not options.eager)
        keep(folder)
