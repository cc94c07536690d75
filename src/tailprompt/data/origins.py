"""Where the rows of a prepared data set stand in the files they came from, for people who look them up."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.data.contents import PLACE
from tailprompt.data.download import content_digest
from tailprompt.data.places import file_name, stated
from tailprompt.data.table import read_rows, read_words


def origins(report: dict, ids: pd.Series) -> pd.DataFrame | None:
    """id, file and line (of a Parquet file the row) of a data set's rows; images have no line.

    report: of the data set. ids: of images, which are their paths. None where this is not known: the files
    are gone, or hold something else by now, or came from the network.
    """
    row = report.get("row") or {}
    if row.get("language") == "image":
        return images(Path(row["root"]), ids) if "root" in row else None
    if not {"path", "files"} & {*row} or "corpus" in row:
        return None
    entries = stated(row)
    paths = {key: Path(entry.get("path", "")).expanduser() for key, entry in entries.items()}
    if not all(path.is_file() for path in paths.values()):
        return None
    digests = {file_name(entry): content_digest(paths[key]) for key, entry in entries.items()}
    if digests != report.get("sources"):
        return None
    words = [*read_words(Path(row["verbalizer"]))["label"]] if row.get("verbalizer") else []
    return placed(read_rows(row, paths, words), paths)


def placed(table: pd.DataFrame, paths: dict[str, Path]) -> pd.DataFrame:
    """id, file and line by the place of each row. paths: the files by key, of several files the split."""
    parts = table[PLACE].str.extract(r"(?P<name>.*):(?P<line>\d+)$")
    named = {path.name: str(path) for path in paths.values()}
    by_key = {(key, path.name): str(path) for key, path in paths.items()}
    names = parts.name.fillna(table[PLACE])
    splits = table["split"] if "split" in table else [""] * len(table)
    files = [
        by_key.get((split, name), named.get(name, name)) for split, name in zip(splits, names, strict=True)
    ]
    return pd.DataFrame({"id": table["id"].astype(str), "file": files, "line": parts.line.astype("Int64")})


def images(root: Path, ids: pd.Series) -> pd.DataFrame:
    """id and file of images whose ids are paths below a folder."""
    files = [str(root / one) if (root / one).is_file() else pd.NA for one in ids]
    return pd.DataFrame({"id": ids, "file": files, "line": pd.array([pd.NA] * len(ids), dtype="Int64")})
