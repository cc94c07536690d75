"""The configuration of a first round: the keys of config/mine.yaml, never written over in silence."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tailprompt.data.looked import Looked, look
from tailprompt.errors import BadInput
from tailprompt.plan import first_round
from tailprompt.plan.blocks import all_points
from tailprompt.plan.config import load


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
    assert {point.method for point in points} == {*methods} and len(points) == 2 * 3 * len(methods)
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
    looked = Looked(Path("data/x"), language, columns, 100_000, 9, 2, 128, ())
    file = tmp_path / "c.yaml"
    first_round.settle(looked, file, anew=False)
    whole = load([file])
    assert whole["sets"]["mine"] == ["my-x@train=1500,dev=300,test=1000"]
    assert whole["sets"]["curve"] == ["my-x@train=750,dev=300,test=1000", *whole["sets"]["mine"]]
    assert whole["datasets"]["my-x"]["singletons"] == "train" and all_points(whole)


def test_the_times_are_told_by_method(tmp_path):
    first_round.settle(tickets(tmp_path), tmp_path / "c.yaml", anew=False)
    runs, methods = first_round.told(load([tmp_path / "c.yaml"]))
    assert "36 runs, about" in runs and "tfidf" in methods
