"""What a scale will run, download and cost, forecast from the plan and from what is in results/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from tailprompt.data.places import image_root, places
from tailprompt.errors import BadInput, counted
from tailprompt.files import read_json
from tailprompt.plan import blocks, left_open, present, standing
from tailprompt.plan.agreement import damaged
from tailprompt.plan.brought import check_runs
from tailprompt.plan.hours import RULE, by_rule, on_cpu
from tailprompt.plan.own_rows import looked_at, ones_own
from tailprompt.plan.places import brought, report_file
from tailprompt.plan.points import Point, parse
from tailprompt.plan.refused import refused
from tailprompt.plan.rows import cards_of, kind_of

UNTRAINED = "time: none, as nothing is trained under train: false"


def forecast(config: dict, root: Path = Path(".")) -> str:
    """The report that `tailprompt plan` prints. root: the project's folder."""
    here = standing.present(config, root)
    points = present.needed(config, here, root)
    done = finished_of(config, points, root)
    rest, cpu = [point for point in points if point not in done], on_cpu(config)
    check_runs(root / "results" / config["scale"], rest)
    trains = config.get("train", True)
    left = seconds_left(config, rest, done, root, cpu=cpu) if trains else dict.fromkeys(rest, 0.0)
    elsewhere = (
        seconds_left(config, rest, done, root, cpu=False) if cpu and config["device"] == "auto" else {}
    )
    datasets, backbones = blocks.all_datasets(config), sorted({point.backbone for point in points})
    methods = Counter(parse(point.method)[0] for point in points)
    lines = [
        f"scale {config['scale']}: {counted(len(points), 'run')}, {len(done)} of them done, on "
        f"{counted(len(datasets), 'data set')} with {counted(len(backbones), 'backbone')}",
        "",
        *table(points, left),
        "",
        f"runs a method: {', '.join(f'{name} {n}' for name, n in methods.items())}",
        *limited(config),
    ]
    if not trains:
        return "\n".join([*lines, UNTRAINED])
    lines += [
        *waiting(config),
        *refused(config, root),
        *downloads(config, datasets, backbones, root),
        *unpacked(config, datasets),
        *absent(config, datasets, root),
        *left_open.lines(config, rest, here, root),
        *unseen(config, datasets, root),
        *gpus(config, backbones),
        *hours(left, done, elsewhere),
    ]
    return "\n".join(lines)


def finished_of(config: dict, points: list[Point], root: Path) -> dict[Point, float]:
    """The seconds of those of the runs that are finished."""
    here = standing.present(config, root)
    took = {point: finished(config, point, here, root) for point in points}
    return {point: seconds for point, seconds in took.items() if seconds is not None}


def finished(config: dict, point: Point, here: standing.Present, root: Path) -> float | None:
    """The seconds that a run took, or None if it is not finished or not what is asked now."""
    folder = standing.run_folder(config, point, here, root)
    if not (folder / "run.json").is_file():
        return None
    try:
        run = read_json(folder / "run.json", "settings", "seconds")
    except BadInput as error:
        again = f"; delete {folder}, and unbundle it again" if brought(folder) else ""
        raise BadInput(f"{error}{again}") from None
    if not isinstance(run["seconds"], int | float):
        raise BadInput(damaged(folder / "run.json", folder))
    return run["seconds"] if present.run_is_here(config, point, here, root) else None


def table(points: list[Point], left: dict[Point, float]) -> list[str]:
    """A line for each protocol, backbone and data set."""
    rows = [("protocol", "backbone", "data set", "methods, by rate", "seeds", "runs", "done", "hours left")]
    cells: dict[tuple, list[Point]] = {}
    for point in points:
        cells.setdefault((point.protocol, point.backbone, point.dataset), []).append(point)
    for cell, members in cells.items():
        methods, seeds = {point.method for point in members}, {point.seed for point in members}
        here = sum(point not in left for point in members)
        hours_left = sum(left.get(point, 0) for point in members) / 3600
        rows.append((*cell, *map(str, (len(methods), len(seeds), len(members), here)), f"{hours_left:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def seconds_left(
    config: dict, points: list[Point], done: dict[Point, float], root: Path, *, cpu: bool
) -> dict[Point, float]:
    """The seconds of each run: those by RULE, times the pace of finished runs (what they took, over RULE).

    The nearest ones tell it (`cells`). Among all of them RULE counts as one run more, the longest of those
    left, so that a few short runs do not speak for long ones.
    """
    by_cell = cache(lambda point: by_rule(config, point, root, cpu=cpu))  # all seeds take as long
    rule = {point: by_cell(replace(point, seed=0)) for point in {*points, *done}}
    longest = max((rule[point] for point in points), default=0.0)
    sums: dict[tuple, tuple[float, float]] = {(): (longest, longest)}
    for run, seconds in done.items():
        for cell in cells(run):
            took, ruled = sums.get(cell, (0.0, 0.0))
            sums[cell] = (took + seconds, ruled + rule[run])
    pace = {cell: took / ruled for cell, (took, ruled) in sums.items() if ruled}
    return {
        point: rule[point] * next(pace[cell] for cell in cells(point) if cell in pace) for point in points
    }


def cells(run: Point) -> list[tuple]:
    """What runs of one pace share with this one, the nearest first: method and data, method, nothing."""
    method = parse(run.method)[0]
    return [(run.backbone, run.dataset, method), (run.backbone, method), ()]


def downloads(config: dict, datasets: list[str], backbones: list[str], root: Path) -> list[str]:
    """What remains to be downloaded, and how many files have no stated size."""
    rows = {name: config["backbones"][name] for name in backbones}
    here = {file.stem for file in (root / "results").glob("*/backbones/*.json")}  # one cache for all scales
    missing = [name for name in rows if "hub" in rows[name] and name not in here]
    weights = sum(rows[name].get("megabytes", 0) for name in missing) / 1000
    entries = [
        entry for name in sorted({parse(d)[0] for d in datasets}) for entry in wanted(config, name, root)
    ]
    size = sum(entry.get("bytes", 0) for entry in entries) / 1e9
    unknown = sum("bytes" not in entry for entry in entries)
    more = f" and {counted(unknown, 'file')} of unknown size" if unknown else ""
    return [
        f"to download: {weights + size:.2f} GB{more} "
        f"({weights:.2f} GB of weights: {', '.join(missing) or 'none'}; "
        f"{counted(len(entries), 'data file')}, {size:.3f} GB); `tailprompt fetch` gets it ahead"
    ]


def limited(config: dict) -> list[str]:
    """What the `methods` of protocols leave out of tables and figures, and what they name in vain."""
    lines = []
    for protocol, (out, idle) in blocks.limits(config).items():
        methods = ", ".join(f"{method} ({', '.join(names)})" for method, names in out.items())
        place = f"protocols.{protocol}.methods"
        lines += [f"left out, as {place} does not name them: {methods}"] if out else []
        lines += [f"no run, as no table or figure names what {place} does: {', '.join(idle)}"] if idle else []
    return lines


def waiting(config: dict) -> list[str]:
    """The tables that wait for what searches choose, of what it is not given yet, and the file to give."""
    lines = []
    for (paper, name), unsearched in blocks.waiting(config).items():
        methods = Counter((search, dataset) for search, dataset, _ in unsearched)
        lacking = ", ".join(
            f"{search} for {counted(n, 'method')} on {dataset}" for (search, dataset), n in methods.items()
        )
        searches = dict.fromkeys(search for search, _, _ in unsearched)
        files = ", ".join(f"results/{config['scale']}/tables/{paper}/{search}.yaml" for search in searches)
        lines.append(
            f"{name} of {paper} waits for what {lacking} chooses; when all its runs are done, give as one "
            f"more --configfile: {files}"
        )
    return lines


def unseen(config: dict, datasets: list[str], root: Path) -> list[str]:
    """The data of one's own whose rows nobody has looked at yet; small files of texts were looked at."""
    results = root / "results" / config["scale"]
    rows = {parse(name)[0]: config["datasets"][parse(name)[0]] for name in datasets}
    names = [
        name
        for name, row in rows.items()
        if ones_own(row)
        and not (report_file(results, name).is_file() and standing.rows_to_be(config, name, root) == {})
    ]
    names = [name for name in names if not looked_at({"name": name, **rows[name]}, root)]
    said = "texts and labels are checked when data are prepared, before any training"
    return [f"rows not looked at: {', '.join(names)} ({said})"] if names else []


def unpacked(config: dict, datasets: list[str]) -> list[str]:
    """The image data sets that are not downloaded, and whose folder no row names."""
    names = sorted({parse(dataset)[0] for dataset in datasets})
    bare = [name for name in names if below_data_dir(config["datasets"][name])]
    if not bare or config.get("data_dir"):
        return []
    return [f"to unpack yourself, and to name as root in their rows: {', '.join(bare)}"]


def absent(config: dict, datasets: list[str], root: Path) -> list[str]:
    """The files and folders that data_dir lacks, of data sets that are not prepared."""
    if not config.get("data_dir"):
        return []
    results, here, lacking = root / "results" / config["scale"], root / config["data_dir"], []
    names = [parse(name)[0] for name in datasets if not report_file(results, name).is_file()]
    for name in dict.fromkeys(names):
        row = {"name": name, **config["datasets"][name]}
        files = [places(row, each, here) for each in row.get("files", {}).values() if outside(each)]
        gone = [paths[0] for paths in files if not any(path.is_file() for path in paths)]
        lacking += [str(path.relative_to(here)) for path in gone]
        if below_data_dir(row) and not (folder := image_root(row, here)).is_dir():
            lacking.append(f"{folder.relative_to(here)}/")
    return [f"not in data_dir {config['data_dir']}: {', '.join(lacking)}"] if lacking else []


def outside(entry: dict | str) -> bool:
    """Whether a file of a data set is public, and not at a path of its own."""
    return isinstance(entry, dict) and "path" not in entry


def below_data_dir(row: dict) -> bool:
    """Whether the images of a data set lie in a folder that no download makes."""
    return kind_of(row) == "image" and row["loader"] not in ("cifar100", "digits") and "root" not in row


def gpus(config: dict, backbones: list[str]) -> list[str]:
    """How many GPUs a job takes, if a backbone is spread over several."""
    many = {name: number for name in backbones if (number := cards_of(config, name)) > 1}
    if not many or config["device"] == "cpu":
        return []
    stated = ", ".join(f"{number} with {name}" for name, number in many.items())
    return [f"GPUs of a job: {stated}, 1 with others; where fewer are there, all of those"]


def wanted(config: dict, name: str, root: Path) -> list[dict]:
    """The files of a data set that will be downloaded."""
    if config.get("data_dir"):
        return []
    files = config["datasets"][name].get("files", {}).values()
    remote = [entry for entry in files if isinstance(entry, dict) and "url" in entry]
    raw = root / "results/raw" / name
    names = [entry.get("name") or entry["url"].rpartition("/")[2] for entry in remote]
    return [entry for entry, name in zip(remote, names, strict=True) if not (raw / name).is_file()]


def hours(left: dict[Point, float], done: dict[Point, float], gpu: dict[Point, float]) -> list[str]:
    """How long the remaining runs take one after another, and where that number comes from.

    gpu: their seconds on a GPU, where this machine has none and the scale takes one if there is.
    """
    if not left:
        return ["time: every run is done"]
    guessed = len(unmeasured(left, done))
    lines = [
        f"time: {in_hours(left)} for {counted(len(left), 'run')} one after another; "
        "divide by the runs at once"
    ]
    if gpu and guessed:
        lines.append(f"  on a GPU {in_hours(gpu)}; none is visible here, so the CPU is what is counted")
    source = f"from {counted(len(done), 'finished run')}" if guessed < len(left) else "nothing measured yet"
    return [*lines, f"  ({source}; {guessed} by a rule of thumb: {RULE})" if guessed else f"  ({source})"]


def unmeasured(left: Iterable[Point], done: Iterable[Point]) -> list[Point]:
    """The runs of methods of which no run is finished, so that only RULE tells how long they take."""
    known = {cell for point in done for cell in cells(point) if cell}
    return [point for point in left if not known & {*cells(point)}]


def in_hours(seconds: dict[Point, float]) -> str:
    """The sum of the seconds of runs, in hours."""
    return f"{sum(seconds.values()) / 3600:,.1f} hours"
