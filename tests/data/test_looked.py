"""What a file is taken for: text, label and language by name, then by looks; overruled by hand."""

import pandas as pd
import pytest
from PIL import Image

from tailprompt.data.looked import look
from tailprompt.decode import decode
from tailprompt.errors import BadInput

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
    assert found.columns == {"text": "Text", "label": "Category"} and found.language == "en"
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
    assert found.language == "zh" and any("Chinese characters" in line for line in found.said)


def test_another_script_is_said_to_be_unknown_to_the_backbones(tmp_path):
    found = look(written(tmp_path / "a.csv", text=["принтер горит"] * 20, label=LABELS))
    assert found.language == "en" and any("English and Chinese alone" in line for line in found.said)


def test_a_column_of_splits_is_used(tmp_path):
    splits = (["train"] * 3 + ["test", "dev"]) * 4
    found = look(written(tmp_path / "a.csv", text=ENGLISH, label=LABELS, Split=splits))
    assert found.columns["split"] == "Split"


@pytest.mark.parametrize(
    "columns, says",
    [({"text": range(20), "x": range(20)}, "no column has values that come again"),
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
    with pytest.raises(BadInput, match="'labels' holds several labels in a row.*multi-label"):
        look(tmp_path / "a.jsonl", **given)
    assert look(tmp_path / "a.jsonl", label="lang").columns["label"] == "lang"
