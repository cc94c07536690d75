"""A run is a composition: input x tuner x head, and how it is trained and evaluated."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import choice, component, key, part
from tailprompt.components.heads import Linear, Predictor, Verbalizer
from tailprompt.components.inputs import Formatted, Pixels, Plain, Prompted
from tailprompt.components.training import Training
from tailprompt.components.tuners import Frozen, Full, GroupPrompts, Prompts, PromptsShallow, SoftPrompt

START = {
    "additionalProperties": False,
    "properties": {
        "protocol": {"type": "string"},
        "backbone": {"type": "string"},
        "dataset": {"type": "string"},
        "method": {"type": "string"},
        "seed": {"$ref": "config.schema.yaml#/$defs/seed"},
        # instead of dataset: that of `languages` for the form of the data set, or for all
        "prompts": {"enum": ["own", "unified"]},
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


@component("run")
class Run:
    """All that a run is told."""

    input: Plain | Prompted | Formatted | Pixels = choice("plain", "what the backbone reads", image="pixels")
    tuner: Full | Frozen | SoftPrompt | Prompts | PromptsShallow | GroupPrompts = choice(
        "full", "what is trained besides the head"
    )
    head: Linear | Verbalizer | Predictor = choice("linear", "what makes class logits", image="predictor")
    training: Training = part(when={"rows": ("train",)})
    precision: Literal["float32", "tf32", "bfloat16"] = key("float32", "the last two where the GPU has them")
    select: Literal["f1", "accuracy", "last"] = key(
        says="the dev score that picks the step (f1 is macro); last keeps the last weights"
    )
    eta: float = key(
        0.0,
        "weight norms raised to eta divide the logits whenever the model predicts (GLEE's eta-norm)",
        minimum=0,
    )
    eta_bias: bool = key(False, "true divides the bias too, as released")
    tau: tuple[float, ...] = key(
        (0.0,),
        "the same after training only, the best on dev (Kang et al. 2020)",
        items={"type": "number", "minimum": 0},
        minItems=1,
    )
    start: dict | None = key(None, "the run whose weights this one begins from", **START)
