"""Annotate texts of a corpus with a model's probabilities of five sentiments (PPT, section 3.2.3).

python -m tailprompt.annotate --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out OUT.parquet

The row's `model` is {hub, revision} or {folder}. Its five classes go from the worst to the best.
It must not have been trained on a data set that is evaluated.
Stage prepare turns the probabilities into pseudo-labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tailprompt import files, seals
from tailprompt.data import download as sources
from tailprompt.data.sentiment import THRESHOLDS
from tailprompt.data.unlabelled import candidates
from tailprompt.errors import BadInput, counted, few, stage
from tailprompt.machine.gpus import DEVICE, SLOTS, free
from tailprompt.machine.progress import shown
from tailprompt.model.checkpoints import check_pinned
from tailprompt.plan.digests import check_corpora, check_folder

BATCH, LENGTH = 128, 256  # texts a batch; tokens a text, as in the released code


@torch.inference_mode()
def probabilities(texts: list[str], stated: dict, device: torch.device) -> list[list[float]]:
    """The model's probabilities of the classes for each text, in the order of the texts."""
    model, tokenizer = load(stated)
    model.to(device).eval()
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # to pad little
    shares: dict[int, list[float]] = {}
    with shown("annotate", total=len(order), unit="text") as show:
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            chosen = [texts[at] for at in part]
            inputs = tokenizer(chosen, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
            scores = model(**inputs.to(device)).logits.float().softmax(-1)
            shares.update(zip(part, scores.tolist(), strict=True))
            show(len(shares))
    return [shares[at] for at in range(len(texts))]


def load(stated: dict) -> tuple:
    """The model and its tokenizer; raises BadInput unless the model is complete and has five classes."""
    where = stated.get("folder") or stated["hub"]
    check_pinned(stated)
    pinned = {} if "folder" in stated else {"revision": stated["revision"]}
    if "folder" in stated and not Path(where).is_dir():
        raise BadInput(f"annotator {where}: there is no folder")
    with files.reading(f"annotator {where}"):
        model, report = AutoModelForSequenceClassification.from_pretrained(
            where, **pinned, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(where, **pinned)
    if model.config.num_labels != len(THRESHOLDS):
        raise BadInput(
            f"annotator {where} has {counted(model.config.num_labels, 'class')}; {len(THRESHOLDS)} are needed"
        )
    if absent := sorted(report["missing_keys"]):  # transformers would draw them at random
        raise BadInput(
            f"annotator {where}: its weights lack {few(absent)}; take a model trained on five classes"
        )
    return model, tokenizer


def main() -> None:
    """Take texts from the corpus, annotate them and write them."""
    parser = argparse.ArgumentParser(
        prog="tailprompt annotate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources.add_options(parser)
    parser.add_argument("--out", type=Path, required=True, help="the Parquet file to write")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help=DEVICE)
    parser.add_argument("--slots", type=int, default=1, help=SLOTS)
    options = parser.parse_args()
    row = files.json_option(options.dataset, "--dataset", "name", "model")
    paths, _ = sources.found(row, data_dir=options.data_dir, raw=options.raw, lock=options.lock)
    table = candidates(paths, row).drop(columns="label")
    with free(options.device, slots=options.slots) as device:
        shares = probabilities(table["text"].tolist(), row["model"], torch.device(device))
    asked = files.asked_of(options.dataset)
    check_corpora(asked.get("corpus"), paths.values())
    check_folder(asked.get("model"), Path(row["model"].get("folder", "")))
    with files.whole(options.out) as temporary:
        table.assign(probabilities=shares).to_parquet(temporary, index=False)
    seals.seal(options.out)


if __name__ == "__main__":
    stage(main)
