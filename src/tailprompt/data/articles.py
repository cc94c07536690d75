"""Running text of encyclopaedia articles that pandoc wrote as plain text: a paragraph a line, blocks between.

Headings, lists, tables, quotations, notes and categories are dropped, and so are paragraphs of one sentence.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tailprompt.errors import BadInput

BLANK = re.compile(r"\n[^\S\n]*\n")  # between two blocks
NOT_RUNNING = re.compile(r"[\s\-+|=*#\[\]{}.,;:>]|\d+[.)]\s|Category:")  # how blocks of another kind begin
MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|''|https?://|\\\\|\|")  # what the conversion did not understand
REFERENCE = re.compile(r"\s*\[(?:\d+|[a-z]|note \d+|citation needed|clarification needed)\]")
EMPHASIS = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
LOST = re.compile(r"\(\s*[;,:]\s*")  # a pronunciation that the conversion left out
EMPTY = re.compile(r"\s*\(\s*[;,:]*\s*\)|\s+(?=[,;.](?:\s|$))|(?<=\s)\s+")
SENTENCE_END = re.compile(r"(?<=[\w)\]\"”’'%]{2})[.!?][\"”’')]*\s+(?=[\"“‘'(]?[A-Z0-9])")  # not of an initial


def paragraphs(article: str, *, sentences: int = 2) -> list[str]:
    """The running paragraphs of an article that have at least `sentences` sentences.

    References, emphasis and empty brackets are taken out of them.
    """
    blocks = (block.strip("\n") for block in BLANK.split(article.replace("\r\n", "\n")))
    running = (cleaned(block) for block in blocks if is_running(block))
    return [text for text in running if count_sentences(text) >= sentences]


def is_running(block: str) -> bool:
    """Whether a block is one line of running text."""
    return bool(block) and "\n" not in block and not NOT_RUNNING.match(block) and not MARKUP.search(block)


def cleaned(paragraph: str) -> str:
    """A paragraph without references, emphasis, and brackets of which the conversion left nothing."""
    text = EMPHASIS.sub(r"\1", REFERENCE.sub("", paragraph))
    return EMPTY.sub("", LOST.sub("(", text)).strip()


def count_sentences(paragraph: str) -> int:
    """The sentences of a paragraph that ends as a sentence does; none of another, as of a caption."""
    whole = paragraph.rstrip("\"”’')").endswith((".", "!", "?"))
    return len(SENTENCE_END.findall(paragraph)) + 1 if whole else 0


def articles(repository: Path, commit: str, folder: str) -> Iterator[tuple[str, str]]:
    """(name, text) of the articles in a folder of a git repository at a commit, in the order of their names.

    Nothing is checked out. Raises BadInput if git is not installed, or the repository lacks the commit.
    """
    command = ["git", "-C", str(repository), "archive", "--format=tar", commit, folder]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise BadInput("git is not installed; it reads the articles of a repository") from None
    try:
        yield from members(process.stdout)
    except tarfile.ReadError:
        pass  # git has said why
    finally:
        process.stdout.close()
        said = process.stderr.read().decode(errors="replace").strip()
        process.stderr.close()
        process.wait()
    if process.returncode:
        raise BadInput(f"{repository}: git cannot read {folder} at commit {commit} ({said})")


def members(stream) -> Iterator[tuple[str, str]]:
    """(name, text) of the Markdown files in a tar stream; raises BadInput for one that is not UTF-8."""
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".md"):
                try:
                    yield PurePosixPath(member.name).stem, archive.extractfile(member).read().decode()
                except UnicodeDecodeError as error:
                    raise BadInput(f"{member.name} is not UTF-8 ({error.reason})") from None
