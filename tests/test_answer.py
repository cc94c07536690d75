"""The stage that writes the page: HTML and Markdown of one content, beside the results."""

import blocks
import made_up
import pytest

from tailprompt import answer
from tailprompt.errors import BadInput
from tailprompt.plan.config import load

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
    return {"scale": "tiny"}


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


def test_a_scale_without_a_first_round_is_one_sentence():
    with pytest.raises(BadInput, match="makes no table `first` of try or try-images"):
        answer.answer(load(["config/demo.yaml"]))
