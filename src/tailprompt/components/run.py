"""A run is composed of an input, a tuner and a head, and of how it is trained and evaluated."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import choice, component, key, part
from tailprompt.components.heads import (
    ClassMeans,
    Linear,
    LogisticRegression,
    Neighbours,
    Pooler,
    Predictor,
    Verbalizer,
)
from tailprompt.components.inputs import Formatted, Options, Pixels, Plain, Pooled, Prompted, Tfidf, Windows
from tailprompt.components.pairs import Pairs
from tailprompt.components.training import Training
from tailprompt.components.tuners import (
    Frozen,
    Full,
    GroupPrompts,
    Lora,
    Prefix,
    Prompts,
    PromptsShallow,
    SoftPrompt,
)

START = {
    "additionalProperties": False,
    "properties": {
        "protocol": {"type": "string"},
        "backbone": {"type": "string"},
        "dataset": {"type": "string"},
        "method": {"type": "string"},
        "seed": {"$ref": "config.schema.yaml#/$defs/seed"},
        # instead of dataset: the one in `languages` for the form of the data set, or for all forms; or the
        # joined sets that the row of the data set names
        "prompts": {"enum": ["own", "unified", "joined"]},
        "head": {"enum": ["fresh"]},  # what is not taken: the run has a head of its own
        "folder": {"type": "string", "$ref": "config.schema.yaml#/$defs/path"},  # a prompt in peft's format
    },
    "dependentSchemas": {
        "folder": {
            "maxProperties": 1,
            "description": "a folder alone, or the keys of a run alone (those of a row below it stay: write "
            "a row of your own)",
        },
        "prompts": {
            "properties": {
                "dataset": {
                    "not": {},
                    "description": "read beside prompts, which names a data set itself; leave one of "
                    "them out",
                }
            }
        },
    },
}

PAIRED = ("full", "lora", "prefix", "soft_prompt")  # tuners that learn from pairs before a head is fitted


@component("run")
class Run:
    """All settings of a run."""

    input: Plain | Pooled | Tfidf | Prompted | Formatted | Options | Windows | Pixels = choice(
        "plain", "what the backbone reads", image="pixels"
    )
    tuner: Full | Frozen | SoftPrompt | Prefix | Lora | Prompts | PromptsShallow | GroupPrompts = choice(
        "full", "what is trained besides the head"
    )
    head: Linear | Verbalizer | Predictor | Pooler | LogisticRegression | Neighbours | ClassMeans = choice(
        "linear", "what makes class logits", image="predictor"
    )
    training: Training = part(when={"rows": ("train",)})
    pairs: Pairs = part(when={"rows": ("pairs",)})
    precision: Literal["float32", "tf32", "bfloat16"] = key(
        "float32", "format of numbers; tf32 and bfloat16 need a GPU that has them"
    )
    select: Literal["f1", "accuracy", "f1_as_released", "last"] = key(
        says="the dev score that selects the step (f1 is macro; f1_as_released is of semantic roles); last "
        "keeps the last weights"
    )
    eta: float = key(
        0.0,
        "logits are divided by weight norms to the power eta in every prediction (GLEE's eta-norm)",
        minimum=0,
    )
    eta_bias: bool = key(False, "true divides the bias too, as released")
    tau: tuple[float, ...] = key(
        (0.0,),
        "the same after training only, with the best power on dev (Kang et al. 2020)",
        items={"type": "number", "minimum": 0},
        minItems=1,
    )
    start: dict | None = key(None, "the run, or the folder of an adapter, to begin from", **START)


def repeated(run: Run) -> tuple[str, ...]:
    """The splits that give the head the same vectors in every pass over them.

    Dev and test do if nothing below the head learns. The training examples do if nothing random happens to
    them and the body either, and the loss reads no more than the vectors.
    """
    tuner, told = run.tuner, run.training
    if tuner.name == "frozen" and getattr(run.head, "fitted", False):
        return ("train", "dev", "test")
    if told is None or tuner.name != "frozen":
        return ()
    beside, views = tuner.beside, told.images
    if beside and (beside.norms == "tuned" or beside.adapter or beside.border):
        return ()
    changed = views and (views.augment.name != "none" or views.flip or views.mixup)
    if changed or tuner.body_dropout or getattr(run.input, "sentinel_loss", False):
        return ("dev", "test")
    return ("train", "dev", "test")
