"""Blocks of tables and figures, as `blocks.expand` returns them, for made-up runs."""

from __future__ import annotations

from pathlib import Path

import made_up

TITLES = {
    "cls-tanh": "CLS-tuning (T)",
    "cls-tanh-focal": "CLS-tuning (T) w/ focal loss",
    "prompt": "Prompt-tuning",
    "prompt-focal": "Prompt-tuning w/ focal loss",
}


def block(kind: str, methods=("cls-tanh", "prompt"), datasets=("made",), seeds=(1, 2, 3), **more) -> dict:
    """An expanded block of a paper `glee` whose table is `table2`."""
    runs = [
        {"dataset": dataset, "method": method, "run": method, "backbone": "mini"}
        for dataset in datasets
        for method in methods
    ]
    made = {
        "paper": "glee",
        "name": "table2",
        "kind": kind,
        "protocol": "glee",
        "caption": "A comparison",
        "methods": [{"name": method, "title": TITLES.get(method, method)} for method in methods],
        "datasets": [{"dataset": dataset} for dataset in datasets],
        "seeds": list(seeds),
        "runs": runs,
        "scale": "tiny",
    }
    return made | more


def results(root: Path, spec: dict, *, leave_out=(), **report) -> Path:
    """Write the data and runs of a block, but for the (method, seed) left out; returns the root."""
    for row in spec["datasets"]:
        made_up.data(root, row["dataset"], **report)
        for run in spec["runs"]:
            for seed in spec["seeds"]:
                if run["dataset"] == row["dataset"] and (run["method"], seed) not in leave_out:
                    made_up.run(root, run["run"], seed, dataset=row["dataset"])
    return root
