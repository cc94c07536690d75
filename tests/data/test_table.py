"""Loaders of every source format, splits, cuts, and what is refused."""

import hashlib
import json
import lzma
import random
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailprompt.data import glee as longtail
from tailprompt.data import splits
from tailprompt.data import table as data
from tailprompt.errors import BadInput

ROW = {"name": "mine", "language": "en"}


def save(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def separated(path, rows, header=("text", "label"), separator=","):
    return save(path, "\n".join(separator.join(map(str, row)) for row in (header, *rows)) + "\n")


def examples(n, labels=("ham", "spam")):
    return [(f"text {i}", labels[i % len(labels)]) for i in range(n)]


def split_rows(n=12):
    return [(f"text {i}", "ab"[i % 2], ("train", "dev", "test")[i // 2 % 3]) for i in range(n)]


def refused(path, *words, **row):
    with pytest.raises(BadInput) as caught:
        data.load({**ROW, **row}, {"all": path} if not isinstance(path, dict) else path)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence


# source formats


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_same_rows_come_from_every_format_packed_or_not(tmp_path, kind, packed):
    rows = [('says "no", twice', "b"), ("línea\u2028uno", "a"), ("tab\there", "b")]
    frame = pd.DataFrame(rows, columns=["text", "label"])
    path = tmp_path / f"f.{kind}"
    if kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t", lineterminator="\r\n")
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        lines = [json.dumps(dict(zip(frame, row, strict=True)), ensure_ascii=False) for row in rows]
        save(path, "\n".join(lines) if kind == "jsonl" else f"[{', '.join(lines)}]")
    if packed:
        packed_path = tmp_path / f"f.{kind}.xz"
        packed_path.write_bytes(lzma.compress(path.read_bytes()))
        path = packed_path
    table = data.load_table({"train": path}, {})
    assert list(zip(table["text"], table["label"], strict=True)) == rows


def test_places_name_the_line_even_after_a_text_of_several_lines(tmp_path):
    path = save(tmp_path / "f.csv", 'text,label\n"two\nlines",a\nnext,b\n')
    assert list(data.load_table({"train": path}, {})["file:line"]) == ["f.csv:2", "f.csv:4"]


@pytest.mark.parametrize("kind, mark", [("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize("end", ['"7 inch screws,b', "last,a"])
def test_a_stray_quote_that_would_swallow_rows_is_refused_with_its_line(tmp_path, kind, mark, end):
    lines = ["text,label", "printer down,a", '"5 inch screws,b', "invoice wrong,a", end, ""]
    path = save(tmp_path / f"f.{kind}", "\n".join(lines).replace(",", mark))
    with pytest.raises(
        BadInput, match=rf"f\.{kind}: the row of line 3 has a field that begins with a double"
    ):
        data.load_table({"train": path}, {})
    assert len(data.load_table({"train": path}, {"quotes": False})) == 4


def test_quotes_that_swallow_nothing_are_read_as_ever(tmp_path):
    cells = ['"two\nlines, ""quoted"""', '5" screws', '"so" it is', '"a\n\nb"']
    path = save(tmp_path / "f.csv", "\n".join(["text,label", *(f"{cell},a" for cell in cells)]))
    found = ['two\nlines, "quoted"', '5" screws', "so it is", "a\n\nb"]
    assert list(data.load_table({"train": path}, {})["text"]) == found


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    path = save(tmp_path / "f.csv", "\ufefftext,label\nx,a\n")
    assert list(data.load_table({"train": path}, {})["text"]) == ["x"]


def test_columns_map_names_and_a_file_may_have_its_own(tmp_path):
    first = separated(tmp_path / "a.csv", [("x", "a")])
    second = save(tmp_path / "b.jsonl", '{"sentence": "y", "kind": 3.0}\n{"sentence": "z", "kind": true}\n')
    row = {"files": {"dev": {"columns": {"text": "sentence", "label": "kind"}}}}
    table = data.load_table({"train": first, "dev": second}, row)
    assert list(table["label"]) == ["a", "3", "True"] and list(table["split"]) == ["train", "dev", "dev"]


def intents(n):
    return [
        {
            "originalText": f"问{i}",
            "label_4class": ["'药物'"],
            "label_36class": ["'功效'" if i % 2 else "'用法'"],
        }
        for i in range(n)
    ]


@pytest.mark.parametrize("lines", [False, True])
def test_cmid_is_a_list_or_lines_shuffled_into_a_fifth_and_a_tenth(tmp_path, lines):
    objects = intents(50)
    text = "\n".join(map(json.dumps, objects)) if lines else json.dumps(objects)
    table = longtail.load_cmid({"raw": save(tmp_path / "CMID.json", text)}, {})
    assert Counter(table["split"]) == {"train": 35, "dev": 5, "test": 10}
    assert set(table["label"]) == {"药物作用", "药物用法"}  # 药物功效 is merged
    order = list(range(50))
    random.seed(1234)
    random.shuffle(order)
    assert list(table.loc[table["split"] == "test", "text"]) == [f"问{i}" for i in order[:10]]


def test_ctc_cuts_the_first_tenth_of_the_shuffled_training_lines_as_dev(tmp_path):
    train = save(tmp_path / "train.txt", "".join(f"s{i}\tA\t t{i}\r\n" for i in range(25)))
    test = save(tmp_path / "val.txt", "s1\tB\t x\n")
    table = longtail.load_ctc({"train": train, "validation": test}, {})
    order = list(range(25))
    random.seed(1234)
    random.shuffle(order)
    assert list(table.loc[table["split"] == "dev", "text"]) == [f" t{i}" for i in order[:2]]
    assert list(table.loc[table["split"] == "train", "text"]) == [f" t{i}" for i in order[2:]]
    assert list(table.loc[table["split"] == "test", "text"]) == [" x"]


def test_clue_lines_give_the_described_label_and_dev_is_the_test_set(tmp_path):
    line = '{{"label": "1", "label_des": "打车", "sentence": "句{}"}}\n'
    train = save(tmp_path / "train.json", "".join(line.format(i) for i in range(10)))
    table = longtail.load_clue({"train": train, "dev": save(tmp_path / "dev.json", line.format("x"))}, {})
    assert Counter(table["split"]) == {"train": 9, "dev": 1, "test": 1} and set(table["label"]) == {"打车"}


def test_msra_gives_one_example_an_entity_with_the_whole_sentence(tmp_path):
    sentence = '<w><NAMEX TYPE="PERSON">邓小平</NAMEX></w><w>在</w><w><TIMEX TYPE="DATE">今天</TIMEX></w>'
    body = f"<TEXT><SENTENCE>{sentence}</SENTENCE><SENTENCE><w>空</w></SENTENCE></TEXT>"
    xml = f'<?xml version="1.0" encoding="gb18030" ?>\n{body}'
    found = longtail.mentions(save(tmp_path / "a.xml", xml, "gb18030"))
    assert [m[:3] for m in found] == [("邓小平在今天", "邓小平", "PERSON"), ("邓小平在今天", "今天", "DATE")]


def test_r52_moves_each_training_document_to_dev_when_the_draw_is_below_a_tenth(tmp_path):
    labels = "".join(f"{i}\t{'test' if i % 4 == 0 else 'train'}\tearn\n" for i in range(80))
    corpus = "".join(f"document {i} caf\xe9 \n" for i in range(80))
    paths = {"corpus": tmp_path / "c.txt", "labels": tmp_path / "l.txt"}
    save(paths["corpus"], corpus, "latin-1"), save(paths["labels"], labels)
    table = longtail.load_r52(paths, {})
    random.seed(1234)
    expected = [i for i in range(80) if i % 4 and random.random() < 0.1]
    assert list(table.loc[table["split"] == "dev", "text"]) == [f"document {i} café" for i in expected]
    assert (table["split"] == "test").sum() == 20


# splits and cuts


def test_a_file_without_splits_is_cut_by_class_whatever_the_order_of_its_rows(tmp_path):
    rows = examples(100)
    one, _ = data.load(ROW, {"all": separated(tmp_path / "a.csv", rows)})
    other, _ = data.load(ROW, {"all": separated(tmp_path / "b.csv", rows[::-1])})
    assert Counter(one["split"]) == {"train": 70, "dev": 10, "test": 20}
    assert Counter(zip(one["split"], one["label"], strict=True))["test", 0] == 10
    assert dict(zip(one["text"], one["split"], strict=True)) == dict(
        zip(other["text"], other["split"], strict=True)
    )


def test_another_split_seed_splits_otherwise(tmp_path):
    path = separated(tmp_path / "a.csv", examples(100))
    first, second = (data.load({**ROW, "split_seed": seed}, {"all": path})[0] for seed in (0, 1))
    assert list(first["split"]) != list(second["split"])


def test_a_given_split_column_is_kept_and_validation_means_dev(tmp_path):
    rows = [(f"t{i}", "ab"[i % 2], ("train", "validation", "test")[i // 2 % 3]) for i in range(12)]
    path = separated(tmp_path / "a.csv", rows, ("text", "label", "part"))
    table, _ = data.load({**ROW, "columns": {"split": "part"}}, {"all": path})
    assert list(table["split"]) == [{"validation": "dev"}.get(row[2], row[2]) for row in rows]


def test_a_named_split_column_may_say_training_and_in_any_case(tmp_path):
    rows = [(f"t{i}", "ab"[i % 2], ("Training", " DEV", "testing")[i // 2 % 3]) for i in range(12)]
    path = separated(tmp_path / "a.csv", rows, ("text", "label", "Split"))
    table, _ = data.load({**ROW, "columns": {"split": "Split"}}, {"all": path})
    assert Counter(table["split"]) == {"train": 4, "dev": 4, "test": 4}


def test_a_missing_dev_split_is_cut_from_train_alone(tmp_path):
    paths = {
        "train": separated(tmp_path / "a.csv", examples(40)),
        "test": separated(tmp_path / "b.csv", examples(8)),
    }
    table, _ = data.load(ROW, paths)
    assert Counter(table["split"]) == {"train": 36, "dev": 4, "test": 8}


def test_a_class_with_two_examples_is_in_train_and_test(tmp_path):
    path = separated(tmp_path / "a.csv", [*examples(40), ("p", "rare"), ("q", "rare")])
    table, classes = data.load(ROW, {"all": path})
    assert set(table.loc[table["label"] == classes.index("rare"), "split"]) == {"train", "test"}


def test_a_class_with_one_example_is_refused_unless_train_may_keep_it(tmp_path):
    path = separated(tmp_path / "a.csv", [*examples(40), ("p", "rare")])
    refused(path, "rare", "singletons")
    table, classes = data.load({**ROW, "singletons": "train"}, {"all": path})
    assert list(table.loc[table["label"] == classes.index("rare"), "split"]) == ["train"]


def test_classes_that_are_numbers_are_ordered_as_numbers(tmp_path):
    rows = [(f"t{i}", label) for i in range(10) for label in (10, 9, 2)]
    assert data.load(ROW, {"all": separated(tmp_path / "a.csv", rows)})[1] == ["2", "9", "10"]


COUNTS = st.lists(st.integers(0, 60), min_size=1, max_size=12).filter(any)


def canonical(counts, split="train"):
    labels = [c for c, n in enumerate(counts) for _ in range(n)]
    ids = [f"{c}-{i}" for i, c in enumerate(labels)]
    return pd.DataFrame({"id": ids, "split": split, "label": labels, "text": ids})


@given(COUNTS, st.integers(0, 200))
def test_a_proportional_cut_has_exactly_the_rows_asked_for_and_every_class(counts, total):
    least = sum(min(n, 2) for n in counts)
    total = min(max(total, least), sum(counts))
    kept = splits.proportional(counts, total, "train")
    assert sum(kept) == total
    assert all(min(n, 2) <= k <= n for n, k in zip(counts, kept, strict=True))


def test_a_cut_that_asks_too_little_or_too_much_says_what_is_possible():
    for total in (3, 11):
        with pytest.raises(BadInput, match=f"train={total} is not possible: 2 classes .* need 4, .* are 10"):
            splits.proportional([5, 5], total, "train")


@settings(max_examples=12)
@given(COUNTS, st.randoms(use_true_random=False))
def test_a_cut_does_not_depend_on_the_order_of_the_rows(counts, chance):
    table = canonical(counts)
    order = list(table.index)
    chance.shuffle(order)
    one = splits.cut(table, {"shots": 3}, len(counts))
    other = splits.cut(table.loc[order].reset_index(drop=True), {"shots": 3}, len(counts))
    assert set(one["id"]) == set(other["id"])


def test_a_larger_cut_contains_the_smaller_one_and_another_sample_does_not():
    table = canonical([40, 40])
    four, eight, other = (
        set(splits.cut(table, c, 2)["id"]) for c in ({"shots": 4}, {"shots": 8}, {"shots": 4, "sample": 1})
    )
    assert four < eight and four != other


def test_shots_take_so_many_of_each_class_in_train_and_dev_and_leave_test():
    table = pd.concat(
        [
            canonical([9, 2], split).assign(id=lambda t, s=split: s + t["id"])
            for split in ("train", "dev", "test")
        ]
    )
    kept = splits.cut(table.reset_index(drop=True), {"shots": 3}, 2)
    found = Counter(zip(kept["split"], kept["label"], strict=True))
    assert found == {
        ("train", 0): 3,
        ("train", 1): 2,
        ("dev", 0): 3,
        ("dev", 1): 2,
        ("test", 0): 9,
        ("test", 1): 2,
    }


def test_an_imbalance_of_100_gives_the_exponential_profile():
    assert splits.exponential([500] * 5, 100) == [500, 158, 50, 16, 5]


@pytest.mark.parametrize("ratio", [501, 1_000_000_000])
def test_an_imbalance_above_the_largest_class_is_refused(ratio):
    with pytest.raises(BadInput, match=f"imbalance={ratio} is not possible: the largest class has 500"):
        splits.cut(canonical([500, 20]), {"imbalance": ratio}, 2)
    assert splits.exponential([500, 20], 500) == [500, 1]


@given(st.lists(st.integers(100, 900), min_size=2, max_size=12), st.integers(1, 50))
def test_an_imbalance_is_reached_as_near_as_whole_rows_allow(counts, ratio):
    kept = splits.exponential(counts, ratio)
    assert all(k <= n for n, k in zip(counts, kept, strict=True))
    assert (min(kept) - 0.51) * ratio <= max(kept) <= (min(kept) + 0.51) * ratio + 1


@pytest.mark.parametrize(
    "imbalance, total, last, digest",
    [
        (10, 19_573, 50, "80ae85f231121ab2b39af218175ce971"),
        (50, 12_608, 10, "51a71813ba056ff0a4929f1882c01a94"),
        (100, 10_847, 5, "ae7f61f36fdcbab6039b570614e16738"),
        (200, 9_502, 2, "faab90ff368132f91bf236cae32384cd"),
    ],
)
def test_cifar100_lt_has_the_published_counts(imbalance, total, last, digest):
    kept = splits.cut(canonical([500] * 100), {"imbalance": imbalance}, 100, draw="ldam")
    counts = kept["label"].value_counts().sort_index().tolist()
    assert len(kept) == total and counts[0] == 500 and counts[-1] == last
    assert hashlib.md5(",".join(map(str, counts)).encode()).hexdigest() == digest


def test_cifar100_lt_keeps_the_rows_that_numpys_global_generator_would():
    table = pd.concat([canonical([50] * 4), canonical([3] * 4, "test")], ignore_index=True)
    table = table.iloc[np.random.default_rng(0).permutation(len(table))].reset_index(drop=True)
    kept = splits.cut(table, {"imbalance": 10, "sample": 7}, 4, draw="ldam")
    np.random.seed(7)
    wanted = []
    for c, n in enumerate([50, 23, 10, 5]):
        rows = np.flatnonzero((table["label"] == c) & (table["split"] == "train"))
        np.random.shuffle(rows)
        wanted += list(rows[:n])
    assert set(kept.index[kept["split"] == "train"]) == set(wanted)
    assert (kept["split"] == "test").sum() == 12 and kept.index.is_monotonic_increasing


@pytest.mark.parametrize("change", [{"imbalance": 0.5}, {"shots": 0}, {"train": "all"}, {"sample": -1}])
def test_a_cut_that_is_no_number_from_one_is_refused(change):
    with pytest.raises(BadInput, match="a cut takes numbers from 1"):
        splits.cut(canonical([5, 5]), change, 2)


def test_shares_that_leave_nothing_to_train_are_refused(tmp_path):
    refused(
        separated(tmp_path / "a.csv", examples(20)), "leave some to train", shares={"dev": 0.5, "test": 0.5}
    )


# verbalizers and templates


def words(tmp_path, rows):
    return separated(tmp_path / "words.csv", rows, ("label", "words"))


def test_the_verbalizers_order_is_the_order_of_the_classes(tmp_path):
    path = separated(tmp_path / "a.csv", examples(40))
    _, classes = data.load(ROW, {"all": path}, words=words(tmp_path, [("spam", "junk"), ("ham", "good")]))
    assert classes == ["spam", "ham"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("x", "y")], "names no label of the data"),
        ([("ham", "good")], "lacks words for 1 label of the data: spam (a.csv:3"),
        ([("ham", "good"), ("spams", "junk")], "it names spams"),
        ([("ham", "good"), ("spam", "junk"), ("eggs", "egg")], "1 label that the data do not have: eggs"),
        ([("ham", "good"), ("ham", "fine"), ("spam", "junk")], "each label stands once"),
        ([("ham", ""), ("spam", "junk")], "each label stands once with its words, but ham"),
    ],
)
def test_a_verbalizer_that_does_not_fit_the_labels_is_refused(tmp_path, rows, sentence):
    path = separated(tmp_path / "a.csv", examples(40))
    with pytest.raises(BadInput) as caught:
        data.load(ROW, {"all": path}, words=words(tmp_path, rows))
    assert sentence in str(caught.value)


def test_a_verbalizer_may_name_absent_classes_when_the_row_says_so(tmp_path):
    path = separated(tmp_path / "a.csv", examples(40))
    given_words = words(tmp_path, [("ham", "good"), ("spam", "junk"), ("eggs", "egg")])
    assert data.load({**ROW, "absent_classes": True}, {"all": path}, words=given_words)[1] == [
        "ham",
        "spam",
        "eggs",
    ]


def test_labels_that_differ_in_case_are_two_classes_where_a_verbalizer_names_both(tmp_path):
    path = separated(tmp_path / "a.csv", examples(40, ["us", "US"]))
    assert data.load(ROW, {"all": path}, words=words(tmp_path, [("us", "we"), ("US", "America")]))[1] == [
        "us",
        "US",
    ]


# bad files: one sentence, all places of a kind at once


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    refused(separated(tmp_path / "a.csv", [("x", "a")], ("text", "category")), "'label'", "category", "a.csv")


def test_empty_texts_are_all_named_at_once(tmp_path):
    rows = [*examples(20), ("", "ham"), ("  ", "spam")]
    refused(separated(tmp_path / "a.csv", rows), "2 rows have an empty text", "a.csv:22", "a.csv:23")


def test_empty_labels_are_refused(tmp_path):
    refused(
        save(tmp_path / "a.jsonl", '{"text": "x", "label": null}\n{"text": "y"}\n'), "2 rows", "empty label"
    )


def test_an_id_that_stands_twice_is_named(tmp_path):
    rows = [(f"t{i}", "ab"[i % 2], i // 2 * 2 if i == 5 else i) for i in range(30)]
    path = separated(tmp_path / "a.csv", rows, ("text", "label", "key"))
    refused(path, "ids must be unique", ": 4 (", "a.csv:6", "a.csv:7", columns={"id": "key"})


def test_a_test_label_that_train_never_has_is_named(tmp_path):
    paths = {s: separated(tmp_path / f"{s}.csv", examples(20)) for s in ("train", "dev")}
    paths["test"] = separated(tmp_path / "test.csv", [*examples(4), ("x", "{new}")])
    refused(paths, "1 row has a label", "'{new}'", "test.csv:6")


def test_a_test_label_that_only_the_verbalizer_knows_is_named(tmp_path):
    paths = {s: separated(tmp_path / f"{s}.csv", examples(20)) for s in ("train", "dev")}
    paths["test"] = separated(tmp_path / "test.csv", [*examples(4), ("x", "new")])
    with pytest.raises(
        BadInput, match=r"1 dev or test row has a label that train never has: 'new' \(test.csv:6\)"
    ):
        data.load(ROW, paths, words=words(tmp_path, [("ham", "h"), ("spam", "s"), ("new", "n")]))


def test_an_unknown_split_is_named_with_the_known_ones(tmp_path):
    rows = [*split_rows(), ("x", "a", "holdout")]
    path = separated(tmp_path / "a.csv", rows, ("text", "label", "split"))
    refused(path, "'holdout'", "a.csv:14", "train", columns={"split": "split"})


def test_a_byte_of_another_encoding_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\nok,a\ncaf\xe9,b\n")
    refused(path, "byte 19 (line 3) is not UTF-8", "encoding")
    text = "text,label\n" + "".join(f"caf\xe9 {i},{'ab'[i % 2]}\n" for i in range(20))
    table, _ = data.load({**ROW, "encoding": "latin-1"}, {"all": save(path, text, "latin-1")})
    assert table["text"].str.startswith("café").all()


@pytest.mark.parametrize("encoding", ["utf9", "undefined", "punycode", "hex", "utf\0"])
def test_an_encoding_that_does_not_exist_is_named(tmp_path, encoding):
    refused(separated(tmp_path / "a.csv", examples(4)), f"no encoding '{encoding}'", encoding=encoding)


def test_one_class_is_refused(tmp_path):
    refused(separated(tmp_path / "a.csv", examples(20, ["ham"])), "one class only, ham")


def test_ragged_rows_are_all_named_at_once(tmp_path):
    refused(save(tmp_path / "a.csv", "text,label\nx,a\na, b,c\nd\n"), "2 rows", "2 fields", "lines 3, 4")


def test_a_line_that_is_not_json_is_named(tmp_path):
    refused(save(tmp_path / "a.jsonl", '{"text": "x", "label": "a"}\n{"text": \n'), "line 2 is not JSON")


def test_a_list_where_text_is_wanted_is_refused(tmp_path):
    refused(
        save(tmp_path / "a.jsonl", '{"text": ["x"], "label": "a"}\n'),
        "1 row holds list in the column 'text' (a.jsonl:1)",
    )


def test_a_cut_short_archive_is_refused(tmp_path):
    path = tmp_path / "a.csv.xz"
    path.write_bytes(lzma.compress(b"text,label\n" + b"x,a\n" * 999)[:-20])
    refused(path, "damaged or cut short")


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    refused(save(tmp_path / "a.parquet", "text,label"), "a.parquet cannot be read", "not a parquet file")


def test_an_empty_file_and_an_unknown_format_are_refused(tmp_path):
    refused(save(tmp_path / "a.csv", "text,label\n"), "no rows")
    refused(save(tmp_path / "b.csv", ""), "is empty")
    refused(save(tmp_path / "a.html", "x"), "unknown file format", "parquet")
    refused(save(tmp_path / "a.xlsx", "x"), "save its sheet as CSV", "parquet")


def test_an_unknown_loader_is_refused_with_the_known_ones(tmp_path):
    refused(tmp_path, "unknown loader 'tables'", "table", loader="tables")


# the canonical form


def test_a_prepared_table_comes_back_as_it_was_written(tmp_path):
    table, classes = data.load(ROW, {"all": separated(tmp_path / "a.csv", examples(40))})
    data.write(table, classes, tmp_path / "mine.parquet", sources={"a.csv": "0"})
    again, names = data.read(tmp_path / "mine.parquet")
    pd.testing.assert_frame_equal(table, again)
    assert names == classes and again["label"].dtype == "int64"


def test_reading_a_parquet_that_prepare_did_not_write_is_refused(tmp_path):
    pd.DataFrame({"text": ["x"]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="not written by tailprompt.prepare"):
        data.read(tmp_path / "x.parquet")
