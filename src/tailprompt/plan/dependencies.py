"""The source files that a module depends on, read from import statements without importing anything.

A rule with these files as input runs again when one of them changes, and only then. Times of files do not
tell of code that was put back from a backup; a digest of their content does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tailprompt.files import as_read
from tailprompt.plan.home import found

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of a node, where statements stand


@cache
def sources(module: str, root: str = "src", *, without: str | None = None) -> list[str]:
    """The sorted files below `root` of `module` and all that it imports, directly or not.

    without: a package that is not followed, where only one of its modules matters and is listed separately.
    Imports inside functions count. Raises FileNotFoundError if there is no such module.
    """
    root = found(root)
    if not file_of(module, root):
        raise FileNotFoundError(f"no module {module} below {root}")
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        left_out = without is not None and f"{name}.".startswith(f"{without}.")
        if name not in modules and not left_out and file_of(name, root):
            modules.add(name)
            waiting += imported(name, root)
    return sorted(str(file_of(name, root)) for name in modules)


def digest(module: str, root: str = "src") -> str:
    """One digest of the content of the files of `sources`, wherever the project lies."""
    digests = map(as_read, map(Path, sources(module, root)))
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@cache
def imported(module: str, root: str = "src") -> list[str]:
    """The names that `module` imports, which may be modules or not, and the packages around it."""
    file = file_of(module, root)
    names = [package for package in parents(module)]
    for node in statements(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [part for alias in node.names for part in (alias.name, *parents(alias.name))]
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, module, file)
            names += [base, *parents(base), *(f"{base}.{alias.name}" for alias in node.names)]
    return names


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, of which a module has a tenth as many as nodes."""
    for name in BLOCKS:
        for inside in getattr(node, name, ()):
            yield inside
            yield from statements(inside)


def absolute(node: ast.ImportFrom, module: str, file: Path) -> str:
    """The module in `from ... import`, with leading dots resolved against `module`."""
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
    """The file of a module below `root`, or None if it is not part of this project."""
    path = Path(root, *module.split("."))
    files = [path.with_suffix(".py"), path / "__init__.py"]
    return next((file for file in files if file.is_file()), None)
