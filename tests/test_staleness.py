"""What each edit makes stale: the jobs that it plans, alone and in pairs, and what a run of them leaves.

All stages are stand-ins. A plan changes nothing, so each edit is taken back, with the times of the files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from itertools import combinations, count
from pathlib import Path

import pytest
import stand_ins
from project import snakemake, values, wildcards

from tailprompt.files import sha256
from tailprompt.plan import asked, blocks, made, standing, unmade
from tailprompt.plan.config import load
from tailprompt.plan.jobs.shown import STAGES
from tailprompt.plan.settings import settings
from tailprompt.seals import seal, seal_of

pytestmark = pytest.mark.workflow

CONFIG = ("--configfile", "tests/tiny.yaml", "matrix.yaml")
METHODS = ("cls-tanh", "prompt", "prompt-focal")  # the last starts from the one before
DATASETS = {"toy": "tiny", "filed": "tiny", "judged": "tiny", "other": "grown"}  # and their backbones
SCALE, RUNS = Path("matrix.yaml"), Path("results/tiny/runs/glee")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project in which everything is made."""
    folder = stand_ins.made(tmp_path_factory.mktemp("copy") / "project")
    run(folder)
    return folder


def run(folder):
    """Make everything, after which there is nothing left to do."""
    done = snakemake(folder, *CONFIG, "--profile", "workflow/profiles/local", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert planned(folder) == set()


def planned(folder):
    """The jobs of a dry run: the rule and what it is for."""
    done = snakemake(folder, "-n", *CONFIG)
    assert done.returncode == 0, done.stdout
    return {
        f"{rule} {subject(values(about))}"
        for rule, about in wildcards(done.stdout)
        if rule not in ("all", "runs", "overview")
    }


def subject(named):
    """What a job is for; a seed is named if it is not the usual one."""
    if "point" not in named:
        return named.get("name") or next(
            named[key] for key in ("dataset", "backbone", "recipe") if key in named
        )
    name = f"{named['dataset']}/{named['method']}"
    return name if named["seed"] == "775" else f"{name}/{named['seed']}"


def trained(datasets=DATASETS, methods=METHODS, seed=""):
    """The jobs that train runs, and those that show them."""
    shown = {"draw figure4"} if "toy" in datasets and "cls-tanh" in methods and not seed else set()
    return {f"train {dataset}/{method}{seed}" for dataset in datasets for method in methods} | TABLES | shown


def prepared(*datasets):
    """The jobs that prepare data sets, and those that read their reports."""
    return (
        {f"prepare {name}" for name in datasets} | TABLES | ({"draw figure4"} if "toy" in datasets else set())
    )


NUMBERS = count()
YEAR = 365 * 86400 * 10**9  # nanoseconds
TABLES = {"tabulate table2", "tabulate claims"}
SCORES, READERS = "src/tailprompt/report/tables/scores.py", "src/tailprompt/data/readers.py"
TINY = ("toy", "filed", "judged")  # the data sets whose runs have the backbone tiny
WITH_WORDS = ("toy", "judged")
GROWN = {"pretrain grown", "backbone grown"} | trained(["other"])


@contextmanager
def kept(path):
    """A file, or a folder, as it was before, with its times."""
    copy = path.with_name(f".{path.name}.kept{next(NUMBERS)}")
    if path.is_dir():
        shutil.copytree(path, copy)
    elif path.exists():
        shutil.copy2(path, copy)
    try:
        yield path
    finally:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if copy.exists():
            copy.rename(path)


def replaced(file, old, new):
    """Another text in a file."""

    @contextmanager
    def change(folder):
        with kept(folder / file) as path:
            text = path.read_text("utf-8")
            assert old in text, (file, old)
            path.write_text(text.replace(old, new, 1), "utf-8")
            yield

    return change


def longer(file, text="\n# edited\n"):
    """A file with something at its end."""

    @contextmanager
    def change(folder):
        with kept(folder / file) as path, open(path, "a", encoding="utf-8") as end:
            end.write(text)
            end.flush()
            yield

    return change


def of_its_time(file, change):
    """A change that leaves the time of a file, as where another was put in its place from a backup."""

    @contextmanager
    def changed(folder):
        before = (folder / file).stat()
        with change(folder):
            os.utime(folder / file, ns=(before.st_atime_ns, before.st_mtime_ns))
            yield

    return changed


def gone(name):
    """Without a file or folder."""

    @contextmanager
    def change(folder):
        with kept(folder / name) as path:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield

    return change


def touched(*names):
    """Files that are as they were, but newer."""

    @contextmanager
    def change(folder):
        with ExitStack() as stack:
            for name in names:
                os.utime(stack.enter_context(kept(folder / name)))
            yield

    return change


@contextmanager
def moved(folder):
    """The file of a data set at another place."""
    with (
        kept(folder / "tests/moved.csv") as path,
        replaced(SCALE, "tests/other.csv", "tests/moved.csv")(folder),
    ):
        shutil.copy(folder / "tests/other.csv", path)
        yield


@contextmanager
def killed(folder):
    """What a killed driver leaves: its locks, and finished runs that Snakemake did not note."""
    locks = folder / ".snakemake/locks"
    with kept(folder / ".snakemake/metadata") as metadata:
        shutil.rmtree(metadata)
        metadata.mkdir()
        for kind in ("input", "output"):
            (locks / f"0.{kind}.lock").write_text("results/tiny/runs/nothing\n")
        yield
        for kind in ("input", "output"):
            (locks / f"0.{kind}.lock").unlink()


@contextmanager
def looked_at(folder):
    """A dry run of another configuration."""
    before = {file: file.read_bytes() for file in (folder / "results/tiny/asked").rglob("*.json")}
    done = snakemake(folder, "-n", *CONFIG, "--config", "methods={prompt: {eta: 9.5}}")
    assert done.returncode == 0 and "train" in done.stdout, done.stdout
    assert before == {file: file.read_bytes() for file in (folder / "results/tiny/asked").rglob("*.json")}
    yield


def prepared_elsewhere(changed):
    """A data set in another file, as of another version of pyarrow. changed: whether its rows are others."""

    @contextmanager
    def change(folder):
        table, report = (folder / f"results/tiny/data/filed.{ending}" for ending in ("parquet", "json"))
        with kept(table), kept(report), kept(seal_of(report)):
            table.write_text(table.read_text() + " ")
            about = json.loads(report.read_text()) | {"sha256": sha256(table)}
            report.write_text(json.dumps(about | ({"rows_sha256": "of others"} if changed else {})))
            seal(report)
            yield

    return change


def taken_back(edit, dataset):
    """An edit by which a data set was prepared, and nothing trained, and that was taken back."""

    @contextmanager
    def change(folder):
        with kept(folder / "results/tiny"), kept(folder / ".snakemake"):
            with EDITS[edit][0](folder):
                made = snakemake(folder, f"results/tiny/data/{dataset}.parquet", *CONFIG, "--cores", "1")
                assert made.returncode == 0, made.stdout
            yield

    return change


@contextmanager
def clock_set_back(folder):
    """All results are of the future, and one rate is another."""
    files = [file for file in (folder / "results").rglob("*") if file.is_file()]
    times = {file: file.stat().st_mtime_ns for file in files}
    with replaced(SCALE, "cls-tanh: {eta: 1.5", "cls-tanh: {eta: 2.5")(folder):
        for file, time in times.items():
            os.utime(file, ns=(time + YEAR, time + YEAR))
        yield
    for file, time in times.items():
        os.utime(file, ns=(time, time))


def of(run, backbone="tiny"):
    """The folder of a run."""
    return RUNS / backbone / run / "775"


# Edits of what jobs made
MADE = (
    "run's file gone",
    "run gone",
    "run.json",
    "another run of its time",
    "weights of a start",
    "prepared data gone",
    "file of the same rows",
    "file of other rows",
    "memory",
    "split taken back",
    "own data taken back",
)
TOLD = of("toy/cls-tanh") / "run.json"
EDITS = {
    "template": (
        replaced(
            SCALE, 'It was {mask} ."\n    max_length: 32\nsets', 'It is {mask} ."\n    max_length: 32\nsets'
        ),
        prepared("other") | trained(["other"], METHODS[1:]),
    ),
    "length": (
        replaced(SCALE, "max_length: 32\n  judged", "max_length: 31\n  judged"),
        prepared("filed") | trained(["filed"]),
    ),
    "title": (replaced(SCALE, "title: Toy", "title: Toys"), prepared("toy")),
    "threshold": (replaced(SCALE, "title: Toy", "threshold: 0.6, title: Toy"), prepared("toy")),
    "rate": (replaced(SCALE, "cls-tanh: {eta: 1.5", "cls-tanh: {eta: 2.5"), trained(methods=METHODS[:1])),
    "rate of a start": (
        replaced(SCALE, "prompt: {eta: 1.5", "prompt: {eta: 2.5"),
        trained(methods=METHODS[1:]),
    ),
    "default": (
        replaced("src/tailprompt/components/losses.py", "gamma: float = key(1.0", "gamma: float = key(2.0"),
        trained(methods=METHODS[2:]),
    ),
    "word": (
        replaced("tests/words.csv", "food,bread", "food,soup"),
        prepared(*WITH_WORDS) | trained(WITH_WORDS, METHODS[1:]),
    ),
    "order of classes": (
        replaced("tests/words.csv", "music,song\nsport,match", "sport,match\nmusic,song"),
        prepared(*WITH_WORDS) | trained(WITH_WORDS),
    ),
    "verbalizer": (
        replaced(SCALE, "title: Filed", "verbalizer: tests/words.csv\n    title: Filed"),
        prepared("filed") | trained(["filed"]),
    ),
    "backbone": (
        replaced(SCALE, "hidden_size: 16, num", "hidden_size: 32, num"),
        {"backbone tiny"} | trained(TINY),
    ),
    "weights": (longer("own/tiny/model.safetensors"), {"backbone tiny"} | trained(TINY)),
    "tokenizer": (longer("own/tiny/tokenizer_config.json"), {"backbone tiny"} | trained(TINY)),
    "split": (
        replaced(SCALE, "title: Other", "split_seed: 1\n    title: Other"),
        prepared("other") | trained(["other"]),
    ),
    "split taken back": (taken_back("split", "other"), prepared("other")),
    "place of data": (moved, prepared("other")),
    "own data": (longer("tests/other.csv", "more,music\n"), prepared("other") | trained(["other"])),
    "own data taken back": (taken_back("own data", "other"), prepared("other")),
    "data below data_dir": (
        longer("own/filed/rows.csv", "more,music\n"),
        prepared("filed") | trained(["filed"]),
    ),
    "data below data_dir gone": (gone("own/filed/rows.csv"), prepared("filed") | trained(["filed"])),
    "corpus": (
        longer("corpus.txt", "\nMore.\n"),
        {"annotate judged", "vocabulary grown", "pack grown"}
        | prepared("judged")
        | trained(["judged"])
        | GROWN,
    ),
    "annotator": (
        longer("judge/config.json", "\n"),
        {"annotate judged"} | prepared("judged") | trained(["judged"]),
    ),
    "annotator's weights": (
        longer("judge/model.safetensors", "\n"),
        {"annotate judged"} | prepared("judged") | trained(["judged"]),
    ),
    "recipe's rate": (replaced(SCALE, "lr: 2.0e-3", "lr: 1.0e-3"), GROWN),
    "recipe's form of a number": (replaced(SCALE, "warmup: 5", "warmup: 5.0"), set()),
    "recipe's form of another": (replaced(SCALE, "clip: 1.0", "clip: 1"), set()),
    "vocabulary": (replaced(SCALE, "size: 300", "size: 310"), {"vocabulary grown", "pack grown"} | GROWN),
    "card": (replaced(SCALE, "seen: nothing", "seen: little"), set()),
    "seed": (replaced(SCALE, "seeds: [775]", "seeds: [775, 776]"), trained(seed="/776")),
    "loader's code": (longer(READERS), prepared(*DATASETS)),
    "loader's code of its time": (of_its_time(READERS, longer(READERS)), prepared(*DATASETS)),
    "training code": (longer("src/tailprompt/training/loop.py"), set()),
    "figure's code": (longer("src/tailprompt/report/figures/features.py"), {"draw figure4"}),
    "table's code": (longer(SCORES), TABLES),
    "table's code of its time": (of_its_time(SCORES, longer(SCORES)), TABLES),
    "another run of its time": (
        of_its_time(TOLD, replaced(TOLD, '"seconds": 1.0', '"seconds": 2.0')),
        TABLES | {"draw figure4"},
    ),
    "claim": (
        replaced("config/papers/glee.yaml", "Claims of the paper and", "The claims of the paper and"),
        {"tabulate claims"},
    ),
    "printed number": (longer("config/reported/glee.csv", "table5,ecom,prompt,f1/tail,1,1,1\n"), TABLES),
    "features": (
        replaced("tests/tiny.yaml", "classes: [music, law]", "classes: [music, food]"),
        prepared("toy") | trained(["toy"], METHODS[:1]),  # preparing knows what classes there are
    ),
    "run's file gone": (gone(of("filed/prompt") / "predictions.parquet"), trained(["filed"], METHODS[1:])),
    "run gone": (gone(of("filed/prompt-focal")), trained(["filed"], METHODS[2:])),
    "run.json": (
        replaced(of("judged/cls-tanh") / "run.json", '"eta": ', '"eta": 1'),
        trained(["judged"], METHODS[:1]),
    ),
    "weights of a start": (
        replaced(of("other/prompt", "grown") / "run.json", '"weights_sha256": "', '"weights_sha256": "0'),
        trained(["other"], METHODS[2:]),
    ),
    "prepared data gone": (gone("results/tiny/data/toy.parquet"), prepared("toy")),
    "file of the same rows": (prepared_elsewhere(False), prepared("filed")),
    "file of other rows": (prepared_elsewhere(True), prepared("filed") | trained(["filed"])),
    "notes": (gone("results/tiny/made"), set()),
    "what was asked": (gone("results/tiny/asked"), set()),
    "threads": (replaced("tests/tiny.yaml", "threads: 1", "threads: 2"), set()),
    "times": (
        touched("tests/other.csv", "tests/words.csv", "own/tiny/config.json", "corpus.txt", SCALE, READERS),
        set(),
    ),
    "times of results": (
        touched(TOLD, TOLD.with_name("predictions.parquet"), "results/tiny/data/toy.json", SCORES),
        set(),
    ),
    "memory": (gone(".snakemake"), set()),
    "killed driver": (killed, set()),
    "dry run of another": (looked_at, set()),
    "clock set back": (clock_set_back, trained(methods=METHODS[:1])),
}
CLASH = (  # edits of which the second undoes the first
    {"data below data_dir", "data below data_dir gone"},
    {"memory", "killed driver"},
    {"file of the same rows", "file of other rows"},
    *({"clock set back", other} for other in MADE),
    # without notes other files in their place are believed, and what rows were before is not known
    *({"notes", other} for other in ("default", "file of other rows", "file of the same rows")),
    *({"notes", other} for other in ("own data taken back", "split taken back")),
    *({edit, f"{edit} taken back"} for edit in ("own data", "split")),
)
PAIRS = [sorted(pair) for pair in combinations(sorted(EDITS), 2) if {*pair} not in CLASH]
# Of these a run cannot follow, or what it leaves must not be taken back; the last is code of the copy alone.
NOT_RUN = {"clock set back", "data below data_dir gone", "killed driver", "dry run of another", "default"}
SAFE = sorted(name for name in EDITS if name not in NOT_RUN and name not in MADE)


@pytest.mark.parametrize("edit", sorted(EDITS))
def test_an_edit_plans_exactly_these_jobs_and_status_counts_their_tables_as_unmade(
    project, monkeypatch, edit
):
    change, jobs = EDITS[edit]
    with change(project):
        assert planned(project) == jobs
        if edit != "default":  # of the copy's code
            monkeypatch.chdir(project)
            assert unmade_tables() == {job for job in jobs if job.startswith(("tabulate", "draw"))}


def unmade_tables():
    """The jobs of the tables and figures that `tailprompt status` counts as unmade."""
    config = load(CONFIG[1:])
    made, _ = unmade.made(config, blocks.shown(config), standing.present(config))
    return {f"{STAGES[what]} {name}" for (what, _, name), is_made in made.items() if not is_made}


@pytest.mark.parametrize(
    "name, jobs",
    [
        ("tables/glee/table2.md", {"tabulate table2"}),
        ("data/toy.json", prepared("toy")),
        ("data/toy.parquet", prepared("toy")),
        ("backbones/tiny.json", {"backbone tiny"}),
    ],
    ids=["table", "report", "prepared data", "backbone"],
)
def test_what_is_damaged_is_made_again(project, name, jobs):
    with longer(f"results/tiny/{name}", " ")(project):
        assert planned(project) == jobs


@pytest.mark.parametrize(
    "name, job",
    [
        ("vocabulary/tokenizer.json", "vocabulary grown"),
        ("vocabulary/tokenizer_config.json", "vocabulary grown"),
        ("packed/pack.json", "pack grown"),
        ("packed/train.bin", "pack grown"),
    ],
)
def test_what_pre_training_reads_is_made_again_where_it_is_damaged_and_read(project, name, job):
    with longer(f"results/tiny/pretraining/grown/{name}", " ")(project):
        assert planned(project) == set()
        with gone(of("other/prompt-focal", "grown"))(project):  # which reads the checkpoint, that stands
            assert planned(project) == trained(["other"], METHODS[2:])
        with EDITS["recipe's rate"][0](project):
            assert planned(project) == GROWN | {job}


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("harm", [longer, gone], ids=["edited", "missing"])
def test_a_checkpoint_is_made_again_where_a_file_of_it_is_damaged_and_read(project, monkeypatch, name, harm):
    file = Path("results/tiny/pretraining/grown", name)
    focal = of("other/prompt-focal", "grown")
    with harm(file)(project):
        assert planned(project) == set()
        monkeypatch.chdir(project)
        assert standing.altered_checkpoints(load(CONFIG[1:])) == [file]
        with gone(focal)(project):
            assert planned(project) == {"pretrain grown", "backbone grown"} | trained(["other"], METHODS[2:])


@pytest.mark.parametrize("lost", ["prompt", "prompt/775/run.json"])
def test_a_run_whose_start_is_lost_may_stand_once_that_is_trained_again(project, lost):
    """The job puts it back if the start has the same weights again; of a run to be replaced it would not."""
    with gone(RUNS / "tiny/toy" / lost)(project):
        assert planned(project) == trained(["toy"], METHODS[1:])
        told = json.loads((project / "results/tiny/planned/glee/tiny/toy/prompt-focal/775.json").read_text())
    assert told["start"] and "replaces" not in told


def test_a_damaged_note_does_not_hide_an_edit(project):
    change, jobs = EDITS["split"]
    with change(project), longer("results/tiny/made/data/other.json", "}")(project):
        assert planned(project) == jobs


@pytest.mark.parametrize("edit", ["split", "vocabulary", "weights", "annotator"])
def test_without_notes_and_memory_an_edit_is_seen_by_what_was_asked_before(project, edit):
    change, jobs = EDITS[edit]
    with change(project), gone("results/tiny/made")(project), gone(".snakemake")(project):
        assert planned(project) == jobs


def test_without_notes_what_was_asked_to_be_replaced_is_not_believed(project):
    """As where a driver was killed before the job began."""
    asked_file = project / "results/tiny/asked/data/toy.json"
    with gone("results/tiny/made")(project), kept(asked_file), gone(".snakemake")(project):
        asked_file.write_text(json.dumps(json.loads(asked_file.read_text()) | {"replaces": 1, "planned": 2}))
        assert planned(project) == prepared("toy")


@pytest.mark.parametrize("older", [True, False])
def test_without_notes_runs_wait_for_rows_where_what_was_asked_may_not_have_been_made(project, older):
    """As where a driver was killed before the job began: the rows may be those of before."""
    asked_file, table = (
        project / f"results/tiny/{name}" for name in ("asked/data/other.json", "data/other.parquet")
    )
    replaces = {"replaces": table.stat().st_mtime_ns - (not older) * YEAR, "planned": 2}
    with gone("results/tiny/made")(project), kept(asked_file), gone(".snakemake")(project):
        told = json.loads(asked_file.read_text()) | replaces
        told["row"]["split_seed"] = 5
        asked_file.write_text(json.dumps(told))
        assert planned(project) == prepared("other") | (set() if older else trained(["other"]))


def test_without_notes_and_what_was_asked_all_data_are_prepared_again(project, monkeypatch):
    """Whether their rows are others, for which runs are trained again, is known then."""
    with gone("results/tiny/made")(project), gone("results/tiny/asked")(project):
        with EDITS["own data"][0](project):
            assert planned(project) == prepared(*DATASETS)
        monkeypatch.chdir(project)
        assert unmade_tables() == TABLES | {"draw figure4"}


FORGOTTEN = [
    ["notes", "own data"],
    ["claim", "memory"],
    ["features", "killed driver"],
    ["features", "memory"],
    ["memory", "rate"],
    ["memory", "split"],
    ["memory", "times of results"],
    ["memory", "vocabulary"],
]


@pytest.mark.parametrize("pair", [*FORGOTTEN, *random.Random(16).sample(PAIRS, 14)], ids=" and ".join)
def test_two_edits_plan_the_jobs_of_both(project, pair):
    with ExitStack() as both:
        for edit in pair:
            both.enter_context(EDITS[edit][0](project))
        assert planned(project) == EDITS[pair[0]][1] | EDITS[pair[1]][1]


@contextmanager
def a_file(place):
    """A file where a folder should be, which holds for root too."""
    with kept(place):
        shutil.rmtree(place)
        place.touch()
        yield
        place.unlink()
        place.mkdir()


@contextmanager
def locked(place):
    """A folder that takes no file, of root either."""
    if subprocess.run(["chattr", "+i", place], capture_output=True).returncode:
        pytest.skip("no folder can be locked here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", place], check=True)


@pytest.mark.parametrize(
    "shut, name, why",
    [
        (a_file, "results/tiny/logs/prepare", "Not a directory); move the file away"),
        (locked, "results/tiny/logs/prepare", "Permission denied); give this user the right"),
        (locked, ".snakemake/metadata", "Permission denied); give this user the right"),
    ],
)
def test_a_place_that_takes_no_files_is_one_sentence_and_no_traceback(project, shut, name, why):
    with EDITS["title"][0](project), shut(project / name):
        done = snakemake(project, *CONFIG, "--cores", "1")
    assert done.returncode and "Traceback" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{name} cannot be read or written ({why}")


def agrees(folder, monkeypatch):
    """Whether all runs are what the configuration asks, on the data, weights and starts that there are."""
    monkeypatch.chdir(folder)
    config = load(CONFIG[1:])
    for point in blocks.all_points(config):
        record = json.loads(Path("results/tiny/runs", point.path, "run.json").read_text())
        weights = made.weights(config, point.backbone)
        wanted = asked.asked(config, point, settings(config, point), weights)
        assert {key: record.get(key) for key in wanted} == wanted, point
        assert record["data"]["sha256"] == sha256(f"results/tiny/data/{point.dataset}.parquet")
        assert record["saw"] == sha256(Path(wanted["backbone"]["path"], "model.safetensors"))
        if wanted["start"]:
            start = Path("results/tiny/runs", wanted["start"]["run"], "weights.safetensors")
            assert record["start_sha256"] == sha256(start)


def test_one_run_of_the_command_after_many_edits_leaves_what_is_asked_and_so_after_they_are_taken_back(
    project, monkeypatch
):
    order = random.Random(18).sample(SAFE, len(SAFE))
    for edits in (order[::2], order[1::2]):
        with ExitStack() as stack:
            for edit in edits:
                stack.enter_context(EDITS[edit][0](project))
            run(project)
            agrees(project, monkeypatch)
    shutil.rmtree(project / ".snakemake")
    for name in ("toy/prompt", "filed/cls-tanh"):
        (project / of(name) / "run.json").unlink()
    run(project)
    agrees(project, monkeypatch)
