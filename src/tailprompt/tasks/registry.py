"""The tasks by name, and which one a data set has: it follows from what its rows hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tailprompt.errors import BadInput, known, named
from tailprompt.tasks.choice import CHOICE
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.task import Task


def told(columns: Collection[str]) -> str:
    """The name of the task of rows with these columns."""
    for name, task in TASKS.items():
        if task.told_by in columns:
            return name
    columns_of_tasks = [task.told_by for task in TASKS.values()]
    raise BadInput(f"rows of {known(columns)} are of no task; one has a column {known(columns_of_tasks)}")


def recorded(about: Mapping) -> Task:
    """The task that a data set's report, or what run.json says of the data, names.

    Before tasks had names, `choices` told them apart, in run.json alone: both are scored alike.
    """
    before = "choice" if about.get("choices") else "classification"
    return named(TASKS, about.get("task", before), "task")


TASKS = {"choice": CHOICE, "classification": CLASSIFICATION}  # options have labels too: choice comes first
