"""Collect the running text of a repository's articles into a corpus for pre-training.

`python -m tailprompt.collect --row JSON --repository FOLDER --out FILE.txt.gz` writes the text, an article a
document, and FILE.json beside it: source, commit, licence and counts. Equal rows give equal text.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from pathlib import Path

from tailprompt.data.articles import articles, paragraphs
from tailprompt.errors import BadInput, stage
from tailprompt.files import given, json_option, whole, write_json
from tailprompt.machine.progress import shown
from tailprompt.seals import seal


def collect(row: dict, repository: Path, out: Path) -> dict:
    """Write the articles' running paragraphs to `out`; returns the counts and the digest of the text.

    row: commit, folder and sentences of `articles` in config/pretraining.yaml. Raises BadInput if no article
    has such a paragraph.
    """
    counts, digest = {"articles": 0, "documents": 0, "paragraphs": 0, "bytes": 0}, hashlib.sha256()
    with (
        shown("collect", total=None, unit="article") as show,
        whole(out) as temporary,
        open(temporary, "wb") as plain,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as file,
    ):
        for _, text in articles(repository, row["commit"], row["folder"]):
            kept = paragraphs(text, sentences=row["sentences"])
            document = ("\n".join(kept) + "\n\n").encode() if kept else b""
            file.write(document)
            digest.update(document)
            found = {"articles": 1, "documents": bool(kept), "paragraphs": len(kept), "bytes": len(document)}
            counts = {key: number + found[key] for key, number in counts.items()}
            show(counts["articles"])
        if not counts["documents"]:
            raise BadInput(
                f"{repository}: no article in {row['folder']} has a paragraph of {row['sentences']} sentences"
            )
    return {**counts, "sha256": digest.hexdigest()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt collect", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--row",
        required=True,
        metavar="JSON|FILE",
        help="a row of articles in config/pretraining.yaml: source, commit, folder, sentences, licence",
    )
    parser.add_argument(
        "--repository", required=True, type=given, metavar="FOLDER", help="a clone of the row's source"
    )
    parser.add_argument(
        "--out", required=True, type=given, metavar="FILE", help="the .txt.gz to write, with a .json beside"
    )
    options = parser.parse_args()
    row = json_option(options.row, "--row", "source", "commit", "folder", "sentences", "licence")
    if not options.out.name.endswith(".txt.gz"):
        raise BadInput(f"--out {options.out}: a corpus is written as .txt.gz")
    counts = collect(row, options.repository, options.out)
    beside = options.out.with_name(f"{options.out.name[:-7]}.json")
    write_json(beside, {**row, **counts})
    for file in (options.out, beside):
        seal(file)


if __name__ == "__main__":
    stage(main)
