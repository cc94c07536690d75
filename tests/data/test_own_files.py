"""Files as people have them: read as they are meant, or refused in a sentence that names what is wrong."""

import bz2
import gzip
import json
import lzma
import re
import time
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.data import contents, labels, new_rows
from tailprompt.data import table as data
from tailprompt.data.listings import Listing
from tailprompt.data.looked import look
from tailprompt.data.preflight import misfits
from tailprompt.data.readers import rows
from tailprompt.data.sentences import load_tags
from tailprompt.data.separated import named_once
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
    kinds += ["10%", "-1", "1-1", "C", "C++", "C#", "a_", "1,2,3", "é", "1e400", "0.1"]
    assert not labels.respelled(pd.Series(kinds))


@pytest.mark.parametrize("cell", ["['crash', 'urgent']", '["crash"]', '{"choices": ["crash"]}', "('a', 'b')"])
def test_a_list_in_the_cell_of_a_label_is_refused_as_multi_label(tmp_path, cell):
    text = lines(["a", "b"]) + '"x","' + cell.replace('"', '""') + '"\n'
    refused(saved(tmp_path / "a.csv", text), "1 row holds several labels", "a.csv:26", "multi-label")


@pytest.mark.parametrize("label", [["crash", "urgent"], {"choices": ["crash"]}])
def test_a_list_of_json_as_label_is_refused_as_multi_label(tmp_path, label):
    rows = [{"text": "x", "label": label}, {"text": "y", "label": "a"}]
    text = "\n".join(map(json.dumps, rows))
    refused(saved(tmp_path / "a.jsonl", text), "several labels", "a.jsonl:1", "multi-label")


@pytest.mark.parametrize("mark", ["|", ";", ", "])
def test_labels_joined_in_a_cell_are_refused_where_each_stands_alone_too(tmp_path, mark):
    path = saved(tmp_path / "a.tsv", lines(["crash", "urgent", f"crash{mark}urgent"], mark="\t"))
    refused(path, "12 rows hold several labels", "multi-label")


JOINED = {
    "forms": ["crash;", "urgent;", "crash;urgent;"],
    "a comma and a blank at the end": ["crash, ", "urgent, ", "crash, urgent, "],
    "postgres": ["a", "{crash,urgent}"],
    "numpy": ["[1 0 0]", "[0 1 0]"],
    "frozenset": ["a", "frozenset({'a', 'b'})"],
    "none alone": ["sports;economy", "economy;health", "health;sports"],
    "slash": ["bug", "feature", "bug/feature"],
    "plus": ["bug", "feature", "bug + feature"],
    "and": ["bug", "feature", "bug & feature"],
    "fasttext": ["__label__a", "__label__b", "__label__a __label__b"],
    "another case": ["Bug", "feature", "feature,bug"],
}


@pytest.mark.parametrize("written", JOINED.values(), ids=JOINED)
def test_several_labels_in_a_cell_are_refused_however_they_are_joined(tmp_path, written):
    refused(saved(tmp_path / "a.tsv", lines(written, mark="\t")), "hold several labels", "multi-label")
    found = misfits(Listing(pd.DataFrame({"id": [*"abc"][: len(written)], "label": written})), {})
    assert any("several labels" in each for each in found)


SINGLE = {
    "braces": ["{0}", "{n}", "(a)", "[b]"],
    "paths": ["Sports", "Sports/Ball", "Sports/Ball/Women", "Arts"],
    "paths with |": ["Sports|Ball", "Sports|Ski", "Arts|Ball", "Arts"],
    "places": ["Bonn, Rhein", "Mainz, Rhein", "Ulm"],
    "once more": ["New York, New York", "Buffalo, New York", "York"],
    "languages": ["C", "C++", "C/C++", "C#", "A+", "R&D", "AT&T"],
    "marks": ["+", "/", ";", "a;"],
}


@pytest.mark.parametrize("written", SINGLE.values(), ids=SINGLE)
def test_names_with_such_marks_are_one_label(written):
    assert not labels.several(pd.Series(written)).any()


ALIKE = {
    "apostrophes": [f"can{mark}t" for mark in "'’‘´`′ʼ"],
    "dashes": [f"sign{mark}in" for mark in "-‐‑‒–—−－"],
    "minus": ["-1", "−1", "-1.0"],
    "capitals": ["TEST", "ТEST", "ТEЅТ", "ΤEST"],
    "cyrillic": ["KM", "КМ", "км"],
    "greek": ["TAB", "ΤΑΒ"],
    "persian": ["شاکی", "شاكي"],
    "tatweel": ["بـب", "بب"],
    "digits": ["12", "١٢", "१२", "１２"],
    "powers": ["1", "1e0", "1E+00", "10e-1", "+1.0"],
    "thousands": ["1000", "1,000", "1 000", "1'000", "1e3"],
    "decimal commas": ["1.5", "1,5", "1.50"],
    "percents": ["10%", "10 %", "10.0%", "１０％"],
    "words": ["card lost", "card_lost", "card-lost", "Card - Lost"],
    "HTML": ["R&D", "R&amp;D", "R&#38;D"],
    "garbled": ["payé", "pay\u00c3\u00a9", "Payé"],
}


@pytest.mark.parametrize("written", ALIKE.values(), ids=ALIKE)
def test_labels_that_look_alike_are_found_in_any_script(written):
    assert len(labels.respelled(pd.Series(written))) == len(written) - 1


LONG = {
    "blanks within": "a" + " " * 50_000 + "b",
    "blanks after a comma": "a," + " " * 50_000 + "b",
    "zeros": "0" * 5000 + "." + "0" * 20_000 + "x",
    "brackets": "[" * 50_000 + "]" * 50_000,
    "calls": "a(" * 50_000 + ")" * 50_000,
    "digits": "1" * 100_000,
}


@pytest.mark.parametrize("label", LONG.values(), ids=LONG)
def test_the_time_for_a_label_grows_as_its_length(label):
    start = time.process_time()
    cells = pd.Series([label, "b"] * 3)
    labels.merged(cells), labels.respelled(cells), labels.several(cells)
    assert time.process_time() - start < 2


def test_a_name_with_a_comma_is_one_label(tmp_path):
    assert len(loaded(saved(tmp_path / "a.tsv", lines(["Bonn, Rhein", "Ulm"], mark="\t")))[1]) == 2


# the form of tables


@pytest.mark.parametrize("mark", [";", "|", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_another_separator_is_found_where_it_divides_all_rows_and_that_is_told(tmp_path, mark, start):
    table, classes = loaded(saved(tmp_path / "a.csv", start + lines(["a, b", "c"], mark=mark)))
    assert classes == ["a, b", "c"] and "separated by" in table.attrs["notes"][0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_separator_that_is_stated_or_stands_above_the_header_is_taken(tmp_path, end):
    body = lines(["a", "b"], mark="^")
    assert loaded(saved(tmp_path / "a.csv", body), separator="^")[1] == ["a", "b"]
    assert loaded(saved(tmp_path / "b.csv", f"sep=^{end}" + body.replace("\n", end)))[1] == ["a", "b"]
    refused(saved(tmp_path / "c.csv", body), "no column 'text'", "separator")


def test_a_header_among_the_rows_is_refused_with_its_lines(tmp_path):
    refused(saved(tmp_path / "a.csv", lines(["a", "b"]) * 2), "1 row is the header", "lines 26")


@pytest.mark.parametrize("head", ["\ufefftext,label", "Text,Label", "text,label ", " TEXT\u200b,label"])
def test_a_header_in_another_spelling_among_the_rows_is_refused(tmp_path, head):
    text = lines(["a", "b"]) + (head + lines(["a", "b"]).removeprefix("text,label")) * 2
    refused(saved(tmp_path / "a.csv", text), "2 rows are the header", "lines 26, 51")
    refused(saved(tmp_path / "b.csv", text), "3 rows are the header", header=["text", "label"])


def test_a_row_that_shares_one_cell_with_the_header_is_a_row(tmp_path):
    assert loaded(saved(tmp_path / "a.csv", lines(["label", "b"]) + "text,b\n"))[1] == ["b", "label"]


def test_marks_before_a_header_are_no_part_of_it(tmp_path):
    assert loaded(saved(tmp_path / "a.csv", "\ufeff" * 3 + lines(["a", "b"])))[1] == ["a", "b"]


@pytest.mark.parametrize("name", ["split", "Split ", "set", "subset", "phase"])
@pytest.mark.parametrize("kinds", [["train", "dev", "test"], ["Training", "Validation", "Training"]])
def test_a_column_of_splits_that_is_not_used_is_refused_whatever_its_name(tmp_path, name, kinds):
    frame = pd.DataFrame({"text": [f"t {n}" for n in range(24)], "label": [*"ab"] * 12, name: kinds * 8})
    frame.to_csv(tmp_path / "a.csv", index=False)
    refused(tmp_path / "a.csv", f"a column '{name}' that tells splits", f"split: {name}")
    with pytest.raises(BadInput, match=f"given as train, but its column '{name}' also says"):
        data.load(ROW, {"train": tmp_path / "a.csv"})
    assert look(tmp_path / "a.csv").columns == {"text": "text", "label": "label", "split": name}
    assert look(tmp_path / "a.csv", label=name).columns == {"text": "text", "label": name}


def test_labels_that_are_named_as_splits_are_labels(tmp_path):
    assert loaded(saved(tmp_path / "a.csv", lines(["train", "test"])))[1] == ["test", "train"]
    frame = pd.DataFrame({"text": [*"abcdefghijkl"], "label": ["x", "y"] * 6, "kind": ["train", "bus"] * 6})
    frame.to_csv(tmp_path / "b.csv", index=False)
    assert "split" not in look(tmp_path / "b.csv").columns


def test_escaped_quotes_are_refused_and_read_where_the_escape_is_stated(tmp_path):
    text = lines(["a", "b"]) + '"he said \\"card\\" to support",a\n'
    path = saved(tmp_path / "a.csv", text)
    refused(path, "line 26", "backslash", "escape")
    assert 'he said "card" to support' in set(loaded(path, escape="\\")[0]["text"])


@pytest.mark.parametrize(
    "cell", ['"Good" he said', '"unclosed', '"a" b "c"', '"great movie,{label}\nbad movie"']
)
@pytest.mark.parametrize("mark", [",", "\t"])
def test_quotes_that_may_be_of_the_texts_are_told(tmp_path, cell, mark):
    text = (
        lines(["a", "b"], mark=mark)
        + cell.replace(",{label}", f"{mark}a")
        + (f"{mark}a" if cell != '"unclosed' else "")
    )
    path = saved(tmp_path / "a.tsv", text.replace('"unclosed', f'x{mark}"a'))
    table = rows(path, "utf-8-sig", hint="")
    note = next(each for each in table.attrs["notes"] if "quotes: false" in each)
    assert "1 row" in note and "(lines 26)" in note
    assert (
        sum(rows(path, "utf-8-sig", hint="", quotes=False)["text"].str.count('"')) + (cell == '"unclosed') > 0
    )


def test_quotes_that_enclose_whole_fields_are_not_told(tmp_path):
    text = lines(["a", "b"]) + '"a, ""b""",a\n"two\nlines" ,a\n5" x,a\n"","b" \n'
    assert not [
        each
        for each in rows(saved(tmp_path / "a.csv", text), "utf-8-sig", hint="").attrs["notes"]
        if "false" in each
    ]


@pytest.mark.parametrize("cell", ["C:\\new", "a\\b\\", "\\d+"])
def test_a_stated_escape_leaves_what_it_does_not_escape(tmp_path, cell):
    path = saved(tmp_path / "a.csv", lines(["a", "b"]) + f'"{cell} \\"x\\" \\\\ y",a\n')
    assert f'{cell} "x" \\ y' in set(loaded(path, escape="\\")[0]["text"])


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


WRITTEN = {
    "fr": ("à l'heure 0,réclamation\nle café est fermé,plainte\n", ["cp1252", "latin-1", "mac-roman"]),
    "pl": ("żółta łódź nie działa,błąd\nproszę o pomoc,usługa\n", ["cp1250", "iso8859-2"]),
    "el": ("δεν λειτουργεί η σύνδεση,πρόβλημα\nευχαριστώ,έπαινος\n", ["cp1253"]),
    "tr": ("şifre değişmiyor ğ ı,öneri\nİstek çok geç,şikâyet\n", ["cp1254"]),
    "ru": ("не работает вход,ошибка\nспасибо,благодарность\n", ["cp1251", "koi8-r"]),
    "de": ("Gerät läuft nicht für,Störung\nschön,größer\n", ["cp1252", "mac-roman", "cp850"]),
    "zh": ("账单退款故障,账单\n无法登录账户,登录\n", ["gb18030"]),
}


@pytest.mark.parametrize(
    "language, encoding", [(language, each) for language in WRITTEN for each in WRITTEN[language][1]]
)
def test_a_refusal_shows_what_encodings_read_and_one_of_them_is_right(tmp_path, language, encoding):
    text = WRITTEN[language][0]
    path = saved(tmp_path / "a.csv", "text,label\n" + text * 12, encoding)
    with pytest.raises(BadInput) as caught:
        loaded(path)
    odd = next(each for each in re.split(r"\W+", text) if not each.isascii())
    names = re.findall(r"(\S+) reads '([^']*)'", str(caught.value))
    right = [name for name, reading in names if odd in reading]
    assert right and {*loaded(path, encoding=right[0])[1]} == {
        line.split(",")[1] for line in text.strip().split("\n")
    }


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "gb18030", "mac-roman"])
@pytest.mark.parametrize("names", [["café", "büro"], ["投诉", "咨询"]])
def test_another_encoding_that_is_stated_for_a_file_in_utf8_is_refused(tmp_path, encoding, names):
    refused(saved(tmp_path / "a.csv", lines(names)), "is UTF-8", "leave the encoding out", encoding=encoding)
    assert loaded(saved(tmp_path / "b.csv", lines(["a", "b"])), encoding=encoding)[1] == ["a", "b"]


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


@pytest.mark.parametrize("packing", sorted(set(PACKINGS) - {""}))
def test_a_packed_file_that_is_far_larger_than_any_text_is_refused(tmp_path, packing, monkeypatch):
    content = lines(["a", "b"]).encode()
    for name, more in {"a.csv": 0, "b.csv": 2**20}.items():
        (tmp_path / f"{name}{packing}").write_bytes(PACKINGS[packing](content + b" " * more))
    monkeypatch.setattr(contents, "LARGE", 2**16)
    assert len(loaded(tmp_path / f"a.csv{packing}")[0]) == 24
    refused(tmp_path / f"b.csv{packing}", "unpacks to more than 200 times its size")


def test_the_time_for_many_columns_grows_as_their_number(tmp_path):
    names, start = [f"c{n}" for n in range(40_000)], time.process_time()
    named_once(names, tmp_path)
    path = saved(tmp_path / "a.jsonl", json.dumps(dict.fromkeys(names)).replace("}", ', "c39999": 1}'))
    with pytest.raises(BadInput, match="'c39999' stands there twice"):
        rows(path, "utf-8-sig", hint="")
    assert time.process_time() - start < 2


@pytest.mark.parametrize("start, kind", sorted(contents.FOREIGN.items()))
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
def test_a_file_that_is_no_text_is_named_whatever_its_name(tmp_path, start, kind, name):
    (tmp_path / name).write_bytes(start + bytes(range(256)))
    refused(tmp_path / name, f"{name} is {kind}", "save its table as CSV")


@pytest.mark.parametrize(
    "head, says",
    [
        ("text\u200b,label", "'text\\u200b'"),
        ("text,label\u00a0", "'label\u00a0'"),
        ("t\u0435xt,label", "'t\\u0435xt'"),
        ("Text,label", "'Text'"),
    ],
)
def test_a_name_that_looks_like_a_missing_one_is_shown_so_that_one_sees_why(tmp_path, head, says):
    path = saved(tmp_path / "a.csv", lines(["a", "b"]).replace("text,label", head, 1))
    refused(path, "no column", says)
    with pytest.raises(BadInput) as caught:
        new_rows.read(path, {"text": "text", "pair": "label"}, encoding="utf-8", taken=(), options=2)
    assert says in str(caught.value)


@pytest.mark.parametrize("key", ["only", "left_out"])
def test_a_label_to_keep_or_leave_out_that_no_row_has_is_refused(tmp_path, key):
    path = saved(tmp_path / "a.csv", lines(["billing", "crash", "c"]))
    refused(path, f"{key} names biling, which no row has", **{key: ["biling", "c"]})
    words = saved(tmp_path / "words.csv", "label,words\nbilling,x\ncrash,y\nc,z\n")
    if key == "left_out":
        assert len(data.load({**ROW, key: ["-"]}, {"all": path}, words=words)[1]) == 3


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
    assert "1 row has an empty text, so there is no answer" in capsys.readouterr().err


ENDS = {"LF": "\n", "CR": "\r", "CRLF": "\r\n", "CRCRLF": "\r\r\n"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_lines_end_as_any_system_ends_them(tmp_path, name, end):
    head = ["text"] if name in ("a.csv", "a.tsv") else []
    texts = ["one", "two", "three"]
    cells = [json.dumps({"text": text}) for text in texts] if name == "a.jsonl" else texts
    for last in ("", end):
        assert read(saved(tmp_path / name, end.join([*head, *cells]) + last))[1]["text"].tolist() == texts


def test_lines_of_joined_files_may_end_in_several_ways(tmp_path):
    assert len(read(saved(tmp_path / "a.txt", "one\rtwo\nthree\r\nfour"))[0]) == 4


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_words_a_line_may_end_as_any_system_ends_them(tmp_path, end):
    text = end.join(["\ufeffAnn B-PER", "left O", "", "\ufeffBob B-PER", ""])
    table = load_tags({"train": saved(tmp_path / "a.txt", text)}, {})
    assert table["words"].tolist() == [["Ann", "left"], ["Bob"]]


ODD = {
    "a list": ("a.jsonl", ['{"text": "a"}', '{"text": ["b"]}', '{"text": "c"}']),
    "an object": ("a.jsonl", ['{"text": "a"}', '{"text": {"b": 1}}', '{"text": "c"}']),
    "no JSON": ("a.jsonl", ['{"text": "a"}', '{"text": "b', '{"text": "c"}']),
    "half a character": ("a.jsonl", ['{"text": "a"}', '{"text": "\\ud800"}', '{"text": "c"}']),
    "no object": ("a.jsonl", ['{"text": "a"}', "[1]", '{"text": "c"}']),
    "a key twice": ("a.jsonl", ['{"text": "a"}', '{"text": "b", "text": "b"}', '{"text": "c"}']),
    "too few fields": ("a.csv", ["text,n", "a,1", "b", "c,3"]),
    "too many fields": ("a.csv", ["text,n", "a,1", "b,2,3", "c,3"]),
}


@pytest.mark.parametrize("name, written", ODD.values(), ids=ODD)
def test_a_row_that_cannot_be_read_is_told_and_the_others_are_answered(tmp_path, capsys, name, written):
    table, examples = read(saved(tmp_path / name, "\n".join(written)))
    line = 2 if name == "a.jsonl" else 3
    told = capsys.readouterr().err
    assert len(table) == 3 and list(examples.index) == [0, 2] and list(examples["text"]) == ["a", "c"]
    assert f"1 row has an empty text, so there is no answer (a.{name[2:]}:{line})" in told
    assert len(told.splitlines()) == 2


def test_a_repeated_header_moves_no_row_and_is_told(tmp_path, capsys):
    assert len(read(saved(tmp_path / "a.csv", "id,text\n1,a\nid,text\n2,b\n"))[0]) == 3
    assert "1 row is the header itself (lines 3)" in capsys.readouterr().err


def test_a_separator_that_was_found_is_told_of_new_rows_too(tmp_path, capsys):
    assert len(read(saved(tmp_path / "a.csv", "id;text\n1;a\n2;b\n"))[0]) == 2
    assert "separated by ';'" in capsys.readouterr().err


@pytest.mark.parametrize("cell", [None, "x", ["a", 1], {"a": 1}])
def test_a_row_without_options_is_told_and_the_others_are_answered(tmp_path, capsys, cell):
    values = [{"text": "a", "choices": each} for each in (["x", "y"], cell, ["y", "z"])]
    path = saved(tmp_path / "a.jsonl", "\n".join(map(json.dumps, values)))
    columns = {"text": "text", "choices": "choices"}
    table, examples = new_rows.read(path, columns, encoding="utf-8-sig", taken=(), options=2)
    assert len(table) == 3 and list(examples.index) == [0, 2] and "a.jsonl:2" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["a", ""], ["a", 1], [], None])
def test_words_that_are_none_are_told_and_the_others_are_tagged(tmp_path, capsys, words):
    values = [{"text": each} for each in (["a", "b"], words, ["c"])]
    path = saved(tmp_path / "a.jsonl", "\n".join(map(json.dumps, values)))
    table, examples = new_rows.read(
        path, {"text": "text"}, encoding="utf-8-sig", taken=(), options=2, unit="token"
    )
    assert len(table) == 3 and list(examples.index) == [0, 2] and "a.jsonl:2" in capsys.readouterr().err
    assert list(examples["words"]) == [["a", "b"], ["c"]]


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
@settings(max_examples=40)
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


def test_a_line_above_the_header_is_shown_with_what_to_do(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("# made by me\ntext,label\n" + "a text,b\n" * 9)
    with pytest.raises(BadInput, match=r"header's 1 field \(# made by me\).*leave out what stands above it"):
        rows(file, "utf-8-sig", hint="")
    file.write_text("Export of tickets,,\n\ntext,label,\n" + "a text,b,\n" * 9)
    with pytest.raises(BadInput, match="several columns have no name.* has 'Export of tickets', '', ''"):
        rows(file, "utf-8-sig", hint="")
    file.write_text("text,label\n" + "a text,b\n" * 9 + "a text, or two,b\n")
    with pytest.raises(BadInput, match="quote texts that hold a separator"):
        rows(file, "utf-8-sig", hint="")


@pytest.mark.parametrize(
    "start, kind",
    [
        ("version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        ("<!DOCTYPE html>", "a web page"),
    ],
    ids=["lfs", "html"],
)
def test_what_a_download_left_in_place_of_the_file_is_named(tmp_path, start, kind):
    file = tmp_path / "a.csv"
    file.write_text(f"{start}oid sha256:4d7a\nsize 12345\n")
    with pytest.raises(BadInput, match=kind):
        rows(file, "utf-8-sig", hint="")
