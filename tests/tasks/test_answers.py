"""Grouped rows and spans: scores equal the official definitions, and the best answer is found."""

import random
import re
import string
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tailprompt.tasks import spans
from tailprompt.tasks.grouped import GROUPED, PICKED
from tailprompt.tasks.registry import told
from tailprompt.tasks.spans import SPANS
from tailprompt.tasks.task import Given, examples, once, scores, sums, value
from tailprompt.tasks.texts import exact, normalized, overlap

WORDS = [
    "The",
    "a",
    "an",
    "an.",
    "Émile's",
    "IX-th",
    "under_score",
    "9",
    "ninth",
    "theatre",
    "—",
    "it,",
    "(of)",
    "“x”",
    "US$",
]
BLANKS = [" ", "  ", "\n", "\u00a0", "\t"]


# the official formulas, written anew


def plain(text):
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return [word for word in re.sub(r"\b(?:a|an|the)\b", " ", kept).split() if word]


def official(guess, golds):
    """(exact match, F1) of SQuAD 2.0: articles, marks and case do not count."""
    golds = [gold for gold in golds if plain(gold)] or [""]
    found = []
    for gold in golds:
        left, same = list(plain(gold)), 0
        for word in plain(guess):
            if word in left:
                left.remove(word)
                same += 1
        if not plain(gold) or not plain(guess):
            f1 = float(plain(gold) == plain(guess))
        elif not same:
            f1 = 0.0
        else:
            precision, recall = same / len(plain(guess)), same / len(plain(gold))
            f1 = 2 * precision * recall / (precision + recall)
        found.append((float(plain(gold) == plain(guess)), f1))
    return max(one for one, _ in found), max(one for _, one in found)


def phrase(draw, most=4):
    return "".join(draw.choice(WORDS) + draw.choice(BLANKS) for _ in range(draw.randint(0, most)))


def test_exact_match_and_f1_are_squads_on_1000_random_answers():
    draw, seen = random.Random(0), set()
    for _ in range(1000):
        golds = [phrase(draw) for _ in range(draw.randint(0, 3))]
        guess = draw.choice([phrase(draw), *golds])
        theirs = official(guess, golds)
        assert (exact(guess, golds), overlap(guess, golds)) == pytest.approx(theirs, abs=1e-12)
        seen.add(theirs)
    assert len(seen) > 7 and {(0.0, 0.0), (1.0, 1.0)} < seen


def test_known_normal_forms_are_squads():
    assert normalized("The  Cat,\nan\u00a0A.I.") == "cat ai"
    assert normalized("a an the") == "" and normalized("theatre a") == "theatre"
    assert exact("", []) == overlap("", []) == 1 and exact("x", []) == overlap("x", []) == 0
    assert overlap("the big cat", ["big dog", "cat sat on it"]) == 0.5


# groups


def questions(draw, number):
    """Rows of questions with one to five options, in no order."""
    rows = [
        {
            "group": f"q{n}",
            "label": draw.randint(0, 1),
            "prediction": draw.randint(0, 1),
            "pick": draw.gauss(0, 1),
        }
        for n in range(number)
        for _ in range(draw.randint(1, 5))
    ]
    draw.shuffle(rows)
    return pd.DataFrame(rows)


def multirc(rows):
    """F1a and EM of MultiRC: binary F1 over all options; questions whose every option is as it should be."""
    both = sum(a == b == 1 for a, b in zip(rows.label, rows.prediction, strict=True))
    precision, recall = both / max(1, rows.prediction.sum()), both / max(1, rows.label.sum())
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    right = [all(part.label == part.prediction) for _, part in rows.groupby("group")]
    return {"f1": f1, "exact": sum(right) / len(right), "accuracy": (rows.label == rows.prediction).mean()}


def test_f1a_and_exact_match_are_multircs_on_1000_random_sets():
    draw = random.Random(1)
    for _ in range(1000):
        rows = questions(draw, draw.randint(2, 8))
        if not (rows.label.sum() + rows.prediction.sum()):
            continue
        found = {
            metric: number
            for metric, group, number in scores(GROUPED, rows, {"classes": ["0", "1"]}, {})
            if group == "all"
        }
        assert found == pytest.approx(multirc(rows))


def record(rows):
    """(EM, F1) of ReCoRD by query: of each the entity with the highest score, against all right ones."""
    found = {}
    for group, part in rows.groupby("group", sort=False):
        best = max(zip(part.pick, part.option, part.answers, strict=True), key=lambda one: one[0])
        found[group] = official(best[1], best[2])
    return found


def test_exact_match_and_f1_of_the_picked_entity_are_records_on_3000_random_questions():
    draw = random.Random(2)
    rows = questions(draw, 3000)
    right = {
        group: [phrase(draw, 3) + "entity" for _ in range(draw.randint(1, 2))]
        for group in rows.group.unique()
    }
    rows["answers"] = rows.group.map(right)
    rows["option"] = [draw.choice([phrase(draw, 3) + "x", *golds]) for golds in rows.answers]
    logits = np.stack([np.zeros(len(rows)), rows.pick], 1)
    made = pd.DataFrame(PICKED.predicted(logits, Given(rows.label.to_numpy(), (), rows)))
    added, theirs = PICKED.added(made, {"classes": ["0", "1"]}), record(rows)
    by_question = sums(added, np.eye(3000))
    for place, name in enumerate(("exact", "f1")):
        wanted = np.array([found[place] for found in theirs.values()])
        assert PICKED.score(name, by_question) == pytest.approx(wanted)
        assert PICKED.score(name, once(added)) == pytest.approx(wanted.mean())


def test_a_question_is_one_example_and_resampled_as_a_whole():
    draw = random.Random(3)
    rows = questions(draw, 6).sort_values("group").reset_index(drop=True)
    added = GROUPED.added(rows, {"classes": ["0", "1"]})
    assert examples(added) == 6
    times = np.array([2, 0, 1, 0, 3, 1])
    order = [f"q{n}" for n in range(6)]
    drawn = pd.concat(
        [
            rows[rows.group == name].assign(group=f"{name}-{copy}")
            for name, n in zip(order, times, strict=True)
            for copy in range(n)
        ]
    )
    for metric, theirs in multirc(drawn).items():
        assert value(GROUPED, f"{metric}/all", sums(added, times), {}) == pytest.approx(theirs)


def test_of_equal_picks_the_first_is_taken_and_it_scores_what_its_text_does():
    rows = pd.DataFrame({"group": ["q"] * 3, "option": ["x y", "y", "z"], "answers": [["y"]] * 3})
    logits = np.array([[0.0, 1.0], [0.0, 1.0], [0.5, 1.0]])
    made = pd.DataFrame(PICKED.row(logits, Given(np.array([0, 1, 0]), (), rows)))
    summed = once(PICKED.added(made, {"classes": ["0", "1"]}))
    found = {name: float(PICKED.score(name, summed)) for name in PICKED.metrics}
    assert found == {"accuracy": 0, "exact": 0, "f1": pytest.approx(2 / 3)}


# spans

PASSAGE = "Ada wrote the first program"


def aligned(
    windows, *, passages=(PASSAGE,), answers=((),), n_best=20, longest=30, threshold=0.0, chosen=False
):
    """What input keeps: of each window the place of its first word and the numbers of its words.

    threshold: None where there always is an answer. chosen: whether dev chooses it instead.
    """
    places = [(match.start(), match.end()) for match in re.finditer(r"\S+", PASSAGE)]

    def characters(window):
        at, words = windows[window]
        return at, *np.array([places[word] for word in words]).reshape(-1, 2).T

    return SimpleNamespace(
        n_best=n_best,
        longest=longest,
        threshold=None if chosen else threshold,
        unanswerable=chosen or threshold is not None,
        passages=passages,
        answers=answers,
        characters=characters,
    )


def logits(*windows, tokens=8):
    """Logits of windows from {token: (first, last)}; -5 where nothing is told."""
    values = np.full((len(windows), tokens, 2), -5.0)
    for window, given in zip(values, windows, strict=True):
        for token, pair in given.items():
            window[token] = pair
    return values


def answered(values, how, names=("a",)):
    return SPANS.predicted(values, Given(np.zeros((len(names), 2)), names, how))


def test_the_best_pair_of_first_and_last_token_is_the_answer():
    how = aligned([(3, [0, 1, 2, 3, 4])], threshold=None)  # [CLS] ? [SEP] passage [SEP] is nine tokens
    made = answered(logits({5: (4, 0), 6: (1, 1), 7: (0, 3)}, tokens=9), how)
    assert (made["prediction"], made["start"].tolist(), made["end"].tolist()) == (
        ["the first program"],
        [10],
        [27],
    )
    assert made["score"] == [7.0] and made["none"].tolist() == [-17.0]


def test_an_answer_does_not_end_before_it_begins_nor_lie_in_the_question_nor_is_it_too_long():
    values = logits({0: (9, 9), 1: (8, 8), 7: (4, 0), 3: (0, 5), 4: (2, 2)}, tokens=9)
    how = aligned([(3, [0, 1, 2, 3, 4])], threshold=None)
    assert answered(values, how)["prediction"] == ["Ada"]  # 0 + 5; 7 to 3 would have 9
    values = logits({3: (5, 0), 7: (0, 5), 4: (1, 1)}, tokens=9)
    assert answered(values, how)["prediction"] == [PASSAGE]
    short = aligned([(3, [0, 1, 2, 3, 4])], threshold=None, longest=4)
    assert answered(values, short)["prediction"] == ["Ada wrote"]  # 5 + 1; all five words are too many


def test_only_the_best_first_and_last_tokens_of_a_whole_window_are_combined():
    values = logits({0: (9, 9), 4: (3, 3), 5: (2, 2)}, tokens=9)
    found = [
        answered(values, aligned([(3, [0, 1, 2, 3, 4])], threshold=None, n_best=n))["prediction"]
        for n in (1, 2)
    ]
    assert found == [[""], ["wrote"]]  # the best alone is no word of the passage


def test_none_is_the_answer_where_it_is_better_than_the_threshold_in_every_window():
    windows = [(3, [0, 1, 2]), (3, [2, 3, 4])]
    values = logits({0: (4, 4), 4: (1, 2)}, {0: (2, 2), 5: (1, 1)}, tokens=7)
    names = ("a", "a")
    made = answered(values, aligned(windows), names)
    assert made["none"].tolist() == [4 - 3] and made["prediction"] == [""] and made["start"].tolist() == [-1]
    assert answered(values, aligned(windows, threshold=1.0), names)["prediction"] == ["wrote"]  # not above it
    assert answered(values, aligned(windows, threshold=None), names)["prediction"] == ["wrote"]


def test_an_answer_comes_from_any_window_of_its_row_alone():
    windows = [(3, [0, 1, 2]), (3, [2, 3, 4]), (2, [0, 1])]
    values = logits({4: (1, 1)}, {4: (3, 0), 5: (0, 3)}, {2: (1, 1)}, tokens=7)
    how = aligned(windows, passages=(PASSAGE, PASSAGE), answers=(["the first"], []), threshold=-14.0)
    made = SPANS.row(values, Given(np.zeros((3, 2)), ("a", "a", "b"), how))
    assert made["prediction"] == ["first program", ""] and made["answers"] == [["the first"], []]


def test_a_passage_without_words_in_a_window_has_no_answer():
    made = answered(logits({}, tokens=4), aligned([(3, [])], threshold=None))
    assert made["prediction"] == [""] and made["start"].tolist() == [-1]


def best_threshold(differences, gains):
    """`find_best_thresh` of SQuAD 2.0's script: questions are answered one after the other, the surest first.

    gains: by how much answering a question scores more than not.
    """
    score = best = 0.0
    threshold = -np.inf
    for difference, gain in sorted(zip(differences, gains, strict=True)):
        score += gain
        if score > best:
            best, threshold = score, difference
    return threshold, best


def test_the_threshold_is_the_best_of_the_official_search_on_300_random_devs():
    draw, seen = np.random.default_rng(7), set()
    for _ in range(300):
        number = int(draw.integers(1, 9))
        golds = [[["the first"], [], ["Ada"]][kind] for kind in draw.integers(0, 3, number)]
        windows = [(3, [0, 1, 2, 3, 4])] * number
        how = aligned(windows, passages=(PASSAGE,) * number, answers=golds, chosen=True)
        given = Given(np.zeros((number, 2)), [f"q{n}" for n in range(number)], how)
        values = draw.normal(0, 3, (number, 9, 2))
        threshold = SPANS.threshold(values, given)
        plain = SPANS.predicted(values, replace(given, threshold=np.inf))
        gains = [
            overlap(text, gold) - overlap("", gold)
            for text, gold in zip(plain["prediction"], golds, strict=True)
        ]
        theirs, best = best_threshold(plain["none"], gains)
        assert threshold == pytest.approx(theirs) if np.isfinite(theirs) else threshold < min(plain["none"])
        made = SPANS.predicted(values, given)
        found = sum(overlap(*each) for each in zip(made["prediction"], golds, strict=True))
        assert found == pytest.approx(best + sum(overlap("", gold) for gold in golds))
        seen.add(np.sign(theirs))
    assert seen == {-1, 1}


def test_questions_that_differ_equally_are_decided_together():
    how = aligned([(3, [0, 1, 2, 3, 4])] * 3, passages=(PASSAGE,) * 3, answers=[["Ada"], [], []], chosen=True)
    values = logits(*[{0: (2, 2), 3: (1, 1)}] * 3, tokens=9)
    given = Given(np.zeros((3, 2)), ("a", "b", "c"), how)
    assert SPANS.threshold(values, given) < 2 and SPANS.predicted(values, given)["prediction"] == [""] * 3


def test_other_rows_are_decided_by_the_threshold_that_dev_chose_and_not_by_their_own_answers():
    windows, values = [(3, [0, 1, 2, 3, 4])], logits({0: (2, 2), 3: (1, 1)}, tokens=9)
    for answers in ([["Ada"]], [[]]):
        how = aligned(windows, answers=answers, chosen=True)
        given = Given(np.zeros((1, 2)), ("a",), how)
        for threshold, text in ((2.0, "Ada"), (1.9, "")):
            decided = replace(given, threshold=threshold)
            assert SPANS.predicted(values, decided)["prediction"] == [text]
            assert SPANS.threshold(values, decided) == threshold


def test_scores_are_means_over_questions_with_and_without_an_answer():
    rows = pd.DataFrame(
        {"prediction": ["the cat", "dog", "", "x"], "answers": [["cat"], ["a dog ran"], [], []]}
    )
    found = {
        (metric, group): number for metric, group, number in scores(SPANS, rows, {"classes": spans.KINDS}, {})
    }
    assert found["exact", "all"] == 0.5 and found["f1", "all"] == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    assert (
        found["f1", "class:answerable"] == pytest.approx(5 / 6) and found["f1", "class:unanswerable"] == 0.5
    )


def test_totals_over_1000_random_questions_are_the_official_ones():
    draw = random.Random(4)
    answers = [[phrase(draw) + "w" for _ in range(draw.randint(0, 3))] for _ in range(1000)]
    rows = pd.DataFrame(
        {"prediction": [draw.choice([phrase(draw), *golds]) for golds in answers], "answers": answers}
    )
    theirs = np.mean([official(*each) for each in zip(rows.prediction, answers, strict=True)], axis=0)
    summed = once(SPANS.added(rows, {"classes": spans.KINDS}))
    assert [float(SPANS.score(name, summed)) for name in ("exact", "f1")] == pytest.approx(theirs)


def test_what_spans_read_is_in_what_they_write():
    how = aligned([(3, [0, 1, 2, 3, 4])], answers=(["the first"],))
    made, (columns, beside) = answered(logits({5: (4, 0), 6: (1, 1)}, tokens=9), how), SPANS.reads({})
    assert {SPANS.gold, *columns} <= made.keys() and not beside
    values = logits({5: (4, 0), 6: (1, 1)}, tokens=9)
    shown = SPANS.shown(values, Given(np.zeros((1, 2)), ("a",), how), pd.DataFrame(index=[0]), spans.KINDS)
    assert tuple(shown) == SPANS.shown_as and shown["answer"] == ["the first"]


def test_the_columns_tell_these_tasks():
    assert told(["id", "label", "group", "text"]) == "grouped"
    assert told(["id", "label", "group", "option", "answers", "text"]) == "picked"
    assert told(["id", "label", "text", "pair", "answers", "starts"]) == "spans"
