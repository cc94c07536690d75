"""What a backbone of some shape can be told; standard library only, so that the plan asks too."""

from __future__ import annotations

from dataclasses import replace
from math import floor, log2

from tailprompt.errors import BadInput

RELATIVE = ("t5", "deberta", "deberta-v2")  # families whose layers know how far tokens are apart, not where


def check_length(
    max_length: int,
    positions: int | float,
    prompt_length: int,
    *,
    backbone: str = "the backbone",
    prompt: str = "soft prompt",
) -> None:
    """Raise BadInput where texts, and the prompt before them, may have more tokens than positions."""
    left = positions - prompt_length
    if max_length > left:
        beside, other = (f" beside its {prompt}", ", or length") if prompt_length else ("", "")
        raise BadInput(
            f"max_length {max_length} is more than the {left} positions of {backbone}{beside}; "
            f"lower it{other}"
        )


MEMORY = 141e9  # bytes of the largest GPU that we know
LEARNED = 16  # bytes of a number that learns: itself, its gradient and two moments of AdamW, in float32
LEAST = 64  # the width of a backbone whose own is not known yet, which no larger one has


def check_heads(shape: dict, *, width: int | None, family: str, backbone: str) -> None:
    """Raise BadInput if attention heads do not divide the width; those of a T5 have a size of their own."""
    heads = shape.get("num_attention_heads", shape.get("num_heads"))
    if family != "t5" and type(width) is type(heads) is int and width % (heads or 1):
        raise BadInput(
            f"{backbone} has a width of {width}, which its {heads} heads do not divide; change one"
        )


def check_memory(tuner, *, width: int | None, depth: int | None, backbone: str = "the backbone") -> None:
    """Raise BadInput if what a tuner learns cannot be in the memory of any GPU.

    width, depth: of the backbone; None if unknown, which is then taken to be small.
    """
    key = next((key for key in ("length", "rank") if hasattr(tuner, key)), None)
    if key is None:
        return
    number, each = getattr(tuner, key), (width or LEAST) * (depth or 1)
    once, twice = tuner.name in ("soft_prompt", "prompts_shallow"), tuner.name in ("prefix", "lora")
    learned = number * ((width or LEAST) if once else each * (2 if twice else 1))
    if learned * LEARNED > MEMORY:
        raise BadInput(
            f"{key} {number} makes {learned:,} numbers that learn on {backbone}, which take "
            f"{learned * LEARNED / 1e9:,.0f} GB with their gradients and moments; no GPU has more than "
            f"{MEMORY / 1e9:.0f}; lower it"
        )


def places(tuner) -> int:
    """The positions that a tuner takes before the text."""
    shifted = tuner.name == "prefix" and tuner.positions == "shifted"
    return tuner.length if tuner.name == "soft_prompt" or shifted else 0


def check_text(
    tuner, max_length: int, positions: int | float, *, family: str, depth: int | None, backbone: str
) -> None:
    """Raise BadInput if a backbone for texts has too few positions or layers for a tuner.

    Or for shifted positions if they are relative. positions, depth: infinite or None if unknown.
    """
    if family in RELATIVE and getattr(tuner, "positions", None) == "shifted":
        raise BadInput(f"positions: shifted needs a table of positions, which {backbone} lacks; take kept")
    what = "prefix" if tuner.name == "prefix" else "soft prompt"
    check_length(max_length, positions, places(tuner), backbone=backbone, prompt=what)
    if depth is not None and getattr(tuner, "layers", None):
        layers_of(tuner.layers, depth, backbone=backbone)


def layers_of(layers: str, depth: int, *, backbone: str = "the backbone") -> range:
    """Layers by their index from 0. layers: `all`, or from-to, counted from 1.

    Raises BadInput for layers that the backbone does not have.
    """
    if layers == "all":
        return range(depth)
    first, last = (int(number) for number in layers.split("-"))
    if not 1 <= first <= last <= depth:
        raise BadInput(f"layers {layers} are none of {backbone}, which has {depth}; choose from 1-{depth}")
    return range(first - 1, last)


def check(tuner, *, starts: bool, depth: int | None = None, size: int | None = None) -> None:
    """Raise BadInput if the settings of a tuner for images contradict each other or the backbone.

    starts: whether the run begins from the weights of another run. depth: blocks of the backbone. size:
    pixels a side of its images. Checks that need an unknown depth or size (None) are skipped.
    """
    border = tuner.beside.border
    if size is not None and not 0 <= 2 * border < size:
        raise BadInput(f"border {border} leaves nothing of {size} pixels a side; lower it")
    if depth is not None and getattr(tuner, "layers", None):
        layers_of(tuner.layers, depth)
    if tuner.name == "group_prompts":
        check_groups(tuner, starts, depth)


def sized(tuner, *, classes: int, depth: int):
    """The settings of a tuner with the width of its adapters as a number: LIFT's code takes a power of 2."""
    if getattr(tuner, "beside", None) is None or tuner.beside.adapter != "by_classes":
        return tuner
    width = 2 ** max(0, floor(log2(classes / (2 * depth))))
    return replace(tuner, beside=replace(tuner.beside, adapter=width))


def check_groups(tuner, starts: bool, depth: int | None) -> None:
    """Raise BadInput if the settings of group prompts contradict each other or the backbone."""
    if tuner.query == "pretrained" and tuner.beside.norms == "tuned":
        raise BadInput("query: pretrained takes the backbone as it was, so norms must be frozen")
    pool, chosen, shared = tuner.pool, tuner.chosen, tuner.shared_blocks
    if not 1 <= chosen <= pool:
        raise BadInput(f"chosen {chosen} of a pool of {pool} group prompts; chosen goes from 1 to pool")
    if depth is not None and not 0 <= shared < depth:
        raise BadInput(
            f"shared_blocks {shared} leaves no block for group prompts; the backbone has {depth}: "
            f"choose 0 to {depth - 1}"
        )
    if tuner.joint == starts:
        raise BadInput(
            "group_prompts takes its shared prompts either from the run named in start or, with joint: true, "
            "learns them too; state one of the two"
        )


def check_views(views: int, test_zoom: float, size: int | None = None) -> None:
    """Raise BadInput if `views` is neither 1 nor 5, or test images are too small for five crops.

    size: pixels a side of a crop.
    """
    larger = test_zoom > 1 if size is None else round(test_zoom * size) > size
    if views not in (1, 5) or (views == 5 and not larger):
        raise BadInput(f"views is 1, or 5 with test_zoom above 1, not {views} with {test_zoom:g}")
