"""What jobs read is what they were asked to read, though files change after a plan."""

import json
import os
import shutil
import time
from importlib import import_module
from pathlib import Path

import pytest
import torch
import toy
from conftest import ROW

from tailprompt.errors import BadInput
from tailprompt.files import as_read, read_json, sha256, write_json
from tailprompt.model.folder import files_in
from tailprompt.plan.digests import check_corpora, check_folder, digests_in
from tailprompt.plan.made import corpus_of
from tailprompt.training import loop, provenance

MINI = Path("workflow/resources/backbones/bert-mini")
CHANGED = "changed after this job was planned: .*{}; run snakemake again"


@pytest.fixture
def folder(tmp_path):
    """A backbone whose weights are in shards of any name, with files of a tokenizer that are rare."""
    made = tmp_path / "own"
    made.mkdir()
    shards = {"a": "part-1.safetensors", "b": "more/part-1.safetensors"}
    write_json(made / "model.safetensors.index.json", {"weight_map": shards})
    (made / "more").mkdir()
    for name in (*shards.values(), "config.json", "tokenizer.json", "special_tokens_map.json"):
        (made / name).write_text(name)
    return made


@pytest.mark.parametrize(
    "edited",
    ["part-1.safetensors", "more/part-1.safetensors", "special_tokens_map.json", "added_tokens.json"],
)
def test_an_edit_of_any_file_that_is_read_gives_other_digests(folder, edited):
    before = digests_in(folder, "bert")
    (folder / edited).write_text("edited")
    assert {name for name, digest in digests_in(folder, "bert").items() if before.get(name) != digest} == {
        edited
    }
    with pytest.raises(BadInput, match=CHANGED.format(edited)):
        check_folder(before, folder, "bert")


def test_a_file_that_went_is_named_and_what_is_pinned_otherwise_is_not_compared(folder):
    before = digests_in(folder, "bert")
    check_folder(before, folder, "bert")
    (folder / "part-1.safetensors").unlink()
    with pytest.raises(BadInput, match=CHANGED.format("part-1.safetensors")):
        check_folder(before, folder, "bert")
    check_folder(None, folder, "bert")
    check_folder({"recipe": "digest"}, folder, "bert")


@pytest.mark.parametrize(
    "parts", [["model.safetensors"], ["model-1.safetensors", "model-2.safetensors"]], ids=len
)
def test_weights_that_were_put_in_place_of_those_of_a_recipe_are_refused(tmp_path, parts):
    for name in parts:
        (tmp_path / name).write_text(name)
    if len(parts) > 1:
        write_json(tmp_path / "model.safetensors.index.json", {"weight_map": {name: name for name in parts}})
    told = {name: sha256(tmp_path / name) for name in parts}
    write_json(tmp_path / "pretraining.json", {"sha256": told if len(parts) > 1 else told[parts[0]]})
    check_folder({"recipe": "digest"}, tmp_path, "bert")
    (tmp_path / parts[-1]).write_text("others")
    with pytest.raises(BadInput, match=rf"{parts[-1]} is not what pre-training wrote .*makes it anew"):
        check_folder({"recipe": "digest"}, tmp_path, "bert")


def test_a_run_on_other_weights_than_are_asked_stops_before_it_writes(tmp_path, monkeypatch):
    backbone, real = tmp_path / "own", toy.asked_of
    shutil.copytree(MINI, backbone)
    weights, row = digests_in(backbone, "bert"), ROW | {"path": str(backbone)}
    monkeypatch.setattr(toy, "asked_of", lambda *told: real(*told) | {"weights": weights})
    assert toy.run(tmp_path, "cls-tanh", row=row, epochs=1).is_dir()
    with open(backbone / "tokenizer_config.json", "a") as file:
        file.write("\n")
    with pytest.raises(BadInput, match=CHANGED.format("tokenizer_config.json")):
        toy.run(tmp_path, "cls-tanh", row=row, epochs=1, seed=2)
    assert not (tmp_path / "runs/mine/tiny/toy/cls-tanh/2").exists()


def corpus(tmp_path):
    """A text whose digest is asked under its name."""
    file = tmp_path / "text.txt"
    file.write_text("\n\n".join(f"Words of paragraph {i} are many , said number {i} ." for i in range(400)))
    return file, {"corpus": {file.name: sha256(file)}}


def vocabulary(tmp_path):
    """The arguments of learning a vocabulary, a file that it reads, and what it writes."""
    file, asked = corpus(tmp_path)
    learned = {"kind": "wordpiece", "size": 120, "alphabet": 60}
    recipe = {"vocabulary": learned, "scripts": "all", "held_out": 0.1, "positions": 64}
    asked = {"recipe": recipe, **asked}
    options = {"--recipe": asked, "--corpus": file, "--out": tmp_path / "made"}
    return options, file, tmp_path / "made/tokenizer.json"


def pack(tmp_path):
    """The same of packing."""
    file, asked = corpus(tmp_path)
    recipe = {"scripts": "all", "held_out": 0.1, "length": 16}
    options = {"--recipe": {"recipe": recipe, **asked}, "--data": file, "--tokenizer": MINI}
    return {**options, "--out": tmp_path / "made"}, file, tmp_path / "made/pack.json"


def backbones(tmp_path):
    """The same of looking at a backbone."""
    row = ROW | {"path": str(tmp_path / "own")}
    shutil.copytree(MINI, tmp_path / "own")
    asked = {"row": row, "weights": digests_in(tmp_path / "own", "bert")}
    options = {"--name": "own", "--row": asked, "--out": tmp_path / "own.json"}
    return options, tmp_path / "own/tokenizer_config.json", tmp_path / "own.json"


def table(tmp_path):
    """A user's table, and its row."""
    file = tmp_path / "rows.csv"
    rows = [f"text {i} of {i % 3},{'abc'[i % 3]}" for i in range(60)]
    file.write_text("\n".join(["text,label", *rows, ""]))
    return file, {"name": "mine", "title": "Mine", "language": "en", "path": str(file)}


def prepare(tmp_path):
    """The same of preparing a table."""
    file, row = table(tmp_path)
    asked = {"row": row, "files": [sha256(file)], "words": None}
    options = {"--dataset": json.dumps(row), "--asked": asked, "--raw": tmp_path / "raw"}
    return {**options, "--out": tmp_path / "mine.parquet"}, file, tmp_path / "mine.parquet"


def words(tmp_path):
    """The same of preparing a table whose classes have words."""
    _, row = table(tmp_path)
    file = tmp_path / "words.csv"
    lines = [["label", "words"], ["a", "x"], ["b", "y"], ["c", "z"]]
    file.write_text("\n".join(map(",".join, lines)) + "\n")
    options, _, made = prepare(tmp_path)
    row, asked = row | {"verbalizer": str(file)}, options["--asked"] | {"words": lines}
    return options | {"--dataset": json.dumps(row), "--asked": asked}, file, made


@pytest.mark.parametrize("job", [vocabulary, pack, backbones, prepare, words], ids=lambda job: job.__name__)
def test_a_job_stops_if_what_it_reads_is_not_what_it_was_asked(tmp_path, monkeypatch, job):
    options, file, made = job(tmp_path)
    for name in {"--recipe", "--row", "--asked"} & options.keys():
        write_json(tmp_path / "asked.json", options[name])
        options[name] = tmp_path / "asked.json"
    told = [str(part) for option in options.items() for part in option]
    stage = import_module(f"tailprompt.{'prepare' if job is words else job.__name__}")
    monkeypatch.setattr("sys.argv", [stage.__name__, *told])
    stage.main()
    made.unlink()
    with open(file, "a") as more:
        more.write("\n")
    if file.suffix == ".csv":
        file.write_text(file.read_text().strip() + ("k\n" if job is words else "\nmore,a\n"))
    with pytest.raises(BadInput, match=CHANGED.format(file.name)):
        stage.main()
    assert not made.exists()


def test_code_that_is_edited_while_it_runs_is_recorded_as_it_ran(monkeypatch):
    before = sha256(loop.__file__)
    monkeypatch.setattr(provenance, "sha256", lambda file: "of the edited file")
    provenance.code.cache_clear()
    assert provenance.surroundings(torch.device("cpu"))["sources"]["tailprompt.training.loop"] == before[:16]
    assert provenance.code()["training/loop.py"] == before


def test_the_files_of_a_backbone_keep_their_places_in_the_folder(folder):
    assert "more/part-1.safetensors" in files_in(folder, "bert")


def test_a_file_is_read_once_until_its_times_change_also_where_its_own_time_was_kept(tmp_path):
    file, seen = tmp_path / "file", []
    file.write_text("before")
    os.utime(file, (1, 1))

    def read(file):
        seen.append(file)
        return file.read_text()

    assert [as_read(file, read), as_read(file, read)] == ["before"] * 2 and len(seen) == 1
    other = tmp_path / "other"
    other.write_text("after")
    os.utime(other, (1, 1))
    time.sleep(0.01)  # for a coarse clock
    other.replace(file)
    assert as_read(file, read) == "after"


def test_corpora_of_one_file_name_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ["a/text.txt", "b/text.txt"]
    for file in files:
        Path(file).parent.mkdir()
        Path(file).write_text(f"Words of {file} .\n\n")
    Path("c.txt").write_text("Other words .\n")
    config, paths = {"scale": "tiny"}, [Path(file) for file in [*files, "c.txt"]]
    asked = corpus_of(config, "packed", "bert", [*files, "c.txt"], Path())
    assert asked == {name: sha256(Path(name)) for name in (*files, "c.txt")}
    assert asked == corpus_of(config, "packed", "bert", [*files, "c.txt"], tmp_path)
    check_corpora(asked, paths)
    for file in files:
        edited = shutil.copytree(tmp_path, tmp_path.parent / f"edited-{Path(file).parent}")
        monkeypatch.chdir(edited)
        Path(file).write_text("Others .\n")
        assert corpus_of(config, "packed", "bert", [*files, "c.txt"], Path()) != asked
        with pytest.raises(BadInput, match=CHANGED.format(file)):
            check_corpora(asked, paths)


def test_what_is_packed_tells_apart_corpora_of_one_file_name(tmp_path, monkeypatch):
    options, file, out = pack(tmp_path)
    other = tmp_path / "other" / file.name
    other.parent.mkdir()
    other.write_text("Some other words .\n")
    recipe = json.dumps(options["--recipe"]["recipe"])
    both = ["--data", str(file), str(other), "--tokenizer", str(MINI), "--out", str(out.parent)]
    monkeypatch.setattr("sys.argv", ["pack", "--recipe", recipe, *both])
    import_module("tailprompt.pack").main()
    assert read_json(out)["sha256"] == {str(one): sha256(one) for one in (file, other)}
