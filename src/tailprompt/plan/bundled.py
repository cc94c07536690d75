"""Whether the report of a data set that a bundle brought tells of the rows that are configured here.

It has the row and the digests of the files that it was made of (`sources`). A file that is not here, as one
that was not downloaded, is taken to be that of the bundle.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path

from tailprompt.data.places import file_name, places, stated
from tailprompt.errors import BadInput
from tailprompt.files import keyed
from tailprompt.plan.agreement import digests_of, read_words, same_data, tolerant
from tailprompt.plan.digests import digest_of
from tailprompt.plan.jobs import data
from tailprompt.plan.made import SAID
from tailprompt.plan.places import BUNDLED, anywhere
from tailprompt.plan.rows import dataset_row, parts_of, tested_by
from tailprompt.plan.rows_read import rows_read


def tells(config: dict, dataset: str, about: dict, root: Path = Path(".")) -> bool:
    """Whether a report that a bundle brought stands for a data set: its row and its rows are those of now.

    about: what it says; one without a row is believed.
    """
    row = about.get("row")
    if not row:
        return True
    if anywhere(row) != now(config, dataset):
        return False
    rows = rows_now(config, dataset, about, root)
    return rows == {} or bool(rows) and same_data(digests_of(about), rows)


def rows_now(config: dict, dataset: str, about: dict, root: Path = Path(".")) -> dict[str, str] | None:
    """The digests of a data set's rows; {} for those of a bundle's report, None for ones not known."""
    try:
        same = is_of(config, dataset, about, root)
    except (BadInput, OSError):  # for the job to say
        same = False
    return {} if same else rows_read(config, dataset, root)


def is_of(config: dict, dataset: str, about: dict, root: Path) -> bool:
    """Whether a report is of the row and the files that decide on rows, and of data sets that are."""
    row, words = now(config, dataset), data.verbalizer(config, dataset)
    if deciding(about.get("row") or row) != deciding(row):
        return False
    if words and [line[0] for line in read_words(root / words)][1:] != about.get("classes"):
        return False
    others = [*parts_of(config, dataset), *tested_by(config, dataset)]
    if not parts_of(config, dataset) and not is_of_files(config, dataset, about.get("sources"), root):
        return False
    return all(is_of(config, other, brought(config, other, root), root) for other in others)


def is_of_files(config: dict, dataset: str, sources: dict | None, root: Path) -> bool:
    """Whether the files of a data set, as far as they are here, are those that a report was made of.

    The names of one's own may be of one machine alone, so those are compared in their order. Of files that
    are not here the digests that the configuration states are.
    """
    from tailprompt.data.download import content_digest

    row = data.prepared_row(config, dataset)
    if "corpus" in row and "path" not in row:  # this scale leaves it open
        return True
    entries = [*stated(row).values()]
    names, here = [*map(file_name, entries)], [file_here(config, dataset, entry, root) for entry in entries]
    if not sources or len({*names}) < len(names):  # the report has the last of one name
        return not any(here)
    found = [
        digest_of(file, root, "unpacked", content_digest) if file else entry.get("sha256")
        for file, entry in zip(here, entries, strict=True)
    ]
    own = any("path" in entry for entry in entries)
    digests = keyed(sources, "sources")
    told = [*digests.values()] if own else [digests.get(name) for name in names]
    pairs = zip_longest(found, told)
    return not any(found) or all(digest in (None, of) for digest, of in pairs)


def file_here(config: dict, dataset: str, entry: dict, root: Path) -> Path | None:
    """A file of a data set, of one's own or downloaded; None where it is not here."""
    around = places(dataset_row(config, dataset), entry, config.get("data_dir"))
    around = around or [Path(data.raw_folder(config, dataset), file_name(entry))]
    return next((file for path in around if (file := root / path).is_file()), None)


def deciding(row: dict) -> dict:
    """The keys of a row that decide on the rows of its data set."""
    return {key: value for key, value in anywhere(row).items() if key not in SAID}


def now(config: dict, dataset: str) -> dict:
    """What the row of a data set says on every machine, as it reads back from JSON."""
    return anywhere(json.loads(json.dumps(data.prepared_row(config, dataset))))


def brought(config: dict, dataset: str, root: Path) -> dict:
    """What the report of a data set says that a bundle brought; {} without one."""
    file = root / "results" / config["scale"] / BUNDLED / "data" / f"{dataset}.json"
    return tolerant(file) or {}
