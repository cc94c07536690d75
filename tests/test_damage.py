"""Damaged files of every kind: who notices, and in which sentence. Nothing damaged becomes a number.

run.json is protected where hard links are, as its digest is with what is kept of the run.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import toy
import toy_images
from made_up import write_corpus

from tailprompt import pack, prepare, pretrain, vocabulary
from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json
from tailprompt.model.folder import check_complete
from tailprompt.plan import agreement, digests, standing, unmade
from tailprompt.plan.held import finished, keep
from tailprompt.plan.made_of import OF, digest_of
from tailprompt.plan.points import Point
from tailprompt.plan.status import why_stale
from tailprompt.predict import check_place, predict_file
from tailprompt.report import records, trained
from tailprompt.report.carried import run_files
from tailprompt.seals import as_written, seal, seal_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A scale with a finished run, its data and its report."""
    root = tmp_path_factory.mktemp("scale")
    folder = toy.run(root, "cls-tanh", keep=True, features=["law", "music"])
    report = root / "data/toy.json"
    write_json(report, {"sha256": sha256(root / "data/toy.parquet"), "classes": [], "rows": {}})
    seal(report)
    keep(folder)
    return root, folder


@pytest.fixture
def scale(whole, tmp_path):
    """A copy of the scale, in which files are damaged; the kept files are others than those of the run."""
    root = tmp_path / "scale"
    shutil.copytree(whole[0], root, copy_function=shutil.copy2)
    return root, root / whole[1].relative_to(whole[0])


def flip(file):
    """Change one bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file):
    """Lose the second half."""
    os.truncate(file, file.stat().st_size // 2)


def empty(file):
    """Lose everything, as a file of which a crashed machine wrote the name alone."""
    os.truncate(file, 0)


def digit(file):
    """Another digit in a number."""
    text = file.read_text("utf-8")
    file.write_text(
        re.sub(r"(\"steps\": )(\d)", lambda found: found[1] + str(9 - int(found[2])), text), "utf-8"
    )
    assert file.read_text("utf-8") != text


def longer(file):
    """A blank more, which changes no value."""
    file.write_text(file.read_text("utf-8") + " ", "utf-8")


def shown(root, folder):
    """What a table does with a run before it reads it."""
    agreement.check(folder, records.record(folder))


def trains(root, folder):
    toy.run(root, "cls-tanh", seed=2, epochs=1)


def begins_from(root, folder):
    toy.run(root, "cls-tanh", seed=2, epochs=1, start=folder)


def predicts(root, folder):
    pd.DataFrame({"text": ["a song"]}).to_csv(root / "new.csv", index=False)
    predict_file(folder, root / "new.csv", root / "out.csv", encoding="utf-8", device="cpu")


def reports(root, folder):
    records.report(root, "toy")


def reads_weights(root, folder):
    trained.summary(folder)


RUN = "runs/mine/tiny/toy/cls-tanh/1"
PREPARED = r"toy\.parquet is not what prepare wrote \(SHA-256, in .*toy\.json\).*; run snakemake again"
AGAIN = r"; it was damaged or edited\. To train the run again: tailprompt retrain mine/tiny/toy/cls-tanh/1$"
OTHER = rf"is not what its run wrote \(SHA-256\){AGAIN}"
TABLE = [  # file, damage, who notices, sentence
    *((f"{RUN}/{name}", harm, shown, rf"{name} is not what its run wrote \(SHA-256\){AGAIN}")
      for name in ("predictions.parquet", "features.parquet", "curve.csv") for harm in (flip, cut, empty)),
    *((f"{RUN}/run.json", harm, shown, r"run\.json is not JSON") for harm in (cut, empty)),
    *((f"{RUN}/weights.safetensors", harm, begins_from, rf"weights\.safetensors {OTHER}")
      for harm in (flip, cut, empty)),
    *((f"{RUN}/weights.safetensors", harm, predicts, rf"weights\.safetensors {OTHER}")
      for harm in (flip, cut, empty)),
    *((f"{RUN}/weights.safetensors", harm, reads_weights, rf"weights\.safetensors {OTHER}")
      for harm in (flip, cut, empty)),
    *((f"{RUN}/run.json", harm, shown, rf"run\.json {OTHER}")
      for harm in (digit, longer)),
    *((f"{RUN}/.finished/sha256.json", harm, shown, r"sha256\.json has other digests .*; it was damaged")
      for harm in (flip, cut, empty)),
    *(("data/toy.parquet", harm, who, PREPARED)
      for harm in (flip, cut, empty) for who in (trains, reports, shown)),
    *(("data/toy.json", harm, who, r"toy\.json is not what its job wrote \(SHA-256\); run snakemake again")
      for harm in (flip, cut, empty) for who in (trains, reports)),
]  # fmt: skip


@pytest.mark.parametrize(
    "name, harm, notices, sentence",
    TABLE,
    ids=[f"{name.rpartition('/')[2]}-{harm.__name__}-{who.__name__}" for name, harm, who, _ in TABLE],
)
def test_a_damaged_file_is_noticed_in_one_sentence(scale, name, harm, notices, sentence):
    root, folder = scale
    harm(root / name)
    with pytest.raises(BadInput, match=sentence) as error:
        notices(root, folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("files", [None, [], "x"])
def test_a_run_json_with_digests_in_another_form_is_damaged(scale, files):
    root, folder = scale
    write_json(folder / "run.json", read_json(folder / "run.json") | {"files": files})
    with pytest.raises(BadInput, match=r"run\.json is not what its run wrote"):
        shown(root, folder)


@pytest.mark.parametrize("harm", [flip, cut, empty])
def test_a_run_json_without_digests_of_files_is_compared_with_what_is_kept_of_the_run(scale, harm):
    root, folder = scale
    record, kept = read_json(folder / "run.json"), folder / ".finished/sha256.json"
    write_json(folder / "run.json", {key: value for key, value in record.items() if key != "files"})
    write_json(kept, read_json(kept) | {"run.json": sha256(folder / "run.json")})
    shown(root, folder)
    harm(folder / "predictions.parquet")
    with pytest.raises(BadInput, match=r"predictions\.parquet is not what its run wrote"):
        shown(root, folder)


@pytest.mark.parametrize("harm", [cut, empty])
def test_a_damaged_report_of_former_versions_says_what_to_do(scale, harm):
    root, _ = scale
    seal_of(root / "data/toy.json").unlink()
    harm(root / "data/toy.json")
    with pytest.raises(BadInput, match=r"toy\.json is not JSON .*; delete it, and snakemake makes it anew$"):
        records.report(root, "toy")


def decoded(root):
    """What stage decode leaves in a project's folder, and made-up rows of it."""
    results = root / "results/mine"
    toy_images.prepare(results)
    return [results / "images/toy.npy", results / "images/toy.parquet"]


@pytest.mark.parametrize("harm", [flip, cut, empty])
@pytest.mark.parametrize("which", [0, 1], ids=["pixels", "listing"])
def test_damaged_images_are_refused_by_jobs_and_decoded_again(tmp_path, monkeypatch, harm, which):
    files = decoded(tmp_path)
    config = {"scale": "mine", "datasets": {"toy": toy_images.ROW}}
    assert standing.stands(config, "images", "toy", tmp_path)
    assert not standing.damaged(config, ["toy@shots=2"], [], tmp_path)
    harm(files[which])
    assert not standing.stands(config, "images", "toy", tmp_path)
    assert standing.damaged(config, ["toy@shots=2"], [], tmp_path) == [files[which]]
    out = tmp_path / "again.parquet"
    told = ["prepare", "--dataset", json.dumps(toy_images.ROW), "--raw", "raw"]
    told += ["--listing", str(files[1]), "--out", str(out)]
    monkeypatch.setattr("sys.argv", told)
    readers = [lambda: toy_images.run(tmp_path / "results/mine", "linear"), prepare.main]
    with pytest.raises(
        BadInput, match=rf"{files[which].name} is not what its job wrote \(SHA-256\); run snak"
    ):
        readers[which]()
    assert not out.exists() and not (tmp_path / "results/mine/runs").exists()


def test_a_large_array_of_images_is_read_once_for_all_plans_and_jobs(tmp_path, monkeypatch):
    reads = []
    monkeypatch.setattr(digests, "LARGE", 5000)
    monkeypatch.setattr(digests, "QUIET", 0)
    monkeypatch.setattr(digests, "sha256", lambda file: reads.append(file.name) or sha256(file))
    monkeypatch.chdir(tmp_path)
    pixels, _ = decoded(Path())
    for _ in range(2):
        assert standing.intact(pixels)
        toy_images.run(Path("results/mine"), "linear")
        digests.noted.cache_clear()  # as in another process
    assert reads.count("toy.npy") == 1


RECIPE = {"scripts": "all", "held_out": 0.2, "length": 16, "parts": 2, "positions": 64}
RECIPE |= {"vocabulary": {"kind": "wordpiece", "size": 300, "alphabet": 60}}
CORPUS, WORDS, PACKED = "corpora/made.txt.gz", "pretraining/bert/vocabulary", "pretraining/bert/packed"
READ = [  # by which stage what of pre-training is read
    (CORPUS, vocabulary),
    (CORPUS, pack),
    *((f"{WORDS}/{name}", stage) for name in pretrain.TOKENIZER for stage in (pack, pretrain)),
    *((f"{PACKED}/{name}", pretrain) for name in ("pack.json", "train-1.bin", "train-2.bin", "held_out.bin")),
]


def pre_trained(monkeypatch, results, *stages):
    """Stages of pre-training, as the workflow calls them."""
    corpus, words, packed = (str(results / name) for name in (CORPUS, WORDS, PACKED))
    told = {
        vocabulary: ["--corpus", corpus, "--out", words],
        pack: ["--data", corpus, "--tokenizer", words, "--out", packed],
        pretrain: ["--name", "bert", "--packed", packed, "--tokenizer", words, "--out", str(results / "m")],
    }
    recipe = {**RECIPE, "task": "masked_language_model", "steps": 1, "seed": 1, "shape": {}}
    for stage in stages:
        monkeypatch.setattr("sys.argv", ["stage", "--recipe", json.dumps(recipe), *told[stage]])
        stage.main()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The results of a scale with a corpus as `collect` seals it, its vocabulary and its packed data."""
    results = tmp_path_factory.mktemp("packed") / "results/mine"
    (results / "corpora").mkdir(parents=True)
    text = write_corpus(results / "made.txt").read_bytes()
    (results / CORPUS).write_bytes(gzip.compress(text, mtime=0))
    seal(results / CORPUS)
    with pytest.MonkeyPatch.context() as patch:
        pre_trained(patch, results, vocabulary, pack)
    return results


@pytest.mark.parametrize("harm", [flip, cut, empty])
@pytest.mark.parametrize("name, stage", READ, ids=[f"{Path(name).name}-{by.__name__}" for name, by in READ])
def test_what_pre_training_reads_is_refused_where_it_is_damaged(
    packed, tmp_path, monkeypatch, harm, name, stage
):
    results = shutil.copytree(packed, tmp_path / "mine")
    harm(results / name)
    said = rf"{Path(name).name} is not what its job wrote \(SHA-256\); run snakemake again"
    with pytest.raises(BadInput, match=said):
        pre_trained(monkeypatch, results, stage)


@pytest.mark.parametrize("name", [f"{WORDS}/tokenizer.json", f"{PACKED}/pack.json", f"{PACKED}/train-2.bin"])
def test_packed_data_do_not_stand_once_they_are_damaged_and_parts_may_be_missing(packed, tmp_path, name):
    results = shutil.copytree(packed, tmp_path / "results/mine")
    kind = "packed" if name.startswith(PACKED) else "vocabulary"
    files = partial(standing.outputs, {"scale": "mine"}, kind, "bert", tmp_path)
    (results / PACKED / "train-1.bin").unlink()
    assert standing.same(files(), {}, tmp_path / "note.json", tmp_path)
    flip(results / name)
    assert not standing.same(files(), {}, tmp_path / "note.json", tmp_path)


@pytest.mark.parametrize("harm", [flip, cut, empty, Path.unlink])
def test_weights_of_pre_training_are_refused_and_made_again_where_they_are_damaged(tmp_path, harm):
    folder = tmp_path / "results/mine/pretraining/bert"
    folder.mkdir(parents=True)
    weights = folder / "model.safetensors"
    weights.write_bytes(b"weights")
    write_json(folder / "pretraining.json", {"sha256": sha256(weights)})
    made, asked = standing.outputs({"scale": "mine"}, "checkpoint", "bert", tmp_path), {"recipe": "digest"}
    assert standing.same(made, {}, tmp_path / "note.json", tmp_path)
    digests.check_folder(asked, folder)
    harm(weights)
    assert not standing.same(made, {}, tmp_path / "note.json", tmp_path)
    says = r"model\.safetensors (not found|is not what pre-training wrote \(SHA-256, in .*; run snakemake)"
    with pytest.raises(BadInput, match=says):
        digests.check_folder(asked, folder)


FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture(params=["record", "look", "neither"])
def checkpoint(request, tmp_path):
    """The folder of a checkpoint, and its files with digests: by its record, or by the look at a backbone."""
    folder = tmp_path / "results/mine/pretraining/bert"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text(name)
    told = {name: sha256(folder / name) for name in FILES}
    record = {"sha256": told["model.safetensors"]}
    if request.param == "record":
        record["files"] = {name: told[name] for name in FILES if name != "model.safetensors"}
    write_json(folder / "pretraining.json", record)
    look = tmp_path / "results/mine/backbones/own.json"
    if request.param == "look":
        write_json(look, {"path": "results/mine/pretraining/bert", "sha256": told})
        seal(look)
    return folder, FILES if request.param != "neither" else FILES[1:2]


@pytest.mark.parametrize("harm", [flip, cut, empty, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_of_a_checkpoint_is_refused_and_made_again_where_its_digest_is_known(
    checkpoint, tmp_path, name, harm
):
    folder, known = checkpoint
    config = {"scale": "mine", "pretraining": {"bert": {}}}
    made = standing.outputs(config, "checkpoint", "bert", tmp_path)
    assert standing.same(made, {}, tmp_path / "note.json", tmp_path)
    digests.check_folder({"recipe": "digest"}, folder)
    harm(folder / name)
    assert standing.same(made, {}, tmp_path / "note.json", tmp_path) == (name not in known)
    wrong = [folder / name] if name in known else []
    assert standing.altered_checkpoints(config, tmp_path) == wrong
    if wrong:
        says = rf"{name} (not found|is not what pre-training wrote .*); run snakemake .* makes it anew$"
        with pytest.raises(BadInput, match=says):
            digests.check_folder({"recipe": "digest"}, folder)
    if name != "tokenizer_config.json" and not (folder / name).exists():
        says = rf"{name} not found; run snakemake again, .*which makes it anew$"
        with pytest.raises(BadInput, match=says):
            check_complete({"family": "bert", "path": str(folder)})


def test_a_file_that_was_added_to_a_checkpoint_is_refused(checkpoint):
    folder, known = checkpoint
    (folder / "added_tokens.json").write_text("{}")
    refused = pytest.raises(BadInput, match="added_tokens.json is not of the checkpoint, .*; delete it$")
    with refused if known == FILES else nullcontext():
        digests.check_folder({"recipe": "digest"}, folder)


def test_prediction_refuses_a_damaged_checkpoint(checkpoint):
    folder, _ = checkpoint
    about = {"backbone": {"path": str(folder)}, "weights": {"recipe": "digest"}}
    check_place(about, folder)
    flip(folder / "model.safetensors")
    with pytest.raises(BadInput, match="is not what pre-training wrote"):
        check_place(about, folder)
    check_place({**about, "weights": None}, folder)


def test_pixels_of_former_versions_that_were_cut_say_what_to_do(tmp_path):
    pixels, _ = decoded(tmp_path)
    seal_of(pixels).unlink()
    cut(pixels)
    with pytest.raises(BadInput, match=r"mmap length .*\); delete it, and snakemake makes it anew$"):
        toy_images.run(tmp_path / "results/mine", "linear")


@pytest.mark.parametrize("harm", [flip, cut, empty, longer])
@pytest.mark.parametrize("name", ["table2.md", "table2.tex", "toy@imbalance=1.5.json"])
def test_what_is_shown_does_not_stand_once_it_is_damaged(tmp_path, harm, name):
    file = tmp_path / name
    file.write_text('{"f1": "0.123"}')
    assert standing.same([file], {}, tmp_path / "note.json")
    seal(file)
    assert standing.same([file], {}, tmp_path / "note.json") and as_written(file)
    harm(file)
    assert not standing.same([file], {}, tmp_path / "note.json")


def test_a_table_of_which_its_seal_lost_the_line_is_made_again(tmp_path):
    table, wanted = tmp_path / "table2.md", unmade.asked({}, {"runs": [], "data": [], "files": []})
    table.write_text("| 0.123 |")
    seal(table, also={OF: digest_of(wanted, tmp_path)})
    stands = partial(unmade.stands, [table], wanted, tmp_path, folder_of=Path)
    assert stands()
    seal_of(table).write_text("".join(seal_of(table).read_text().splitlines(keepends=True)[1:]))
    table.write_text("| 0.999 |")
    assert not stands()


@pytest.mark.parametrize("notices", [shown, begins_from, predicts, reads_weights, trains])
def test_the_same_files_undamaged_are_taken(scale, notices):
    notices(*scale)


@pytest.mark.parametrize("harm", [flip, cut, empty])
def test_damaged_tokens_are_made_again(scale, harm):
    root, _ = scale
    files = sorted(root.glob("tokens/*.ids"))
    before = [file.read_bytes() for file in files]
    for file in files:
        harm(file)
    trains(*scale)
    assert files and [file.read_bytes() for file in files] == before


@pytest.mark.parametrize("name", agreement.OUTPUTS)
def test_a_kept_run_with_a_damaged_file_is_trained_and_not_put_back(scale, name):
    _, folder = scale
    record = read_json(folder / "run.json")
    wanted = {key: record[key] for key in ("settings", "extras", "backbone")}
    assert finished(folder, wanted, start=None, replaced=0)
    flip(folder / ".finished" / f"{name}.kept")
    for output in agreement.OUTPUTS:
        (folder / output).unlink()
    assert not finished(folder, wanted, start=None, replaced=0)


@pytest.mark.parametrize("other", ["cls-tanh/2", "prompt/1"])
def test_a_run_that_was_copied_into_the_folder_of_another_is_not_that_run(scale, other):
    root, folder = scale
    copy = folder.parents[1] / other
    shutil.copytree(folder, copy)
    record, point = read_json(copy / "run.json"), Point.at("/".join(copy.parts[-5:]))
    wanted = {key: record[key] for key in ("settings", "extras", "backbone")}
    assert agreement.stands(wanted, Point.at("/".join(folder.parts[-5:])), root)
    assert not agreement.stands(wanted, point, root)
    assert why_stale(copy, wanted, []) == "holds the files of another run"
    for takes in (shown, lambda _, copy: run_files(copy, root / "data/toy.json")):
        with pytest.raises(BadInput, match=f"{other} has the run.json of another run; delete this folder$"):
            takes(root, copy)
    for output in agreement.OUTPUTS:
        (copy / output).unlink()
    assert not finished(copy, wanted, start=None, replaced=0), "nor is what was kept of it put back"


@pytest.mark.parametrize("shift", [-10 * 365 * 86400, 10 * 365 * 86400])
def test_a_clock_that_moved_changes_nothing_of_a_run(scale, monkeypatch, shift):
    """What is asked is decided by content; a step is timed by a clock that does not jump."""
    root, folder = scale
    for file in folder.iterdir():
        if file.is_file():
            os.utime(file, (file.stat().st_mtime + shift,) * 2)
    shown(root, folder)
    real = __import__("time").time
    monkeypatch.setattr("time.time", lambda: real() + shift)
    again = toy.run(root, "cls-tanh", seed=3)
    monkeypatch.undo()
    same = toy.run(root / "beside", "cls-tanh", seed=3)
    pd.testing.assert_frame_equal(toy.scores(again), toy.scores(same))


def test_the_table_names_every_file_of_a_run(whole):
    named = {name.rpartition("/")[2] for name, *_ in TABLE if name.startswith(RUN)}
    named.remove("sha256.json")
    assert named == {*agreement.OUTPUTS}
