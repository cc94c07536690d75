"""Which GPUs this machine has, and how a process reserves a slot of one GPU, or several whole GPUs.

Jobs that start together would all take the first GPU. Instead each locks one slot of a GPU, or all slots of
several. The system releases the locks when the process ends, however it ends. Where several jobs share a GPU,
NVIDIA's MPS lets their kernels run at once; without it they take turns.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

from tailprompt.errors import BadInput, counted

# help texts of the stages that take a GPU
DEVICE = "where to compute; auto takes a GPU if one is visible (default: auto)"
SLOTS = "processes that may share a GPU (default: 1)"
MPS, PIPE = "nvidia-cuda-mps-control", "CUDA_MPS_PIPE_DIRECTORY"
CONTEXT = """
import ctypes
driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
raise SystemExit(driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
"""


def visible() -> list[str]:
    """Ids of the GPUs that this process may use: CUDA_VISIBLE_DEVICES if it is set, else all there are."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return installed()
    ids = [gpu.strip() for gpu in chosen.split(",") if gpu.strip()]
    return [] if "-1" in ids else ids


def installed() -> list[str]:
    """Indices of the machine's GPUs, as its driver lists them."""
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return [
            path.name[6:]
            for path in sorted(Path("/dev").glob("nvidia*"))
            if re.fullmatch(r"nvidia\d+", path.name)
        ]
    return listing.split()


def share() -> None:
    """Start MPS for the processes that this one starts, unless someone runs it or it does not work here."""
    if PIPE in os.environ or not shutil.which(MPS):
        return
    place = {variable: str(folder("mps")) for variable in (PIPE, "CUDA_MPS_LOG_DIRECTORY")}
    os.environ.update(place)
    every = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    subprocess.run([MPS, "-d"], env=every, capture_output=True)  # fails where one runs, which is as well
    if subprocess.run([sys.executable, "-c", CONTEXT], capture_output=True).returncode:
        unshare()
        for variable in place:
            os.environ.pop(variable)
        print("MPS does not work here: jobs that share a GPU take turns", file=sys.stderr)


def unshare() -> None:
    """End the MPS that `share` started."""
    if os.environ.get(PIPE) == str(folder("mps")):
        subprocess.run([MPS], input=b"quit\n", capture_output=True)


@contextmanager
def free(device: str, *, slots: int = 1, wanted: float = 1, pause: float = 2.0) -> Iterator[str]:
    """Yield `cpu`, or `cuda` once this process holds a slot of the one GPU in CUDA_VISIBLE_DEVICES.

    device: auto (a GPU if one is visible), cpu, or cuda (raises BadInput if none is visible).
    slots: processes that may share a GPU. wanted: number of GPUs; more than one are reserved with all their
    slots, and if fewer are visible, all of those. pause: seconds between attempts while too few are free.
    It must be entered before anything touches CUDA. Inside a SLURM job, SLURM assigns the GPUs.
    """
    gpus = visible() if device != "cpu" and installed() else []  # the variable may be set without a driver
    if device == "cuda" and not gpus:
        raise BadInput(
            "device is 'cuda' but no GPU is visible; set device to auto or cpu, or CUDA_VISIBLE_DEVICES"
        )
    if not gpus or "SLURM_JOB_ID" in os.environ:
        yield "cuda" if gpus else "cpu"
        return
    if len(gpus) < wanted < inf:
        print(
            f"{counted(wanted, 'GPU', 'are')} wanted, {len(gpus)} visible; all of those are taken",
            file=sys.stderr,
        )
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    taken = wait(gpus, slots, wanted, pause)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    try:
        yield "cuda"
    finally:
        give_back(taken)
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        if before is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def wait(gpus: list[str], slots: int, wanted: float, pause: float) -> dict[str, list[int]]:
    """The reserved GPUs, each with the open lock files of its slots; waits until there are some."""
    said = False
    while not (taken := whole(gpus, slots, wanted) if wanted > 1 else one(gpus, slots)):
        if not said:
            print(
                f"all slots are taken ({counted(len(gpus), 'GPU')}, {counted(slots, 'slot')} each); waiting"
                if wanted == 1
                else f"fewer than {min(wanted, len(gpus))} of {counted(len(gpus), 'GPU')} free; waiting",
                file=sys.stderr,
                flush=True,
            )
            said = True
        time.sleep(pause)
    return taken


def one(gpus: list[str], slots: int) -> dict[str, list[int]]:
    """A slot of a GPU, if one is free; an idle GPU comes before the second slot of a busy one."""
    for slot in range(slots):
        for gpu in gpus:
            lock = take(gpu, slot)
            if lock is not None:
                return {gpu: [lock]}
    return {}


def whole(gpus: list[str], slots: int, wanted: float) -> dict[str, list[int]]:
    """All slots of the wanted GPUs, or none: two jobs that each kept some would wait for ever."""
    taken: dict[str, list[int]] = {}
    for gpu in gpus:
        locks = [lock for slot in range(slots) if (lock := take(gpu, slot)) is not None]
        if len(locks) < slots:
            give_back({gpu: locks})
        else:
            taken[gpu] = locks
        if len(taken) == min(wanted, len(gpus)):
            return taken
    give_back(taken)
    return {}


def give_back(taken: dict[str, list[int]]) -> None:
    """Release the locks."""
    for lock in (lock for locks in taken.values() for lock in locks):
        os.close(lock)


def take(gpu: str, slot: int) -> int | None:
    """The open file that holds the lock of a slot, or None if another process has it."""
    name = re.sub(r"\W", "_", gpu)
    file = os.open(folder("cards") / f"{name}-{slot}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def folder(what: str) -> Path:
    """A folder of this user's own that processes of this machine share."""
    path = Path(tempfile.gettempdir()) / f"tailprompt-{what}-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path
