"""A run's folder: one process at a time, whose it is, and nothing that is finished is trained twice."""

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tailprompt.files import sha256
from tailprompt.plan import held as locks
from tailprompt.plan.agreement import OUTPUTS
from tailprompt.plan.held import FINISHED, copy_of, finished, forget, held, holder, keep

WANTED = {"settings": {"lr": 0.1}, "extras": {}, "backbone": {"family": "bert"}}


@pytest.fixture
def folder(tmp_path):
    """The folder of a finished run."""
    folder = tmp_path / "runs/mine/tiny/toy/prompt/1"
    folder.mkdir(parents=True)
    for name in OUTPUTS:
        (folder / name).write_text(name)
    (folder / "run.json").write_text(json.dumps({**WANTED, "start_sha256": None, "data": {"sha256": "a"}}))
    keep(folder)
    return folder


def remove_outputs(folder):
    """As Snakemake does before a job."""
    for name in OUTPUTS:
        (folder / name).unlink()


def put_back(folder, wanted=WANTED, *, start=None, replaced=0):
    return finished(folder, wanted, start=start, replaced=replaced)


def test_a_run_that_another_job_finished_is_put_back_and_not_trained_again(folder):
    before = {name: (folder / name).read_bytes() for name in OUTPUTS}
    remove_outputs(folder)
    assert put_back(folder)
    assert {name: (folder / name).read_bytes() for name in OUTPUTS} == before
    assert put_back(folder)  # where Snakemake removed nothing


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: put_back(folder, {**WANTED, "settings": {"lr": 0.2}}),
        lambda folder: put_back(folder, start="another"),
        lambda folder: put_back(folder, replaced=time.time_ns()),
        lambda folder: forget(folder) or put_back(folder),
        lambda folder: (copy_of(folder / FINISHED, "curve.csv")).write_text("damaged") and put_back(folder),
        lambda folder: (copy_of(folder / FINISHED, "curve.csv")).unlink() or put_back(folder),
        lambda folder: (copy_of(folder / FINISHED, "run.json")).write_text("{") and put_back(folder),
        lambda folder: (folder / FINISHED / "sha256.json").unlink() or put_back(folder),
        lambda folder: shutil.rmtree(folder) or put_back(folder),
    ],
    ids=["settings", "start", "replaced", "forced", "damaged", "missing", "record", "digests", "removed"],
)
def test_what_is_not_the_run_that_is_asked_is_trained(folder, change):
    remove_outputs(folder)
    assert not change(folder)
    assert not [name for name in OUTPUTS if (folder / name).exists()]


def test_a_run_on_former_data_is_trained(folder):
    remove_outputs(folder)
    table = folder.parents[5] / "data/toy.parquet"
    table.parent.mkdir()
    table.write_bytes(b"other rows")
    assert sha256(table) != "a" and not put_back(folder)


def test_the_kept_files_take_no_room_and_follow_the_latest_training(folder):
    assert os.path.samefile(folder / "weights.safetensors", copy_of(folder / FINISHED, "weights.safetensors"))
    remove_outputs(folder)
    for name in OUTPUTS:
        (folder / name).write_text(f"again {name}")
    keep(folder)
    assert (copy_of(folder / FINISHED, "curve.csv")).read_text() == "again curve.csv"


@pytest.fixture
def waited(monkeypatch):
    """It happens as soon as someone waits for a lock."""
    event = threading.Event()

    def sleep(_):
        event.set()
        time.sleep(0.01)

    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=sleep))
    return event


def test_a_second_job_waits_for_the_first_and_says_for_whom(tmp_path, waited, capsys):
    order, inside = [], threading.Event()

    def first():
        with held(tmp_path):
            inside.set()
            assert waited.wait(60)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(60)
    assert holder(tmp_path) == {"host": platform.node(), "pid": os.getpid(), "job": None}
    with held(tmp_path):
        order.append("second")
    thread.join()
    assert order == ["first", "second"] and holder(tmp_path) is None
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"{tmp_path} is in the hands of process {os.getpid()} on {platform.node()}; waiting for it"
    ]


HOLD = """
import sys, time
from pathlib import Path
from tailprompt.plan.held import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path):
    command = [sys.executable, "-c", HOLD, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert holder(tmp_path)["pid"] == process.pid
        process.kill()
    assert holder(tmp_path) is None
    with held(tmp_path):
        assert holder(tmp_path)["pid"] == os.getpid()


def test_a_folder_that_is_removed_while_someone_waits_has_one_holder(tmp_path, waited):
    folder, inside, done = tmp_path / "run", threading.Event(), threading.Event()

    def second():
        with held(folder):
            inside.set()
            done.wait(60)

    with held(folder):
        thread = threading.Thread(target=second)
        thread.start()
        assert waited.wait(60)
        shutil.rmtree(folder)
        assert inside.wait(60) and holder(folder)
    done.set()
    thread.join()


def test_a_file_system_without_locks_is_said_and_the_run_is_trained(tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(locks.NO_LOCKS[0], "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with held(tmp_path):
        pass
    assert "this file system has no locks" in capsys.readouterr().out


def test_a_file_system_without_hard_links_keeps_nothing_and_the_run_is_finished(folder, monkeypatch):
    forget(folder)
    monkeypatch.setattr(locks.os, "link", lambda *_: (_ for _ in ()).throw(OSError(1, "not permitted")))
    keep(folder)
    assert {file.name for file in folder.iterdir()} == {*OUTPUTS}
