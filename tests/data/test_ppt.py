"""PPT's data sets: their raw forms, texts with options, and even few-shot draws."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailprompt.data import archives, report, splits
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.plan.rows import dataset_row

ROW = {"name": "mine", "language": "en"}


def refused(paths, *words, **row):
    with pytest.raises(BadInput) as caught:
        data.load({**ROW, **row}, paths)
    sentence = str(caught.value)
    assert "\n" not in sentence and all(word in sentence for word in words), sentence


# raw forms


def test_a_tree_gives_its_leaves_and_the_label_of_its_root(tmp_path):
    (tmp_path / "dev.txt").write_text("(3 (2 It) (4 (2 's) (4 (2 -LRB-) (4 lovely))))\n(1 (2 No) (2 one))\n")
    table = data.load_trees({"train": tmp_path / "dev.txt"}, {})
    assert list(table["text"]) == ["It 's ( lovely", "No one"] and list(table["label"]) == ["3", "1"]


def test_a_line_that_is_no_tree_is_named(tmp_path):
    (tmp_path / "dev.txt").write_text("(3 (2 It))\n4 it works\n")
    refused({"train": tmp_path / "dev.txt"}, "line 2 is no tree", loader="trees")


def race(path, texts):
    with tarfile.open(path, "w:xz") as archive:
        for name, value in texts.items():
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            entry = tarfile.TarInfo(f"RACE/{name}.txt")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def passage(name, n=2):
    return {
        "id": f"{name}.txt",
        "article": f"about {name}",
        "questions": [f"{name} {k}?" for k in range(n)],
        "options": [["w", "x", "y", "z"]] * n,
        "answers": ["B", "D"][:n],
    }


def test_race_gives_an_example_a_question_of_one_level_and_validation_may_be_the_test_set(tmp_path):
    texts = {f"{split}/{level}/{n}": passage(f"{split}{level}{n}") for split in ("train", "dev", "test")
             for level in ("middle", "high") for n in range(2)}  # fmt: skip
    row = {"level": "middle", "splits": {"train": "train", "test": "dev"}}
    table = data.load_race({"all": race(tmp_path / "RACE.tar.xz", texts)}, row)
    assert table.groupby("split").size().to_dict() == {"train": 4, "test": 4}
    assert table["text"].str.contains("middle").all() and table["id"].is_unique
    first = table.iloc[0]
    assert (first["pair"], first["choices"], first["label"]) == ("trainmiddle0 0?", ["w", "x", "y", "z"], "B")


def test_an_archive_that_is_not_race_or_has_no_text_of_the_level_is_one_sentence(tmp_path):
    path = race(tmp_path / "a.tar.xz", {"train/middle/1": passage("a")})
    refused({"all": path}, "no text of level high", "a.tar.xz", loader="race", level="high")
    path = race(tmp_path / "b.tar.xz", {"train/middle/1": {"id": "1"}})
    refused({"all": path}, "RACE/train/middle/1.txt is no text of RACE", loader="race", level="middle")
    path = race(tmp_path / "c.tar.xz", {"train/middle/1": b"\xff"})
    refused({"all": path}, "1.txt", loader="race", level="middle")
    (tmp_path / "d.tar.xz").write_bytes((tmp_path / "a.tar.xz").read_bytes()[:-90])
    refused({"all": tmp_path / "d.tar.xz"}, "damaged or cut short", loader="race", level="middle")


def test_c3_joins_its_files_by_split_and_answers_become_letters(tmp_path):
    entry = [
        ["男：你好", "女：再见"],
        [{"question": "谁？", "choice": ["男", "女", "都"], "answer": "都"}],
        "1-1",
    ]
    for name in ("m", "d"):
        (tmp_path / f"{name}.json").write_text(json.dumps([entry]), "utf-8")
    table = data.load_c3({"train-m": tmp_path / "m.json", "test-d": tmp_path / "d.json"}, {})
    assert list(table["split"]) == ["train", "test"] and list(table["label"]) == ["C", "C"]
    assert table["text"][0] == "男：你好\n女：再见" and table["choices"][0] == ["男", "女", "都"]
    (tmp_path / "m.json").write_text(json.dumps([entry, [1, 2]]), "utf-8")
    refused({"train-m": tmp_path / "m.json"}, "entries 2 are not [texts, questions, id]", loader="c3")


@pytest.mark.parametrize(
    "texts, change",
    [(None, {}), ([None], {}), ("a", {}), (["a"], {"choice": 5}), (["a"], {"choice": [1, 2]}),
     (["a"], {"question": None}), (["a"], {"answer": 2})],
)  # fmt: skip
def test_an_entry_of_c3_with_fields_of_another_type_is_named(tmp_path, texts, change):
    question = {"question": "q", "choice": ["x", "y"], "answer": "y"}
    entries = [[["a"], [question], "1"], [texts, [{**question, **change}], "2"]]
    (tmp_path / "m.json").write_text(json.dumps(entries))
    refused({"train-m": tmp_path / "m.json"}, "entries 2 are not [texts, questions, id]", loader="c3")


def test_more_options_than_letters_are_refused_whichever_is_right(tmp_path):
    for right in (0, 16):
        question = {"question": "q", "choice": [f"o{n}" for n in range(17)], "answer": f"o{right}"}
        (tmp_path / "m.json").write_text(json.dumps([[["a"], [question], "1"]]))
        refused({"train-m": tmp_path / "m.json"}, "2 to 16 choices (m.json:1)", loader="c3")


@pytest.mark.parametrize(
    "change, column",
    [
        ({"article": 5}, "no text for their text"), ({"questions": [None, "q"]}, "no text for their pair"),
        ({"options": [[1, 2], ["x", "y"]]}, "no list of texts for their choices"),
        ({"options": ["xy", ["x", "y"]]}, "no list of texts for their choices"),
        ({"answers": [1, ["B"]]}, "no text for their label"),
    ],
)  # fmt: skip
def test_a_text_of_race_with_fields_of_another_type_is_named(tmp_path, change, column):
    path = race(tmp_path / "a.tar.xz", {"train/middle/1": passage("a") | change})
    refused({"all": path}, column, "RACE/train/middle/1.txt", loader="race", level="middle")


@pytest.mark.parametrize("change", [{"label_4class": 5}, {"label_36class": [None]}, {"label_4class": []}])
def test_an_entry_of_cmid_with_labels_of_another_type_is_named(tmp_path, change):
    entry = {"originalText": "t", "label_4class": ["'a'"], "label_36class": ["'b'"]}
    path = lines(tmp_path / "a.jsonl", [entry, entry | change])
    refused({"raw": path}, "entries 2 have no list of texts", loader="cmid")


def test_a_text_of_clue_of_another_type_is_named(tmp_path):
    path = lines(tmp_path / "a.json", [{"sentence": None, "label_des": "a"}] * 3)
    refused({"train": path, "dev": path}, "6 rows have no text for their text (a.json:", loader="clue")


# texts with options in tables


def lines(path, objects):
    path.write_text("\n".join(map(json.dumps, objects)), "utf-8")
    return path


@pytest.mark.parametrize("label", [1, "1", "B"])
@pytest.mark.parametrize("form", ["lists", "columns", "parquet"])
def test_options_are_a_column_of_lists_or_several_columns_and_the_label_a_letter_or_a_place(
    tmp_path, form, label
):
    objects = [{"q": f"ask {n}", "o": ["yes", "no", "both"], "a": label} for n in range(20)]
    columns = {"text": "q", "choices": "o", "label": "a"}
    if form == "parquet":
        pd.DataFrame(objects).to_parquet(tmp_path / "a.parquet")
        path = tmp_path / "a.parquet"
    elif form == "lists":
        path = lines(tmp_path / "a.jsonl", objects)
    else:
        columns["choices"] = ["x", "y", "z"]
        path = lines(tmp_path / "a.jsonl", [{**o, **dict(zip("xyz", o["o"], strict=True))} for o in objects])
    table, classes = data.load({**ROW, "columns": columns}, {"all": path})
    assert classes == ["A", "B", "C"] and set(table["label"]) == {1}
    assert all(list(row) == ["yes", "no", "both"] for row in table["choices"])


def test_labels_and_options_that_do_not_fit_are_refused(tmp_path):
    columns = {"text": "q", "choices": "o", "label": "a"}
    good = [{"q": f"ask {n}", "o": ["yes", "no"], "a": n % 2} for n in range(20)]
    path = tmp_path / "a.jsonl"
    refused({"all": lines(path, [*good, {"q": "x", "o": ["yes"], "a": 0}])}, "1 row", "2 to 16 choices",
            "a.jsonl:21", columns=columns)  # fmt: skip
    refused({"all": lines(path, [*good, {"q": "x", "o": ["yes", "no"], "a": 2}])}, "the letter of none",
            "a.jsonl:21", columns=columns)  # fmt: skip
    refused({"all": lines(path, [*good, {"q": "x", "o": "yes", "a": 0}])}, "no list of texts",
            "'o'", "a.jsonl:21", columns=columns)  # fmt: skip
    refused({"all": lines(path, [*good, {"q": "x", "o": ["yes", "no"], "a": 77}])}, "the letter of none",
            "a.jsonl:21", columns=columns)  # fmt: skip
    refused({"all": lines(path, good)}, "'b' (columns: choices)", columns={**columns, "choices": ["o", "b"]})


def test_a_file_without_a_header_a_text_of_several_columns_and_bare_quotes(tmp_path):
    (tmp_path / "a.csv").write_text(
        '1,title,"a question",\n' + "2,other,why,because\n" * 20 + "1,t,q,a\n" * 20
    )
    row = {"header": ["topic", "t", "q", "a"], "columns": {"text": ["t", "q", "a"], "label": "topic"}}
    table = data.load_table({"train": tmp_path / "a.csv"}, row)
    assert table["text"][0] == "title a question" and table["file:line"][0] == "a.csv:1"
    (tmp_path / "b.tsv").write_text('text\tlabel\n"so\t1\nand so"\t0\n')
    assert list(data.load_table({"train": tmp_path / "b.tsv"}, {"quotes": False})["text"]) == [
        '"so',
        'and so"',
    ]


def test_rows_whose_label_is_left_out_do_not_count(tmp_path):
    rows = [{"text": f"t {n}", "label": "-ab"[n % 3]} for n in range(60)]
    table, classes = data.load({**ROW, "left_out": ["-"]}, {"all": lines(tmp_path / "a.jsonl", rows)})
    assert len(table) == 40 and classes == ["a", "b"]
    table, classes = data.load({**ROW, "only": ["-", "b"]}, {"all": tmp_path / "a.jsonl"})
    assert len(table) == 40 and classes == ["-", "b"]
    refused({"all": tmp_path / "a.jsonl"}, "only names c, d,", "no row", only=["a", "d", "c"])


def test_a_data_set_of_which_no_rows_are_left_is_one_sentence(tmp_path):
    rows = [{"text": f"t {n}", "o": ["yes", "no"], "label": n % 2} for n in range(20)]
    path, options = lines(tmp_path / "a.jsonl", rows), {"text": "text", "choices": "o", "label": "label"}
    refused({"all": path}, "'mine': no rows are left of 20", left_out=["0", "1"])
    refused({"all": path}, "'mine': no rows are left of 20", left_out=["A", "B"], columns=options)
    (tmp_path / "m.json").write_text("[]")
    refused({"train-m": tmp_path / "m.json"}, "m.json has no questions; it needs at least one", loader="c3")


# archives


def test_a_file_is_taken_from_a_zip_or_tar_by_the_end_of_its_path(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("SST-2/train.tsv", "inside")
        archive.writestr("__MACOSX/SST-2/._train.tsv", "junk")
        archive.writestr("other/dev.tsv", "1")
        archive.writestr("dev.tsv", "2")
    for member in ("train.tsv", "SST-2/train.tsv"):
        archives.extract(tmp_path / "a.zip", member, tmp_path / "out.tsv")
        assert (tmp_path / "out.tsv").read_text() == "inside"
    path = race(tmp_path / "b.tgz", {"x": b"in a tar"})
    archives.extract(path, "x.txt", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "in a tar"
    for member, count in (("dev.tsv", 2), ("rain.tsv", 0)):
        with pytest.raises(BadInput, match=f"has {count} files {member}; it has .*SST-2/train.tsv"):
            archives.extract(tmp_path / "a.zip", member, tmp_path / "none")
    (tmp_path / "c.zip").write_bytes((tmp_path / "a.zip").read_bytes()[:99])
    with pytest.raises(BadInput, match="damaged or cut short"):
        archives.extract(tmp_path / "c.zip", "train.tsv", tmp_path / "none")
    assert not (tmp_path / "none").exists()


# few-shot draws


@given(st.lists(st.integers(0, 40), min_size=2, max_size=15), st.integers(1, 99))
def test_an_even_draw_has_the_total_and_no_class_far_from_another_unless_it_is_used_up(counts, total):
    assume(total >= sum(n > 0 for n in counts))
    kept = splits.even(counts, total)
    assert sum(kept) == min(total, sum(counts)) and all(k <= n for k, n in zip(kept, counts, strict=True))
    free = [k for k, n in zip(kept, counts, strict=True) if k < n]
    assert not free or max(kept) - min(free) <= 1


@pytest.mark.parametrize("classes, each", [(2, [16, 16]), (3, [11, 11, 10]), (5, [7, 7, 6, 6, 6])])
def test_thirty_two_examples_are_even_over_the_classes_as_in_ppt(classes, each):
    assert splits.even([100] * classes, 32) == each


def drawn(tmp_path, cut):
    rows = [{"text": f"text {n}", "label": "abc"[n % 3]} for n in range(900)]
    row = {**ROW, "cut": cut}
    table, classes = data.load(row, {"all": lines(tmp_path / "a.jsonl", rows)})
    return table, report.describe(table, classes, row, dataset="mine", task="classification", sources={})


def test_train_and_dev_are_disjoint_draws_that_the_report_names_and_test_is_whole(tmp_path):
    table, about = drawn(tmp_path, {"total": 32})
    assert about["rows"] == {"train": 32, "dev": 32, "test": 180}
    assert about["counts"]["train"] == about["counts"]["dev"] == [11, 11, 10]
    train, dev = (set(about["drawn"][split]) for split in ("train", "dev"))
    assert len(train) == len(dev) == 32 and not train & dev
    assert train == set(table.loc[table["split"] == "train", "id"])
    assert "drawn" not in drawn(tmp_path, {"train": 90})[1]


def test_a_sample_has_a_seed_of_its_own_and_a_larger_draw_contains_a_smaller_one(tmp_path):
    draws = [{"total": 32}, {"total": 32}, {"total": 64}, {"total": 32, "sample": 10}, {"shots": 8}]
    first, again, more, other, eight = (drawn(tmp_path, cut)[1]["drawn"] for cut in draws)
    assert first == again and set(first["train"]) < set(more["train"]) and len(eight["train"]) == 24
    assert set(first["train"]) != set(other["train"])


def test_a_total_below_the_number_of_classes_is_refused(tmp_path):
    rows = [{"text": f"text {n}", "label": "abc"[n % 3]} for n in range(90)]
    for total in (1, 2):
        cut, sentence = {"total": total}, f"'mine': total={total} is less than the 3 classes"
        refused({"all": lines(tmp_path / "a.jsonl", rows)}, sentence, cut=cut)
    table, _ = drawn(tmp_path, {"total": 3})
    assert set(table.loc[table["split"] == "train", "label"]) == {0, 1, 2}


def test_a_total_is_a_cut_of_its_own(tmp_path):
    config = {"datasets": {"x": {"language": "en", "corpus": "text"}}}
    assert dataset_row(config, "x@total=32,sample=3")["cut"] == {"total": 32, "sample": 3}
    with pytest.raises(BadInput, match="a cut takes one of imbalance, shots, total, train"):
        dataset_row(config, "x@shots=8,total=32")
    with pytest.raises(BadInput, match="total must be a whole number from 1"):
        dataset_row(config, "x@total=0")


def test_a_data_set_from_a_corpus_takes_the_one_that_the_scale_names():
    config = {"datasets": {"x": {"language": "en", "corpus": "text"}}}
    assert "path" not in dataset_row(config, "x")
    assert "path" not in dataset_row({**config, "corpora": {"text": None}}, "x")
    assert dataset_row({**config, "corpora": {"text": "my.txt"}}, "x")["path"] == "my.txt"


def test_the_report_counts_the_same_text_with_other_options_as_another(tmp_path):
    table = pd.DataFrame({"text": ["a", "a", "a"], "choices": [["x", "y"], ["x", "z"], np.array(["x", "y"])]})
    assert report.content(table).duplicated().sum() == 1


@pytest.mark.parametrize("loader, key, text", [("trees", "dev", ""), ("c3", "dev-m", "[]")])
def test_an_empty_file_is_refused_and_not_made_of_train(tmp_path, loader, key, text):
    (tmp_path / "empty.txt").write_text(text, "utf-8")
    with pytest.raises(BadInput, match="empty.txt has no (trees|questions); it needs at least one"):
        data.load({"name": "mine", "language": "en", "loader": loader}, {key: tmp_path / "empty.txt"})
