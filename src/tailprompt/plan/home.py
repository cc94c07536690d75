"""Where this project's own files lie when another workflow takes it as a module.

All paths of the project are relative to the working directory, which is then the other project's. A file of
`config` that is there wins; what is not there is that beside the Snakefile.
"""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
MARK = "workflow/schemas"  # in this project's folder, and in no other's
OWN = ("config/", "workflow/", "src/")


def homes(root: str | Path = ".") -> list[Path]:
    """The folders below which files of this project may lie; the first that has a file wins."""
    return [Path(root)] if Path(root, MARK).is_dir() else [Path(root), HOME]


def found(path: str, root: str | Path = ".") -> str:
    """A path of this project as it is read from `root`: unchanged, or beside the Snakefile."""
    first, *others = homes(root)
    elsewhere = [] if (first / path).exists() else [home / path for home in others if (home / path).exists()]
    return str(elsewhere[0]) if elsewhere else path


def at_home(value, root: str | Path = "."):
    """Rows of the configuration in which each path of this project is found."""
    if isinstance(value, dict):
        return {key: at_home(inside, root) for key, inside in value.items()}
    if isinstance(value, list):
        return [at_home(inside, root) for inside in value]
    return found(value, root) if isinstance(value, str) and value.startswith(OWN) else value
