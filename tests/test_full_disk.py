"""A disk that is full at any moment of a run: a sentence with path and bytes, and nothing that is lost."""

from __future__ import annotations

import os
import shutil
import subprocess

import pandas as pd
import pytest
import toy

from tailprompt.errors import BadInput
from tailprompt.files import check_room, room
from tailprompt.training import loop, stopping

ROOM = 3_000_000  # bytes: enough for the run, its states and what it reads


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    if os.getuid():
        pytest.skip("not root: no disk can be mounted")
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", place]).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def filled(disk, left):
    """Fill the disk but for so many bytes; returns the file that does."""
    with open(disk / "other", "wb") as file:
        file.write(bytes(max(0, room(disk / "other") - left)))
    return disk / "other"


@pytest.mark.parametrize(
    "moment, seen", [(("update", 2), {"state.pt"}), (("put_back", 0), {"weights.safetensors", "run.json"})]
)
def test_a_disk_that_fills_up_is_said_with_the_file_and_the_run_goes_on_once_there_is_room(
    disk, tmp_path, monkeypatch, moment, seen
):
    whole = toy.run(tmp_path / "elsewhere", "cls-tanh", tuner="frozen")
    toy.run(disk, "cls-tanh", seed=9, tuner="frozen")  # what all runs share is there
    folder, named = disk / "runs/mine/tiny/toy/cls-tanh/1", []
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "SHARE", float("inf"))
    for left in range(0, 2**17, 4096):
        with monkeypatch.context() as patch:
            files = fills_up(patch, disk, left, *moment)
            try:
                toy.run(disk, "cls-tanh", tuner="frozen")
                break  # there was room enough for everything
            except BadInput as error:
                said = str(error)
        assert said.startswith(f"{folder}/") and "are free" in said and "\n" not in said
        named.append(said.removeprefix(f"{folder}/").partition(" ")[0])
        assert (folder / "state.pt").is_file() and not list(folder.glob(".*"))
        files[0].unlink()
        again = toy.run(disk, "cls-tanh", tuner="frozen")
        pd.testing.assert_frame_equal(toy.scores(again), toy.scores(whole))
        shutil.rmtree(folder)
    assert seen <= {*named}, named


def fills_up(patch, disk, left, name, number):
    """Let the disk fill up but for so many bytes where the loop calls a function; the list has the file."""
    real, count, files = getattr(loop, name), iter(range(100)), []

    def called(*arguments):
        if next(count) == number:
            files.append(filled(disk, left))
        return real(*arguments)

    patch.setattr(loop, name, called)
    return files


def test_room_is_asked_for_before_the_first_step(tmp_path, monkeypatch):
    monkeypatch.setattr("tailprompt.files.room", lambda _: 10)
    steps = []
    monkeypatch.setattr(loop, "update", lambda *_: steps.append(1))
    with pytest.raises(BadInput, match=r"state\.pt: its states may take [\d,]+ bytes, and 10 are free there"):
        toy.run(tmp_path, "cls-tanh")
    assert not steps


def test_room_that_is_there_is_no_matter(tmp_path):
    check_room(tmp_path / "not/there/yet", 1, "it")
    with pytest.raises(BadInput, match="make room"):
        check_room(tmp_path / "not/there/yet", 2**60, "it")
