"""Components of `tuner`: what is trained besides the head."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import component, key, part

IMAGES = {"input": ("pixels",)}
PLAIN = {"input": ("plain", "pooled", "options", "windows")}  # texts without a template
TEXTS = {"input": (*PLAIN["input"], "prompted", "formatted")}
NETWORK = {"input": (*TEXTS["input"], *IMAGES["input"])}  # what a network reads
LAYERS = {
    "default": "all",
    "says": "layers that have it, counted from 1: all, or from-to as 17-24",
    "pattern": "^(all|[1-9][0-9]*-[1-9][0-9]*)$",
    "description": "all, or from-to as 17-24",
}
BODY_DROPOUT = {"default": False, "says": "true drops in the frozen body too, as released"}


@component("beside")
class Beside:
    """What else may learn in a ViT (LPT Table 15)."""

    norms: Literal["frozen", "tuned"] = key("frozen", "tuned trains all layer norms")
    adapter: int | str = key(
        0,
        "width of an adapter parallel to each MLP, 0 for none (AdaptFormer); by_classes: LIFT's, with which "
        "all adapters have about as many parameters as a classifier",
        minimum=0,
        pattern="^by_classes$",
        description="by_classes or a whole number from 0",
    )
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
    body_dropout: bool = key(False, "true drops in the frozen body too while the head learns", when=NETWORK)
    beside: Beside = part(when=IMAGES)


@component("before_plain")
class BeforePlain:
    """What else is said of a prompt before plain input (the baseline PT of P-Tuning v2)."""

    embedded: Literal["correct", "as_released"] = key(
        "correct", "as_released adds positions, types and norm to the text twice (code of P-Tuning v2)"
    )
    body_dropout: bool = key(**BODY_DROPOUT)


@component("soft_prompt")
class SoftPrompt:
    """Vectors before the input of a frozen language model (PPT Eq. 2)."""

    reads = ("text",)
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
    plain: BeforePlain = part(when=PLAIN)


@component("prefix")
class Prefix:
    """Keys and values before those of the input, in each chosen layer (P-Tuning v2, section 3)."""

    reads = ("text", "image")
    goes_on = ("prefix",)
    length: int = key(20, "keys and values a layer (P-Tuning v2, section 3.3)", minimum=1)
    layers: str = key(**LAYERS)
    mlp: bool = key(False, "true makes them by a network of two layers, which is folded away on saving")
    mlp_hidden: int = key(512, "width of its hidden layer", minimum=1)
    prefix_dropout: float = key(0.1, "dropout of keys and values", minimum=0, exclusiveMaximum=1)
    positions: Literal["kept", "shifted"] = key(
        "kept", "shifted counts the first word's position from length, as released", when=TEXTS
    )
    body_dropout: bool = key(**BODY_DROPOUT)
    beside: Beside = part(when=IMAGES)


@component("lora")
class Lora:
    """Low-rank changes of the query and value projections (Hu et al. 2022; peft's layers)."""

    reads = ("text", "image")
    goes_on = ("lora",)
    rank: int = key(8, "rank of each change", minimum=1)
    alpha: float = key(16.0, "each change is multiplied by alpha / rank", exclusiveMinimum=0)
    lora_dropout: float = key(0.0, "dropout of what each change reads", minimum=0, exclusiveMaximum=1)
    layers: str = key(**LAYERS)
    body_dropout: bool = key(**BODY_DROPOUT)
    beside: Beside = part(when=IMAGES)


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
