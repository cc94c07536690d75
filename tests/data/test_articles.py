"""The running text of articles, and a corpus of a repository of them."""

import gzip
import json
import subprocess

import pytest

from tailprompt import collect
from tailprompt.data.articles import articles, cleaned, count_sentences, paragraphs
from tailprompt.data.corpus import documents
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.seals import sealed

LEAD = "The RIVER is long.[1] It flows north."
ARTICLE = f"""{LEAD}


Course

One sentence alone stands here.

-   a list. It has items.
-   another. It has two.

+------+------+
| a. B | c. D |
+------+------+

    ''See other rivers. They are many.''

It turns west at Town (; "the _bend_") [note 2]. Boats stop there , as they () did.

1.  First. Then second.

.]] Torn. By the conversion.

[1] A note. Of two sentences.

Category:Rivers of nowhere. Category:Long rivers.
"""
RUNNING = [
    "The RIVER is long. It flows north.",
    'It turns west at Town ("the bend"). Boats stop there, as they did.',
]
ROW = {"source": "https://example.org", "folder": "Page", "sentences": 2, "licence": "CC BY-SA"}


def committed(folder, files: dict[str, bytes]) -> str:
    """A git repository with these files; returns its commit."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "articles"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    asked = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True)
    return asked.stdout.decode().strip()


def test_only_running_paragraphs_of_two_sentences_are_kept():
    assert paragraphs(ARTICLE) == RUNNING
    assert paragraphs(ARTICLE.replace("\n", "\r\n")) == RUNNING


def test_a_paragraph_of_one_sentence_is_kept_where_one_is_enough():
    assert "One sentence alone stands here." in paragraphs(ARTICLE, sentences=1)


@pytest.mark.parametrize(
    "text, number",
    [
        ("He met J. Smith.", 1),
        ("It ended in 1990. In 1991 it began.", 2),
        ('"Stop!" He stopped. (Then he went.)', 3),
        ("A caption. Without an end", 0),
        ("It cost 3.50 dollars. e.g. nothing.", 1),
        ("", 0),
    ],
)
def test_sentences_end_before_capitals_and_not_after_initials(text, number):
    assert count_sentences(text) == number


@pytest.mark.parametrize(
    "text, clean",
    [
        ("a[12] b [citation needed] c[a]", "a b c"),
        ("snake_case stays, _this_ not", "snake_case stays, this not"),
        ("Turing (; 1912) (pronounced: x) ()", "Turing (1912) (pronounced: x)"),
        ("one  two , three .", "one two, three."),
        ("a ratio of 3 : 4 and .NET", "a ratio of 3 : 4 and .NET"),
    ],
)
def test_what_the_conversion_left_of_references_and_brackets_is_taken_out(text, clean):
    assert cleaned(text) == clean


def test_a_repository_gives_the_same_corpus_each_time_with_its_source_and_counts(tmp_path, monkeypatch):
    files = {
        "Page/b.md": ARTICLE,
        "Page/a é.md": "One. Two. Three.",
        "Page/c.md": "Short.",
        "Help/d.md": LEAD,
    }
    files |= {"Page/note.txt": LEAD}
    commit = committed(tmp_path / "git", {name: text.encode() for name, text in files.items()})
    (tmp_path / "git/Page/b.md").write_text("Changed. But not committed.")
    digests = set()
    for name in ("one", "two"):
        told = ["collect", "--row", json.dumps({**ROW, "commit": commit})]
        out = tmp_path / name / "wiki.txt.gz"
        monkeypatch.setattr("sys.argv", [*told, "--repository", str(tmp_path / "git"), "--out", str(out)])
        collect.main()
        digests.add(sha256(out))
    assert len(digests) == 1
    assert sorted(documents(out)) == sorted([["One. Two. Three."], RUNNING])
    record = json.loads((out.parent / "wiki.json").read_text())
    text = gzip.decompress(out.read_bytes())
    assert record.items() >= {**ROW, "commit": commit, "articles": 3, "documents": 2, "paragraphs": 3}.items()
    assert record["bytes"] == len(text)
    assert all(file.name in sealed(file) for file in (out, out.parent / "wiki.json"))


def test_a_repository_that_cannot_be_read_is_one_sentence(tmp_path):
    commit = committed(tmp_path, {"Page/a.md": b"Short.", "Bad/b.md": b"\xff\xfe. A"})
    with pytest.raises(BadInput, match="git cannot read Page at commit 0000"):
        list(articles(tmp_path, "0" * 40, "Page"))
    with pytest.raises(BadInput, match="git cannot read Nope at commit"):
        list(articles(tmp_path, commit, "Nope"))
    with pytest.raises(BadInput, match="Bad/b.md is not UTF-8"):
        list(articles(tmp_path, commit, "Bad"))
    with pytest.raises(BadInput, match="no article in Page has a paragraph of 2 sentences"):
        collect.collect({**ROW, "commit": commit}, tmp_path, tmp_path / "out.txt.gz")
    assert not (tmp_path / "out.txt.gz").exists()


def test_without_git_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="git is not installed"):
        list(articles(tmp_path, "0" * 40, "Page"))
