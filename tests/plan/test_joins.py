"""Which sets may be joined, and what a run may begin from: refused in the plan, in a sentence."""

from dataclasses import replace

import pytest

from tailprompt.errors import BadInput
from tailprompt.plan import blocks
from tailprompt.plan.config import load
from tailprompt.plan.jobs import data, runs
from tailprompt.plan.points import Point
from tailprompt.plan.rows import dataset_row
from tailprompt.plan.runnable import check_settings
from tailprompt.plan.starts import start_of

POINT = Point("ptuning2", "bert-mini", "conll04", "mpt2", 11)


def config(**rows):
    """The paper scale's configuration with other rows."""
    return load(["config/paper.yaml"], rows)


@pytest.fixture(scope="module")
def small():
    return config(datasets={"ner-joined": {"joins": ["conll03", "conll04"]}})


@pytest.mark.parametrize(
    "row, said",
    [
        (
            {"joins": ["conll03", "conll12"]},
            r"data set 'x' joins sets of different tasks \(conll03 has tags; conll12 has semantic roles\)",
        ),
        ({"joins": ["conll03", "squad"]}, "different tasks .*squad has passages with answers"),
        ({"joins": ["conll03", "sst2"]}, "joins sst2, but only sets of .*tags are joined"),
        ({"joins": ["ner-joined"]}, "joins ner-joined, itself of joined sets; name its parts"),
        ({"joins": ["conll03"], "language": "zh"}, "is of the language 'zh', and conll03 of another"),
        ({"joins": ["squad", "squad2"]}, "joins squad2, where .* set unanswerable: true, so that it holds"),
        ({"joins": []}, "joins: .* at least one|datasets.x.joins"),
        ({"joins": ["conll05x"]}, "'conll05x' in datasets.x.joins is none of the datasets"),
        ({"joins": ["conll03"], "shares": {"dev": 0.1}}, "shares"),
        ({"joins": ["conll03"], "path": "a.csv"}, "datasets.x"),
    ],
    ids=lambda value: None,
)
def test_what_cannot_be_joined_is_refused(row, said):
    with pytest.raises(BadInput, match=said):
        config(datasets={"x": {"language": "en", **row}})


def test_a_set_is_in_joined_sets_only():
    with pytest.raises(BadInput, match="joined_in of data set 'conll03' is 'squad', which joins nothing"):
        config(datasets={"conll03": {"joined_in": "squad"}})


def test_joined_sets_are_read_as_their_parts_and_cut_as_they_are(small):
    row = dataset_row(small, "ner-joined@train=300")
    assert row["loader"] == "tags" and row["cut"] == {"train": 300}
    parts = [f"results/paper/data/{part}@train=300.parquet" for part in ("conll03", "conll04")]
    assert data.parts(small, "ner-joined@train=300") == parts and data.parts(small, "conll03") == []


def test_a_run_starts_from_the_joined_sets_of_its_set_with_its_cut_and_seed(small):
    cut = replace(POINT, dataset="conll04@train=300,dev=100")
    first = start_of(small, cut)
    assert first == replace(cut, dataset="ner-joined@train=300,dev=100", method="mpt2-joined")
    assert runs.start_weights(small, cut) == [f"results/paper/runs/{first.path}/weights.safetensors"]
    assert check_settings(small, [cut, first])[cut]["start"]["head"] == "fresh"


def test_a_set_that_is_joined_nowhere_has_no_such_start(small):
    with pytest.raises(BadInput, match="'mpt2' starts from joined sets, and data set 'sst2' is in none"):
        start_of(small, replace(POINT, dataset="sst2"))


@pytest.mark.parametrize(
    "methods, method, dataset, said",
    [
        (
            {
                "taken": {
                    "title": "Taken",
                    "tuner": "prefix",
                    "start": {"method": "mpt2-joined", "prompts": "joined"},
                }
            },
            "taken",
            "conll04",
            "has a head for each of joined sets; state head: fresh",
        ),
        ({}, "mpt2@length=20", "conll04", "has prompts of another length"),
        ({"mpt2-joined": {"loss": "focal"}}, "mpt2-joined", "ner-joined", "loss focal is of the head"),
        ({"mpt2-joined": {"tau": [1.0]}}, "mpt2-joined", "ner-joined", "eta and tau are of the head"),
        ({"mpt2-joined": {"sampler": "balanced"}}, "mpt2-joined", "ner-joined", "take shuffled"),
    ],
    ids=["head", "length", "loss", "tau", "sampler"],
)
def test_what_joined_sets_leave_without_a_meaning_is_refused(methods, method, dataset, said):
    changed = config(methods=methods)
    with pytest.raises(BadInput, match=said):
        check_settings(changed, [replace(POINT, method=method, dataset=dataset)])


def test_a_head_is_fresh_whatever_the_start_had():
    rows = {"other": {"tuner": "prefix", "predictor": "cosine"}}
    rows |= {"taken": {"title": "Taken", "tuner": "prefix", "start": {"method": "other"}}}
    with pytest.raises(BadInput, match="has another head"):
        check_settings(config(methods=rows), [replace(POINT, method="taken")])
    rows["taken"]["start"]["head"] = "fresh"
    assert check_settings(config(methods=rows), [replace(POINT, method="taken")])


def test_a_scale_prepares_the_parts_of_joined_sets_and_pretrains_on_them_once_a_seed():
    changed = config(
        make={"ptuning2": {"tables": ["table3"], "figures": []}, "glee": None, "lpt": None, "ppt": None},
        sets={"ner": ["conll04"]},
        papers={"ptuning2": {"tables": {"table3": {"methods": ["pt2", "mpt2"]}}}},
    )
    assert {*blocks.all_datasets(changed)} == {"conll04", "ner-joined", "conll03", "ontonotes"}
    joined = [point for point in blocks.all_points(changed) if point.dataset == "ner-joined"]
    assert sorted(point.seed for point in joined) == changed["protocols"]["ptuning2"]["seeds"]
