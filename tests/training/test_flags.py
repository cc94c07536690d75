"""Flags: runs that ended well, and whose numbers may say nothing of the method."""

import json

import numpy as np
import pandas as pd
import pytest
import toy
import toy_images
from conftest import ROW_T5

from tailprompt.report.tables.notes import FLAGS
from tailprompt.training.flags import collapsed, constant, flags, still

CLASSES = ["music", "sport", "law"]


def rows(prediction, label=(0, 1, 2, 0), **columns):
    return pd.DataFrame({"split": "test", "label": label, "prediction": prediction, **columns})


@pytest.mark.parametrize(
    "losses, flagged",
    [
        ([1.10, 1.0999, 1.1001], True),
        ([1.10, 1.095], True),
        ([1.10, 0.90, 1.10], False),  # it moved
        ([1.10, 2.00], False),
        ([1.10], False),  # one evaluation shows no course
        ([], False),
    ],
)
def test_a_loss_that_never_moves_is_flagged(losses, flagged):
    assert bool(still(losses)) == flagged


@pytest.mark.parametrize(
    "prediction, label, name",
    [
        ([1, 1, 1, 1], (0, 1, 2, 0), "'sport'"),
        ([3, 3, 3, 3], (0, 1, 2, 0), "another token"),
        ([1, 1, 1, 0], (0, 1, 2, 0), None),
        ([1, 1, 1, 1], (1, 1, 1, 1), None),  # as they should be
        ([[0, 1], [0, 1], [0], [0]], (0, 1, 2, 0), None),  # tags
    ],
)
def test_predictions_that_are_all_one_class_are_flagged(prediction, label, name):
    found = constant(rows(prediction, label), CLASSES)
    assert (name is None and not found) or name in found["constant"]


def test_dev_alone_flags_nothing():
    assert constant(rows([1, 1, 1, 1]).assign(split="dev"), CLASSES) == {}


@pytest.mark.parametrize(
    "named, there, flag",
    [
        (100, 100, None),  # as they should be
        (100, 97, "constant"),
        (98, 40, "nearly_constant"),
        (95, 75, "nearly_constant"),
        (95, 76, None),  # nearly as many as there are
        (94, 40, None),
    ],
)
def test_predictions_that_are_nearly_all_one_class_are_flagged_where_far_fewer_rows_are(named, there, flag):
    first = lambda number: np.where(np.arange(100) < number, 1, 0)  # noqa: E731
    found = constant(rows(first(named), first(there)), CLASSES)
    assert [*found] == ([flag] if flag else []) and (not flag or "'sport'" in found[flag])


@pytest.mark.parametrize(
    "used, pool, flagged", [(4, 20, True), (9, 20, True), (10, 20, False), (3, 5, False)]
)
def test_a_pool_of_which_few_prompts_are_chosen_is_flagged(used, pool, flagged):
    chosen = [list(pair) for pair in np.arange(40).reshape(20, 2) % used]
    found = collapsed(rows([0] * 20, [0] * 20, prompts=chosen), pool)
    assert bool(found) == flagged and (not flagged or f"{used} of {pool}" in found)


def test_a_run_without_a_pool_or_with_fewer_images_than_prompts_has_not_collapsed():
    assert collapsed(rows([0] * 4), 0) is None
    assert collapsed(rows([0] * 4, prompts=[[0, 1], [2, 3], [4, 5], [6, 7]]), 100) is None


def test_the_flags_of_a_run_are_in_its_log_and_in_run_json(tmp_path, capsys):
    folder = toy.run(tmp_path, "cls-tanh", lr=1e-12, epochs=3)
    said, about = capsys.readouterr().out, json.loads((folder / "run.json").read_text("utf-8"))
    assert "still" in about["flags"] and "warning: the training loss does not move" in said
    learned = toy.run(tmp_path, "cls-tanh", seed=2, epochs=9, patience=9)
    assert "still" not in json.loads((learned / "run.json").read_text("utf-8"))["flags"]


def test_a_collapsed_pool_is_flagged_in_run_json(tmp_path, monkeypatch):
    from tailprompt import train

    start = toy_images.run(tmp_path, "lpt-phase1", epochs=1)
    monkeypatch.setattr(train, "chosen_prompts", lambda *_: {"dev": [[0, 1]] * 12, "test": [[1, 0]] * 17})
    folder = toy_images.run(tmp_path, "lpt", start=start, epochs=1)
    assert "collapsed" in json.loads((folder / "run.json").read_text("utf-8"))["flags"]


def test_every_flag_is_found():
    found = flags([{"loss": 1.0}, {"loss": 1.0}], rows([1] * 4, prompts=[[0, 1]] * 4), CLASSES, pool=8)
    assert found.keys() == {"still", "constant", "collapsed"}
    assert found.keys() | {"nearly_constant"} == FLAGS.keys()


@pytest.mark.parametrize(
    "row, word, says",
    [
        (ROW_T5, "match goal", "scored by its first piece ▁match alone, without ▁goal"),
        (None, "goal 𐎀", "has a piece that the backbone does not know"),
        (None, "match goal", None),  # a mean, as GLEE has it
        (ROW_T5, "match", None),
    ],
)
def test_the_pieces_of_each_label_word_are_in_run_json_and_what_is_not_read_in_the_log(
    tmp_path, capsys, row, word, says
):
    file = tmp_path / "words.csv"
    file.write_text(f"label,words\nmusic,song\nsport,{word}\nlaw,court\n", "utf-8")
    told = {
        "verbalizer": str(file),
        "epochs": 1,
        "input": "formatted",
        "head": "verbalizer",
        "template": "soft",
    }
    folder = toy.run(tmp_path, "", **told, **({"row": row} if row else {}))
    pieces = json.loads((folder / "run.json").read_text("utf-8"))["pieces"]
    assert pieces.keys() == {"music", "sport", "law"} and len(pieces["music"]) == 1
    assert len(pieces["sport"]) == (1 if row else len(word.split()))
    said = capsys.readouterr().out
    assert (says in said) if says else ("the word" not in said)
