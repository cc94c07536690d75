"""Bundles: a round trip gives equal tables and figures; what is not whole, or another version, is refused."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import tarfile
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import blocks
import made_up
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import small_files
from safetensors.numpy import save_file

from tailprompt import score
from tailprompt import unbundle as unbundling
from tailprompt.bundle import bundle, root_of
from tailprompt.draw import draw
from tailprompt.errors import BadInput
from tailprompt.files import HOST, sha256, write_json
from tailprompt.plan import agreement, brought, places
from tailprompt.plan.points import Point
from tailprompt.report import bootstrap, carried, records, separated
from tailprompt.report.answers import answers
from tailprompt.report.figures.lda import lda
from tailprompt.tabulate import tabulate
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import scores
from tailprompt.unbundle import main, unbundle

SEEDS = (1, 2, 3)
METHODS = ("cls-tanh", "prompt")
RUN_OF_PROMPT = {"dataset": "made", "method": "prompt", "run": "prompt", "backbone": "mini"}
CLAIM = {"section": "1", "than": "cls-tanh", "method": "prompt", "direction": "greater", "datasets": ["made"]}
CLAIMS = [
    CLAIM | {"id": "f1", "says": "better", "metric": "f1/all"},
    CLAIM | {"id": "norms", "says": "flatter", "metric": "norms", "statistic": "norm_slope"},
    CLAIM | {"id": "apart", "says": "apart", "metric": "gamma", "statistic": "separability"},
]
TABLES = {
    "scores": {"metrics": ["accuracy/all", "f1/tail"], "parameters": ["tuned", "total"], "winner": "f1/all"},
    "claims": {"claims": CLAIMS},
    "feature_statistics": {"separability": ["gamma", "inner/sd", "knn/5"]},
    "statistics": {},
}
FIGURES = {
    "weight_norms": {},
    "score_by_frequency": {},
    "class_distribution": {},
    "features": {"classes": ["earn"]},
}


def finished(root: Path, method: str, seed: int, **record) -> Path:
    """A made-up run as training leaves it."""
    folder = made_up.run(root, method, seed)
    (folder / "curve.csv").write_text("step,loss\n1,2.0\n")
    about = json.loads((folder / "run.json").read_text())
    about |= {"point": vars(Point("glee", "mini", "made", method, seed)), "total": 99}
    about |= {"seconds": 9.5, "data": {"sha256": sha256(root / "data/made.parquet")}}
    about |= {"weights_sha256": sha256(folder / "weights.safetensors")} | record
    about["settings"] = {"tuner": "prompts"} | about["settings"]
    about["extras"] = {"features": ["earn"], "vectors": True}
    write_json(folder / "run.json", about)
    return folder


def made(root: Path, **changes) -> Path:
    """Results of six runs on one data set; returns their folder."""
    made_up.data(root, **changes)
    for method in METHODS:
        for seed in SEEDS:
            finished(root, method, seed)
    return root


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results, and a bundle of them."""
    root = made(tmp_path_factory.mktemp("here") / "results/tiny")
    file = root.parent / "tiny.tar.xz"
    bundle(root, file, [])
    return root, file


def shown(root: Path, out: Path) -> dict[str, bytes]:
    """Name -> content of every table and figure that is made of results."""
    for kind, more in TABLES.items():
        tabulate(root, blocks.block(kind, METHODS, **more), out / kind)
    for kind, more in FIGURES.items():
        draw(root, blocks.block(kind, METHODS, **more), out / kind)
    return {file.name: file.read_bytes() for file in out.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    """Path -> content of each file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_tables_and_figures_from_a_bundle_are_the_same(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "DRAWS", 100)
    root, file = whole
    assert unbundle(file, tmp_path / "tiny").endswith(f"from_bundles from {file}: 6; there already: 0")
    runs = sorted("/".join(file.parts[-6:-1]) for file in root.glob("runs/*/*/*/*/*/run.json"))
    pd.testing.assert_frame_equal(score.collect(root, runs), score.collect(tmp_path / "tiny", runs))
    before, after = shown(root, tmp_path / "before"), shown(tmp_path / "tiny", tmp_path / "after")
    assert len(before) == 5 * len(TABLES) + 4 * len(FIGURES) and before == after


def test_a_bundle_holds_no_weights_texts_or_scores_of_classes_and_is_the_same_each_time(whole, tmp_path):
    root, file = whole
    bundle(root, tmp_path / "again.tar.xz", [])
    assert (tmp_path / "again.tar.xz").read_bytes() == file.read_bytes()
    unbundle(file, tmp_path / "tiny")
    brought = tmp_path / "tiny/from_bundles"
    run = brought / "runs/glee/mini/made/prompt/1"
    assert {path.name for path in run.iterdir()} == {
        *agreement.CARRIED,
        places.MAY_CARRY,
        agreement.DIGESTS,
    }
    assert {*pd.read_parquet(run / "features.parquet")["label"]} == {0}  # of the class that a figure shows
    assert [*pd.read_parquet(run / "predictions.parquet")] == ["id", "split", "label", "prediction"]
    assert [*pd.read_parquet(brought / "data/made.parquet")] == ["id", "split", "label"]


def test_a_figure_of_all_vectors_says_that_they_do_not_travel(whole, tmp_path):
    unbundle(whole[1], tmp_path / "tiny")
    figure = lda(tmp_path / "tiny", blocks.block("lda", METHODS))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["feature vectors are not in bundles"]


def test_what_travels_of_vectors_has_the_neighbours_that_tables_ask_for_and_says_so(whole, tmp_path):
    unbundle(whole[1], tmp_path / "tiny")
    folder = tmp_path / "tiny/from_bundles/runs/glee/mini/made/prompt/1"
    with pytest.raises(BadInput, match="no K-NN of K = 3; it has those of 1, 5, 20, 200"):
        separated.statistics(folder, ["knn/3"], np.ones((1, 6)))


def left_out(name: str) -> bool:
    """Whether this is what travels of one run's vectors."""
    return name.endswith("prompt/3/separability.json")


def test_a_run_without_the_vectors_it_was_to_write_does_not_travel(whole, tmp_path):
    file = tmp_path / "odd.tar.xz"
    file.write_bytes(repacked(whole[1], lambda pairs: [each for each in pairs if not left_out(each[0].name)]))
    refused(file, tmp_path / "results/tiny", "3 lacks the vectors of train or test")


def test_chosen_group_prompts_travel(tmp_path):
    root = tmp_path / "tiny"
    made_up.data(root)
    path = finished(root, "lpt", 1) / "predictions.parquet"
    rows = pd.read_parquet(path)
    rows.assign(prompts=[[i % 7, i % 3] for i in range(len(rows))]).to_parquet(path, index=False)
    bundle(root, tmp_path / "tiny.tar.xz", [])
    unbundle(tmp_path / "tiny.tar.xz", tmp_path / "there")
    there = tmp_path / "there/from_bundles" / path.parent.relative_to(root)
    here = records.prompts(path.parent)
    assert len(here) == 150
    pd.testing.assert_frame_equal(here, records.prompts(there))


def test_predictions_that_are_nearly_alike_are_compressed_to_what_differs():
    """Packed to bits, which begin anywhere, they would not be."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 100, 5000)
    packed = b"".join(
        carried.as_parquet(
            pd.DataFrame({"prediction": np.where(draw.random(5000) < 0.01, seed, np.roll(labels, seed))})
        )
        for seed in range(8)
    )
    assert len(lzma.compress(packed)) < 4 * 5000  # 7 bits each are 35,000 bytes


def test_what_has_travelled_travels_again_unchanged(whole, tmp_path):
    _, file = whole
    unbundle(file, tmp_path / "tiny")
    assert bundle(tmp_path / "tiny", tmp_path / "second.tar.xz", []) == [
        f"runs in {tmp_path}/second.tar.xz: 6 ({file.stat().st_size / 1e6:.1f} MB)"
    ]
    assert (tmp_path / "second.tar.xz").read_bytes() == file.read_bytes()


def test_parts_merge_into_the_whole_and_the_same_is_kept(whole, tmp_path):
    root, file = whole
    for number, method in enumerate(METHODS):
        bundle(root, tmp_path / f"{number}.tar.xz", [f"glee/*/{method}/*"])
        unbundle(tmp_path / f"{number}.tar.xz", tmp_path / "parts")
    unbundle(file, tmp_path / "whole")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert unbundle(file, tmp_path / "parts").endswith(": 0; there already: 6")
    assert unbundle(file, root).endswith("0; there already: 6") and not (root / "from_bundles/runs").exists()


def test_a_run_of_other_settings_made_beside_that_of_a_bundle_does_not_stand_in_its_way(whole, tmp_path):
    there = tmp_path / "tiny"
    unbundle(whole[1], there)
    made_up.data(there)
    own = finished(there, "prompt", 3, seconds=2, trainable=8)
    theirs = there / "from_bundles/runs/glee/mini/made/prompt/3"
    assert unbundle(whole[1], there).endswith(": 0; there already: 6")
    for taken in (own, theirs):
        about = json.loads((taken / "run.json").read_text())
        asked = {"settings": about["settings"], "seconds": about["seconds"]}
        write_json(there / "asked/glee/mini/made/prompt/3.json", asked)
        block = {"protocol": "glee", "runs": [RUN_OF_PROMPT], "seeds": [3]}
        assert [*records.runs(there, block).folder] == [taken]
        scores = score.collect(there, ["glee/mini/made/prompt/3"])
        assert set(scores.trainable) == {about["trainable"]}
        bundle(there, tmp_path / "again.tar.xz", [])
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        unbundle(tmp_path / "again.tar.xz", tmp_path / "again")
        again = tmp_path / "again" / theirs.relative_to(there) / "run.json"
        assert again.read_bytes() == (taken / "run.json").read_bytes()


def test_what_is_not_finished_or_not_what_it_says_is_left_out_and_counted(tmp_path):
    root, file = made(tmp_path / "tiny"), tmp_path / "tiny.tar.xz"
    runs = root / "runs/glee/mini/made"
    (runs / "prompt/1/run.json").unlink()
    (runs / "prompt/2/weights.safetensors").write_bytes((runs / "prompt/3/weights.safetensors").read_bytes())
    finished(root, "cls-tanh", 1, data={"sha256": "of the old"})
    said = bundle(root, file, [])
    assert said[0].startswith(f"runs in {file}: 3 (") and said[1] == "runs left out as not finished: 1"
    assert said[2].startswith("runs left out: 2 (") and "was trained on data that" in said[2]
    unbundle(file, tmp_path / "there")
    names = {
        str(path.relative_to(tmp_path / "there/from_bundles/runs/glee/mini/made"))
        for path in (tmp_path / "there").glob("*/runs/*/*/*/*/*")
    }
    assert names == {"cls-tanh/2", "cls-tanh/3", "prompt/3"}


@pytest.mark.parametrize(
    "name, only, says",
    [
        ("tiny.tar.xz", ["lpt/*"], r"--only lpt/\*: no run in .* is like it; one is protocol/"),
        ("tiny.zip", [], r"tiny\.zip: a bundle is a \.tar\.xz file"),
    ],
)
def test_a_bundle_that_cannot_be_is_refused(whole, tmp_path, name, only, says):
    with pytest.raises(BadInput, match=says):
        bundle(whole[0], tmp_path / name, only)
    with pytest.raises(BadInput, match="has no runs; name a scale"):
        bundle(tmp_path / "nowhere", tmp_path / "tiny.tar.xz", [])
    assert not any(tmp_path.iterdir())


def refused(file: Path, root: Path, says: str) -> None:
    """Unbundling ends in one sentence, and what was there is as it was."""
    before = contents(root)
    with pytest.raises(BadInput, match=says) as error:
        unbundle(file, root)
    assert "\n" not in str(error.value) and contents(root) == before
    assert not [*root.parent.glob(".*.part")]


def test_two_scales_do_not_share_a_folder(whole, tmp_path, monkeypatch):
    _, file = whole
    shutil.copytree(whole[0], tmp_path / "other")
    bundle(tmp_path / "other", other := tmp_path / "other.tar.xz", [])
    monkeypatch.setattr("sys.argv", ["unbundle", "--root", str(tmp_path / "there"), str(file), str(other)])
    with pytest.raises(
        BadInput, match=r"folder of one scale, and .*\(.*tiny\.tar\.xz of tiny, .* of other\)"
    ):
        main()
    assert not (tmp_path / "there").exists()
    unbundle(file, tmp_path / "there")
    refused(other, tmp_path / "there", r"other\.tar\.xz is of scale other, and .*there holds .* scale tiny")
    (tmp_path / "mine/asked").mkdir(parents=True)
    refused(file, tmp_path / "mine", "tiny.tar.xz is of scale tiny, and .*mine holds results of scale mine")


@pytest.mark.parametrize("place", ["runs", "from_bundles/runs"])
def test_another_version_of_a_run_is_refused_by_name_and_nothing_is_written(whole, tmp_path, place):
    _, file = whole
    there = tmp_path / "tiny"
    if place == "runs":
        made_up.data(there)
        finished(there, "prompt", 3, total=98)
    else:
        unbundle(file, there)
        shutil.rmtree(there / place / "glee/mini/made/cls-tanh")
        run = there / place / "glee/mini/made/prompt/3/run.json"
        run.write_text(run.read_text().replace('"total": 99', '"total": 98'))
        digests = run.parent / agreement.DIGESTS  # else it is known to be no bundle's
        write_json(digests, json.loads(digests.read_text()) | {"run.json": sha256(run)})
    refused(file, there, r"made/prompt/3 is another version of the run .*\(they differ in run\.json\)")


def test_a_run_that_was_trained_twice_and_ended_the_same_is_kept_as_it_is_here(whole, tmp_path):
    there = tmp_path / "tiny"
    shutil.copytree(whole[0], there)
    for run in there.glob("runs/*/*/*/prompt/*"):
        (run / "curve.csv").write_text("step,loss,seconds\n1,2.0,9\n")
        about = json.loads((run / "run.json").read_text())
        write_json(run / "run.json", about | {"seconds": 99.5, "memory_mb": 7, "sources": {"x": "y"}})
    kept = there / "runs/glee/mini/made/prompt/3/run.json"
    before = kept.read_bytes()
    assert unbundle(whole[1], there).endswith("0; there already: 6")
    assert kept.read_bytes() == before
    write_json(kept, json.loads(before) | {"total": 98})
    refused(whole[1], there, r"prompt/3 is another version of the run")


def right(file: Path) -> None:
    """All predictions of a run are right."""
    rows = pd.read_parquet(file)
    rows.assign(prediction=rows["label"]).to_parquet(file, index=False)


def blank(file: Path) -> None:
    """A file with one byte more."""
    file.write_bytes(file.read_bytes() + b" ")


RUN = "runs/glee/mini/made/prompt/1"


def blank_out(file: Path) -> None:
    """A file without content."""
    file.write_bytes(b"")


def other_names(file: Path) -> None:
    """Digests of no file of a run."""
    write_json(file, {"other": "0" * 64})


GONE = "is gone or damaged, without which nothing tells .*delete .* unbundle it again$"
BROUGHT = "is not what its bundle brought .*delete .* unbundle it again$"
TOUCHED = [(f"{RUN}/{name}", blank, BROUGHT) for name in agreement.CARRIED]
TOUCHED += [(f"{RUN}/predictions.parquet", right, BROUGHT)]
TOUCHED += [(f"{RUN}/{agreement.DIGESTS}", harm, GONE) for harm in (Path.unlink, blank_out, other_names)]
TOUCHED += [("data/.made.sha256", Path.unlink, "delete it, and unbundle again")]
TOUCHED += [(f"data/made.{end}", blank, "delete it, and unbundle again") for end in ("json", "parquet")]


@pytest.mark.parametrize("name, edit, says", TOUCHED, ids=[f"{n}-{edit.__name__}" for n, edit, _ in TOUCHED])
def test_an_edit_of_what_a_bundle_brought_is_noticed_and_mended_as_the_sentence_says(
    whole, tmp_path, name, edit, says
):
    root, file = tmp_path / "tiny", whole[1]
    unbundle(file, root)
    touched = root / "from_bundles" / name
    edit(touched)
    spec = blocks.block("scores", METHODS, **TABLES["scores"])
    named = "made.parquet" if touched.name.startswith(".") else touched.name
    with pytest.raises(BadInput, match=rf"{named} .*{says}"):
        tabulate(root, spec, tmp_path / "table")
    if name.startswith("runs"):
        assert "left out: 1" in "".join(bundle(root, tmp_path / "again.tar.xz", []))
        shutil.rmtree(touched.parent)
    else:
        with pytest.raises(BadInput, match=says):
            bundle(root, tmp_path / "again.tar.xz", [])
        touched.with_name(named).unlink()
    unbundle(file, root)
    tabulate(root, spec, tmp_path / "table")


@pytest.mark.parametrize("place", ["data", "from_bundles/data"])
def test_other_data_of_the_same_name_are_refused(whole, tmp_path, place):
    there = tmp_path / "tiny"
    if place == "data":
        data = made_up.data(there).with_suffix(".parquet")
        pd.read_parquet(data).iloc[::-1].to_parquet(data, index=False)
    else:
        unbundle(whole[1], there)
        write_json(
            there / place / "made.json",
            json.loads((there / place / "made.json").read_text("utf-8")) | {"sha256": "x"},
        )
    refused(whole[1], there, rf"{place}/made\.json is of other data than made in .*tiny\.tar\.xz")


def test_runs_here_that_were_trained_on_other_data_are_named(whole, tmp_path):
    there = tmp_path / "tiny"
    shutil.copytree(whole[0], there)
    shutil.rmtree(there / "data")
    for file in there.glob("runs/*/*/*/prompt/3/run.json"):
        about = json.loads(file.read_text("utf-8"))
        write_json(file, about | {"data": about["data"] | {"sha256": "x", "rows_sha256": "x"}})
    refused(whole[1], there, r"tiny/runs/.*/prompt/3 was trained on other data than made in .*; remove what")


def test_the_digests_of_a_corpus_travel_and_another_corpus_is_refused(tmp_path):
    root, (first, second) = made(tmp_path / "here/tiny"), (tmp_path / f"{name}.tar.xz" for name in "ab")
    note = root / "made/packed/small.json"
    write_json(note, {"recipe": {"corpus": "text"}, "corpus": {"text.txt": "0" * 64}, "made": {"x": "y"}})
    write_json(root / "made/packed/other.json", {"corpus": None})
    bundle(root, first, [])
    write_json(note, {"corpus": {"text.txt": "1" * 64}})
    bundle(root, second, [])
    there = tmp_path / "there/tiny"
    unbundle(first, there)
    brought = there / "from_bundles/made/packed/small.json"
    assert json.loads(brought.read_text()) == {"corpus": {"text.txt": "0" * 64}}
    assert [*brought.parent.glob("*.json")] == [brought]
    bundle(there, tmp_path / "again.tar.xz", [])
    assert sha256(tmp_path / "again.tar.xz") == sha256(first)
    refused(second, there, r"packed/small\.json is of another corpus than small in .*b\.tar\.xz; remove")


@pytest.mark.parametrize("harm", [blank_out, other_names, Path.unlink])
@pytest.mark.parametrize(
    "name", ["data/made.json", "data/.made.sha256", "made/packed/small.json", "made/packed/.small.sha256"]
)
def test_a_damaged_file_that_the_plan_reads_is_said_and_mended_as_the_sentence_says(
    whole, tmp_path, name, harm
):
    root, there = shutil.copytree(whole[0], tmp_path / "tiny"), tmp_path / "there/tiny"
    write_json(root / "made/packed/small.json", {"corpus": {"text.txt": "0" * 64}})
    bundle(root, tmp_path / "a.tar.xz", [])
    unbundle(tmp_path / "a.tar.xz", there)
    brought.check(there, ["made"])
    harm(there / "from_bundles" / name)
    damaged = (there / "from_bundles" / name.replace("/.", "/")).with_suffix(".json")
    if damaged.is_file() or "packed" in name:
        with pytest.raises(BadInput, match=rf"^{damaged} is not what its bundle brought; delete it, and unb"):
            brought.check(there, ["made"])
        damaged.unlink(missing_ok=True)
    (there / "from_bundles/bundle.json").write_text("{")
    unbundle(tmp_path / "a.tar.xz", there)
    brought.check(there, ["made"])
    assert json.loads((there / "from_bundles/bundle.json").read_text()) == {"scale": "tiny"}


@pytest.mark.parametrize("corpus", [None, ["text"], {"text.txt": 1}])
def test_a_note_of_a_corpus_without_digests_is_refused(whole, tmp_path, corpus):
    added = tarfile.TarInfo("made/packed/small.json")
    content = json.dumps({"corpus": corpus}).encode()
    with tarfile.open(whole[1]) as archive:
        pairs = [(member, archive.extractfile(member).read()) for member in archive]
    with tarfile.open(file := tmp_path / "odd.tar.xz", "w:xz") as archive:
        for member, part in [*pairs, (added, content)]:
            member.size = len(part)
            archive.addfile(member, BytesIO(part))
    refused(file, tmp_path / "there/tiny", r"odd\.tar\.xz is damaged: .*corpus")


def test_results_may_be_a_link_to_another_disk(whole, tmp_path):
    with TemporaryDirectory(dir="/dev/shm") as other:
        if os.stat(other).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is no other disk")
        (tmp_path / "tiny").symlink_to(Path(other, "tiny"))
        Path(other, "tiny").mkdir()
        unbundle(whole[1], tmp_path / "tiny")
        assert [*Path(other).iterdir()] == [Path(other, "tiny")]
        assert len([*(tmp_path / "tiny/from_bundles").glob("runs/*/*/*/*/*/run.json")]) == 6


def repacked(file: Path, change) -> bytes:
    """A bundle whose (TarInfo, content) pairs went through `change`."""
    with tarfile.open(file) as archive:
        pairs = [(member, archive.extractfile(member).read()) for member in archive]
    written = BytesIO()
    with tarfile.open(fileobj=written, mode="w:xz", preset=0) as archive:
        for member, content in change(pairs):
            member.size = len(content)
            archive.addfile(member, BytesIO(content))
    return written.getvalue()


def renamed(name: str, **more):
    """A change that adds a file, or a member of another kind."""

    def change(pairs):
        member = tarfile.TarInfo(name)
        for key, value in more.items():
            setattr(member, key, value)
        return [*pairs, (member, b"" if more else b"{}")]

    return change


def edited(name: str, edit):
    """A change of the content of one file."""
    return lambda pairs: [
        (member, edit(content) if member.name.endswith(name) else content) for member, content in pairs
    ]


def about(**changes):
    """A change of what a bundle says of itself."""
    return edited("bundle.json", lambda content: json.dumps(json.loads(content) | changes).encode())


RUN = "runs/glee/mini/made/prompt/3"
ALIEN = [
    (renamed("../escaped"), r"'\.\./escaped'"),
    (renamed("/tmp/escaped"), "'/tmp/escaped'"),
    (renamed("data/../../made.json"), "where no file of a bundle is"),
    (renamed("runs/../mini/made/prompt/3/run.json"), "where no file of a bundle is"),
    (renamed("runs/glee/mini/made/prompt/4/notes.txt"), "where no file of a bundle is"),
    (renamed(f"{RUN}/run.json"), "twice"),
    (renamed("data/made", type=tarfile.SYMTYPE, linkname="/etc"), "no plain file"),
    (renamed(f"{RUN}/state", type=tarfile.LNKTYPE, linkname="../../x"), "no plain file"),
    (renamed("data", type=tarfile.DIRTYPE), "no plain file"),
    (about(format=2), r"has format 2, and this version of tailprompt reads format 1; use version"),
    (about(format="1"), "has format '1', and this version of tailprompt reads format 1"),
    (about(format=True), "has format True, and"),
    *((about(scale=name), "no name of a folder") for name in ("../up", "a b", "", ".", "a\n", "a" * 101)),
    *((about(scale=name), "no name of a folder") for name in (None, 5, ["a"], {})),
    (edited("bundle.json", lambda content: b"[]"), "bundle.json in .* must be a JSON object"),
    (edited("bundle.json", lambda content: b"\xff"), "cannot be read"),
    (lambda pairs: pairs[1:], "is no bundle: it does not begin with bundle.json"),
    (lambda pairs: [], "is no bundle"),
    (lambda pairs: pairs[:-1], "prompt/3 is not finished"),
    (lambda pairs: [pairs[0], *pairs[3:]], "trained on data that data/made.parquet no longer holds"),
    (edited("t/3/run.json", lambda content: content.replace(b'"seed": 3', b'"seed": 4')), "of another run"),
    (edited("prompt/3/run.json", lambda content: b"{"), "prompt/3/run.json is not JSON"),
    (edited("t/3/predictions.parquet", lambda content: content[:-9]), "predictions.parquet cannot be read"),
    (edited("prompt/3/features.parquet", lambda content: b""), "features.parquet cannot be read"),
    (edited("prompt/3/weights.json", lambda content: b"{}"), "weights.json lacks norms, sizes"),
    (edited("made.json", lambda content: content.replace(b'": "made"', b'": 5')), "of data set 5"),
    (edited("made.json", lambda content: b'{"dataset":"made","classes":7,"groups":1}'), "is damaged"),
    (edited("made.json", lambda content: content.replace(b'": "made"', b'": "other"')), "of data set other"),
    (edited("made.json", lambda text: text.replace(b"{", b'{"sources": ["x"],', 1)), "must be a JSON object"),
    (edited("data/made.parquet", lambda content: content[:50]), "data/made.parquet cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize("change, says", ALIEN)
def test_what_is_no_bundle_of_this_version_is_refused_whole(whole, tmp_path, change, says):
    file = tmp_path / "odd.tar.xz"
    file.write_bytes(repacked(whole[1], change))
    (tmp_path / "results").mkdir()
    refused(file, tmp_path / "results/tiny", says)
    assert not (tmp_path / "results/tiny").exists() and not (tmp_path / "escaped").exists()


def guessed(change):
    """A change of a run's predictions."""
    return edited("t/3/predictions.parquet", lambda content: rewritten(content, change))


def rewritten(content: bytes, change) -> bytes:
    """A Parquet file whose table went through `change`."""
    return carried.as_parquet(change(pd.read_parquet(BytesIO(content))))


def answered(values):
    """A change of the predicted classes."""
    return guessed(lambda rows: rows.assign(prediction=values))


def keyed(name: str, **changes):
    """A change of keys in a JSON file of a run."""
    return edited(f"t/3/{name}", lambda content: json.dumps(json.loads(content) | changes).encode())


def vector(value):
    """A change of all feature vectors."""
    return edited("t/3/features.parquet", lambda content: rewritten(content, partial(vectors, value)))


def vectors(value, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose feature vectors are all the same."""
    return rows.assign(vector=[value] * len(rows))


NAN = float("nan")
NO_ID = "predictions.parquet: its column prediction does not hold ids of classes, as label does"
NO_CURVE = "curve.csv is not a table with step and loss and a number in each cell"
SENSELESS = [
    *((answered(i), rf"predictions.parquet: predicts {i}, which is no class.* 0 to 5$") for i in (6, -1, 99)),
    (guessed(lambda rows: rows.assign(prediction=[6] + [0] * (len(rows) - 1))), "predicts 6, which is no"),
    *((answered(value), NO_ID) for value in (NAN, 0.5, 1.0, "acq", None, True)),
    (guessed(lambda rows: rows.assign(prediction=[[0]] * len(rows))), NO_ID),
    (guessed(lambda rows: rows.drop(columns="prediction")), "predictions.parquet cannot be read"),
    (guessed(lambda rows: rows.assign(split="x")), "predictions.parquet: 0 dev predictions for the 150"),
    *((keyed("weights.json", norms=value), "weights.json: norms are not") for value in ("x", ["x"] * 6, {})),
    *((keyed("weights.json", norms=[x] * 6), "norms are not finite") for x in (NAN, 1e999, -1, None, True)),
    *((keyed("weights.json", norms=[1.0] * n), f"weights.json: {n} norms, and must have 6") for n in (1, 7)),
    (keyed("weights.json", sizes=5), "weights.json: sizes must be a JSON object"),
    *((keyed("weights.json", sizes={"a": x}), "sizes are not whole") for x in (-1, 1.5, "x")),
    *((keyed("run.json", seconds=x), "seconds is .*, not a number from 0") for x in ("x", None, [1], True)),
    *((keyed("run.json", seconds=x), "run.json: seconds is") for x in (NAN, float("inf"), -1e9)),
    *((keyed("run.json", **{name: "x"}), f"run.json: {name} is 'x'") for name in ("total", "steps")),
    *((keyed("run.json", settings=x), "run.json: settings must be a JSON") for x in (None, [1], "x")),
    *((keyed("run.json", data=x), "run.json must be a JSON object") for x in ("x", None)),
    (edited("t/3/run.json", lambda content: b"[1]"), "run.json must be a JSON object"),
    (edited("t/3/run.json", lambda content: content.replace(b'"seconds"', b'"second"')), "lacks seconds"),
    *((keyed("separability.json", **{key: x}), "separability.json is no summary of 6 classes")
      for key, x in (("labels", [9]), ("within", ["x"] * 6), ("within", [1e999] * 6), ("between", []),
                     ("nearest", {"1": [0]}))),
    (edited("t/3/separability.json", lambda content: b"{}"), "separability.json lacks "),
    (edited("t/3/curve.csv", lambda content: b"\xff\x00junk"), "curve.csv cannot be read"),
    (edited("t/3/curve.csv", lambda content: b"a,b\n1,2\n"), NO_CURVE),
    (edited("t/3/curve.csv", lambda content: b"step,loss\n1,2,3\n"), NO_CURVE),
    (edited("t/3/curve.csv", lambda content: b"step,loss\nx,y\n"), "curve.csv cannot be read .ValueError"),
    *((vector(value), "features.parquet cannot be read") for value in ("x", ["x"])),
    *((vector(value), "features.parquet: its vectors are not finite") for value in ([NAN], None)),
]  # fmt: skip


@pytest.mark.parametrize("change, says", SENSELESS)
def test_a_run_that_tables_or_the_plan_could_not_read_is_refused_with_bundle_run_and_file(
    whole, tmp_path, change, says
):
    file = tmp_path / "odd.tar.xz"
    file.write_bytes(repacked(whole[1], change))
    refused(file, tmp_path / "tiny", rf"odd\.tar\.xz is damaged: .*glee/mini/made/prompt/3.*{says}")
    assert not (tmp_path / "tiny").exists()


def test_a_run_that_scores_each_option_by_one_output_travels_with_its_one_norm(whole, tmp_path):
    file = tmp_path / "options.tar.xz"
    file.write_bytes(repacked(whole[1], keyed("weights.json", norms=[1.0])))
    settings = {"tuner": "prompts", "input": "options"}
    file.write_bytes(repacked(file, keyed("run.json", settings=settings)))
    unbundle(file, tmp_path / "tiny")
    found = (tmp_path / "tiny/from_bundles").rglob("prompt/3/weights.json")
    assert [json.loads(each.read_text())["norms"] for each in found] == [[1.0]]


def test_such_a_run_is_left_out_of_a_bundle_with_the_reason(tmp_path):
    root = made(tmp_path / "tiny")
    finished(root, "prompt", 2, seconds="x")
    said = bundle(root, tmp_path / "tiny.tar.xz", [])
    assert said[1].startswith("runs left out: 1 (") and "prompt/2/run.json: seconds is 'x'" in said[1]


def test_an_answer_that_is_no_class_is_one_of_open_decoding_alone(tmp_path):
    root = tmp_path / "tiny"
    made_up.data(root)
    path = finished(root, "prompt", 1, settings={"decoding": "open"}) / "predictions.parquet"
    pd.read_parquet(path).assign(prediction=6).to_parquet(path, index=False)
    bundle(root, tmp_path / "tiny.tar.xz", [])
    assert unbundle(tmp_path / "tiny.tar.xz", tmp_path / "there").endswith(": 1; there already: 0")


@pytest.mark.parametrize("scale", ["a b", ".hidden", "-x"])
def test_results_in_a_folder_that_is_no_name_are_not_bundled(whole, tmp_path, scale):
    (tmp_path / scale).symlink_to(whole[0])
    shutil.copytree(whole[0], tmp_path / f"{scale}x")
    with pytest.raises(BadInput, match=f"'{scale}x' is no name of a scale; rename the folder"):
        bundle(tmp_path / f"{scale}x", tmp_path / "one.tar.xz", [])


@pytest.mark.parametrize("scale", ["mini", "mini/", "mini//", "./mini", "results/mini", "results/mini/"])
def test_a_scale_is_its_name_or_its_folder_with_or_without_a_slash(scale):
    assert root_of(scale) == (Path("mini") if scale == "./mini" else Path("results/mini"))


def test_a_folder_that_is_named_by_nothing_is_refused(whole, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["unbundle", str(whole[1]), "--root", ""])
    with pytest.raises(SystemExit, match="2"):
        unbundling.main()
    assert "argument --root: the path is empty" in capsys.readouterr().err


def test_what_a_killed_unbundle_left_is_removed_by_the_next(whole, tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, others = (tmp_path / f".tiny.{HOST}-{pid}.part" for pid in (dead.pid, os.getppid()))
    for folder in (left, others):
        (folder / "from_bundles/data").mkdir(parents=True)
    unbundle(whole[1], tmp_path / "tiny")
    assert {path.name for path in tmp_path.iterdir()} == {"tiny", others.name}


def test_a_full_disk_is_said_with_the_file(whole, tmp_path):
    with small_files(2000):
        with pytest.raises(BadInput, match=r"new\.tar\.xz cannot be written \(File too large after"):
            bundle(whole[0], tmp_path / "new.tar.xz", [])
        refused(whole[1], tmp_path / "tiny", r"^data/made.* of .*tiny\.tar\.xz cannot be written \(")
    assert not [*tmp_path.iterdir()]


def flipped(content: bytes, place: float) -> bytes:
    """The content with one byte changed."""
    at = int(place * (len(content) - 1))
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"PK\3\4" + content,
        lambda content: lzma.decompress(content),
        lambda content: lzma.compress(b"no archive of files at all"),
        *(lambda content, share=share: content[: int(share * len(content))] for share in (0.01, 0.5, 0.99)),
        *(lambda content, end=end: content[:-end] for end in (1, 8, 28)),
        *(lambda content, place=place: flipped(content, place) for place in np.linspace(0, 1, 20)),
    ],
)
def test_a_bundle_that_was_cut_or_changed_is_one_sentence_with_its_name(whole, tmp_path, damage):
    file = tmp_path / "damaged.tar.xz"
    file.write_bytes(damage(whole[1].read_bytes()))
    refused(file, tmp_path / "tiny", r"damaged\.tar\.xz")
    assert not (tmp_path / "tiny").exists()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="absent.tar.xz cannot be read"):
        unbundle(tmp_path / "absent.tar.xz", tmp_path / "tiny")


@st.composite
def predicted(draw):
    """A report, data and predictions: plain, of options, or with several right and some allowed classes."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    classes, sizes = draw(st.integers(2, 6)), [draw(st.integers(1, 12)) for _ in carried.SPLITS]
    label = random.integers(0, classes, sum(sizes))
    split = np.repeat(carried.SPLITS, sizes)
    ids = random.permutation([f"{each}-{i}" for i, each in enumerate(split)])
    logits = random.normal(size=(len(label), classes)).round(1).astype("float16")
    data = pd.DataFrame({"id": ids, "split": split, "label": label})
    report = {"dataset": "made", "classes": [f"c{i}" for i in range(classes)]}
    report |= {"task": draw(st.sampled_from(["choice", "classification"]))}
    groups = {"some": random.permutation(classes)[:2].tolist()}
    report |= {"groups": {"dev": groups, "test": groups}}
    rows = data.assign(prediction=logits.argmax(1), scores=list(logits))
    if draw(st.booleans()):
        among = sorted(random.permutation(classes)[: draw(st.integers(1, classes))].tolist())
        report |= {"trained_on": "more", "among": draw(st.sampled_from([among, None]))}
        data["accepted"] = [[int(each), int(random.integers(classes))] for each in label]
    return report, data, rows.sample(frac=1, random_state=draw(st.integers(0, 99)))


@given(predicted())
@settings(max_examples=40)
def test_compact_predictions_give_the_scores_and_draws_of_all_logits(tmp_path_factory, made):
    report, data, rows = made
    root = tmp_path_factory.mktemp("here")
    (root / "data").mkdir()
    data.to_parquet(root / "data/made.parquet", index=False)
    write_json(root / "data/made.json", report)
    folder = finished(root, "prompt", 1)
    rows.to_parquet(folder / "predictions.parquet", index=False)
    save_file({"head": np.zeros(3)}, folder / "weights.safetensors")
    record = json.loads((folder / "run.json").read_text())
    write_json(
        folder / "run.json", record | {"extras": {}, "weights_sha256": sha256(folder / "weights.safetensors")}
    )
    bundle(root, root / "one.tar.xz", [])
    unbundle(root / "one.tar.xz", root / "there")
    assert measured(root, report) == measured(root / "there/from_bundles", report)


def measured(root: Path, report: dict) -> list:
    """The scores of the run below `root` and their draws over test examples, as text."""
    folder, task = root / "runs/glee/mini/made/prompt/1", recorded(report)
    parts, groups = answers(folder, root / "data/made.parquet", report), report["groups"]["test"]
    names = [f"{metric}/{group}" for metric in task.metrics for group in ("all", "some")]
    test = task.added(parts["test"].sort_values("id"), report)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "DRAWS", 20)
        draws = bootstrap.replicates(task, names, groups, {1: test}, np.random.default_rng(0))
    each = [scores(task, part, report, groups) for part in parts.values()]
    return [str(each), {name: values.tobytes() for name, values in draws[1].items()}]
