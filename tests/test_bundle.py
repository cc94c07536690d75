"""Bundles: a round trip gives equal tables and figures; what is not whole, or another version, is refused."""

from __future__ import annotations

import json
import lzma
import shutil
import tarfile
from io import BytesIO
from pathlib import Path

import blocks
import made_up
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt import score
from tailprompt.bundle import bundle
from tailprompt.draw import draw
from tailprompt.errors import BadInput
from tailprompt.files import sha256, write_json
from tailprompt.plan import agreement
from tailprompt.plan.points import Point
from tailprompt.report import bootstrap, carried, records
from tailprompt.report.answers import answers
from tailprompt.tabulate import tabulate
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import scores
from tailprompt.unbundle import main, unbundle

SEEDS = (1, 2, 3)
METHODS = ("cls-tanh", "prompt")
CLAIM = {"section": "1", "than": "cls-tanh", "method": "prompt", "direction": "greater", "datasets": ["made"]}
CLAIMS = [
    CLAIM | {"id": "f1", "says": "better", "metric": "f1/all"},
    CLAIM | {"id": "norms", "says": "flatter", "metric": "norms", "statistic": "norm_slope"},
    CLAIM | {"id": "apart", "says": "apart", "metric": "gamma", "statistic": "separability"},
]
TABLES = {
    "scores": {"metrics": ["accuracy/all", "f1/tail"], "parameters": ["tuned", "total"], "winner": "f1/all"},
    "claims": {"claims": CLAIMS},
    "feature_statistics": {"separability": ["gamma", "knn/3"]},
    "statistics": {},
}
FIGURES = {
    "weight_norms": {},
    "score_by_frequency": {},
    "class_distribution": {},
    "lda": {},
    "features": {"classes": ["earn"]},
}


def finished(root: Path, method: str, seed: int, **record) -> Path:
    """A made-up run as training leaves it."""
    folder = made_up.run(root, method, seed)
    (folder / "curve.csv").write_text("step,loss\n1,2.0\n")
    about = json.loads((folder / "run.json").read_text())
    about |= {"point": vars(Point("glee", "mini", "made", method, seed)), "total": 99}
    about |= {"data": {"sha256": sha256(root / "data/made.parquet")}}
    about |= {"weights_sha256": sha256(folder / "weights.safetensors")} | record
    about["settings"] = {"tuner": "prompts"} | about["settings"]
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
    pd.testing.assert_frame_equal(score.collect(root), score.collect(tmp_path / "tiny"))
    before, after = shown(root, tmp_path / "before"), shown(tmp_path / "tiny", tmp_path / "after")
    assert len(before) == 4 * len(TABLES) + 2 * len(FIGURES) and before == after


def test_a_bundle_holds_no_weights_texts_or_scores_of_classes_and_is_the_same_each_time(whole, tmp_path):
    root, file = whole
    bundle(root, tmp_path / "again.tar.xz", [])
    assert (tmp_path / "again.tar.xz").read_bytes() == file.read_bytes()
    unbundle(file, tmp_path / "tiny")
    brought = tmp_path / "tiny/from_bundles"
    run = brought / "runs/glee/mini/made/prompt/1"
    assert {path.name for path in run.iterdir()} == {*agreement.CARRIED}
    assert [*pd.read_parquet(run / "predictions.parquet")] == ["id", "split", "label", "prediction"]
    assert [*pd.read_parquet(brought / "data/made.parquet")] == ["id", "split", "label"]


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
    assert not [*root.parent.glob(".unbundle-*")]


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
        finished(there, "prompt", 3, seconds=2)
    else:
        unbundle(file, there)
        shutil.rmtree(there / place / "glee/mini/made/cls-tanh")
        run = there / place / "glee/mini/made/prompt/3/run.json"
        run.write_text(run.read_text().replace('"total": 99', '"total": 98'))
    refused(file, there, r"made/prompt/3 is another version of the run .*\(they differ in run\.json\)")


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
            json.loads((there / place / "made.json").read_text()) | {"sha256": "x"},
        )
    refused(whole[1], there, rf"{place}/made\.json is of other data than made in .*tiny\.tar\.xz")


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
    (about(scale="../up"), "no name of a folder"),
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
    (edited("made.json", lambda content: content.replace(b'": "made"', b'": "other"')), "of data set other"),
    (edited("data/made.parquet", lambda content: content[:50]), "data/made.parquet cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize("change, says", ALIEN)
def test_what_is_no_bundle_of_this_version_is_refused_whole(whole, tmp_path, change, says):
    file = tmp_path / "odd.tar.xz"
    file.write_bytes(repacked(whole[1], change))
    (tmp_path / "results").mkdir()
    refused(file, tmp_path / "results/tiny", says)
    assert not (tmp_path / "results/tiny").exists() and not (tmp_path / "escaped").exists()


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
    rows = data.assign(prediction=logits.argmax(1) - draw(st.sampled_from([0, 1])), scores=list(logits))
    if draw(st.booleans()):
        among = sorted(random.permutation(classes)[: draw(st.integers(1, classes))].tolist())
        report |= {"trained_on": "more", "among": draw(st.sampled_from([among, None]))}
        data["accepted"] = [[int(each), int(random.integers(classes))] for each in label]
    return report, data, rows.sample(frac=1, random_state=draw(st.integers(0, 99)))


@given(predicted())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_compact_predictions_give_the_scores_and_draws_of_all_logits(tmp_path_factory, made):
    report, data, rows = made
    root = tmp_path_factory.mktemp("here")
    (root / "data").mkdir()
    data.to_parquet(root / "data/made.parquet", index=False)
    write_json(root / "data/made.json", report)
    folder = finished(root, "prompt", 1)
    rows.to_parquet(folder / "predictions.parquet", index=False)
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
