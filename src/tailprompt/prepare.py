"""Stage prepare: one data set's source files become its canonical Parquet and a report beside it.

python -m tailprompt.prepare --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out OUT.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt import data, files
from tailprompt.data import report, sources
from tailprompt.errors import BadInput, known, stage


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="the data set's row, as JSON")
    parser.add_argument(
        "--data-dir", default="null", help="a folder that holds the public files; null downloads them"
    )
    parser.add_argument("--raw", type=Path, required=True, help="where downloads go")
    parser.add_argument(
        "--lock", type=Path, default=Path("config/lock.json"), help="digests seen at first downloads"
    )
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
    folder = None if options.data_dir in ("", "null", "None") else Path(options.data_dir)
    row = files.json_object(options.dataset, "--dataset", "name", "language")
    paths, digests = sources.found(row, data_dir=folder, raw=options.raw, lock=options.lock)
    if options.fetch_only:
        print("\n".join(f"{path}  {path.stat().st_size:,} bytes" for path in paths.values()))
        return
    words = Path(row["verbalizer"]) if row.get("verbalizer") else None
    table, classes = data.load(row, paths, words=words)
    if absent := set(row.get("asked", [])) - set(classes):
        place = f"data set '{row['name']}': no class {known(absent)}, which a table's score names"
        raise BadInput(f"{place} (class:NAME); known: {known(classes)}")
    name = options.out.name.removesuffix(".parquet")
    about = report.describe(table, classes, row, dataset=name, sources=digests)
    with files.whole(options.out.with_name(f"{name}.json")) as temporary:  # both or neither
        files.write_json(temporary, about)
        data.write(table, classes, options.out, sources=digests)
    print(report.sentence_of(about))


if __name__ == "__main__":
    stage(main)
