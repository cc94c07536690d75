"""Configurations for tests: the scales that ship, each read once, and a project with a small one."""

from functools import cache
from pathlib import Path

from tailprompt.plan import config

SMALL = "tests/small.yaml"


@cache
def scale(name: str) -> dict:
    """A scale of config/, not to be changed: lay changes over it with `overlay.merge`."""
    return config.load([f"config/{name}.yaml"])


def small_project(root: Path) -> Path:
    """`root` with the schemas, no rows that ship, and SMALL as its default scale."""
    (root / "config").mkdir()
    for file in config.SHARED:
        (root / file).touch()
    (root / config.SCALE).symlink_to(Path(SMALL).absolute())
    (root / "workflow").symlink_to(Path("workflow").absolute())
    return root
