"""slot.key speaks to one component: in rows, protocols, names of methods, sweeps, folders and training."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import toy
from scales import scale, small_project

from tailprompt.errors import BadInput
from tailprompt.plan import blocks, config
from tailprompt.plan.grids import each_tried
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point, parse, vary
from tailprompt.plan.runnable import check_settings
from tailprompt.plan.settings import resolved, settings
from tailprompt.report.tables.notes import picked

POINT = Point("glee", "bert-base-chinese", "cmid", "cls-tanh", 775)
BOTH = ("head.dropout", "loss.dropout")


def told(method: str = "cls-tanh", **places: dict) -> dict:
    """The settings of a method under what a protocol, a row and a cell give."""
    given = {
        "protocols": {
            "glee": {
                "settings": {"loss": "clouded", **places.get("protocol", {})},
                "cells": {"cmid": {"cls-tanh": places.get("cell", {})}},
            }
        },
        "methods": {"cls-tanh": places.get("row", {})},
    }
    return settings(merge(scale("paper"), given), replace(POINT, method=method))


@pytest.mark.parametrize(
    "places, method, both",
    [
        ({}, "cls-tanh", (0.1, 0.5)),
        ({"protocol": {"dropout": 0.3}, "row": {"head.dropout": 0.2}}, "cls-tanh", (0.2, 0.3)),
        ({"protocol": {"head.dropout": 0.2}, "row": {"dropout": 0.3}}, "cls-tanh", (0.3, 0.3)),
        ({"row": {"loss.dropout": 0.2}, "cell": {"dropout": 0.3}}, "cls-tanh", (0.3, 0.3)),
        ({"row": {"dropout": 0.2}, "cell": {"loss.dropout": 0.3}}, "cls-tanh", (0.2, 0.3)),
        ({"row": {"dropout": 0.2, "loss.dropout": 0.4}}, "cls-tanh", (0.2, 0.4)),
        ({"cell": {"dropout": 0.3}}, "cls-tanh@head.dropout=0.2", (0.2, 0.3)),
        ({"cell": {"head.dropout": 0.3}}, "cls-tanh@dropout=0.2", (0.2, 0.2)),
        ({}, "cls-tanh@head.dropout=0.2,loss.dropout=0", (0.2, 0.0)),
    ],
)
def test_the_last_layer_wins_however_it_names_a_key(two_dropouts, places, method, both):
    found = told(method, **places)
    assert tuple(found.get(name, found.get("dropout")) for name in BOTH) == both
    assert ("dropout" in found) == (both[0] == both[1])


def test_each_value_has_the_layer_that_gave_it(two_dropouts):
    paper = merge(
        scale("paper"), {"protocols": {"glee": {"settings": {"loss": "clouded", "loss.dropout": 0.3}}}}
    )
    origins = resolved(paper, replace(POINT, method="cls-tanh@head.dropout=0.2")).origins
    assert [origins[name].name for name in BOTH] == ["name of the method", "protocol"]
    assert origins["tau"] is None


def test_a_run_is_trained_with_both_values_and_says_both(two_dropouts, tmp_path):
    folder = toy.run(tmp_path, "cls-tanh", epochs=1, loss="clouded", **{"loss.dropout": 0.25})
    found = json.loads((folder / "run.json").read_text("utf-8"))["settings"]
    assert [found[name] for name in BOTH] == [0.1, 0.25] and "dropout" not in found
    whole = toy.run(tmp_path / "whole", "cls-tanh", epochs=1, loss="clouded", **{"loss.dropout": 0})
    plain = toy.run(tmp_path / "plain", "cls-tanh", epochs=1)
    assert toy.scores(whole).equals(toy.scores(plain)) and not toy.scores(folder).equals(toy.scores(plain))


def test_a_name_with_one_is_a_folder_and_back():
    name = vary(vary("cls-tanh", "head.dropout", 0.2), "lr", 1e-4)
    assert name == "cls-tanh@head.dropout=0.2,lr=0.0001"
    assert parse(name) == ("cls-tanh", {"head.dropout": 0.2, "lr": 1e-4})
    point = replace(POINT, method=name)
    assert Point.at(point.path) == point
    assert settings(scale("paper"), point)["dropout"] == 0.2


@pytest.mark.parametrize("name", ["a@.b=1", "a@b.=1", "a@a.b.c=1", "a@a..b=1", "a@.=1", "a@a/b=1"])
def test_what_is_neither_key_nor_slot_and_key_is_refused(name):
    with pytest.raises(BadInput, match="key=value"):
        parse(name)


@pytest.mark.parametrize(
    "change, said",
    [
        ("head.lr=1", "no setting head.lr; known: .*dropout"),
        ("hed.dropout=0.2", "no setting hed.dropout; known: "),
        ("loss.margin=0.2", "loss.margin is read only where loss is ldam or asymmetric_gcl_as_released"),
        ("head.tied=false", "head.tied is read only where head is verbalizer"),
        ("head.dropout=2", "head.dropout: 2 is greater than or equal to the maximum of 1"),
        ("head.dropout=high", "head.dropout is 'high', not a finite number"),
        ("head.activation=relo", "activation is 'relo'; allowed with linear: tanh, relu, gelu"),
    ],
)
def test_one_that_nothing_reads_or_takes_is_refused(change, said):
    with pytest.raises(BadInput, match=f"cls-tanh@{change}.*{said}"):
        check_settings(scale("paper"), [replace(POINT, method=f"cls-tanh@{change}")])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project whose configuration is small."""
    return small_project(tmp_path_factory.mktemp("project"))


def small(root, method: dict, protocol: dict | None = None) -> dict:
    """The settings of cls-tanh with these in its row, and in the protocol."""
    given = {"methods": {"cls-tanh": method}, "protocols": {"glee": {"settings": protocol or {}}}}
    return settings(config.load(values=given, root=root), POINT)


def test_a_row_or_a_protocol_of_the_yaml_may_hold_one(root):
    assert small(root, {"head.dropout": 0.25})["dropout"] == 0.25
    assert small(root, {}, {"head.dropout": 0.25})["dropout"] == 0.25
    assert small(root, {"head.predictor": "cosine"})["logit_scale"] == 20.0
    assert "norm_eps" in small(root, {"head.norm": "fresh"})


@pytest.mark.parametrize(
    "row, said",
    [
        (
            {"head.dropout": 1},
            "methods.cls-tanh.head.dropout: 1 is greater than or equal to the maximum of 1",
        ),
        ({"head.droput": 0.1}, "unknown key 'head.droput' in methods.cls-tanh; known: .*dropout"),
        ({"loss.dropout": 0.1}, "unknown key 'loss.dropout' in methods.cls-tanh"),
        ({"head.norm": "frsh"}, "cls-tanh.head.norm is 'frsh'; allowed: none, fresh, pretrained"),
        ({"input.language": "en"}, "'input.language' is not a setting of a method"),
    ],
)
def test_one_that_is_wrong_there_is_one_sentence(root, row, said):
    with pytest.raises(BadInput, match=f"^--config: .*{said}"):
        small(root, row)


def test_a_table_may_choose_among_its_values():
    choose = {"over": "head.dropout", "values": [0.0, 0.5], "by": "f1/all"}
    demo = merge(scale("demo"), {"papers": {"glee": {"tables": {"table3": {"choose": choose}}}}})
    block = blocks.shown(demo)["tables", "glee", "table3"]
    of_one = [run["run"] for run in block["runs"] if run["method"] == "cls-relu"]
    assert of_one == ["cls-relu@head.dropout=0.0", "cls-relu@head.dropout=0.5"]
    point = next(point for point in blocks.points(block) if point.method == of_one[1])
    assert check_settings(demo, [point])[point]["dropout"] == 0.5
    reports = {point.dataset: {"title": "Sections"}}
    (line,) = picked({(point.dataset, "cls-relu"): of_one[1]}, block, reports)
    assert line == "head.dropout with the best mean dev f1/all on Sections: CLS-tuning (R) 0.5 (of 2)."
    with pytest.raises(BadInput, match="its table varies head.dropout already"):
        each_tried({"kind": "scores", "choose": choose}, "cls-relu@head.dropout=0.1")


@pytest.mark.parametrize(
    "one, other",
    [
        ("cls-tanh@dropout=0.2", "cls-tanh@head.dropout=0.2"),
        ("cls-tanh@dropout=0.2,lr=0.001", "cls-tanh@lr=0.001,dropout=0.2"),
        ("cls-tanh@lr=0.001", "cls-tanh@lr=1e-3"),
        ("cls-tanh@head.dropout=0.20", "cls-tanh@head.dropout=0.2"),
    ],
)
def test_two_names_of_one_run_in_a_scale_are_refused_in_a_sentence(one, other):
    cells = [replace(POINT, method=name) for name in (one, other)]
    paper = scale("paper")
    for seeds in ((775,), (775, 776)):
        points = [replace(cell, seed=seed) for cell in cells for seed in seeds]
        with pytest.raises(
            BadInput, match=f"^'{one}' and '{other}' are two names of one run on cmid"
        ) as error:
            check_settings(paper, points)
        assert "\n" not in str(error.value)
    check_settings(paper, [cells[0], replace(cells[1], dataset="iflytek")])


def test_names_of_other_runs_are_taken(two_dropouts):
    names = ["cls-tanh", "cls-tanh@dropout=0.2", "cls-tanh@head.dropout=0.2", "cls-tanh@loss.dropout=0.2"]
    paper = merge(scale("paper"), {"protocols": {"glee": {"settings": {"loss": "clouded"}}}})
    check_settings(paper, [replace(POINT, method=name) for name in names])
