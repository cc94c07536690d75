"""What a file is taken for: text, label and language by name, then by looks; overruled by hand."""

import pandas as pd
import pytest
from PIL import Image

from tailprompt.data.looked import look
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
    with pytest.raises(BadInput, match="a folder of images for each class"):
        look(tmp_path / "empty")
