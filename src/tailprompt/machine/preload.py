"""A process that has imported torch, with transformers or timm, forks for each job, which imports nothing.

A stage that is run as `python -m tailprompt.train` asks that process to run it if TAILPROMPT_PRELOAD is set,
as the workflow sets it on one machine. The first job starts the process, which ends when no job comes any
more. The name of its socket is a digest of the sources and of all that a process inherits, so that a job
runs as it would in a process of its own; and there it does run if anything is amiss before it begins.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from tailprompt.errors import stage

LATE = {  # what a run imports once it knows its backbone: of images timm, which takes as long as torch
    "texts": (
        "pyarrow.dataset",
        "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert",
        "transformers.models.roberta.modeling_roberta",
        "transformers.models.t5.modeling_t5",
    ),
    "images": ("pyarrow.dataset", "timm"),
}
FILES = ("--asked", "--row")  # options of jobs, whose file says of which family the backbone is
IDLE = 30.0  # seconds without a job after which the preloaded process ends
PATIENCE = 100.0  # seconds that a job waits for it to begin
BEGUN = b"begun"
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INHERITED = ("Uid", "Gid", "Groups", "Umask", "Cap", "NoNew", "Seccomp", "SigIgn", "SigBlk", "Cpus", "Mems")
PR_SET_PDEATHSIG = 1  # prctl(2)


def run(module: str) -> int:
    """Run `main` of a stage with the arguments of this process, and return its exit status."""
    if os.environ.get("TAILPROMPT_PRELOAD") and sys.platform == "linux" and sys.orig_argv[1] == "-m":
        with caught() as signals:
            if connection := begun(module):
                return ended(connection, signals)
    stage(imported(module).main)
    return 0


def imported(module: str, *others: str):
    """The module, which stays to the end, and so do others: the garbage collector need not walk over them."""
    gc.disable()
    for name in others:
        import_module(name)
    wanted = import_module(module)
    gc.freeze()
    gc.enable()
    return wanted


def begun(module: str) -> socket.socket | None:
    """The connection to the preloaded process in which the job has begun; None if it will not begin there."""
    with suppress(OSError):
        reads = kind(sys.argv)
        connection, folder = connected(address(reads), reads), os.open(".", os.O_PATH)
        socket.send_fds(connection, [json.dumps([module, sys.argv]).encode()], [0, 1, 2, folder])
        os.close(folder)
        connection.settimeout(PATIENCE)
        if connection.recv(len(BEGUN)) == BEGUN:
            connection.settimeout(None)
            return connection
    return None


def kind(arguments: list[str]) -> str:
    """What the backbone of a job reads, as the file says that the job is asked by."""
    file = next((after for option, after in pairwise(arguments) if option in FILES), "")
    with suppress(
        OSError, ValueError, AttributeError, LookupError, TypeError
    ):  # of a damaged file the job says so
        asked = json.loads(Path(file).read_text("utf-8"))
        if (asked.get("backbone") or asked["row"])["family"] == "vit":
            return "images"
    return "texts"


def address(reads: str = "texts") -> str:
    """The abstract name of the socket; differs where a process would find or inherit anything else."""
    ours = sorted(Path(__file__).parents[1].rglob("*.py"))
    found = [*ours, *(name for name in sys.path[1:] if os.path.isdir(name))]
    here = os.stat(".")
    process = Path("/proc/self")
    status = (process / "status").read_text().splitlines()
    inherited = [
        sorted(os.environ.items()),
        [os.getcwd(), here.st_dev, here.st_ino],  # another may have been put in its place
        os.nice(0),
        [line for line in status if line.startswith(INHERITED)],
        [(process / name).read_text() for name in ("cgroup", "limits")],
        [os.readlink(name) for name in sorted((process / "ns").iterdir())],
    ]
    key = repr([reads, sys.executable, sys.version, sys.path, [*map(state, found)], inherited])
    return f"\0tailprompt-{hashlib.sha256(key.encode()).hexdigest()}"


def state(place: str | Path) -> tuple[str, int, int, int, int]:
    """What differs where a file or folder was edited, or another was put in its place with the old time."""
    about = os.stat(place)
    return str(place), about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def connected(name: str, reads: str) -> socket.socket:
    """A connection to the preloaded process of this name, which is started where there is none."""
    connection, started = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), None
    while True:
        over = started is not None and started.poll() is not None
        try:
            connection.connect(name)
            break
        except ConnectionRefusedError:
            if over:
                raise
        started = started or subprocess.Popen(
            [sys.executable, "-m", "tailprompt.machine.preload", name[1:], reads],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(0.02)
    check_peer(connection)
    return connection


def check_peer(connection: socket.socket) -> None:
    """Raise PermissionError for the process of another user, who could take the name of a socket first."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", told)[1] != os.getuid():
        raise PermissionError("the socket is another user's")


@contextmanager
def caught() -> Iterator[socket.socket]:
    """Where signals to pass on are read, a byte each; those that nobody has read come again at the end.

    A handler that passed them on itself would not run if one came just before the wait for the status began.
    """
    read, written = socket.socketpair()
    written.setblocking(False)
    heard = [number for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: None) for number in heard}
    signal.set_wakeup_fd(written.fileno())
    try:
        yield read
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        written.close()
        with read:
            for number in read.recv(len(PASSED_ON)):
                os.kill(os.getpid(), number)


def ended(connection: socket.socket, signals: socket.socket) -> int:
    """The exit status of a job, to which signals go on; dies of the signal that it died of."""
    try:
        while connection not in select.select([connection, signals], [], [])[0]:
            with suppress(OSError):  # it is about to say how it ended
                connection.send(signals.recv(1))
        (status,) = struct.unpack("i", connection.recv(struct.calcsize("i")))
    except (OSError, struct.error):  # the preloaded process was killed, and its jobs with it
        status = -signal.SIGKILL
    if status >= 0:
        return status
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def main() -> None:
    """Import everything, and fork for each job until none has come for a while."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0{sys.argv[1]}")  # fails if there is such a process already
    listener.listen(128)
    load(*sys.argv[2:])
    needed = True
    while needed:
        needed = busy()  # before the wait: the job after one that ends meanwhile has time to come
        if select.select([listener], [], [], IDLE)[0]:
            needed = True
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return guarded(connection)
            connection.close()


def load(reads: str = "texts") -> None:
    """Import what training imports, and let transformers compile what it compiles once."""
    imported("tailprompt.train", *LATE[reads])
    with suppress(AttributeError, KeyError):
        sys.modules["transformers.conversion_mapping"].get_checkpoint_conversion_mapping("bert")


def busy() -> bool:
    """Whether a job is running; buries those that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def guarded(connection: socket.socket) -> None:
    """Run the job that comes over a connection in another fork, which ends with who asked for it."""
    check_peer(connection)
    if (torch := sys.modules.get("torch")) and torch.cuda._is_in_bad_fork():
        return  # an import has asked the driver for GPUs, which no fork can use then
    told, files, *_ = socket.recv_fds(connection, 1 << 20, 4)
    guard, pid = os.getpid(), os.fork()
    if pid == 0:
        connection.close()
        return work(*json.loads(told), files, guard)
    end = os.pidfd_open(pid)
    connection.send(BEGUN)
    while end not in select.select([end, connection], [], [])[0]:
        number = connection.recv(1)  # nothing once who asked has died
        signal.pidfd_send_signal(end, number[0] if number else signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.send(struct.pack("i", status))
    os._exit(0)


def work(module: str, arguments: list[str], files: list[int], guard: int) -> None:
    """Run a job as a process of its own would, with the standard files and the folder of who asked for it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    os.fchdir(folder := files.pop())
    os.close(folder)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv = arguments
    stage(import_module(module).main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to take apart all that was imported would take a second


if __name__ == "__main__":
    from tailprompt.machine import (
        preload,  # its name in a job's own process, of which run.json has the sources
    )

    preload.main()
