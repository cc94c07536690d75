"""Jobs in forks of the preloaded process: as in processes of their own, and gone with who asked for them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import toy

from tailprompt.machine import preload

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
STAGE = """
import json, os, signal, sys, time
from pathlib import Path
from tailprompt.errors import BadInput

def main():
    what = sys.argv[1]
    if what == "tell":
        print(json.dumps([sys.argv, os.getcwd(), os.environ["TOLD"], sys.stdin.read(), os.getppid()]))
        sys.exit(3)
    if what == "refuse":
        raise BadInput("no such thing")
    if what == "fault":
        raise KeyError("a fault of ours")
    if what == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "wait":
        try:
            Path(sys.argv[2]).write_text(str(os.getpid()))
            time.sleep(60)
        finally:
            Path(sys.argv[2]).unlink()

if __name__ == "__main__":
    from tailprompt.machine.preload import run
    sys.exit(run("stage"))
"""
LIGHT = """
import sys
from types import SimpleNamespace
from tailprompt.machine import preload

preload.load, preload.IDLE = lambda *_: None, {idle}
sys.modules["torch"] = SimpleNamespace(cuda=SimpleNamespace(_is_in_bad_fork=lambda: {touched}))
preload.main()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a stage that imports nothing, in which its preloaded process is searched for."""
    (tmp_path / "stage.py").write_text(STAGE)
    monkeypatch.setenv("PYTHONPATH", str(Path("src").resolve()))
    monkeypatch.setenv("TAILPROMPT_PRELOAD", "1")
    monkeypatch.setenv("TOLD", "anything")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def preloaded(idle=60.0, touched=False, cwd="."):
    """The preloaded process that stages here find; it has imported nothing."""
    code = "import sys; from tailprompt.machine.preload import address; print(address()[1:])"
    (Path.cwd() / "name.py").write_text(code)
    name = subprocess.run([sys.executable, "-m", "name"], capture_output=True, text=True, check=True).stdout
    command = [sys.executable, "-c", LIGHT.format(idle=idle, touched=touched), name.strip()]
    process = subprocess.Popen(command, cwd=cwd)
    try:
        until(lambda: listens(name.strip()) or process.poll() is not None)  # by then it may have ended, idle
        yield process
    finally:
        process.kill()
        process.wait()


def listens(name):
    """Whether the process listens; asking is a job that never comes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        return asking.connect_ex(f"\0{name}") == 0


def until(true, seconds=120.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def staged(*arguments, **options):
    """The stage as a command, begun."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", "stage", *arguments], text=True, **pipes)


def lives(pid):
    """Whether a process runs."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def alone(*arguments):
    """The stage in a process of its own, ended."""
    told = {key: value for key, value in os.environ.items() if key != "TAILPROMPT_PRELOAD"}
    return ended(staged(*arguments, env=told))


def ended(process):
    """Exit status, output and error output of a command."""
    out, error = process.communicate("given")
    return process.returncode, out, error


def test_a_fork_has_the_arguments_folder_environment_and_files_of_the_job(folder):
    with preloaded():
        status, told, error = ended(staged("tell", "ü b"))
    assert (status, error) == (3, "") and (folder / "stage.py").exists()
    assert json.loads(told)[:-1] == json.loads(alone("tell", "ü b")[1])[:-1]
    assert json.loads(told)[-1] != os.getpid()


@pytest.mark.parametrize("what", ["refuse", "die", "fault"])
def test_a_job_fails_in_a_fork_as_it_does_alone(folder, what):
    with preloaded():
        status, out, error = ended(staged(what))
    expected, _, said = alone(what)
    assert status == expected != 0 and not out
    assert error.splitlines()[-1:] == said.splitlines()[-1:]


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_reaches_the_fork_which_ends_orderly(folder, number, status):
    file = folder / "pid"
    with preloaded():
        job = staged("wait", str(file))
        until(file.exists)
        job.send_signal(number)
        assert ended(job)[0] == status and not file.exists()


def test_a_signal_that_comes_before_the_wait_for_the_end_is_passed_on():
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there, ThreadPoolExecutor() as other, preload.caught() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        got = other.submit(lambda: (there.recv(1), there.send(struct.pack("i", 5)))[0])
        assert preload.ended(here, signals) == 5
        assert got.result() == bytes([signal.SIGTERM])


def test_a_signal_that_nobody_passed_on_comes_again():
    with pytest.raises(KeyboardInterrupt), preload.caught():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_a_fork_dies_with_who_asked_for_it(folder):
    file = folder / "pid"
    with preloaded():
        job = staged("wait", str(file))
        until(lambda: file.exists() and file.read_text())
        job.kill()
        ended(job)
        until(lambda: not lives(int(file.read_text())))


def test_jobs_go_on_when_the_preloaded_process_is_killed_and_end_when_their_guard_is(folder):
    file = folder / "pid"
    with preloaded() as process:
        job = staged("wait", str(file))
        until(lambda: file.exists() and file.read_text())
        pid = int(file.read_text())
        process.kill()
        process.wait()
        assert lives(pid)
        os.kill(int(Path(f"/proc/{pid}/stat").read_text().split()[3]), signal.SIGKILL)
        assert ended(job)[0] == -signal.SIGKILL
        until(lambda: not lives(pid))


def test_the_preloaded_process_ends_when_no_job_comes(folder):
    with preloaded(idle=0.2) as process:
        assert process.wait(120) == 0


def test_a_job_runs_by_itself_where_no_process_can_be_preloaded(folder):
    (folder / "torch.py").write_text("raise SystemExit(1)")  # ends the preloaded process as it imports
    told = ended(staged("tell"))
    assert told[0] == 3 and json.loads(told[1])[-1] == os.getpid()


def test_a_job_runs_by_itself_where_the_preloaded_process_has_touched_a_card(folder):
    with preloaded(touched=True):
        told = ended(staged("tell"))
    assert told[0] == 3 and json.loads(told[1])[-1] == os.getpid()


@pytest.mark.parametrize("kept", [True, False], ids=["moved", "deleted"])
def test_a_job_in_a_folder_that_took_the_place_of_another_runs_there(folder, monkeypatch, kept):
    """As after `mv c c_old; cp -a c_old c`: the preloaded process is in c_old still, or in no folder."""
    (folder / "torch.py").write_text("raise SystemExit(1)")  # no other process is preloaded
    (folder / "c").mkdir()
    for name in ("stage.py", "torch.py"):
        (folder / name).rename(folder / "c" / name)
    monkeypatch.chdir(folder / "c")
    with preloaded():
        assert json.loads(ended(staged("tell"))[1])[-1] != os.getpid()
        os.chdir(folder)
        Path("c").rename("c_old")
        shutil.copytree("c_old", "c")
        if not kept:
            shutil.rmtree("c_old")
        os.chdir("c")
        status, told, error = ended(staged("tell"))
    assert (status, error) == (3, "")
    assert json.loads(told)[1] == str(folder / "c") and json.loads(told)[-1] == os.getpid()


def test_a_fork_is_in_the_folder_of_the_job_wherever_the_preloaded_process_is(folder):
    (folder / "elsewhere").mkdir()
    with preloaded(cwd="elsewhere"):
        status, told, error = ended(staged("tell"))
    assert (status, error) == (3, "") and json.loads(told)[1] == str(folder)
    assert json.loads(told)[-1] != os.getpid()


def test_who_inherits_anything_else_asks_another_process(folder, monkeypatch):
    first = preload.address()
    assert preload.address() == first
    monkeypatch.setenv("TOLD", "something else")
    second = preload.address()
    before = os.umask(0o007)
    third = preload.address()
    os.umask(before)
    assert preload.address() == second and len({first, second, third}) == 3
    monkeypatch.setattr(preload, "__file__", str(folder / "machine/preload.py"))
    fourth = preload.address()
    (folder / "stage.py").touch()
    fifth = preload.address()
    shutil.copy2(folder / "stage.py", folder / "copy.py")
    (folder / "copy.py").rename(folder / "stage.py")  # of the same time
    assert len({second, fourth, fifth, preload.address()}) == 4


@pytest.mark.parametrize(
    "option, told, reads",
    [
        ("--asked", '{"backbone": {"family": "vit"}, "start": null}', "images"),
        ("--row", '{"row": {"family": "vit"}, "weights": {}}', "images"),
        ("--asked", '{"backbone": {"family": "bert"}}', "texts"),
        ("--row", '{"row": {"family": "tfidf"}}', "texts"),
        ("--asked", '{"backbone": null}', "texts"),
        ("--asked", "[1", "texts"),
    ],
)
def test_jobs_on_texts_and_on_images_ask_two_processes(tmp_path, option, told, reads):
    file = tmp_path / "asked.json"
    file.write_text(told)
    assert preload.kind(["train.py", "--root", "results", option, str(file)]) == reads
    assert preload.kind(["train.py", option, str(tmp_path / "gone.json")]) == "texts"
    assert preload.address("texts") != preload.address("images")


def test_the_socket_of_another_user_is_refused(monkeypatch):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        preload.check_peer(ours)
        monkeypatch.setattr(os, "getuid", lambda: -1)
        with pytest.raises(PermissionError):
            preload.check_peer(ours)


@pytest.mark.parametrize(
    "reads, there, absent", [("texts", "transformers", "timm"), ("images", "timm", "transformers")]
)
def test_what_is_preloaded_touches_no_card_and_starts_no_thread(reads, there, absent):
    code = (
        "import sys, threading; from tailprompt.machine import preload;"
        f"preload.load({reads!r}); import torch;"
        "assert not torch.cuda.is_initialized() and threading.active_count() == 1;"
        f"assert {there!r} in sys.modules and {absent!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_in_a_fork_is_the_run_alone(tmp_path):
    paths = [trained(tmp_path / name, preload) for name, preload in (("forked", "1"), ("alone", ""))]
    for name in toy.WRITTEN - {"run.json", "curve.csv"}:
        assert len({(path / name).read_bytes() for path in paths}) == 1, name
    forked, own = (json.loads((path / "run.json").read_text()) for path in paths)
    for run in (forked, own):
        del run["files"]["curve.csv"]  # it has the seconds of each line
    differ = {key for key in forked if forked[key] != own[key] and not key.endswith("seconds")}
    assert differ <= {"memory_mb", "data"}


def trained(root, preloaded):
    """The folder of a run that the command has trained."""
    root.mkdir()
    toy.data.write(toy.table(), list(toy.WORDS), root / "data/toy.parquet", sources={})
    asked = toy.asked_of(toy.settings("prompt", start=None), toy.ROW)
    (root / "asked.json").write_text(json.dumps({**asked, "start": None}))
    command = [
        sys.executable,
        "-m",
        "tailprompt.train",
        "--root",
        str(root),
        "--point",
        "mine/tiny/toy/prompt/1",
    ]
    told = {**os.environ, "PYTHONPATH": "src", "TAILPROMPT_PRELOAD": preloaded, "OMP_NUM_THREADS": "1"}
    options = ["--asked", str(root / "asked.json"), "--device", "cpu"]
    subprocess.run([*command, *options], env=told, check=True, capture_output=True)
    return root / "runs/mine/tiny/toy/prompt/1"
