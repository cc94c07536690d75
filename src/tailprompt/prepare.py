"""Stage prepare: one data set's source files become its canonical Parquet and a report beside it.

Of images it takes the listing that stage decode wrote: no image is looked at again for another cut.

python -m tailprompt.prepare --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out OUT.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt import files
from tailprompt.data import download as sources
from tailprompt.data import report
from tailprompt.data import table as data
from tailprompt.errors import BadInput, known, stage
from tailprompt.tasks.registry import told


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources.add_options(parser)
    parser.add_argument("--listing", type=Path, help="what `decode` wrote beside a data set's images")
    parser.add_argument("--out", type=Path, help="the Parquet to write; its report is beside it as .json")
    parser.add_argument(
        "--fetch-only", action="store_true", help="download and check the files, write nothing else"
    )
    options = parser.parse_args()
    if not options.fetch_only and not (options.out and options.out.name):
        parser.error("--out says what to write; only --fetch-only goes without")
    return options


def main() -> None:
    """Find or download the files, make the table, write it and its report."""
    options = arguments()
    row = files.json_object(options.dataset, "--dataset", "name", "language")
    if options.listing:
        table, classes, made = data.load_images(row, options.listing)
    else:
        where = {"data_dir": options.data_dir, "raw": options.raw, "lock": options.lock}
        paths, digests = sources.found(row, **where)
        if options.fetch_only:
            print("\n".join(f"{path}  {path.stat().st_size:,} bytes" for path in paths.values()))
            return
        words = Path(row["verbalizer"]) if row.get("verbalizer") else None
        table, classes = data.load(row, paths, words=words)
        made = {"sources": digests}
    if absent := set(row.get("asked", [])) - set(classes):
        place = f"data set '{row['name']}': no class {known(absent)}, which a table's score names"
        raise BadInput(f"{place} (class:NAME); known: {known(classes)}")
    name = options.out.name.removesuffix(".parquet")
    about = report.describe(table, classes, row, dataset=name, task=told(table), **made)
    with files.whole(options.out.with_name(f"{name}.json")) as temporary:  # both or neither
        files.write_json(temporary, about)
        data.write(table, classes, options.out, sources=made["sources"])
    print(report.sentence_of(about))


if __name__ == "__main__":
    stage(main)
