"""Speed of training, ours beside others, on made-up data with random weights; nothing is downloaded.

PYTHONPATH=src python -m benchmarks                         # all parts; minutes on a GPU
PYTHONPATH=src python -m benchmarks --only CMID losses      # parts whose name holds one of these
PYTHONPATH=src python -m benchmarks --small --device cpu    # small networks, to see that it runs
PYTHONPATH=src python -m benchmarks scores FOLDER           # scores beside those of libraries, on real data
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Iterable
from math import inf
from pathlib import Path
from tempfile import TemporaryFile

import pandas as pd
import torch
import transformers

from benchmarks import losses, plot, scores, table
from benchmarks.job import Job
from benchmarks.parts import PARTS, System
from benchmarks.watch import Watch, matmul_rate
from tailprompt.errors import BadInput
from tailprompt.machine.cpus import threads

LOSSES = "losses"  # a part of its own


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["scores"]:
        return scores.main(arguments[1:])
    options = parsed(arguments)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic kernels ask for it
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # Trainer would take all
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    matmul, begun = matmul_rate(device), time.perf_counter()
    print(where := surroundings(device, matmul), flush=True)
    rows, lines = [], pd.DataFrame()
    for part in chosen(PARTS, options.only):
        rows += compare(part, options, device, matmul)
        write(rows, lines, where, options.out)
    if chosen([LOSSES], options.only):
        try:
            lines = losses.curves(losses.JOB(small=options.small), device)
        except Exception as error:
            print(f"{LOSSES}: {reason(error)}")
    print("\n" + write(rows, lines, where, options.out))
    plot.draw(table.compared(rows), lines, options.out / "speed")
    print(f"{time.perf_counter() - begun:.0f} s; {options.out}/speed.md, .csv, .pdf, .png")


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"parts: {', '.join([*PARTS, LOSSES])}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="parts whose name holds one")
    parser.add_argument(
        "--systems", nargs="+", default=[""], metavar="NAME", help="systems whose name holds one of these"
    )
    parser.add_argument("--seconds", type=seconds, default=1.5, help="of measuring each system, at the least")
    parser.add_argument("--small", action="store_true", help="small networks and data, for a CPU")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="by default a GPU if there is one")
    parser.add_argument("--threads", type=threads, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("results/speed"), help="folder of table and figure")
    options = parser.parse_args(arguments)
    parts = [*PARTS, LOSSES]
    systems = {name for part in chosen(PARTS, options.only) for name in PARTS[part][1]}
    try:
        check_names("--only", options.only, parts, "part")
        if options.systems != [""]:
            check_names("--systems", options.systems, sorted(systems), "system of these parts")
        if options.device == "cuda" and not torch.cuda.is_available():
            raise BadInput("--device cuda: torch finds no GPU here")
        check_folder(options.out)
    except BadInput as error:
        parser.error(str(error))
    return options


def check_names(option: str, wanted: list[str], names: list[str], kind: str) -> None:
    """Raise BadInput if no name holds one of those wanted."""
    if absent := [each for each in wanted if not chosen(names, [each])]:
        raise BadInput(f"{option} {absent[0]}: no {kind} is named so; known: {', '.join(names) or 'none'}")


def check_folder(out: Path) -> None:
    """Make the folder of table and figure; raises BadInput if no file can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise BadInput(f"--out {out}: no folder that can be written to ({error.strerror})") from None


def seconds(text: str) -> float:
    """A time of the command line, for argparse."""
    if not 0 < float(text) < inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return float(text)


def chosen(names: Iterable[str], wanted: list[str]) -> list[str]:
    """The names that hold one of those wanted."""
    return [name for name in names if any(each in name for each in wanted)]


def compare(part: str, options: argparse.Namespace, device: torch.device, matmul: float) -> list[dict]:
    """The rows of a part. A system that fails is told in its row."""
    make, systems = PARTS[part]
    job, rows = make(small=options.small), []
    for name in chosen(systems, options.systems):
        watch, peak, note = measured(systems[name], job, device, options.seconds)
        rows.append(table.row(part, name, job, watch, matmul=matmul, peak=peak, note=note))
        print(f"{part} | {name}: {rows[-1]['rate']:,.1f} {job.unit}/s {note}", flush=True)
    return rows


def measured(system: System, job: Job, device: torch.device, seconds: float) -> tuple[Watch, float, str]:
    """What a watch saw of a system, its peak memory in GiB, and what is to be told beside them."""
    watch, on_gpu = Watch(device, seconds), device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    try:
        note = system(job, device, watch) or ""
    except Exception as error:
        note = reason(error)
    peak = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else float("nan")
    torch._dynamo.reset()
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
    return watch, peak, note


def reason(error: Exception) -> str:
    """An error in a cell: its first line, or its last if it brings a worker's traceback."""
    lines = str(error).strip().splitlines() or [""]
    told = f"{type(error).__name__}: {lines[-1 if 'Traceback' in str(error) else 0]}"
    return told[:160].replace("|", "/")


def surroundings(device: torch.device, matmul: float) -> str:
    """Where it ran, and what the shares are of."""
    name = (
        torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    )
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    return f"{name}, {versions}; large matrix product {matmul / 1e12:,.3g} TFLOP/s"


def write(rows: list[dict], lines: pd.DataFrame, where: str, out: Path) -> str:
    """Write the table of what there is, and the losses; returns it as text."""
    out.mkdir(parents=True, exist_ok=True)
    found = table.compared(rows)
    text = f"{where}\n\n{table.markdown(found)}"
    if len(lines):
        lines.to_csv(out / "losses.csv")
        text += f"\n{losses.gaps(lines)}\n"
    found.to_csv(out / "speed.csv", index=False)
    (out / "speed.md").write_text(text)
    return text


if __name__ == "__main__":
    main()
