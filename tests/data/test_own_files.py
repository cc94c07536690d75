"""Files as people have them: read as they are meant, or refused in a sentence that names what is wrong."""

import bz2
import gzip
import json
import lzma
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.data import labels, new_rows
from tailprompt.data import table as data
from tailprompt.data.readers import rows
from tailprompt.errors import BadInput

ROW = {"name": "mine", "language": "en"}
PACKINGS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}


def saved(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def lines(labels, number=12, mark=","):
    """A header and `number` rows of each label."""
    cells = [f"text {n} of {k}{mark}{label}" for n in range(number) for k, label in enumerate(labels)]
    return "\n".join([f"text{mark}label", *cells, ""])


def loaded(path, **row):
    return data.load({**ROW, **row}, {"all": path})


def refused(path, *words, **row):
    with pytest.raises(BadInput) as caught:
        loaded(path, **row)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence


# labels


@pytest.mark.parametrize(
    "written, names",
    [
        (["0", "0.0", "1", "1.0"], ["0", "1"]),
        (["-1", "-1.00", "2"], ["-1", "2"]),
        (["r\u00e9clamation", "re\u0301clamation", "b"], ["b", "r\u00e9clamation"]),
    ],
)
def test_one_value_in_two_forms_is_one_class_and_that_is_told(tmp_path, written, names):
    table, classes = loaded(saved(tmp_path / "a.csv", lines(written)))
    assert classes == names and len(table) == 12 * len(written)
    assert len(table.attrs["notes"]) == len(written) - len(names)


def test_whole_numbers_in_train_and_decimals_in_test_are_one_class(tmp_path):
    kinds = {"train": ["0", "1"], "dev": ["0", "1"], "test": ["0.0", "1.0"]}
    paths = {split: saved(tmp_path / f"{split}.csv", lines(each)) for split, each in kinds.items()}
    assert data.load(ROW, paths)[1] == ["0", "1"]


def test_forms_that_a_verbalizer_names_keep_its_names(tmp_path):
    words = saved(tmp_path / "words.csv", "label,words\n0.0,no\n1.0,yes\n")
    path = saved(tmp_path / "a.csv", lines(["0", "1"]))
    assert data.load(ROW, {"all": path}, words=words)[1] == ["0.0", "1.0"]


@pytest.mark.parametrize(
    "other, shown",
    [
        ("login\u200b", "login\\u200b"),
        ("\ufefflogin", "\\ufefflogin"),
        ("lo\u00adgin", "lo\\xadgin"),
        ("l\u043egin", "l\\u043egin"),
        ("\uff4cogin", "\\uff4cogin"),
        ("Login ", "'Login '"),
        ("login\ufe0f", "login\\ufe0f"),
    ],
)
def test_labels_that_look_alike_are_refused_with_both_names_so_that_one_sees_it(tmp_path, other, shown):
    counts = [*["login"] * 2, other, "b"]
    refused(saved(tmp_path / "a.csv", lines(counts)), shown, "beside 'login'", "a.csv:")


def test_numbers_with_and_without_leading_zeros_are_refused(tmp_path):
    refused(saved(tmp_path / "a.csv", lines(["01", "1", "1", "2"])), "'01' beside '1'")


def test_labels_that_only_share_letters_are_not_alike():
    kinds = ["a", "b", "0", "1", "10", "1.5", "A-b", "ab", "привет", "登录", "❤", "💔", "x1", "x10"]
    assert not labels.respelled(pd.Series(kinds))


@pytest.mark.parametrize("cell", ["['crash', 'urgent']", '["crash"]', '{"choices": ["crash"]}', "('a', 'b')"])
def test_a_list_in_the_cell_of_a_label_is_refused_as_multi_label(tmp_path, cell):
    text = lines(["a", "b"]) + '"x","' + cell.replace('"', '""') + '"\n'
    refused(saved(tmp_path / "a.csv", text), "1 rows hold several labels", "a.csv:26", "multi-label")


@pytest.mark.parametrize("label", [["crash", "urgent"], {"choices": ["crash"]}])
def test_a_list_of_json_as_label_is_refused_as_multi_label(tmp_path, label):
    rows = [{"text": "x", "label": label}, {"text": "y", "label": "a"}]
    text = "\n".join(map(json.dumps, rows))
    refused(saved(tmp_path / "a.jsonl", text), "several labels", "a.jsonl:1", "multi-label")


@pytest.mark.parametrize("mark", ["|", ";", ", "])
def test_labels_joined_in_a_cell_are_refused_where_each_stands_alone_too(tmp_path, mark):
    path = saved(tmp_path / "a.tsv", lines(["crash", "urgent", f"crash{mark}urgent"], mark="\t"))
    refused(path, "12 rows hold several labels", "multi-label")


def test_a_name_with_a_comma_is_one_label(tmp_path):
    assert len(loaded(saved(tmp_path / "a.tsv", lines(["Bonn, Rhein", "Ulm"], mark="\t")))[1]) == 2


# the form of tables


@pytest.mark.parametrize("mark", [";", "|", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_another_separator_is_found_where_it_divides_all_rows_and_that_is_told(tmp_path, mark, start):
    table, classes = loaded(saved(tmp_path / "a.csv", start + lines(["a, b", "c"], mark=mark)))
    assert classes == ["a, b", "c"] and "separated by" in table.attrs["notes"][0]


def test_a_separator_that_is_stated_or_stands_above_the_header_is_taken(tmp_path):
    body = lines(["a", "b"], mark="^")
    assert loaded(saved(tmp_path / "a.csv", body), separator="^")[1] == ["a", "b"]
    assert loaded(saved(tmp_path / "b.csv", "sep=^\r\n" + body))[1] == ["a", "b"]
    refused(saved(tmp_path / "c.csv", body), "no column 'text'", "separator")


def test_a_header_among_the_rows_is_refused_with_its_lines(tmp_path):
    refused(saved(tmp_path / "a.csv", lines(["a", "b"]) * 2), "1 rows are the header", "lines 26")


def test_escaped_quotes_are_refused_and_read_where_the_escape_is_stated(tmp_path):
    text = lines(["a", "b"]) + '"he said \\"card\\" to support",a\n'
    path = saved(tmp_path / "a.csv", text)
    refused(path, "line 26", "backslash", "escape")
    assert 'he said "card" to support' in set(loaded(path, escape="\\")[0]["text"])


def test_blanks_before_quotes_are_no_part_of_a_class(tmp_path):
    table, classes = loaded(saved(tmp_path / "a.csv", lines([' "x, y"', ' "z"'])))
    assert classes == ["x, y", "z"] and "blanks" in table.attrs["notes"][0]


@pytest.mark.parametrize("packing", sorted(PACKINGS))
def test_files_are_unpacked_by_what_they_are_whatever_their_name(tmp_path, packing):
    content = PACKINGS[packing](lines(["a", "b"]).encode())
    for name in (f"a.csv{packing}", "b.csv"):
        (tmp_path / name).write_bytes(content)
        assert len(loaded(tmp_path / name)[0]) == 24


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path, encoding):
    assert loaded(saved(tmp_path / "a.csv", lines(["é", "登"]), encoding))[1] == ["é", "登"]


def test_other_encodings_are_refused_with_the_likely_one_and_no_other(tmp_path):
    path = saved(tmp_path / "a.csv", lines(["账单退款故障", "无法登录账户"]), "gb18030")
    refused(path, "not UTF-8", "looks like gb18030")
    assert loaded(path, encoding="gb18030")[1] == ["无法登录账户", "账单退款故障"]
    refused(saved(tmp_path / "b.csv", lines(["a", "b"]), "utf-16-le"), "utf-16-le")
    quoted = saved(tmp_path / "c.csv", lines(["\u201ca\u201d", "b"]), "cp1252")
    refused(quoted, "another encoding", encoding="latin-1")


@pytest.mark.parametrize(
    "value, words",
    [
        ({"text": ["x", "y"], "label": ["a", "b"]}, "an object of columns"),
        ({"text": {"0": "x"}, "label": {"0": "a"}}, "an object of columns"),
        ({"version": 1, "data": [{"text": "x", "label": "a"}]}, "a list of rows under 'data'"),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_of_another_shape_is_named_with_how_to_save_it(tmp_path, value, words, indent):
    refused(saved(tmp_path / "a.json", json.dumps(value, indent=indent)), words, "records")


def test_indented_objects_are_named(tmp_path):
    text = json.dumps({"text": "x", "label": "a"}, indent=2) * 2
    refused(saved(tmp_path / "a.json", text), "over several lines", "lines=True")


def test_named_indices_and_whole_decimals_of_parquet_are_columns_and_numbers(tmp_path):
    frame = pd.DataFrame({"text": [f"t{n}" for n in range(24)], "label": [Decimal(n % 2) for n in range(24)]})
    frame.index = pd.Index([f"row {n}" for n in range(24)], name="key")
    frame.to_parquet(tmp_path / "a.parquet")
    table, classes = loaded(tmp_path / "a.parquet", columns={"id": "key"})
    assert classes == ["0", "1"] and set(table["id"]) == set(frame.index)


@pytest.mark.parametrize("name, how", [("a.xlsx", "save its sheet"), ("a.zip", "unpack")])
def test_files_that_are_no_text_say_how_to_save_them(tmp_path, name, how):
    refused(saved(tmp_path / name, "x"), how, "csv")


# new rows are answered where they stand


def read(path):
    return new_rows.read(path, {"text": "text"}, encoding="utf-8-sig", taken=(), options=2)


@pytest.mark.parametrize(
    "name, text, shown",
    [
        ("a.csv", "text\none\n\nthree\n\n", ["one", "", "three"]),
        ("a.csv", "text,n\none,1\n,2\nthree,3\n", ["one", "", "three"]),
        ("a.txt", "one\n\nthree\n", ["one", "", "three"]),
        ("a.txt", "one, two\n  \nthree", ["one, two", "  ", "three"]),
        ("a.txt", "text\none\n\nthree\n", ["one", "", "three"]),
    ],
)
def test_a_row_without_text_keeps_its_place_and_is_told(tmp_path, capsys, name, text, shown):
    table, examples = read(saved(tmp_path / name, text))
    assert list(table["text"]) == shown and list(examples.index) == [0, 2]
    assert "1 rows have an empty text and are not answered" in capsys.readouterr().err


def test_a_file_without_any_text_is_refused(tmp_path):
    with pytest.raises(BadInput, match="2 rows have an empty text"):
        read(saved(tmp_path / "a.csv", 'text,n\n"",1\n"",2\n'))


# whatever texts hold, they come back

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=20)
CELLS = st.tuples(TEXT, st.sampled_from(["a", "b c", "1", "é", 'a "b"', "x;y", "登录"]))


def written(frame, path, kind):
    """Write a frame as a person's program would."""
    marks = {"csv": ",", "tsv": "\t", "csv;": ";"}
    if kind in marks:
        path.write_bytes(frame.to_csv(index=False, sep=marks[kind], lineterminator="\r\n").encode())
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=kind != "json", force_ascii=False)


@pytest.mark.parametrize("kind", ["csv", "csv;", "tsv", "jsonl", "ndjson", "json", "parquet"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    cells=st.lists(CELLS, min_size=2, max_size=8),
    packing=st.sampled_from(sorted(PACKINGS)),
    mark=st.booleans(),
)
def test_a_table_comes_back_from_every_format_as_it_was_or_is_refused(
    tmp_path_factory, kind, cells, packing, mark
):
    frame = pd.DataFrame(cells, columns=["text", "label"])
    path = tmp_path_factory.mktemp("f") / f"a.{kind.strip(';')}"
    written(frame, path, kind)
    content = path.read_bytes()
    if mark and kind != "parquet":
        content = "\ufeff".encode() + content
    path = path.with_name(path.name + packing)
    path.write_bytes(PACKINGS[packing](content))
    table = rows(path, "utf-8-sig", hint="")
    assert table["text"].tolist() == frame["text"].tolist()
    assert table["label"].tolist() == frame["label"].tolist()


@pytest.mark.parametrize("key", ["text", "pair"])
def test_the_column_of_labels_is_not_read_as_text(tmp_path, key):
    file = saved(tmp_path / "a.csv", lines(["crash", "urgent"]))
    refused(file, f"column of labels as what is read too ({key}: label)", columns={key: "label"})


@pytest.mark.parametrize("other", [1, 0, 1.0])
def test_numbers_and_booleans_as_labels_are_refused(tmp_path, other):
    labels = [True, other, False] * 12
    rows = [json.dumps({"text": f"text {n}", "label": label}) for n, label in enumerate(labels)]
    refused(saved(tmp_path / "a.jsonl", "\n".join(rows)), "'label' holds booleans and the numbers 0 or 1")


@pytest.mark.parametrize("label", ["a{n}", "a{places}", "a{0}"])
def test_a_label_with_braces_is_shown_as_it_is(tmp_path, label):
    file = saved(tmp_path / "a.csv", lines([label] * 2 + [label.upper()]))
    refused(file, "'mine': 12 rows have a label", f"'{label}'", "(a.csv:4, ")
