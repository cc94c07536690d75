"""The files of this project that a module is made of, read from its imports without importing anything.

A rule that lists them as input is re-run when one of them changes, and only then.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def sources(module: str, root: str = "src", *, without: str | None = None) -> list[str]:
    """Files below `root` that `module` imports, directly or not, with itself; sorted.

    without: a package that is not followed, where only one of its modules matters and is asked for apart.
    Imports inside functions count. Raises FileNotFoundError when the module itself is not there.
    """
    if not file_of(module, root):
        raise FileNotFoundError(f"no module {module} below {root}")
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        left_out = without is not None and f"{name}.".startswith(f"{without}.")
        if name not in found and not left_out and file_of(name, root):
            found.add(name)
            waiting += imported(name, root)
    return sorted(str(file_of(name, root)) for name in found)


@cache
def imported(module: str, root: str = "src") -> list[str]:
    """Names that may be modules among what `module` imports, and the packages that hold it."""
    file = file_of(module, root)
    names = [package for package in parents(module)]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [part for alias in node.names for part in (alias.name, *parents(alias.name))]
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, module, file)
            names += [base, *parents(base), *(f"{base}.{alias.name}" for alias in node.names)]
    return names


def absolute(node: ast.ImportFrom, module: str, file: Path) -> str:
    """The module that `from ... import` names, with leading dots resolved against `module`."""
    if not node.level:
        return node.module
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def parents(module: str) -> list[str]:
    """The packages around a module: importing `a.b.c` runs `a` and `a.b` too."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def file_of(module: str, root: str) -> Path | None:
    """A module's file below `root`, or None where it is not one of ours."""
    path = Path(root, *module.split("."))
    files = [path.with_suffix(".py"), path / "__init__.py"]
    return next((file for file in files if file.is_file()), None)
