"""Numbers of recipes that only changed their form."""

import json

import pytest
from scales import scale

from tailprompt.files import write_json
from tailprompt.plan.equal_numbers import as_before
from tailprompt.plan.layers import merge

MINI = scale("mini")
NAME = next(name for name, row in MINI["pretraining"].items() if "vocabulary" in row)


def recipe(config):
    return json.dumps(config["pretraining"][NAME])  # in which 5 is not 5.0


@pytest.mark.parametrize("told", ["asked", "made"])
@pytest.mark.parametrize("before, now", [(5, 5.0), (5.0, 5)])
def test_a_number_keeps_the_form_that_was_asked_before(tmp_path, told, before, now):
    was, given = (
        merge(MINI, {"pretraining": {NAME: {"warmup": number, "shape": {"initializer_range": number}}}})
        for number in (before, now)
    )
    assert recipe(as_before(given, tmp_path)) == recipe(given) != recipe(was)
    write_json(tmp_path / f"results/mini/{told}/checkpoint/{NAME}.json", {"recipe": was["pretraining"][NAME]})
    assert recipe(as_before(given, tmp_path)) == recipe(was)
    assert recipe(as_before(was, tmp_path)) == recipe(was)


def test_another_number_a_switch_and_a_list_of_another_length_are_as_they_are_given(tmp_path):
    asked = {"lr": 1, "steps": 1, "reads": [1.0], "long": {"every": 2.0}}
    write_json(tmp_path / f"results/mini/made/checkpoint/{NAME}.json", {"recipe": asked})
    given = merge(
        MINI, {"pretraining": {NAME: {"lr": 1.5, "steps": True, "reads": [1, 2], "long": {"every": 3}}}}
    )
    assert recipe(as_before(given, tmp_path)) == recipe(given)
