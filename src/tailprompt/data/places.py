"""Where the files of a data set are on this machine: at a path of their own, or below the user's data_dir."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import BadInput


def stated(row: dict) -> dict[str, dict]:
    """The files of a row, {key: {path | url, member, name, sha256}}; a bare string is a local path."""
    if "corpus" in row and "path" not in row:
        raise BadInput(
            f"data set '{row['name']}' is made from corpora.{row['corpus']}, which this scale leaves open; "
            "name it"
        )
    given = row.get("files") or {"all": {k: row[k] for k in ("path", "sha256") if k in row}}
    given = {key: {"path": value} if isinstance(value, str) else value for key, value in given.items()}
    if not all("path" in entry or "url" in entry or "name" in entry for entry in given.values()):
        raise BadInput(
            f"'{row['name']}' names no file; its row needs path, or files with url, name or a path"
        )
    for entry in given.values():
        if "path" not in entry and file_name(entry) in ("", ".", ".."):
            raise BadInput(f"'{row['name']}': {entry.get('url')} ends in no name of a file; give it a name")
    return given


def file_name(entry: dict) -> str:
    """The name of a file in a folder."""
    address = entry.get("member") or entry.get("url") or entry.get("path", "")
    return entry.get("name") or address.rpartition("/")[2]


def places(row: dict, entry: dict, data_dir: str | Path | None) -> list[Path]:
    """The paths at which a file of a row is looked for, in order; none if it is to be downloaded.

    entry: of the row's `files`. In the user's folder a file is plain or .xz.
    """
    if "path" in entry:
        return [Path(entry["path"]).expanduser()]
    if not data_dir:
        return []
    place = Path(data_dir) / row.get("folder", row["name"]) / file_name(entry)
    return [place, place.with_name(f"{place.name}.xz")]


def image_root(row: dict, data_dir: str | Path | None) -> Path | None:
    """The folder of a row's images: its `root`, else a folder below data_dir, if there is one."""
    if "root" in row:
        return Path(row["root"])
    return Path(data_dir, row.get("folder", row["name"])) if data_dir else None
