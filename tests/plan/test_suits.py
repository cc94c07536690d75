"""What the plan refuses because it does not suit what is predicted."""

import pytest
import toy

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.plan.blocks import all_points, shown
from tailprompt.plan.config import load
from tailprompt.plan.suits import METRICS, check_norms, check_scores, check_suits, check_warmup
from tailprompt.tasks.registry import TASKS

TAGS = {"name": "names", "loader": "tags", "language": "en"}
PASSAGES = {"name": "questions", "loader": "squad", "language": "en"}
WORDS = {"input": "plain", "head": "predictor", "select": "f1", "max_length": 64}
WINDOWS = {"input": "windows", "head": "predictor", "select": "f1", "max_length": 384, "unanswerable": False}
REFUSED = {
    "class means of tags": (TAGS, {**WORDS, "head_start": "class_means"}, {}, "head_start class_means"),
    "accuracy of tags": (TAGS, {**WORDS, "select": "accuracy"}, {}, "take f1 or last"),
    "roles of names": (TAGS, {**WORDS, "select": "f1_as_released"}, {}, "is of semantic roles"),
    "balanced tags": (TAGS, {**WORDS, "sampler": "balanced"}, {}, "take shuffled"),
    "features of tags": (TAGS, WORDS, {"features": ["PER"]}, "features are of classes"),
    "adjusted answers": (PASSAGES, {**WINDOWS, "loss": "logit_adjusted"}, {}, "take cross_entropy"),
    "stride": (PASSAGES, {**WINDOWS, "max_length": 128, "stride": 128}, {}, "stride 128 is what two windows"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_setting_without_a_meaning_is_refused(name):
    row, told, extras, says = REFUSED[name]
    with pytest.raises(BadInput, match=says):
        check_suits(run_of(toy.settings("", **told)), row, extras, "here:")


def test_a_rate_that_is_never_reached_is_refused():
    check_warmup(run_of(toy.settings("", **WORDS, warmup=2.0, epochs=2)), "here:")
    with pytest.raises(BadInput, match=r"here: warmup 100 is of more epochs than training has \(2\)"):
        check_warmup(run_of(toy.settings("", **WORDS, warmup=100.0, epochs=2)), "here:")


@pytest.mark.parametrize("row, told", [(TAGS, WORDS), (PASSAGES, WINDOWS)], ids=["tags", "passages"])
def test_settings_that_suit_are_taken(row, told):
    check_suits(run_of(toy.settings("", **told)), row, {}, "here:")


def test_the_metrics_are_those_of_the_tasks():
    kinds = {"classes": "classification", "options": "choice", "groups": "grouped"}
    kinds |= {"tags": "tagging", "passages": "spans"}
    found = {kind: (*TASKS[task].metrics, *TASKS[task].ranks) for kind, task in kinds.items()}
    assert found == METRICS
    assert TASKS["picked"].metrics == METRICS["groups"]


@pytest.mark.parametrize("scale", ["paper", "mini", "demo"])
def test_the_papers_ask_for_scores_that_their_data_have(scale):
    config = load([f"config/{scale}.yaml"])
    check_scores(config, shown(config))


def test_a_score_that_a_data_set_lacks_is_refused_before_anything_runs():
    block = {"datasets": [{"dataset": "conll04"}], "metrics": ["f1/all", "accuracy/all"]}
    with pytest.raises(
        BadInput, match="table9 of mine: data set 'conll04' has no accuracy/all; before / comes one of f1"
    ):
        check_scores(load(["config/paper.yaml"]), {("tables", "mine", "table9"): block})


@pytest.mark.parametrize("name", ["conll04", "squad-sample", "superglue-copa"])
def test_norms_of_class_vectors_are_refused_where_a_run_has_none_for_each_class(name):
    config = load(["config/paper.yaml"])
    point = next(each for each in all_points(config) if each.dataset.startswith(name.removesuffix("-sample")))
    run = {"dataset": point.dataset, "run": point.method, "backbone": point.backbone}
    block = {
        "kind": "weight_norms",
        "protocol": point.protocol,
        "seeds": [1],
        "methods": ["x"],
        "runs": [run],
    }
    with pytest.raises(
        BadInput, match="figure3 of mine: weight_norms are of classes, not of (tags|passages|options)"
    ):
        check_norms(config, {("figures", "mine", "figure3"): block})


@pytest.mark.parametrize("scale", ["paper", "mini", "demo"])
def test_the_papers_draw_norms_of_classes(scale):
    config = load([f"config/{scale}.yaml"])
    check_norms(config, shown(config))
