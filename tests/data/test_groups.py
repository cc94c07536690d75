"""Head and tail, many, medium and few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailprompt.data.groups import SHOTS, groups, head_tail, many_medium_few
from tailprompt.errors import BadInput

COUNTS = st.lists(st.integers(0, 500), min_size=1, max_size=30).filter(any)


def test_the_class_that_reaches_the_threshold_is_tail():
    assert head_tail([50, 30, 20], threshold=0.8) == ([0], [1, 2])
    assert head_tail([50, 30, 20], threshold=0.81) == ([0, 1], [2])


def test_ties_stand_in_ascending_class_id():
    assert head_tail([10, 30, 30, 30], threshold=0.65) == ([1, 2], [3, 0])


def test_absent_classes_are_in_neither_group():
    assert head_tail([0, 6, 0, 4], threshold=0.65) == ([1], [3])


def test_the_largest_class_is_head_even_if_it_reaches_the_threshold_alone():
    assert head_tail([90, 10], threshold=0.65) == ([0], [1])
    assert head_tail([5, 65, 30], threshold=0.65) == ([1], [2, 0])


def test_one_class_has_no_head():
    assert head_tail([0, 9], threshold=0.65) == ([], [1])


def test_no_threshold_means_no_groups():
    assert head_tail([5, 5], threshold=None) == ([], [])


@given(COUNTS, st.floats(0.01, 1.0))
def test_head_and_tail_partition_the_classes_with_examples(counts, threshold):
    head, tail = head_tail(counts, threshold=threshold)
    assert sorted(head + tail) == [c for c, n in enumerate(counts) if n]


@given(COUNTS, st.floats(0.01, 1.0))
def test_two_classes_or_more_have_a_head_and_a_tail(counts, threshold):
    assert all(head_tail(counts, threshold=threshold)) == (sum(map(bool, counts)) > 1)


@given(COUNTS, st.floats(0.01, 1.0))
def test_no_tail_class_is_larger_than_a_head_class(counts, threshold):
    head, tail = head_tail(counts, threshold=threshold)
    assert not head or max(counts[c] for c in tail) <= min(counts[c] for c in head)


@given(COUNTS, st.floats(0.01, 1.0))
def test_head_holds_less_than_the_threshold_and_one_more_class_would_not(counts, threshold):
    head, tail = head_tail(counts, threshold=threshold)
    share = sum(counts[c] for c in head) / sum(counts)
    assert len(head) <= 1 or share < threshold
    assert tail and (sum(counts[c] for c in head) + counts[tail[0]]) / sum(counts) >= threshold


def test_many_is_above_100_and_few_below_20():
    assert many_medium_few([101, 100, 20, 19, 0]) == {"many": [0], "medium": [1, 2], "few": [3, 4]}


def places() -> list[int]:
    """A long tail with Places-LT's numbers of classes above, at and below 100 and 20 examples."""
    return [4980] * 131 + [100] + [50] * 156 + [20] * 6 + [5] * 71


@pytest.mark.parametrize(
    "shots, sizes",
    [("survey", (131, 163, 71)), ("oltr", (132, 156, 77)), ("lpt_released", (131, 157, 77))],
)
def test_the_three_inequalities_in_use_give_places_lt_its_three_published_groups(shots, sizes):
    assert tuple(map(len, many_medium_few(places(), shots=shots).values())) == sizes


def test_an_unknown_inequality_is_named_with_the_known_ones():
    with pytest.raises(BadInput, match="unknown shots 'paper'; known: lpt_released, oltr, survey"):
        many_medium_few([1], shots="paper")


def test_many_below_few_would_count_classes_twice_and_is_refused():
    with pytest.raises(BadInput, match=r"many \(10\) must be at least few \(20\)"):
        many_medium_few([15], many=10)


@given(COUNTS, st.integers(0, 50), st.integers(50, 200), st.sampled_from(sorted(SHOTS)))
def test_many_medium_and_few_partition_all_classes(counts, few, many, shots):
    found = many_medium_few(counts, many=many, few=few, shots=shots)
    assert sorted(c for ids in found.values() for c in ids) == list(range(len(counts)))


def test_head_source_chooses_the_split_whose_counts_decide():
    counts = {"train": [8, 1, 1], "dev": [1, 1, 8], "test": [1, 8, 1]}
    options = {"threshold": 0.85, "many": 100, "few": 20}
    evaluated = groups(counts, head_source="test", **options)
    assert [evaluated[split]["head"] for split in counts] == [[0], [2], [1]]
    training = groups(counts, head_source="train", **options)
    assert [training[split]["head"] for split in counts] == [[0], [0], [0]]
