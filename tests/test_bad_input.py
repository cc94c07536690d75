"""The table of bad input: each kind ends in one clear sentence with the place and what is allowed.

Details of each kind are tested beside the code that refuses it; here is the whole table at a glance.
"""

import errno
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from limits import small_files
from PIL import Image

from tailprompt import backbones as fetching
from tailprompt import decode, prepare, pretrain, train
from tailprompt.data import download as sources
from tailprompt.data import listings
from tailprompt.data import table as data
from tailprompt.data.labels import in_order
from tailprompt.data.splits import cut
from tailprompt.errors import BadInput, sentence, stage
from tailprompt.files import HOST, beside, json_option, sha256, whole, write_json
from tailprompt.inputs.encode import encode, encode_words
from tailprompt.inputs.tokens import tokenized
from tailprompt.machine.cpus import CPUS
from tailprompt.model import backbones
from tailprompt.model.tensors import write_tensors
from tailprompt.plan import digests
from tailprompt.plan.config import load
from tailprompt.plan.held import claim, held
from tailprompt.plan.retrain import delete
from tailprompt.plan.writable import check_writable
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.training.outcome import write_predictions
from tailprompt.training.state import Learner, Progress, save

ROWS = [
    ("kernel update", "os", "train"),
    ("new kernel", "os", "train"),
    ("a game", "fun", "train"),
    ("more games", "fun", "train"),
    ("kernel", "os", "dev"),
    ("game", "fun", "dev"),
    ("kernels", "os", "test"),
    ("gaming", "fun", "test"),
]
SIBLINGS = ("train/a", "test/a", "other")
LABELLED = {"id": [str(number) for number in range(16)], "split": "train", "label": [0, 1] * 8}
GIVEN = {"text": "text", "label": "label", "split": "split"}


def table(folder, *, rows=ROWS, header="text,label,split", words=None, encoding="utf-8", **row):
    """Load a CSV as a user's data set; `words` are lines of its verbalizer."""
    path = folder / "mine.csv"
    path.write_bytes("\n".join([header, *(",".join(line) for line in rows)]).encode(encoding))
    verbalizer = None
    if words:
        verbalizer = folder / "words.csv"
        verbalizer.write_text("\n".join(["label,words", *words]), "utf-8")
    row = {"name": "mine", "language": "en", "path": str(path), "columns": GIVEN, **row}
    return data.load(row, {"all": path}, words=verbalizer)


def changed(number, place, value):
    """ROWS with one cell changed."""
    rows = [list(row) for row in ROWS]
    rows[number][place] = value
    return rows


def file(folder, content, expected):
    """Find a shipped file whose digest the row states."""
    path = folder / "file.csv"
    path.write_bytes(content)
    row = {"name": "mine", "path": str(path), "sha256": hashlib.sha256(expected).hexdigest()}
    return sources.found(row, data_dir=None, raw=folder, lock=folder / "lock.json")


def parquet(folder, column, cells):
    """Load a Parquet with the same cell in every row of a column."""
    path = folder / "mine.parquet"
    frame = pd.DataFrame(ROWS, columns=["text", "label", "split"])
    frame.assign(**{column: (cells * len(ROWS))[: len(ROWS)]}).to_parquet(path)
    return data.load({"name": "mine", "language": "en", "columns": GIVEN}, {"all": path})


def arrow(folder, columns, names=("text", "label", "split")):
    """Load a Parquet of these columns."""
    path = folder / "mine.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], list(names)), path)
    return data.load({"name": "mine", "language": "en", "columns": GIVEN}, {"all": path})


def lines(folder, text, **row):
    path = folder / "mine.jsonl"
    path.write_text(text, "utf-8")
    return data.load({"name": "mine", "language": "en", **row}, dict.fromkeys(("all", "train", "dev"), path))


def verbalizer(folder, content):
    (folder / "words.csv").write_bytes(content)
    return data.read_words(folder / "words.csv")


def stage_of(module, *arguments):
    """Run the main function of a stage with these arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module.__name__, *arguments])
        module.main()


def write(path, text):
    path.write_text(text, "utf-8")
    return path


def under_a_file(folder):
    """Write where no folder can be."""
    (folder / "file").touch()
    with whole(folder / "file/out.csv"):
        raise AssertionError("this is known before the block")


def saved_state(path, tensors):
    """Write the state from which a killed run goes on."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    save(path, "key", Progress(), Learner(torch.nn.Identity(), tensors, optimizer, float, torch.zeros(())))


def written_predictions(path):
    """Write the predictions of 5,000 examples."""
    logits, labels = torch.randn(5000, 4), torch.zeros(5000, dtype=torch.long)
    split = SimpleNamespace(labels=labels, names=[f"row-{i}" for i in range(5000)])
    write_predictions(path, {"test": logits}, {"test": split}, None, CLASSIFICATION, None)


def trained(*options, point="a/b/c/d/1", asked="asked.json"):
    stage_of(train, "--root", "x", "--point", point, "--asked", str(asked), *options)


def tokens(tokenizer, **changes):
    form = {"input": "prompted", "template": "{text} {mask}", "max_length": 16, "positions": 512, **changes}
    row = pd.DataFrame({"id": ["row"], "text": ["some text"], "label": [0]})
    return encode(row, tokenizer, **form)


def picture(folder, name):
    """Write an image; returns its path."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.effect_noise((20, 20), 50).save(folder / name)
    return folder / name


def shorten(path):
    path.write_bytes(path.read_bytes()[:200])


def photos(root, *_, **row):
    """Decode a folder of images."""
    row = {"name": "mine", "loader": "image_folder", **row}
    decode.decode(row, {}, {}, root, root / "mine.npy", threads=1)


def listed(folder, lines, **row):
    """Decode two images by a list of these lines."""
    for number in range(2):
        picture(folder, f"a/{number}.png")
    row, paths = {"name": "mine", "loader": "image_lists", **row}, {"all": write(folder / "mine.txt", lines)}
    decode.decode(row, paths, {}, folder, folder / "mine.npy", threads=1)


TABLE = {
    "missing column": (
        lambda folder, _: table(folder, header="body,label,split"),
        r"mine\.csv.*'?text'?.*body",
    ),
    "unknown label in test": (
        lambda folder, _: table(folder, rows=changed(6, 1, "music")),
        r"'mine'.*'music' \(mine\.csv:8\)",
    ),
    "empty text": (lambda folder, _: table(folder, rows=changed(2, 0, " ")), r"empty text \(mine\.csv:4\)"),
    "a class with one example": (
        lambda folder, _: table(
            folder,
            rows=[*ROWS[:4], ("one song", "music", "train")],
            header="text,label,part",
            columns={"text": "text", "label": "label"},
        ),
        r"1 class of one example \(music\).*singletons: train",
    ),
    "duplicate ids": (
        lambda folder, _: table(folder, columns={**GIVEN, "id": "text"}, rows=changed(1, 0, "kernel update")),
        r"ids must be unique.*kernel update",
    ),
    "a verbalizer that names no label": (
        lambda folder, _: table(folder, words=["cat,cat", "dog,dog"]),
        r"words\.csv names no label of the data.*cat",
    ),
    "a word of unknown tokens": (
        lambda _, tokenizer: encode_words({"os": "𐎀", "fun": "game"}, tokenizer),
        r"word '𐎀' of class 'os' has no token",
    ),
    "labels that differ in blanks and case": (
        lambda folder, _: table(folder, rows=[*changed(0, 1, " os"), ["more", "FUN", "train"]]),
        r"2 rows have a label that differs .* only: ' os' beside 'os', 'FUN' beside 'fun' "
        r"\(mine\.csv:2, mine\.csv:10\); spell",
    ),
    "a verbalizer with the same words twice": (
        lambda folder, _: table(folder, words=["os,Kernel", "fun,kernel "]),
        r"words\.csv: the classes os, fun have the same words",
    ),
    "the mask cut off": (
        lambda _, tokenizer: tokens(tokenizer, template="{text} " + "long " * 20 + "{mask}"),
        r"leaves 0 of max_length 16 tokens for text; raise max_length or shorten",
    ),
    "wrong encoding": (
        lambda folder, _: table(folder, rows=changed(0, 0, "café"), encoding="latin-1"),
        r"mine\.csv.*byte 20 \(line 2\) is not UTF-8",
    ),
    "truncated file": (
        lambda folder, _: file(folder, b"text,la", b"text,label"),
        r"file\.csv: SHA-256 is .*",
    ),
    "wrong hash": (
        lambda folder, _: file(folder, b"other", b"this"),
        r"expected .*another version or damaged",
    ),
    "text longer than the positions": (
        lambda _, tokenizer: tokens(tokenizer, max_length=600),
        r"max_length 600 is more than the 512 positions",
    ),
    "bytes for text": (
        lambda folder, _: parquet(folder, "text", [b"kernel"]),
        r"mine\.parquet: 8 rows hold bytes in the column 'text' \(mine\.parquet:1, .*a number or a boolean",
    ),
    "times for text": (
        lambda folder, _: parquet(folder, "text", [datetime(2020, 1, 1), pd.NaT]),
        r"hold NaTType, Timestamp in the column 'text'",
    ),
    "fractions for labels": (
        lambda folder, _: parquet(folder, "label", [0.5, 1.0]),
        r"4 rows hold float in the column 'label' .* a whole number or a boolean is wanted",
    ),
    "half a character": (
        lambda folder, _: lines(folder, '{"text": "x", "label": "a"}\n{"text": "\\ud800", "label": "a"}\n'),
        r"mine\.jsonl: line 2 is not JSON .*surrogates not allowed",
    ),
    "JSON without a bottom": (
        lambda folder, _: lines(folder, '{"text": ' + "[" * 100_000),
        r"mine\.jsonl: line 1 is not JSON .*recursion",
    ),
    "a key twice": (
        lambda folder, _: lines(folder, '{"text": "x", "label": "a", "text": "y"}'),
        r"mine\.jsonl: line 1 is not JSON \(the key 'text' stands there twice\)",
    ),
    "a label without end": (
        lambda folder, _: lines(folder, '{"text": "x", "label": Infinity}\n{"text": "y", "label": NaN}'),
        r"mine\.jsonl: 1 row holds float in the column 'label' \(mine\.jsonl:1\)",
    ),
    "text that is no UTF-8 in a Parquet": (
        lambda folder, _: arrow(folder, [pa.array([b"\xff"] * 8).view(pa.string())] * 3),
        r"mine\.parquet cannot be read \(.*UTF8",
    ),
    "columns of one name in a Parquet": (
        lambda folder, _: arrow(folder, [["x"]] * 4, ["text", "label", "text", "split"]),
        r"mine\.parquet: several columns have 'text'; give each a name of its own",
    ),
    "columns without a name": (
        lambda folder, _: table(folder, header="text,label,,", rows=[("x", "y", "", "")]),
        r"mine\.csv: several columns have no name; give each a name of its own",
    ),
    "a text of nothing to see": (
        lambda folder, _: table(folder, rows=[*changed(0, 0, "\u200b"), ["\x01 \ufeff", "os", "train"]]),
        r"2 rows have an empty text \(mine\.csv:2, mine\.csv:10\)",
    ),
    "digests that are damaged": (
        lambda folder, _: sources.locked(write(folder / "lock.json", "[")),
        r"lock\.json is not JSON",
    ),
    "a list of no objects": (
        lambda folder, _: lines(folder, "[1, 2]"),
        r"mine\.jsonl: 2 lines are not a JSON object",
    ),
    "objects of another data set": (
        lambda folder, _: lines(folder, '{"sentence": "x"}', loader="clue"),
        r"mine\.jsonl: 1 line is not a JSON object with label_des, sentence \(lines 1\)",
    ),
    "a cut of too few": (
        lambda folder, _: table(folder, cut={"train": 1}),
        "^'mine': train=1 is not possible",
    ),
    "a split column that no one names": (
        lambda folder, _: table(folder, columns={}),
        r"mine\.csv has a column 'split' that .* does not use; name it there in columns \(split: split\)",
    ),
    "a Split column of Training and Testing that no one names": (
        lambda folder, _: table(
            folder,
            rows=[
                (*row[:2], {"train": "Training", "dev": "VALID", "test": "Testing"}[row[2]]) for row in ROWS
            ],
            header="text,label,Split",
            columns={},
        ),
        r"mine\.csv has a column 'Split' .*name it there in columns \(split: Split\)",
    ),
    "a verbalizer of a header only": (
        lambda folder, _: verbalizer(folder, b"label,words\n"),
        r"words\.csv has no rows; it needs one label,words for every class",
    ),
    "a verbalizer that is a folder": (
        lambda folder, _: data.read_words(folder),
        "the verbalizer .* is no file",
    ),
    "a verbalizer of another encoding": (
        lambda folder, _: verbalizer(folder, "label,words\nos,café".encode("latin-1")),
        r"words\.csv: byte 18 \(line 2\) is not UTF-8; save the file as UTF-8 ",
    ),
    "a data_dir that is a file": (
        lambda folder, _: sources.found(
            {"name": "mine", "files": {"all": {"name": "a.csv"}}}, data_dir=__file__, raw=folder, lock=folder
        ),
        r"data_dir .*test_bad_input\.py is no folder",
    ),
    "two masks": (
        lambda _, tokenizer: tokens(tokenizer, template="{text} {mask} {mask}"),
        r"template '.*' needs {text} and {mask} once each",
    ),
    "a template with a form": (
        lambda _, tokenizer: tokens(tokenizer, template="{text!r} {mask}"),
        r"template '.*' has {text!r}; allowed here: {text} and {mask} once each",
    ),
    "a template of nothing": (
        lambda _, tokenizer: tokens(tokenizer, template=""),
        "template '' needs {text} and {mask} once each",
    ),
    "classes of the same words": (
        lambda _, tokenizer: encode_words({"os": "game", "fun": "game"}, tokenizer, source="words.csv"),
        r"words\.csv: classes 'os' and 'fun' are scored by the same tokens",
    ),
    "a place that cannot be written": (
        lambda folder, _: under_a_file(folder),
        r"file/out\.csv cannot be written \(.*file\)",
    ),
    "a folder to write to": (
        lambda folder, _: write_json(folder, {}),
        r" is a folder; name a file in it to write to$",
    ),
    "a data set that is no row": (
        lambda folder, _: stage_of(prepare, "--dataset", "[]", "--raw", str(folder), "--out", "x"),
        "--dataset must be a JSON object, not a list",
    ),
    "a data set without its keys": (
        lambda folder, _: stage_of(prepare, "--dataset", "{}", "--raw", str(folder), "--out", "x"),
        "--dataset lacks language, name",
    ),
    "a backbone that is no row": (
        lambda *_: stage_of(fetching, "--name", "x", "--row", "{", "--out", "x"),
        "--row is not JSON",
    ),
    "a backbone from nowhere": (
        lambda *_: backbones.load({"family": "bert"}),
        "row needs path, or hub and revision",
    ),
    "a backbone in a type of its own": (
        lambda *_: backbones.load(
            {"family": "t5", "path": "workflow/resources/backbones/t5-mini", "dtype": "nn"}
        ),
        "unknown dtype of backbone .*t5-mini, 'nn'; known: bfloat16, float32",
    ),
    "a point that is none": (
        lambda *_: trained(point="a/b"),
        "--point a/b is not protocol/backbone/dataset/method/seed",
    ),
    "a seed that is no number": (
        lambda *_: trained(point="a/b/c/d/e"),
        "--point a/b/c/d/e is not protocol/backbone/dataset/method/seed",
    ),
    "a seed that no generator takes": (
        lambda *_: trained(point=f"a/b/c/d/{2**32}"),
        "--point a/b/c/d/4294967296: a seed is a number from 0 to 4294967295",
    ),
    "an asked file that is none": (
        lambda folder, _: trained(asked=write(folder / "1.json", "[]")),
        r"1\.json must be a JSON object, not a list",
    ),
    "an asked file whose settings lack most": (
        lambda folder, _: trained(
            asked=write(folder / "1.json", '{"settings": {"lr": 1}, "extras": {}, "backbone": {}}')
        ),
        r"1\.json lacks input; it has lr",
    ),
    "a broken image": (
        lambda folder, _: photos(folder, write(picture(folder, "a/1.png"), "junk")),
        r"'mine': 1 image cannot be decoded: a/1\.png \(cannot identify image file",
    ),
    "a half of an image": (
        lambda folder, _: photos(folder, shorten(picture(folder, "a/1.png"))),
        r"'mine': 1 image cannot be decoded: a/1\.png \(.*truncated",
    ),
    "a list of absent images": (
        lambda folder, _: listed(folder, "a/0.png 0\nb/0.png 1\n"),
        r"'mine': 1 file is absent: b/0\.png \(mine\.txt:2\)$",
    ),
    "a list with a label out of range": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png 2\n", classes=2),
        r"'mine': 1 label is out of range, 0 to 1: 2 of a/1\.png \(mine\.txt:2\); 1 class has no",
    ),
    "a list with paths from the root": (
        lambda folder, _: listed(folder, "/a/0.png 0\na/1.png 1\n"),
        r"'mine': 1 path begins with /, where paths are read below the root: /a/0\.png \(mine\.txt:1\)",
    ),
    "a list without labels": (
        lambda folder, _: listed(folder, "a/0.png\n"),
        r"mine\.txt: 1 line holds no path and label \(mine\.txt:1\); a line is relative/path and a label",
    ),
    "a folder without images": (
        lambda folder, _: photos(picture(folder, "a/1.png").parent),
        r"a: no folder of images for each class is there .in it is: .png 1.; put the images of",
    ),
    "a folder of a class without images": (
        lambda folder, _: photos(folder, picture(folder, "a/1.png"), (folder / "b").mkdir()),
        r"1 folder of a class has no image: b; fill or remove them, images end in \.bmp",
    ),
    "folders of classes that differ in case": (
        lambda folder, _: photos(folder, *(picture(folder, f"{name}/1.png") for name in ("C0", "c0"))),
        r"'mine': 1 class differs from another in blanks or case only: 'c0' beside 'C0'; "
        r"spell each class in one way$",
    ),
    "a list with labels that differ in case": (
        lambda folder, _: listed(folder, "a/0.png c3\na/1.png C3\n"),
        r"'mine': 1 class differs from another in blanks or case only: 'C3' beside 'c3'; "
        r"spell each class in one way$",
    ),
    "classes beside splits": (
        lambda folder, _: photos(folder, *(picture(folder, f"{name}/1.png") for name in SIBLINGS)),
        r": the folders other are beside test, train; a folder has classes, or train, val and test alone",
    ),
    "a name that is no text": (
        lambda folder, _: photos(folder, picture(folder, "a/1.png").rename(folder / "a/\udcff.png")),
        r"1 name of images with control characters, or bytes that are no UTF-8: '.*\\udcff\.png'; rename",
    ),
    "a name of two lines": (
        lambda folder, _: photos(folder, picture(folder, "a/1\n2.png")),
        r"1 name of images with control characters, or bytes that are no UTF-8: '.*a/1\\n2\.png'; rename",
    ),
    "an image of numbers without a range": (
        lambda folder, _: photos(folder, Image.new("F", (9, 9)).save(picture(folder, "a/1.tiff"))),
        r"cannot be decoded: a/1\.tiff \(32 bits a pixel, mode F; save it with 8 or 16\)",
    ),
    "an image that its border covers": (
        lambda folder, _: photos(folder, picture(folder, "a/1.png"), border=10),
        r"a/1\.png \(a border of 10 leaves nothing of 20 x 20 pixels\)",
    ),
    "a list with an image twice, in two forms": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png 1\n./a/../a/0.png 0\n"),
        r"'mine': 1 image is listed twice: a/0\.png \(mine\.txt:3\)",
    ),
    "a list with a negative label": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png -1\n"),
        r"'mine': 1 label is out of range, 0 to 0: -1 of a/1\.png \(mine\.txt:2\)",
    ),
    "a list with a word among its numbers": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png 1O\n"),
        r"'mine': 1 label is no whole number, as others are: 1O \(mine\.txt:2\); a list has class ids",
    ),
    "a list with a label beyond all": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png 999999999\n"),
        r"'mine': label 999999999 \(mine\.txt:2\) is more than its 2 images can have; class ids go",
    ),
    "more classes than images": (
        lambda folder, _: listed(folder, "a/0.png 0\na/1.png 1\n", classes=10**9),
        r"'mine': classes: 1000000000 in its row is more than its 2 images can have",
    ),
    "a list with a name that no file can have": (
        lambda folder, _: listed(folder, f"a/0.png 0\na/\0.png 1\na/{'x' * 300}.png 1\n"),
        r"'mine': 2 files are absent: 'a/\\x00\.png' \(mine\.txt:2\), a/xxx",
    ),
    "a cut that leaves nothing of a class": (
        lambda *_: cut(pd.DataFrame(LABELLED), {"imbalance": 10}, 2, draw="ldam"),
        r"imbalance=10 leaves 1 class without a training row; as drawn by LDAM's code .* classes, 8 rows",
    ),
    "images of nowhere": (
        lambda *_: listings.image_folder({}, {"name": "mine"}, None),
        r"'mine': its images are the user's to get; name their folder, root: DIR in datasets\.mine",
    ),
    "a config typo": (
        lambda *_: load(values={"protocols": {"glee": {"settings": {"epoch": 3}}}}),
        r"--config: unknown key 'epoch' in protocols\.glee\.settings; known: .*epochs",
    ),
}


@pytest.mark.parametrize("kind", TABLE)
def test_bad_input_ends_in_one_clear_sentence(tmp_path, tokenizer, kind):
    cause, sentence = TABLE[kind]
    with pytest.raises(BadInput, match=sentence) as caught:
        cause(tmp_path, tokenizer)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_file_whatever_its_encoding(tmp_path):
    rows, _ = table(tmp_path, header="\ufefftext,label,split")
    assert len(rows) == len(ROWS)
    assert list(verbalizer(tmp_path, "\ufefflabel,words\nos,kernel".encode())["label"]) == ["os"]


@pytest.mark.parametrize("column, cells", [("label", [1, 2]), ("label", [True, False]), ("text", [1.5, 2.0])])
def test_numbers_and_booleans_of_a_parquet_are_text(tmp_path, column, cells):
    made, classes = parquet(tmp_path, column, cells)
    assert len(made) == len(ROWS) and (column == "text" or classes == sorted(map(str, cells)))


def test_labels_that_are_almost_numbers_are_ordered_by_name():
    assert in_order(pd.Series(["10", "--1", "9"])) == ["--1", "10", "9"]
    assert in_order(pd.Series(["10", "-1", "9"])) == ["-1", "9", "10"]
    assert in_order(pd.Series(["9", "1" * 5000])) == ["1" * 5000, "9"]  # more than Python reads


def test_a_file_that_the_system_does_not_give_is_one_line(capsys):
    with pytest.raises(SystemExit) as end:
        stage(lambda: open("no/such/file"))
    said = "error: no/such/file cannot be read or written (No such file or directory)\n"
    assert end.value.code == 2 and capsys.readouterr().err == said


def writes_json(root):
    write_json(root / "asked/one.json", {})


def makes_beside(root):
    with beside(root / "from_bundles"):
        pass


def holds(root):
    with held(root / "runs/1"):
        pass


def deletes(root):
    delete([root / "runs"])


READ_ONLY = OSError(errno.EROFS, "Read-only file system", "results/tiny")


@pytest.mark.parametrize("writes", [writes_json, makes_beside, holds, claim, deletes])
def test_results_that_cannot_be_written_are_one_sentence(tmp_path, monkeypatch, capsys, writes):
    def refuse(*_, **__):
        raise READ_ONLY

    for owner, name in (Path, "mkdir"), (Path, "touch"), (shutil, "rmtree"):
        monkeypatch.setattr(owner, name, refuse)
    with pytest.raises(SystemExit) as end:
        stage(lambda: writes(tmp_path))
    said = capsys.readouterr().err
    assert end.value.code == 2 and re.match(
        r"error: .+ cannot be (deleted|(read or )?written) \(Read-only file system", said
    )
    assert said.count("\n") == 1 and "Errno" not in said


def test_a_name_that_the_system_does_not_give_a_written_file_is_said_and_not_that_of_its_half(
    tmp_path, monkeypatch
):
    def locked(source, target):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(source), None, str(target))

    monkeypatch.setattr(os, "replace", locked)
    file = tmp_path / "run.json"
    says = (
        rf"^{file} cannot be written \(Operation not permitted: {file}\); give this user the right to it \("
    )
    with pytest.raises(BadInput, match=says):
        write_json(file, {})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EROFS, errno.EACCES])
def test_a_disk_that_fails_while_a_file_is_written_is_said_with_the_file(tmp_path, number):
    with pytest.raises(BadInput, match=rf"run\.json cannot be written \({os.strerror(number)} after 5 bytes"):
        with whole(tmp_path / "run.json") as temporary:
            temporary.write_text("begun")
            raise OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "error, says",
    [
        (
            OSError(errno.EACCES, "Permission denied", "a"),
            r"a cannot .* \(Permission denied\); give this user",
        ),
        (OSError(errno.EROFS, "Read-only file system", "a"), r"a .*; take a place on another disk"),
        (
            OSError(errno.ENOTDIR, "Not a directory", "a"),
            r"a .*; move the file away that is where a folder is",
        ),
        (OSError(errno.EISDIR, "Is a directory", "a"), r"a .*; move the folder away that is where a file is"),
        (
            OSError(errno.EPERM, "Not permitted", ".a.part", None, "a"),
            r"a cannot be read or written \(Not perm",
        ),
        (OSError(errno.EMFILE, "Too many open files", "a"), r"a cannot .* \(Too many open files\)$"),
    ],
)
def test_what_to_do_is_said_where_the_system_refuses_a_file(error, says):
    assert re.match(says, sentence(error))


def test_what_jobs_could_not_write_is_refused_before_the_first(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("data/toy.json", "logs/toy.log", "runs/1/run.json")]
    files[1].parent.mkdir()
    files[1].touch()
    check_writable(files)
    shut = {"folder": tmp_path / "logs", "file": files[1]}
    for place in shut.values():
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda path, _, place=place: Path(path) != place)
            with pytest.raises(PermissionError) as refused:
                check_writable(files)
        assert refused.value.filename == str(place)
    (tmp_path / "data").touch()
    with pytest.raises(NotADirectoryError) as refused:
        check_writable(files)
    assert refused.value.filename == str(tmp_path / "data")


def test_a_read_only_file_is_replaced_as_ever(tmp_path):
    (tmp_path / "run.json").touch(mode=0o444)
    check_writable([tmp_path / "run.json"])


def test_digests_that_cannot_be_kept_are_computed_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "LARGE", 0)
    monkeypatch.setattr(digests, "QUIET", 0)
    (tmp_path / "weights").write_text("weights")
    (tmp_path / "results").touch()  # where a folder should be
    assert digests.digest_of(tmp_path / "weights", tmp_path) == sha256(tmp_path / "weights")


@pytest.mark.parametrize("writes", [writes_json, makes_beside, holds, claim])
def test_a_link_to_results_that_leads_nowhere_is_said(tmp_path, monkeypatch, capsys, writes):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("gone")
    with pytest.raises(SystemExit):
        stage(lambda: writes(Path("results/tiny")))
    said = capsys.readouterr().err
    assert re.match(
        r"error: results.* cannot be (read or )?written \(a link to gone, which is not there", said
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stage_that_a_signal_ends_says_so(capsys, number):
    with pytest.raises(SystemExit) as end:
        stage(lambda: signal.raise_signal(number))
    said = f"stopped by {number.name}; nothing is left half-written, and the same command begins again\n"
    assert end.value.code == 128 + number and capsys.readouterr().err == said


def test_a_python_that_knows_ascii_alone_is_refused_before_a_file_is_missed():
    command = [sys.executable, "-c", "from tailprompt.plan.config import load; load(['tests/tiny.yaml'])"]
    ascii_alone = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": "src"}
    done = subprocess.run(command, env=ascii_alone, text=True, capture_output=True)
    assert "can name files and print in ASCII alone here; unset PYTHONUTF8" in done.stderr.splitlines()[-1]


def test_a_stage_that_is_asked_to_end_leaves_nothing_half_written(tmp_path):
    def main():
        with whole(tmp_path / "large.npy"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(9)

    with pytest.raises(SystemExit) as end:
        stage(main)
    assert end.value.code == 143 and not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_when_its_file_is_written_again(tmp_path):
    def left(name, number, host=HOST):
        (tmp_path / f".{name}.{host}-{number}.part").touch()

    dead = subprocess.Popen(["true"])
    dead.wait()
    kept = [("a[1].npy", os.getppid(), HOST), ("a[1].npy", dead.pid, "elsewhere"), ("b.npy", dead.pid, HOST)]
    for part in [("a[1].npy", dead.pid), *kept]:
        left(*part)
    with whole(tmp_path / "a[1].npy"):
        pass
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"a[1].npy", *(f".{name}.{host}-{number}.part" for name, number, host in kept)}


@pytest.mark.parametrize("write", [write_tensors, saved_state], ids=["weights", "state"])
def test_weights_that_the_disk_does_not_take_are_one_sentence(tmp_path, write):
    with small_files(100_000), pytest.raises(BadInput, match=r"weights cannot be written \(") as error:
        write(tmp_path / "weights", {"a": torch.zeros(100_000)})
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--threads", "--slots", "--cards"])
def test_no_thread_and_no_slot_is_one_line(capsys, option):
    with pytest.raises(SystemExit) as end:
        trained(option, "0")
    said = capsys.readouterr().err
    assert end.value.code == 2 and "are numbers from 1" in said


@pytest.mark.parametrize("stage", [train, decode, pretrain])
@pytest.mark.parametrize("number", ["0", "-1", str(CPUS + 1), "100000"])
def test_threads_that_the_machine_has_no_cpus_for_are_refused_with_those_it_has(capsys, stage, number):
    with pytest.raises(SystemExit) as end:
        stage_of(stage, "--threads", number)
    says = f"argument --threads: threads are numbers from 1 to {CPUS}, the CPUs of this machine\n"
    assert end.value.code == 2 and capsys.readouterr().err.endswith(says)


@pytest.mark.parametrize("left", ["predictions", "tokens", "json"])
def test_a_full_disk_is_said_with_the_file(tmp_path, tokenizer, left):
    file, write = {
        "predictions": ("predictions.parquet", lambda path: written_predictions(path)),
        "tokens": (r"\w+\.ids", lambda path: tokenized(tokenizer, ["gold " * 50_000], path.parent)),
        "json": ("run.json", lambda path: write_json(path, ["x" * 200_000])),
    }[left]
    says = rf"^{tmp_path}/{file} cannot be written \(File too large after [\d,]+ bytes; .* free\)$"
    with small_files(50_000), pytest.raises(BadInput, match=says):
        write(tmp_path / file)
    assert not [*tmp_path.iterdir()]


def test_the_same_table_without_a_fault_is_accepted(tmp_path):
    rows, classes = table(tmp_path, words=["os,kernel", "fun,game"])
    assert len(rows) == len(ROWS) and classes == ["os", "fun"]


def test_an_option_is_json_or_a_file_with_it(tmp_path):
    file = write(tmp_path / "row.json", '{"name": "mine"}')
    for given in ('{"name": "mine"}', str(file)):
        assert json_option(given, "--dataset", "name") == {"name": "mine"}
    wrong = {"{": "--dataset is not JSON", str(tmp_path / "no.json"): r"no\.json cannot be read"}
    for given, says in wrong.items():
        with pytest.raises(BadInput, match=says):
            json_option(given, "--dataset", "name")
    with pytest.raises(BadInput, match=r"row\.json lacks language; it has name"):
        json_option(str(file), "--dataset", "language")
