"""Separability of features: parity with scipy and scikit-learn, and what must not change it."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.neighbors import KNeighborsClassifier

from tailprompt.report import bootstrap, separability

CLASSES = 4
ONCE = np.ones((1, CLASSES))


@pytest.fixture(scope="module")
def features():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), [30, 12, 6, 3])
    return random.normal(size=(len(labels), 5)) + 1.5 * random.normal(size=(CLASSES, 5))[labels], labels


def measured(features, *names):
    vectors, labels = features
    found = separability.statistics(names, features, features, np.ones((1, len(labels))), ONCE)
    return {name: float(values[0]) for name, values in found.items()}


def test_inner_distance_is_the_mean_way_to_the_centre(features):
    vectors, labels = features
    expected = [
        np.mean([np.sqrt(((x - vectors[labels == c].mean(0)) ** 2).sum()) for x in vectors[labels == c]])
        for c in range(CLASSES)
    ]
    assert separability.inner(vectors, labels, CLASSES) == pytest.approx(expected)
    found = measured(features, "inner/mean", "inner/sd")
    assert found == pytest.approx({"inner/mean": np.mean(expected), "inner/sd": np.std(expected, ddof=1)})


def test_inter_distance_is_the_mean_of_scipys_pdist_of_the_centres(features):
    vectors, labels = features
    apart = pdist(np.stack([vectors[labels == c].mean(0) for c in range(CLASSES)])).mean()
    found = measured(features, "inter", "gamma", "inner/mean")
    assert found["inter"] == pytest.approx(apart)
    assert found["gamma"] == pytest.approx(found["inner/mean"] / apart)


def test_scale_rotation_and_shift_leave_gamma_alone_and_scale_the_distances(features):
    vectors, labels = features
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    before, after = (
        measured(values, "inner/mean", "inter", "gamma")
        for values in (features, (3 * vectors @ turn + 7, labels))
    )
    assert after["gamma"] == pytest.approx(before["gamma"])
    assert after["inter"] == pytest.approx(3 * before["inter"])


def test_an_empty_class_counts_nowhere(features):
    vectors, labels = features
    within = separability.inner(vectors, labels, CLASSES + 1)
    assert np.isnan(within[CLASSES])
    found = separability.distances(within, separability.inter(vectors, labels, CLASSES + 1), np.ones((1, 5)))
    assert found["gamma"][0] == pytest.approx(measured(features, "gamma")["gamma"])


@pytest.mark.parametrize("number", [1, 5, 20])
def test_knn_is_scikit_learns(features, number):
    vectors, labels = features
    queries = np.random.default_rng(2).normal(size=(200, 5))
    theirs = (
        KNeighborsClassifier(number, metric="cosine", algorithm="brute").fit(vectors, labels).predict(queries)
    )
    assert (separability.knn(vectors, labels, queries, [1, 5, 20])[number] == theirs).all()


def test_more_neighbours_than_examples_are_all_of_them(features):
    vectors, labels = features
    found = separability.knn(vectors, labels, vectors, [len(labels), 200])
    assert (found[200] == found[len(labels)]).all() and (found[200] == 0).all()


def test_a_majority_goes_to_the_lowest_id_of_equals():
    votes = np.array([[3, 1, 1, 3], [2, 0, 2, 1], [4, 4, 4, 0]])
    assert separability.majority(votes).tolist() == [1, 2, 4]


def test_draws_of_classes_are_those_of_repeated_classes(features):
    vectors, labels = features
    within, between = (f(vectors, labels, CLASSES) for f in (separability.inner, separability.inter))
    taken = bootstrap.times(CLASSES, 20, np.random.default_rng(3))
    found = separability.distances(within, between, taken)
    for row, mean, apart in zip(taken.astype(int), found["inner/mean"], found["inter"], strict=True):
        drawn = np.repeat(np.arange(CLASSES), row)
        assert mean == pytest.approx(within[drawn].mean())
        pairs = [between[a, b] for a in drawn for b in drawn if a != b]
        assert np.isnan(apart) if not pairs else apart == pytest.approx(np.mean(pairs))
