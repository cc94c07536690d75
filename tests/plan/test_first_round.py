"""The configuration of a first round: the keys of config/mine.yaml, never written over in silence."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tailprompt.data.looked import Looked, look
from tailprompt.data.table import load as prepared
from tailprompt.errors import BadInput
from tailprompt.plan import first_budget, first_hours, first_round, forecast
from tailprompt.plan.blocks import all_datasets, all_points
from tailprompt.plan.config import load
from tailprompt.plan.first_budget import lengths, longest, unspoken
from tailprompt.plan.first_rows import row_of
from tailprompt.plan.hours import START, by_rule, of_an_epoch
from tailprompt.plan.rows import dataset_row
from tailprompt.plan.settings import resolved

PARAMETERS = 7_304_960  # of bert-mini
SAMPLE = ("a text of a few words",) * 20


def tickets(folder, rows=60):
    file = folder / "My Tickets (2).csv"
    pd.DataFrame({"it's": [f"text {i}" for i in range(rows)], "label": list("aab") * (rows // 3)}).to_csv(
        file
    )
    return look(file, text="it's")


def test_what_is_written_loads_and_asks_for_each_method_on_all_and_on_half(tmp_path):
    looked, file = tickets(tmp_path), tmp_path / "c.yaml"
    assert "written" in first_round.settle(looked, file, anew=False)
    whole = load([file])
    points = all_points(whole)
    assert {point.dataset for point in points} == {"my-my-tickets-2", "my-my-tickets-2@train=21"}
    methods = whole["papers"]["try"]["tables"]["first"]["methods"]
    assert {point.method for point in points} == {*methods} and len(points) == 3 * (len(methods) + 3)
    assert whole["datasets"]["my-my-tickets-2"]["columns"] == {"text": "it's", "label": "label"}
    assert {"scale", "make", "datasets", "sets", "protocols", "device"} <= yaml.safe_load(
        file.read_text()
    ).keys()


def test_tuned_methods_keep_their_weights_for_predict(tmp_path):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    rows = yaml.safe_load((tmp_path / "c.yaml").read_text())["methods"]
    assert rows["prompt"] == {"keep": True} and "keep" not in rows["linear"]


def test_a_configuration_that_is_there_is_used_as_it_is(tmp_path):
    looked, file = tickets(tmp_path), tmp_path / "c.yaml"
    for content in ("scale: mine", f"datasets: {{other: {{path: '{looked.path}'}}}}"):
        file.write_text(content)
        assert "used as it is" in first_round.settle(looked, file, anew=False)
        assert file.read_text() == content
        assert "written anew" in first_round.settle(looked, file, anew=True) and file.read_text() != content
    assert "used as it is" in first_round.settle(looked, file, anew=False, asked={"text": "it's"})


@pytest.mark.parametrize(
    "path, asked, words",
    [
        ("b/My Tickets (2).csv", {}, "is of .*a.My Tickets .*, not of .*b.My"),
        ("a/My Tickets (2).tsv", {}, "not of"),
        ("a/My Tickets (2).csv", {"label": "kind"}, "column label as label, not kind"),
        ("a/My Tickets (2).csv", {"text": "label"}, "column it's as text, not label"),
    ],
)
def test_a_configuration_of_other_data_or_columns_is_never_taken_for_these(tmp_path, path, asked, words):
    (tmp_path / "a").mkdir()
    looked, file = tickets(tmp_path / "a"), tmp_path / "c.yaml"
    first_round.settle(looked, file, anew=False)
    other = replace(looked, path=tmp_path / path)
    with pytest.raises(BadInput, match=words):
        first_round.settle(other, file, anew=False, asked=asked)


@pytest.mark.parametrize("language", ["en", "zh", "image"])
def test_a_large_file_is_cut_to_a_first_round(tmp_path, language):
    columns = {} if language == "image" else {"text": "text", "label": "label"}
    splits = {"train": [69_990, 10], "dev": [9_999, 1], "test": [19_998, 2]}
    looked = Looked(Path("data/x"), language, columns, 100_000, 9, 2, SAMPLE, (), splits)
    file = tmp_path / "c.yaml"
    said = first_round.settle(looked, file, anew=False)
    assert (
        "takes 1,500 of the 70,000 train rows, 300 of the 10,000 dev rows, 1,000 of the 20,000 test" in said
    )
    whole = load([file])
    assert whole["sets"]["mine"] == ["my-x@train=1500,dev=300,test=1000"]
    assert whole["sets"]["curve"] == ["my-x@train=750,dev=300,test=1000", *whole["sets"]["mine"]]
    assert whole["datasets"]["my-x"]["singletons"] == "train" and all_points(whole)


def test_the_times_of_methods_are_told_where_one_takes_a_minute(tmp_path, monkeypatch):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    for each, told in ((50.0, True), (1.0, False)):
        took = lambda _c, points, *_, each=each, **__: dict.fromkeys(points, each)  # noqa: E731
        monkeypatch.setattr(first_hours, "seconds_left", took)
        runs, *methods = first_hours.told(whole)
        assert "27 runs, " in runs and bool(methods) == told == ("tfidf" in "".join(methods))


def test_how_far_a_round_is(tmp_path, monkeypatch):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    monkeypatch.setattr(first_hours, "seconds_left", lambda _c, points, *_, **__: dict.fromkeys(points, 1.0))
    for number, says in ((0, "0 of 27 runs done, less than"), (2, "2 of 27 runs"), (27, "all 27 runs are")):
        ended = lambda _c, points, _, number=number: points[:number]  # noqa: E731
        monkeypatch.setattr(first_hours, "finished_of", ended)
        assert first_hours.left(whole).startswith(says)


@pytest.mark.parametrize("doubt, note", [("100% of its letters are Hebrew", True), ("", False)])
def test_a_doubt_about_the_language_is_noted_in_the_row(doubt, note):
    splits = {"train": [90, 60], "dev": [9, 6], "test": [20, 9]}
    columns = {"text": "t", "label": "l"}
    looked = Looked(Path("x.csv"), "en", columns, 194, 2, 0, SAMPLE, (), splits, doubt=doubt)
    row = yaml.safe_load(row_of(looked, 48, 0.1))
    assert row.get("note") == (f"read as English, though {doubt}" if note else None)


def record(steps, seconds):
    return {"steps": steps, "seconds": seconds}


def test_the_time_with_another_backbone_grows_with_that_of_the_slowest_method(tmp_path):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    whole, name = load([tmp_path / "c.yaml"]), "my-my-tickets-2"

    def minutes(seconds):
        runs = [("tfidf", "tfidf", record(0, 9999.0)), ("prompt", "bert-mini", record(250, seconds)),
                ("linear", "bert-mini", record(250, 5.0))]  # fmt: skip
        same = {"dataset": name, "seed": 1, "there": True}
        table = [same | {"method": m, "run": m, "backbone": b, "record": r} for m, b, r in runs]
        (said,) = first_hours.elsewhere(whole, pd.DataFrame(table))
        assert "of Prompt-tuning here" in said and "`" not in said
        return int(re.search(r"about (\d+) minutes", said)[1])

    assert minutes(60.0) == pytest.approx(2 * minutes(30.0), abs=2) and minutes(30.0) > 1


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", [1, -1], ids=["short first", "long first"])
def test_what_a_round_takes_in_all_hardly_changes_as_its_runs_end(tmp_path, speed, order):
    """The start of a run is what the rule knows least; here it takes three times what that says."""
    columns, splits = {"text": "text", "label": "label"}, {"train": [1000, 50], "dev": [150], "test": [300]}
    looked = Looked(Path("data/x"), "en", columns, 1500, 2, 0, SAMPLE, (), splits)
    first_round.settle(looked, tmp_path / "c.yaml", anew=False)
    config = load([tmp_path / "c.yaml"])
    points = all_points(config)
    rule = {point: by_rule(config, point, Path("."), cpu=True) for point in points}
    took = {point: 3 * START + speed * (seconds - START) for point, seconds in rule.items()}
    in_turn, said = sorted(points, key=lambda point: order * rule[point]), []
    for ended in range(len(points)):
        done = {point: took[point] for point in in_turn[:ended]}
        left = forecast.seconds_left(config, in_turn[ended:], done, Path("."), cpu=True)
        said.append(sum(done.values()) + sum(left.values()))
    assert max(said) < 2.5 * min(said) and said[-1] == pytest.approx(sum(took.values()), rel=0.25)


def test_only_what_is_left_is_counted(tmp_path, monkeypatch):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    slow = lambda _config, point, *_: 120.0 if point.method != "prompt" else None  # noqa: E731
    monkeypatch.setattr(forecast, "finished", slow)
    said = first_hours.told(whole)
    assert said[0].startswith("3 runs of 27, the others are done, about")
    monkeypatch.setattr(forecast, "finished", lambda *_: 120.0)
    assert first_hours.told(whole)[0] == "all 27 runs are done"


def test_a_method_that_no_table_takes_is_said_before_anything_runs(tmp_path):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    protocol = whole["protocols"]["mine"] | {"methods": ["tfidf", "knn"]}
    said = first_hours.told(whole | {"protocols": whole["protocols"] | {"mine": protocol}})
    assert any("no run" in line and "knn" in line for line in said)


def test_a_method_joins_where_the_configuration_lists_them(tmp_path):
    file = tmp_path / "c.yaml"
    first_round.settle(tickets(tmp_path), file, anew=False)
    file.write_text(file.read_text().replace("[tfidf, ", "[tfidf, knn, "))
    points = [point for point in all_points(load([file])) if point.method == "knn"]
    assert len(points) == 2 * 3


def split_file(folder, **rows):
    """A file with a column of splits, of 22 classes as far as the rows go."""
    table = [(f"text {split} {i}", f"class {i % 22}", split) for split, n in rows.items() for i in range(n)]
    pd.DataFrame(table, columns=["body", "team", "split"]).to_csv(folder / "s.csv", index=False)
    return look(folder / "s.csv")


@pytest.mark.parametrize(
    "rows, cut",
    [
        ({"train": 180, "dev": 59, "test": 60}, ""),
        ({"train": 916, "dev": 305, "test": 305}, "@dev=300"),
        ({"train": 180, "test": 1200}, "@test=1000"),
        ({"train": 2000, "valid": 400, "test": 1500}, "@train=1500,dev=300,test=1000"),
        ({"train": 60, "dev": 44, "test": 44}, ""),
    ],
    ids=str,
)
def test_a_file_with_splits_is_cut_by_what_each_has(tmp_path, rows, cut):
    looked = split_file(tmp_path, **rows)
    first_round.settle(looked, tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    assert whole["sets"]["mine"] == [f"my-s{cut}"]
    for dataset in all_datasets(whole):  # each cut is possible
        row = dataset_row(whole, dataset)
        table, _ = prepared(row, {"all": tmp_path / "s.csv"})
        assert len(table) and row["cut"].items() <= table["split"].value_counts().to_dict().items()


def test_as_many_classes_as_a_cut_cannot_hold_are_cut_to_what_they_need(tmp_path):
    splits = {"train": [3] * 1000, "dev": [1] * 1000, "test": [1] * 1000}
    looked = Looked(Path("data/x"), "en", {"text": "t", "label": "l"}, 5000, 1000, 0, SAMPLE, (), splits)
    first_round.settle(looked, tmp_path / "c.yaml", anew=False)
    whole = load([tmp_path / "c.yaml"])
    assert whole["sets"] == whole["sets"] | {"mine": ["my-x@train=2000"], "curve": []}
    assert {point.dataset for point in all_points(whole)} == {"my-x@train=2000"}


def looked_at(language="en", texts=SAMPLE, **splits):
    """What a look at a file would have found, of classes a, b, ..."""
    columns = {} if language == "image" else {"text": "text", "label": "label"}
    classes = len(splits["train"])
    return Looked(Path("data/x"), language, columns, 1500, classes, 0, texts, (), splits)


def settled(folder, looked):
    first_round.settle(looked, folder / "c.yaml", anew=True)
    return load([folder / "c.yaml"])


@pytest.mark.parametrize("rows", [41, 300, 1066, 9000])
def test_methods_are_trained_for_as_many_steps_whatever_the_rows(tmp_path, rows):
    whole = settled(tmp_path, looked_at(train=[rows - 5, 5], dev=[rows // 10, 1], test=[rows // 5, 2]))
    told, an_epoch = whole["protocols"]["mine"]["settings"], -(-min(rows, 1500) // first_budget.BATCH)
    numbers = lengths(SAMPLE, whole["backbones"]["bert-mini"], whole["languages"]["en"]["template"])
    steps = first_budget.steps(3, PARAMETERS, numbers.mean())
    assert round(told["epochs"] * an_epoch) == pytest.approx(steps, abs=2) and steps > first_budget.FEWEST
    assert told["patience"] == told["epochs"] and told["select"] == ("f1" if rows >= 500 else "last")


@pytest.mark.parametrize("train", [[3, 3], [9, 5]])
def test_a_tiny_file_of_short_texts_is_trained_for_epochs_that_yaml_reads_as_numbers(tmp_path, train):
    looked = replace(looked_at(train=train, dev=[1, 1], test=[2, 2]), texts=("a b c",) * 8)
    whole = settled(tmp_path, looked)
    of_methods = [row["warmup"] for row in whole["methods"].values() if "warmup" in row]
    assert max(of_methods) >= 100 and all(type(each) in (int, float) for each in of_methods)


@pytest.mark.parametrize("language", ["en", "image"])
@pytest.mark.parametrize("dev, step", [(30, "last"), (120, "f1")])
def test_few_dev_rows_choose_no_step_but_the_settings_of_a_fitted_head(tmp_path, language, dev, step):
    whole = settled(tmp_path, looked_at(language, train=[160, 40], dev=[dev - 6, 6], test=[60, 14]))
    for point in all_points(whole):
        asked = resolved(whole, point)
        assert asked.settings["select"] == ("f1" if asked.run.training is None else step), point.method


@pytest.mark.parametrize("language", ["en", "zh", "image"])
@pytest.mark.parametrize("words", [3, 30, 300])
def test_cheap_rows_take_more_steps_and_vectors_that_are_computed_once_the_most(tmp_path, language, words):
    texts = ("good " * words,) * 20
    whole = settled(tmp_path, looked_at(language, texts, train=[800, 200], dev=[100, 20], test=[300, 80]))
    allowed = first_budget.FEWEST, first_budget.MOST
    for method, point in first_budget.firsts(whole).items():
        asked = resolved(whole, point)
        if asked.run.training is None:
            continue
        told, passes = asked.settings, of_an_epoch(asked.run)
        steps = told["epochs"] * 125
        assert allowed[0] - 1 <= steps <= allowed[1] + 1 and told["patience"] == told["epochs"], method
        assert round(steps) >= 3 * told["evaluate_every"] > 0
        steady = whole["protocols"]["mine"]["settings"]["epochs"] * 125
        assert (
            round(steps) == first_budget.MOST
            if passes == 0
            else steps >= min(first_budget.MOST, 3 / passes * steady - 20)
        )
        assert told["lr"] == 0.003 or method != "linear" or language == "image"


@pytest.mark.parametrize("words, most", [(3, 16), (10, 24), (60, 128)])
def test_texts_are_read_as_long_as_most_are_if_the_time_allows(words, most):
    backbone = {"path": "workflow/resources/backbones/bert-mini"}
    tokens = lengths(["good " * words] * 95 + ["good " * 400] * 5, backbone, "{text} It is {mask}.")
    assert tokens.min() == words + 2 + 4  # [CLS], [SEP] and the template's `It is [MASK] .`
    assert longest(tokens, parameters=1e6) == next(n for n in first_budget.LENGTHS if n >= words + 6) <= most
    assert longest(tokens, parameters=1e12) == first_budget.LENGTHS[0]
    long = lengths(["good " * 400] * 20, backbone, "{text} It is {mask}.")
    read = longest(long, PARAMETERS)
    assert first_budget.seconds(3, PARAMETERS, read) * first_budget.FEWEST <= first_budget.SECONDS
    assert first_budget.seconds(3, PARAMETERS, read + 8) * first_budget.FEWEST > first_budget.SECONDS


@pytest.mark.parametrize(
    "train, winner, tail",
    [
        ([870, 130], "f1/rarest", False),
        ([250, 250, 250, 250], "accuracy/all", False),
        ([260, 240], "accuracy/all", False),
        ([700, 200, 80, 20], "f1/all", True),
    ],
    ids=["rare one of two", "balanced", "two alike", "tail"],
)
@pytest.mark.parametrize("language", ["en", "image"])
def test_the_metric_that_decides_fits_the_classes(tmp_path, language, train, winner, tail):
    parts = {split: [n // 4 for n in train] for split in ("dev", "test")}
    whole = settled(tmp_path, looked_at(language, train=train, **parts))
    tables = whole["papers"]["try-images" if language == "image" else "try"]["tables"]
    assert tables["first"]["winner"] == winner == tables["first"]["metrics"][0]
    assert tables["curve"]["metrics"] == tables["first"]["metrics"]
    assert ("f1/tail" in tables["first"]["metrics"]) == tail


def test_classes_that_the_backbone_has_no_words_for_leave_out_what_reads_their_names(tmp_path):
    rows = {"text": [f"so good {i}" for i in range(60)], "label": ["\U0001f600", "billing", "billing"] * 20}
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    looked = look(tmp_path / "a.csv")
    said = next(line for line in first_round.unread(looked) if "names of classes" in line)
    assert "no tokens of its own for \U0001f600;" in said
    first_round.settle(looked, tmp_path / "c.yaml", anew=False)
    methods = load([tmp_path / "c.yaml"])["papers"]["try"]["tables"]["first"]["methods"]
    assert "prompt" not in methods and "cls-relu" in methods


@pytest.mark.parametrize("names", [["x-y", "x_y"], ["\U0001f600", "\u05d0\u05d1\u05d2\u05d3"]])
def test_classes_of_the_same_or_unknown_tokens_are_unspoken(names):
    backbone = {"path": "workflow/resources/backbones/bert-mini"}
    assert unspoken([*names, "billing"], backbone) == names


def test_tokens_that_the_backbone_does_not_know_are_said_where_they_are_many(tmp_path):
    for name, mark in (("a", " \U0001f600"), ("b", "")):
        rows = {"text": [f"so good {i}{mark}" for i in range(60)], "label": list("xyy") * 20}
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    said = first_round.unread(look(tmp_path / "a.csv"))
    assert len(said) == 1 and "of the tokens are unknown to bert-mini" in said[0]
    assert first_round.unread(look(tmp_path / "b.csv")) == []


def test_frozen_bodies_read_whole_images_once(tmp_path):
    whole = settled(tmp_path, looked_at("image", train=[600, 100], dev=[60, 10], test=[120, 20]))
    passes = {
        method: of_an_epoch(resolved(whole, point).run)
        for method, point in first_budget.firsts(whole).items()
        if method.startswith("linear")
    }
    assert passes == {"linear": 0, "linear-balanced": 0}


def test_a_run_on_images_has_fewer_seconds_than_one_on_texts():
    images, texts = (first_round.allowed(looked_at(kind, train=[9, 9])) for kind in ("image", "en"))
    assert images < texts and first_budget.steps(3, 4e6, 64, images) < first_budget.steps(3, 4e6, 64, texts)
