"""The plan of a search: its points, what waits for it, and what its choice then gives."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.plan import blocks, config
from tailprompt.plan.explain import explain
from tailprompt.plan.forecast import forecast
from tailprompt.plan.grids import each_tried
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point
from tailprompt.plan.runnable import check_settings
from tailprompt.plan.starts import start_of

SEARCH = {
    "kind": "search",
    "over": {"lr": [1e-5, 1e-4], "epochs": [10]},
    "of": {"prompt": {"epochs": [1, 2]}},
}
GLEE, LPT = ({"make": {paper: {}}} for paper in ("glee-fair", "lpt-fair"))


def fair(*more):
    """The mini scale with the fair papers alone, and more layers over it."""
    found = {**scale("mini"), "make": {}}
    for layer in more:
        found = merge(found, layer)
    return found


def chosen(tables, **settings):
    """The choice of some searches of LPT: the same settings for all their methods."""
    whole = scale("mini")
    listed = [name for table in tables for name in whole["papers"]["lpt-fair"]["tables"][table]["methods"]]
    cells = {"cifar100-resplit-dev": {name: settings for name in listed}}
    return {"protocols": {"lpt-fair": {"cells": cells}}}


def planned(whole):
    """The names of the tables and figures of a plan."""
    return [name for _, _, name in blocks.shown(whole)]


def test_each_combination_is_a_point_with_its_keys_in_order():
    assert each_tried(SEARCH, "ft") == ["ft@epochs=10,lr=1e-05", "ft@epochs=10,lr=0.0001"]
    assert len(each_tried(SEARCH, "prompt@keep=true")) == 4
    assert each_tried(SEARCH, "prompt@keep=true")[0] == "prompt@keep=true,epochs=1,lr=1e-05"


def test_choose_may_try_other_values_on_a_data_set_on_a_backbone_and_for_a_changed_name():
    choose = {
        "over": "lr",
        "values": [1],
        "of": {"pt": [2], "pt/mini": [3], "pt@loss=focal": [5]},
        "cells": {"ner": {"pt/mini": [4]}},
    }
    spec = {"kind": "scores", "choose": choose}
    for dataset, backbone, lr in (
        ("a", "big", 2),
        ("a", "mini", 3),
        ("ner@n=1", "mini", 4),
        ("ner", "big", 2),
    ):
        assert each_tried(spec, "pt", dataset, backbone) == [f"pt@lr={lr}"]
    assert each_tried(spec, "pt@loss=focal", "a", "mini") == ["pt@loss=focal,lr=5"]
    assert each_tried(spec, "pt@keep=true", "a", "mini") == ["pt@keep=true,lr=3"]
    assert each_tried(spec, "ft", "ner", "mini") == ["ft@lr=1"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"of": {"pt2/bert-minni": [1]}}, "bert-minni"),
        ({"of": {"pt22@loss=focal": [1]}}, "pt22"),
        ({"cells": {"conll": {"pt2": [1]}}}, "conll"),
        ({"cells": {"conll04": {"pt22": [1]}}}, "pt22"),
    ],
)
def test_rows_that_choose_names_and_that_are_none_are_refused(tmp_path, wrong, said):
    change = {"papers": {"ptuning2": {"tables": {"table3": {"choose": wrong}}}}}
    (tmp_path / "own.yaml").write_text(json.dumps(change))
    with pytest.raises(BadInput, match=rf"'{said}' in papers\.ptuning2\.tables\.table3\.choose"):
        config.load(["config/mini.yaml", str(tmp_path / "own.yaml")])


def test_a_name_that_gives_what_is_searched_is_refused():
    with pytest.raises(BadInput, match=r"varies lr already \(over\); .* in of: {ft: {lr: \[...\]}}$"):
        each_tried(SEARCH, "ft@lr=1e-3")


def test_a_search_has_its_own_seed_and_every_method_as_many_points():
    points = blocks.all_points(fair(GLEE))
    assert {point.seed for point in points} == {775}
    counts = Counter((point.dataset, point.method.partition("@")[0]) for point in points)
    assert len(counts) == 3 * 12 and set(counts.values()) == {8}


def test_no_run_is_planned_with_settings_that_were_not_searched():
    whole = fair(GLEE, LPT)
    assert planned(whole) == ["search", "search"]
    assert {search for search, *_ in blocks.waiting(whole)["lpt-fair", "claims"]} == {
        "search",
        "search-phase2",
    }
    point = Point("glee-fair", "bert-mini", "cmid", "prompt", 775)
    with pytest.raises(BadInput, match="no lr is given"):
        check_settings(whole, [point])


def test_phase_two_is_searched_from_phase_one_as_chosen_and_the_rest_waits_for_both():
    first = fair(LPT, chosen(["search"], lr=1e-3, epochs=40))
    assert planned(first) == ["search", "search-phase2"]
    (point, *_) = [point for point in blocks.all_points(first) if point.method.startswith("lpt@")]
    start = start_of(first, point)
    assert (start.method, check_settings(first, [start])[start]["lr"]) == ("lpt-phase1", 1e-3)
    both = fair(LPT, chosen(["search", "search-phase2"], lr=1e-3, epochs=40))
    assert planned(both) == ["search", "search-phase2", "scores", "claims", "claims"]  # table and figure
    assert not blocks.waiting(both)


def test_the_choice_of_a_part_is_not_enough_and_the_plan_says_what_it_lacks(tmp_path):
    cells = {"cmid": {"prompt": {"lr": 1e-4}, "cls-tanh": {"lr": 1e-4, "epochs": 10}}}
    whole = fair(GLEE, {"protocols": {"glee-fair": {"cells": cells}}})
    assert planned(whole) == ["search"]
    (line,) = (
        line for line in forecast(whole, tmp_path).splitlines() if line.startswith("scores of glee-fair")
    )
    assert (
        "search for 12 methods on r52-rebuilt, search for 11 methods on cmid, search for 12 methods" in line
    )
    assert line.endswith("more --configfile: results/mini/tables/glee-fair/search.yaml")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("prompt: {lr: 0.5, epochs: 10}", r"lr is 0\.5, which search 'search' does not try \(.*e-05"),
        ("prompt: {lr: 1.0e-4, epochs: 11}", "epochs is 11, which"),
    ],
)
def test_a_choice_that_its_search_does_not_try_is_refused_with_its_file(tmp_path, cell, said):
    given = tmp_path / "own.yaml"
    given.write_text(f"protocols: {{glee-fair: {{cells: {{cmid: {{{cell}}}}}}}}}\n")
    with pytest.raises(BadInput, match=rf"own\.yaml: protocols\.glee-fair\.cells\.cmid\.prompt\.{said}"):
        config.load(["config/mini.yaml", given])


def test_what_was_searched_does_not_change_with_what_is_chosen():
    before, after = fair(LPT), fair(LPT, chosen(["search", "search-phase2"], lr=1.0, epochs=1))
    points = blocks.points(blocks.shown(before)["tables", "lpt-fair", "search"])
    assert check_settings(before, points) == check_settings(after, points)


def test_claims_keep_the_data_sets_of_a_set_and_the_original_takes_the_same():
    found = scale("mini")["papers"]["glee-fair"]["tables"]["claims"]
    block = blocks.expand(scale("mini"), found)
    whole = scale("mini")["papers"]["glee"]["tables"]["claims"]["claims"]
    assert [claim["id"] for claim in block["claims"]] == [name for name in whole if "few-shot" not in name]
    assert {name for claim in block["claims"] for name in claim["datasets"]} == {
        *scale("mini")["sets"]["fair"]
    }
    original = block["original"]
    assert [claim["datasets"] for claim in original["claims"]] == [c["datasets"] for c in block["claims"]]
    assert {point.protocol for point in blocks.points(block)} == {"glee", "glee-fair"}


def test_data_sets_that_no_claim_is_about_are_said():
    sets = {"long_tailed": ["cmid"], "fair": ["ctc"]}
    cells = dict.fromkeys(
        scale("mini")["papers"]["glee-fair"]["tables"]["search"]["methods"], {"lr": 1e-4, "epochs": 10}
    )
    given = {"protocols": {"glee-fair": {"cells": {"ctc": cells}}}}
    with pytest.raises(BadInput, match=r"claims of glee-fair has no run; name in sets\.fair data sets that"):
        blocks.shown(fair(GLEE, {"sets": sets}, given))


def test_explain_names_the_file_of_the_choice(tmp_path):
    file = tmp_path / "search.yaml"
    file.write_text("protocols: {glee-fair: {cells: {cmid: {prompt: {epochs: 30, lr: 1.0e-4}}}}}\n")
    files = ["config/mini.yaml", str(file)]
    point = Point("glee-fair", "bert-mini", "cmid", "prompt", 775)
    text = explain(config.load(files), config.layers_of(files), point, tmp_path)
    assert f"{file}: protocols.glee-fair.cells.cmid.prompt" in text


@pytest.mark.parametrize(
    "change, cell",
    [
        ({"tables": {"search": {"methods": ["prompt", "prompt@tied=false"]}}}, "r52-rebuilt.prompt"),
        ({"sets": ["cmid@train=100", "cmid@train=200"]}, "cmid.cls-tanh"),
    ],
)
def test_what_would_choose_for_one_cell_twice_is_refused(change, cell):
    sets = {"sets": {"fair": change["sets"]}} if "sets" in change else {}
    tables = {"papers": {"glee-fair": {"tables": change.get("tables", {})}}}
    with pytest.raises(BadInput, match=f"^table search of glee-fair: .* share one cell .*, {cell};"):
        blocks.shown(fair(GLEE, sets, tables))


@pytest.mark.parametrize(
    "claims, said",
    [
        ("searched: [scores]", "searched 'scores' is no search under protocol glee-fair"),
        ("searched: [nothing]", "'nothing' .* is none of the papers.glee-fair.tables"),
        ("original: glee-fair", "original is its own protocol"),
        ("original: nothing", "'nothing' .* is none of the protocols"),
        ("only: nothing", "'nothing' .* is none of the sets"),
    ],
)
def test_a_table_that_names_no_search_protocol_or_set_is_refused(tmp_path, claims, said):
    (tmp_path / "own.yaml").write_text(f"papers: {{glee-fair: {{tables: {{claims: {{{claims}}}}}}}}}\n")
    with pytest.raises(BadInput, match=said):
        config.load(["config/mini.yaml", str(tmp_path / "own.yaml")])


@pytest.mark.parametrize(
    "over", ["{lr: 1.0e-3}", "{lr: []}", "{lr: [1e-3]}", "{}", "[lr]", '{"l r": [1]}', "{lr: [1.0, 1.0]}"]
)
def test_values_that_no_name_of_a_run_can_hold_are_refused(tmp_path, over):
    (tmp_path / "own.yaml").write_text(f"papers: {{glee-fair: {{tables: {{search: {{over: {over}}}}}}}}}\n")
    if over == "{}":  # merging with nothing changes nothing
        assert config.load(["config/mini.yaml", str(tmp_path / "own.yaml")])
        return
    with pytest.raises(BadInput, match="over"):
        config.load(["config/mini.yaml", str(tmp_path / "own.yaml")])
