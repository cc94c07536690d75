"""What a file is taken for: text, label and language by name, then by looks; overruled by hand."""

import json

import pandas as pd
import pytest
import yaml
from PIL import Image

from tailprompt.data.looked import look
from tailprompt.decode import decode
from tailprompt.errors import BadInput
from tailprompt.plan.first_rows import row_of

ENGLISH = ["the printer is on fire", "please reset my password", "where is my order", "I want a refund"] * 5
CHINESE = ["打印机着火了", "请重置我的密码", "我的订单在哪里", "我要退款 iPhone"] * 5
LABELS = ["fire", "login", "order", "order"] * 5


def written(path, **columns):
    table = pd.DataFrame(columns)
    if path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True, force_ascii=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_columns_are_found_by_name_in_each_format(tmp_path, ending):
    file = written(tmp_path / f"a.{ending}", ID=range(20), Text=ENGLISH, Category=LABELS)
    found = look(file)
    assert found.columns == {"text": "Text", "label": "Category", "id": "ID"} and found.language == "en"
    assert (found.rows, found.classes, found.alone) == (20, 3, 0)


def test_without_names_the_longest_is_the_text_and_the_least_varied_the_label(tmp_path):
    found = look(written(tmp_path / "a.csv", n=range(20), words=ENGLISH, kind=LABELS))
    assert found.columns == {"text": "words", "label": "kind"}
    assert any("fewest different values" in line for line in found.said)


def test_a_person_overrules_the_guess(tmp_path):
    file = written(
        tmp_path / "a.csv", text=ENGLISH, label=LABELS, reply=ENGLISH[::-1], urgent=["y", "n"] * 10
    )
    found = look(file, text="reply", label="urgent")
    assert found.columns == {"text": "reply", "label": "urgent"}
    with pytest.raises(BadInput, match="unknown column of .*'typo'"):
        look(file, text="typo")
    with pytest.raises(BadInput, match="--text and --label both name 'reply'"):
        look(file, text="reply", label="reply")


def test_chinese_with_latin_names_in_it_is_chinese(tmp_path):
    found = look(written(tmp_path / "a.csv", text=CHINESE, label=LABELS))
    assert (
        found.language == "zh"
        and not found.doubt
        and any("Chinese characters" in line for line in found.said)
    )


def test_another_script_is_said_to_be_unknown_to_the_backbones(tmp_path):
    found = look(written(tmp_path / "a.csv", text=["принтер горит"] * 20, label=LABELS))
    said = next(line for line in found.said if line.startswith("language: en"))
    assert "for want of a better one, as 100% of its letters are Cyrillic" in said and "trust tfidf" in said
    assert found.doubt == "100% of its letters are Cyrillic"


def test_texts_without_letters_are_of_no_language(tmp_path):
    found = look(written(tmp_path / "a.csv", text=["😡 1", "🎉 2", "🤷 3", "😍"] * 5, label=LABELS))
    assert any("for want of a better one, as it has no letters" in line for line in found.said)
    assert found.doubt == "it has no letters"


def test_a_column_of_splits_is_used(tmp_path):
    splits = (["train"] * 3 + ["test", "dev"]) * 4
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, Split=splits))
    assert found.columns["split"] == "Split"


@pytest.mark.parametrize(
    "columns, says",
    [({"text": range(20), "x": range(20)}, "no column has two values or more that come again"),
     ({"label": LABELS}, "has no column beside 'label'")],
    ids=["no-label", "no-text"],
)  # fmt: skip
def test_a_file_without_text_or_label_is_one_sentence(tmp_path, columns, says):
    with pytest.raises(BadInput, match=says):
        look(written(tmp_path / "a.csv", **columns))


def test_a_folder_of_images_has_its_classes_counted(tmp_path):
    for name, number in (("cat", 3), ("dog", 1)):
        for i in range(number):
            place = tmp_path / "train" / name / f"{i}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4)).save(place)
    found = look(tmp_path)
    assert (found.language, found.rows, found.classes, found.alone) == ("image", 4, 2, 1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no folder of images for each class"):
        look(tmp_path / "empty")


QUIZ = {"question": ENGLISH, "optA": ["x"] * 20, "optB": ["y"] * 20}


@pytest.mark.parametrize(
    "columns",
    [
        QUIZ | {"answer": ["A", "B"] * 10},
        QUIZ | {"correct": ["0", "1"] * 10},
        QUIZ | {"right": ["x", "y"] * 10},
        {"text": ENGLISH, "a": ["x"] * 20, "b": ["y"] * 20, "label": ["b", "a"] * 10},
    ],
    ids=["letters", "places", "texts", "short names"],
)
def test_questions_with_options_are_sent_to_their_own_configuration(tmp_path, columns):
    with pytest.raises(BadInput, match="config/mine-choices.yaml"):
        look(written(tmp_path / "quiz.csv", **columns))


@pytest.mark.parametrize(
    "name, content, says",
    [("names.conll", "EU B-ORG\nrejects O\n", "mine-tags.yaml"),
     ("questions.json", '{"data": [{"paragraphs": []}]}', "mine-passages.yaml")],
    ids=["tags", "passages"],
)  # fmt: skip
def test_files_of_other_forms_are_sent_to_their_own_configuration(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=says):
        look(tmp_path / name)


@pytest.mark.parametrize("first, second", [("premise", "hypothesis"), ("Sentence1", "sentence2")])
def test_two_texts_that_go_together_are_both_read(tmp_path, first, second):
    found = look(written(tmp_path / "pairs.csv", **{first: ENGLISH, second: CHINESE[::-1], "label": LABELS}))
    assert (found.columns["text"], found.columns["pair"]) == (first, second)


def test_columns_that_nothing_reads_are_said(tmp_path):
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, note=ENGLISH[::-1]))
    assert "not read: 'note'" in found.said


def test_a_tie_between_columns_is_said(tmp_path):
    file = written(tmp_path / "a.csv", words=ENGLISH, kind=["p", "q"] * 10, sort=["r"] * 19 + ["s"])
    said = look(file).said
    assert any("fewest different values, as 'sort' have" in line for line in said)


@pytest.mark.parametrize("label", ["fire", "order"])
def test_a_first_row_in_the_place_of_the_header_is_refused(tmp_path, label):
    rows = [f"{text},{name}" for text, name in zip(ENGLISH, LABELS, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join([f"my printer burns,{label}", *rows]))
    with pytest.raises(BadInput, match="its first line seems to be a row"):
        look(tmp_path / "a.csv")


def test_latin_letters_without_english_words_may_be_another_language(tmp_path):
    german = ["Der Drucker brennt schon wieder", "Wo bleibt meine Bestellung", "Ich will mein Geld"] * 6
    found = look(written(tmp_path / "a.csv", text=german, label=["x", "y", "y"] * 6))
    assert any("so it may be another" in line for line in found.said)
    assert found.doubt == "only 0% of its words are the commonest English ones"


def test_what_prepare_refuses_is_refused_before(tmp_path):
    with pytest.raises(BadInput, match="5 rows have an empty text"):
        look(written(tmp_path / "a.csv", text=["a", "b", "c", ""] * 5, label=LABELS))


def test_the_rows_of_each_split_are_those_that_prepare_makes(tmp_path):
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS))
    assert found.splits == {"train": [3, 3, 7], "dev": [1, 1, 1], "test": [1, 1, 2]}


def test_the_splits_of_a_folder_of_images_are_counted(tmp_path):
    for split, name, number in (("train", "cat", 9), ("train", "dog", 5), ("test", "cat", 3)):
        for i in range(number):
            place = tmp_path / split / name / f"{i}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4)).save(place)
    splits = look(tmp_path).splits
    assert {split: sum(counts) for split, counts in splits.items()} == {"train": 12, "dev": 2, "test": 3}


def pictures(root, **numbers):
    """So many images in each folder, whose parts are divided by two underscores."""
    for name, number in numbers.items():
        for i in range(number):
            place = root.joinpath(*name.split("__")) / f"{i}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), (i, number, len(name))).save(place)


@pytest.mark.parametrize(
    "numbers",
    [{"cat": 3, "dog": 2, "cat__@eaDir__0.png": 1, "@eaDir": 1},
     {"train": 2, "car": 3, "bus": 2},
     {"train__cat": 2, "val__cat": 1, "train__dog": 2, "val__thumbs": 3},
     {"cat": 2, "dog": 2, "cat__thumb": 2}],
    ids=["left by a system", "a class called train", "splits", "copies"],
)  # fmt: skip
def test_a_folder_of_images_is_counted_as_decode_reads_it(tmp_path, numbers):
    root = tmp_path / "mine"
    pictures(root, **numbers)
    row = {"name": "mine", "loader": "image_folder", "side": 4}
    about = decode(row, {}, {}, root, tmp_path / "o.npy", threads=1)
    table = pd.read_parquet(tmp_path / "o.parquet")
    found = look(root)
    assert (found.rows, found.classes) == (len(table), len(about["classes"]))


def test_folders_that_decode_refuses_are_refused_with_its_sentence(tmp_path):
    pictures(tmp_path, seg_train__cat=2, seg_train__dog=2, seg_test__cat=1, seg_test__dog=1)
    with pytest.raises(BadInput, match="look like splits"):
        look(tmp_path)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.txt"])
def test_a_file_without_a_header_is_refused(tmp_path, name):
    mark = "," if name == "a.csv" else "\t"
    (tmp_path / name).write_text("".join(f"text {n}{mark}{n % 2}\n" for n in range(20)), "utf-8")
    with pytest.raises(BadInput, match="first line seems to be a row, as '0' is the label of 9 others"):
        look(tmp_path / name)


@pytest.mark.parametrize("given", [{}, {"label": "labels"}])
def test_a_column_of_lists_is_no_label_and_no_other_is_taken_in_its_place(tmp_path, given):
    rows = pd.DataFrame({"text": ENGLISH, "labels": [["a", "b"]] * 20, "lang": ["en", "de"] * 10})
    rows.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    with pytest.raises(BadInput, match="20 rows hold several labels in the column 'labels' .*multi-label"):
        look(tmp_path / "a.jsonl", **given)
    assert look(tmp_path / "a.jsonl", label="lang").columns["label"] == "lang"


@pytest.mark.parametrize(
    "key, cells, kind",
    [
        ("label", [b"a", b"b"] * 10, "bytes"),
        ("label", [*pd.to_datetime(["2024-01-02", "2024-01-03"] * 10)], "Timestamp"),
        ("text", [text.encode() for text in ENGLISH], "bytes"),
        ("text", [{"body": text} for text in ENGLISH], "dict"),
    ],
    ids=["bytes", "dates", "texts of bytes", "nested texts"],
)
def test_cells_that_are_no_text_are_named_and_no_other_column_is_taken_in_their_place(
    tmp_path, key, cells, kind
):
    columns = {"text": ENGLISH, "label": LABELS, "user": [f"the user {n % 4}" for n in range(20)], key: cells}
    with pytest.raises(BadInput, match=f"a.parquet: 20 rows hold {kind} in the column '{key}' .a.parquet:1"):
        look(written(tmp_path / "a.parquet", **columns))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_tags_of_words_are_sent_to_their_own_configuration(tmp_path, name):
    tags = ["B-PER", "I-PER", "O", "O"] * 5
    with pytest.raises(BadInput, match="the column 'tag' has tags of words .B-PER, I-PER.*mine-tags.yaml"):
        look(written(tmp_path / name, word=ENGLISH, tag=tags))


@pytest.mark.parametrize("values", [(0, 1), (True, False)])
def test_a_column_for_each_class_is_refused_unless_one_is_named(tmp_path, values):
    cells = {"toxic": [*values] * 10, "threat": [values[0], *values] * 6 + [*values]}
    file = written(tmp_path / "a.csv", text=ENGLISH, **cells)
    with pytest.raises(BadInput, match="'toxic', 'threat' say yes or no for a class each.*--label"):
        look(file)
    assert look(file, label="threat").columns["label"] == "threat"


@pytest.mark.parametrize(
    "name, values",
    [("split", [0, 1]), ("is_test", [True, False]), ("fold", [1, 2, 3, 4]), ("part", ["train", "eval"])],
)
def test_a_column_that_seems_to_tell_splits_in_other_words_is_said(tmp_path, name, values):
    cells = values * (20 // len(values))
    said = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, **{name: cells})).said
    assert any(line.startswith(f"column '{name}' may tell splits, but says ") for line in said)


def test_labels_that_may_mean_that_there_is_none_are_said(tmp_path):
    said = look(written(tmp_path / "a.csv", text=ENGLISH, label=["n/a", "a", "b", "?"] * 5)).said
    assert any(line.endswith("there is no label: 'n/a' (5), '?' (5)") for line in said)
    pictures(tmp_path / "photos", cat=3, unlabeled=4)
    assert any(line.endswith("no label: 'unlabeled' (4)") for line in look(tmp_path / "photos").said)


def test_texts_in_several_splits_or_with_several_labels_are_said(tmp_path):
    texts, splits = [f"text {n % 10}" for n in range(20)], ["train"] * 8 + ["dev"] * 2 + ["test"] * 10
    labels = [["a", "b"][n % 2] for n in range(19)] + ["a"]
    said = look(written(tmp_path / "a.csv", text=texts, label=labels, split=splits)).said
    assert {"8 test rows have a text that train has too", "1 text has several labels"} <= {*said}


def test_garbled_texts_are_said(tmp_path):
    texts = ["la carte \u00c3\u00a9t\u00c3\u00a9", "été"] * 10
    said = look(written(tmp_path / "a.csv", text=texts, label=LABELS)).said
    assert "10 texts seem garbled by a wrong encoding: '\u00c3\u00a9t\u00c3\u00a9' for 'été'" in said


def test_how_a_file_and_its_labels_were_read_is_said(tmp_path):
    rows = [f"{text}{n};{n % 2}{'.0' * (n == 1)}" for n, text in enumerate(ENGLISH)]
    (tmp_path / "a.csv").write_text("\n".join(["text;label", *rows]))
    said = " ".join(look(tmp_path / "a.csv").said)
    assert "fields are taken to be separated by ';'" in said and "1 label '1.0' taken for '1'" in said


@pytest.mark.parametrize(
    "numbers, says",
    [
        ({"Cat": 2, "cat": 2}, "differs from another in blanks or case only"),
        ({"01": 2, "1": 2}, "how a number is written only"),
        ({"train__cat": 3, "train__dog": 3, "test__cat": 1, "test__emu": 1}, "no training image: emu"),
    ],
    ids=["case", "zeros", "no training image"],
)
def test_classes_that_decode_refuses_are_refused_before(tmp_path, numbers, says):
    pictures(tmp_path, **numbers)
    with pytest.raises(BadInput, match=says):
        look(tmp_path)


def test_folders_within_classes_are_said_to_be_taken_together(tmp_path):
    pictures(tmp_path, animal__cat=2, animal__dog=2, plant__elm=2, stone=2)
    assert "folders below a class are taken together: animal (cat, dog)" in look(tmp_path).said


@pytest.mark.parametrize("name", ["id", "ID", "ticket_id", "Ticket ID", "orderId", "uuid", "编号"])
def test_a_column_of_ids_names_the_rows_and_is_said(tmp_path, name):
    file = written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, **{name: range(100, 120)})
    found = look(file)
    assert found.columns == {"text": "text", "label": "label", "id": name}
    assert f"ids of rows: column '{name}'" in found.said


@pytest.mark.parametrize(
    "name, cells",
    [("id", [1] * 20), ("id", ["", *range(19)]), ("paid", range(20)), ("n", range(20)), ("grid", range(20))],
    ids=["repeated", "empty", "paid", "n", "grid"],
)
def test_a_column_without_a_value_of_its_own_in_each_row_or_of_another_name_is_no_id(tmp_path, name, cells):
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, **{name: cells}))
    assert found.columns == {"text": "text", "label": "label"}


@pytest.mark.parametrize(
    "label, kind, says",
    [
        (
            range(20),
            LABELS,
            "has 20 different values in 20 rows, so it holds no classes; --label takes .*: kind",
        ),
        ([*range(15), 1, 2, 3, 4, 5], LABELS, "has 15 different values in 20 rows, .*: kind"),
        (["a"] * 20, LABELS, "has one value in all rows, so it holds no classes; .*: kind"),
        (range(20), range(20), "no other column of the file has values that come again either"),
    ],
    ids=["all", "most", "one", "nowhere"],
)
def test_a_label_without_classes_is_refused_with_the_columns_that_have_some(tmp_path, label, kind, says):
    texts = [f"{text} {i}" for i, text in enumerate(ENGLISH)]
    file = written(tmp_path / "a.csv", text=texts, number=label, kind=kind)
    with pytest.raises(BadInput, match=f"a.csv: the column 'number' .*{says}"):
        look(file, label="number")


@pytest.mark.parametrize(
    "content, told, columns",
    [
        ('text\tlabel\n"begun {n}\ta\nplain {n}\tb\n', {"quotes": False}, ["text", "label"]),
        ("text,label\nGr\xf6\xdfe {n},a\nklein {n},b\n", {"encoding": "cp1252"}, ["text", "label"]),
        ("the printer {n},a\nmy order {n},b\n", {"header": ["body", "topic"]}, ["body", "topic"]),
        ("text~label\nthe printer {n}~a\nmy order {n}~b\n", {"separator": "~"}, ["text", "label"]),
    ],
    ids=["quotes", "encoding", "header", "separator"],
)
def test_how_a_file_is_read_may_be_stated_and_the_configuration_says_it(tmp_path, content, told, columns):
    head, *rows = content.split("\n", 1) if "header" not in told else ("", content)
    file = tmp_path / ("a.tsv" if "\t" in content else "a.csv")
    text = (f"{head}\n" if head else "") + "".join(rows[0].format(n=n) for n in range(20))
    file.write_bytes(text.encode(told.get("encoding", "utf-8")))
    found = look(file, stated=told)
    assert (found.rows, found.classes, [*found.columns.values()]) == (40, 2, columns)
    row = yaml.safe_load("row:\n" + row_of(found, 48, 0.0))["row"]
    assert {key: row[key] for key in told} == told
    with pytest.raises(BadInput):
        look(file)


def test_what_may_be_stated_of_other_files_only_is_refused(tmp_path):
    file = written(tmp_path / "a.parquet", text=ENGLISH, label=LABELS)
    with pytest.raises(BadInput, match="encoding can be stated of files of text alone"):
        look(file, stated={"encoding": "cp1252"})
    with pytest.raises(BadInput, match="quotes can be stated of CSV and TSV files alone"):
        look(written(tmp_path / "a.jsonl", text=ENGLISH, label=LABELS), stated={"quotes": False})
    with pytest.raises(BadInput, match="quotes can be stated of tables alone"):
        look(tmp_path, stated={"quotes": False})


def test_a_line_of_totals_is_a_class_of_one_row_that_is_named(tmp_path):
    file = written(tmp_path / "a.csv", text=[*ENGLISH, "Total"], label=[*LABELS, "20"])
    said = next(line for line in look(file).said if "single row" in line)
    assert said == (
        "1 class has a single row, which is for training alone, so that no score tells of it: '20'"
    )


def test_texts_that_may_mean_that_there_is_none_are_said(tmp_path):
    found = look(written(tmp_path / "a.csv", text=[*ENGLISH, "N/A", "N/A"], label=[*LABELS, "fire", "fire"]))
    assert "taken for texts, though they may mean that there is none: 'N/A' (2)" in found.said


@pytest.mark.parametrize(
    "words, is_said", [(["fire", "login", "order", "order"], True), (["a", "b", "c", "a"], False)]
)
def test_a_column_with_a_name_for_each_number_is_said(tmp_path, words, is_said):
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=[0, 1, 2, 2] * 5, label_text=words * 5))
    assert found.columns["label"] == "label"
    assert (
        any("column 'label_text' has a name for each: --label takes it" in line for line in found.said)
        == is_said
    )


def test_splits_that_are_made_of_train_are_said_beside_those_that_are_there(tmp_path):
    splits = ["train"] * 16 + ["validation"] * 4
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, split=splits))
    assert "splits: column 'split'; test (20 %) cut from train by class" in found.said


@pytest.mark.parametrize(
    "row, says",
    [
        ({"doc": {"text": "a"}, "meta": {"label": "b"}}, "2 columns hold lists or objects .'doc', 'meta'."),
        ({"text": "a", "meta": {"label": "b"}}, "1 column holds lists or objects .'meta'."),
    ],
    ids=["all", "some"],
)
def test_nested_objects_are_named_with_what_to_do(tmp_path, row, says):
    file = tmp_path / "a.jsonl"
    file.write_text(f"{json.dumps(row)}\n" * 20)
    with pytest.raises(BadInput, match=f"{says}, .*json_normalize"):
        look(file)


def test_a_column_of_one_value_is_shown_where_no_labels_are(tmp_path):
    with pytest.raises(BadInput, match="'label' with 1 value"):
        look(written(tmp_path / "a.csv", text=[f"text {n}" for n in range(20)], label=["x"] * 20))


@pytest.mark.parametrize("column", ["", "label"])
def test_a_column_of_labels_without_a_name_is_said_to_have_none(tmp_path, column):
    file = written(tmp_path / "a.csv", **{"text": ENGLISH, column: LABELS})
    if column:
        assert look(file).columns["label"] == column
    else:
        with pytest.raises(
            BadInput, match="the column that seems to have the label has no name; give it one"
        ):
            look(file)


def test_two_rows_a_class_are_too_few_for_three_splits_and_that_is_said(tmp_path):
    file = written(tmp_path / "a.csv", text=ENGLISH[:4], label=["a", "b", "a", "b"])
    with pytest.raises(BadInput, match="no class has a row for dev; the largest has 2 rows, .* takes 3"):
        look(file)


@pytest.mark.parametrize(
    "names, held", [(["a/1.txt", "b/2.txt"], ".txt 2"), (["a.jpg"], ".jpg 1"), ([], "nothing")], ids=str
)
def test_a_folder_without_classes_of_images_is_refused_with_what_is_in_it(tmp_path, names, held):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    with pytest.raises(BadInput, match=f"in it is: {held}.*texts in a table"):
        look(tmp_path)
