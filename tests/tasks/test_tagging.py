"""Entities of tags, their counts and scores, against seqeval and by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest
from seqeval.metrics import f1_score, precision_score, recall_score

from tailprompt.report.bootstrap import times
from tailprompt.tasks.tagging import TAGGING, entities, tag_names
from tailprompt.tasks.task import Given, of_group, once, scores, sums, watched

TYPES = ["PER", "LOC", "ORG"]
TAGS = tag_names(TYPES)


def ids(tags):
    return [TAGS.index(tag) for tag in tags.split()]


def marked(tags):
    """(first, last + 1, type) of the entities of one sentence."""
    found = entities([ids(tags)])
    places = zip(found.first.tolist(), found.last.tolist(), found.type.tolist(), strict=True)
    return [(first, last, TYPES[kind]) for first, last, kind in places]


def table(gold, guess):
    return pd.DataFrame({"tags": list(map(ids, gold)), "prediction": list(map(ids, guess))})


def test_tags_are_in_the_order_of_their_types():
    assert TAGS == ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]


@pytest.mark.parametrize(
    "tags, found",
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),
        ("B-PER B-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("I-PER I-PER O I-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),  # as in IOB1, which conlleval accepts
        ("B-PER I-LOC I-LOC", [(0, 1, "PER"), (1, 3, "LOC")]),
    ],
)
def test_entities_are_those_that_conlleval_finds(tags, found):
    assert marked(tags) == found


def test_an_entity_ends_with_its_sentence():
    found = entities([ids("O B-PER"), ids("I-PER"), [], ids("I-PER O")])
    assert found.row.tolist() == [0, 1, 3] and found.first.tolist() == [1, 2, 3]


def drawn(seed):
    """Sentences with true tags, and predictions of which many are the same."""
    random = np.random.default_rng(seed)
    chance = [0.4, *[0.1] * 6]
    gold = [list(random.choice(TAGS, random.integers(1, 12), p=chance)) for _ in range(random.integers(1, 6))]
    keep = random.random()
    guess = [[tag if random.random() < keep else str(random.choice(TAGS)) for tag in one] for one in gold]
    return [list(map(str, one)) for one in gold], guess


def test_scores_are_seqevals_on_1000_random_cases():
    theirs = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
    for seed in range(1000):
        gold, guess = drawn(seed)
        summed = once(TAGGING.added(table(map(" ".join, gold), map(" ".join, guess)), {"classes": TYPES}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # seqeval warns where nothing is predicted
            for metric, function in theirs.items():
                ours = np.nan_to_num(TAGGING.score(metric, summed))
                assert ours == pytest.approx(function(gold, guess), abs=1e-12), (seed, metric)
                each = function(gold, guess, average=None)
                there = sorted({name for one in gold + guess for tag in one for name in [tag[2:]] if name})
                for name, value in zip(there, each, strict=True):
                    alone = TAGGING.score(metric, of_group(summed, [TYPES.index(name)]))
                    assert alone == pytest.approx(value, abs=1e-12), (seed, metric, name)


def test_scores_have_groups_and_each_type():
    rows = table(["B-PER O B-LOC", "B-ORG"], ["B-PER O B-ORG", "O"])
    lines = scores(TAGGING, rows, {"classes": TYPES}, {"head": [0], "tail": [1, 2]})
    found = {(metric, group): value for metric, group, value in lines}
    assert found["f1", "all"] == pytest.approx(2 / 5) and found["recall", "head"] == 1
    assert found["f1", "tail"] == 0 and found["precision", "class:PER"] == 1
    assert found["f1_as_released", "all"] == found["f1", "all"]


def test_nothing_to_find_and_nothing_found_has_no_score():
    (metric, group, value), *_ = scores(TAGGING, table(["O O"], ["O O"]), {"classes": TYPES}, {})
    assert (metric, group, value) == ("precision", "all", None)


def test_a_resample_of_sentences_scores_as_those_sentences_do():
    gold, guess = (list(map(" ".join, one)) for one in drawn(3))
    taken = times(len(gold), 5, np.random.default_rng(0))
    summed = sums(TAGGING.added(table(gold, guess), {"classes": TYPES}), taken)
    for draw, counts in enumerate(taken.astype(int)):
        again = [np.repeat(np.array(one, object), counts) for one in (gold, guess)]
        alone = once(TAGGING.added(table(*again), {"classes": TYPES}))
        assert TAGGING.score("f1", summed)[draw] == pytest.approx(TAGGING.score("f1", alone), nan_ok=True)


ROLES = ["V", "A0", "A1", "C-A1"]
ROLE_TAGS = tag_names(ROLES)


def roles(gold, guess):
    """Scores of one example as official and as released."""
    tags, prediction = ([ROLE_TAGS.index(tag) for tag in one.split()] for one in (gold, guess))
    rows = pd.DataFrame({"tags": [tags], "prediction": [prediction]})
    summed = once(TAGGING.added(rows, {"classes": ROLES, "roles": True}))
    return [float(TAGGING.score(metric, summed)) for metric in ("f1", "f1_as_released")]


@pytest.mark.parametrize(
    "gold, guess, official, released",
    [
        ("B-A0 B-V O", "O B-V B-A0", 0, 1 / 2),  # the verb is given
        ("B-A1 B-V B-C-A1", "B-A1 B-V B-C-A1", 1, 1),
        ("B-A1 B-V B-C-A1", "B-A1 B-V O", 0, 4 / 5),  # a part is missing, so the argument is wrong
        ("B-A1 B-V B-A0", "B-C-A1 B-V B-A0", 1, 2 / 3),  # a part without a beginning is an argument
    ],
)
def test_roles_are_scored_without_the_verb_and_with_parts_joined(gold, guess, official, released):
    assert roles(gold, guess) == pytest.approx([official, released])


def one_hot(tags):
    """Logits `[windows, tokens, tags]` of which these are the best."""
    return np.eye(len(TAGS), dtype=np.float32)[np.array(tags)]


def test_windows_of_a_sentence_are_joined_and_only_first_pieces_count():
    labels = np.array([[-100, 1, -100, 2], [-100, -100, 0, -100], [-100, 3, -100, -100]])
    best = np.array([[6, 1, 6, 0], [6, 6, 0, 6], [6, 3, 6, 6]])
    given = Given(labels, ["a", "a", "b"])
    made = pd.DataFrame(TAGGING.row(one_hot(best), given))
    assert given.ids == ["a", "b"]
    assert [list(tags) for tags in made["tags"]] == [[1, 2, 0], [3]]
    assert [list(tags) for tags in made["prediction"]] == [[1, 0, 0], [3]]
    assert made["prediction"][0].dtype == np.int16
    assert watched(TAGGING, one_hot(best), given, {"classes": TYPES}) == {"f1": pytest.approx(0.5)}


def test_predict_shows_entities_with_their_characters():
    text, words = "Ann  met Bob Ray .", ["Ann", "met", "Bob", "Ray", "."]
    rows = pd.DataFrame({"text": [text], "words": [words], "offsets": [[0, 5, 9, 13, 17]]})
    labels = np.array([[-100, 0, 0, 0, 0, 0, -100]])
    made = TAGGING.shown(one_hot([[0, 1, 0, 1, 2, 0, 0]]), Given(labels, ["a"]), rows, TYPES)
    assert made["entities"] == [
        [
            {"type": "PER", "text": "Ann", "start": 0, "end": 3},
            {"type": "PER", "text": "Bob Ray", "start": 9, "end": 16},
        ]
    ]
    assert made["tags"] == [["B-PER", "O", "B-PER", "I-PER", "O"]]
