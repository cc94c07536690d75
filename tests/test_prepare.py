"""The stage that writes a data set and its report."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tailprompt.data import corpus, report, rows
from tailprompt.data import imagenet as shifted
from tailprompt.data import table as data
from tailprompt.data.units import sentences
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.inputs.templates import pieces
from tailprompt.plan import dependencies
from tailprompt.plan.rows import dataset_row
from tailprompt.plan.schemas import read
from tailprompt.prepare import main

ROOT = Path(__file__).parents[1]
CONFIG = read(ROOT / "config" / "datasets.yaml")
ROWS = CONFIG["datasets"]
JOINED = [name for name in ROWS if "joins" in ROWS[name]]  # read as their parts
TEXTS = [name for name in ROWS if ROWS[name]["language"] != "image" and name not in JOINED]
IMAGES = [name for name in ROWS if name not in TEXTS + JOINED]
GLEE = ["cmid", "iflytek", "ctc", "msra", "r52", "ecom", "rte", "boolq"]
PPT = {  # data set: its classes, or the most options
    **{"sst2": 2, "sst5": 5, "yahoo": 10, "race-m": 4, "race-h": 4, "superglue-boolq": 2, "superglue-rte": 2},
    **{
        "cb": 3,
        "chnsent": 2,
        "amazon": 5,
        "tnews": 15,
        "ccpm": 4,
        "c3": 4,
        "lcqmc": 2,
        "cmnli": 3,
        "ocnli": 3,
    },
}
UNLABELLED = [name for name in TEXTS if "corpus" in ROWS[name]]
PTUNING2 = [
    name
    for name in TEXTS
    if name not in PPT
    and re.match("superglue-|squad|conll|ontonotes|propbank|.*_as_released", name)
    and "-1000" not in name
]


def command(row, tmp_path, name="mine", *extra):
    """Arguments of the stage, and the Parquet that they ask for."""
    out = tmp_path / "data" / f"{name}.parquet"
    told = ["--dataset", json.dumps(row), "--data-dir", "null", "--raw", str(tmp_path / "raw")]
    return [*told, "--lock", str(tmp_path / "lock"), "--out", str(out), *extra], out


def prepare(row, tmp_path, *more):
    """Run the stage here; returns the Parquet's path."""
    arguments, out = command(row, tmp_path, *more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["prepare", *arguments])
        main()
    return out


def job(row, tmp_path):
    """Run the stage as the workflow does."""
    arguments, out = command(row, tmp_path)
    run = [sys.executable, "-m", "tailprompt.prepare", *arguments]
    return subprocess.run(run, capture_output=True, text=True, cwd=ROOT), out


def mine(tmp_path):
    rows = [f"the text {i} of {i % 3},{'abc'[i % 3]}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return {"name": "mine", "title": "Mine", "language": "en", "path": str(tmp_path / "a.csv")}


def test_data_are_not_prepared_by_other_code_than_was_planned(tmp_path):
    """As where another commit was checked out while the job waited: once it is back nothing would tell."""
    row, file = mine(tmp_path), tmp_path / "asked.json"
    asked = {"row": row, "files": [sha256(row["path"])], "words": None}
    asked["code"] = dependencies.digest("tailprompt.prepare")
    file.write_text(json.dumps(asked))
    assert prepare(row, tmp_path, "mine", "--asked", str(file)).is_file()
    file.write_text(json.dumps(asked | {"code": "another"}))
    with pytest.raises(BadInput, match="^the code that prepares data has changed .* run snakemake again"):
        prepare(row, tmp_path, "other", "--asked", str(file))
    assert not (tmp_path / "data/other.parquet").exists()


def test_a_users_file_becomes_a_parquet_and_a_report(tmp_path):
    done, out = job(mine(tmp_path), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "train 42, dev 6, test 12" in done.stdout
    table, classes = data.read(out)
    assert list(table) == ["id", "split", "label", "text"] and table["id"].is_unique
    assert set(table["label"]) == set(range(len(classes)))
    about = json.loads(out.with_suffix(".json").read_text())
    assert about["dataset"] == "mine" and about["rows"] == {"train": 42, "dev": 6, "test": 12}
    assert about["counts"]["test"] == [4, 4, 4] and about["mean_length"] == 5
    assert about["sha256"] == sha256(out) and about["rows_sha256"] == rows.of_file(out)


def test_preparing_twice_gives_the_same_bytes(tmp_path):
    before = prepare(mine(tmp_path), tmp_path).read_bytes()
    assert prepare(mine(tmp_path), tmp_path).read_bytes() == before


def test_bad_input_ends_in_one_line_and_no_file(tmp_path):
    done, out = job({**mine(tmp_path), "columns": {"text": "body"}}, tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert not out.exists()


def test_a_class_that_a_score_names_must_be_one_of_the_data(tmp_path):
    assert prepare({**mine(tmp_path), "asked": ["a", "c"]}, tmp_path).is_file()
    said = "'mine': no class d, which a table's score .*known: a, b, c$"
    with pytest.raises(BadInput, match=said):
        prepare({**mine(tmp_path), "asked": ["a", "d"]}, tmp_path)


@pytest.mark.parametrize("out", [[], ["--out", ""], ["--out", "/"]])
def test_without_a_place_to_write_prepare_says_so(tmp_path, monkeypatch, capsys, out):
    monkeypatch.setattr("sys.argv", ["prepare", "--dataset", "{}", "--raw", str(tmp_path), *out])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--out names the file to write" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["mine.parquet", "mine.json"])
def test_a_data_set_and_its_report_are_written_both_or_neither(tmp_path, folder):
    (tmp_path / "data" / folder).mkdir(parents=True)
    with pytest.raises(BadInput, match=f"^[^\n]*{folder} is a folder[^\n]*$"):
        prepare(mine(tmp_path), tmp_path)
    assert [file.name for file in (tmp_path / "data").iterdir()] == [folder]


def small():
    rows = [
        ("1", "train", 0, "same text"),
        ("2", "train", 0, "same text"),
        ("3", "train", 1, "one two three"),
        ("4", "dev", 0, "same text"),
        ("5", "test", 1, "same text"),
        ("6", "test", 0, "other"),
    ]
    return pd.DataFrame(rows, columns=["id", "split", "label", "text"])


def test_the_report_counts_repeats_shared_texts_conflicts_and_absent_classes():
    about = report.describe(
        small(), ["a", "b"], {"language": "en"}, dataset="mine", task="classification", sources={}
    )
    assert about["duplicates"] == {"train": 1, "dev": 0, "test": 0}
    assert about["shared"] == {"train,dev": 1, "train,test": 1, "dev,test": 1}
    assert about["conflicts"] == 1 and about["absent"] == {"train": [], "dev": [1], "test": []}
    assert about["singletons"] == [1] and about["imbalance"] == 2 and about["majority"]["train"] == 0.6667


def test_length_is_in_characters_for_chinese_and_in_words_else():
    assert report.mean_length(small(), "en") == pytest.approx((2 * 4 + 3 + 1) / 6)
    assert report.mean_length(small(), "zh") == pytest.approx((9 * 4 + 13 + 5) / 6)


def test_length_counts_a_second_text_but_no_entity_of_the_first():
    table = small().assign(pair="two words")
    assert report.mean_length(table, "en") == pytest.approx(4)
    assert report.mean_length(table.assign(pair=table["text"].str[:2]), "en") == pytest.approx(2)


# the rows that ship


@pytest.mark.parametrize("name", TEXTS)
def test_every_row_has_a_known_loader_a_good_template_and_a_verbalizer_without_gaps(name):
    row = ROWS[name]
    assert row["loader"] in data.LOADERS
    paired = "pair" in row.get("columns", {}) or row["loader"] in ("race", "c3", "next_sentence_pair")
    for key in [k for k in ("template", "template_as_released") if k in row]:
        pieces(row[key], paired=paired)
    if row.get("form") == "mcc":
        assert "verbalizer" not in row
    if row.get("form") == "mcc" or (
        name in PTUNING2 and "verbalizer" not in row
    ):  # whose heads read no words
        return
    words = data.read_words(ROOT / row["verbalizer"])
    assert words["label"].is_unique and words["words"].is_unique and words["words"].str.strip().ne("").all()


def test_the_number_of_classes_is_the_papers():
    count = {name: len(data.read_words(ROOT / ROWS[name]["verbalizer"])) for name in GLEE}
    assert count == {
        "cmid": 36,
        "iflytek": 119,
        "ctc": 44,
        "msra": 26,
        "r52": 52,
        "ecom": 2,
        "rte": 2,
        "boolq": 2,
    }


def test_the_classes_of_ppt_are_the_papers_but_for_tnews():
    for name, classes in PPT.items():
        if ROWS[name]["form"] != "mcc":
            assert len(data.read_words(ROOT / ROWS[name]["verbalizer"])) == classes, name


# What its publisher offers as one archive has no commit; its digest is recorded at the first download.
ARCHIVES = re.compile(r"https://[^ ]+\.(zip|tgz|tar\.gz)")
RELEASES = re.compile(r"https://rajpurkar\.github\.io/SQuAD-explorer/dataset/(train|dev)-v[12]\.[01]\.json")


def test_downloads_are_pinned_to_a_commit_or_a_digest():
    files = [entry for row in ROWS.values() for entry in row.get("files", {}).values() if "url" in entry]
    loose = [file for file in files if not re.search(r"/[0-9a-f]{40}/", file["url"]) and "sha256" not in file]
    loose = [file for file in loose if not RELEASES.fullmatch(file["url"])]
    assert all(ARCHIVES.fullmatch(file["url"]) for file in loose)
    assert all("member" in file or file["url"].endswith("RACE.tar.gz") for file in loose)


def test_rows_that_are_not_the_papers_data_say_so():
    theirs = {*GLEE, *PPT, *UNLABELLED, *PTUNING2, "debian-sections", "debian-topics"}
    assert all(ROWS[name].get("note") for name in set(TEXTS) - theirs)
    assert ROWS["cifar100-resplit"]["note"]


@pytest.mark.parametrize("name", IMAGES)
def test_images_have_no_head_and_tail_and_no_class_is_missing(name):
    row = ROWS[name]
    assert row["threshold"] is None and ("classes" in row or "trained_on" in row)
    assert ("trained_on" in row) == (row["loader"] in shifted.LISTINGS)


def test_the_corpus_that_ships_holds_sentences_of_the_shipped_sets_training_texts():
    shipped = pd.read_parquet("workflow/resources/data/debian_sections.parquet")
    told = {split: set(sentences(part.text)) for split, part in shipped.groupby("split")}
    documents = list(corpus.documents("workflow/resources/data/debian_descriptions.txt.xz"))
    assert len(documents) == 2000 and min(map(len, documents)) == 5
    assert {line for document in documents for line in document} <= told["train"]


def test_the_demo_cut_of_the_shipped_set_keeps_every_class_and_the_long_tail(tmp_path):
    name = "debian-sections@train=1000,dev=300,test=1000"
    out = prepare(dataset_row(CONFIG, name), tmp_path, name)
    about = json.loads(out.with_name(f"{name}.json").read_text())
    assert about["rows"] == {"train": 1000, "dev": 300, "test": 1000} and len(about["classes"]) == 57
    assert about["absent"] == {"train": [], "dev": [], "test": []} and about["imbalance"] > 30
    assert 0 < len(about["groups"]["test"]["head"]) < len(about["groups"]["test"]["tail"])
