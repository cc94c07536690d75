"""Choice, and what any task promises: statistics of examples add up; what a row lacks is no answer."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import vstack

from tailprompt.model.compose import NEVER
from tailprompt.tasks.choice import CHOICE
from tailprompt.tasks.registry import TASKS
from tailprompt.tasks.task import Given, examples, of_group, once, one_by_one, scores, sums, value

LETTERS = list("ABCD")
REPORT = {"classes": LETTERS}
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30)
draws = settings(max_examples=40)


def added(task, found):
    """What examples add, of their labels and answers.

    Of tagging, each is a sentence of one entity; where a question has several rows, it has one here.
    """
    gold, guess = np.array(found).T
    if task.gold == "tags":
        tags, prediction = ([[2 * kind + 1] for kind in kinds] for kinds in (gold, guess))
        return task.added(pd.DataFrame({"tags": tags, "prediction": prediction}), REPORT)
    if task.gold == "answers":
        texts = {"prediction": guess.astype(str), "answers": [[str(n)] if n else [] for n in gold]}
        return task.added(pd.DataFrame(texts), REPORT)
    scored = {"group": range(len(gold)), "pick": 0.0, "exact": gold == guess, "overlap": gold == guess}
    return task.added(pd.DataFrame({"label": gold, "prediction": guess, **scored}), REPORT)


def rows(*counts):
    """Rows with so many options each."""
    return pd.DataFrame({"choices": [[f"option {i}" for i in range(count)] for count in counts]})


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@given(found=pairs, cut=st.integers(1, 29))
@draws
def test_statistics_of_parts_add_up_to_those_of_the_whole(task, found, cut):
    cut = min(cut, len(found) - 1)
    first, second, whole = (added(task, part) for part in (found[:cut], found[cut:], found))
    assert examples(first) + examples(second) == examples(whole) == len(found)
    for name in whole:
        assert (vstack([first[name], second[name]]) != whole[name]).nnz == 0
        assert (once(first)[name] + once(second)[name] == once(whole)[name]).all()


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@given(found=pairs, random=st.integers(0, 99))
@draws
def test_a_score_of_weighted_sums_is_that_of_the_examples_repeated(task, found, random):
    times = np.random.default_rng(random).integers(0, 4, len(found))
    times[0] = 1  # one at least
    repeated = [pair for pair, often in zip(found, times, strict=True) for _ in range(often)]
    for name in task.metrics:
        ours = value(task, f"{name}/all", sums(added(task, found), times), {})
        theirs = float(value(task, f"{name}/all", once(added(task, repeated)), {}))
        assert ours == pytest.approx(
            theirs, nan_ok=True
        )  # F1 of options of which none is right, or said to be


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@given(found=pairs)
@draws
def test_a_class_is_a_group_of_one(task, found):
    summed = once(added(task, found))
    each = {name: task.score(name, one_by_one(summed, 4)) for name in task.metrics}
    for name, values in each.items():
        alone = [task.score(name, of_group(summed, [label])) for label in range(4)]
        np.testing.assert_array_equal(values, alone)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(0, 99))
@draws
def test_an_option_that_a_row_lacks_is_neither_named_nor_given_a_share(counts, random):
    table = rows(*counts)
    logits = np.random.default_rng(random).normal(size=(len(counts), 4)) * 5
    made = CHOICE.shown(logits, Given(np.array([]), ()), table, LETTERS)
    for row, count in enumerate(counts):
        named = [made[name][row] for name in ("prediction", "second", "third")][:count]
        assert named == [LETTERS[i] for i in logits[row, :count].argsort()[::-1][:3]]
        assert [made[name][row] for name in ("second", "third")][count - 1 :] == [None] * max(0, 3 - count)
        shares = [made[f"{name}probability"][row] for name in ("", "second_", "third_")]
        assert sum(shares) == pytest.approx(1, abs=1e-5) or count == 4


def test_what_the_model_says_of_a_lacking_option_is_never_the_answer():
    logits = np.array([[-3.0, -2.0, NEVER, NEVER], [1.0, 2.0, 3.0, NEVER]], np.float32)
    row = CHOICE.row(logits, Given(np.array([1, 0]), ()))
    assert row["prediction"].tolist() == [1, 2] and np.isfinite(np.stack(row["scores"])).all()
    table = pd.DataFrame({"label": row["label"], "prediction": row["prediction"]})
    found = {(metric, group): score for metric, group, score in scores(CHOICE, table, REPORT, {})}
    assert found["accuracy", "all"] == 0.5 and found["recall", "class:B"] == 1
    assert found["f1", "class:D"] is None


def test_an_answer_that_is_no_option_at_all_is_not_shown():
    made = CHOICE.shown(
        np.array([[0.0, 1.0, 2.0, 3.0, 9.0]]), Given(np.array([]), ()), rows(3), LETTERS
    )  # the last: other tokens
    assert made["prediction"].tolist() == ["C"] and made["probability"][0] < 1
