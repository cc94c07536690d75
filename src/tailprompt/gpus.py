"""The graphics cards that this machine shows, and one of them for one process, or several whole ones.

Jobs that start together would all take the first card. Each takes a lock on a slot of a card instead, or on
all slots of several cards; the system gives the locks back when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

from tailprompt.errors import BadInput


def visible() -> list[str]:
    """Ids of the cards that this process may use: CUDA_VISIBLE_DEVICES if it is set, else all there are."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return installed()
    ids = [card.strip() for card in chosen.split(",") if card.strip()]
    return [] if "-1" in ids else ids


def installed() -> list[str]:
    """Indices of the machine's cards, by the driver's own listing."""
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


@contextmanager
def free(device: str, *, slots: int = 1, wanted: float = 1, pause: float = 2.0) -> Iterator[str]:
    """Yield `cpu`, or `cuda` once a slot of a card is ours and CUDA_VISIBLE_DEVICES names that card only.

    device: auto (a card if one is visible), cpu, cuda (BadInput if none is visible).
    slots: processes that may share a card. wanted: cards; of more than one all slots are ours, and where
    fewer are visible, all of those. pause: seconds between two looks while too many are taken.
    Must be entered before anything touches CUDA. Inside a SLURM job the cards are SLURM's to give.
    """
    cards = visible() if device != "cpu" and installed() else []  # the variable may be set without a driver
    if device == "cuda" and not cards:
        raise BadInput(
            "device is 'cuda' but no card is visible; set device to auto or cpu, or CUDA_VISIBLE_DEVICES"
        )
    if not cards or "SLURM_JOB_ID" in os.environ:
        yield "cuda" if cards else "cpu"
        return
    if len(cards) < wanted < inf:
        print(f"{wanted} cards are wanted, {len(cards)} visible; all of those are taken", file=sys.stderr)
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    taken = wait(cards, slots, wanted, pause)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    try:
        yield "cuda"
    finally:
        give_back(taken)
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        if before is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def wait(cards: list[str], slots: int, wanted: float, pause: float) -> dict[str, list[int]]:
    """Cards, each with the open locks on its slots that are ours."""
    told = False
    while not (taken := whole(cards, slots, wanted) if wanted > 1 else one(cards, slots)):
        if not told:
            print(
                f"all {len(cards)} card(s) x {slots} slot(s) are taken; waiting"
                if wanted == 1
                else f"fewer than {min(wanted, len(cards))} of {len(cards)} card(s) are free; waiting",
                file=sys.stderr,
                flush=True,
            )
            told = True
        time.sleep(pause)
    return taken


def one(cards: list[str], slots: int) -> dict[str, list[int]]:
    """A slot of a card, if one is free; an empty card is preferred to a second slot."""
    for slot in range(slots):
        for card in cards:
            lock = take(card, slot)
            if lock is not None:
                return {card: [lock]}
    return {}


def whole(cards: list[str], slots: int, wanted: float) -> dict[str, list[int]]:
    """All slots of the wanted cards, or of none: who kept some while waiting would keep others waiting."""
    taken: dict[str, list[int]] = {}
    for card in cards:
        locks = [lock for slot in range(slots) if (lock := take(card, slot)) is not None]
        if len(locks) < slots:
            give_back({card: locks})
        else:
            taken[card] = locks
        if len(taken) == min(wanted, len(cards)):
            return taken
    give_back(taken)
    return {}


def give_back(taken: dict[str, list[int]]) -> None:
    """Close the locks."""
    for lock in (lock for locks in taken.values() for lock in locks):
        os.close(lock)


def take(card: str, slot: int) -> int | None:
    """The open file that holds a slot's lock, or None if another process has it."""
    folder = Path(tempfile.gettempdir()) / f"tailprompt-cards-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    name = re.sub(r"\W", "_", card)
    file = os.open(folder / f"{name}-{slot}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
