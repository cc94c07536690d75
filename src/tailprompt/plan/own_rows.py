"""A look at the rows of one's own small files of texts, so that the plan refuses what preparing would."""

from __future__ import annotations

from pathlib import Path

from tailprompt.data.places import stated

SMALL = 2**24  # bytes of a data set's files that are read for a plan, which takes a second or two


def ones_own(row: dict) -> bool:
    """Whether a data set's rows are in files of a person's own, or a folder of images."""
    entries = [*row.get("files", {}).values()]
    local = any(isinstance(entry, str) or "path" in entry for entry in entries)
    return "corpus" not in row and ("path" in row or "root" in row or local)


def looked_at(row: dict, root: Path) -> bool:
    """Whether the rows of a data set could be read for the plan; raises BadInput where they are refused.

    Those are files of texts in the form `table` without a verbalizer, whose words belong to other checks.
    """
    if row.get("loader", "table") != "table" or row.get("language") == "image" or row.get("verbalizer"):
        return False
    entries = stated(row)
    if not all("path" in entry for entry in entries.values()):
        return False
    paths = {key: root / Path(entry["path"]).expanduser() for key, entry in entries.items()}
    if not all(path.is_file() for path in paths.values()):
        return False
    if sum(path.stat().st_size for path in paths.values()) > SMALL:
        return False
    from tailprompt.data.table import load  # pandas and all loaders, for those who have such a file

    load({key: value for key, value in row.items() if key != "cut"}, paths)
    return True
