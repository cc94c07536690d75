"""What a job leaves when it is done: what it was asked, and the digests of the files that it made.

Files that were put in their place since, as from a backup, are not those that the note tells of. In rules:
`python -m tailprompt.plan.note ASKED results/<scale>/made/<kind>/<name>.json`.
"""

from __future__ import annotations

import shutil
import sys
from glob import escape
from pathlib import Path

from tailprompt.errors import stage
from tailprompt.files import read_json, whole, write_json
from tailprompt.model.folder import RECORD
from tailprompt.plan.digests import digest_of
from tailprompt.plan.rows_asked import MADE, remember
from tailprompt.pretraining.folders import PACKED, TOKENIZER

MAKES = {  # kind -> the outputs of its job below `results/<scale>`, with {} for the name, or patterns
    "images": ("images/{}.npy", "images/{}.parquet"),
    "annotated": ("annotated/{}.parquet",),
    "data": ("data/{}.parquet", "data/{}.json"),
    "collected": ("corpora/{}.txt.gz", "corpora/{}.json"),
    "vocabulary": tuple(f"pretraining/{{}}/vocabulary/{name}" for name in TOKENIZER),
    "packed": tuple(f"pretraining/{{}}/packed/{name}" for name in PACKED),
    # the record is written after the weights, of one file or several
    "checkpoint": (f"pretraining/{{}}/{RECORD}",),
    "backbones": ("backbones/{}.json",),
}


def outputs_in(results: Path, kind: str, name: str) -> list[Path]:
    """The files that a job makes; of a pattern those that are here, as of packed parts only some may be."""
    named = [(file, file.format(name if "*" not in file else escape(name))) for file in MAKES[kind]]
    found = [sorted(results.glob(path)) if "*" in file else [results / path] for file, path in named]
    return [file for files in found for file in files]


def note(asked: Path, note: Path) -> None:
    """Write the note. A file that is gone already is left out; of what is no kind it is a plain copy."""
    kind, name, results = note.parent.name, note.stem, note.parents[2]
    if kind in MAKES:
        files = [file for file in outputs_in(results, kind, name) if file.is_file()]
        write_json(note, read_json(asked) | {MADE: {file.name: digest_of(file) for file in files}})
    else:
        if kind == "reports":
            remember(note.parents[1] / "data" / note.name, note)  # before both are those of others
        with whole(note) as temporary:
            shutil.copyfile(asked, temporary)


if __name__ == "__main__":
    stage(lambda: note(*map(Path, sys.argv[1:])))
