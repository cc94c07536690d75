"""What is asked of decoding a folder: which images are in it, by path, size and time, as none is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tailprompt.decode import check_images
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan import made, standing, unmade
from tailprompt.plan.digests import digest_of_images
from tailprompt.plan.note import note, outputs_in
from tailprompt.plan.rows_asked import of_rows, without_images

ROW = {"language": "image", "loader": "image_folder", "root": "photos"}
CONFIG = {"scale": "mine", "data_dir": None, "datasets": {"photos": ROW}}
NOTE, ASKED = (Path(f"results/mine/{folder}/images/photos.json") for folder in ("made", "asked"))
THEN = 10**9  # seconds


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Two classes of three images, which were decoded."""
    monkeypatch.chdir(tmp_path)
    write(Path("photos"))
    for file in outputs_in(Path("results/mine"), "images", "photos"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("decoded")
    write_json(ASKED, wanted())
    note(ASKED, NOTE)
    assert stands()
    return Path("photos")


def write(folder, size=10):
    """Files that pass for images."""
    for name in ("a/1.jpg", "a/2.jpg", "a/below/deep/3.JPG", "b/1.png", "b/2.png", "b/3.png"):
        image(folder / name, size)


def image(path, size=10, time=THEN):
    """A file that passes for an image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time, time))


def wanted():
    """What is asked now, as by another process."""
    digest_of_images.cache_clear()
    return standing.wanted(CONFIG, "images", "photos")


def stands():
    """Whether the images need not be decoded."""
    digest_of_images.cache_clear()
    return standing.stands(CONFIG, "images", "photos")


def swapped(folder):
    """Another folder, of older images, in the place of this one."""
    folder.rename("photos_v1")
    write(folder, size=9)


EDITS = {
    "another folder of old times": swapped,
    "image overwritten": lambda photos: image(photos / "a/1.jpg", time=THEN + 1),
    "image of its time": lambda photos: image(photos / "a/1.jpg", size=11),
    "image added": lambda photos: image(photos / "a/below/deep/4.jpg"),
    "image gone": lambda photos: (photos / "a/below/deep/3.JPG").unlink(),
    "image renamed": lambda photos: (photos / "a/1.jpg").rename(photos / "a/0.jpg"),
    "image of another class": lambda photos: (photos / "a/2.jpg").rename(photos / "b/4.jpg"),
    "link to nothing": lambda photos: (photos / "a/4.jpg").symlink_to("gone"),
}
SAME = {
    "text": lambda photos: (photos / "a/notes.txt").touch(),
    "hidden": lambda photos: (photos / ".DS_Store").touch(),
    "thumbnails": lambda photos: image(photos / "a/thumbs/1.jpg"),
    "folder's time": lambda photos: os.utime(photos / "a"),
    "part of a second": lambda photos: os.utime(photos / "a/1.jpg", ns=(THEN * 10**9 + 5,) * 2),
    "folder gone": lambda photos: shutil.rmtree(photos),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_other_images_in_a_folder_are_decoded_and_prepared_again(photos, edit):
    """Whether their rows are others, for which runs are trained again, is known then: pixels are compared."""
    data = standing.wanted(CONFIG, "data", "photos")
    edit(photos)
    assert not stands()
    now = standing.wanted(CONFIG, "data", "photos")
    assert now != data and without_images(of_rows(now)) == without_images(of_rows(data))


def test_images_that_are_put_back_give_the_rows_of_before(photos):
    first, report = Path(standing.note(CONFIG, "data", "photos")), Path("results/mine/data/photos.json")
    for folder, rows in (("photos", "these"), ("others", "those")):
        if folder == "others":
            photos.rename("first")
            write(photos, size=9)
            digest_of_images.cache_clear()
        write_json(report, {"rows_sha256": rows})
        write_json(ASKED, standing.wanted(CONFIG, "data", "photos"))
        note(report, first.parents[1] / "reports/photos.json")
        note(ASKED, first)
        assert standing.rows_to_be(CONFIG, "photos") == {}
    shutil.rmtree(photos)
    Path("first").rename(photos)
    digest_of_images.cache_clear()
    assert standing.rows_to_be(CONFIG, "photos") == {"rows_sha256": "these"}


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_what_is_no_image_decodes_nothing_again(photos, edit):
    edit(photos)
    assert stands()


def test_status_counts_no_data_as_made_whose_images_are_others(photos, monkeypatch):
    for file in outputs_in(Path("results/mine"), "data", "photos"):
        write_json(file, {})
    asked = {"row": {}}  # as if preparing alone stood
    write_json(Path(standing.note(CONFIG, "data", "photos")), asked)
    monkeypatch.setattr(standing, "to_prepare", lambda *_: asked)
    assert unmade.stays(CONFIG, {}, Path(), "photos")
    image(photos / "b/4.png")
    digest_of_images.cache_clear()
    assert not unmade.stays(CONFIG, {}, Path(), "photos")


def test_images_of_an_older_version_are_believed_until_their_folder_changes(photos):
    before = {key: value for key, value in wanted().items() if key != made.IMAGES}
    for file in (ASKED, NOTE):
        write_json(file, {**before, "replaces": 1})
    assert stands()
    outputs = standing.outputs(CONFIG, "images", "photos")
    standing.write(ASKED, wanted(), outputs, settled=True)  # by the first plan of this version
    assert stands()
    swapped(photos)
    assert not stands()
    standing.write(ASKED, wanted(), outputs, settled=False)  # by the next, whose job was killed
    assert not stands()


def test_decoding_refuses_a_folder_that_changed_after_the_plan(photos):
    asked = wanted()[made.IMAGES]
    check_images(asked, photos)
    check_images(None, photos)
    image(photos / "b/4.png")
    digest_of_images.cache_clear()
    with pytest.raises(BadInput, match="changed after this job was planned: photos; run snakemake again"):
        check_images(asked, photos)


def test_of_a_list_no_folder_is_looked_through(photos):
    listed = {**CONFIG, "datasets": {"photos": {**ROW, "loader": "image_lists", "files": {}}}}
    assert made.IMAGES not in made.images(listed, "photos")
