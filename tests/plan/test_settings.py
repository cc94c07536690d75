"""Points, their settings in order, the sweep grammar, and what each scale runs."""

import json
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import toy
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.inputs.templates import TEMPLATES
from tailprompt.plan import blocks
from tailprompt.plan import settings as plan
from tailprompt.plan.grids import each_tried
from tailprompt.plan.layers import merge
from tailprompt.plan.points import Point, parse
from tailprompt.plan.references import check_names
from tailprompt.plan.rows import backbone_of, dataset_row, form_of
from tailprompt.plan.runnable import check_settings, check_start
from tailprompt.plan.starts import start_of, starts_of


@pytest.fixture(scope="module")
def paper():
    return scale("paper")


POINT = Point("glee", "bert-base-chinese", "cmid", "cls-tanh", 775)


def test_a_points_path_names_it_and_back():
    assert POINT.path == "glee/bert-base-chinese/cmid/cls-tanh/775"
    assert Point.at(POINT.path) == POINT


@pytest.mark.parametrize(
    "name, base, changes",
    [
        ("prompt", "prompt", {}),
        ("prompt@lr=1e-4,loss=focal", "prompt", {"lr": 1e-4, "loss": "focal"}),
        ("cmid@shots=32,sample=10", "cmid", {"shots": 32, "sample": 10}),
        ("a@tied=false", "a", {"tied": False}),
    ],
)
def test_after_the_at_come_changes_read_as_json_else_as_words(name, base, changes):
    assert parse(name) == (base, changes)


@pytest.mark.parametrize(
    "name",
    [
        "a@b",
        "a@b=",
        "a@=1",
        "a@b=1,c",
        "a@",
        "a@b=1,",
        "a@b=c/d",
        "a@b={c}",
        "a@b=it's",
        "a@b=1\n",
        "a@b= 1",
        "a@b=1=2",
        "a@b=\0",
        "a@b=é",
    ],
)
def test_a_change_without_key_or_value_is_refused(name):
    with pytest.raises(BadInput, match="key=value"):
        parse(name)


def test_settings_are_laid_over_each_other_in_order_and_the_last_wins(paper):
    layers = [
        {"methods": {"cls-tanh": {"loss": "focal"}}},
        {"datasets": {"cmid": {"max_length": 9}}},
        {"protocols": {"glee": {"settings": {"gamma": 3.0}}}},
        {"backbones": {"bert-base-chinese": {"settings": {"gamma": 4.0}}}},
        {"methods": {"cls-tanh": {"gamma": 5.0}}},
        {"protocols": {"glee": {"datasets": {"cmid": {"gamma": 6.0}}}}},
        {"protocols": {"glee": {"cells": {"cmid": {"cls-tanh": {"gamma": 7.0}}}}}},
    ]
    seen = []
    for layer in layers:
        paper = merge(paper, layer)
        seen.append(plan.settings(paper, POINT)["gamma"])
    assert seen == [1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert plan.settings(paper, replace(POINT, method="cls-tanh@gamma=8"))["gamma"] == 8
    assert plan.settings(paper, POINT)["max_length"] == 9


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("image-embedding", "logistic_regression"),
        ("image-knn", "neighbours"),
        ("image-class-means", "class_means"),
        ("linear", "predictor"),
    ],
)
def test_a_data_set_of_a_protocol_puts_no_other_component_in_the_place_of_a_methods_own(paper, method, head):
    point = Point("across", "vit-mini", "digits", method, 1)
    assert plan.settings(paper, point)["head"] == head


@pytest.mark.parametrize(
    ("dataset", "method", "said"),
    [
        ("cifar100-resplit", "linear@select=f1", "select is chosen on dev rows, .* take select: last"),
        ("cifar100-resplit", "image-knn", "neighbours is chosen on dev rows, .* state one neighbours"),
        ("cifar100", "image-embedding", "C is chosen on dev rows, .* has none"),
        ("cifar100-resplit-dev", "linear@select=f1", ""),
        ("cifar100-resplit", "linear@select=last", ""),
        ("digits", "image-knn", ""),
    ],
)
def test_what_is_chosen_on_dev_needs_rows_of_dev(paper, dataset, method, said):
    point = Point("across", "vit-mini", dataset, method, 1)
    without = merge(
        paper, {"protocols": {"across": {"cells": {"cifar100": {"image-embedding": {"C": [1, 10]}}}}}}
    )
    with pytest.raises(BadInput, match=said) if said else nullcontext():
        check_settings(without, [point])


def test_a_change_to_a_setting_that_is_not_there_is_refused_with_those_that_are(paper):
    with pytest.raises(BadInput, match="no setting gama; known: .*gamma"):
        plan.settings(paper, replace(POINT, method="cls-tanh@gama=2"))


@pytest.mark.parametrize(
    "cut", ["shots=2.5", "shots=0", "train=true", "dev=null", "test=ten", "sample=-1", "imbalance=Infinity"]
)
def test_a_cut_is_a_whole_number_or_a_ratio(paper, cut):
    with pytest.raises(BadInput, match=f"'cmid@{cut}': .* must be a .*number from "):
        dataset_row(paper, f"cmid@{cut}")
    assert dataset_row(paper, "cmid@imbalance=2.5,sample=0")["cut"] == {"imbalance": 2.5, "sample": 0}


@pytest.mark.parametrize("cut", ["imbalance=9,train=9", "shots=4,train=9", "shots=4,imbalance=9", "sample=3"])
def test_a_cut_that_contradicts_itself_or_cuts_nothing_is_refused(paper, cut):
    with pytest.raises(
        BadInput, match=f"'cmid@{cut}': a cut takes one of imbalance, shots, total, train at most"
    ):
        dataset_row(paper, f"cmid@{cut}")


@pytest.mark.parametrize(
    "cut, plain",
    [
        ("dev=6,train=9", "train=9,dev=6"),
        ("sample=1,shots=2", "shots=2,sample=1"),
        ("imbalance=9.0", "imbalance=9"),
    ],
)
def test_one_cut_has_one_name(paper, cut, plain):
    with pytest.raises(BadInput, match=f"'cmid@{cut}' is written 'cmid@{plain}'"):
        dataset_row(paper, f"cmid@{cut}")
    assert dataset_row(paper, f"cmid@{plain}")["name"] == "cmid"


def test_a_name_that_no_file_system_takes_is_refused():
    with pytest.raises(BadInput, match="longer than 200 characters"):
        parse(f"prompt@loss={'x' * 200}")


@pytest.mark.parametrize("key", ["title", "start"])
def test_title_and_start_are_not_varied_after_an_at(paper, key):
    with pytest.raises(BadInput, match=f"no setting {key}; known: "):
        plan.settings(paper, replace(POINT, method=f"cls-tanh@{key}=prompt"))
    assert starts_of(paper, replace(POINT, method=f"cls-tanh@{key}=prompt")) == []


def test_a_title_is_no_setting(paper):
    changed = merge(paper, {"methods": {"cls-tanh": {"title": "Another"}}})
    assert plan.settings(changed, POINT) == plan.settings(paper, POINT)


def test_the_few_shot_cells_have_the_scripts_own_settings(paper):
    rte = plan.settings(paper, Point("glee", "bert-base-uncased", "rte", "prompt", 775))
    assert (rte["lr"], rte["batch"], rte["select"]) == (3e-5, 2, "accuracy")


def own(**row):
    """The scale of one's own data, with one data set of this row."""
    mine = scale("mine")
    return {**mine, "datasets": {"own": row}, "sets": {**mine["sets"], "mine": ["own"]}}


def own_settings(**row):
    return plan.settings(own(**row), Point("mine", "bert-base-uncased", "own", "prompt", 1))


def test_a_row_without_template_or_length_has_its_languages():
    english, chinese = (own_settings(path="a.csv", language=language) for language in ("en", "zh"))
    assert english["template"] == "{text} This is about {mask} ." and english["max_length"] == 128
    assert chinese["template"] != english["template"] and english["verbalizer"] is None
    paired = own_settings(path="a.csv", language="en", columns={"pair": "b"})
    assert "{pair}" in paired["template"]
    stated = own_settings(path="a.csv", language="en", template="{mask} {text}", max_length=9)
    assert (stated["template"], stated["max_length"]) == ("{mask} {text}", 9)


@pytest.mark.parametrize(
    "row, form",
    [
        ({"columns": {"choices": "c", "pair": "p"}}, "mcc"),
        ({"files": {"all": {"path": "a.csv", "columns": {"choices": ["a", "b"]}}}}, "mcc"),
        ({"loader": "race"}, "mcc"),
        ({"columns": {"pair": "p"}}, "spc"),
        ({"loader": "next_sentence_pair"}, "spc"),
    ],
)
def test_the_form_of_texts_is_that_of_their_columns_or_loader_and_no_other(row, form):
    row = {"name": "own", **row}
    assert form_of(row) == form_of({**row, "form": form}) == form
    for other in {"ssc", "spc", "mcc"} - {form}:
        with pytest.raises(
            BadInput, match=f"data set 'own': .*, so its form is {form}, not {other}; correct"
        ):
            form_of({**row, "form": other})


def test_single_texts_may_be_shown_the_words_of_the_classes_as_options():
    assert form_of({}) == "ssc" and form_of({"form": "mcc"}) == "mcc"


def test_a_template_as_released_is_the_data_sets_own_of_that_name_where_it_has_one():
    row = {"path": "a.csv", "language": "en", "template": "{text} a {mask}"}

    def shown(method, **more):
        return plan.settings(own(**row, **more), Point("mine", "bert-base-uncased", "own", method, 1))[
            "template"
        ]

    assert shown("prompt") == shown("prompt-as-released") == row["template"]
    released = {"template_as_released": "{text} b {mask}"}
    assert shown("prompt", **released) == row["template"]
    assert shown("prompt-as-released", **released) == released["template_as_released"]


def test_a_table_without_a_column_of_pairs_has_none():
    with pytest.raises(BadInput, match="'own': form spc is of pairs; name the column: columns: {pair"):
        form_of({"name": "own", "form": "spc", "columns": {"text": "t"}})
    with pytest.raises(BadInput, match=r"'{text} {pair} {mask}' has {pair}; allowed here: {text} and {mask}"):
        checked("asks")
    assert checked("asks", pair="p")


def checked(method, **columns):
    mine = own(path="a.csv", language="en", template="{text} {mask}", columns=columns)
    ft = mine["methods"]["ft"]
    shown = {"words": "{text} is {mask}", "asks": "{text} {pair} {mask}"}
    mine["methods"] = {**mine["methods"], **{name: {**ft, "template": text} for name, text in shown.items()}}
    return check_settings(mine, [Point("mine", "bert-base-uncased", "own", method, 1)])


@pytest.mark.parametrize(
    "method, columns, said",
    [
        (
            "prompt",
            {"pair": "p"},
            "template '{text} {mask}' has no {pair}, which its texts have; name it there",
        ),
        ("words", {"pair": "p"}, "template '{text} is {mask}' has no {pair}, which"),
        ("words", {"choices": "c"}, "template '{text} is {mask}' has no {choices}, which"),
        (
            "prompt",
            {"choices": "c"},
            "input prompted shows no options, which its texts have; allowed: formatted, options",
        ),
    ],
)
def test_a_run_that_would_not_see_a_pair_or_its_options_is_refused(method, columns, said):
    with pytest.raises(BadInput, match=f"^{method} on own under mine: {said}"):
        checked(method, **columns)


@pytest.mark.parametrize(
    "method, columns",
    [("cls-tanh", {"pair": "p"}), ("cls-tanh", {"choices": "c"}), ("ft", {"choices": "c"}), ("ft", {})],
)
def test_a_run_that_sees_all_of_a_text_is_not(method, columns):
    assert checked(method, **columns)


@pytest.mark.parametrize(
    "row, method, said",
    [
        ({"loader": "squad"}, "prompt", "input prompted does not suit a data set that has passages with"),
        ({"loader": "squad"}, "linear-plain", "input plain does not suit a data set that has passages"),
        ({"loader": "squad"}, "linear-head", "head is 'linear'; allowed with input windows: predictor"),
        ({}, "windows", "no unanswerable is given, which is read only where input is windows"),
        ({}, "options", "input options is for texts with options, which its texts do not have"),
    ],
)
def test_passages_are_read_in_windows_and_options_where_there_are_some(row, method, said):
    mine = own(path="a.json", language="en", template="{text} {mask}", max_length=384, **row)
    rows = {
        "linear-plain": {"input": "plain", "head": "predictor"},
        "linear-head": {"head": "linear"},
        "windows": {"input": "windows", "head": "predictor"},
        "options": {"input": "options"},
    }
    mine["methods"] = {**mine["methods"], **{name: {"title": name, **told} for name, told in rows.items()}}
    with pytest.raises(BadInput, match=said):
        check_settings(mine, [Point("mine", "bert-base-uncased", "own", method, 1)])


def test_another_language_needs_a_template_a_length_and_a_backbone_of_its_own():
    with pytest.raises(BadInput, match="'own' has no template, and 'languages' none for 'de'"):
        own_settings(path="a.csv", language="de")
    given = {"path": "a.csv", "language": "de", "template": "{text} {mask}", "max_length": 64}
    assert own_settings(**given)["template"] == "{text} {mask}"
    with pytest.raises(BadInput, match="mine.backbones has none for 'de', .* data set 'own'; known: en, zh"):
        blocks.all_points(own(**given))


def test_a_data_set_without_title_is_called_by_its_name():
    assert blocks.about(own(path="a.csv", language="en"), "own")["title"] == "own"


FIRST = {"tfidf", "embedding", "knn", "class-means"}  # which have no learning rate


def test_ones_own_data_get_every_method_with_the_same_learning_rates_and_seeds():
    block = blocks.shown(scale("mine"))["tables", "mine", "table2"]
    tried = Counter(parse(point.method)[0] for point in blocks.points(block))
    own = {name for name in toy.TEXTS if not name.endswith(("-as-released", "-words"))} | {"lora", "setfit"}
    assert set(tried) == own | FIRST
    assert {name: number for name, number in tried.items() if number != 3 * 3} == dict.fromkeys(FIRST, 3)


def test_ones_own_images_get_twelve_methods_alike_and_the_first_phase_that_the_second_begins_from():
    images = scale("mine-images")
    points = blocks.all_points(images)
    tried = Counter(parse(point.method)[0] for point in points if "@" in point.method)
    assert len(tried) == 12 and set(tried) < set(toy.IMAGES) and set(tried.values()) == {3 * 3}
    begun = {start_of(images, point) for point in points} - {None}
    rest = {point for point in points if "@" not in point.method}
    assert {point for point in rest if not point.method.startswith("image-")} == begun
    assert {point.method for point in rest - begun} == {name for name in toy.FITTED if "image-" in name}
    assert {(point.method, point.seed) for point in begun} == {("lpt-phase1", seed) for seed in (1, 2, 3)}
    lpt = next(point for point in points if point.method.startswith("lpt@"))
    assert plan.settings(images, lpt)["shared_blocks"] == 4  # of vit-mini's 8
    larger = merge(images, {"protocols": {"mine": {"backbones": {"image": "vit-base-in21k"}}}})
    assert plan.settings(larger, replace(lpt, backbone="vit-base-in21k"))["shared_blocks"] == 6  # of 12


def test_a_start_names_what_differs_and_is_run_too(paper):
    start = {"method": "cls-tanh", "seed": 0}
    changed = merge(paper, {"methods": {"prompt": {"start": start}}})
    prompt = replace(POINT, method="prompt")
    assert start_of(changed, prompt) == replace(POINT, seed=0)
    assert start_of(changed, POINT) is None
    assert replace(POINT, seed=0) in blocks.all_points(changed)


def test_a_grid_is_one_run_for_each_value(paper):
    block = paper["papers"]["mine"]["tables"]["table2"] | {"sets": "few_shot", "methods": ["prompt"]}
    runs = {point.method for point in blocks.points(blocks.expand(paper, block))}
    assert runs == {"prompt@lr=1e-05", "prompt@lr=3e-05", "prompt@lr=0.0001"}
    rates = {plan.settings(paper, replace(POINT, method=method))["lr"] for method in runs}
    assert rates == {1e-5, 3e-5, 1e-4}


def points_of(configuration, protocol):
    return [point for point in blocks.all_points(configuration) if point.protocol == protocol]


def test_the_papers_scale_is_every_cell_of_tables_2_3_and_5_with_five_seeds(paper):
    for table, cells in {"table2": 5 * 5, "table3": 5 * 11, "table5": 3 * 5}.items():
        block = blocks.shown(paper)["tables", "glee", table]
        assert len(blocks.points(block)) == 5 * cells
    points = points_of(paper, "glee")
    printed = [point for point in points if not point.dataset.endswith("_as_released")]
    assert len(printed) == 5 * (5 * 12 + 3 * 5)
    assert len(points) == len(set(points)) == len(printed) + 5 * (5 * 12 + 3 * 5)
    assert set(Counter(point.seed for point in points)) == {775, 776, 777, 778, 779}


def test_the_papers_scale_is_lpt_too_with_three_seeds(paper):
    points = points_of(paper, "lpt")
    printed = {"places-lt": 35 + 2 * 4, "cifar100": 8 * 4, "inaturalist18": 2, "imagenet-lt": 5}
    shifted = dict.fromkeys(["sketch", "real", "v2", "a", "r"], 4)
    cells = Counter(parse(point.dataset)[0] for point in points)
    wanted = {**printed, **{f"imagenet-{name}": n for name, n in shifted.items()}, "objectnet": 4}
    assert cells == {name: 3 * n for name, n in wanted.items()}


def test_the_demo_runs_a_few_methods_of_the_papers_on_what_ships():
    demo = scale("demo")
    points = blocks.all_points(demo)
    papers = {"glee": {"debian-sections"}, "lpt": {"digits"}, "ppt": {"debian-topics", "prompts-single"}}
    papers |= {"across": {"debian-sections"}}
    run = {(point.protocol, parse(point.dataset)[0]) for point in points}
    assert run == {(paper, dataset) for paper, datasets in papers.items() for dataset in datasets}
    assert [sum(point.protocol == paper for point in points) for paper in papers] == [10, 5, 9, 4]
    assert not any("files" in demo["datasets"][parse(name)[0]] for name in blocks.all_datasets(demo))


def test_the_mini_scale_runs_all_twelve_methods_of_glee_five_times_on_four_sets():
    points = blocks.all_points(scale("mini"))
    assert sum(point.protocol == "glee" for point in points) == 12 * 5 * 4


def limited(*methods, **changes):
    """The demo, running these methods only."""
    return merge(scale("demo"), {"protocols": {"glee": {"methods": list(methods)}}, **changes})


def test_a_method_with_an_at_in_a_protocols_list_stands_for_the_blocks_method_in_tables_figures_and_claims():
    demo = limited("cls-tanh", "prompt@keep=true")
    check_names(demo, [])
    points = points_of(demo, "glee")
    assert {point.method for point in points} == {"cls-tanh", "prompt@keep=true"}
    assert all(plan.settings(demo, point)["keep"] == ("@" in point.method) for point in points)
    claim = blocks.shown(demo)["tables", "glee", "claims"]["claims"][0]
    assert claim["datasets"] and claim["method"] == "prompt@keep=true" and claim["than"] == "cls-tanh"
    both = limited("prompt@keep=true", "prompt", "cls-tanh")
    assert len(points_of(both, "glee")) == 3 * 2


def test_a_table_that_takes_no_run_is_refused_unless_it_shows_data_alone():
    table = {
        "make": {"glee": {"tables": ["table5"], "figures": []}},
        "sets": {"few_shot": ["debian-sections"]},
    }
    with pytest.raises(
        BadInput, match="table5 of glee has no run; name methods of it in protocols.glee.methods"
    ):
        blocks.all_points(limited("cls-tanh-eta", **table))
    with pytest.raises(BadInput, match="table claims of glee has no run"):
        blocks.all_points(limited("cls-tanh", make={"glee": {"tables": ["claims"], "figures": []}}))
    statistics = {"make": {"glee": {"tables": ["table1"], "figures": ["figure1"]}}}
    assert points_of(limited("cls-tanh", **statistics), "glee") == []


@pytest.mark.parametrize(
    "method, start, said",
    [
        ({}, {"keep": True}, None),
        ({}, {}, "keeps its head only; set keep: true in the scale's file, methods: {first: {keep: true}}"),
        ({}, {"keep": True, "head": "verbalizer", "input": "prompted"}, "has another head"),
        ({}, {"keep": True, "norm": "fresh"}, "has another head"),
        (
            {"start": {"method": "first", "backbone": "bert-base-uncased"}},
            {"keep": True},
            "has another backbone",
        ),
        ({}, {"tuner": "frozen"}, None),  # its body is the checkpoint's
        ({"tuner": "frozen"}, {"tuner": "frozen"}, None),
        ({"tuner": "frozen"}, {}, "keeps its head only"),
    ],
)
def test_a_start_must_keep_what_the_run_goes_on_from(paper, method, start, said):
    rows = {"first": start, "second": {"start": {"method": "first"}, **method}}
    changed = merge(paper, {"methods": rows})
    second = replace(POINT, method="second")
    if said is None:
        return check_start(changed, second)
    with pytest.raises(BadInput, match=f"'second' starts from glee/.*/first/775, which {said}"):
        check_settings(changed, [second])


@pytest.mark.parametrize(
    "method, start, said",
    [
        ("lpt", "vpt", None),
        ("lpt", "lpt-balanced", None),
        (
            "lpt",
            "vpt-shallow",
            "prompts_shallow; group_prompts goes on from group_prompts, prompts$",
        ),
        ("lpt", "linear", "frozen; group_prompts goes on from"),
        ("vpt", "linear", "frozen; prompts goes on from prompts"),
        ("vpt", "lpt", "group_prompts; prompts goes on from prompts"),
        ("linear", "vpt", "prompts; frozen goes on from frozen"),
        ("linear", "finetune", "full; frozen goes on from frozen"),
        ("finetune", "linear", None),
    ],
)
def test_a_tuner_of_images_goes_on_from_one_whose_weights_it_has(paper, method, start, said):
    kept = {name: {"keep": True} if "tune" in name else {} for name in (start, method)}
    alike = {"predictor": "linear", "loss": "cross_entropy"}
    rows = {start: {**alike, **kept[start]}, method: {**alike, **kept[method], "start": {"method": start}}}
    changed = merge(paper, {"methods": rows})
    point = Point("lpt", "vit-mini", "cifar100@imbalance=100", method, 42)
    if said is None:
        return check_start(changed, point)
    with pytest.raises(
        BadInput, match=f"'{method}' starts from lpt/.*/{start}/42, which has the tuner {said}"
    ):
        check_settings(changed, [point])


@pytest.mark.parametrize(
    "change, said",
    [
        ("lpt@shared_blocks=8", "shared_blocks 8 leaves no block .* 8: choose 0 to 7"),
        ("linear@border=16", "border 16 leaves nothing of 32 pixels"),
        ("linear@views=5", "views is 1, or 5 with test_zoom above 1, not 5 with 1"),
        ("linear@views=5,test_zoom=1.01", "not 5 with 1.01"),
    ],
)
def test_what_a_vit_at_hand_cannot_do_is_known_before_anything_runs(paper, change, said):
    point = Point("lpt", "vit-mini", "cifar100@imbalance=100", change, 42)
    with pytest.raises(BadInput, match=said):
        check_settings(paper, [point])


ON_BOTH = {"linear", "linear-balanced", "finetune", "finetune-balanced"}  # no word of what they read


@pytest.mark.parametrize("method", sorted(set(toy.IMAGES) - ON_BOTH))
def test_a_method_of_images_is_refused_on_texts(paper, method):
    point = replace(POINT, method=method)
    said = "read only where .* is pixels; data set 'cmid' is text|tuner is '.*prompts.*'; allowed on text: "
    with pytest.raises(BadInput, match=said):
        check_settings(paper, [point])


def test_linear_probes_and_fine_tuning_are_methods_of_both(paper):
    assert all(check_settings(paper, [replace(POINT, method=method) for method in ON_BOTH]).values())


@pytest.mark.parametrize("method", toy.TEXTS)
def test_a_method_of_texts_is_refused_on_images(paper, method):
    point = Point("lpt", "vit-base-in21k", "cifar100@imbalance=100", method, 42)
    said = (
        "is read only where head is linear; data set 'cifar100.*' is image|"
        "(input is 'prompted'; allowed on image: pixels)|head is 'linear'; allowed with input pixels: "
    )
    with pytest.raises(BadInput, match=said):
        check_settings(paper, [point])


@pytest.mark.parametrize("change", ["head=linear", "input=plain"])
def test_a_run_on_images_reads_pixels_into_the_head_of_images(paper, change):
    point = Point("lpt", "vit-base-in21k", "cifar100@imbalance=100", f"linear@{change}", 42)
    with pytest.raises(BadInput, match=f"linear@{change} on cifar100.*; allowed .*: (predictor, .*|pixels)$"):
        check_settings(paper, [point])


def test_classes_that_scores_of_tables_and_claims_and_figures_name_are_asked_of_their_data_sets():
    choose = {"over": "lr", "values": [1.0e-3], "by": "recall/class:fonts"}
    table = {"table2": {"metrics": ["f1/all", "f1/class:perl"], "winner": "f1/class:a/b", "choose": choose}}
    figure = {"figure4": {"classes": ["muzik"]}}
    demo = merge(scale("demo"), {"papers": {"glee": {"tables": table, "figures": figure}}})
    everything = blocks.shown(demo)
    name = everything["tables", "glee", "table2"]["datasets"][0]["dataset"]
    drawn = name in [row["dataset"] for row in everything["figures", "glee", "figure4"]["datasets"]]
    assert drawn and blocks.classes_asked(everything, name) == ["a/b", "fonts", "muzik", "perl"]
    assert blocks.classes_asked(everything, "cmid") == []


def prompting(paper, **changes):
    """The paper's configuration with a row of each kind that soft prompts need."""
    soft = {"input": "formatted", "template": "soft", "head": "verbalizer", "tuner": "soft_prompt"}
    made = {
        "languages": {"en": {"prompts": {"spc": "rte", "ssc": "r52", "unified": "boolq"}}},
        "methods": {
            "soft": {"title": "Soft", **soft},
            "adapted": {"title": "Adapted", **soft, "backbone": "lm"},
            "own": {"title": "Own", **soft, "start": {"method": "soft", "prompts": "own", "seed": 1}},
            "unified": {"title": "Unified", **soft, "start": {"method": "soft", "prompts": "unified"}},
            "imported": {"title": "Imported", **soft, "start": {"folder": "adapters/a"}},
        },
        "protocols": {"glee": {"backbones": {"en-lm": "t5-mini-lm"}}},
    }
    return merge(merge(paper, made), changes)


@pytest.mark.parametrize(
    "method, dataset, start",
    [
        ("own", "ecom", ("prompts-single-zh", "soft", 1)),
        ("own", "boolq", ("rte", "soft", 1)),
        ("own", "r52", ("r52", "soft", 1)),
        ("unified", "rte", ("boolq", "soft", 775)),
    ],
)
def test_a_pretrained_prompt_is_that_of_the_form_and_language_of_the_data(paper, method, dataset, start):
    made = prompting(paper)
    point = Point("glee", "bert-base-uncased", dataset, method, 775)
    found = start_of(made, point)
    assert (found.dataset, found.method, found.seed) == start
    assert plan.settings(made, point)["start"]["dataset"] == start[0]
    with pytest.raises(BadInput, match="unknown form of prompts in languages"):
        start_of({**made, "languages": {}}, point)


def test_an_adapter_to_start_from_is_no_run(paper):
    point = Point("glee", "bert-base-uncased", "rte", "imported", 775)
    made = prompting(paper)
    assert starts_of(made, point) == []
    assert plan.settings(made, point)["start"] == {"folder": "adapters/a"}


def test_a_method_may_ask_for_another_backbone_of_the_protocol(paper):
    made = prompting(paper)
    assert backbone_of(made, "glee", "rte", "adapted@lr=1") == "t5-mini-lm"
    assert backbone_of(made, "glee", "rte", "soft") == "bert-base-uncased"
    with pytest.raises(BadInput, match="has none for 'zh-lm'"):
        backbone_of(made, "glee", "ecom", "adapted")


def test_runs_are_told_only_the_settings_that_they_read(paper):
    made = prompting(paper)
    plain, soft = (
        plan.settings(made, Point("glee", "bert-base-uncased", "rte", method, 775))
        for method in ("cls-tanh", "soft")
    )
    assert {"template", "language", "length", "init", "prompt_scale"} <= soft.keys() - plain.keys()
    assert soft["template"] == "{text} {mask} . {pair}" and "activation" not in soft
    with pytest.raises(BadInput, match="length is read only where tuner is soft_prompt or "):
        plan.settings(made, Point("glee", "bert-base-uncased", "rte", "prompt@length=3", 775))


def test_a_start_must_have_a_prompt_of_the_same_length(paper):
    point = Point("glee", "bert-base-uncased", "rte", "own@length=20", 775)
    with pytest.raises(BadInput, match="has prompts of another length"):
        check_start(prompting(paper), point)
    none = prompting(paper, methods={"own": {"start": {"method": "prompt"}}})
    with pytest.raises(BadInput, match="has prompts of another length"):
        check_start(none, replace(point, method="own"))


def test_choose_may_try_other_values_for_a_method():
    spec = {"kind": "scores", "choose": {"over": "lr", "values": [1, 2], "of": {"ft": [3]}}}
    assert each_tried(spec, "ft@keep=true") == ["ft@keep=true,lr=3"]
    assert each_tried(spec, "pt") == ["pt@lr=1", "pt@lr=2"]
    assert each_tried({"kind": "scores"}, "pt") == ["pt"]


def test_a_name_that_gives_what_its_table_varies_is_refused():
    spec = {"kind": "scores", "choose": {"over": "lr", "values": [1, 2]}}
    with pytest.raises(BadInput, match=r"'lpt@lr=3e-4': its table varies lr already .* choose: {of: {lpt: "):
        each_tried(spec, "lpt@lr=3e-4")


@pytest.mark.parametrize("name, runs", [("paper", 3517), ("mini", 1563)])
def test_all_of_ppt_is_planned_and_no_run_of_it_lacks_its_prompt(name, runs):
    whole = scale(name)
    points = [point for point in blocks.all_points(whole) if point.protocol == "ppt"]
    assert len(points) == runs
    starts = {start_of(whole, point) for point in points} - {None}
    released = {"ppt-pretrain-as-released"} if name == "paper" else set()
    assert {start.method for start in starts} == {"ppt-pretrain"} | released and starts <= set(points)


def test_the_released_templates_differ_by_data_set_where_the_code_has_them_so():
    whole = scale("paper")

    def pattern(dataset, method):
        return plan.settings(whole, Point("ppt", "t5-xxl", dataset, method, 10))["template"]

    assert pattern("cb@total=32", "ft-as-released") == "{text} ? {mask} ▁ . {pair}"
    assert pattern("superglue-boolq@total=32", "ft-as-released") == "question: {text} ? {mask} . {pair}"
    assert pattern("superglue-rte@total=32", "ft-as-released") == "{pair} ? {mask} . {text}"
    assert pattern("superglue-rte@total=32", "pt-as-released") == TEMPLATES["soft_as_released"]["en"]["spc"]
    assert "we ask {pair} ? {choices} ?" in pattern("race-m@total=32", "ft-as-released")


def at_length(paper, length, folder=None, **row):
    """Check the settings of a run of texts and of a soft prompt of 100 on a backbone of this row."""
    if folder:
        row["path"] = str(folder)
        for name in {"model.safetensors", "tokenizer.json"} - {file.name for file in Path(folder).iterdir()}:
            Path(folder, name).touch()
    made = prompting(paper, backbones={"near": row}, datasets={"rte": {"max_length": length}})
    points = [Point("glee", "near", "rte", method, 775) for method in ("soft", "cls-tanh")]
    return [lambda point=point: check_settings(made, [point]) for point in points]


@pytest.mark.parametrize(
    "row, stated, positions",
    [
        ({"family": "bert", "path": "workflow/resources/backbones/bert-mini"}, None, 512),
        ({"family": "bert", "recipe": "bert-mini"}, None, 512),
        ({"family": "roberta"}, {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        (
            {"family": "bert", "random": {"max_position_embeddings": 256}},
            {"max_position_embeddings": 512},
            256,
        ),
    ],
)
def test_a_text_and_its_prompt_fit_the_positions_of_a_backbone_at_hand(
    paper, tmp_path, row, stated, positions
):
    if stated:
        (tmp_path / "config.json").write_text(json.dumps(stated))
    folder = tmp_path if stated else None
    soft, plain = at_length(paper, positions - 100, folder, **row)
    assert soft() and plain()
    soft, plain = at_length(paper, positions - 99, folder, **row)
    said = f"max_length {positions - 99} is more than the {positions - 100} positions of backbone 'near'"
    with pytest.raises(
        BadInput, match=f"^soft on rte under glee: {said} beside its soft prompt; lower it, or length$"
    ):
        soft()
    assert plain()
    with pytest.raises(
        BadInput, match=f"max_length {positions + 1} is more than the {positions} positions .*; lower it$"
    ):
        at_length(paper, positions + 1, folder, **row)[1]()


@pytest.mark.parametrize("text", ["[", "[1]", '{"max_position_embeddings": "many"}'])
def test_positions_that_no_one_knows_yet_are_the_jobs_to_check(paper, tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    assert at_length(paper, 9999, tmp_path, family="bert")[0]()
    assert at_length(paper, 9999, "workflow/resources/backbones/t5-mini", family="t5")[0]()
