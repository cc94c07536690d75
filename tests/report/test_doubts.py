"""Doubtful labels: cleanlab's scores by its formulas, and rare classes that keep most of their rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.report import doubts


def drawn(seed, *, rows=60, classes=4):
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, rows - classes)])
    shares = random.dirichlet(np.ones(classes), rows) + np.eye(classes)[labels]
    return shares / shares.sum(1, keepdims=True), labels


def cleanlabs(shares, labels, *, adjust):
    """cleanlab 2's get_self_confidence and get_normalized_margin for each label, written row by row."""
    if adjust:
        limits = np.array([shares[labels == c, c].mean() for c in range(shares.shape[1])])
        shares = shares - limits + limits.max()
        shares = shares / shares.sum(1, keepdims=True)
    confidence = np.array([row[label] for row, label in zip(shares, labels, strict=True)])
    best_other = np.array(
        [max(p for c, p in enumerate(row) if c != label) for row, label in zip(shares, labels, strict=True)]
    )
    return confidence, (confidence - best_other + 1) / 2


@pytest.mark.parametrize("adjust", [False, True], ids=["plain", "adjusted"])
def test_scores_are_cleanlabs(adjust):
    shares, labels = drawn(0)
    confidence, margin = cleanlabs(shares, labels, adjust=adjust)
    ours = doubts.adjusted(shares, labels) if adjust else shares
    assert np.allclose(doubts.self_confidence(ours, labels), confidence)
    assert np.allclose(doubts.normalized_margin(ours, labels), margin)


@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0.01, 1))
@settings(max_examples=60)
def test_no_class_is_advised_to_lose_half_of_its_rows(seed, rare, share):
    random = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], [100, rare, 1])
    by_method = {name: random.dirichlet(np.ones(3), len(labels)) for name in "ab"}
    table = doubts.doubtful(by_method, labels, share=share)
    check = table[table.advice == doubts.CHECK].label.value_counts()
    assert all(2 * check.get(c, 0) < (labels == c).sum() for c in range(3))
    assert all(check.get(c, 0) <= np.ceil(share * (labels == c).sum()) for c in range(3))


def planted():
    """Nine of ten labels right and believed; one row of each of two classes carries the other's label."""
    labels = np.repeat([0, 1], [40, 5])
    shares = np.where(np.eye(2)[labels] > 0, 0.9, 0.1)
    shares[0], shares[40] = [0.05, 0.95], [0.97, 0.03]
    return shares, labels


def test_planted_errors_are_found_in_the_rare_class_too_and_come_first():
    shares, labels = planted()
    table = doubts.doubtful({"a": shares, "b": shares}, labels)
    assert (
        sorted(table.place) == [0, 40] and set(table.advice) == {doubts.CHECK} and set(table["rank"]) == {1}
    )


def test_a_class_that_no_method_has_learned_is_not_doubted_as_a_whole():
    """A plain ranking by self-confidence would put all its rows first."""
    shares, labels = planted()
    shares[40:] = [0.8, 0.2]
    table = doubts.doubtful({"a": shares}, labels)
    assert (table[table.advice == doubts.CHECK].label == 1).sum() <= 1
    plain = np.argsort(doubts.self_confidence(shares, labels), kind="stable")[:6]
    assert set(plain) == {0, *range(40, 45)}


def test_one_method_of_three_does_not_make_a_doubt():
    shares, labels = planted()
    right = np.where(np.eye(2)[labels] > 0, 0.6, 0.4)
    assert doubts.doubtful({"a": shares, "b": right, "c": right}, labels).empty


def test_the_same_text_with_another_label_is_told_whatever_its_case_and_blanks():
    table = pd.DataFrame({"id": list("abcd"), "label": [0, 1, 0, 2], "text": ["A  b", "a B ", "c", "c d"]})
    assert doubts.contradictions(table) == {"a": [1], "b": [0]}
