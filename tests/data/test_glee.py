"""Texts as GLEE's code reads them in the TSVs that it wrote, whose quotation marks it takes for text."""

import csv

import pytest
from scales import scale

from tailprompt.data import table as data
from tailprompt.data.glee import quoted

TEXTS = ['he said "no"', "plain", '"', "a 'b' c", 'tab\tand "x"', "", "一“二”三", 'ends in "']
GLEES = ("cmid", "iflytek", "ctc", "msra", "r52", "ecom", "rte", "boolq")


def test_a_quoted_text_is_the_field_of_a_tsv_that_is_read_without_quotes(tmp_path):
    with open(tmp_path / "made.tsv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows([[text, "A"] for text in TEXTS if "\t" not in text])
    with open(tmp_path / "made.tsv", newline="", encoding="utf-8") as file:
        fields = [line.split("\t")[0] for line in file.read().split("\r\n") if line]
    assert fields == [quoted(text) for text in TEXTS if "\t" not in text]
    assert quoted('tab\tand "x"') == '"tab\tand ""x"""'


@pytest.mark.parametrize("quotes, expected", [(True, 'buy "gold" now'), (False, '"buy ""gold"" now"')])
def test_the_raw_loaders_and_the_table_give_the_same_texts(tmp_path, quotes, expected):
    told = {"quotes": quotes}
    (tmp_path / "train.txt").write_text('1\tA\tbuy "gold" now\n2\tB\tno\n', "utf-8")
    (tmp_path / "corpus.txt").write_text('buy "gold" now\nno\n', "latin-1")
    (tmp_path / "labels.txt").write_text("1\ttest\tA\n2\ttest\tB\n", "latin-1")
    (tmp_path / "made.tsv").write_text('text\tlabel\n"buy ""gold"" now"\tA\nno\tB\n', "utf-8")
    train, corpus, labels = (tmp_path / f"{name}.txt" for name in ("train", "corpus", "labels"))
    ctc = data.LOADERS["ctc"]({"train": train, "validation": train}, told)
    r52 = data.LOADERS["r52"]({"corpus": corpus, "labels": labels}, told)
    table = data.LOADERS["table"]({"test": tmp_path / "made.tsv"}, told)
    for made in (ctc[ctc["split"] == "test"], r52, table):
        assert made["text"].tolist() == [expected, "no"]


@pytest.mark.parametrize("name", GLEES)
def test_every_row_of_glee_has_its_released_form_which_differs_in_quotation_marks_alone(name):
    rows = scale("paper")["datasets"]
    plain, released = rows[name], rows[f"{name}_as_released"]
    assert released["quotes"] is False and "quotes" not in plain
    others = {"quotes", "note", "folder"}
    assert {k: v for k, v in released.items() if k not in others} == {
        k: v for k, v in plain.items() if k not in others
    }
    assert released["folder"] == plain.get("folder", name)
    under = scale("paper")["protocols"]["glee"]["datasets"]
    assert under.get(name) == under.get(f"{name}_as_released")
