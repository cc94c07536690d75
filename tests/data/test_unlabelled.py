"""Self-supervised data sets from plain text: what each example must be, whatever the seed."""

import random
import re
import tracemalloc
from collections import Counter

import pandas as pd
import pytest

from tailprompt.data import quotas, sentiment, unlabelled
from tailprompt.data import table as data
from tailprompt.data.units import blocks, drawn, sentences, shortened
from tailprompt.data.unlabelled import CHOICE, UNIFIED
from tailprompt.errors import BadInput

SHARES = {"dev": 0.3, "test": 0.3}
MAKERS = {
    "pair": unlabelled.load_next_sentence_pair,
    "choice": unlabelled.load_next_sentence_choice,
    "unified": unlabelled.load_unified_choice,
    "single": unlabelled.load_pseudo_label,
}


def line(document, place):
    return f"document {document} says at line {place} what follows"


def corpus(path, documents=10, lines=8, extra=()):
    texts = ["\n".join(line(d, at) for at in range(lines)) for d in range(documents)]
    path.write_text("\n\n".join([*texts, *extra]) + "\n", "utf-8")
    return path


def made(kind, path, **row):
    row = {"name": "prompts", "language": "en", "examples": 1000, "shares": SHARES, **row}
    return MAKERS[kind]({"all": path}, row)


def where(text):
    return tuple(map(int, re.findall(r"\d+", text)))


def test_pairs_of_ten_documents_are_labelled_by_where_they_stand(tmp_path):
    table = made("pair", corpus(tmp_path / "c.txt"))
    assert len(table) == 80  # every line of every document is a query once
    assert len(set(table["text"])) == 80 and set(table["label"]) == {"0", "1", "2"}
    for text, pair, label in zip(table["text"], table["pair"], table["label"], strict=True):
        (document, place), (other, at) = where(text), where(pair)
        apart = abs(place - at)
        assert label == ("0" if document != other else "2" if apart == 1 else "1") and (apart or label == "0")


def test_a_third_of_the_pairs_has_each_label_and_both_directions(tmp_path):
    table = made("pair", corpus(tmp_path / "c.txt", documents=300, lines=10), examples=3000)
    assert all(0.29 < n / len(table) < 0.38 for n in Counter(table["label"]).values())
    next_to = table[table["label"] == "2"]
    before = sum(where(a)[1] > where(b)[1] for a, b in zip(next_to["text"], next_to["pair"], strict=True))
    assert 0.4 < before / len(next_to) < 0.6


def test_six_options_are_the_answer_one_of_its_document_and_four_of_four_others(tmp_path):
    table = made("choice", corpus(tmp_path / "c.txt"))
    assert len(table) == 80
    for text, choices, label in zip(table["text"], table["choices"], table["label"], strict=True):
        (document, place), options = where(text), [where(option) for option in choices]
        assert len(set(choices)) == 6 and text not in choices
        right, wrong = options.pop("ABCDEF".index(label)), options
        assert right[0] == document and abs(right[1] - place) == 1
        same = [at for number, at in wrong if number == document]
        assert len(same) == 1 and abs(same[0] - place) > 1
        assert len({number for number, _ in wrong if number != document}) == 4


def test_unified_options_are_two_to_sixteen_with_the_released_numbers_from_the_own_document(tmp_path):
    table = made("unified", corpus(tmp_path / "c.txt", documents=40), examples=320)
    assert {len(choices) for choices in table["choices"]} == set(range(2, 17))
    for text, choices, label in zip(table["text"], table["choices"], table["label"], strict=True):
        document, place = where(text)
        right = where(choices["ABCDEFGHIJKLMNOP".index(label)])
        assert right[0] == document and abs(right[1] - place) == 1
        near = [where(option) for option in choices if where(option)[0] == document]
        others = {where(option)[0] for option in choices} - {document}
        assert len(near) == 1 + UNIFIED[len(choices)][2] and len(set(choices)) == len(choices)
        assert len(others) == min(4, len(choices) - len(near))
        assert sum(abs(at - place) == 1 for _, at in near) == 1


@pytest.mark.parametrize("kind", ["pair", "choice", "unified"])
def test_no_wrong_option_reads_like_the_answer_even_where_documents_repeat_themselves(tmp_path, kind):
    chance = random.Random(0)
    texts = [
        "\n".join(f"line {chance.randrange(30)} of words that repeat" for _ in range(9)) for _ in range(200)
    ]
    (tmp_path / "c.txt").write_text("\n\n".join(texts))
    table = made(kind, tmp_path / "c.txt", examples=400)
    if kind == "pair":
        assert (table["text"] != table["pair"]).all()
        return
    for text, choices in zip(table["text"], table["choices"], strict=True):
        assert len(set(choices)) == len(choices) and text not in choices


@pytest.mark.parametrize("kind", ["pair", "choice", "unified"])
def test_the_same_corpus_and_seed_give_the_same_examples_and_another_seed_others(tmp_path, kind):
    path = corpus(tmp_path / "c.txt", documents=30)
    one, two, other = (made(kind, path, examples=100, split_seed=seed) for seed in (1, 1, 2))
    assert one.equals(two) and not set(one["id"]) & set(other["id"])


def test_more_examples_contain_the_fewer(tmp_path):
    path = corpus(tmp_path / "c.txt", documents=60)
    fewer, more = made("pair", path, examples=50), made("pair", path, examples=200)
    both = more.merge(fewer, on=["id", "text", "pair", "label", "split"])
    assert len(both) == len(fewer) == 50 and len(more) == 200


def test_a_document_is_in_one_split_and_the_splits_have_their_shares(tmp_path):
    table = made(
        "pair", corpus(tmp_path / "c.txt", documents=60), examples=100, shares={"dev": 0.2, "test": 0.1}
    )
    assert Counter(table["split"]) == {"train": 70, "dev": 20, "test": 10}
    homes = table.assign(document=[where(text)[0] for text in table["text"]])
    assert (homes.groupby("document")["split"].nunique() == 1).all()


def test_a_document_that_stands_twice_gives_its_examples_once(tmp_path):
    path = corpus(tmp_path / "c.txt", extra=["\n".join(line(3, at) for at in range(8))])
    table = made("pair", path)
    assert len(table) == 80 and table["id"].is_unique


def test_short_lines_and_short_documents_are_left_out(tmp_path):
    path = corpus(tmp_path / "c.txt", extra=["\n".join(line(10, at) for at in range(4)), "so short\n" * 9])
    table = made("pair", path)
    assert {where(text)[0] for text in [*table["text"], *table["pair"]]} == set(range(10))


def test_pairs_of_very_unlike_length_are_left_out(tmp_path):
    path = corpus(tmp_path / "c.txt", extra=[f"line {'very ' * 2000} long {at}" for at in range(8)])
    text = path.read_text().replace(" long 1", " long 1\n" + "\n".join(line(11, at) for at in range(8)))
    path.write_text(text)
    lengths = made("pair", path, lengths=100.0)[["text", "pair"]].map(len)
    assert (lengths["text"] / lengths["pair"]).between(0.01, 100).all()


def test_texts_are_cut_to_the_released_lengths_or_a_share_of_them(tmp_path):
    long = ["\n".join(f"d{d} l{at} " + "word " * 600 for at in range(7)) for d in range(12)]
    (tmp_path / "c.txt").write_text("\n\n".join(long))
    table = made("choice", tmp_path / "c.txt")
    assert {len(text.split()) for text in table["text"]} == {CHOICE[0]}
    assert {len(option.split()) for row in table["choices"] for option in row} == {CHOICE[1]}
    table = made("choice", tmp_path / "c.txt", lengths=0.1)
    assert {len(text.split()) for text in table["text"]} == {39}
    assert {len(option.split()) for row in table["choices"] for option in row} == {9}


def test_a_chinese_character_is_a_word_and_a_word_is_never_cut():
    assert shortened("根津 shrine 神社在东京", 4) == "根津 shrine 神"
    assert shortened("no more than there is", 99) == "no more than there is"


def test_a_sentence_ends_in_a_mark_of_either_script():
    assert sentences(["One. Two? 3.5 is a number!", "第一句。第二句？"]) == [
        *["One.", "Two?", "3.5 is a number!"],
        *["第一句。", "第二句？"],
    ]


def test_blocks_hold_all_documents_in_order_and_none_is_small():
    for total in (3, 10, 20, 29):
        found = list(blocks(iter([[str(n)] for n in range(total)]), 10))
        assert [text for block in found for (text,) in block] == [str(n) for n in range(total)]
        assert all(len(block) >= min(10, total) for block in found)


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    peaks = []
    for documents in (300, 3000):
        path = corpus(tmp_path / "c.txt", documents=documents, lines=6)
        tracemalloc.start()
        made("pair", path, examples=60, block=20)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    "size, without", [(9, range(0, 2)), (9, range(3, 6)), (9, range(7, 9)), (60, range(1))]
)
def test_what_is_drawn_is_what_a_list_without_the_stretch_would_give(size, without):
    rest = [at for at in range(size) if at not in without]
    for seed in range(20):
        count = seed % len(rest)
        assert drawn(random.Random(seed), size, without, count) == random.Random(seed).sample(rest, count)


def test_drawing_from_a_document_takes_no_time_for_the_units_that_are_not_drawn():
    places = drawn(random.Random(0), 10**15, range(10**14, 10**14 + 3), 1000)
    assert len(set(places)) == 1000 and max(places) < 10**15


# pseudo-labels


def reviews(path):
    words = ["horrible awful terrible", "bad", "table", "good", "wonderful excellent great love"]
    texts = [f"this number {n} is {word} you see" for n in range(40) for word in words]
    path.write_text("\n\n".join(texts))
    return path


def test_a_lexicon_labels_texts_from_terrible_to_great_as_many_of_each(tmp_path):
    table = made("single", reviews(tmp_path / "c.txt"), examples=50)
    assert Counter(table["label"]) == dict.fromkeys("12345", 10)
    assert table.loc[table["label"] == "3", "text"].str.contains("table").all()
    assert table.loc[table["label"] == "1", "text"].str.contains("horrible").all()
    assert table.loc[table["label"] == "5", "text"].str.contains("wonderful").all()


@pytest.mark.parametrize(
    "probabilities, label",
    [
        ([0.96, 0.04, 0, 0, 0], 0), ([0.94, 0.06, 0, 0, 0], None), ([0, 0.51, 0.49, 0, 0], 1),
        ([0, 0.49, 0.48, 0, 0.03], None), ([0, 0, 0, 0.3, 0.7], None), ([0, 0, 0, 0.29, 0.71], 4),
        ([0.0] * 5, None),
    ],
)  # fmt: skip
def test_only_texts_are_kept_of_which_the_annotator_is_sure(probabilities, label):
    assert sentiment.accepted(probabilities) == label


def test_scores_fall_into_five_equal_bins():
    scores = (-1, -0.61, -0.59, 0, 0.19, 0.21, 0.61, 1)
    assert [sentiment.certain(score).index(1.0) for score in scores] == [
        0,
        0,
        1,
        2,
        2,
        3,
        4,
        4,
    ]


# as data sets


@pytest.mark.parametrize("kind, classes", [("next_sentence_choice", 6), ("unified_choice", 16)])
def test_the_class_of_a_text_with_options_is_the_place_of_the_right_one(tmp_path, kind, classes):
    row = {"name": "p", "language": "en", "loader": kind, "examples": 300, "shares": SHARES}
    table, names = data.load(row, {"all": corpus(tmp_path / "c.txt", documents=60)})
    assert names == list("ABCDEFGHIJKLMNOP"[:classes])
    for text, choices, label in zip(table["text"], table["choices"], table["label"], strict=True):
        assert where(choices[label])[0] == where(text)[0]
        assert abs(where(choices[label])[1] - where(text)[1]) == 1
    data.write(table, names, tmp_path / "p.parquet", sources={})
    assert [list(row) for row in data.read(tmp_path / "p.parquet")[0]["choices"]] == list(table["choices"])


@pytest.mark.parametrize(
    "row, sentence",
    [
        (
            {},
            r"'prompts': .*c\.txt gives no dev or test or train example; 0 documents of .* have 5 or more",
        ),
        ({"unit": "word"}, "unknown unit 'word'; known: line, sentence"),
        ({"scripts": "greek"}, "unknown scripts 'greek'"),
    ],
)
def test_a_corpus_that_gives_nothing_is_one_sentence(tmp_path, row, sentence):
    (tmp_path / "c.txt").write_text("one line\n\nanother\n")
    with pytest.raises(BadInput, match=sentence):
        made("pair", tmp_path / "c.txt", **row)


@pytest.mark.parametrize("shares", [{"dev": 0}, {"test": 0.0}, {"dev": 0.6, "test": 0.4}, {"dev": 0.97}])
@pytest.mark.parametrize("kind", MAKERS)
def test_shares_that_leave_a_split_nothing_are_named_and_not_the_corpus(tmp_path, kind, shares):
    said = r"data set 'prompts': shares {dev: .*} of examples: 20 are train .*, test .*; shares must be"
    with pytest.raises(BadInput, match=said):
        made(kind, tmp_path / "no corpus is read.txt", examples=20, shares=shares)


def test_shares_of_pseudo_labels_leave_each_of_five_classes_an_example(tmp_path):
    row = {"loader": "pseudo_label", "examples": 100}
    with pytest.raises(BadInput, match="train 94, dev 5, test 1; .* train too, of 5 or more"):
        quotas.check({"prompts": row})
    quotas.check({"prompts": {**row, "shares": {"test": 0.05}}, "pairs": {**row, "loader": "table"}})


def test_one_document_alone_has_no_pairs_with_others(tmp_path):
    said = "gives no .* example; 1 document of 5,000,000 characters at most.*an empty line ends each"
    with pytest.raises(BadInput, match=said):
        made("pair", corpus(tmp_path / "c.txt", documents=1, lines=200), examples=20)


def test_an_unknown_annotator_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(BadInput, match="unknown annotator 'oracle'; known: .*vader"):
        made("single", reviews(tmp_path / "c.txt"), annotator="oracle")


# annotators of other kinds


def words_of(path, text):
    path.write_text(text, "utf-8")
    return sentiment.lexicon({"lexicon": str(path)})


def test_a_lexicon_file_is_read_longest_word_first_and_a_negation_turns_a_word(tmp_path):
    score = words_of(tmp_path / "zh.csv", "word,valence\n好,2\n不好吃,-3\n差,-4\n完美,4\n")
    label = [
        score(text).index(1.0) for text in ("完美，完美", "很好", "他走了", "不好", "不好吃不好吃", "差差差")
    ]
    assert label == [4, 3, 2, 1, 0, 0]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("word,score\n好,2\n", r"zh\.csv needs the header word,valence"),
        ("word,valence\n", r"zh\.csv has no rows; it needs a word and its valence"),
        ("word,valence\n好,2\n\n差,bad\n", r"zh\.csv: 1 row is not a word and a valence .*\(zh\.csv:4\)"),
        ("word,valence\n,2\n好,9\n", r"2 rows are not a word and a valence .*\(zh\.csv:2, zh\.csv:3\)"),
        ("word,valence\n好,2\n差,-2\n好,1\n", r"1 row has a word that stands before \(zh\.csv:4\)"),
    ],
)
def test_a_lexicon_file_that_does_not_fit_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(BadInput, match=sentence):
        words_of(tmp_path / "zh.csv", text)


def test_the_chinese_lexicon_that_ships_is_read_and_knows_both_ends():
    score = sentiment.lexicon({"lexicon": "config/lexicons/zh.csv"})
    assert score("这部电影非常精彩，令人感动").index(1.0) == 4
    assert score("服务恶劣，房间又脏又吵").index(1.0) == 0


def test_a_model_is_given_four_times_as_many_texts_as_examples_are_asked_for(tmp_path):
    row = {"name": "prompts", "examples": 20, "shares": SHARES}
    table = unlabelled.candidates({"all": reviews(tmp_path / "c.txt")}, row)
    assert Counter(table["split"]) == {"train": 32, "dev": 24, "test": 24} and table["id"].is_unique


@pytest.mark.parametrize(
    "cells, sentence",
    [
        ([[1.0, 0, 0, 0, 0], [0.5, 0.5], None], r"2 rows do not hold 5 probabilities \(train-1, train-2\)"),
        ([[float("nan"), 1, 0, 0, 0]], r"1 row does not hold 5 probabilities \(train-0\)"),
        ([0.9, 0.1], r"2 rows do not hold 5 probabilities"),
        (["abcde"], r"1 row does not hold 5 probabilities"),
        ([list("abcde")], r"1 row does not hold 5 probabilities"),
        ([[0.2] * 5], r"'prompts': of no text in .* surer than the thresholds .* 0\.95, 0\.5"),
        ([], r"'prompts': of no text in"),
    ],
)
def test_probabilities_that_do_not_fit_are_one_sentence(tmp_path, cells, sentence):
    table = pd.DataFrame({"split": "train", "id": [f"train-{n}" for n in range(len(cells))], "text": "t"})
    table.assign(probabilities=cells).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=sentence):
        made("single", tmp_path / "a.parquet", annotator="model")


def test_a_models_probabilities_become_labels_by_their_thresholds_the_first_of_each_class(tmp_path):
    table = unlabelled.candidates(
        {"all": reviews(tmp_path / "c.txt")}, {"name": "p", "examples": 50, "shares": SHARES}
    )
    number = [int(re.search(r"number (\d+)", text)[1]) for text in table["text"]]
    sure = [[0.96 * (c == n % 5) for c in range(5)] if n % 2 else [0.4, 0.3, 0.3, 0, 0] for n in number]
    table.drop(columns="label").assign(probabilities=sure).to_parquet(tmp_path / "a.parquet")
    row = {"annotator": "model", "examples": 25, "shares": SHARES}
    found = made("single", tmp_path / "a.parquet", **row)
    assert set(found.groupby(["split", "label"]).size()) <= {1, 2}
    for text, label in zip(found["text"], found["label"], strict=True):
        n = int(re.search(r"number (\d+)", text)[1])
        assert n % 2 and label == str(n % 5 + 1)
