"""What the settings of a tuner of images must satisfy; standard library only, so that a plan can ask too."""

from __future__ import annotations

from tailprompt.errors import BadInput

# the settings of `tuners.vision.prompted`, by these names
SETTINGS = (
    "tuner",
    "length",
    "prompt_init",
    "prompt_dropout",
    "pool",
    "chosen",
    "shared_blocks",
    "query",
    "joint",
    "norms",
    "adapter",
    "border",
)


def check(settings: dict, *, depth: int | None = None, size: int | None = None) -> None:
    """Raise BadInput where settings of an image tuner, with its `start`, do not go together.

    depth: blocks of the backbone; size: pixels a side of its images; what needs them is skipped where
    they are not known yet.
    """
    if size is not None and not 0 <= 2 * settings["border"] < size:
        raise BadInput(f"border {settings['border']} leaves nothing of {size} pixels a side; lower it")
    if settings["query"] == "pretrained" and settings["norms"] == "tuned":
        raise BadInput("query: pretrained takes the backbone as it was, so norms must be frozen")
    if settings["tuner"] == "group_prompts":
        check_groups(settings, depth)


def check_views(views: int, test_zoom: float, size: int | None = None) -> None:
    """Raise BadInput where test images give no five crops of `size` pixels a side."""
    larger = test_zoom > 1 if size is None else round(test_zoom * size) > size
    if views not in (1, 5) or (views == 5 and not larger):
        raise BadInput(f"views is 1, or 5 with test_zoom above 1, not {views} with {test_zoom:g}")


def check_groups(settings: dict, depth: int | None) -> None:
    """The same for what group prompts alone have."""
    pool, chosen, shared = settings["pool"], settings["chosen"], settings["shared_blocks"]
    if not 1 <= chosen <= pool:
        raise BadInput(f"chosen {chosen} of a pool of {pool} group prompts; chosen goes from 1 to pool")
    if depth is not None and not 0 <= shared < depth:
        raise BadInput(
            f"shared_blocks {shared} leaves no block for group prompts; the backbone has {depth}: "
            f"choose 0 to {depth - 1}"
        )
    if settings["joint"] == (settings["start"] is not None):
        raise BadInput(
            "group_prompts takes its shared prompts either from the run named in start or, with joint: true, "
            "learns them too; state one of the two"
        )
