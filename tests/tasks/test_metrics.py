"""Scores: parity with scikit-learn, GLEE's identities, and numbers known from the paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from tailprompt.tasks import metrics

CLASSES = 7
pairs = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, CLASSES - 1)), min_size=1, max_size=60)


def split(examples):
    gold, predicted = np.array(examples).T
    return gold, predicted


def by_name(gold, predicted, groups):
    rows = metrics.scores(gold, predicted, [str(c) for c in range(CLASSES)], groups)
    return {f"{row['metric']}/{row['group']}": row["value"] for row in rows}


@given(pairs)
@settings(max_examples=60, deadline=None)
def test_macro_f1_is_scikit_learns(examples):
    gold, predicted = split(examples)
    found = by_name(gold, predicted, {})
    assert found["f1/all"] == pytest.approx(f1_score(gold, predicted, average="macro", zero_division=0))
    each = [found[f"f1/class:{c}"] for c in range(CLASSES)]
    assert found["f1/all"] == pytest.approx(metrics.mean(np.array(each, float)))


@given(pairs, st.integers(0, CLASSES))
@settings(max_examples=60, deadline=None)
def test_head_and_tail_add_up_where_every_predicted_class_is_in_gold(examples, cut):
    gold, predicted = split(examples)
    predicted = np.where(np.isin(predicted, gold), predicted, gold)
    present = np.unique(gold)
    head, tail = present[:cut], present[cut:]
    found = by_name(gold, predicted, {"head": head, "tail": tail})
    total = len(head) * (found["f1/head"] or 0) + len(tail) * (found["f1/tail"] or 0)
    assert total == pytest.approx(len(present) * found["f1/all"])


@given(pairs, st.sets(st.integers(0, CLASSES - 1), min_size=1))
@settings(max_examples=60, deadline=None)
def test_counts_give_the_same_scores_as_examples(examples, group):
    gold, predicted = split(examples)
    found = by_name(gold, predicted, {"some": sorted(group)})
    counts = [np.bincount(x, minlength=CLASSES) for x in (gold[gold == predicted], predicted, gold)]
    for metric in ("accuracy", "f1", "precision", "recall"):
        for name, ids in (("all", None), ("some", sorted(group))):
            ours = metrics.from_counts(metric, ids, *counts)
            theirs = found[f"{metric}/{name}"]
            assert (np.isnan(ours) and theirs is None) or ours == pytest.approx(theirs)


def test_a_class_predicted_but_absent_from_gold_adds_a_zero():
    assert metrics.macro_f1(np.array([0, 0, 1]), np.array([0, 0, 2])) == pytest.approx(1 / 3)


def test_a_class_that_occurs_nowhere_and_an_empty_group_are_undefined_not_zero():
    found = by_name(np.array([0, 1]), np.array([0, 1]), {"head": [], "tail": [0, 1, 5]})
    assert found["f1/class:5"] is None
    assert found["f1/head"] is None and found["accuracy/head"] is None
    assert found["f1/tail"] == 1.0


def test_accuracy_of_a_group_counts_the_examples_whose_gold_class_is_in_it():
    found = by_name(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), {"head": [0], "tail": [1]})
    assert found["accuracy/head"] == pytest.approx(2 / 3)
    assert found["accuracy/tail"] == 1.0


def test_spread_divides_by_n_minus_one_and_needs_two_values():
    assert metrics.spread([1.0, 3.0]) == pytest.approx(2**0.5)
    assert metrics.spread([1.0]) is None


def test_r52_head_and_tail_give_the_papers_f1():
    # GLEE on R52, CLS-tuning with Tanh, from the authors' logs: one head class, 51 in the tail.
    head, tail = 98.98, 66.65
    assert round((1 * head + 51 * tail) / 52, 1) == 67.3


def test_restricted_to_some_classes_the_others_cannot_win():
    scores = np.array([[9.0, 1.0, 2.0, 0.0], [9.0, 3.0, 2.0, 0.0]])
    assert metrics.restricted(scores, [3, 1, 2]).tolist() == [2, 1]
    assert (metrics.restricted(scores, range(4)) == scores.argmax(1)).all()


def test_any_right_class_counts_as_the_label():
    predicted, accepted, labels = (
        np.array([4, 5, 7, 1]),
        [[1, 4], [5], [8, 9], [2, 1]],
        np.array([1, 5, 8, 2]),
    )
    found = metrics.folded(predicted, accepted, labels)
    assert found.tolist() == [1, 5, 7, 2]
    hits = [guess in right for guess, right in zip(predicted, accepted, strict=True)]
    assert metrics.accuracy(labels, found) == np.mean(hits)
    assert (metrics.folded(predicted, labels[:, None], labels) == predicted).all()
