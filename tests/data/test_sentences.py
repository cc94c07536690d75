"""Sentences with entities, from each form of file to tag ids; splits, cuts and what is refused."""

import json
import lzma

import numpy as np
import pandas as pd
import pytest

from tailprompt.data import report
from tailprompt.data import table as data
from tailprompt.data.sentences import entities, split_words
from tailprompt.errors import BadInput
from tailprompt.report.sound import check_answers
from tailprompt.tasks.registry import TASKS, told
from tailprompt.tasks.tagging import tag_names
from tailprompt.tasks.task import once

ROW = {"name": "mine", "language": "en", "loader": "tags"}
IOB1 = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
Ann NNP I-NP I-PER
Lee NNP I-NP I-PER
Bob NNP I-NP B-PER

Peter NNP I-NP I-PER
Hill NNP I-NP I-PER"""
THREE = {"train": IOB1, "dev": "Ann X O I-PER\n", "test": "EU X O B-ORG\n"}


def written(folder, texts, ending="conll"):
    """A file for each split."""
    for name, text in texts.items():
        (folder / f"{name}.{ending}").write_text(text, "utf-8")
    return {name: folder / f"{name}.{ending}" for name in texts}


def lines(*objects):
    return "".join(json.dumps(value) + "\n" for value in objects)


def loaded(paths, **row):
    """The rows as (words, tags by name) for each split."""
    table, types = data.load({**ROW, **row}, paths)
    names = tag_names(types)
    rows = zip(table.split, table.words, table.tags, strict=True)
    found = {"train": [], "dev": [], "test": []}
    for split, words, tags in rows:
        found[split].append((" ".join(words), " ".join(names[tag] for tag in tags)))
    return found


def refused(paths, *words, **row):
    with pytest.raises(BadInput) as caught:
        data.load({**ROW, **row}, paths)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    "tags, found",
    [
        ("I-A I-A B-A O I-B", [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")]),  # IOB1
        ("B-A I-A B-A O B-B", [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")]),  # IOB2
        ("B-A E-A S-A O S-B", [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")]),  # IOBES
        ("B-A L-A U-A O U-B", [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")]),  # BILOU
        ("I-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B-C-A1 I-C-A1", [(0, 2, "C-A1")]),
    ],
)
def test_entities_are_the_same_in_every_scheme(tags, found):
    assert entities(tags.split()) == found


def test_conll_columns_become_iob2_and_the_last_sentence_is_kept(tmp_path):
    found = loaded(written(tmp_path, THREE))
    assert found["train"] == [
        ("EU rejects Ann Lee Bob", "B-ORG O B-PER I-PER B-PER"),
        ("Peter Hill", "B-PER I-PER"),
    ]
    assert found["dev"] == [("Ann", "B-PER")]


def test_ends_of_lines_and_packing_do_not_matter(tmp_path):
    paths = {}
    for name, text in THREE.items():
        paths[name] = tmp_path / f"eng.{name}.xz"
        paths[name].write_bytes(lzma.compress(text.replace("\n", "\r\n").encode()))
    assert loaded(paths) == loaded(written(tmp_path, THREE))


def test_columns_may_be_numbered_and_tabs_hold_blanks(tmp_path):
    tabbed = {name: f"1\tNew York\t_\tB-LOC\tx\n2\t{name}\t_\tO\tx\n" for name in THREE}
    found = loaded(written(tmp_path, tabbed, "sd.conllx"), columns={"words": 2, "tags": 4})
    assert found["test"] == [("New York test", "B-LOC O")]


def test_json_has_words_with_tags_or_entities_or_text_with_characters(tmp_path):
    tagged = {"tokens": ["Ann", "met", "Bob"], "tags": ["U-PER", "O", "U-PER"]}
    spanned = {"tokens": ["Ann", "met", "Bob"], "entities": []}
    spanned["entities"] = [{"type": "PER", "start": n, "end": n + 1} for n in (0, 2)]  # SpERT's
    text = {"text": "Ann met Bob", "entities": []}
    text["entities"] = [{"label": "PER", "start": a, "end": a + 3} for a in (0, 8)]
    texts = {"train": lines(tagged), "dev": json.dumps([spanned]), "test": lines(text)}
    found = loaded(written(tmp_path, texts, "json"))
    assert found["train"] == found["dev"] == found["test"] == [("Ann met Bob", "B-PER O B-PER")]


def test_keys_may_be_named_and_splits_come_with_the_rows(tmp_path):
    rows = [
        {"w": ["Ann", str(n)], "ner": ["B-PER", "O"], "part": part, "key": f"k{n}"}
        for n, part in enumerate(["train", "valid", "test"])
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text(lines(*rows), "utf-8")
    columns = {"words": "w", "tags": "ner", "split": "part", "id": "key"}
    table, _ = data.load({**ROW, "columns": columns}, {"all": path})
    assert list(table.id) == ["k0", "k1", "k2"] and list(table.split) == ["train", "dev", "test"]


def test_words_of_a_text_are_runs_of_letters_and_single_marks():
    assert split_words("It's 5 p.m. in 北京!") == (
        ["It", "'", "s", "5", "p", ".", "m", ".", "in", "北", "京", "!"],
        [0, 2, 3, 5, 7, 8, 9, 10, 12, 15, 16, 17],
    )


@pytest.mark.parametrize(
    "text", ["हिन्दी में", "مُحَمَّدٌ ذهب", "cafe\u0301 büro", "می\u200cخواهم بروم", "❤\ufe0f ok"]
)
def test_marks_belong_to_the_letter_before_them(text):
    assert split_words(text)[0] == text.split()


LONG = "We met Ann0 in Rome and then we all went home again soon after".split()
ANN = {"start": 7, "end": 11, "type": "PER"}


def first_row(tmp_path, value, **row):
    """The words and tags of one sentence, for each split."""
    texts = {name: lines(value) for name in THREE}
    return loaded(written(tmp_path, texts, "jsonl"), **row)["train"][0][1]


@pytest.mark.parametrize("more", [{}, {"tags": ["O", "O", "B-PER", *["O"] * 11]}], ids=["alone", "tags"])
@pytest.mark.parametrize("own", [{}, {"text": "Ann0"}], ids=["bare", "named"])
def test_entities_beside_words_and_text_count_either_and_are_refused_where_both_fit(tmp_path, more, own):
    value = {"text": "  ".join(LONG[:3]) + " " + " ".join(LONG[3:]), "tokens": LONG, **more}
    there = value["text"].index("Ann0")
    value["entities"] = [{**ANN, "start": there, "end": there + 4, **own}]
    if own or more:
        assert first_row(tmp_path, value).split().index("B-PER") == 2
    else:
        texts = {name: lines(value) for name in THREE}
        refused(written(tmp_path, texts, "jsonl"), "train.jsonl:1 has entities that may count words or char")
    words = {**value, "entities": [{**ANN, "start": 2, "end": 3, **own}]}
    assert first_row(tmp_path, words).split().index("B-PER") == 2


def test_a_row_may_say_that_entities_count_words(tmp_path):
    value = {"text": " ".join(LONG), "tokens": LONG, "entities": [ANN]}
    found = first_row(tmp_path, value, columns={"words": "tokens"})
    assert found.split()[7:11] == ["B-PER", *["I-PER"] * 3]


@pytest.mark.parametrize(
    "value, end", [({"text": "Ann left Bob0"}, 3), ({"words": ["Ann", "left"]}, 1)], ids=["text", "words"]
)
def test_an_entity_whose_own_text_is_elsewhere_is_refused(tmp_path, value, end):
    value = {**value, "entities": [{**ANN, "start": 0, "end": end, "text": "Bob"}]}
    paths = written(tmp_path, {name: lines(value) for name in THREE}, "jsonl")
    refused(paths, "train.jsonl:1", "has the text 'Bob'", "those of 'Ann'")


def many(n=40):
    """Sentences of which a quarter have a rare type too."""
    rows = [
        {"words": ["Ann", "in", f"Town{i}"], "tags": ["B-PER", "O", "B-LOC" if i % 4 == 0 else "O"]}
        for i in range(n)
    ]
    return lines(*rows)


def test_splits_and_cuts_draw_sentences_by_their_rarest_type(tmp_path):
    paths = written(tmp_path, {"all": many()}, "jsonl")
    table, types = data.load(ROW, paths)
    assert types == ["PER", "LOC"]
    rare = table.tags.map(lambda tags: 3 in tags)
    assert table.split.value_counts().to_dict() == {"train": 28, "test": 8, "dev": 4}
    assert rare.groupby(table.split).sum().to_dict() == {"train": 7, "test": 2, "dev": 1}
    few, _ = data.load({**ROW, "cut": {"train": 8, "shots": 2}}, paths)
    assert few.groupby("split").size().to_dict() == {"train": 8, "dev": 3, "test": 8}


def test_the_report_counts_entities_by_type(tmp_path):
    row = ROW | {"title": "Mine"}
    table, types = data.load(row, written(tmp_path, THREE))
    about = report.describe(table, types, row, dataset="mine", task=told(table), sources={})
    assert about["task"] == "tagging" and about["classes"] == ["PER", "ORG"]
    assert about["counts"] == {"train": [3, 1], "dev": [1, 0], "test": [0, 1]}
    assert about["mean_length"] == pytest.approx(9 / 4, abs=0.1) and about["absent"]["dev"] == [1]
    train = table[table.split == "train"].assign(prediction=lambda rows: rows.tags)
    summed = once(TASKS["tagging"].added(train, {"classes": types}))
    assert summed["gold"].tolist() == about["counts"]["train"]
    assert "2 classes" in report.sentence_of(about)


ROLES = {
    "train": "1 He said so ||| B-A0 B-V B-A1\n2 He said go ||| O O B-V\n",
    "dev": "0 Go ||| B-V\n",
    "test": "1 He went ||| B-A0 B-V\n",
}


def test_semantic_roles_have_one_row_a_verb(tmp_path):
    row = {**ROW, "loader": "roles"}
    table, types = data.load(row, written(tmp_path, ROLES, "txt"))
    assert types[0] == "V" and list(table.pair) == ["said", "go", "Go", "went"]
    assert list(table.predicate) == [1, 2, 0, 1]
    about = report.describe(table, types, row, dataset="mine", task=told(table), sources={})
    assert about["roles"] and about["conflicts"] == 0


@pytest.mark.parametrize(
    "train, words",
    [
        ("EU X O I-ORG\nrejects O\n", ["train.conll: 1 line has not 4 columns", "(lines 2)"]),
        ("EU X O I-ORG\nAnn X O PER\n", ["train.conll: 1 line ends in no tag", "(lines 2)", "B-TYPE"]),
        ("EU\nrejects\n", ["train.conll: line 1 has 1 column; 2 are needed"]),
        ("\n\n", ["train.conll has no sentences"]),
        ("EU X O O\n", ["no word of train is in an entity"]),
        ("EU X O B-org\nEU X O B-ORG\nEU X O B-ORG\n", ["the types org differ", "blanks or case"]),
        ("Ann X O B-PER\n", ["1 dev or test sentence", "never has: 'ORG'", "test.conll:1"]),
    ],
)
def test_malformed_columns_are_refused_with_file_and_line(tmp_path, train, words):
    refused(written(tmp_path, THREE | {"train": train}), *words)


def test_words_and_tags_are_two_columns(tmp_path):
    refused(written(tmp_path, THREE), "names 2 for words and for tags", columns={"words": 2, "tags": 2})


@pytest.mark.parametrize("number", [0, -1, "2", True])
@pytest.mark.parametrize("key", ["words", "tags"])
def test_columns_are_numbered_from_1(tmp_path, key, number):
    refused(written(tmp_path, THREE), "are numbers from 1", columns={key: number})


@pytest.mark.parametrize(
    "value, words",
    [
        ({"words": ["a", "b"], "tags": ["O"]}, ["train.jsonl:1 has 2 words and not as many tags"]),
        ({"words": ["a"], "tags": ["PER"]}, ["train.jsonl:1 has tags that are none, PER"]),
        ({"words": ["a"], "tags": [1]}, ["tags that are none, 1"]),
        ({"words": [], "tags": []}, ["neither a list of words"]),
        ({"words": ["a"]}, ["no tags for its words, nor entities"]),
        ({"text": "Anna", "entities": [{"start": 0, "end": 3, "type": "PER"}]}, ["characters 0-3"]),
        ({"words": ["a"], "entities": [{"start": 0, "end": 2, "type": "PER"}]}, ["0-2 'PER' overlaps"]),
        ({"sentence": "a"}, ["neither", "it has sentence"]),
        ({"words": ["a", ""], "tags": ["O", "O"]}, ["has an empty word"]),
        ({"words": ["a", " "], "tags": ["O", "O"]}, ["has an empty word"]),
        ({"words": ["a", "\u200b"], "tags": ["O", "O"]}, ["has an empty word"]),
    ],
)
def test_malformed_json_is_refused_with_file_and_line(tmp_path, value, words):
    good = lines({"words": ["a"], "tags": ["B-PER"]})
    refused(written(tmp_path, {"train": lines(value), "dev": good, "test": good}, "jsonl"), *words)


@pytest.mark.parametrize("key", ["start", "end"])
@pytest.mark.parametrize("value", [0.7, 1.0, "0", False, float("inf"), None])
def test_ends_of_entities_that_are_not_whole_numbers_are_refused(tmp_path, key, value):
    wrong = {"words": ["a", "b"], "entities": [{"start": 0, "end": 1, "type": "PER"} | {key: value}]}
    good = lines({"words": ["a"], "tags": ["B-PER"]})
    paths = written(tmp_path, {"train": lines(wrong), "dev": good, "test": good}, "jsonl")
    refused(paths, "train.jsonl:1: an entity has", f"{key} {value!r}", "must be whole numbers")


def test_a_type_that_is_no_text_is_refused(tmp_path):
    wrong = {"words": ["a"], "entities": [{"start": 0, "end": 1, "type": None}]}
    good = lines({"words": ["a"], "tags": ["B-PER"]})
    paths = written(tmp_path, {"train": lines(wrong), "dev": good, "test": good}, "jsonl")
    refused(paths, "train.jsonl:1: an entity has", "type None", "type a text")


def test_tags_and_entities_of_one_sentence_must_mark_the_same(tmp_path):
    both = {"words": ["a", "b"], "tags": ["B-PER", "O"], "entities": [{"start": 0, "end": 1, "type": "PER"}]}
    good = lines(both)
    assert loaded(written(tmp_path, {name: good for name in THREE}, "jsonl"))["train"] == [("a b", "B-PER O")]
    wrong = lines(both, both | {"tags": ["O", "B-PER"]})
    paths = written(tmp_path, {"train": wrong, "dev": good, "test": good}, "jsonl")
    refused(paths, "train.jsonl:2 has tags and entities that differ", "both must mark the same")


@pytest.mark.parametrize("key", ["id", "split"])
@pytest.mark.parametrize("value", [{}, {"at": None}, {"at": " "}, {"at": ["train"]}])
def test_each_sentence_needs_the_id_and_split_that_the_columns_name(tmp_path, key, value):
    there = {"words": ["a"], "tags": ["B-PER"]}
    (tmp_path / "a.jsonl").write_text(lines(there | {"at": "train"}, there | value), "utf-8")
    refused(
        {"all": tmp_path / "a.jsonl"}, "a.jsonl:2 needs a text", f"'at' (columns: {key})", columns={key: "at"}
    )


@pytest.mark.parametrize(
    "line", ["x He went ||| O B-V", "2 He went ||| O B-V", "1 He went ||| O", "1 He went"]
)
def test_malformed_roles_are_refused_with_file_and_line(tmp_path, line):
    texts = ROLES | {"train": ROLES["train"] + line}
    refused(written(tmp_path, texts, "txt"), "train.txt: 1 line is not", "(lines 3)", loader="roles")


def test_dev_without_an_entity_is_refused_because_no_step_can_be_chosen_by_it(tmp_path):
    refused(
        written(tmp_path, THREE | {"dev": "Ann X O O\n"}), "no word of dev is in an entity", "other than O"
    )


@pytest.mark.parametrize("guess", [[0], [0, 1, 2], []])
def test_predicted_tags_are_as_many_as_the_words(tmp_path, guess):
    rows = pd.DataFrame({"id": ["a", "b"], "tags": [np.array([1, 0]), np.array([0, 1])]})
    check_answers(tmp_path / "p", rows.assign(prediction=rows["tags"]), "tags", 3)
    damaged = rows.assign(prediction=[np.array([1, 0]), np.array(guess, int)])
    with pytest.raises(BadInput, match=rf"id 'b' has {len(guess)} predictions, and must have 2"):
        check_answers(tmp_path / "p", damaged, "tags", 3)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("loader, ending", [("roles", "txt"), ("tags", "conll"), ("tags", "jsonl")])
def test_an_empty_file_of_sentences_is_refused_and_not_made_of_train(tmp_path, split, loader, ending):
    texts = {"txt": ROLES, "conll": THREE, "jsonl": dict.fromkeys(THREE, many(4))}[ending] | {split: "\n"}
    refused(written(tmp_path, texts, ending), f"{split}.{ending} has no sentences", loader=loader)


@pytest.mark.parametrize("loose", ["train", "dev", "test", "all"])
def test_a_file_that_lost_its_empty_lines_is_refused(tmp_path, loose):
    long = "Ann B-PER\nleft O\n" * 300
    paths = written(tmp_path, THREE | {loose: long})
    paths = {"all": paths["all"]} if loose == "all" else paths
    refused(paths, f"{loose}.conll has one sentence of 600 words; in columns an empty line ends each")


def test_one_sentence_is_not_a_file_to_split(tmp_path):
    refused({"all": written(tmp_path, THREE)["dev"]}, "dev.conll has one sentence of 1 word")


def test_a_lone_sentence_without_an_entity_is_called_so(tmp_path):
    (tmp_path / "a.conll").write_text("Ann B-PER\n\n" * 20 + "left O\n", "utf-8")
    refused({"all": tmp_path / "a.conll"}, "1 class of one example (no entity)")


def test_types_that_train_lacks_may_be_allowed(tmp_path):
    found = loaded(written(tmp_path, THREE | {"train": "Ann X O B-PER\n"}), absent_classes=True)
    assert found["test"] == [("EU", "B-ORG")]


def test_prepared_sentences_are_read_as_they_were_written(tmp_path):
    table, types = data.load(ROW, written(tmp_path, THREE))
    data.write(table, types, tmp_path / "mine.parquet", sources={})
    again, names = data.read(tmp_path / "mine.parquet")
    assert names == types and [list(tags) for tags in again.tags] == list(table.tags)
    assert isinstance(again, pd.DataFrame) and list(again) == ["id", "split", "words", "tags"]
