"""The page: its winner is the table's, its numbers are the runs', and it stands alone."""

import json
import re
from dataclasses import replace

import blocks
import made_up
import numpy as np
import pytest

from tailprompt.errors import BadInput
from tailprompt.report import verdicts
from tailprompt.report.page import data_words, evidence, lengths, pictures, sheets, words
from tailprompt.report.page.collapsed import Collapsed
from tailprompt.report.page.write import Section, html, markdown, on_screen
from tailprompt.report.tables.comparison import ranked
from tailprompt.report.tables.scores import scores

METHODS = ("cls-tanh", "cls-tanh-focal", "prompt")
METRICS = ["f1/all", "f1/head", "f1/tail", "accuracy/all"]


def spec(**more):
    return blocks.block("scores", METHODS, metrics=METRICS, winner="f1/all", **more)


def made_up_report(test=tuple(made_up.TEST)):
    """What the page needs of a data set's report."""
    return {"counts": {"test": list(test)}, "classes": made_up.CLASSES, "language": "en"}


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
    assert rows[0].method == "prompt" and "Prompt-tuning wins" in words.headline(
        rows, "f1/all", made_up_report()
    )


def test_methods_that_cannot_be_told_apart_have_no_winner(tmp_path):
    block = blocks.block("scores", ("prompt", "prompt-focal"), metrics=METRICS, winner="f1/all")
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert "no method wins clearly" in words.headline(rows, "f1/all", made_up_report())
    assert rows[1].title in words.advice(rows, "f1/all", made_up_report())[0]


def test_one_seed_has_no_interval_and_says_so(tmp_path):
    block = spec(seeds=[1])
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert np.isnan(rows[1].lead[3]) and "one seed" in words.headline(rows, "f1/all", made_up_report())


def test_the_best_on_dev_does_not_lead_where_another_is_better_on_test(tmp_path):
    block = spec()
    first, other, *_ = evidence.standing(results(tmp_path, block), block)[0]
    ahead = replace(
        other, scores={"f1/all": first.scores["f1/all"] + 12.4}, dev=7.5, lead=(12.4, -9.0, 33.8, 0.3)
    )
    said = words.headline([first, ahead], "f1/all", made_up_report())
    assert " leads" not in said and f"is the best on dev ({first.dev:.1f})" in said
    assert f"\u221212.4 points (95 % interval \u221233.8 to +9.0, p 0.300) against {other.title}" in said
    assert f"{other.title} has the best test score, {first.scores['f1/all'] + 12.4:.1f} (7.5 on dev)" in said


def test_page_and_table_name_the_same_next_method(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    *_, sheet = scores(tmp_path, block)
    (of_table,) = re.findall(r"against (.*), the next on dev", " ".join(sheet.notes))
    assert f"against {of_table}, the next on dev" in words.headline(rows, "f1/all", made_up_report())
    low, high = (
        replace(rows[1], title=name, dev=dev, scores={"f1/all": 1.0}) for name, dev in (("l", 1), ("h", 2))
    )
    for order in ([rows[0], low, high], [rows[0], high, low]):
        assert "against h, the next on dev" in words.headline(order, "f1/all", made_up_report())


def test_groups_are_told_with_the_numbers_of_the_data():
    groups = {"head": [0], "tail": [1, 2], "many": [], "medium": [0, 1], "few": [2]}
    report = {"counts": {"train": [90, 40, 3], "test": [20, 9, 1]}, "groups": {"test": groups}}
    assert data_words.grouped(report, [*groups]) == [
        "Groups of classes: head, 1 class with 20 test rows; tail, 2 classes with 1 to 9 test rows; many, "
        "none; medium, 2 classes with 40 to 90 training rows; few, 1 class with 3 training rows."
    ]
    by_train = data_words.grouped(report | {"head_source": "train"}, ["head"])
    assert by_train == ["Groups of classes: head, 1 class with 90 training rows."]
    assert data_words.grouped(report, []) == []


def test_the_page_says_how_many_texts_are_cut():
    rows = [row("a"), row("b"), row("c")]
    cut = [replace(one, length=replace(one.length, cut=0.876)) for one in rows[:2]]
    tfidf = replace(rows[2], length=replace(rows[2].length, tokens=None))
    (said,) = words.read([*cut, tfidf])
    assert "the first 48 tokens are read (c: whole); 88 % of the texts are longer" in said
    assert words.read(rows) == ["Texts are read whole: none has more than 48 tokens."]
    assert words.read([tfidf]) == []


def test_the_gain_of_another_than_the_leader_is_said_to_be_so():
    data = evidence.More(
        made_up.pd.DataFrame({"method": ["a", "a"], "rows": [5, 10], "value": [1.0, 2.0]}), None
    )
    assert "unknown" in words.growth(data, row("a"), leads=False)


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
    cells = [row[0].text for row in sheets.classes(found, made_up.CLASSES).blocks[0].rows]
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
    assert "More labelled rows are likely to help" in words.growth(data, rows[0], leads=True)
    assert "The rest of the training rows is likely to" in words.growth(data, rows[0], leads=True, part=True)


def test_the_page_stands_alone_and_escapes_what_the_data_say(tmp_path):
    block = spec()
    rows, runs, report = evidence.standing(results(tmp_path, block), block)
    worst = evidence.worst(runs, rows[0].method, report)
    drawn = [
        pictures.ranking(rows, "f1/all"),
        pictures.by_group(rows, *evidence.groups(rows, "f1")),
        pictures.confusion(worst, report["classes"]),
    ]
    parts = [Section("<script>", ["a <b>"], pictures.svg(figure)) for figure in drawn]
    parts.append(
        Section("", [], sheet=sheets.methods(rows, ["f1/all"], "f1", ["head", "tail"], searched="x"))
    )
    page = html("<i>", words.headline(rows, "f1/all", made_up_report()), parts)
    assert page.count("<svg") == 3 and "<script>" not in page and "a &lt;b&gt;" in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page.replace("xlink:href", "href"))
    text = markdown("t", words.headline(rows, "f1/all", made_up_report()), parts)
    assert "| **Prompt-tuning** |" in text and "<svg" not in text


def test_a_page_fits_a_phone_and_marks_the_row_of_the_leader_alone(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    table = sheets.methods(rows, ["f1/all"], "f1", ["head", "tail"], searched="")
    page = html("t", "a", [Section("", [], pictures.svg(pictures.ranking(rows, "f1/all")), table)])
    assert page.count('<div class="wide"><svg') == page.count('<div class="wide"><table>') == 1
    assert "min-width: min(40em, 7.9in)" in page and 'name="viewport"' in page
    assert page.count('<td class="l"><b>') == 1 and "tr:has(td:first-child b)" in page


def test_a_picture_has_the_same_bytes_each_time(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    assert pictures.svg(pictures.ranking(rows, "f1/all")) == pictures.svg(pictures.ranking(rows, "f1/all"))


def test_a_page_of_two_data_sets_is_refused(tmp_path):
    block = blocks.block("scores", METHODS, ("made", "other"), metrics=METRICS, winner="f1/all")
    with pytest.raises(BadInput, match="one data set"):
        evidence.standing(results(tmp_path, block), block)


def row(method, lead=(float("nan"),) * 4, *, steps=250, gained=0.0, f1=50.0, seconds=10.0, seeds=3):
    """A method of a first round; lead is that over the leader."""
    length = lengths.Length(steps, steps / 60, 1000, 48, gained)
    return evidence.Row(method, method, method, {"f1/all": f1}, [f1] * seeds, f1, lead, 7, length, seconds, 1)


CLEAR, OPEN = (-20.0, -30.0, -10.0, 0.001), (-19.0, -83.2, 44.9, 0.4)


@pytest.mark.parametrize(
    "other, says", [(CLEAR, "wins against every other"), (OPEN, "no method wins clearly")]
)
def test_wins_is_said_against_all_other_methods_at_once(other, says):
    rows = [row("a", f1=90.0), row("b", CLEAR), row("c", other, f1=60.0)]
    said = words.headline(rows, "f1/all", made_up_report())
    assert says in said and ("against c" in said or other is CLEAR)
    open_ones = words.advice(rows, "f1/all", made_up_report())[0]
    assert ("Not clearly worse: c" in open_ones) == (other is OPEN)


def test_of_equals_on_dev_the_one_that_took_less_time_leads():
    dev = made_up.pd.DataFrame({"mean": [1.0, 1.0, 0.5, 1.0], "count": [2, 2, 2, 1]}, index=list("abcd"))
    runs = made_up.pd.DataFrame(
        {"method": list("abcd"), "there": True, "record": [{"seconds": n} for n in (9, 3, 1, 1)]}
    )
    assert [*ranked(dev, runs).index] == ["b", "a", "c"]


def test_the_cost_of_the_leader_is_said_in_numbers():
    assert words.cost(row("a", seconds=75.0), images=False) == (
        "A run of a took 1.2 min and 1 MB here, and trained 7 parameters."
    )


def test_a_class_that_others_are_taken_for_says_so():
    cells = sheets.classes([evidence.Worst(0, 9, 9, 90.0, [])], ["x"]).blocks[0].rows[0]
    assert cells[-1].text == "nothing else; others are taken for it"


def test_p_is_corrected_for_the_number_of_methods():
    leads = {name: (-9.0, -20.0, -1.0, p) for name, p in (("a", 0.02), ("b", 0.03), ("c", 0.2))}
    found = evidence.judged(leads, "f1/all", made_up_report())
    assert [found[name][3] for name in "abc"] == pytest.approx([0.06, 0.06, 0.2])
    alone = evidence.judged({"a": leads["a"]}, "f1/all", made_up_report())
    assert alone["a"][3] == pytest.approx(0.02)


def test_intervals_end_where_the_score_ends():
    (lead,) = evidence.judged({"a": (-62.0, -130.2, 104.8, 0.5)}, "f1/all", made_up_report()).values()
    assert lead[1:3] == (-100.0, 100.0)


@pytest.mark.parametrize(
    "test, small",
    [((7, 3, 2), True), ((40, 9), True), ((40, 10), False), ((9,) * 9, False), ((5,) * 24, True)],
    ids=str,
)
def test_a_test_set_that_is_too_small_gives_no_verdict(test, small):
    report = made_up_report(test)
    rows = [row("a", f1=90.0), row("b", evidence.judged({"b": CLEAR}, "f1/all", report)["b"])]
    said, advice = words.headline(rows, "f1/all", report), words.advice(rows, "f1/all", report)
    assert ("too small for a verdict" in said) == small == (not rows[1].worse)
    assert ("The test set has" in advice[0]) == small and ("wins" in said) != small
    assert ("interval" in said) != small


@pytest.mark.parametrize(
    "score, test, small",
    [
        ("f1/rarest", (195, 5), True),
        ("f1/rarest", (192, 8), False),
        ("f1/all", (195, 5), False),
        ("average_precision/rarest", (195, 5), True),
        ("recall/class:rare", (195, 5), True),
        ("recall/class:usual", (195, 5), False),
        ("f1/few", (195, 5), True),
        ("f1/many", (195, 5), False),
        ("f1/medium", (195, 5), True),
        ("f1/rarest", (39, 9), True),
    ],
)
def test_a_score_of_one_class_takes_test_rows_of_that_class(score, test, small):
    groups = {"many": [0], "medium": [], "few": [1]}
    report = {"counts": {"train": [600, 20], "test": [*test]}, "groups": {"test": groups}}
    report |= {"classes": ["usual", "rare"], "language": "en"}
    rows = [row("a"), row("b", evidence.judged({"b": CLEAR}, score, report)["b"])]
    rows = [replace(one, scores={score: 50.0}) for one in rows]
    said, (advice, *_) = words.headline(rows, score, report), words.advice(rows, score, report)
    assert ("too small for a verdict" in said) == small == (not rows[1].worse)
    assert ("The test set has" in advice) == small
    if score == "f1/rarest" and small and sum(test) == 200:
        assert "200 rows, of which 5 are of the 1 class that F1 of the rarest class is of" in advice


def test_no_gain_from_more_data_is_judged_on_a_test_set_that_is_too_small():
    points = made_up.pd.DataFrame({"method": ["a", "a"], "rows": [5, 10], "value": [1.0, 2.0]})
    effect = verdicts.score(np.full((3, 3), 2.0), np.full((3, 3), 1.0))
    for small in (True, False):
        said = words.growth(evidence.More(points, effect), row("a"), leads=True, small=small)
        assert ("too small to tell" in said) == small == ("interval" not in said)


def test_a_leader_does_not_win_against_methods_that_did_not_run():
    rows = [row("a", f1=90.0), row("b", CLEAR), row("c", CLEAR)]
    for asked, says in ((3, "wins against every other method:"), (4, "every other method that ran:")):
        assert says in words.headline(rows, "f1/all", made_up_report(), of=asked)


def test_numbers_stay_behind_names_that_are_written_from_right_to_left():
    hebrew, found = "\u05db\u05dc\u05db\u05dc\u05d4", [evidence.Worst(0, 9, 9, 50.0, [(1, 0.5)])]
    cells = sheets.classes(found, ["x", hebrew]).blocks[0].rows[0]
    assert cells[-1].text == f"\u2068{hebrew}\u2069 50 %" and cells[0].text == "x"
    report = {"counts": {"train": [9, 2], "test": [9, 2]}, "classes": ["x", hebrew]}
    assert f"\u2068{hebrew}\u2069, with 2 training" in data_words.rare(report, ["f1/rarest"])[0]


LOOKED = {"counts": {"train": [9, 2]}, "classes": ["x", "y"], "rows": {"train": 11, "dev": 1, "test": 9}}
LOOKED |= {"language": "en", "shared": {"train,test": 0}, "conflicts": 0, "row": {}}


def test_the_note_of_a_data_set_stands_beside_its_language():
    report = LOOKED | {"note": "read as English, though 100% of its letters are Hebrew"}
    assert data_words.looked(report).endswith("Read as: en. Note: " + report["note"] + ".")


def test_a_round_on_part_of_the_data_says_so():
    assert "part of the data" not in data_words.looked(LOOKED)
    assert "They are a part of the data" in data_words.looked(LOOKED | {"row": {"cut": {"train": 11}}})


@pytest.mark.parametrize("language, thing", [("en", "a text"), ("image", "an image")])
def test_test_rows_that_train_has_too_and_contents_with_several_labels_are_said(language, thing):
    said = data_words.looked(LOOKED | {"language": language, "shared": {"train,test": 3}, "conflicts": 1})
    assert f"3 test rows have {thing} that train has too" in said
    assert f"1 {thing.split()[1]} has several labels" in said


@pytest.mark.parametrize("short", [{"steps": 4}, {"gained": 3.0}, {"gained": float("inf")}], ids=str)
def test_a_method_that_was_hardly_trained_is_flagged_and_nobody_wins_against_it(short):
    rows = [row("a", f1=90.0), row("b", CLEAR, **short), row("c", CLEAR)]
    said = words.headline(rows, "f1/all", made_up_report())
    assert (
        "wins" not in said and "leads, but b was hardly trained, so there is no verdict on it. a has" in said
    )
    assert any("so no verdict on it: b." in each for each in words.advice(rows, "f1/all", made_up_report()))
    cells = [line[3].text for line in sheets.methods(rows, ["f1/all"], "f1", [], searched="").blocks[0].rows]
    assert ("too few" in cells[1] or "still rising" in cells[1]) and cells[2] == "250\xa0steps, 4.2\xa0epochs"
    fitted = [row("a", f1=90.0), row("b", CLEAR, steps=0), row("c", CLEAR)]
    assert "wins" in words.headline(fitted, "f1/all", made_up_report())
    assert "Trained on 1,000 rows; methods that learn by steps took 250 steps" in words.trained(fitted)


RISING, FEW = {"gained": 3.0}, {"steps": 12}


def told(rows):
    """The answer, the sentences below it, and how the pictures show each method but the leader."""
    report = made_up_report()
    advice = " ".join(words.advice(rows, "f1/all", report))
    return words.headline(rows, "f1/all", report), advice, [evidence.verdict(r, rows) for r in rows[1:]]


@pytest.mark.parametrize("few", [RISING, FEW], ids=str)
def test_a_winner_that_was_hardly_trained_says_so_itself_and_is_in_no_list_without_a_verdict(few):
    said, advice, _ = told([row("a", f1=90.0, **few), row("b", CLEAR), row("c", CLEAR)])
    assert "a wins against every other method" in said
    assert said.endswith(("more steps may raise it.", "only 12 steps, and more steps may raise its score."))
    assert "no verdict" not in advice and "All other methods score clearly lower." in advice
    assert "To train longer, raise epochs and patience" in advice


@pytest.mark.parametrize("few", [RISING, FEW], ids=str)
@pytest.mark.parametrize("lead", [CLEAR, OPEN], ids=["worse", "open"])
def test_a_method_that_was_hardly_trained_stands_in_one_list_alone(few, lead):
    said, advice, looks = told([row("a", f1=90.0), row("b", lead, **few, f1=80.0), row("c", CLEAR)])
    assert "but b was hardly trained, so there is no verdict on it" in said
    assert "against c, the next on dev of those trained enough" in said
    assert looks == [evidence.OPEN, evidence.WORSE] and "Not clearly worse" not in advice
    assert "All other methods that were trained enough score clearly lower." in advice
    assert "no verdict on it: b." in advice
    said, advice, looks = told([row("a", f1=90.0), row("b", lead, **few), row("c", OPEN)])
    assert "no method wins clearly" in said and "Not clearly worse: c." in advice
    assert "no verdict on it: b." in advice and looks == [evidence.OPEN, evidence.NEAR]


def test_where_all_methods_were_hardly_trained_nothing_is_told_of_any():
    said, advice, looks = told([row("a", f1=90.0, **RISING), row("b", CLEAR, **FEW), row("c", OPEN, **FEW)])
    assert "a leads, but all methods were hardly trained, so that is no verdict" in said
    assert (
        "more steps may raise it" in said
        and "no verdict on them: b and c. They took fewer than 50 steps." in advice
    )
    assert "clearly" not in said + advice and {*looks} == {evidence.OPEN}
    said, *_ = told([row("a", f1=90.0), row("b", CLEAR, **FEW), row("c", OPEN, **FEW)])
    assert "but all other methods were hardly trained, so that is no verdict" in said


def test_it_is_said_what_shows_that_methods_were_hardly_trained():
    few, rising = row("b", CLEAR, **FEW), row("c", CLEAR, **RISING)
    assert words.why_hardly([few]) == "It took fewer than 50 steps."
    assert words.why_hardly([rising]) == "Its score on dev was still rising at the last evaluation."
    assert words.why_hardly([rising, rising]).startswith("Their score on dev was still rising")
    assert words.why_hardly([few, rising]).startswith(
        "b took fewer than 50 steps, and the score of the others"
    )


def test_methods_without_steps_are_never_called_hardly_trained():
    said, advice, looks = told(
        [row("a", f1=90.0, steps=0), row("b", CLEAR, steps=0), row("c", OPEN, steps=0)]
    )
    assert "hardly" not in said + advice and "more steps" not in said + advice
    assert "Not clearly worse: c." in advice and looks == [evidence.WORSE, evidence.NEAR]


def test_one_seed_or_a_test_set_that_is_too_small_shows_no_verdict_in_pictures():
    one = row("b", (-20.0, float("nan"), float("nan"), float("nan")), seeds=1)
    _, advice, looks = told([row("a", f1=90.0, seeds=1), one])
    assert looks == [evidence.OPEN] and "No verdict on: b. It takes more seeds" in advice
    (legend,) = pictures.ranking([row("a", f1=90.0), one], "f1/all").legends
    assert [text.get_text() for text in legend.get_texts()] == ["leads", "no verdict"]


def test_where_no_method_learned_none_is_called_the_only_one_that_did():
    said, advice, looks = told([collapsed_row("a", f1=9.0), collapsed_row("b")])
    assert said == "No method learned: a has F1 9.0 on test." and looks == [evidence.OPEN]
    assert advice.count("it did not learn") == 2


def test_the_gain_from_more_rows_of_a_method_that_was_hardly_trained_is_said_with_that():
    points = made_up.pd.DataFrame({"method": ["a", "a"], "rows": [5, 10], "value": [1.0, 2.0]})
    effect = verdicts.score(np.full((3, 3), 2.0), np.full((3, 3), 1.0))
    for few in (RISING, {}):
        said = words.growth(evidence.More(points, effect), row("a", **few), leads=True)
        assert ("more steps may change this" in said) == bool(few)


def test_the_length_of_training_is_read_from_the_runs(tmp_path):
    block = spec()
    results(tmp_path, block)
    for seed, dev in ((1, [0.3, 0.5, 0.52]), (2, [0.3, 0.5, 0.58]), (3, [0.3, 0.5, 0.5])):
        folder = tmp_path / f"runs/glee/mini/made/prompt/{seed}"
        about = json.loads((folder / "run.json").read_text())
        about |= {
            "steps": 60,
            "settings": {"select": "f1", "max_length": 48},
            "data": {"rows": {"train": 647}},
        }
        (folder / "run.json").write_text(json.dumps(about))
        curve = {"step": [20, 40, 60], "epoch": [1.0, 2.0, 3.0], "f1": dev}
        made_up.pd.DataFrame(curve).to_csv(folder / "curve.csv", index=False)
    rows, *_ = evidence.standing(tmp_path, block)
    length = next(one.length for one in rows if one.method == "prompt")
    assert (length.steps, length.epochs, length.rows, length.tokens) == (60, 3.0, 647, 48)
    assert length.gained == pytest.approx(10 / 3) and length.hardly
    assert not rows[-1].length.hardly and rows[-1].length.steps == 0


@pytest.mark.parametrize("accuracy, rises", [((0.2, 0.25, 0.3), True), ((0.3, 0.3, 0.3), False)], ids=str)
def test_a_method_whose_accuracy_rises_before_its_f1_does_is_hardly_trained(tmp_path, accuracy, rises):
    curve = {"epoch": [0.4, 0.8, 1.2], "accuracy": accuracy, "f1": [0.01, 0.015, 0.02]}
    made_up.pd.DataFrame(curve).to_csv(tmp_path / "curve.csv", index=False)
    record = {"steps": 200, "settings": {"select": "f1", "max_length": 48}}
    runs = made_up.pd.DataFrame({"record": [record], "folder": [tmp_path]})
    assert lengths.length(runs).hardly == rises


def test_an_evaluation_a_step_after_another_does_not_hide_that_dev_was_rising():
    curve = {"epoch": [1.0, 2.0, 3.0, 3.01], "f1": [0.2, 0.3, 0.4, 0.4]}
    assert lengths.gain(made_up.pd.DataFrame(curve), "f1") == pytest.approx(10.0)
    assert lengths.gain(made_up.pd.DataFrame({"epoch": [3.0, 3.01], "f1": [0.3, 0.3]}), "f1") == np.inf


def test_methods_follow_the_leader_by_their_score_on_test(tmp_path):
    rows, *_ = evidence.standing(results(tmp_path, spec()), spec())
    others = [one.scores["f1/all"] for one in rows[1:]]
    assert others == sorted(others, reverse=True)


def test_groups_of_a_metric_without_groups_are_those_of_f1(tmp_path):
    block = spec() | {"winner": "balanced_accuracy/all"}
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    metric, names = evidence.groups(rows, "balanced_accuracy")
    assert (metric, names) == ("f1", ["head", "tail"])
    assert "Tail F1" in sheets.methods(rows, [block["winner"]], metric, names, searched="").heads


def test_classes_without_an_error_are_not_called_the_worst(tmp_path):
    block = spec()
    results(tmp_path, block)
    for seed in (1, 2, 3):
        made_up.run(tmp_path, "prompt", seed, skill=1.0)
        file = tmp_path / f"runs/glee/mini/made/prompt/{seed}/predictions.parquet"
        table = made_up.pd.read_parquet(file)
        table.assign(prediction=table.label).to_parquet(file, index=False)
    rows, runs, report = evidence.standing(tmp_path, block)
    found = evidence.worst(runs, "prompt", report)
    said = " ".join(words.left_out(report, found))
    assert found == [] and "No error in the 5 classes" in said and "1 class has fewer than 3" in said
    assert "zinc" in said


def test_no_line_of_the_learning_curve_is_missing_or_alike():
    names = [f"m{i}" for i in range(8)]
    points = made_up.pd.DataFrame([(n, r, i * 5 + r) for i, n in enumerate(names[:7]) for r in (1, 2)],
                                  columns=["method", "rows", "value"])  # fmt: skip
    axes = pictures.learning(evidence.More(points, None), [row(name) for name in names], "f1/all").axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    looks = {(line.get_color(), line.get_marker(), line.get_markerfacecolor()) for line in axes.lines}
    assert labels == names[:7] and len(looks) == 7


def test_the_screen_shows_no_backslashes():
    text = markdown("sklearn.linear_model", "p <0.001 [a]*b*", [])
    assert "\\" in text and on_screen(text) == "# sklearn.linear_model\n\n**p <0.001 [a]*b***\n"


def test_the_ranking_says_what_its_colours_mean_and_they_differ_in_grey():
    rows = [row("a", f1=90.0), row("b", OPEN), row("c", CLEAR)]
    figure = pictures.ranking(rows, "f1/all")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["leads", "not clearly worse", "clearly worse"]
    grey = [np.dot(patch.get_facecolor()[:3], (0.299, 0.587, 0.114)) for patch in legend.get_patches()]
    assert (np.diff(grey) > 0.2).all()


def test_epochs_stand_in_the_order_of_numbers():
    rows = [row("a", steps=1800), row("b", steps=180)]
    assert "180 to 1,800 steps (3.0 to 30.0 epochs)" in words.trained(rows)


def test_labels_of_the_picture_of_costs_do_not_overlap():
    rows = [row(f"a rather long name {i}", f1=50 + i / 10, seconds=10 + i / 10) for i in range(7)]
    figure = pictures.ranking(rows, "f1/all")
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[1].texts]
    assert len(boxes) == 7
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


ONLY = Collapsed(("usual",), 0.98, 3, 3)


def collapsed_row(method, lead=CLEAR, **more):
    return replace(row(method, lead, **more), only=ONLY)


@pytest.mark.parametrize("lead", [CLEAR, OPEN], ids=["worse", "open"])
def test_a_method_that_names_one_class_alone_is_said_and_counts_in_no_verdict(lead):
    rows = [row("a", f1=90.0), collapsed_row("b", lead, f1=60.0), row("c", CLEAR)]
    said = words.headline(rows, "f1/all", made_up_report())
    assert "a wins against every other method that learned" in said and "against c, the next on dev" in said
    advice = words.advice(rows, "f1/all", made_up_report())
    assert advice == [
        "All other methods that learned score clearly lower.",
        "b names only 'usual' (98 % of test rows): it did not learn.",
    ]
    cells = [line[0].text for line in sheets.methods(rows, ["f1/all"], "f1", [], searched="").blocks[0].rows]
    assert cells == ["a", "b names only 'usual' (98 % of test rows): it did not learn", "c"]
    assert len({pictures.colour(one, rows) for one in rows}) == 3


def test_nobody_wins_where_the_leader_or_all_others_name_one_class_alone():
    leads = [collapsed_row("a", f1=90.0), row("b", CLEAR), row("c", CLEAR)]
    said = words.headline(leads, "f1/all", made_up_report())
    assert "wins" not in said and "leads, but it did not learn, so that is no verdict" in said
    assert words.advice(leads, "f1/all", made_up_report()) == [
        "a names only 'usual' (98 % of test rows): it did not learn."
    ]
    rest = [row("a", f1=90.0), collapsed_row("b")]
    assert "wins" not in words.headline(rest, "f1/all", made_up_report()) and not evidence.wins(rest)
    assert len(words.advice(rest, "f1/all", made_up_report())) == 1


def test_runs_that_name_one_class_alone_are_found_in_their_predictions(tmp_path):
    block = spec()
    results(tmp_path, block)
    for seed in (1, 2):
        file = tmp_path / f"runs/glee/mini/made/cls-tanh/{seed}/predictions.parquet"
        made_up.pd.read_parquet(file).assign(prediction=0).to_parquet(file, index=False)
    rows, *_ = evidence.standing(tmp_path, block)
    only = {one.method: one.only for one in rows}
    assert only.pop("cls-tanh") == Collapsed(("earn",), 1.0, 2, 3) and not any(only.values())
    assert "names only 'earn' (100 % of test rows) in 2 of 3 runs: these did not learn" in " ".join(
        words.advice(rows, "f1/all", made_up_report())
    )


def test_the_cost_of_predictions_stands_beside_that_of_training_with_what_it_was_measured_on(tmp_path):
    block = spec()
    results(tmp_path, block)
    for seed, seconds in ((1, 0.3), (2, 0.6), (3, 9.0)):
        file = tmp_path / f"runs/glee/mini/made/prompt/{seed}/run.json"
        about = json.loads(file.read_text()) | {"prediction_cpu_seconds": seconds, "threads": 1}
        about["prediction_seconds"] = 7 * seconds  # with what else ran
        about |= {"device": "x86_64 CPU", "data": {"rows": {"train": 9, "test": 300}}}
        file.write_text(json.dumps(about))
    gpu = about | {"device": "NVIDIA H200", "prediction_seconds": 3.0}
    assert evidence.prediction(made_up.pd.Series([gpu])) == (10.0, "NVIDIA H200")
    rows, *_ = evidence.standing(tmp_path, block)
    assert rows[0].predicting == pytest.approx(2.0) and np.isnan(rows[1].predicting)
    assert words.cost(rows[0], images=False).endswith("It predicts 1,000 texts in 2 s.")
    sheet = sheets.methods(rows, ["f1/all"], "f1", [], searched="", images=True)
    assert sheet.heads[-1] == "seconds for 1,000 images"
    assert [line[-1].text for line in sheet.blocks[0].rows] == ["2", "", ""]
    assert (
        "on x86_64 CPU (1 thread, processor time), without loading the model and decoding images"
        in sheet.notes[1]
    )


def test_without_times_of_predictions_the_page_shows_none(tmp_path):
    block = spec()
    rows, *_ = evidence.standing(results(tmp_path, block), block)
    sheet = sheets.methods(rows, ["f1/all"], "f1", [], searched="")
    assert sheet.heads[-1] == "memory, MB" and "predicts" not in words.cost(rows[0], images=False)


def test_long_names_of_classes_are_cut_and_stay_apart():
    names = ["a complaint of the " * 60 + end for end in "xy"] + ["short"]
    shown = [data_words.called(c, names) for c in range(3)]
    assert shown[2] == "short" and len({*shown}) == 3 and max(map(len, shown)) < 60
    drawn = [pictures.printable(names, c) for c in range(4)]
    assert drawn[2:] == ["short", "no class"] and len({*drawn}) == 4 and max(map(len, drawn)) < 60
