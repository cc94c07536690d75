"""Components of `tuner`: what is trained besides the head."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import component, key, part

IMAGES = {"input": ("pixels",)}


@component("beside")
class Beside:
    """What else may learn in a ViT (LPT Table 15)."""

    norms: Literal["frozen", "tuned"] = key("frozen", "tuned trains all layer norms")
    adapter: int = key(0, "width of an adapter parallel to each MLP, 0 for none (AdaptFormer)", minimum=0)
    border: int = key(0, "width in pixels of a learned frame, 0 for none (Visual Prompting)", minimum=0)


@component("full")
class Full:
    """Every parameter of the body."""

    reads = ("text", "image")
    goes_on = ("full", "frozen")
    keep: bool = key(False, "true writes all trained weights, not only the head's")
    beside: Beside = part(when=IMAGES)


@component("frozen")
class Frozen:
    """Nothing: a linear probe."""

    reads = ("text", "image")
    goes_on = ("frozen",)
    keep: bool = key(False, "write the body too, where the run began from a tuned one")
    body_dropout: bool = key(False, "true drops in the frozen body too while the head learns")
    beside: Beside = part(when=IMAGES)


@component("soft_prompt")
class SoftPrompt:
    """Vectors before the input of a frozen language model (PPT Eq. 2)."""

    reads = ("text",)
    heads = ("verbalizer",)
    goes_on = ("soft_prompt",)
    length: int = key(100, "number of vectors (PPT section 4.1)", minimum=1)
    init: Literal["normal", "vocabulary", "top_words", "label_words", "task_words", "as_released"] = key(
        "normal", "initial vectors (PPT Table 2); as_released makes them all equal"
    )
    prompt_scale: float = key(
        1.0,
        "factor of the prompt in the body's input; T5's rows say 100, for the learning rates of PPT's code",
        exclusiveMinimum=0,
    )


INIT = Literal["trunc_normal", "xavier"]
FIRST = {"default": "trunc_normal", "says": "trunc_normal (SD 0.02, LPT) | xavier (VPT)"}
DROPOUT = {"default": 0.0, "says": "dropout of prompts", "minimum": 0, "exclusiveMaximum": 1}


@component("prompts")
class Prompts:
    """Prompts in every block of a ViT (VPT-deep; LPT's shared prompts, section 4.1)."""

    reads = ("image",)
    goes_on = ("prompts",)
    length: int = key(10, "prompts a block (LPT appendix B)", minimum=1)
    init: INIT = key(**FIRST)
    prompt_dropout: float = key(**DROPOUT)
    beside: Beside = part()


@component("prompts_shallow")
class PromptsShallow:
    """Prompts before the first block of a ViT only (VPT-shallow)."""

    reads = ("image",)
    goes_on = ("prompts_shallow",)
    length: int = key(10, "number of prompts (LPT appendix B)", minimum=1)
    init: INIT = key(**FIRST)
    prompt_dropout: float = key(**DROPOUT)
    beside: Beside = part()


@component("group_prompts")
class GroupPrompts:
    """LPT's phase 2: group prompts, chosen for each image, beside the shared prompts (section 4.2)."""

    reads = ("image",)
    goes_on = ("prompts", "group_prompts")
    length: int = key(10, "prompts a block (LPT appendix B)", minimum=1)
    init: INIT = key(**FIRST)
    prompt_dropout: float = key(**DROPOUT)
    pool: int = key(20, "m: group prompts to choose from (LPT appendix B)", minimum=1)
    chosen: int = key(2, "k: group prompts averaged for an image (LPT Eqs. 2 and 3)", minimum=1)
    shared_blocks: int = key(6, "K: first blocks, with shared prompts only (LPT section 4.2)", minimum=0)
    query: Literal["shared", "pretrained"] = key(
        "shared", "the query: the class token of phase 1, or of the plain ViT (LPT Table 10)"
    )
    joint: bool = key(False, "true trains shared and group prompts together (LPT Table 9)")
    key_weight: float = key(1.0, "weight of 1 - cosine(query, keys) in the loss (LPT Eq. 5)", minimum=0)
    key_scaled: bool = key(False, "true multiplies it by the branch's weight too, as released")
    beside: Beside = part()
