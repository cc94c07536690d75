"""What peft says of a soft prompt or a prefix, in adapter_config.json. No torch: the plan asks too."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import read_json

CONFIG, WEIGHTS = FILES = "adapter_config.json", "adapter_model.safetensors"
KINDS = {"soft_prompt": "PROMPT_TUNING", "prefix": "PREFIX_TUNING"}  # of tuners


def is_adapter(folder: Path) -> bool:
    """Whether a folder is peft's, not a run's."""
    return (folder / CONFIG).is_file()


def stated(
    folder: Path, *, tuner: str = "soft_prompt", length: int | None = None, width: int | None = None
) -> dict:
    """An adapter's configuration; raises BadInput where there is none, or of another kind, length or width.

    tuner: whose weights it holds. Width is compared where the adapter states its own.
    """
    for file in FILES:
        if not (folder / file).is_file():
            raise BadInput(f"{folder} has no {file}; name a folder in peft's format")
    found = read_json(folder / CONFIG, "peft_type", "num_virtual_tokens")
    kind = KINDS[tuner]
    wanted = {"peft_type": kind, "num_virtual_tokens": length, "token_dim": found.get("token_dim") and width}
    for key, value in wanted.items():
        if value and found[key] != value:
            raise BadInput(
                f"{folder} has {key} {found[key]!r}, not {value!r}; a run begins from a prompt of "
                f"peft's {kind}, as long as its tuner's length and as wide as its backbone"
            )
    return found
