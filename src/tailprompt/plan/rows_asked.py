"""The part of what preparing is asked that decides on rows, and the rows that it gave before.

`results/<scale>/made/rows/<dataset>.json` has the digests of those, by what was asked: where an edit is taken
back after data were prepared by it, runs on the rows of before stand.
"""

from __future__ import annotations

from pathlib import Path

from tailprompt.files import read_json, sha256, write_json
from tailprompt.plan.agreement import digest, digests_of, tolerant, without_times
from tailprompt.plan.made import IMAGES, SAID
from tailprompt.plan.places import WHERE

MADE = "made"  # the digests of files in a note; a note of before has none, and is believed
TOLD = ("row", "first", "parts", "words")
BESIDE = ("named", "code", MADE)  # in a note beside what decides on rows: see `standing.to_prepare`


def of_rows(asked: dict) -> dict:
    """The part of what preparing is asked that decides on the rows: content of files and not their places."""
    row = {key: value for key, value in asked["row"].items() if key not in (*SAID, *WHERE)}
    files = asked["row"].get("files") or {}
    options = {key: elsewhere(entry) if isinstance(entry, dict) else {} for key, entry in files.items()}
    classes = asked["words"] and [line[0] for line in asked["words"]]
    parts = {name: of_rows(part) for name, part in asked["parts"].items()}
    first = of_first(asked["first"])
    asked = {key: value for key, value in without_times(asked).items() if key not in BESIDE}
    return {**asked, "row": row, "options": options, "words": classes, "first": first, "parts": parts}


def tells_of_rows(told: dict) -> bool:
    """Whether a note has the form of what preparing is asked, as a damaged one may not."""
    row, first, parts, words = (told.get(key) for key in TOLD)
    return (
        told.keys() >= {*TOLD}
        and isinstance(row, dict)
        and isinstance(row.get("files") or {}, dict)
        and (not first or isinstance(first, dict) and isinstance(first.get("row"), dict))
        and (not words or isinstance(words, list) and all(isinstance(line, list) and line for line in words))
        and isinstance(parts, dict)
        and all(isinstance(part, dict) and tells_of_rows(part) for part in parts.values())
    )


def elsewhere(entry: dict) -> dict:
    """What the entry of a file says wherever the file is."""
    return {key: value for key, value in entry.items() if key not in ("path", "name")}


def of_first(asked: dict | None) -> dict | None:
    """The same of what decoding or annotating is asked."""
    return asked and {**asked, "row": {k: v for k, v in asked["row"].items() if k not in WHERE}}


def without_images(rows: dict) -> dict:
    """What `of_rows` returns, without the images in a folder: only decoding shows whether pixels differ."""
    parts = {name: without_images(part) for name, part in rows["parts"].items()}
    first = rows["first"] and {key: value for key, value in rows["first"].items() if key != IMAGES}
    return {**rows, "first": first, "parts": parts}


def remember(note: Path, report: Path) -> None:
    """Keep the digests of the rows that preparing gave, unless the note does not tell of them.

    note: of what it was asked. report: the copy of the report that it wrote.
    """
    about, file = tolerant(note) or {}, kept_beside(note)
    told = about.get(MADE) if tells_of_rows(about) else None
    if isinstance(told, dict) and report.is_file() and told.get(report.name) == sha256(report):
        write_json(file, {**(tolerant(file) or {}), digest(of_rows(about)): digests_of(read_json(report))})


def rows_before(note: Path, rows: dict) -> dict[str, str] | None:
    """The digests of the rows that preparing gave when it was asked `rows`; None if that is not known."""
    return digests_of((tolerant(kept_beside(note)) or {}).get(digest(rows))) or None


def kept_beside(note: Path) -> Path:
    """Where the digests of a data set's rows of before are kept."""
    return note.parents[1] / "rows" / note.name
