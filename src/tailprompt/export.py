"""Write the trained soft prompt, prefix or LoRA of a run as an adapter that peft loads.

`tailprompt export RUN FOLDER` writes it. A method with `start: {folder: FOLDER}` begins from such an adapter
of a prompt or prefix.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file

from tailprompt.errors import BadInput, named, stage
from tailprompt.files import keyed, read_json, reading
from tailprompt.model import adapter, lora_adapter
from tailprompt.model.adapter_config import KINDS
from tailprompt.model.weights import file_of
from tailprompt.plan.either import with_weights
from tailprompt.training.record import finished

EXPORTED = (*KINDS, "lora")  # tuners


def export(run: Path, folder: Path) -> None:
    """Write the prompt or changes of a finished run to `folder`, which is new or empty.

    Raises BadInput if the folder is not empty, or the run is not finished or trained nothing that peft has.
    """
    run = with_weights(run)
    with finished(run):
        about = read_json(run / "run.json", "settings", "backbone")
        settings = keyed(about["settings"], "its settings", "tuner")
        row = keyed(about["backbone"], "its backbone", "family")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise BadInput(f"{folder} is there and not empty; name another folder for the adapter")
    tuner = settings["tuner"]
    check_exportable(run, tuner, settings)
    path = file_of(run)
    with reading(path):
        tensors = load_file(path)
    if tuner == "lora":
        lora_adapter.write(folder, tensors, settings, row)
        return
    if tuner == "prefix":
        prompt = adapter.rows(tensors["body.prefix.keys"], tensors["body.prefix.values"])
    else:
        prompt = settings["prompt_scale"] * named(tensors, "body.prompts", f"tensor in {path},")
    adapter.write(folder, prompt, row, tuner=tuner)


WHAT = "export writes the soft_prompt, whole prefix or lora (tuners) of a run on texts"
WITHOUT = {  # tuner -> why peft cannot have what a run with it trained
    "full": "tuned the whole backbone, which is in its weights if keep: true",
    "frozen": "trained its head alone, and an adapter has none",
    "prompts": "trained prompts of a ViT, for which peft has no format",
    "prompts_shallow": "trained prompts of a ViT, for which peft has no format",
    "group_prompts": "trained prompts of a ViT, for which peft has no format",
}


def check_exportable(run: Path, tuner: str, settings: dict) -> None:
    """Raise BadInput, with the reason and with what can be exported, for a run that peft cannot have."""
    if tuner not in EXPORTED:
        raise BadInput(f"{run} {WITHOUT.get(tuner, f'has tuner: {tuner}')}; {WHAT}")
    if settings.get("input") == "pixels":
        raise BadInput(f"{run} trained on images, for which peft has no format; {WHAT}")
    if settings.get("embedded") == "as_released":
        raise BadInput(f"{run} embeds its prompt twice (embedded: as_released), as peft does not; {WHAT}")
    if tuner == "prefix" and (settings["layers"], settings.get("positions")) != ("all", "shifted"):
        had = f"layers: {settings['layers']} and positions: {settings.get('positions')}"
        raise BadInput(
            f"{run}: peft's prefixes are of all layers and shift positions, but this one has {had}; {WHAT}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt export", description=__doc__.split("\n")[0])
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="folder of a run with a soft prompt, LoRA, or a prefix of all layers, positions: shifted",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="new or empty folder for the adapter")
    options = parser.parse_args()
    export(options.run, options.folder)
    print(options.folder)


if __name__ == "__main__":
    stage(main)
