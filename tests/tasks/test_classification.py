"""Scores of classes: those of scikit-learn to the last bit, GLEE's identities, and a number of its paper."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from tailprompt.tasks import classification
from tailprompt.tasks.choice import CHOICE
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.metrics import CLASS
from tailprompt.tasks.task import Given, once, same, scores, watched

NOTHING = Given(np.array([]), ())

CLASSES = 7
pairs = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, CLASSES - 1)), min_size=1, max_size=60)


def split(examples):
    gold, predicted = np.array(examples).T
    return gold, predicted


def rows(gold, predicted):
    return pd.DataFrame({"label": gold, "prediction": predicted})


def by_name(gold, predicted, groups=(), classes=CLASSES):
    report = {"classes": [str(c) for c in range(classes)]}
    found = scores(CLASSIFICATION, rows(gold, predicted), report, dict(groups))
    return {f"{metric}/{group}": value for metric, group, value in found}


def logits(predicted, columns):
    """Logits whose best is the prediction."""
    return np.eye(columns, dtype=np.float32)[predicted]


@given(pairs, st.sets(st.integers(0, CLASSES - 1), min_size=1))
@settings(max_examples=60)
def test_scores_are_scikit_learns(examples, group):
    gold, predicted = split(examples)
    found = by_name(gold, predicted, {"some": sorted(group)})
    assert found["accuracy/all"] == accuracy_score(gold, predicted)
    each = precision_recall_fscore_support(gold, predicted, labels=range(CLASSES), zero_division=0)
    occurs = np.union1d(gold, predicted)
    for metric, values in zip(("precision", "recall", "f1"), each, strict=False):
        assert found[f"{metric}/all"] == values[occurs].mean()
        inside = [c for c in sorted(group) if c in occurs]
        assert found[f"{metric}/some"] == (values[inside].mean() if inside else None)
        for c in range(CLASSES):
            assert found[f"{metric}/{CLASS}{c}"] == (values[c] if c in occurs else None)


def before(gold, predicted):
    """What selection took before tasks: scikit-learn's functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of many classes
        return {
            "accuracy": float(accuracy_score(gold, predicted)),
            "f1": float(f1_score(gold, predicted, average="macro", zero_division=0)),
        }


def test_what_training_watches_is_scikit_learns_to_the_last_bit():
    random = np.random.default_rng(0)
    for classes in (2, 3, 8, 9, 57, 119, 300):
        for _ in range(40):
            gold = random.zipf(1.5, 60).clip(max=classes) - 1
            wrong = random.integers(0, classes + 1, 60)  # the last column is no class
            predicted = np.where(random.random(60) < 0.5, gold, wrong)
            found = watched(
                CLASSIFICATION, logits(predicted, classes + 1), Given(gold, ()), {"classes": range(classes)}
            )
            assert found == before(gold, predicted)


def test_the_best_step_is_the_same_also_among_ties():
    random = np.random.default_rng(1)
    for _ in range(60):
        gold = random.integers(0, 12, 25)
        tries = [np.where(random.random(25) < 0.8, gold, random.integers(0, 12, 25)) for _ in range(20)]
        tries += [tries[place] for place in random.integers(0, 20, 10)]
        ours = [
            watched(CLASSIFICATION, logits(guess, 12), Given(gold, ()), {"classes": range(12)})
            for guess in tries
        ]
        theirs = [before(gold, guess) for guess in tries]
        for metric in ("accuracy", "f1"):
            assert np.argmax([one[metric] for one in ours]) == np.argmax([one[metric] for one in theirs])


@given(pairs, st.integers(0, CLASSES))
@settings(max_examples=60)
def test_head_and_tail_add_up_where_every_predicted_class_is_in_gold(examples, cut):
    gold, predicted = split(examples)
    predicted = np.where(np.isin(predicted, gold), predicted, gold)
    present = np.unique(gold)
    head, tail = present[:cut], present[cut:]
    found = by_name(gold, predicted, {"head": head, "tail": tail})
    total = len(head) * (found["f1/head"] or 0) + len(tail) * (found["f1/tail"] or 0)
    assert total == pytest.approx(len(present) * found["f1/all"])


def test_a_class_predicted_but_absent_from_gold_adds_a_zero():
    assert by_name([0, 0, 1], [0, 0, 2])["f1/all"] == pytest.approx(1 / 3)


def test_unsigned_ids_add_what_signed_ones_do():
    signed = rows(np.array([0, 2, 1]), np.array([0, 1, 2]))
    ours, others = (
        classification.added(table, {"classes": list("abc")}) for table in (signed, signed.astype(np.uint8))
    )
    assert all(same(ours[name], others[name]) for name in ours)


def test_an_answer_that_is_no_class_adds_a_zero_to_means_and_has_no_score_of_its_own():
    found = by_name([0, 0, 1], [0, 0, 2], classes=2)
    for name in ("f1", "precision", "recall"):
        assert found[f"{name}/all"] == pytest.approx(1 / 3)
    assert f"f1/{CLASS}2" not in found


def test_a_class_that_occurs_nowhere_and_an_empty_group_are_undefined_not_zero():
    found = by_name([0, 1], [0, 1], {"head": [], "tail": [0, 1, 5]})
    assert found["f1/class:5"] is None
    assert found["f1/head"] is None and found["accuracy/head"] is None
    assert found["f1/tail"] == 1.0


def test_accuracy_of_a_group_counts_the_examples_whose_gold_class_is_in_it():
    found = by_name([0, 0, 0, 1], [0, 0, 1, 1], {"head": [0], "tail": [1]})
    assert found["accuracy/head"] == pytest.approx(2 / 3)
    assert found["accuracy/tail"] == 1.0


def test_r52_head_and_tail_give_the_papers_f1():
    # GLEE on R52, CLS-tuning with Tanh, from the authors' logs: one head class, 51 in the tail.
    head, tail = 98.98, 66.65
    assert round((1 * head + 51 * tail) / 52, 1) == 67.3


def test_restricted_to_some_classes_the_others_cannot_win():
    values = np.array([[9.0, 1.0, 2.0, 0.0], [9.0, 3.0, 2.0, 0.0]])
    assert classification.restricted(values, [3, 1, 2]).tolist() == [2, 1]
    assert (classification.restricted(values, range(4)) == values.argmax(1)).all()


def test_any_right_class_counts_as_the_label():
    predicted, labels = np.array([4, 5, 7, 1]), np.array([1, 5, 8, 2])
    accepted = [[1, 4], [5], [8, 9], [2, 1]]
    table = rows(labels, predicted).assign(accepted=accepted)
    assert classification.answers(table, None).tolist() == [1, 5, 7, 2]
    summed = once(CLASSIFICATION.added(table, {"classes": range(10), "trained_on": "other", "among": None}))
    hits = [guess in right for guess, right in zip(predicted, accepted, strict=True)]
    assert CLASSIFICATION.score("accuracy", summed) == np.mean(hits)
    assert (classification.folded(predicted, labels[:, None], labels) == predicted).all()


def test_predict_names_the_best_classes_and_the_lowest_of_equals():
    values = np.array([[0.0, 2.0, 2.0, 1.0, 9.0]], np.float32)  # the last column is no class
    made = classification.shown(values, NOTHING, pd.DataFrame(index=[0]), ["a", "b", "c", "d"])
    assert [made[name][0] for name, _ in classification.RANKS] == ["b", "c", "d"]
    powers = np.exp(values[0, :4])
    assert made["third_probability"][0] == pytest.approx(powers[3] / powers.sum(), abs=1e-6)
    assert len(classification.shown(values, NOTHING, pd.DataFrame(index=[0]), ["a", "b"])) == 4


def test_a_choice_shows_options_of_the_row_alone_and_is_scored_like_classes():
    table = pd.DataFrame({"choices": [["x", "y"], ["x", "y", "z"]]})
    made = CHOICE.shown(np.array([[0.0, 1.0, 5.0], [0.0, 1.0, 5.0]]), NOTHING, table, ["A", "B", "C"])
    assert made["prediction"].tolist() == ["B", "C"] and made["third"].tolist() == [None, "A"]
    assert made["third_probability"][0] == 0
    assert CHOICE.score is CLASSIFICATION.score and CHOICE.added is CLASSIFICATION.added
