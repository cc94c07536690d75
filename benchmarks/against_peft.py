"""Speed of prompt tuning: our loop beside peft in transformers' Trainer, on the same model, data and batches.

Both train 100 soft prompt vectors before the frozen T5 that ships, on the demo's data in float32 on the same
device. Both use AdamW, clipping, the loss over the whole vocabulary at the answer, and padding to the longest
text of a batch. Turns alternate, and medians are printed.

Needs peft and accelerate, which Trainer asks for, and the demo's data (`make demo`).

    PYTHONPATH=src python benchmarks/against_peft.py --steps 20 --turns 3
"""

from __future__ import annotations

from functools import partial

import torch
import trainer
from peft import PromptTuningConfig, get_peft_model
from transformers import T5ForConditionalGeneration

from tailprompt.components.heads import Verbalizer
from tailprompt.components.inputs import Formatted
from tailprompt.components.run import Run
from tailprompt.components.tuners import SoftPrompt
from tailprompt.data import table as data
from tailprompt.inputs.examples import encode_rows
from tailprompt.inputs.templates import template_named
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.plan import blocks
from tailprompt.plan.config import load

ROW = {"family": "t5", "path": "workflow/resources/backbones/t5-mini"}
LENGTH = 100  # vectors of the prompt
RUN = Run(
    input=Formatted(template=template_named("soft", "en", "ssc"), language="en", max_length=64),
    tuner=SoftPrompt(length=LENGTH),
    head=Verbalizer(decoding="open"),
    select="last",
)
FIRST = 50  # an ordinary token: class c is answered with token FIRST + c


def answers(classes: int) -> list[list[int]]:
    """A token for each class; speed does not depend on which."""
    return [[FIRST + c] for c in range(classes)]


def ours(rows, classes: int, batch: int, device: torch.device) -> float:
    """The seconds of our loop."""
    backbone = backbones.load(ROW)
    model = compose(backbone, RUN, words=answers(classes), texts=()).to(device)
    examples = encode_rows(rows, backbone, RUN).to(device)
    return trainer.seconds_of_ours(model, examples, device, batch=batch, lr=1e-2)


def pefts(rows, classes: int, batch: int, device: torch.device) -> float:
    """The seconds of Trainer.train on the same token ids."""
    backbone = backbones.load(ROW)
    model = T5ForConditionalGeneration.from_pretrained(ROW["path"], dtype=torch.float32)
    model = get_peft_model(model, PromptTuningConfig(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=LENGTH))
    examples = encode_rows(rows, backbone, RUN)
    asked = torch.tensor([0, backbones.sentinel(backbone.tokenizer)])

    def collate(chosen: list[dict]) -> dict[str, torch.Tensor]:
        inputs, labels = examples.batch(torch.tensor([row["index"] for row in chosen]))
        return {
            "input_ids": inputs["input_ids"],
            "attention_mask": inputs["attention_mask"],
            "decoder_input_ids": asked.expand(len(labels), -1),
            "labels": torch.stack([torch.full_like(labels, -100), FIRST + labels], dim=1),
        }

    rows_by_index = [{"index": i} for i in range(len(rows))]
    return trainer.seconds(model, rows_by_index, collate, device, batch=batch, lr=1e-2)


def main() -> None:
    parser = trainer.options(__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    device = torch.device(options.device)
    config = load(["config/demo.yaml"])
    dataset = next(point.dataset for point in blocks.all_points(config) if point.protocol == "glee")
    table, classes = data.read(f"results/demo/data/{dataset}.parquet")
    rows = table[table["split"] == "train"].head(options.steps * options.batch)
    runs = [partial(run, rows, len(classes), options.batch, device) for run in (ours, pefts)]
    trainer.compare(*runs, "peft", examples=len(rows), turns=options.turns, device=options.device)


if __name__ == "__main__":
    main()
