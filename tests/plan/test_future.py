"""Files that are of the future by the clock are said before any job."""

import os
import time

import pytest

from tailprompt.errors import BadInput
from tailprompt.plan.future import check_times


def test_where_no_results_are_yet_a_file_of_the_future_is_said_and_another_is_not(tmp_path):
    file = tmp_path / "tickets.csv"
    file.touch()
    check_times([file], tmp_path / "results/mine")
    os.utime(file, (time.time() + 3600,) * 2)
    with pytest.raises(BadInput, match=f"{file} is of the future by the clock"):
        check_times([file], tmp_path / "results/other")
