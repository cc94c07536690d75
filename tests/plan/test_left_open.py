"""What must be made of a corpus that a scale leaves open is said, with what in its recipe is another now."""

from pathlib import Path

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.files import read_json, write_json
from tailprompt.plan import asked, blocks, bundled, left_open, made, standing
from tailprompt.plan.layers import merge
from tailprompt.plan.settings import settings

RECIPE = "t5-mini-lm"
EDITED = {"pretraining": {RECIPE: {"steps": 900}}}
NAMED = {"corpora": {"text": "workflow/resources/data/debian_descriptions.txt.xz"}}
OPEN = "this takes corpora.text, which this scale leaves open; name it, as in --config 'corpora={text: FILE}'"


@pytest.fixture(autouse=True)
def what_ships(tmp_path):
    """What the project brings beside the results."""
    for name in ("config", "workflow"):
        (tmp_path / name).symlink_to(Path(name).absolute())


def on(key, name):
    """A run of scale mini with this backbone, data set, ..."""
    return next(point for point in blocks.all_points(scale("mini")) if getattr(point, key) == name)


def brought(root, point):
    """Its run.json as a bundle brings it, by the recipes and rows that ship; returns the run."""
    config = scale("mini")
    weights = made.weights(config, point.backbone)
    about = asked.asked(config, point, settings(config, point), weights)
    write_json(root / f"results/mini/from_bundles/runs/{point.path}/run.json", about)
    return point


def lines(root, change, *points):
    """What is said of the runs to train of an edited scale."""
    config = merge(scale("mini"), change)
    return left_open.lines(config, points, standing.present(config), root)


def test_the_key_of_a_recipe_that_is_another_than_that_of_a_bundle_is_named(tmp_path):
    run = brought(tmp_path, on("backbone", RECIPE))
    said = (
        f"backbone {RECIPE} must be made for {run.path}: pretraining.{RECIPE} differs in steps from what is"
    )
    assert lines(tmp_path, EDITED, run) == [
        f"snakemake will not start: {said} here; {OPEN}, or take the change back"
    ]
    assert lines(tmp_path, merge(EDITED, NAMED), run) == []
    config = merge(scale("mini"), EDITED)
    with pytest.raises(BadInput, match=f"^{said}"):
        left_open.check(config, run, standing.present(config), tmp_path)


@pytest.mark.parametrize("weights", ["x", {"recipe": []}])
def test_a_run_json_with_weights_in_another_form_tells_of_none(tmp_path, weights):
    run = brought(tmp_path, on("backbone", RECIPE))
    file = tmp_path / f"results/mini/from_bundles/runs/{run.path}/run.json"
    write_json(file, read_json(file) | {"weights": weights})
    (said,) = lines(tmp_path, EDITED, run)
    assert "it is not here" in said


def test_the_keys_of_the_note_of_a_checkpoint_that_was_made_here_are_named(tmp_path):
    note = tmp_path / f"results/mini/made/checkpoint/{RECIPE}.json"
    write_json(note, standing.wanted(scale("mini"), "checkpoint", RECIPE))
    (said,) = lines(tmp_path, {"pretraining": {RECIPE: {"lr": 0.5, "seed": 2}}}, on("backbone", RECIPE))
    assert "differs in lr, seed from what is here" in said


def test_texts_of_a_start_that_is_trained_anew_are_said_with_what_differs(tmp_path):
    start = brought(tmp_path, on("dataset", "prompts-single"))
    report = {"row": made.read_back(bundled.now(scale("mini"), start.dataset))}
    write_json(tmp_path / f"results/mini/from_bundles/data/{start.dataset}.json", report)
    (said,) = lines(tmp_path, {"protocols": {"ppt": {"datasets": {start.dataset: {"lr": 0.5}}}}}, start)
    assert f"{start.path} differs in settings.lr, and no bundle brings texts; {OPEN}" in said
    (said,) = lines(tmp_path, {"datasets": {start.dataset: {"examples": 7}}}, start)
    assert f"stage prepare will refuse: data set {start.dataset} must be made" in said
    assert f"datasets.{start.dataset} differs in examples from what is here" in said


def test_data_sets_that_lack_a_corpus_for_one_reason_share_a_line(tmp_path):
    runs = [on("dataset", name) for name in ("prompts-single", "prompts-choice")]
    (said,) = lines(tmp_path, {}, *runs)
    assert "data sets prompts-single, prompts-choice must be made for 2 runs, as " in said
    assert said.endswith(OPEN)
