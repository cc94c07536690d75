"""Images of every source become one array and a listing, and all their faults are reported together."""

import io
import json
import lzma
import pickle
import sys
import tarfile

import numpy as np
import pandas as pd
import pytest
from PIL import ExifTags, Image

from tailprompt import decode, prepare
from tailprompt.data import imagenet as shifted
from tailprompt.data import listings, pictures, report
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.plan.config import load

ROW = {"name": "mine", "title": "Mine", "language": "image", "threshold": None, "side": 8}


def picture(path, color=(200, 100, 50), size=(12, 10), mode="RGB", **options):
    """Write an image file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).convert(mode).save(path, **options)
    return path


def run(folder, row, paths=None, root=None, **options):
    """Decode into folder/mine.npy; returns the pixels, the listing and what it says of itself."""
    paths = {key: folder / name for key, name in (paths or {}).items()}
    decode.decode({**ROW, **row}, paths, {}, root or folder, folder / "mine.npy", threads=2, **options)
    table, about = data.read_table(folder / "mine.parquet")
    return np.load(folder / "mine.npy"), table, about


def refused(folder, row, *words, paths=None, root=None):
    with pytest.raises(BadInput) as caught:
        run(folder, row, paths, root)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence
    assert not list(folder.glob("*mine.*"))


def class_folders(root, classes="ab", number=10):
    for c, name in enumerate(classes):
        for i in range(number):
            picture(root / name / f"{i}.png", (20 * c, 20 * i, 0))


# one image


STORED = [("L", "png", "L"), ("P", "png", "P"), ("RGBA", "png", "RGBA on white"), ("CMYK", "jpg", "CMYK")]


@pytest.mark.parametrize("mode, ending, named", STORED)
def test_any_mode_becomes_rgb_and_is_named(tmp_path, mode, ending, named):
    pixels, found = pictures.decoded(picture(tmp_path / f"a.{ending}", (102, 102, 102), mode=mode), 6)
    assert found == named and pixels.shape == (6, 6, 3) and np.abs(pixels.astype(int) - 102).max() < 6


HOLES = [(mode, "png", {"transparency": key}) for mode, key in (("P", 7), ("L", 7), ("RGB", (7, 7, 7)))]
HOLES += [("P", "gif", {"transparency": 7}), ("RGBA", "png", {}), ("LA", "png", {})]
HOLES += [("RGBA", "webp", {"lossless": True}), ("RGBA", "tiff", {})]


@pytest.mark.parametrize("mode, ending, options", HOLES)
def test_what_is_transparent_lies_on_white(tmp_path, mode, ending, options):
    drawing = Image.new("L", (6, 6), 7)
    drawing.paste(0, (2, 2, 4, 4))
    stored = drawing.convert(mode)
    if "A" in mode:
        stored.putalpha(drawing.point(lambda value: 255 * (value == 0)))
    stored.save(tmp_path / f"a.{ending}", **options)
    pixels, found = pictures.decoded(tmp_path / f"a.{ending}", 6)
    assert found == f"{mode} on white"
    assert (pixels[0] == 255).all() and (pixels[2:4, 2:4] == 0).all()


def test_an_image_without_a_hole_keeps_its_pixels_whatever_its_alpha(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    Image.fromarray(pixels).convert("RGBA").save(tmp_path / "a.png")
    assert (pictures.decoded(tmp_path / "a.png", 6)[0] == pixels).all()


def sideways(path):
    """A photo of a phone: left half dark as it is stored, upper half dark as it is seen."""
    pixels = np.full((8, 8, 3), 200, np.uint8)
    pixels[:, :4] = 0
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, exif=exif, quality=95)


@pytest.mark.parametrize("loader", ["image_folder", "image_lists"])
def test_own_photos_are_turned_as_their_exif_says_unless_told_otherwise(tmp_path, loader):
    for name in ("a/1.jpg", "b/1.jpg"):
        sideways(tmp_path / "mine" / name)
    (tmp_path / "all.txt").write_text("a/1.jpg 0\nb/1.jpg 1\n")
    paths = {"all": "all.txt"} if loader == "image_lists" else None
    for told, upright in (({}, True), ({"upright": False}, False), ({"upright": True}, True)):
        pixels, _, about = run(tmp_path, {"loader": loader, **told}, paths, tmp_path / "mine")
        upper, left = pixels[0, 2].mean(), pixels[0, :, 2].mean()
        assert upper == pytest.approx(0 if upright else 100, abs=9)
        assert left == pytest.approx(100 if upright else 0, abs=9)
        assert about["decoded"]["upright"] == upright


def test_published_photos_are_not_turned_as_the_papers_loaders_turn_none(tmp_path):
    sideways(tmp_path / "a" / "n01498041" / "0.jpg")
    row = {"loader": "wordnet_folders", "trained_on": "imagenet-lt"}
    assert not run(tmp_path, row, root=tmp_path / "a")[2]["decoded"]["upright"]
    rows = [row for row in load()["datasets"].values() if row.get("loader") == "image_lists"]
    assert rows and not any(row["upright"] for row in rows)


def test_a_crop_keeps_the_middle_and_a_squash_keeps_all():
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200
    assert (pictures.decoded(wide, 10)[0] == 200).all()
    squashed = pictures.decoded(wide, 10, fit="squash")[0]
    assert squashed.shape == (10, 10, 3) and squashed[5, 0, 0] == 0 and squashed[5, 5, 0] > 190


def test_a_border_is_cut_off_before_an_image_is_scaled():
    framed = np.full((12, 12, 3), (255, 0, 0), np.uint8)
    framed[2:-2, 2:-2] = 7
    assert (pictures.decoded(framed, 16, border=2)[0] == 7).all()


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    Image.fromarray(np.full((6, 6), 0x4080, np.uint16)).save(tmp_path / "a.png")
    pixels, mode = pictures.decoded(tmp_path / "a.png", 6)
    assert mode == "I;16" and (pixels == 0x40).all()


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1)])
def test_of_a_very_long_image_the_middle_alone_is_scaled(size):
    pixels = np.zeros((*size, 3), np.uint8)
    pixels[29_990 * (size[0] > 1) : 30_010, 29_990 * (size[1] > 1) : 30_010] = 200
    assert (pictures.decoded(pixels, 64)[0] == 200).all()


# sources


def archive(path, number=6):
    """An archive like CIFAR-100's of a few images."""
    pixels = np.random.default_rng(0).integers(0, 256, (number, 3072), np.uint8)
    labels = [number - 1 - i for i in range(number)]
    parts = {"meta": {"fine_label_names": [f"z{c}" if c else "zz" for c in range(number)]}}
    parts |= {split: {"data": pixels, "fine_labels": labels} for split in ("train", "test")}
    with tarfile.open(path, "w:gz") as file:
        for name, part in parts.items():
            content = pickle.dumps(part)
            entry = tarfile.TarInfo(f"cifar-100-python/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return pixels


def test_the_cifar_archive_keeps_its_class_order_and_its_pixels(tmp_path):
    stored = archive(tmp_path / "c.tar.gz")
    pixels, table, about = run(tmp_path, {"loader": "cifar100", "side": 32}, {"all": "c.tar.gz"})
    assert about["classes"] == ["zz", "z1", "z2", "z3", "z4", "z5"] and len(pixels) == 12
    assert (pixels[:6] == stored.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)).all()
    assert list(table["label"][:6]) == ["z5", "z4", "z3", "z2", "z1", "zz"] and table["id"][7] == "test:1"


def test_an_archive_that_would_run_something_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    with pytest.raises(pickle.UnpicklingError, match=r"builtins.print is no part of CIFAR-100"):
        listings.Numbers(io.BytesIO(pickle.dumps(Evil()))).load()
    (tmp_path / "c.tar.gz").write_bytes(b"junk")
    refused(tmp_path, {"loader": "cifar100"}, "c.tar.gz cannot be read", paths={"all": "c.tar.gz"})


def test_parquet_files_of_images_are_read_too(tmp_path):
    content = picture(tmp_path / "a.png").read_bytes()
    for split in ("train", "test"):
        frame = pd.DataFrame({"image": [content] * 11, "fine_label": [*range(10, -1, -1)]})
        frame.to_parquet(tmp_path / f"{split}.parquet")
    paths = {split: f"{split}.parquet" for split in ("train", "test")}
    _, table, about = run(tmp_path, {"loader": "cifar100"}, paths)
    assert about["classes"] == [str(c) for c in range(11)] and table["id"][0] == "train.parquet:1"


def lists(folder, places=("train/x y", "val/b"), number=3, packed=False):
    """Lists of two classes with blanks in a path; returns their names."""
    for split in ("train", "dev", "test"):
        lines = [f"{p}/{split}{i}.png {c}" for c, p in enumerate(places) for i in range(number)]
        for line in lines:
            picture(folder / line.rsplit(" ", 1)[0])
        text = "\r\n".join([*lines, ""]).encode()
        (folder / (f"{split}.txt" + ".xz" * packed)).write_bytes(lzma.compress(text) if packed else text)
    return {split: f"{split}.txt" + ".xz" * packed for split in ("train", "dev", "test")}


@pytest.mark.parametrize("packed", [False, True])
def test_lists_name_their_images_below_the_root_plain_or_packed(tmp_path, packed):
    paths = lists(tmp_path, packed=packed)
    pixels, table, about = run(tmp_path, {"loader": "image_lists", "classes": 2}, paths)
    assert pixels.shape == (18, 8, 8, 3) and about["classes"] == ["x y", "b"]  # called by their folders
    assert list(table["split"]) == ["train"] * 6 + ["dev"] * 6 + ["test"] * 6
    assert table["id"][0] == "train/x y/train0.png" and list(table["image"]) == list(range(18))


def test_classes_without_a_folder_of_their_own_keep_their_numbers(tmp_path):
    paths = lists(tmp_path, places=("all/a", "all/a"))
    with pytest.raises(BadInput, match="images are listed twice"):
        run(tmp_path, {"loader": "image_lists"}, paths)
    paths = lists(tmp_path, places=("a/all", "b/all"))
    assert run(tmp_path, {"loader": "image_lists"}, paths)[2]["classes"] == ["0", "1"]


def test_a_folder_for_each_class_is_split_later_and_given_splits_are_kept(tmp_path):
    class_folders(tmp_path / "mine")
    _, table, _ = run(tmp_path, {"loader": "image_folder"}, root=tmp_path / "mine")
    assert "split" not in table and set(table["label"]) == {"a", "b"}
    for split in ("train", "Val", "test"):
        class_folders(tmp_path / "given" / split, number=2)
    _, table, about = run(tmp_path, {"loader": "image_folder"}, root=tmp_path / "given")
    assert table["split"].value_counts().to_dict() == {"train": 4, "dev": 4, "test": 4}
    assert about["classes"] == ["a", "b"] and "Val/a/0.png" in set(table["id"])


def test_linked_folders_are_followed_once_and_hidden_files_are_not_seen(tmp_path):
    class_folders(tmp_path / "mine", number=2)
    picture(tmp_path / "elsewhere" / "linked.png")
    (tmp_path / "mine/a/more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "mine/a/round").symlink_to(tmp_path / "mine/a")
    (tmp_path / "mine/a/folder.png").mkdir()
    (tmp_path / "mine/a/._0.png").write_bytes(b"of a Mac")
    picture(tmp_path / "mine/a/.thumbnails/0.png")
    _, table, _ = run(tmp_path, {"loader": "image_folder"}, root=tmp_path / "mine")
    assert list(table["id"]) == ["a/0.png", "a/1.png", "a/more/linked.png", "b/0.png", "b/1.png"]


def test_digits_need_no_file(tmp_path):
    pixels, table, about = run(tmp_path, {"loader": "digits", "classes": 10})
    assert len(pixels) == 1797 and about["classes"] == [str(c) for c in range(10)] and pixels.max() == 255


# the test sets of ImageNet's classes


def test_wordnet_folders_are_numbered_as_imagenet_not_as_they_stand(tmp_path):
    for name in ("n01498041", "n01531178"):  # two classes of ImageNet-A
        picture(tmp_path / "a" / name / "0.jpg")
    row = {"loader": "wordnet_folders", "trained_on": "imagenet-lt", "among": "present", "classes": 2}
    _, table, about = run(tmp_path, row, root=tmp_path / "a")
    assert [list(right) for right in table["accepted"]] == [[6], [11]] and len(about["classes"]) == 1000
    canonical, classes, made = data.load_images({**ROW, **row}, tmp_path / "mine.parquet")
    told = report.describe(canonical, classes, row, dataset="mine", task="classification", **made)
    assert told["among"] == [6, 11] and list(canonical["label"]) == [6, 11] and told["imbalance"] is None
    shot = [told["groups"]["test"][name] for name in ("many", "medium", "few")]
    assert shot == [[], [], []]  # and not all 1,000 few, by training counts of its own
    assert "test 2; 1,000 classes\n" in report.sentence_of({**told, "title": "A"})


def test_a_class_that_a_shifted_set_lacks_is_missed(tmp_path):
    picture(tmp_path / "a" / "n01498041" / "0.jpg")
    row = {"loader": "wordnet_folders", "trained_on": "imagenet-lt", "classes": 2}
    refused(tmp_path, row, "there is 1 class where its row says classes: 2", root=tmp_path / "a")


def test_numbered_folders_are_numbers_not_words(tmp_path):
    for name in ("0", "2", "10"):
        picture(tmp_path / "v2" / name / "0.jpg")
    _, table, _ = run(tmp_path, {"loader": "numbered_folders", "trained_on": "x"}, root=tmp_path / "v2")
    right = dict(zip(table["id"], map(list, table["accepted"]), strict=True))
    assert right == {"0/0.jpg": [0], "2/0.jpg": [2], "10/0.jpg": [10]}


def test_real_accepts_several_classes_and_leaves_out_images_that_fit_none(tmp_path, monkeypatch):
    labels = tmp_path / "imagenet_real_labels.json"
    labels.write_text("[[], [970, 795], [230]]")
    synsets = shifted.synsets()
    monkeypatch.setattr(shifted, "shipped", lambda name: labels)
    monkeypatch.setattr(shifted, "synsets", lambda: synsets)
    for number in (1, 2, 3):
        picture(tmp_path / "val" / synsets[0] / f"ILSVRC2012_val_{number:08d}.JPEG", format="JPEG")
    row = {"loader": "imagenet_real", "trained_on": "imagenet-lt"}
    _, table, about = run(tmp_path, row, root=tmp_path / "val")
    assert [list(right) for right in table["accepted"]] == [[970, 795], [230]] and about["left_out"] == 1
    assert list(table["label"]) == [synsets[970], synsets[230]]
    (tmp_path / "val" / synsets[0] / "ILSVRC2012_val_00000003.JPEG").unlink()
    with pytest.raises(BadInput, match="lacks 1 image: ILSVRC2012_val_00000003"):
        run(tmp_path, row, root=tmp_path / "val")


def test_the_labels_of_real_that_ship_leave_46837_images():
    labels = json.loads(shifted.shipped("imagenet_real_labels.json").read_text())
    assert len(labels) == 50_000 and sum(map(bool, labels)) == 46_837


def test_objectnet_follows_its_own_mappings(tmp_path):
    mappings = {
        "folder_to_objectnet_label.json": {"clock": "Alarm Clock", "egg": "Egg", "pan": "Pan"},
        "objectnet_to_imagenet_1k.json": {"Alarm Clock": "analog clock; digital clock", "Pan": "frying pan"},
        "pytorch_to_imagenet_2012_id.json": {"409": 1, "530": 2, "567": 0},
    }
    (tmp_path / "o" / "mappings").mkdir(parents=True)
    for name, content in mappings.items():
        (tmp_path / "o" / "mappings" / name).write_text(json.dumps(content))
    (tmp_path / "o/mappings/imagenet_to_label_2012_v2").write_text(
        "frying pan\nanalog clock\ndigital clock\n"
    )
    for folder in ("clock", "egg", "pan"):
        picture(tmp_path / "o" / "images" / folder / "0.png")
    row = {"loader": "objectnet", "border": 2, "trained_on": "x"}
    _, table, about = run(tmp_path, row, root=tmp_path / "o")
    assert [list(right) for right in table["accepted"]] == [[409, 530], [567]] and about["left_out"] == 1


# what is wrong, all of it at once


def test_all_faults_of_a_list_and_its_images_are_one_sentence(tmp_path):
    paths = lists(tmp_path)
    lines = (tmp_path / "train.txt").read_text().split()
    (tmp_path / "train/x y/train0.png").write_bytes(b"junk")
    broken = tmp_path / "val/b/train1.png"
    broken.write_bytes(broken.read_bytes()[:40])
    more = ["/train/x y/train1.png 0", "gone/a.png 0", "gone/b.png 1", "val/b/test0.png 1"]
    more += ["val/b/train2.png 1", "train/x y/train2.png 7"]
    assert lines
    with open(tmp_path / "train.txt", "a") as file:
        file.write("\n".join(more))
    refused(
        tmp_path,
        {"loader": "image_lists", "classes": 4},
        "2 files are absent: gone/a.png (train.txt:8), gone/b.png (train.txt:9)",
        "1 path begins with /, where paths are read below the root: /train/x y/train1.png (train.txt:7)",
        "2 images are listed twice: val/b/train2.png (train.txt:11), train/x y/train2.png (train.txt:12)",
        "1 image is in two splits: val/b/test0.png (test.txt:4)",
        "1 label is out of range, 0 to 3: 7 of train/x y/train2.png (train.txt:12)",
        "2 classes have no training image: 2, 3",
        "2 images cannot be decoded: train/x y/train0.png (cannot identify image file",
        "val/b/train1.png",
        paths=paths,
    )


def test_a_list_without_labels_and_images_without_a_folder_are_one_sentence(tmp_path):
    (tmp_path / "all.txt").write_text("a.png\nb.png 1\n")
    refused(tmp_path, {"loader": "image_lists"}, "1 line holds no path and label", paths={"all": "all.txt"})
    for root, words in [
        (None, "name their folder, root: DIR in datasets.mine"),
        (tmp_path / "x", "no folder"),
    ]:
        with pytest.raises(BadInput, match=words):
            listings.image_folder({}, ROW, root)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no folder of images for each class"):
        listings.image_folder({}, ROW, tmp_path / "empty")


def test_images_that_the_disk_cannot_hold_are_one_sentence(tmp_path):
    refused(tmp_path, {"loader": "digits", "side": 2**20}, "its images take", "GB left; make room")


# from the stage to the canonical table


def staged(monkeypatch, module, *options):
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, options)])
    module.main()


def test_the_two_stages_make_a_cut_and_a_report_of_a_users_folder(tmp_path, monkeypatch, capsys):
    class_folders(tmp_path / "photos" / "mine", number=20)
    picture(tmp_path / "photos/mine/a/grey.png", mode="L")
    picture(tmp_path / "photos/mine/beside.png")
    for name in ("a/1.HEIC", "b/2.heic", "README", ".hidden.heic", "a/3.\udcff"):
        (tmp_path / "photos/mine" / name).touch()
    row = {**ROW, "loader": "image_folder"}
    told = ["--dataset", json.dumps(row), "--data-dir", tmp_path / "photos", "--raw", tmp_path / "raw"]
    staged(monkeypatch, decode, *told, "--out", tmp_path / "mine.npy")
    told[1] = json.dumps({**row, "cut": {"shots": 5}})
    made = ["--listing", tmp_path / "mine.parquet", "--out", tmp_path / "data" / "mine@shots=5.parquet"]
    staged(monkeypatch, prepare, *told, *made)
    table, classes = data.read(tmp_path / "data" / "mine@shots=5.parquet")
    assert classes == ["a", "b"] and list(table) == ["id", "split", "label", "image", "digest"]
    assert table["split"].value_counts().to_dict() == {"train": 10, "test": 8, "dev": 4}
    assert table["id"].is_unique and set(table["label"]) == {0, 1}
    about = json.loads((tmp_path / "data" / "mine@shots=5.json").read_text())
    assert about["converted"] == {"L": 1} and about["mean_length"] is None and about["left_out"] == 0
    said = capsys.readouterr().out
    assert about["skipped"] == {"'.\\udcff'": 1, ".heic": 2, ".png": 1, "no ending": 1}
    assert said.count("; other files skipped: '.\\udcff' 1, .heic 2, .png 1, no ending 1") == 2
    assert "converted to RGB: 1 from L" in said and "images with several labels 0" in said


def test_without_shares_no_dev_is_cut_and_none_is_needed(tmp_path):
    for split in ("train", "test"):
        class_folders(tmp_path / "given" / split, number=4)
    row = {**ROW, "loader": "image_folder"}
    decode.decode(row, {}, {}, tmp_path / "given", tmp_path / "mine.npy", threads=1)
    table, *_ = data.load_images({**row, "shares": {}}, tmp_path / "mine.parquet")
    assert table["split"].value_counts().to_dict() == {"train": 8, "test": 8}
    with_dev, *_ = data.load_images(row, tmp_path / "mine.parquet")
    assert (with_dev["split"] == "dev").sum() == 2


def test_the_same_pixels_in_two_splits_are_counted(tmp_path):
    for split in ("train", "test"):
        class_folders(tmp_path / "given" / split, number=2)
    row = {**ROW, "loader": "image_folder", "shares": {}}
    decode.decode(row, {}, {}, tmp_path / "given", tmp_path / "mine.npy", threads=1)
    table, classes, made = data.load_images(row, tmp_path / "mine.parquet")
    about = report.describe(table, classes, row, dataset="mine", task="classification", **made)
    assert about["shared"]["train,test"] == 4 and about["duplicates"]["train"] == 0
