"""Apply a trained run to new texts or images: rows become the same rows with the predicted classes.

`tailprompt predict RUN FILE`: RUN is a run's folder whose method has `keep: true`, so that its weights hold
the body too (a frozen body need not be kept). FILE holds rows: CSV, TSV, JSON Lines or Parquet. Of a run on
images it is a folder of images, one image, or such a file with a column of paths. Of a run whose data had
options, rows have options too, and the prediction is the letter of one, with its text. Of a run that tags
words, the text of a row may be a list of words, and FILE may be CoNLL's, with a word a line; the prediction
is entities, with their characters, and the tags of the words. Of a run on passages FILE may be SQuAD's JSON.
Labels in such files are not read. A row that cannot be answered, as one with an empty text or a broken image,
has no prediction and is told by its line; no row is left out, and none moves.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from math import inf
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from tailprompt.components.resolve import run_of
from tailprompt.data.columns import CHOICES
from tailprompt.data.contents import PLACE, bare
from tailprompt.data.new_rows import columns_of, decoded, read
from tailprompt.data.readers import header
from tailprompt.data.stated import FORMS
from tailprompt.data.writers import WRITERS
from tailprompt.errors import BadInput, known, named, stage
from tailprompt.files import keyed, read_json, whole
from tailprompt.inputs.examples import examples_of, word_ids
from tailprompt.inputs.written import counted
from tailprompt.machine.gpus import DEVICE, free
from tailprompt.model import backbones
from tailprompt.model.compose import compose, rescaled
from tailprompt.model.weights import file_of, load_trained
from tailprompt.plan import agreement
from tailprompt.plan.digests import check_checkpoint
from tailprompt.plan.either import with_weights
from tailprompt.plan.starts import keeping
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import Given, Task
from tailprompt.training.batches import predict
from tailprompt.training.outcome import check_finite
from tailprompt.training.precision import PRECISIONS
from tailprompt.training.record import finished
from tailprompt.training.selection import given

NOTE = (
    "Probabilities are those of the model, not calibrated: 0.9 does not mean that nine of ten such rows are "
    "right. Take them to sort rows, and choose a threshold on labelled rows."
)
CHUNK = 8192  # rows in memory as tokens or pixels at once


def apply(
    run: Path, table: pd.DataFrame, device: torch.device, pixels: Path | None = None
) -> Iterator[tuple[pd.DataFrame, Tensor, Given]]:
    """Rows with logits of a run and what came with them, for texts, perhaps with pair or choices, or images.

    tau and eta are as in training. pixels: the array of which the column `image` names the rows.
    """
    about = record(run)
    told = run_of(about["settings"], whole=False)
    backbone = backbones.load(about["backbone"], device, learns=told.tuner.name == "full")
    task = about["task"]
    words = word_ids(task.outputs(about["classes"]), about["words"], backbone, told)
    model = compose(backbone, told, words=words, unit=task.unit)
    load_trained(model, run, tuned=about["tuned"], hint=keeping(about["point"]["method"]))
    model.to(device)
    torch.set_float32_matmul_precision(named(PRECISIONS, told.precision, "precision"))
    view = partial(
        examples_of,
        backbone=backbone,
        run=told,
        words=about["words"],
        pixels=pixels,
        device=device,
        training=False,
    )
    for at in tqdm(range(0, len(table), CHUNK), desc="predict", unit="chunk", disable=len(table) <= CHUNK):
        rows = table.iloc[at : at + CHUNK]
        examples = view(rows)
        if told.input.name == "tfidf":
            examples = counted(examples, model.body.vectors(examples.texts))
        logits = predict(model, examples, precision=told.precision)
        check_finite(logits, examples.names, f"{run}: logits of")
        yield rows, rescaled(model, logits, about["tau"]), given(examples, about.get("threshold"))


def record(run: Path) -> dict:
    """What prediction needs of the run.json in a run's folder; raises BadInput where it is not one."""
    with finished(run):
        needed = ("settings", "backbone", "words", "classes", "tau", "data", "tuned", "point")
        about = read_json(run / "run.json", *needed)
        told = run_of(keyed(about["settings"], "its settings"), whole=False)
        images = told.input.reads == "image"
        words = about["classes"] if told.head.name == "verbalizer" else ()
        parts = {"data": ["pair"], "backbone": ["family"], "words": words, "point": ["method"]}
        for key, names in parts.items():
            keyed(about[key], f"its {key}", *names)
        if images:
            keyed(about["data"].get("decoded"), "its data.decoded", "side", "fit", "border")
    if sets := about["data"].get("sets"):
        raise BadInput(
            f"{run} is on joined sets ({known(sets)}), each with a head; take a run on one of them"
        )
    there = {"text": True, "pair": about["data"]["pair"], CHOICES: about["data"].get(CHOICES, False)}
    wanted = ["path"] if images else [key for key, held in there.items() if held]
    return {**about, "images": images, "wanted": wanted, "task": recorded(about["data"])}


def with_predictions(
    task: Task,
    table: pd.DataFrame,
    applied: Iterable[tuple[pd.DataFrame, Tensor, Given]],
    classes: list[str],
) -> pd.DataFrame:
    """The table's own columns, then what the task shows of each row; of a row without an answer nothing.

    applied: what `apply` yields, of rows with the table's index.
    """
    parts = [
        pd.DataFrame(task.shown(logits.float().numpy(), there, rows, classes)).set_axis(rows.index)
        for rows, logits, there in applied
    ]
    made = pd.concat(parts) if parts else pd.DataFrame(columns=list(task.shown_as))
    return table.drop(columns=PLACE, errors="ignore").assign(**made.reindex(table.index))


def predict_file(
    run: Path,
    file: Path,
    out: Path,
    *,
    text: str | None = None,
    pair: str | None = None,
    choices: list[str] | None = None,
    path: str | None = None,
    form: Mapping | None = None,
    encoding: str,
    device: str,
) -> None:
    """Read `file`, predict, write `out`; what is wrong with either shows before the model is loaded.

    form: what is stated of a CSV or TSV file, as in a data set's row; quotes are else as in the run's data.
    """
    writer = named(WRITERS, out.suffix[1:].lower(), f"file format of {out},")
    if not file.exists():
        raise BadInput(f"there is no file {file}")
    if out.resolve() == file.resolve():
        raise BadInput(f"--out is {file} itself; name another file")
    run = with_weights(run)
    about = record(run)
    file_of(run)  # says so if its weights did not travel
    check_out(out, about["task"].shown_as)
    check_place(about, run)
    options = choices[0] if choices and len(choices) == 1 else choices
    given = {"text": text, "pair": pair, CHOICES: options, "path": path}
    columns = columns_of(about["wanted"], given, run)
    taken, classes = about["task"].shown_as, len(about["classes"])
    unit = about["task"].unit
    row = own_row(run)
    how = {key: row[key] for key in ("quotes",) if key in row} | {**(form or {})}
    stated = {"encoding": encoding, "own": own_columns(row), "form": how}
    table, examples = read(file, columns, taken=taken, options=classes, unit=unit, **stated)
    with whole(out) as temporary:
        how = about["data"].get("decoded")
        seen = decoded(examples, how, file, out) if about["images"] else nullcontext((examples, None))
        wanted = inf if "device_map" in about["backbone"] else 1
        with seen as (shown, pixels), free(device, wanted=wanted) as name:
            applied = apply(run, shown, torch.device(name), pixels)
            made = with_predictions(about["task"], table, applied, about["classes"])
        try:
            writer(made, temporary)
        except (ValueError, TypeError, OverflowError) as error:
            raise BadInput(f"{out}: {out.suffix[1:]} cannot hold these columns ({error})") from None


def check_out(out: Path, columns: tuple[str, ...]) -> None:
    """Raise BadInput where a file is there and holds no predictions of this stage; a run's have others.

    columns: those that this stage adds, of which the first two suffice (there may be two classes only).
    """
    try:
        ours = not out.is_file() or {*columns[:2]} <= {*header(out)}
    except BadInput:
        ours = False
    if not ours:
        raise BadInput(
            f"{out} was not written by tailprompt predict (it has no columns {' and '.join(columns[:2])}); "
            "name another file with --out"
        )


def own_row(run: Path) -> dict:
    """The row of the run's own data in the configuration, as their report has it."""
    return (agreement.tolerant(agreement.data_of(run).with_suffix(".json")) or {}).get("row") or {}


def own_columns(row: dict) -> dict[str, str | list[str]]:
    """The names that the columns have in the run's own data: what its row called text, and others.

    Several columns that made one text are not among them.
    """
    names = (row.get("columns") or {}).items()
    return {key: name for key, name in names if isinstance(name, str) or key == CHOICES}


def check_place(about: dict, run: Path) -> None:
    """Raise BadInput where the folder of a run's backbone is not there: it is told from the project's.

    And where a file there is not what pre-training wrote.
    """
    path = about["backbone"].get("path")
    if path and not Path(path).is_dir():
        raise BadInput(
            f"{run} needs its backbone {path}, which is not there from {Path.cwd()}; "
            "run tailprompt predict in the project's folder"
        )
    if path and "recipe" in (about.get("weights") or {}):
        check_checkpoint(Path(path))


def beside(file: Path) -> Path:
    """Where predictions go unless told otherwise."""
    if file.is_dir():
        return file.resolve().with_name(f"{file.resolve().name}.predictions.csv")
    return file.with_name(f"{Path(bare(file.name)).stem}.predictions.csv")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tailprompt predict", description=__doc__.split("\n")[0], epilog=NOTE
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="rows to classify as csv, tsv, jsonl or parquet; for a run on images a folder of images, one "
        "image, or such a file with a column of paths relative to its folder; for one that tags words also "
        "CoNLL's columns, for one on passages also SQuAD's JSON",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="file to write; may replace only earlier predictions (usual: FILE, ending in .predictions.csv)",
    )
    parser.add_argument(
        "--text",
        help="column with the text, or to tag also with lists of words (default: text); of CoNLL's columns "
        "the number of that with words (default: 1)",
    )
    parser.add_argument(
        "--pair", help="column with the second text, if the run's data had one (default: pair)"
    )
    parser.add_argument(
        "--choices",
        nargs="+",
        metavar="COLUMN",
        help="column with lists of options, or a column for each option in order, if the run's data had "
        "options (default: choices)",
    )
    parser.add_argument("--path", help="column with the paths of images (default: path)")
    parser.add_argument(
        "--encoding", default="utf-8-sig", help="encoding of FILE if it is text (default: utf-8)"
    )
    for key, told in FORMS.items():
        parser.add_argument(f"--{key}", **told)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help=DEVICE)
    options = vars(parser.parse_args())
    out = options.pop("out") or beside(options["file"])
    form = {key: value for key in FORMS if (value := options.pop(key)) is not None}
    replaced = out.exists()
    predict_file(out=out, form=form, **options)
    if replaced:
        print("in place of the file that was there:", file=sys.stderr)
    print(out)


if __name__ == "__main__":
    stage(main)
