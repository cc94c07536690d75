"""Images as people have them: read as they are meant, counted where they are skipped, or refused by name."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from tailprompt.data import folders, listings, pictures
from tailprompt.decode import decode
from tailprompt.errors import BadInput

COUNTS = {"cat": 2, "dog": 6}
ROW = {"name": "mine", "loader": "image_folder", "side": 8}


def picture(path, value=100, **how):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((8, 8, 3), value, np.uint8) if isinstance(value, int) else value
    how.setdefault("format", "PNG" if path.suffix == ".png" else None)
    Image.fromarray(pixels).save(path, **how)
    return path


def classes_of(root, names=("cat", "dog"), number=2):
    for name in names:
        for at in range(number):
            picture(root / name / f"{at}.png", 10 * at + len(name))


def decoded(tmp_path, root, **row):
    about = decode({**ROW, **row}, {}, {}, root, tmp_path / "out.npy", threads=1)
    return np.load(tmp_path / "out.npy"), about


@pytest.mark.parametrize(
    "names",
    [("seg_train", "seg_test"), ("train_images", "val_images", "test_images"), ("TrainData", "TESTData")],
)
def test_folders_that_look_like_splits_are_refused(tmp_path, names):
    for name in names:
        classes_of(tmp_path / name)
    with pytest.raises(BadInput, match="look like splits.*name them train, val and test"):
        listings.image_folder({}, ROW, tmp_path)


@pytest.mark.parametrize("names", [("trainA", "trainB", "testA", "testB"), ("train_images", "test_images")])
def test_flat_folders_that_repeat_in_several_splits_are_refused(tmp_path, names):
    classes_of(tmp_path, names)
    with pytest.raises(BadInput, match="look like splits.*name them train, val and test"):
        listings.image_folder({}, ROW, tmp_path)


@pytest.mark.parametrize(
    "names", [("train station", "train station 2", "test tube"), ("train", "car"), ("trainer", "tester")]
)
def test_classes_whose_names_have_such_words_are_classes(tmp_path, names):
    classes_of(tmp_path, names)
    assert set(listings.image_folder({}, ROW, tmp_path).table["label"]) == set(names)


@pytest.mark.parametrize(
    "names",
    [("trainset", "testset"), ("train", "eval"), ("fold1", "fold2"), ("imagesTr", "imagesTs"),
     ("entrenamiento", "prueba")],
)  # fmt: skip
def test_the_same_folders_in_several_are_refused_unless_the_number_of_classes_is_stated(tmp_path, names):
    for name in names:
        classes_of(tmp_path / name, ("cat", "dog", f"only in {name}"))
    with pytest.raises(BadInput, match="cat, dog are in each of .*train, val and test, or state classes: 2"):
        listings.image_folder({}, ROW, tmp_path)
    stated = listings.image_folder({}, {**ROW, "classes": 2}, tmp_path)
    assert set(stated.table["label"]) == set(names)


def test_splits_in_each_class_are_refused(tmp_path):
    for name in ("cat", "dog"):
        classes_of(tmp_path / name, ("train", "test"))
    with pytest.raises(BadInput, match="test, train are in each of cat, dog.*put the folders") as caught:
        listings.image_folder({}, ROW, tmp_path)
    assert "state" not in str(caught.value)


def test_folders_in_a_class_are_part_of_it_where_few_are_in_another(tmp_path):
    for split in ("train", "test"):
        classes_of(tmp_path / split / "cat", ("images",))
        classes_of(tmp_path / split / "dog", ("images", "spring", "summer"))
    found = listings.image_folder({}, ROW, tmp_path).table.groupby(["split", "label"]).size()
    assert found.to_dict() == {(split, name): n for split in ("train", "test") for name, n in COUNTS.items()}
    classes_of(tmp_path / "test" / "cat", ("spring", "summer"))
    with pytest.raises(BadInput, match="test: the folders images, spring, summer are in each of cat, dog"):
        listings.image_folder({}, ROW, tmp_path)


@pytest.mark.parametrize("name", ["thumbs", "_thumbs", "thumb", "Previews", "preview", "cache", "Thumbnails"])
def test_small_copies_below_a_class_are_skipped_and_counted(tmp_path, name):
    classes_of(tmp_path)
    picture(tmp_path / "cat" / name / "0.png")
    listing = listings.image_folder({}, ROW, tmp_path)
    assert len(listing.table) == 4 and listing.skipped == {name: 1}


def test_a_class_may_be_called_thumb(tmp_path):
    classes_of(tmp_path, ("thumb", "index finger"))
    assert set(listings.image_folder({}, ROW, tmp_path).table["label"]) == {"thumb", "index finger"}


@pytest.mark.parametrize("to", ["..", "../..", "."])
def test_a_link_back_brings_no_images_of_other_classes(tmp_path, to):
    classes_of(tmp_path / "mine")
    (tmp_path / "mine" / "cat" / "loop").symlink_to(to)
    assert listings.image_folder({}, ROW, tmp_path / "mine").table["label"].value_counts()["cat"] == 2


@pytest.mark.parametrize("name", ["@eaDir", "#recycle", "lost+found", "__MACOSX", "$RECYCLE.BIN"])
def test_what_a_system_left_is_skipped_and_counted(tmp_path, name):
    classes_of(tmp_path)
    picture(tmp_path / "cat" / name / "0.png" / "THUMB_M.png")
    picture(tmp_path / name / "1.png")
    (tmp_path / "cat" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "cat" / ".DS_Store").write_bytes(b"x")
    listing = listings.image_folder({}, ROW, tmp_path)
    assert len(listing.table) == 4 and listing.skipped == {name: 2, ".db": 1}


@pytest.mark.parametrize("ending", [".jfif", ".jpe", ".JFIF", ".jif"])
def test_other_endings_of_jpeg_are_images(tmp_path, ending):
    picture(tmp_path / "cat" / f"0{ending}", format="JPEG")
    assert len(folders.images(tmp_path)) == 1


def test_folders_of_one_name_in_two_forms_are_one_class(tmp_path):
    classes_of(tmp_path, ("caf\u00e9", "cafe\u0301", "dog"))
    listing = listings.image_folder({}, ROW, tmp_path)
    assert set(listing.table["label"]) == {"caf\u00e9", "dog"} and len(listing.told) == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_turned_even_where_its_exif_cannot_be_written_again(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    path = picture(tmp_path / "a.png", pixels, exif=exif)
    with Image.open(path) as stored:
        from PIL import ImageOps

        wanted = np.asarray(ImageOps.exif_transpose(stored))
    assert (pictures.decoded(path, 8, upright=True)[0] == wanted).all()


def test_long_remarks_and_many_pixels_are_decoded_up_to_a_limit_of_ones_own(tmp_path):
    remark = PngImagePlugin.PngInfo()
    remark.add_text("note", "x" * 2**21, zip=True)
    path = picture(tmp_path / "cat" / "a.png", pnginfo=remark)
    pictures.decoded(path, 8)
    assert Image.MAX_IMAGE_PIXELS is None
    with pytest.raises(ValueError, match="more than 63; raise most_pixels"):
        pictures.decoded(path, 8, most=63)


def test_bits_that_all_images_leave_unused_are_refused_and_scaled_where_stated(tmp_path):
    for name in ("cat", "dog"):
        picture(tmp_path / "own" / name / "0.tif", np.full((8, 8), 4095, np.uint16))
    with pytest.raises(BadInput, match="at most 12 of them; state bits: 12"):
        decoded(tmp_path, tmp_path / "own")
    assert (decoded(tmp_path, tmp_path / "own", bits=12)[0] == 255).all()
    assert (decoded(tmp_path, tmp_path / "own", bits=16)[0] == 15).all()


@pytest.mark.parametrize("last", [90, 0])
def test_a_fourth_band_that_is_no_transparency_is_named_and_may_be_left_out(tmp_path, last):
    pixels = np.full((8, 8, 4), 90, np.uint8)
    pixels[..., 3] = last
    for name in ("cat", "dog"):
        picture(tmp_path / "own" / name / "0.tif", pixels)
    with pytest.raises(BadInput, match="transparency: false"):
        decoded(tmp_path, tmp_path / "own")
    found, about = decoded(tmp_path, tmp_path / "own", transparency=False)
    assert (found == 90).all() and about["converted"] == {"RGBA without its last band": 2}


@pytest.mark.parametrize("most", [65535, 4095])
def test_a_portable_graymap_of_16_bits_is_one_of_16_bits(tmp_path, most):
    values = np.linspace(0, most, 64).astype(">u2")
    for name in ("cat", "dog"):
        (tmp_path / "own" / name).mkdir(parents=True)
        (tmp_path / "own" / name / "0.pgm").write_bytes(b"P5\n8 8\n%d\n" % most + values.tobytes())
    found, about = decoded(tmp_path, tmp_path / "own")
    assert np.abs(found[0, ..., 0].ravel() - np.linspace(0, 255, 64)).max() < 1.1
    assert about["converted"] == {"I;16": 2}


@pytest.mark.parametrize("ending", ["gif", "tif", "png", "webp"])
def test_images_of_which_the_first_of_several_is_taken_are_told(tmp_path, ending):
    for name in ("cat", "dog"):
        file = tmp_path / "own" / name / f"0.{ending}"
        file.parent.mkdir(parents=True)
        first, second = (Image.new("RGB", (8, 8), (value, 9, 9)) for value in (200, 20))
        first.save(file, save_all=True, append_images=[second])
    found, about = decoded(tmp_path, tmp_path / "own")
    assert (found[..., 0] > 150).all()
    assert [mode.endswith("(first of several)") for mode in about["converted"]] == [True]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lists_take_tabs_and_paths_of_windows(tmp_path, end):
    lines = ["cat\\0.png\tbig cat", "dog/0.png\tdog"]
    (tmp_path / "all.txt").write_bytes(end.join(lines).encode())
    table = listings.image_lists({"all": tmp_path / "all.txt"}, ROW, tmp_path).table
    assert list(table["id"]) == ["cat/0.png", "dog/0.png"] and list(table["label"]) == ["big cat", "dog"]


@pytest.mark.parametrize("kinds", [("0", "1"), ("cat", "dog")])
def test_images_whose_label_is_not_their_folders_are_told(tmp_path, kinds):
    lines = [
        f"{name}/{at}.png {kind}" for name, kind in zip(("x", "y"), kinds, strict=True) for at in range(10)
    ]
    Path(tmp_path / "all.txt").write_text("\n".join([*lines, f"x/stray.png {kinds[1]}"]), "utf-8")
    told = listings.image_lists({"all": tmp_path / "all.txt"}, ROW, tmp_path).told
    assert len(told) == 1 and f"x/stray.png ({kinds[1]})" in told[0]
