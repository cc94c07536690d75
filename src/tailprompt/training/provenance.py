"""What a result was made with: versions, device and the digests of this project's sources."""

from __future__ import annotations

import platform
import resource
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from tailprompt.files import sha256

PACKAGES = ("torch", "transformers", "numpy", "pandas", "scikit-learn", "tailprompt")
OURS = Path(__file__).parents[1]
TRAINS = "components data inputs model pretraining tasks training train.py pretrain.py".split()  # what trains
LOADED = {file: sha256(file) for file in sorted(OURS.rglob("*.py"))}  # as imported: they may be edited


def surroundings(device: torch.device) -> dict:
    """The versions, the device and the digests of the sources that a run is made with."""
    sources = {
        name: LOADED[Path(module.__file__)][:16]
        for name, module in sorted(sys.modules.items())
        if name.startswith("tailprompt.") and Path(getattr(module, "__file__", None) or "") in LOADED
    }
    name = (
        torch.cuda.get_device_name()
        if device.type == "cuda"
        else f"{platform.processor() or platform.machine()} CPU"
    )
    return {"device": name, "threads": torch.get_num_threads(), "versions": versions(), "sources": sources}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that training uses."""
    return {"python": platform.python_version()} | {package: version_of(package) for package in PACKAGES}


@cache
def code() -> dict[str, str]:
    """A digest of each source file that training may run, and the versions of the packages that it uses.

    A killed run goes on only if all are the same: half of a run by other code is a run of neither.
    """
    digests = {str(file.relative_to(OURS)): digest for file, digest in LOADED.items()}
    return {name: digest for name, digest in digests.items() if name.split("/")[0] in TRAINS} | versions()


def costs() -> dict[str, float]:
    """The processor time that this process took so far, in seconds, and its largest memory, in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return {"cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "memory_mb": round(used.ru_maxrss / unit)}


@cache
def version_of(package: str) -> str:
    """The version of a package. This project also runs without being installed, so it states its own."""
    if package == "tailprompt":
        from tailprompt import __version__

        return __version__
    return version(package)
