"""Documents of a plain-text corpus, whatever its compression, and the images of a folder."""

import bz2
import gzip
import hashlib
import io
import lzma

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tailprompt.data.corpus import documents, is_held_out, is_sampled, kept, part_of
from tailprompt.data.pictures import decoded
from tailprompt.errors import BadInput
from tailprompt.pretraining import labelled

TEXT = "One.\nTwo.\n\n\n  \n中文的一个段落在这里。\n\nLast, without an empty line"
DOCUMENTS = [["One.", "Two."], ["中文的一个段落在这里。"], ["Last, without an empty line"]]
NOISE = "\n".join(hashlib.sha1(bytes([n % 256, n // 256])).hexdigest() for n in range(999)).encode()


@pytest.mark.parametrize(
    "ending, opener", [("txt", open), ("gz", gzip.open), ("xz", lzma.open), ("bz2", bz2.open)]
)
def test_empty_lines_end_documents(tmp_path, ending, opener):
    with opener(tmp_path / f"corpus.{ending}", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    assert list(documents(tmp_path / f"corpus.{ending}")) == DOCUMENTS


def test_latin_leaves_out_chinese_documents(tmp_path):
    (tmp_path / "corpus.txt").write_text(TEXT, "utf-8")
    assert list(kept(tmp_path / "corpus.txt", "latin")) == [DOCUMENTS[0], DOCUMENTS[2]]
    assert list(kept(tmp_path / "corpus.txt", "han")) == [DOCUMENTS[1]]
    with pytest.raises(BadInput, match="unknown scripts 'greek'; known: all, han, latin"):
        kept(tmp_path / "corpus.txt", "greek")


def test_a_document_that_is_too_long_is_passed_over_and_the_next_is_whole(tmp_path):
    (tmp_path / "corpus.txt").write_text("abc\n" * 9 + "\nshort\nand whole\n\n" + "abc\n" * 4, "utf-8")
    assert list(documents(tmp_path / "corpus.txt", longest=14)) == [["short", "and whole"], ["abc"] * 4]


def test_the_text_of_a_document_alone_says_whether_it_is_held_out():
    made = [[f"document {number}"] for number in range(4000)]
    held = [is_held_out(document, 0.1) for document in made]
    assert 330 < sum(held) < 470
    assert [is_held_out(document, 0.1) for document in made[::-1]] == held[::-1]


def test_parts_samples_and_what_is_held_out_do_not_depend_on_each_other():
    made = [[f"document {number}"] for number in range(4000)]
    for kept_so in (lambda each: is_held_out(each, 0.5), lambda each: is_sampled(each, 0.5)):
        sizes = [sum(part_of(each, 4) == number for each in made if kept_so(each)) for number in (1, 2, 3, 4)]
        assert sum(sizes) == sum(map(kept_so, made)) and all(430 < size < 570 for size in sizes)
    both = sum(is_held_out(each, 0.5) and is_sampled(each, 0.5) for each in made)
    assert 880 < both < 1120


def damaged(content):
    return content[:500] + bytes(200) + content[700:]


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("a.txt", b"fine\n\xff\xfe\n", r"a\.txt: not UTF-8 after line"),
        ("a.gz", gzip.compress(b"text\n" * 9999, mtime=0)[:-30], r"a\.gz cannot be read after line"),
        ("a.gz", damaged(gzip.compress(NOISE, mtime=0)), r"a\.gz cannot be read after line"),
        ("a.bz2", damaged(bz2.compress(NOISE)), r"a\.bz2 cannot be read after line"),
        ("a.xz", damaged(lzma.compress(NOISE)), r"a\.xz cannot be read after line"),
        ("a.xz", b"not compressed", r"a\.xz cannot be read after line 0"),
        ("a.pdf", b"", r"unknown ending of the corpus a\.pdf '\.pdf'; known: \.bz2, \.gz, \.txt, \.xz"),
    ],
)
def test_a_damaged_corpus_is_one_sentence(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        list(documents(tmp_path / name))


@pytest.mark.parametrize("ending", ["txt", "gz", "xz", "bz2"])
def test_an_absent_corpus_is_said_to_be_absent(tmp_path, ending):
    with pytest.raises(BadInput, match=rf"there is no file .*a\.{ending}; correct the path"):
        list(documents(tmp_path / f"a.{ending}"))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.txt").write_text("One.", "utf-8-sig")
    assert list(documents(tmp_path / "a.txt")) == [["One."]]


def encoded(color, size=(40, 40), mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, "PNG")
    return file.getvalue()


def test_images_come_from_tables_or_from_a_folder_for_each_class(tmp_path):
    red, grey = encoded((255, 0, 0)), encoded(7, mode="L")
    for split, contents in {"train": [red, grey], "val": [red]}.items():
        table = pd.DataFrame({"image": contents, "label": range(len(contents))})
        table.to_parquet(tmp_path / f"{split}.parquet")
    splits, classes = labelled.read(tmp_path, size=8, held_out=0.1)
    assert classes == 2 and [len(splits[split][1]) for split in ("train", "held_out")] == [2, 1]
    assert splits["train"][0].shape == (2, 8, 8, 3)
    assert (splits["train"][0][0] == (255, 0, 0)).all() and (splits["train"][0][1] == 7).all()

    for name in ("cat", "dog"):
        (tmp_path / "folders" / name / "images").mkdir(parents=True)
        for number in range(40):
            (tmp_path / "folders" / name / "images" / f"{number}.png").write_bytes(
                encoded(number, (60, 40), "L")
            )
    splits, classes = labelled.read(tmp_path / "folders", size=40, held_out=0.25)
    counts = {split: len(labels) for split, (_, labels) in splits.items()}
    assert classes == 2 and sum(counts.values()) == 80 and 8 <= counts["held_out"] <= 32
    assert all(set(labels) == {0, 1} for _, labels in splits.values())


def test_all_images_that_cannot_be_decoded_are_named_at_once(tmp_path):
    contents = [encoded(1, mode="L"), b"junk", encoded(1, mode="L")[:40]]
    for split in ("train", "val"):
        pd.DataFrame({"image": contents, "label": [0, 1, 1]}).to_parquet(tmp_path / f"{split}.parquet")
    with pytest.raises(BadInput, match=r"4 images cannot be decoded: train\.parquet:2 .*train\.parquet:3"):
        labelled.read(tmp_path, size=8, held_out=0.1)
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match="neither train.parquet nor a folder of images for each class"):
        labelled.read(tmp_path / "none", size=8, held_out=0.1)


def test_a_longer_side_loses_both_ends():
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200
    file = io.BytesIO()
    Image.fromarray(wide).save(file, "PNG")
    assert (decoded(file.getvalue(), 10)[0] == 200).all()
