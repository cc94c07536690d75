"""Why a run has its settings: every layer is named with its file, a default with its component's line."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scales import SMALL, scale, small_project

from tailprompt import __main__
from tailprompt.components.resolve import documented
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan import asked, blocks, config, made
from tailprompt.plan.explain import every_setting, explain, point_at
from tailprompt.plan.points import Point
from tailprompt.plan.settings import settings

POINT = Point("glee", "bert-mini", "cmid", "prompt@eta=0.5", 775)
SHIPPED = ["paper", "mini", "demo", "mine", "mine-images", "mine-tags", "mine-passages"]
LAYERS = {  # file -> what it says; each gives one key for the last time
    "config/datasets.yaml": {"datasets": {"cmid": {"max_length": 48}}},
    "config/papers/glee.yaml": {"protocols": {"glee": {"settings": {"batch": 16, "clip": 1, "warmup": 2}}}},
    "config/backbones.yaml": {"backbones": {"bert-mini": {"settings": {"clip": 2, "bucket": 4}}}},
    "config/methods.yaml": {"methods": {"prompt": {"bucket": 8, "tied": False, "weight_decay": 0.1}}},
    "own.yaml": {
        "scale": "own",
        "protocols": {
            "glee": {
                "settings": {"epochs": 3},
                "datasets": {"cmid": {"weight_decay": 0.2, "patience": 5}},
                "cells": {"cmid": {"prompt": {"patience": 6, "head.tied": True, "eta": 1.5}}},
            }
        },
    },
}
FROM = {  # setting -> value, layer and where
    "max_length": ("48", "data set", "config/datasets.yaml: datasets.cmid"),
    "batch": ("16", "protocol", "config/papers/glee.yaml: protocols.glee.settings"),
    "epochs": ("3.0", "protocol", "own.yaml: protocols.glee.settings"),
    "clip": ("2.0", "backbone", "config/backbones.yaml: backbones.bert-mini.settings"),
    "bucket": ("8", "method", "config/methods.yaml: methods.prompt"),
    "weight_decay": ("0.2", "protocol's data set", "own.yaml: protocols.glee.datasets.cmid"),
    "patience": ("6.0", "protocol's cell", "own.yaml: protocols.glee.cells.cmid.prompt"),
    "tied": ("true", "protocol's cell", "own.yaml: protocols.glee.cells.cmid.prompt"),
    "eta": ("0.5", "name of the method", "prompt@eta=0.5"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose files each give a setting, and what they say."""
    root = small_project(tmp_path_factory.mktemp("project"))
    (root / "config/papers").mkdir()
    small = yaml.safe_load(Path(SMALL).read_text("utf-8"))
    del small["datasets"]["cmid"]["max_length"], small["protocols"]["glee"]["settings"]["batch"]
    (root / config.SCALE).unlink()
    (root / config.SCALE).write_text(yaml.safe_dump(small))
    for file, content in LAYERS.items():
        (root / file).write_text(yaml.safe_dump(content))
    return root


@pytest.fixture
def inside(project, monkeypatch):
    monkeypatch.chdir(project)
    files = [config.SCALE, "own.yaml"]
    return config.load(files), config.layers_of(files)


def rows(text: str) -> dict[str, list[tuple[str, str]]]:
    """The lines of an explanation by setting: what reads it, and the rest of its row."""
    found, reads = {}, None
    text = re.sub(r"\n {6,}(?=\S)", "  ", text)  # a row goes on after a long value
    for line in text.splitlines():
        if line.startswith("read by "):
            reads = line.removeprefix("read by ")
        elif reads and re.match(r"  \S", line):
            name, rest = line.split(maxsplit=1)
            found.setdefault(name, []).append((reads, rest))
    return found


def cells(text: str) -> dict[str, tuple[str, str, str]]:
    """Value, layer and place by setting."""
    return {name: tuple(re.split(r"  +", one[0][1])) for name, one in rows(text).items()}


def test_each_of_seven_layers_is_named_with_the_file_that_says_it_last(inside):
    found = cells(explain(*inside, POINT))
    assert {name: found[name] for name in FROM} == FROM
    assert found["template"][1:] == ("data set", "config/paper.yaml: datasets.cmid")
    assert found["input"] == ("prompted", "method", "config/paper.yaml: methods.prompt")


def test_a_length_of_the_language_is_said_to_be_its(inside):
    whole, layers = inside
    row = {"language": "en", "path": "a.csv", "columns": {"pair": "b"}}
    whole = {**whole, "datasets": {**whole["datasets"], "own": row}}
    layers = [
        *layers,
        ("more.yaml", {"datasets": {"own": row}, "languages": {"en": {"template_with_pair": "x"}}}),
    ]
    whole["languages"] = {"en": {**whole["languages"]["en"], "template_with_pair": "{text} {pair} {mask}"}}
    found = cells(explain(whole, layers, replace(POINT, dataset="own")))
    assert found["max_length"] == ("128", "data set", "config/paper.yaml: languages.en")
    assert found["template"][1:] == ("data set", "more.yaml: languages.en.template_with_pair")


def test_a_default_is_said_to_be_one_with_the_line_that_declares_it(inside):
    found = cells(explain(*inside, POINT))
    root = Path(__file__).parents[2]
    defaults = {name: row for name, row in found.items() if row[1] == "default"}
    assert {"tuner", "keep", "decoding", "loss", "adam_eps", "tau", "start"} <= defaults.keys()
    for name, (_, _, place) in defaults.items():
        file, line = place.split(":")
        assert (root / file).read_text("utf-8").splitlines()[int(line) - 1].startswith(f"    {name}: ")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_setting_of_a_run_is_listed_once_with_what_reads_it(name, monkeypatch):
    monkeypatch.setattr("tailprompt.plan.explain.all_points", lambda _: [])  # of which this says nothing
    whole, layers = scale(name), config.layers_of([f"config/{name}.yaml"])
    points = {point.method.partition("@")[0]: point for point in blocks.all_points(whole)}
    for point in points.values():
        told, found = settings(whole, point), rows(explain(whole, layers, point))
        asked_for = {key for key in told if key not in asked.EXTRAS}
        assert found.keys() == asked_for and all(len(lines) == 1 for lines in found.values())
        for (reads, _), *_ in found.values():
            for part in reads.split(" and "):
                slot, _, owner = part.partition(" ")
                assert part in ("every run", "training") or told[slot] == owner


def test_what_reads_a_setting_is_said(inside):
    found = {name: one[0][0] for name, one in rows(explain(*inside, POINT)).items()}
    wanted = {
        "head": "every run", "eta": "every run", "lr": "training", "loss": "training",
        "tied": "head verbalizer", "keep": "tuner full", "adam_eps": "optimizer adamw",
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_a_key_that_two_components_share_or_have_each_their_own_is_said_to_be_so(two_dropouts, inside):
    whole, layers = inside
    both = rows(explain(whole, layers, replace(POINT, method="cls-tanh@loss=clouded,dropout=0.2")))
    assert [reads for reads, _ in both["dropout"]] == ["head linear and loss clouded"]
    text = explain(whole, layers, replace(POINT, method="cls-tanh@loss=clouded,head.dropout=0.2"))
    each = rows(text)
    assert [each[f"{slot}.dropout"][0][0] for slot in ("head", "loss")] == ["head linear", "loss clouded"]
    assert "dropout" not in each and cells(text)["loss.dropout"][:2] == ("0.5", "default")


def test_a_data_set_for_test_alone_begins_from_what_its_row_names():
    point = Point("lpt", "vit-base-in21k", "imagenet-a", "lpt", 42)
    found = cells(explain(scale("paper"), config.layers_of(["config/paper.yaml"]), point))
    place = "config/datasets.yaml: datasets.imagenet-a.trained_on"
    assert found["start"] == ('{"dataset": "imagenet-lt"}', "data set", place) and "lr" not in found


def test_after_a_long_value_its_row_goes_on_in_the_next_line_in_its_columns(inside):
    whole, layers = inside

    def lines(template: str) -> list[str]:
        row = {**whole["datasets"]["cmid"], "template": template}
        told = {**whole, "datasets": {**whole["datasets"], "cmid": row}}
        return explain(told, layers, POINT).splitlines()

    short, long = (
        lines("{text} {mask}"),
        lines(text := "{text}？这个问题的意图是{mask}。 and more words"),
    )
    column = short[0].index("layer")
    assert {line[column - 2 : column] for line in short if re.match("  [a-z]", line)} == {"  "}
    value, rest = [line for line in long if line not in short]
    assert value.endswith(text) and rest[:column].isspace() and rest[column:].startswith("data set  ")
    assert all(line == line.rstrip() for line in long)


def trained(root: Path, whole: dict, point: Point, **changes) -> None:
    """Write a run.json that says what is asked now, but for changes."""
    weights = made.weights(whole, point.backbone, root)
    wanted = asked.asked(whole, point, settings(whole, point), weights, root)
    laid = {key: {**wanted[key], **new} if isinstance(new, dict) else new for key, new in changes.items()}
    write_json(root / "results" / whole["scale"] / "runs" / point.path / "run.json", {**wanted, **laid})


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The demo, and how its runs are explained in a folder without results."""
    whole, layers = scale("demo"), config.layers_of(["config/demo.yaml"])
    for name in ("config", "workflow"):
        (tmp_path / name).symlink_to(Path(name).absolute())

    def last(method: str, *, point: Point | None = None, **changes) -> list[str]:
        point = point or next(each for each in blocks.all_points(whole) if each.method == method)
        if changes:
            shutil.rmtree(tmp_path / "results", ignore_errors=True)
            trained(tmp_path, whole, point, **changes)
        return explain(whole, layers, point, tmp_path).split("\n\n", 1)[1].splitlines()

    return last


def test_a_run_that_is_not_there_is_said_not_to_be(demo):
    assert demo("prompt")[-1].endswith("/prompt/775 is not there yet.")


def test_a_run_that_was_trained_so_is_said_to_be(demo):
    assert demo("prompt", seconds=3.0)[-1].endswith("/prompt/775 was trained with these settings.")
    told = demo("prompt", computed_in="float32", device="x86_64 CPU")[-1]
    assert told.endswith("was trained with these settings, computed in float32 on x86_64 CPU.")
    assert demo("prompt", extras={"features": ["a"], "vectors": True})[-1].endswith("with these settings.")


def test_what_a_run_was_trained_with_otherwise_stands_beside_what_is_asked(demo):
    lines = demo("prompt", settings={"lr": 0.5, "old": "x"}, verbalizer=[["label", "words"]])
    at = next(
        number for number, line in enumerate(lines) if line.endswith("/prompt/775 was trained otherwise:")
    )
    table = [re.split(r"  +", line.strip()) for line in lines[at + 2 :]]
    assert table[:3] == [["then", "now"], ["lr", "0.5", "0.0005"], ["old", "x", "null"]]
    assert table[3][:2] == ["verbalizer", '[["label", "words"]]'] and table[3][2].endswith("...")
    assert len(table) == 4


def test_another_backbone_weight_or_extra_is_named_too(demo):
    lines = demo("prompt", backbone={"path": "elsewhere"}, weights={"model.safetensors": "abc"})
    text = "\n".join(lines)
    assert re.search(r"\n  backbone\.path +elsewhere +workflow/resources/backbones/bert-mini", text)
    assert re.search(r"\n  weights\.model\.safetensors +abc +[0-9a-f]{37}\.\.\.", text)


def test_a_run_whose_start_has_other_weights_now_is_said_to_be_so(demo):
    assert re.search(
        r"/lpt/42 began from .*/lpt-phase1/42, which has other weights now", demo("lpt", seconds=1)[-1]
    )


def test_a_run_that_the_scale_does_not_make_is_explained_and_said_so(demo):
    point = Point("lpt", "vit-mini", "cifar100", "vpt", 7)
    lines = demo("", point=point)
    assert lines[-2:] == [
        "No table or figure of scale demo takes this run.",
        f"{lines[-1].split(' ')[0]} is not there yet.",
    ]


@pytest.mark.parametrize(
    "path, scale",
    [
        ("glee/bert-mini/a@shots=3/b@lr=1e-05/7", None),
        ("results/demo/runs/glee/bert-mini/a@shots=3/b@lr=1e-05/7", "demo"),
        ("/home/me/runs/x/results/demo/runs/glee/bert-mini/a@shots=3/b@lr=1e-05/7/", "demo"),
        ("./results/demo/runs/glee/bert-mini/a@shots=3/b@lr=1e-05/7", "demo"),
        ("results/demo/from_bundles/runs/glee/bert-mini/a@shots=3/b@lr=1e-05/7", "demo"),
    ],
)
def test_a_run_is_a_folder_of_results_or_a_point_alone(path, scale):
    assert point_at(path) == (scale, Point("glee", "bert-mini", "a@shots=3", "b@lr=1e-05", 7))


@pytest.mark.parametrize(
    "path", ["prompt", "a/b/c/d/e", "a/b/c/1", "results/demo/runs/a/b/c/d/e/1", "a/b/c/d/e/1"]
)
def test_what_is_no_run_is_one_sentence(path):
    with pytest.raises(BadInput, match=f"^{path} is no run; such are results/<scale>/runs/<protocol>/"):
        point_at(path)


RUN = "glee/bert-mini/debian-sections@train=1000,dev=300,test=1000/prompt/775"


def said(capsys, *arguments: str) -> str:
    __main__.dispatch(["explain", *arguments])
    return capsys.readouterr().out


def test_the_command_takes_a_folder_or_a_point_and_the_scales_files_as_snakemake_does(capsys, tmp_path):
    text = said(capsys, f"results/demo/runs/{RUN}")
    assert text == said(capsys, RUN, "--configfile", "config/demo.yaml")
    assert text == said(capsys, RUN, "--configfile", "config/mini.yaml", "--configfile", "config/demo.yaml")
    (tmp_path / "own.yaml").write_text("protocols: {glee: {settings: {lr: 0.25}}}")
    assert (
        cells(said(capsys, RUN, "--configfile", "config/demo.yaml", str(tmp_path / "own.yaml")))["lr"][0]
        == "0.25"
    )
    assert cells(text)["lr"] == ("0.0005", "protocol", "config/demo.yaml: protocols.glee.settings")
    assert cells(said(capsys, RUN))["lr"][0] == "1e-05"  # of the papers' scale


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["prompt"], "prompt is no run"),
        (
            [f"results/foo/runs/{RUN}"],
            "there is no config/foo.yaml; name the files of scale foo with --config",
        ),
        (
            [f"results/mini/runs/{RUN}", "--configfile", "config/demo.yaml"],
            "is of scale mini, and config/demo",
        ),
        ([RUN.replace("prompt", "promt")], "unknown method 'promt'; known: .*prompt"),
        ([RUN.replace("glee/", "gle/")], "unknown protocol 'gle'; known: .*glee"),
        ([RUN.replace("bert-mini", "bert")], "unknown backbone 'bert'; known: "),
        ([RUN.replace("train=1000,", "train=x,")], "train must be a whole number"),
        ([RUN, "--configfile", "no.yaml"], "config file no.yaml: No such file"),
        ([f"{RUN.replace('prompt', 'prompt@gama=1')}"], "no setting gama; known: .*gamma"),
    ],
)
def test_what_the_command_cannot_explain_is_one_sentence(arguments, said):
    with pytest.raises(BadInput, match=said):
        __main__.dispatch(["explain", *arguments])


def test_outside_the_project_it_says_where_to_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="run tailprompt explain in the project's folder"):
        __main__.dispatch(["explain"])


def test_alone_it_lists_every_setting_of_each_component_once_with_default_and_meaning(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    found = rows(said(capsys))
    wanted = documented()
    assert Counter(row["setting"] for row in wanted) == {name: len(lines) for name, lines in found.items()}
    for row in wanted:
        default = row["default"] or "must be given"
        ((_, rest),) = [line for line in found[row["setting"]] if line[0] == row["read by"]]
        assert re.split(r"  +", rest) == [default, row["meaning"]]


@pytest.mark.parametrize(
    "reads, setting, default",
    [
        ("head linear", "dropout", "0.1"),
        ("head predictor", "dropout", "0.0"),
        ("loss ldam", "margin", "0.5"),
        ("every run", "head", "linear"),
        ("training", "batch", "must be given"),
        ("input plain, pooled, prompted, formatted, options, windows", "max_length", "must be given"),
        ("training with input pixels", "flip", "true"),
    ],
)
def test_a_setting_is_listed_with_what_reads_it_and_its_default(reads, setting, default):
    (found,) = [rest for by, rest in rows(every_setting())[setting] if by == reads]
    assert re.split(r"  +", found)[0] == default


@pytest.mark.parametrize("width", [80, 110, 200])
def test_meanings_are_wrapped_to_the_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = every_setting().splitlines()
    assert max(len(line) for line in lines if not line.startswith("read by")) <= width
    words = " ".join(" ".join(lines).split())
    assert all(row["meaning"] in words for row in documented())


def test_a_record_that_is_no_json_is_one_sentence(demo, tmp_path):
    point = next(each for each in blocks.all_points(scale("demo")) if each.method == "prompt")
    file = tmp_path / "results/demo/runs" / point.path / "run.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({})[:1])
    with pytest.raises(BadInput, match="is not JSON"):
        demo("prompt")
