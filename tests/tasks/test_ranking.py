"""Metrics for balanced and binary data: scikit-learn's numbers, also on resamples, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score

from tailprompt.report import bootstrap
from tailprompt.tasks.classification import CLASSIFICATION, softmax
from tailprompt.tasks.metrics import rarest
from tailprompt.tasks.task import once, value


def drawn(seed, *, classes, examples=80, decimals=2):
    """Rows with labels, decisions and logits, rounded so that probabilities tie; and their report."""
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.zipf(1.6, examples).clip(max=classes) - 1])
    logits = (random.normal(size=(len(labels), classes)) + 2 * np.eye(classes)[labels]).round(decimals)
    rows = pd.DataFrame({"label": labels, "prediction": logits.argmax(1), "scores": list(logits)})
    counts = np.bincount(labels, minlength=classes).tolist()
    report = {"classes": [f"c{c}" for c in range(classes)], "counts": {"train": counts, "test": counts}}
    return rows, report | {"ranked": True}, logits


def score(name, rows, report, groups=None):
    return float(value(CLASSIFICATION, name, once(CLASSIFICATION.added(rows, report)), groups or {}))


def expected(labels, logits, weights=None):
    """scikit-learn's average precision of each class that occurs."""
    shares = softmax(logits)
    return [
        average_precision_score(labels == c, shares[:, c], sample_weight=weights) for c in np.unique(labels)
    ]


@pytest.mark.parametrize("decimals", [0, 1, 6])
@pytest.mark.parametrize("classes", [2, 3, 12])
def test_average_precision_is_scikit_learns_also_among_ties(classes, decimals):
    rows, report, logits = drawn(classes, classes=classes, decimals=decimals)
    found = score("average_precision/all", rows, report)
    assert found == pytest.approx(np.mean(expected(rows.label.to_numpy(), logits)), abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_balanced_accuracy_is_scikit_learns(classes):
    rows, report, _ = drawn(10 + classes, classes=classes)
    found = score("balanced_accuracy/all", rows, report)
    assert found == pytest.approx(balanced_accuracy_score(rows.label, rows.prediction), abs=1e-12)


def test_f1_of_the_rarest_class_is_scikit_learns_of_one_class_of_two():
    rows, report, logits = drawn(5, classes=2)
    rare = int(np.argmin(report["counts"]["train"]))
    groups = {"rarest": rarest(report)}
    assert groups == {"rarest": [rare]}
    found = score("f1/rarest", rows, report, groups)
    assert found == pytest.approx(f1_score(rows.label, rows.prediction, pos_label=rare), abs=1e-12)
    found = score("average_precision/rarest", rows, report, groups)
    assert found == pytest.approx(
        average_precision_score(rows.label == rare, softmax(logits)[:, rare]), abs=1e-12
    )


def test_each_draw_of_the_bootstrap_is_the_score_of_the_rows_that_it_takes():
    rows, report, logits = drawn(3, classes=4, decimals=1)
    added = CLASSIFICATION.added(rows, report)
    names = ["average_precision/all", "balanced_accuracy/all"]
    random, again = (np.random.default_rng(8) for _ in range(2))
    found = bootstrap.replicates(CLASSIFICATION, names, {}, {"run": added}, random)["run"]
    taken = bootstrap.times(len(rows), 30, again)
    for draw in range(30):
        place = np.repeat(np.arange(len(rows)), taken[draw].astype(int))
        part = rows.iloc[place]
        aps = expected(part.label.to_numpy(), logits[place])
        assert found[names[0]][draw] == pytest.approx(np.mean(aps), abs=1e-5)
        balanced = np.mean(
            [(part.prediction == part.label)[part.label == c].mean() for c in part.label.unique()]
        )
        assert found[names[1]][draw] == pytest.approx(balanced, abs=1e-5)


def test_average_precision_looks_at_allowed_classes_only():
    rows, report, logits = drawn(4, classes=5)
    some = rows[rows.label.isin([0, 2])]
    found = score("average_precision/all", some, report | {"among": [0, 2]})
    two = softmax(logits[some.index][:, [0, 2]])
    wanted = [average_precision_score(some.label == c, two[:, i]) for i, c in enumerate((0, 2))]
    assert found == pytest.approx(np.mean(wanted), abs=1e-12)


def test_the_rarest_class_is_one_that_test_has_and_equals_share_it():
    assert rarest({"counts": {"train": [9, 1, 2, 2, 0], "test": [5, 0, 1, 3, 2]}}) == [2, 3]
    assert rarest({"counts": {"train": [0, 0], "test": [5, 1]}}) == []  # of another data set's runs


def test_perfect_ranks_give_one_and_a_class_without_examples_does_not_count():
    logits = 9 * np.eye(3)[[0, 1, 1]]
    rows = pd.DataFrame({"label": [0, 1, 1], "prediction": [0, 1, 1], "scores": list(logits)})
    report = {"classes": ["a", "b", "c"], "ranked": True}
    assert score("average_precision/all", rows, report) == 1
    assert score("balanced_accuracy/all", rows, report) == 1
