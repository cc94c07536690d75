"""Speed of training: our loop beside transformers' Trainer, on the same model, data and batch size.

Both train the whole mini backbone that ships and a Tanh CLS head on the demo's data in float32 on the same
device. Both use AdamW, clipping and padding to the longest text of a batch. Turns alternate, and medians are
printed.

Needs accelerate, which Trainer asks for.

    PYTHONPATH=src python benchmarks/against_trainer.py --steps 20 --turns 3
"""

from __future__ import annotations

from functools import partial

import torch
import trainer
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
)

from tailprompt.components.run import Run
from tailprompt.data import table as data
from tailprompt.inputs.examples import encode_rows
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.plan import blocks
from tailprompt.plan.config import load
from tailprompt.plan.settings import resolved


def ours(rows, classes: int, row: dict, told: Run, device: torch.device) -> float:
    """Seconds of our loop."""
    backbone = backbones.load(row)
    model = compose(backbone, told, words=[[token] for token in range(5, 5 + classes)]).to(device)
    examples = encode_rows(rows, backbone, told).to(device)
    return trainer.seconds_of_ours(model, examples, device, batch=told.training.batch, lr=1e-4)


def trainers(rows, classes: int, row: dict, told: Run, device: torch.device) -> float:
    """Seconds of Trainer.train on the same rows."""
    tokenizer = AutoTokenizer.from_pretrained(row["path"])
    model = AutoModelForSequenceClassification.from_pretrained(
        row["path"], num_labels=classes, dtype=torch.float32
    )
    limit = {"truncation": True, "max_length": told.input.max_length}
    encoded = tokenizer(rows["text"].tolist(), **limit)
    examples = [
        {key: encoded[key][i] for key in encoded} | {"labels": label} for i, label in enumerate(rows["label"])
    ]
    collate = DataCollatorWithPadding(tokenizer)
    return trainer.seconds(model, examples, collate, device, batch=told.training.batch, lr=1e-4)


def main() -> None:
    parser = trainer.options(__doc__.splitlines()[0])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    device = torch.device(options.device)
    config = load(["config/demo.yaml"])
    point = next(point for point in blocks.all_points(config) if point.method == "cls-tanh")
    told, row = resolved(config, point).run, config["backbones"][point.backbone]
    table, classes = data.read(f"results/demo/data/{point.dataset}.parquet")
    rows = table[table["split"] == "train"].head(options.steps * told.training.batch)
    runs = [partial(run, rows, len(classes), row, told, device) for run in (ours, trainers)]
    trainer.compare(*runs, "Trainer", examples=len(rows), turns=options.turns, device=options.device)


if __name__ == "__main__":
    main()
