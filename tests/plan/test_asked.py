"""What a run is asked, when it stands, and the file that says so."""

import json
import os
from pathlib import Path

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.files import sha256, write_json
from tailprompt.plan import agreement, asked, blocks, starts
from tailprompt.plan.layers import merge
from tailprompt.plan.settings import settings

WANTED = {"settings": {"lr": 1.0}, "extras": {}, "start": None}


def of(config, point):
    """What a run of a scale that ships is asked."""
    return asked.asked(config, point, settings(config, point), asked.weights(config, point.backbone))


def point(config, method):
    """The first run of a method in the demo."""
    return next(each for each in blocks.all_points(config) if each.method == method)


def finished(root, wanted, path="p/b/d/m/1", **changes):
    """A point and its folder below `root`, with all its files and a run.json that says what is asked."""
    where = asked.Point.at(path)
    folder = root / "runs" / where.path
    folder.mkdir(parents=True)
    for name in asked.OUTPUTS:
        (folder / name).touch()
    write_json(folder / "run.json", {**wanted, **changes})
    return where, folder


def test_settings_backbone_words_and_start_are_asked_and_extras_apart():
    demo = scale("demo")
    first = point(demo, "prompt")
    found = of(demo, first)
    assert found.keys() == {"settings", "extras", "backbone", "weights", "verbalizer", "start"}
    assert not found["settings"].keys() & {"features", "vectors"} and found["start"] is None
    assert found["verbalizer"][0] == ["label", "words"]
    file = Path(found["backbone"]["path"], "model.safetensors")
    assert found["weights"][file.name] == sha256(file)


def test_what_a_start_is_asked_is_asked_of_what_starts_from_it_but_for_its_extras():
    demo = scale("demo")
    second = point(demo, "lpt")
    first = starts.start_of(demo, second)
    assert of(demo, second)["start"]["run"] == first.path
    edited = merge(demo, {"methods": {first.method: {"weight_decay": 0.5}}})
    assert of(edited, second)["start"] != of(demo, second)["start"]
    assert of(edited, second)["settings"] == of(demo, second)["settings"]


def test_a_made_backbone_is_as_its_recipe_and_what_that_starts_from():
    mini = scale("mini")
    made = next(name for name, row in mini["backbones"].items() if "start" in recipe_of(mini, row))
    recipe = mini["backbones"][made]["recipe"]
    edited = merge(mini, {"pretraining": {recipe: {"lr": 0.5}}})
    carded = merge(mini, {"pretraining": {recipe: {"card": {"seen": "another"}}}})
    assert asked.weights(mini, made) == asked.weights(carded, made) != asked.weights(edited, made)


def recipe_of(config, row):
    """The recipe that makes a backbone, or nothing."""
    return config["pretraining"].get(row.get("recipe"), {})


def test_weights_that_were_digested_are_not_read_again_until_they_change(tmp_path):
    folder, report = tmp_path / "own", tmp_path / "results/demo/backbones/own.json"
    folder.mkdir()
    (folder / "model.safetensors").write_text("one")
    config = {"scale": "demo", "backbones": {"own": {"family": "bert", "path": "own"}}}
    first = asked.weights(config, "own", tmp_path)
    assert first == {"model.safetensors": sha256(folder / "model.safetensors")}
    write_json(report, {"path": "own", "sha256": {"model.safetensors": "noted"}})
    later = report.stat().st_mtime_ns + 10**9
    os.utime(report, ns=(later, later))
    assert asked.weights(config, "own", tmp_path) == {"model.safetensors": "noted"}
    os.utime(folder / "model.safetensors", ns=(later + 1, later + 1))
    assert asked.weights(config, "own", tmp_path) == first


@pytest.mark.parametrize(
    "changes, keys",
    [
        ({}, []),
        ({"extras": {"features": ["a", "b"], "vectors": True}}, []),
        ({"settings": {"lr": 2.0, "old": 1}}, ["settings.lr", "settings.old"]),
        ({"start": {"run": "p/b/d/m/1"}}, ["start"]),
        ({"settings": None}, ["settings"]),
    ],
)
def test_a_run_differs_in_what_is_asked_and_may_hold_more_extras(changes, keys):
    assert agreement.differing(WANTED | changes, WANTED) == keys


@pytest.mark.parametrize("has", [None, {}, {"features": ["a"]}, {"features": ["a", "b"], "vectors": False}])
def test_a_run_that_lacks_extras_differs(has):
    wanted = WANTED | {"extras": {"features": ["a", "b"], "vectors": True}}
    assert "extras.vectors" in agreement.differing(WANTED | {"extras": has}, wanted)


def test_a_run_stands_with_all_its_files_and_no_damage(tmp_path):
    where, folder = finished(tmp_path, WANTED)
    assert agreement.stands(WANTED, where, tmp_path)
    assert not agreement.stands(WANTED | {"settings": {"lr": 2.0}}, where, tmp_path)
    (folder / "curve.csv").unlink()
    assert not agreement.stands(WANTED, where, tmp_path)
    (folder / "curve.csv").touch()
    (folder / "run.json").write_text("{")
    assert not agreement.stands(WANTED, where, tmp_path)


def test_a_run_stands_on_the_weights_that_its_start_has_now(tmp_path):
    wanted = WANTED | {"start": {"run": "p/b/d/first/1"}}
    finished(tmp_path, WANTED, "p/b/d/first/1", weights_sha256="now")
    for number, (began, there) in enumerate([("now", True), ("before", False), (None, False)]):
        where, _ = finished(tmp_path, wanted, f"p/b/d/second/{number}", start_sha256=began)
        assert agreement.stands(wanted, where, tmp_path) == there


def test_the_file_is_written_where_it_differs_and_is_newer_than_outputs_that_are_to_go(tmp_path):
    _, folder = finished(tmp_path, WANTED)
    file, other = tmp_path / "asked/1.json", WANTED | {"settings": {"lr": 2.0}}
    asked.write(file, WANTED, folder, settled=True)
    written = file.stat().st_mtime_ns
    asked.write(file, WANTED, folder, settled=True)
    assert json.loads(file.read_text()) == WANTED and file.stat().st_mtime_ns == written
    asked.write(file, other, folder, settled=False)
    content = json.loads(file.read_text())
    assert content.pop("replaces") == max(each.stat().st_mtime_ns for each in folder.iterdir())
    assert content == other
    os.utime(file, ns=(1, 1))
    asked.write(file, other, folder, settled=False)
    assert file.stat().st_mtime_ns > min(each.stat().st_mtime_ns for each in folder.iterdir())
    again = file.stat().st_mtime_ns
    asked.write(file, other, folder, settled=True)  # it was trained: what it replaced no longer matters
    assert file.stat().st_mtime_ns == again
    asked.write(tmp_path / "new.json", other, tmp_path / "nothing", settled=False)
    assert json.loads((tmp_path / "new.json").read_text()) == other


def test_training_refuses_words_that_are_no_longer_those_that_are_asked(tmp_path):
    (tmp_path / "words.csv").write_text("label,words\na,x\n")
    wanted = {"settings": {"verbalizer": "words.csv"}, "extras": {}, "backbone": {}}
    file = tmp_path / "1.json"
    write_json(file, wanted | {"verbalizer": [["label", "words"], ["a", "x"]], "replaces": 1})
    assert "replaces" not in agreement.read_asked(file, tmp_path)
    (tmp_path / "words.csv").write_text("label,words\na,y\n")
    with pytest.raises(BadInput, match=r"words\.csv is no longer what .*1\.json says"):
        agreement.read_asked(file, tmp_path)
