"""Snakemake and our commands in forks of a process that has imported what they import of others.

A fork has the folder, the environment, the arguments and the output of a process of its own, and imports the
project's own code itself, so that it is as `python -m` but for the time.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

OTHERS = (
    "snakemake.cli",
    "snakemake.executors.dryrun",
    "yaml",
    "jsonschema",
    "referencing.jsonschema",
    "pandas",
)
LARGEST = 2**17  # bytes of a message, which holds arguments and environment


def said(
    folder: Path, module: str, *arguments: str, apart: bool = True, **environment: str
) -> tuple[int, str, str]:
    """The exit status of `python -m` there, its standard output, and its errors, apart or in the output.

    Plans come from one process and what makes something from another: in their hashes of texts they differ.
    """
    about = [str(folder), {**os.environ, **environment}, [module, *map(str, arguments)]]
    ours, theirs = os.pipe()
    with TemporaryFile("w+") as out, TemporaryFile("w+") as errors:
        descriptors = [out.fileno(), (errors if apart else out).fileno(), theirs]
        socket.send_fds(server(os.getpid(), "-n" in arguments)[0], [json.dumps(about).encode()], descriptors)
        os.close(theirs)
        with open(ours) as ended:
            status = int(ended.read())
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


@cache
def server(_: int, plans: bool) -> tuple[socket.socket, subprocess.Popen]:
    """The process that forks, and its socket. It ends with this one, which its number tells apart."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1"}  # no threads, which a fork would lack
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL)
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours, process


def asked(connection: socket.socket) -> str:
    """Fork for each message; returns in the fork, which has become what was asked: the module to run."""
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        message, descriptors, _, _ = socket.recv_fds(connection, LARGEST, 3)
        if not message:
            sys.exit()
        if os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        connection.close()
        out, errors, told = descriptors
        if child := os.fork():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(told, str(status).encode())
            os._exit(0)
        for descriptor, stream in ((out, 1), (errors, 2)):
            os.dup2(descriptor, stream)
        os.closerange(3, max(descriptors) + 1)
        return become(*json.loads(message))


def become(folder: str, environment: dict[str, str], arguments: list[str]) -> str:
    """Take the folder, environment and arguments of a process `python -m`; returns its module."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.orig_argv = [sys.executable, "-m", *arguments]
    sys.argv = arguments
    return arguments[0]


if __name__ == "__main__":
    import runpy

    for name in OTHERS:
        import_module(name)
    runpy.run_module(asked(socket.socket(fileno=int(sys.argv[1]))), run_name="__main__", alter_sys=True)
