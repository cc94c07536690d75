"""The rows that preparing will give, read for a plan where an edit of small files may change none."""

from __future__ import annotations

from pathlib import Path

from tailprompt.data.places import places, stated
from tailprompt.errors import BadInput
from tailprompt.plan import made
from tailprompt.plan.agreement import digest
from tailprompt.plan.jobs import data
from tailprompt.plan.own_rows import SMALL
from tailprompt.plan.rows import dataset_row, parts_of, tested_by

READ: dict[str, dict[str, str]] = {}  # what preparing is asked -> the digest of the rows that it gives


def rows_read(config: dict, dataset: str, root: Path = Path(".")) -> dict[str, str] | None:
    """The digest of the rows that a data set of texts will have; None if the plan does not read them.

    It reads files that are here and small, once in a process, and leaves what is wrong with them for the job
    to say.
    """
    from tailprompt.data import rows  # pandas and all loaders, for those who edited such a file

    try:
        asked = digest(made.table(config, dataset, root))
        if asked not in READ:
            READ[asked] = {"rows_sha256": rows.of_table(*prepared(config, dataset, root))}
        return READ[asked]
    except (BadInput, OSError):
        return None


def prepared(config: dict, dataset: str, root: Path):
    """The table of a data set and its classes, as stage prepare makes them; raises BadInput if it cannot."""
    from tailprompt.data import joined, table

    if parts := parts_of(config, dataset):
        return joined.joined({part: prepared(config, part, root) for part in parts})
    row, words = dataset_row(config, dataset), data.verbalizer(config, dataset)
    paths = files_of(row, config.get("data_dir"), root)
    learned = [name for other in tested_by(config, dataset) for name in prepared(config, other, root)[1]]
    return table.load(row, paths, words=root / words if words else None, learned=learned)


def files_of(row: dict, data_dir: str | None, root: Path) -> dict[str, Path]:
    """The files of a data set's row by their keys; raises BadInput unless all are here, texts and small."""

    if row["language"] == "image" or row.get("annotator") == "model":
        raise BadInput(f"'{row['name']}': its rows are made of what another job makes")
    around = {
        key: [root / path for path in places(row, entry, data_dir)] for key, entry in stated(row).items()
    }
    found = {key: path for key, paths in around.items() for path in paths[::-1] if path.is_file()}
    if found.keys() < around.keys() or sum(path.stat().st_size for path in found.values()) > SMALL:
        raise BadInput(f"'{row['name']}': its files are not all here, or not small")
    return found
