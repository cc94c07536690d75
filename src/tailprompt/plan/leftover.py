"""Tables and figures that were made and that `make` no longer names: they stay, with the numbers of then."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tailprompt.errors import counted, few
from tailprompt.plan.agreement import tolerant
from tailprompt.plan.blocks import made
from tailprompt.seals import sealed

TO_DO = "delete them, or name them in make"


def leftover(config: dict, root: Path = Path(".")) -> dict[str, str]:
    """The place of each (`results/mini/tables/glee/table3.*`) -> when it was made, and of how many runs.

    What `make` names is none, though it may wait for a search; nor are files that no job of ours wrote.
    """
    results, asked = root / "results" / config["scale"], named(config)
    seals = [seal for what in ("tables", "figures") for seal in sorted(results.glob(f"{what}/*/.*.sha256"))]
    found = {}
    for seal in seals:
        place = seal.with_name(seal.name.removeprefix(".").removesuffix(".sha256"))
        files = [file for name in sealed(place) if (file := place.with_name(name)).is_file()]
        if files and place.parts[-3:] not in asked:
            found[f"{place}.*"] = about(results, place, files)
    return found


def named(config: dict) -> set[tuple[str, str, str]]:
    """(tables or figures, paper, name) of what `make` names; a figure of a table only with that."""
    tables = {("tables", paper, name) for paper, name in made(config, "tables")}
    figures = {
        ("figures", paper, name)
        for paper, name in made(config, "figures")
        for table in [config["papers"][paper]["figures"][name].get("table")]
        if table is None or ("tables", paper, table) in tables
    }
    return tables | figures


def about(results: Path, place: Path, files: Iterable[Path]) -> str:
    """When files were made, and of how many runs where what they were asked still tells."""
    times = [file.stat().st_mtime_ns for file in files]
    told = tolerant(results / "asked" / Path(*place.parts[-3:]).with_suffix(".json")) or {}
    runs = told.get("of", {}).get("runs", []) if min(times) > told.get("replaces", 0) else []
    day = time.strftime("%Y-%m-%d", time.localtime(max(times) / 1e9))
    return f"made on {day}" + (f" of {counted(len(runs), 'run')}" if runs else "")


def in_a_line(left: dict[str, str]) -> str:
    """What the log of a command says of them."""
    each = [f"{place} ({told})" for place, told in left.items()]
    return f"no longer asked, and left as they are: {few(each)}; {TO_DO}"


def lines(left: dict[str, str]) -> list[str]:
    """What `tailprompt status` says of them."""
    each = [f"  {place}: {told}" for place, told in left.items()]
    return [f"no longer asked, and left as they are; {TO_DO}:", *each] if left else []
