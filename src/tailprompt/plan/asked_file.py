"""The file that says what a run is asked, as the job that trains it reads it."""

from __future__ import annotations

from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import keyed, read_json
from tailprompt.plan.agreement import read_words, without_times


def read_asked(file: Path, root: Path = Path(".")) -> dict:
    """What `file` asks of a run; raises BadInput if the verbalizer has changed since it was written."""
    wanted = read_json(file, "settings", "extras", "backbone")
    words = keyed(wanted["settings"], file).get("verbalizer")
    features = keyed(wanted["extras"], file).get("features", [])
    if not (isinstance(features, list) and isinstance(words, str | None)):
        raise BadInput(
            f"{file}: features are a list of classes and verbalizer is a file; run snakemake again"
        )
    if words and wanted.get("verbalizer") != read_words(root / words):
        raise BadInput(f"{words} is no longer what {file} says; run snakemake again, which reads it anew")
    return without_times(wanted)
