"""SuperGLUE's and SQuAD's raw forms as rows, with the released texts; what stays in one split."""

import json

import pandas as pd
import pytest

from tailprompt.data import report, splits
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.plan.rows import form_of
from tailprompt.plan.schemas import read

ROW = {"name": "mine", "language": "en"}
WIC = {"word": "place", "sentence1": "my place", "sentence2": "no place", "label": True, "idx": 3}
WSC = {
    "text": "Mark told Pete. He lied.",
    "target": {"span1_text": "Mark", "span2_text": "He", "span2_index": 3},
    "label": False,
    "idx": 0,
}
COPA = {"premise": "It fell.", "choice1": "a", "choice2": "b", "question": "cause", "label": 1, "idx": 7}
MULTIRC = {
    "idx": 4,
    "passage": {
        "text": "Force.",
        "questions": [
            {
                "question": "What?",
                "idx": 9,
                "answers": [{"text": "a", "idx": 20, "label": 0}, {"text": "b", "idx": 21, "label": 1}],
            }
        ],
    },
}
RECORD = {
    "idx": 5,
    "passage": {
        "text": "Ada met Bo.\n@highlight\nBo left",
        "entities": [{"start": a, "end": b} for a, b in ((0, 2), (8, 9), (23, 24))],
    },
    "qas": [{"query": "@placeholder left", "idx": 8, "answers": [{"start": 8, "end": 9, "text": "Bo"}]}],
}  # fmt: skip


def lines(path, *objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), "utf-8")
    return path


def rows(tmp_path, loader, found, **row):
    path = lines(tmp_path / "train.jsonl", found)
    return data.LOADERS[loader]({"train": path}, {**ROW, "loader": loader, **row}).to_dict("records")


def refused(paths, *words, **row):
    with pytest.raises(BadInput) as caught:
        data.load({**ROW, **row}, paths)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence


def test_wic_is_a_pair_for_bert_and_a_question_for_roberta(tmp_path):
    (pair,) = rows(tmp_path, "wic", WIC, form="spc")
    assert (pair["text"], pair["pair"], pair["label"], pair["id"]) == (
        "place: my place",
        "place: no place",
        "True",
        "train-3",
    )
    (asked,) = rows(tmp_path, "wic", WIC, form="ssc")
    assert (
        asked["text"] == "my place no place Does place have the same meaning in both sentences?"
        and "pair" not in asked
    )


def test_wsc_names_the_pronoun_before_the_text_and_copa_joins_premise_and_choices(tmp_path):
    (row,) = rows(tmp_path, "wsc", WSC)
    assert (row["text"], row["pair"], row["label"]) == ("He: Mark told Pete. He lied.", "Mark", "False")
    (row,) = rows(tmp_path, "copa", COPA)
    assert (row["text"], row["choices"], row["label"]) == ("It fell. because", ["a", "b"], "B")


def test_multirc_has_a_row_an_answer_in_the_group_of_its_question(tmp_path):
    first, second = rows(tmp_path, "multirc", MULTIRC)
    assert (first["text"], first["pair"], first["label"]) == ("Force.", "What? a", "False")
    assert (second["id"], second["group"], second["together"], second["label"]) == (
        "train-4-9-21",
        "train-4-9",
        "train-4",
        "True",
    )


def test_record_has_a_row_an_entity_once_and_knows_the_right_ones(tmp_path):
    found = rows(tmp_path, "record", RECORD)
    assert [(row["option"], row["label"], row["pair"]) for row in found] == [
        ("Ada", "False", "Ada left"),
        ("Bo", "True", "Bo left"),
    ]
    assert all(row["text"] == "Ada met Bo.\n- Bo left" and row["answers"] == ["Bo"] for row in found)


@pytest.mark.parametrize("loader", ["wic", "wsc", "copa", "multirc", "record"])
def test_an_example_of_another_form_is_named_with_its_line(tmp_path, loader):
    path = lines(tmp_path / "a.jsonl", {"idx": 1, "label": 5})
    refused({"train": path}, "a.jsonl: line 1 is no example of", loader, loader=loader)


@pytest.mark.parametrize(
    "loader, example, where, value, words",
    [
        ("wic", WIC, ["word"], None, "word must be a text, not null"),
        ("wic", WIC, ["idx"], None, "idx must be a whole number or a text, not null"),
        ("wsc", WSC, ["text"], None, "text must be a text, not null"),
        ("wsc", WSC, ["target", "span1_text"], 3, "span1_text must be a text, not 3"),
        ("copa", COPA, ["premise"], None, "premise must be a text, not null"),
        ("copa", COPA, ["choice2"], None, "choice2 must be a text, not null"),
        ("copa", COPA, ["label"], -1, "label must be 0 or 1, not -1"),
        ("copa", COPA, ["label"], True, "label must be 0 or 1, not True"),
        ("multirc", MULTIRC, ["passage", "text"], None, "text must be a text, not null"),
        ("multirc", MULTIRC, ["passage", "questions", 0, "question"], None, "question must be a text"),
        ("multirc", MULTIRC, ["passage", "questions", 0, "answers", 1, "text"], None, "text must be a text"),
        ("record", RECORD, ["passage", "entities", 0, "end"], 99, "the entity 0-99 is not in the passage"),
        ("record", RECORD, ["passage", "entities", 0, "start"], -3, "whole numbers from 0 to 29"),
        ("record", RECORD, ["passage", "entities", 0, "start"], 0.0, "whole numbers from 0 to 29"),
        ("record", RECORD, ["passage", "entities"], [], "entities is empty; it needs at least one"),
        ("record", RECORD, ["qas", 0, "query"], "Bo left", "query must have @placeholder"),
        ("record", RECORD, ["qas", 0, "answers", 0, "text"], "Cy", "the answer 'Cy' is no entity"),
        ("record", RECORD, ["qas", 0, "answers", 0, "text"], 7, "text must be a text, not 7"),
        ("record", RECORD, ["qas", 0, "answers"], [], "it needs at least one"),
    ],
)
def test_values_that_would_be_guessed_are_refused_with_line_and_key(
    tmp_path, loader, example, where, value, words
):
    wrong = json.loads(json.dumps(example))
    inner = wrong
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    path = lines(tmp_path / "a.jsonl", example, wrong)
    refused({"train": path}, "a.jsonl: line 2: ", words, loader=loader)


@pytest.mark.parametrize(
    "loader, example, empty",
    [
        ("wic", WIC, []),
        ("multirc", MULTIRC, []),
        ("multirc", MULTIRC, [{**MULTIRC, "passage": {"text": "a", "questions": []}}]),
        ("record", RECORD, [{**RECORD, "qas": []}]),
    ],
)
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_an_empty_file_is_refused_and_not_made_of_train(tmp_path, loader, example, empty, split):
    paths = {name: lines(tmp_path / f"{name}.jsonl", example) for name in ("train", "dev", "test")}
    lines(paths[split], *empty)
    refused(paths, f"{split}.jsonl has no examples of {loader}; it needs at least one", loader=loader)


def squad(path, *articles, title="title"):
    """A file of articles, each a list of (passage, [(question, answer text or None)])."""
    made = []
    for number, paragraphs in enumerate(articles):
        found = []
        for place, (passage, asked) in enumerate(paragraphs):
            qas = []
            for n, (question, text) in enumerate(asked):
                answers = [] if text is None else [{"text": text, "answer_start": max(0, passage.find(text))}]
                qas.append({"id": f"{number}-{place}-{n}", "question": question, "answers": answers})
            found.append({"context": passage, "qas": qas})
        made.append({title: f"article {number}", "paragraphs": found})
    path.write_text(json.dumps({"version": "v2.0", "data": made}), "utf-8")
    return path


def articles(number=8, none=None):
    return [
        [(f"Bo lives in town {n}.", [(" who lives? ", "Bo"), ("where", f"town {n}"), ("why", none)])]
        for n in range(number)
    ]


def test_squad_gives_a_row_a_question_and_all_of_an_article_stay_together(tmp_path):
    path = squad(tmp_path / "a.json", *articles())
    table, classes = data.load({**ROW, "loader": "squad", "unanswerable": True}, {"all": path})
    assert classes == ["answerable", "unanswerable"] and table["label"].tolist() == [0, 0, 1] * 8
    first = table.iloc[0]
    assert (first["text"], first["answers"], first["starts"]) == ("who lives?", ["Bo"], [0])
    assert table.groupby(table["id"].str[0])["split"].nunique().eq(1).all()
    assert {*table["split"]} == {"train", "dev", "test"}
    about = report.describe(table, classes, ROW, dataset="mine", task="spans", sources={})
    assert about["majority"]["train"] == pytest.approx(2 / 3, abs=1e-3)


def test_squad_without_empty_answers_has_one_kind_of_question(tmp_path):
    path = squad(tmp_path / "a.json", *articles(none="lives"))
    table, classes = data.load({**ROW, "loader": "squad"}, {"all": path})
    assert classes == ["answerable"] and (table["starts"].map(len) == 1).all()
    refused(
        {"all": squad(tmp_path / "b.json", *articles())},
        "8 rows have no answer",
        "question 0-0-2",
        "unanswerable: true",
        loader="squad",
    )


def test_answers_that_are_not_in_their_place_and_files_of_another_form_are_refused(tmp_path):
    refused(
        {"all": squad(tmp_path / "a.json", [("Bo is here", [("who", "Ada")])])},
        "1 row has an answer that is not in the passage at its answer_start (question 0-0-0)",
        loader="squad",
    )
    (tmp_path / "b.json").write_text('{"data": [{"paragraphs": [{"context": "x"}]}]}', "utf-8")
    refused(
        {"all": tmp_path / "b.json"},
        "b.json is not in the form of SQuAD",
        "'qas'",
        "article 1",
        loader="squad",
    )


@pytest.mark.parametrize(
    "where, key, value, words",
    [
        ("answer", "answer_start", -15, "question q1: answers > answer_start must be a whole number from 0"),
        ("answer", "answer_start", 0.0, "answer_start must be a whole number from 0"),
        ("answer", "answer_start", False, "answer_start must be a whole number from 0"),
        ("answer", "text", 7, "question q1: answers > text must be a text that is not blank"),
        ("answer", "text", " ", "answers > text must be a text that is not blank"),
        ("asked", "is_impossible", "false", "question q1: is_impossible must be true or false"),
        ("asked", "is_impossible", None, "is_impossible must be true or false"),
        (
            "asked",
            "is_impossible",
            True,
            "question q1: is_impossible is true, and there are answers",
        ),
        ("asked", "id", None, "question of article 1 with id None: id must be a text that is not blank"),
        ("asked", "id", " ", "id must be a text that is not blank, or a whole number"),
        ("asked", "question", None, "question q1: question must be a text"),
        ("paragraph", "context", None, "question q1: context must be a text"),
        ("paragraph", "context", 3, "question q1: context must be a text"),
        ("article", "title", ["a"], "question q1: title must be a text"),
        ("article", "paragraphs", [], "a.json has no questions"),
    ],
)
def test_squad_values_of_another_kind_are_refused_with_their_question_and_key(
    tmp_path, where, key, value, words
):
    answer = {"text": "Bo", "answer_start": 0}
    asked = {"id": "q1", "question": "who", "answers": [answer]}
    paragraph = {"context": "Bo lives here.", "qas": [asked]}
    article = {"title": "t", "paragraphs": [paragraph]}
    {"answer": answer, "asked": asked, "paragraph": paragraph, "article": article}[where][key] = value
    (tmp_path / "a.json").write_text(json.dumps({"data": [article]}), "utf-8")
    refused({"train": tmp_path / "a.json"}, "a.json", words, loader="squad", unanswerable=True)


def test_articles_with_empty_titles_are_apart(tmp_path):
    path = squad(tmp_path / "a.json", *articles())
    found = json.loads(path.read_text("utf-8"))
    for article in found["data"]:
        article["title"] = ""
    path.write_text(json.dumps(found), "utf-8")
    table, _ = data.load(
        {"name": "x", "language": "en", "loader": "squad", "unanswerable": True}, {"all": path}
    )
    assert set(table["split"]) == {"train", "dev", "test"}


def test_a_squad_file_without_articles_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"data": []}', "utf-8")
    refused({"all": tmp_path / "a.json"}, "a.json has no questions", loader="squad")


def test_dev_may_be_the_test_file_and_ids_then_say_the_split(tmp_path):
    train, test = (
        squad(tmp_path / "a.json", *articles(none="Bo")),
        squad(tmp_path / "b.json", *articles(2, none="Bo")),
    )
    table, _ = data.load({**ROW, "loader": "squad"}, {"train": train, "dev": test, "test": test})
    assert table["id"].is_unique and table.groupby("split").size().to_dict() == {
        "train": 24,
        "dev": 6,
        "test": 6,
    }
    both = [
        table[table["split"] == split].drop(columns=["id", "split"]).reset_index(drop=True)
        for split in ("dev", "test")
    ]
    pd.testing.assert_frame_equal(*both)


# splits


def test_what_stays_together_is_in_one_split_and_shares_are_near():
    table = pd.DataFrame({"split": "train", "group": [f"g{n // 4}" for n in range(400)], "id": range(400)})
    made = splits.together(table, "mine", by="group", shares={"dev": 0.1, "test": 0.2}, seed=0)
    assert made.groupby("group")["split"].nunique().eq(1).all()
    assert made["split"].value_counts().to_dict() == {"train": 280, "test": 80, "dev": 40}
    again = splits.together(
        table.sample(frac=1, random_state=1), "mine", by="group", shares={"dev": 0.1, "test": 0.2}, seed=0
    )
    assert again["split"].sort_index().tolist() == made["split"].tolist()


def test_too_few_to_stay_together_are_refused():
    table = pd.DataFrame({"split": "train", "together": ["a", "b"] * 4, "id": range(8)})
    with pytest.raises(BadInput, match="2 groups of rows that stay together, too few to make dev and test"):
        splits.together(table, "mine", by="together", shares={"dev": 0.1, "test": 0.2}, seed=0)


def test_own_rows_with_a_group_are_split_by_it_and_need_two_classes(tmp_path):
    rows = [
        {"q": f"q{n}", "text": f"text {n} {k}", "label": ["no", "yes"][k % 2]}
        for n in range(20)
        for k in range(3)
    ]
    columns = {"group": "q", "text": "text", "label": "label"}
    table, classes = data.load({**ROW, "columns": columns}, {"all": lines(tmp_path / "a.jsonl", *rows)})
    assert classes == ["no", "yes"] and table.groupby("group")["split"].nunique().eq(1).all()
    rows[0]["label"] = rows[1]["label"] = rows[2]["label"] = "maybe"
    refused(
        {"train": lines(tmp_path / "b.jsonl", *rows), "test": tmp_path / "a.jsonl"},
        "has groups and 3 classes",
        columns=columns,
    )


def test_a_group_whose_rows_lie_in_two_splits_is_refused(tmp_path):
    paths = {}
    for split in ("train", "dev", "test"):
        rows = [
            {
                "q": "shared" if n == 0 and split != "dev" else f"{split}-{n}",
                "text": f"{split} {n} {k}",
                "label": k,
            }
            for n in range(3)
            for k in range(2)
        ]
        paths[split] = lines(tmp_path / f"{split}.jsonl", *rows)
    columns = {"group": "q", "text": "text", "label": "label"}
    words = (
        "4 rows are of groups that lie in several splits: 'shared'",
        "train.jsonl:1",
        "must be in one split",
    )
    refused(paths, *words, columns=columns)


def test_cuts_that_would_break_a_question_are_refused(tmp_path):
    rows = [
        {"q": f"q{n}", "text": f"text {n} {k}", "label": ["no", "yes"][k % 2]}
        for n in range(20)
        for k in range(3)
    ]
    row = {"columns": {"group": "q", "text": "text", "label": "label"}, "cut": {"train": 10}}
    refused({"all": lines(tmp_path / "a.jsonl", *rows)}, "a cut would break its groups", **row)


# rows of the configuration


def test_rows_as_released_differ_from_ours_in_dev_alone():
    rows = read("config/datasets.yaml")["datasets"]
    named = [name for name in rows if name.startswith(("superglue", "squad", "sst2"))]
    released = [name for name in named if name.endswith("_as_released")]
    assert len(released) == 12
    for name in released:
        row, ours = rows[name], rows[name.removesuffix("_as_released")]
        assert row["files"]["dev"] == row["files"]["test"] == ours["files"]["test"]
        assert row["files"]["train"] == ours["files"]["train"] and row["reported"] == ours["reported"]
        same = ("loader", "columns", "unanswerable", "title", "licence", "folder")
        assert [row.get(key) for key in same[:-1]] == [ours.get(key) for key in same[:-1]]
        assert row["folder"] == ours.get("folder", "squad") and form_of({"name": name, **row}) == form_of(
            {"name": name, **ours}
        )


def test_empty_and_repeated_options_are_prepared_and_said(tmp_path):
    rows = [
        {
            "text": f"t{n}",
            "split": split,
            "options": ["a", "b", "a " if n == 1 else "" if n == 2 else "c"],
            "label": n % 2,
        }
        for split in ("train", "dev", "test")
        for n in range(4)
    ]
    row = {**ROW, "columns": {"choices": "options", "split": "split"}}
    table, classes = data.load(row, {"all": lines(tmp_path / "a.jsonl", *rows)})
    about = report.describe(table, classes, row, dataset="toy", task="choice", sources={})
    assert (
        "  options     rows 3 with an empty option (train-000002, dev-000002, test-000002), 3 with an option"
        in report.sentence_of(about)
    )
    plain = table.assign(choices=[["a", "b"]] * len(table))
    assert "options" not in report.describe(plain, classes, row, dataset="toy", task="choice", sources={})
