"""The files and folders that the row of a data set names: that they are there, and have rows."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import no_file, reading

ONE_A_LINE = (".csv", ".tsv")  # endings of files with a header above their rows


def check_named(name: str, row: dict, root: Path) -> None:
    """Raise BadInput if a file or folder that a row names is not there, or a file of rows has none."""
    entries = row.get("files", {"all": row.get("path", {})}).values()
    paths = [entry if isinstance(entry, str) else entry.get("path") for entry in entries]
    for path in filter(None, [*paths, row.get("verbalizer"), row.get("lexicon")]):
        if wrong := no_file(path, root):
            raise BadInput(f"data set '{name}': {wrong}; correct its path in its row")
    folders = {"root": row.get("root"), "model.folder": row.get("model", {}).get("folder")}
    for key, folder in folders.items():
        if folder and not Path(root, folder).is_dir():
            raise BadInput(f"data set '{name}': there is no folder {folder}; correct its {key} in its row")
    for path in filter(None, paths):
        if not has_rows(Path(root, path)):
            raise BadInput(
                f"data set '{name}': {path} has no rows; write some, or correct its path in its row"
            )


def has_rows(file: Path) -> bool:
    """Whether a file has more than nothing, or more than the header where one is above the rows."""
    if not file.stat().st_size or file.suffix.lower() not in ONE_A_LINE:
        return file.stat().st_size > 0
    with reading(file), open(file, "rb") as lines:
        return len([*islice(filter(bytes.strip, lines), 2)]) == 2
