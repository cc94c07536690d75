"""What Snakemake finds out for each job is found out once, and is the same."""

import inspect

import pytest
from snakemake.common import get_function_params, get_input_function_aux_params
from snakemake.resources import Resource

from tailprompt.plan.repeated import keep_commands, keep_parameters


def test_parameters_that_are_kept_are_those_of_the_function(monkeypatch):
    def seconds(wildcards, attempt, **others):
        return 60 * attempt

    keep_parameters(seconds)
    monkeypatch.setattr(inspect, "signature", None)  # nobody inspects it again
    assert [*get_function_params(seconds)] == ["wildcards", "attempt", "others"]


def test_a_resource_is_given_what_it_takes():
    keep_parameters(Resource.evaluate)
    memory = Resource("mem_mb", lambda wildcards, attempt: 8000 * attempt)
    told = get_input_function_aux_params(memory.evaluate, {"attempt": 2, "threads": 1})
    assert memory.evaluate("wildcards", **told).value == 16000


def test_the_command_of_each_job_is_put_together_once_and_a_fault_in_it_is_raised():
    class Job:
        def __init__(self, command):
            self.command, self.asked = command, 0

        @property
        def shellcmd(self):
            self.asked += 1
            return self.command.format(seed=1)

    keep_commands(Job)
    first, second = Job("train {seed}"), Job("score {seed}")
    assert [first.shellcmd, first.shellcmd, second.shellcmd] == ["train 1", "train 1", "score 1"]
    assert first.asked == second.asked == 1
    with pytest.raises(KeyError):
        _ = Job("train {rate}").shellcmd
