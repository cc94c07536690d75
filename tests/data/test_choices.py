"""Questions with options: how the label says which is right, and the configuration for a user's own."""

import pandas as pd
import pytest

from tailprompt.data.columns import load_table
from tailprompt.data.table import load as prepared
from tailprompt.errors import BadInput
from tailprompt.plan.blocks import all_points
from tailprompt.plan.config import load
from tailprompt.plan.runnable import check_settings

COLUMNS = {"text": "q", "choices": ["a", "b", "c"], "label": "answer"}


def quiz(folder, answers):
    rows = len(answers)
    table = {"q": [f"which {i}" for i in range(rows)], "a": ["red"] * rows, "b": ["blue"] * rows}
    pd.DataFrame(table | {"c": ["blue sky"] * rows, "answer": answers}).to_csv(
        folder / "quiz.csv", index=False
    )
    return {"all": folder / "quiz.csv"}


@pytest.mark.parametrize("answers", [["B", "A", "C"], ["1", "0", "2"], ["blue", "red", "blue sky"]], ids=str)
def test_the_label_is_a_letter_a_place_or_the_text_of_an_option(tmp_path, answers):
    assert load_table(quiz(tmp_path, answers), {"columns": COLUMNS}).label.tolist() == ["B", "A", "C"]


def test_a_label_that_is_no_option_is_refused(tmp_path):
    paths = quiz(tmp_path, ["blue", "green", "red"])
    with pytest.raises(BadInput, match="1 row has a label that is the letter of none"):
        prepared({"name": "quiz", "columns": COLUMNS}, paths)


def test_the_configuration_for_own_questions_runs_each_method_at_each_rate():
    whole = load(["config/mine-choices.yaml"])
    points = all_points(whole)
    assert check_settings(whole, points) and len(points) == 3 * 3 * 3
    assert {point.method.partition("@")[0] for point in points} == {"finetune", "pt2", "lora"}
