"""Whether what the plan reads of bundles is whole: reports of data sets, and digests of corpora.

Else runs would be trained, or left out, for another reason than the damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan.agreement import tolerant
from tailprompt.plan.places import BUNDLED, in_bundle, report_file
from tailprompt.seals import as_written


def check(results: Path, datasets: Iterable[str]) -> None:
    """Raise BadInput, with what to do, if such a file in the results of a scale is damaged."""
    reports = (report_file(results, name) for name in datasets)
    wrong = [file for file in reports if in_bundle(file) and not as_written(file)]
    notes = sorted((results / BUNDLED / "made").glob("*/*.json"))
    if wrong := wrong + [note for note in notes if corpus_in(note) is None]:
        raise BadInput(f"{wrong[0]} is not what its bundle brought; delete it, and unbundle again")


def corpus_in(note: Path) -> dict[str, str] | None:
    """The digests of the corpus of which a job made its outputs, by its note; None if that tells none."""
    corpus = (tolerant(note) or {}).get("corpus")
    whole = isinstance(corpus, dict) and all(isinstance(digest, str) for digest in corpus.values())
    return corpus if whole else None
