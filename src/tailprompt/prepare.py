"""Prepare a data set: its source files become one canonical Parquet file with a report beside it.

For images it reads the listing that stage decode wrote, so that another cut decodes nothing again. Joined
sets are made of the prepared files of their parts.

python -m tailprompt.prepare --dataset '<JSON row>' --data-dir DIR --raw results/raw/NAME --out OUT.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tailprompt import files, seals
from tailprompt.data import download as sources
from tailprompt.data import joined, report, rows
from tailprompt.data import table as data
from tailprompt.data.contents import NOTES
from tailprompt.data.prepared import check_rows
from tailprompt.errors import BadInput, known, stage
from tailprompt.plan import dependencies
from tailprompt.plan.agreement import read_words
from tailprompt.plan.digests import check_files, refuse
from tailprompt.tasks.registry import told


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tailprompt prepare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources.add_options(parser)
    parser.add_argument("--listing", type=Path, help="for images: the .parquet file that stage decode wrote")
    parser.add_argument(
        "--learned", type=Path, help="for a test set of tags: the report of the data set whose runs it tests"
    )
    parser.add_argument(
        "--parts", type=Path, nargs="+", metavar="FILE", help="the prepared .parquet files of joined sets"
    )
    parser.add_argument(
        "--asked", type=Path, metavar="FILE", help="the digests of what is read, which snakemake writes"
    )
    parser.add_argument(
        "--out", type=Path, help="the Parquet file to write; its report goes beside it (.json)"
    )
    options = parser.parse_args()
    if not (options.out and options.out.name):
        parser.error("--out names the file to write")
    return options


def main() -> None:
    """Find or download the source files, make the table, and write it with its report."""
    options = arguments()
    check_code(options.asked)
    row = files.json_option(options.dataset, "--dataset", "name", "language")
    if options.listing:
        seals.check_sealed(options.listing)
        table, classes, origin = data.load_images(row, options.listing)
    elif options.parts:
        for part in options.parts:
            check_rows(part)
        table, classes, origin = joined.load(options.parts)
    else:
        where = {"data_dir": options.data_dir, "raw": options.raw, "lock": options.lock}
        paths, digests = sources.found(row, **where)
        if row.get("annotator") == "model":
            seals.check_sealed(*paths.values())
        words = Path(row["verbalizer"]) if row.get("verbalizer") else None
        learned = files.read_json(options.learned, "classes")["classes"] if options.learned else ()
        table, classes = data.load(row, paths, words=words, learned=learned)
        origin = {"sources": digests}
        check_read(options, row, paths)
    if absent := set(row.get("asked", [])) - set(classes):
        place = f"data set '{row['name']}': no class {known(absent)}, which a table's score (class:NAME)"
        raise BadInput(f"{place} or a figure's classes name; known: {known(classes)}")
    name = options.out.name.removesuffix(".parquet")
    notes = {"read": notes} if (notes := table.attrs.pop(NOTES, [])) else {}
    about = report.describe(table, classes, row, dataset=name, task=told(table), **origin, **notes)
    with files.whole(options.out.with_name(f"{name}.json")) as temporary:  # both or neither
        data.write(table, classes, options.out, sources=origin["sources"])
        about |= {"sha256": files.sha256(options.out), "rows_sha256": rows.of_file(options.out)}
        files.write_json(temporary, about)
    seals.seal(options.out.with_name(f"{name}.json"))
    print(report.sentence_of(about))


def check_code(asked: Path | None) -> None:
    """Raise BadInput if the code of this stage is not that of the plan, of which the note will tell."""
    planned = files.read_json(asked).get("code") if asked else None
    if planned and planned != dependencies.digest("tailprompt.prepare"):
        raise BadInput(
            "the code that prepares data has changed after this job was planned; run snakemake again, which "
            "plans with what is there now"
        )


def check_read(options: argparse.Namespace, row: dict, paths: dict[str, Path]) -> None:
    """Raise BadInput if the files of a data set or its words are not those that the job was asked to read."""
    if not options.asked:
        return
    asked = files.read_json(options.asked, "files", "words")
    lexicon = [Path(row["lexicon"])] if row.get("lexicon") else []
    if row.get("annotator") != "model":  # else they are what stage annotate wrote
        check_files(asked["files"], [*sources.own(paths, options.raw), *lexicon])
    if row.get("verbalizer") and read_words(Path(row["verbalizer"])) != asked["words"]:
        refuse([Path(row["verbalizer"])])


if __name__ == "__main__":
    stage(main)
