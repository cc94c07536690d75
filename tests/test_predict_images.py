"""A trained run on new images: a folder, a list or one file, and all that is wrong with them at once."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import toy
import toy_images
from PIL import ExifTags, Image
from rounding import of_half

from tailprompt import predict
from tailprompt.data.new_rows import rows_of
from tailprompt.errors import BadInput
from tailprompt.tasks.classification import CLASSIFICATION


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A scale's folder with a prepared set of pictures."""
    folder = tmp_path_factory.mktemp("scale")
    toy_images.prepare(folder)
    return folder


@pytest.fixture(scope="module")
def runs(root):
    """Run folders by method."""
    first, linear = toy_images.run(root, "lpt-phase1"), toy_images.run(root, "linear")
    return {
        "linear": linear,
        "lpt": toy_images.run(root, "lpt", start=first),
        "lpt-plus": toy_images.run(root, "lpt-plus"),
        "finetune": toy_images.run(root, "finetune", lr=1e-3, keep=True),
        "probed": toy_images.run(root, "finetune", seed=2, start=linear, lr=1e-3, keep=True),
        "head": toy_images.run(root, "finetune-balanced", lr=1e-3),
    }


@pytest.fixture
def pictures(root):
    """The folder of the test images, in classes."""
    return root / "pictures/toy/test"


def run(folder, file, out, **options):
    predict.predict_file(folder, file, out, encoding="utf-8-sig", device="cpu", **options)
    return pd.read_csv(out)


def softmax(values):
    values = np.exp(values - values.max(1, keepdims=True))
    return values / values.sum(1, keepdims=True)


@pytest.mark.parametrize("method", ["linear", "lpt", "lpt-plus", "finetune", "probed"])
def test_a_runs_own_test_images_get_the_predictions_it_stored(runs, pictures, tmp_path, method):
    made = run(runs[method], pictures, tmp_path / "out.csv")
    kept = toy.scores(runs[method]).query("split == 'test'")
    ids = [str(pictures.parent / name) for name in kept.id]
    assert made.path.tolist() == sorted(ids) == ids
    assert made.prediction.tolist() == [toy_images.CLASSES[label] for label in kept.prediction]
    stored = kept[[0, 1, 2]].to_numpy()
    assert made.probability.to_numpy() == pytest.approx(softmax(stored).max(1), rel=0, abs=of_half(stored))
    assert made.columns.tolist() == ["path", *CLASSIFICATION.shown_as]


def test_files_of_a_folder_that_are_no_images_are_counted(pictures, capsys):
    (pictures / "ring/phone.heic").touch()
    table = rows_of(pictures, "utf-8", {}, images=True)
    (pictures / "ring/phone.heic").unlink()
    assert not table.path.str.contains("heic").any()
    assert "other files skipped: .heic 1; images end in" in capsys.readouterr().err
    rows_of(pictures, "utf-8", {}, images=True)
    assert not capsys.readouterr().err


def test_a_list_keeps_its_columns_and_its_paths_begin_at_its_folder(runs, pictures, tmp_path, monkeypatch):
    names = ["ring/2.png", "bar/0.png", "disc/1.png"]
    pd.DataFrame({"file": names, "who": ["a", "b", "c"]}).to_csv(pictures / "list.csv", index=False)
    monkeypatch.chdir(tmp_path)
    made = run(runs["lpt"], pictures / "list.csv", tmp_path / "out.csv", path="file")
    whole = run(runs["lpt"], pictures, tmp_path / "whole.csv").set_index("path")
    assert made.file.tolist() == names and made.who.tolist() == ["a", "b", "c"]
    assert made.prediction.tolist() == [whole.prediction[str(pictures / name)] for name in names]
    (pictures / "list.csv").unlink()


def test_one_image_is_a_row(runs, pictures, tmp_path):
    made = run(runs["linear"], pictures / "bar/0.png", tmp_path / "out.csv")
    assert made.path.tolist() == [str(pictures / "bar/0.png")]


def test_images_are_decoded_as_those_of_the_run_were(root, pictures, tmp_path):
    toy_images.prepare(root, "squashed", fit="squash", border=2)
    folder = toy_images.run(root, "linear", dataset="squashed")
    for path in (root / "pictures/squashed/test").glob("*/*.png"):  # stored on its head, seen as it was
        exif = Image.Exif()
        exif[ExifTags.Base.Orientation] = 3
        Image.open(path).transpose(Image.Transpose.ROTATE_180).save(path, exif=exif)
    made = run(folder, root / "pictures/squashed/test", tmp_path / "out.csv")
    kept = toy.scores(folder).query("split == 'test'")
    stored = kept[[0, 1, 2]].to_numpy()
    assert made.probability.to_numpy() == pytest.approx(softmax(stored).max(1), rel=0, abs=of_half(stored))


def test_images_in_chunks_are_images_in_one(runs, pictures, tmp_path, monkeypatch):
    whole = run(runs["lpt"], pictures, tmp_path / "whole.csv")
    monkeypatch.setattr(predict, "CHUNK", 5)
    parts = run(runs["lpt"], pictures, tmp_path / "parts.csv")
    assert parts.prediction.equals(whole.prediction)


def test_a_run_moved_elsewhere_predicts_without_data(runs, pictures, tmp_path):
    moved = shutil.copytree(runs["lpt"], tmp_path / "elsewhere")
    for file in moved.iterdir():
        if file.name not in ("run.json", "weights.safetensors"):
            file.unlink()
    assert len(run(moved, pictures, tmp_path / "out.csv")) == 17
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "out.csv"}  # no array is left behind


def refused(words, folder, file, out, **options):
    with pytest.raises(BadInput) as error:
        run(folder, file, out, **options)
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message


def test_all_absent_and_broken_images_are_named_before_the_model_is_loaded(
    runs, pictures, tmp_path, monkeypatch
):
    monkeypatch.setattr(predict, "apply", None)
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "half.png").write_bytes((pictures / "bar/1.png").read_bytes()[:300])
    refused(["2 images cannot be decoded", "text.png", "half.png"], runs["lpt"], tmp_path, tmp_path / "o.csv")
    (tmp_path / "list.csv").write_text("path\ntext.png\nnone.png\nhalf.png\n")
    words = [
        "1 file is absent: none.png (list.csv:3)",
        "2 images cannot be decoded: text.png (list.csv:2)",
        "half.png (list.csv:4)",
    ]
    refused(words, runs["lpt"], tmp_path / "list.csv", tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists() and len(list(tmp_path.iterdir())) == 3


def test_what_does_not_go_with_a_run_is_one_sentence(runs, pictures, tmp_path):
    out = tmp_path / "out.csv"
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.csv").write_text("file\na.png\n")
    refused(["no image is there", ".jpg"], runs["lpt"], tmp_path / "empty", out)
    refused(["has no column 'path'", "it has: file", "--path"], runs["lpt"], tmp_path / "list.csv", out)
    refused(["there is no file"], runs["lpt"], tmp_path / "none", out)
    refused(["trained on images; leave out --pair, --text"], runs["lpt"], pictures, out, text="a", pair="b")
    refused(["holds the head without its body", "keep: true"], runs["head"], pictures, out)


def test_a_run_whose_data_do_not_say_how_they_were_decoded_is_refused(runs, pictures, tmp_path):
    moved = shutil.copytree(runs["linear"], tmp_path / "moved")
    about = json.loads((moved / "run.json").read_text("utf-8"))
    about["data"]["decoded"] = {"side": 20}
    (moved / "run.json").write_text(json.dumps(about), "utf-8")
    refused(["is not the folder of a finished run", "lacks border, fit"], moved, pictures, tmp_path / "o.csv")


def test_a_run_on_texts_takes_no_folder_and_no_paths(tmp_path):
    folder = toy.run(tmp_path, "linear", epochs=1)
    refused(["is a folder; a run on texts takes a file"], folder, tmp_path, tmp_path / "o.csv")
    (tmp_path / "rows.csv").write_text("text\nsong\n")
    words = ["trained on single texts; leave out --path"]
    refused(words, folder, tmp_path / "rows.csv", tmp_path / "o.csv", path="text")


def test_the_command_writes_beside_the_folder(runs, pictures, tmp_path, monkeypatch, capsys):
    shutil.copytree(pictures, tmp_path / "holiday.2026")
    monkeypatch.chdir(tmp_path / "holiday.2026")
    monkeypatch.setattr(sys, "argv", ["predict", str(runs["linear"]), ".", "--device", "cpu"])
    predict.main()
    assert capsys.readouterr().out.strip() == str(tmp_path / "holiday.2026.predictions.csv")
    assert len(pd.read_csv(tmp_path / "holiday.2026.predictions.csv")) == 17
