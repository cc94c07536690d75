"""The page: its winner is the table's, its numbers are the runs', and it stands alone."""

import json
import re

import blocks
import made_up
import numpy as np
import pytest

from tailprompt.errors import BadInput
from tailprompt.report.page import evidence, pictures, words
from tailprompt.report.page.write import Section, html, markdown
from tailprompt.report.tables.scores import scores

METHODS = ("cls-tanh", "cls-tanh-focal", "prompt")
METRICS = ["f1/all", "f1/head", "f1/tail", "accuracy/all"]


def spec(**more):
    return blocks.block("scores", METHODS, metrics=METRICS, winner="f1/all", **more)


def results(root, block, **more):
    blocks.results(root, block, **more)
    for file in root.glob("runs/*/*/*/*/*/run.json"):
        about = json.loads(file.read_text())
        about |= {"seconds": 10 if "prompt" in file.parts else 5, "memory_mb": 100}
        file.write_text(json.dumps(about))
    return root


def test_the_leader_and_its_lead_are_those_of_the_table(tmp_path):
    block = spec(seeds=[1, 2, 3, 4, 5, 6])
    rows, _, report = evidence.standing(results(tmp_path, block), block)
    long, _, sheet = scores(tmp_path, block)
    said = next(note for note in sheet.notes if "wins" in note or "clearly" in note)
    assert rows[0].title in said and report["dataset"] == "made"
    assert words.number(-rows[1].lead[0], signed=True) in said
    test = long[(long.method == rows[0].method) & (long.metric == "f1/tail")].ours.item()
    assert rows[0].scores["f1/tail"] == pytest.approx(test)
    assert rows[0].method == "prompt" and "Prompt-tuning wins" in words.headline(rows, "f1/all")


def test_methods_that_cannot_be_told_apart_have_no_winner(tmp_path):
    block = blocks.block("scores", ("prompt", "prompt-focal"), metrics=METRICS, winner="f1/all")
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert "no method wins clearly" in words.headline(rows, "f1/all")
    assert rows[1].title in words.advice(rows)


def test_one_seed_has_no_interval_and_says_so(tmp_path):
    block = spec(seeds=[1])
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert np.isnan(rows[1].lead[3]) and "one seed" in words.headline(rows, "f1/all")


def test_a_method_that_lacks_a_seed_is_not_ranked(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block, leave_out=[("prompt", 2)]), block)
    assert "prompt" not in {row.method for row in rows}


def test_the_worst_classes_are_told_with_what_they_are_taken_for(tmp_path):
    block = spec()
    _, runs, report = evidence.standing(results(tmp_path, block), block)
    found = evidence.worst(runs, "cls-tanh", report)
    assert [one.f1 for one in found] == sorted(one.f1 for one in found)
    gold, guesses = [], []
    for folder in runs[runs.method == "cls-tanh"].folder:
        table = made_up.pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
        gold, guesses = gold + table.label.tolist(), guesses + table.prediction.tolist()
    rare = next(one for one in found if made_up.CLASSES[one.id] == "电商")
    pairs = [(g, p) for g, p in zip(gold, guesses, strict=True) if g == 2]
    cells = [row[0].text for row in words.classes(found, made_up.CLASSES).blocks[0].rows]
    assert "电商 (class 2)" in cells and "zinc" not in cells  # of two test rows
    for c, share in rare.taken:
        assert share == pytest.approx(sum(p == c for _, p in pairs) / len(pairs)) and c != 2


def test_more_data_is_judged_on_the_same_test_rows(tmp_path):
    curve = blocks.block("scores", METHODS, ("made@train=300", "made"), metrics=["f1/all"])
    results(tmp_path, curve)
    made_up.data(tmp_path, "made@train=300", rows={"train": 300, "dev": 150, "test": 150})
    for seed in (1, 2, 3):
        made_up.run(tmp_path, "prompt", seed, dataset="made@train=300", skill=0.3)
    data = evidence.more(tmp_path, curve, "prompt", "f1/all")
    of_prompt = data.points[data.points.method == "prompt"]
    assert of_prompt.rows.tolist() == [300, sum(made_up.TRAIN)]
    assert data.effect.value == pytest.approx(np.diff(of_prompt.value).item(), abs=1e-4)
    rows, *_ = evidence.standing(tmp_path, spec())
    assert "More labelled rows are likely to help" in words.growth(data, rows[0])


def test_the_page_stands_alone_and_escapes_what_the_data_say(tmp_path):
    block = spec()
    rows, runs, report = evidence.standing(results(tmp_path, block), block)
    worst = evidence.worst(runs, rows[0].method, report)
    drawn = [
        pictures.ranking(rows, "f1/all"),
        pictures.by_group(rows, "f1", evidence.groups(rows, "f1")),
        pictures.confusion(worst, report["classes"]),
    ]
    parts = [Section("<script>", ["a <b>"], pictures.svg(figure)) for figure in drawn]
    parts.append(Section("", [], sheet=words.methods(rows, "f1/all", ["head", "tail"], searched=False)))
    page = html("<i>", words.headline(rows, "f1/all"), parts)
    assert page.count("<svg") == 3 and "<script>" not in page and "a &lt;b&gt;" in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page.replace("xlink:href", "href"))
    text = markdown("t", words.headline(rows, "f1/all"), parts)
    assert "| **Prompt-tuning** |" in text and "<svg" not in text


def test_a_picture_has_the_same_bytes_each_time(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert pictures.svg(pictures.ranking(rows, "f1/all")) == pictures.svg(pictures.ranking(rows, "f1/all"))


def test_a_page_of_two_data_sets_is_refused(tmp_path):
    block = blocks.block("scores", METHODS, ("made", "other"), metrics=METRICS, winner="f1/all")
    with pytest.raises(BadInput, match="one data set"):
        evidence.standing(results(tmp_path, block), block)
