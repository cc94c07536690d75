"""Write the model card of a pre-trained backbone: its form, recipe, data, cost, held-out scores and limits.

`python -m tailprompt.card --about pretraining.json --texts JSON --out README.md`, where the texts are the
recipe's `card` in `config/pretraining.yaml`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt.errors import stage
from tailprompt.files import json_option, read_json, whole


def card(about: dict, texts: dict) -> str:
    """The model card as Markdown. about: what pre-training recorded; texts: what only a person knows."""
    recipe, data, held = about["recipe"], about["data"], about["held_out"]
    shape = ", ".join(f"{key} {value}" for key, value in recipe["shape"].items())
    how = {key: recipe[key] for key in STEPS if key in recipe}
    counts = [f"{key.replace('_', ' ')} {data[key]:,}" for key in COUNTS if key in data]
    rows = {
        "form": f"{shape}; {about['parameters']:,} parameters, float16",
        "pre-training": f"{recipe['task'].replace('_', ' ')}"
        + (f", from {recipe['start']}" if "start" in recipe else "")
        + f"; {', '.join(f'{key} {value}' for key, value in how.items())}",
        "data": f"{texts['data']} ({', '.join(counts)})",
        "licences": texts["licences"],
        "cost": f"{about['seconds']:,.0f} s on one {about['device']}",
        "held out": f"loss {held['held_out_loss']:.3f}, accuracy {held['held_out_accuracy']:.3f}",
        "measured": texts.get("measured"),
        "has seen": texts["seen"],
        "limits": texts["limits"],
    }
    lines = [f"| {key} | {value} |" for key, value in rows.items() if value]
    origin = "Made by `snakemake backbones --configfile config/mini.yaml` from `config/pretraining.yaml`."
    return "\n".join([f"# {about['name']}", "", "| | |", "|---|---|", *lines, "", origin, ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt card", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--about", required=True, type=Path, metavar="FILE", help="the pretraining.json of a checkpoint"
    )
    parser.add_argument(
        "--texts",
        required=True,
        metavar="JSON|FILE",
        help="the `card` of the recipe in config/pretraining.yaml: data, licences, seen, limits",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the README.md to write")
    options = parser.parse_args()
    about = read_json(options.about, "name", "recipe", "data", "parameters", "seconds", "device", "held_out")
    texts = json_option(options.texts, "--texts", "data", "licences", "seen", "limits")
    with whole(options.out) as temporary:
        temporary.write_text(card(about, texts), "utf-8")


STEPS = "steps batch length long reads rate span augment lr warmup weight_decay precision".split()
COUNTS = ("documents", "classes", "train", "held_out")

if __name__ == "__main__":
    stage(main)
