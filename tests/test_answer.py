"""The stage that writes the page: HTML and Markdown of one content, beside the results."""

import blocks
import made_up
import pytest

from tailprompt import answer
from tailprompt.errors import BadInput
from tailprompt.plan.blocks import points
from tailprompt.plan.config import load
from tailprompt.plan.status import State

METHODS = ("cls-tanh", "prompt")
METRICS = ["f1/all", "f1/head", "f1/tail"]


@pytest.fixture
def scale(tmp_path, monkeypatch):
    """A scale with made-up runs of a first round and its curve; figures cannot print its Chinese classes."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "results/tiny"
    first = blocks.block("scores", METHODS, metrics=METRICS, winner="f1/all")
    curve = blocks.block("scores", METHODS, ("made@train=300", "made"), metrics=["f1/all"])
    blocks.results(root, curve)
    for dataset in ("made", "made@train=300"):
        for method in METHODS:
            for seed in (1, 2, 3):
                made_up.run(root, method, seed, dataset=dataset, seconds=9.0, memory_mb=100)
    found = {"first": first, "curve": curve}
    monkeypatch.setattr(answer, "block_of", lambda _scale, name: found[name])
    monkeypatch.setattr(answer, "elsewhere", lambda *_: ["Another backbone was not tried."])
    states = {point: State("done") for block in found.values() for point in points(block)}
    monkeypatch.setattr(answer.first_open, "states", lambda *_: states)
    monkeypatch.setattr(answer.first_open.blocks, "shown", lambda _: {})
    monkeypatch.setattr(answer.first_open.faults, "planned", lambda *_: ["data/made"])
    monkeypatch.setattr(answer.first_open.faults, "read_by", lambda *_: [])
    return {"scale": "tiny", "methods": {name: {"title": name} for name in METHODS}, "states": states}


def failing(scale, fails):
    """The runs for which `fails` is true have failed, and left the files of former ones."""
    states = scale["states"]
    states |= {point: State("failed", "lr is too high") for point in states if fails(point)}


def test_both_forms_are_written_and_name_the_leader_and_the_commands(scale):
    text, page = answer.write(scale)
    html = page.read_text("utf-8")
    assert text == page.with_suffix(".md").read_text("utf-8")
    run = "results/tiny/runs/glee/mini/made"
    commands = [f"tailprompt predict {run}/prompt/1 new.csv", "tailprompt audit results/tiny/runs"]
    for said in (
        "A run of Prompt-tuning took 9 s and 100 MB here",
        *commands,
        "Another backbone was not tried.",
    ):
        assert said in text and said in html
    assert html.count("<svg") == 4 and "电商 (class 2)" in html


@pytest.mark.parametrize(
    "fails, runs",
    [
        (lambda point: point.method == "prompt", "6 of 6"),
        (lambda point: point.method == "prompt" and point.seed == 2, "2 of 6"),
        (lambda point: point.method == "prompt" and "@" not in point.dataset, "3 of 6"),
    ],
    ids=["all", "a seed", "whole data"],
)
def test_a_method_that_failed_is_said_at_the_top_and_not_compared(scale, fails, runs):
    failing(scale, fails)
    text, _ = answer.write(scale)
    top = text.partition("##")[0]
    assert f"Failed: prompt ({runs} runs): lr is too high." in top and "is not compared" in top
    assert "CLS-tuning (T) is the only method with all its runs" in top
    assert "gains" in text


def test_a_curve_whose_runs_failed_leaves_the_rest_of_the_page(scale):
    failing(scale, lambda point: "@" in point.dataset)
    text, _ = answer.write(scale)
    assert "Failed: cls-tanh (3 of 6 runs), prompt (3 of 6 runs): lr is too high." in text
    assert "What more data would give is unknown" in text and "Prompt-tuning wins" in text


def test_a_round_of_which_nothing_ended_is_one_sentence(scale, tmp_path):
    failing(scale, lambda _: True)
    reason = (
        "no run of tiny has ended. Failed: cls-tanh .6 of 6 runs., prompt .6 of 6 runs.: lr is too high.$"
    )
    with pytest.raises(BadInput, match=reason):
        answer.write(scale)
    scale["states"] |= dict.fromkeys(scale["states"], State("to do"))
    log = tmp_path / "results/tiny/logs/prepare/made.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: made.csv is gone\n")
    with pytest.raises(BadInput, match="has ended. A job failed: made.csv is gone .*made.log.[.]$"):
        answer.write(scale)


def test_a_scale_without_a_first_round_is_one_sentence():
    with pytest.raises(BadInput, match="makes no table `first` of try or try-images"):
        answer.answer(load(["config/demo.yaml"]))
