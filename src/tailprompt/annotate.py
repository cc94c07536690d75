"""Stage annotate: a model's five sentiment probabilities of texts from a corpus (PPT, section 3.2.3).

python -m tailprompt.annotate --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out OUT.parquet

The row's `model` ({hub, revision}, or a {folder}) must not have been trained on a data set that is evaluated;
its five classes go from the worst to the best. Prepare makes the pseudo-labels from what is written here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tailprompt import files
from tailprompt.data import download as sources
from tailprompt.data.sentiment import THRESHOLDS
from tailprompt.data.unlabelled import candidates
from tailprompt.errors import BadInput, few, stage
from tailprompt.gpus import free

BATCH, LENGTH = 128, 256  # texts, tokens of a text as released


@torch.inference_mode()
def probabilities(texts: list[str], stated: dict, device: torch.device) -> list[list[float]]:
    """The model's probabilities of each text, in the order of the texts."""
    model, tokenizer = load(stated)
    model.to(device).eval()
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # little padding
    found: dict[int, list[float]] = {}
    for start in tqdm(range(0, len(order), BATCH), desc="annotate", unit="batch"):
        part = order[start : start + BATCH]
        chosen = [texts[at] for at in part]
        inputs = tokenizer(chosen, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
        scores = model(**inputs.to(device)).logits.float().softmax(-1)
        found.update(zip(part, scores.tolist(), strict=True))
    return [found[at] for at in range(len(texts))]


def load(stated: dict) -> tuple:
    """The model and its tokenizer; raises BadInput unless it is there whole and has five classes."""
    where = stated.get("folder") or stated["hub"]
    pinned = {} if "folder" in stated else {"revision": stated["revision"]}
    if "folder" in stated and not Path(where).is_dir():
        raise BadInput(f"annotator {where}: there is no folder")
    with files.reading(f"annotator {where}"):
        model, found = AutoModelForSequenceClassification.from_pretrained(
            where, **pinned, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(where, **pinned)
    if model.config.num_labels != len(THRESHOLDS):
        raise BadInput(
            f"annotator {where} has {model.config.num_labels} classes; {len(THRESHOLDS)} are needed"
        )
    if absent := sorted(found["missing_keys"]):  # they would be drawn at random
        raise BadInput(
            f"annotator {where}: its weights lack {few(absent)}; take a model trained on five classes"
        )
    return model, tokenizer


def main() -> None:
    """Take texts from the corpus, annotate them and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources.add_options(parser)
    parser.add_argument("--out", type=Path, required=True, help="the Parquet to write")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--slots", type=int, default=1, help="processes that may share a card")
    options = parser.parse_args()
    row = files.json_object(options.dataset, "--dataset", "name", "model")
    paths, _ = sources.found(row, data_dir=options.data_dir, raw=options.raw, lock=options.lock)
    table = candidates(paths, row).drop(columns="label")
    with free(options.device, slots=options.slots) as device:
        found = probabilities(table["text"].tolist(), row["model"], torch.device(device))
    with files.whole(options.out) as temporary:
        table.assign(probabilities=found).to_parquet(temporary, index=False)


if __name__ == "__main__":
    stage(main)
