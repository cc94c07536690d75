"""Apply a trained run to new texts: a file of rows becomes the same rows with the predicted classes.

`tailprompt predict RUN FILE`: RUN is a run's folder whose method has `keep: true`, so that its weights hold
the body too (a frozen body need not be kept); FILE is CSV, TSV, JSON Lines or Parquet.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from tailprompt import backbones
from tailprompt.cards import free
from tailprompt.compose import SETTINGS, compose, encode_rows, load_trained, rescaled, word_ids
from tailprompt.data import checks
from tailprompt.data.tables import PLACE, rows, strings
from tailprompt.errors import BadInput, known, named, stage
from tailprompt.files import keyed, read_json, whole
from tailprompt.loop import PRECISIONS, predict

RANKS = ("prediction", "probability"), ("second", "second_probability"), ("third", "third_probability")
CHUNK = 8192  # rows in memory as tokens at once


def apply(run: Path, table: pd.DataFrame, device: torch.device) -> Float[Tensor, "rows classes"]:
    """Logits of a run for rows with text and perhaps pair, tau and eta as in training."""
    about = record(run)
    settings = about["settings"]
    backbone = backbones.load(about["backbone"])
    model = compose(backbone, settings, words=word_ids(about["words"], backbone, settings))
    load_trained(model, run, started=bool(settings["start"]))
    model.to(device)
    torch.set_float32_matmul_precision(named(PRECISIONS, settings["precision"], "precision"))
    parts = []
    for at in tqdm(range(0, len(table), CHUNK), desc="predict", unit="chunk", disable=len(table) <= CHUNK):
        examples = encode_rows(table.iloc[at : at + CHUNK], backbone, settings).to(device)
        parts.append(predict(model, examples, precision=settings["precision"]))
    return rescaled(model, torch.cat(parts), about["tau"])


def record(run: Path) -> dict:
    """What prediction needs of the run.json in a run's folder; raises BadInput where it is not one."""
    try:
        about = read_json(run / "run.json", "settings", "backbone", "words", "classes", "tau", "data")
        needed = {"settings": SETTINGS, "backbone": ["family"], "data": ["pair"], "words": about["classes"]}
        for key, names in needed.items():
            keyed(about[key], f"its {key}", *names)
    except BadInput as error:
        raise BadInput(
            f"{run} is not the folder of a finished run ({error}); such are "
            "results/<scale>/runs/<protocol>/<backbone>/<dataset>/<method>/<seed>"
        ) from None
    return {**about, "pair": about["data"]["pair"]}


def texts_of(table: pd.DataFrame, columns: dict[str, str], path: Path) -> pd.DataFrame:
    """What `encode_rows` reads; raises BadInput for a column or cell that is not there."""
    for key, name in columns.items():
        if name not in table:
            have = known(set(table) - {PLACE})
            raise BadInput(f"{path} has no column '{name}'; it has: {have}; name the right one with --{key}")
    texts = strings(table, columns, path)
    checks.texts(texts, str(path))
    return texts.assign(label=0, id=texts[PLACE])


def with_predictions(
    table: pd.DataFrame, logits: Float[Tensor, "rows classes"], classes: list[str]
) -> pd.DataFrame:
    """The table's own columns, then the most probable classes (three, if there are) with probabilities."""
    best = torch.softmax(logits.double(), -1).topk(min(len(RANKS), len(classes)))
    made = {}
    for place, (name, probability) in enumerate(RANKS[: best.indices.shape[1]]):
        made[name] = np.array(classes, dtype=object)[best.indices[:, place].numpy()]
        made[probability] = best.values[:, place].numpy().round(6)
    return table.drop(columns=PLACE).assign(**made)


def predict_file(
    run: Path, file: Path, out: Path, *, text: str, pair: str | None, encoding: str, device: str
) -> None:
    """Read `file`, predict, write `out`; what is wrong with either shows before the model is loaded."""
    writer = named(WRITERS, out.suffix[1:].lower(), f"file format of {out},")
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    if out.resolve() == file.resolve():
        raise BadInput(f"--out is {file} itself; name another file")
    about, table = record(run), rows(file, encoding, hint="state its encoding with --encoding")
    taken = [name for names in RANKS for name in names if name in table]
    if taken:
        raise BadInput(f"{file} has a column {known(taken)} already; rename it")
    if pair and not about["pair"]:
        raise BadInput(f"{run} was trained on single texts; leave out --pair")
    columns = {"text": text, "pair": pair or "pair"} if about["pair"] else {"text": text}
    texts = texts_of(table, columns, file)
    with whole(out) as temporary:
        with free(device) as name:
            logits = apply(run, texts, torch.device(name))
        try:
            writer(with_predictions(table, logits, about["classes"]), temporary)
        except (ValueError, TypeError) as error:
            raise BadInput(f"{out}: {out.suffix[1:]} cannot hold these columns ({error})") from None


def beside(file: Path) -> Path:
    """Where predictions go unless told otherwise."""
    return file.with_name(f"{Path(file.name.removesuffix('.xz')).stem}.predictions.csv")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt predict", description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument("file", type=Path, metavar="FILE", help="rows to classify: csv, tsv, jsonl, parquet")
    parser.add_argument("--out", type=Path, help="file to write (default: FILE's name + .predictions.csv)")
    parser.add_argument("--text", default="text", help="the column with the text")
    parser.add_argument("--pair", help="that with the second text, where the run's data had one (pair)")
    parser.add_argument("--encoding", default="utf-8-sig", help="of FILE, where it is text")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options = vars(parser.parse_args())
    out = options.pop("out") or beside(options["file"])
    predict_file(out=out, **options)
    print(out)


WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "jsonl": lambda table, path: table.to_json(path, orient="records", lines=True, force_ascii=False),
    "parquet": lambda table, path: table.to_parquet(path, index=False),
}

if __name__ == "__main__":
    stage(main)
