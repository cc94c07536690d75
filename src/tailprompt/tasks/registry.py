"""The tasks by name. The task of a data set follows from its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tailprompt.errors import BadInput, known, named
from tailprompt.tasks.choice import CHOICE
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.grouped import GROUPED, PICKED
from tailprompt.tasks.spans import SPANS
from tailprompt.tasks.tagging import TAGGING
from tailprompt.tasks.task import Task


def told(columns: Collection[str]) -> str:
    """The name of the task of rows with these columns; raises BadInput if there is none."""
    for name, task in TASKS.items():
        if task.told_by in columns:
            return name
    columns_of_tasks = [task.told_by for task in TASKS.values()]
    raise BadInput(f"rows of {known(columns)} are of no task; one has a column {known(columns_of_tasks)}")


def recorded(about: Mapping) -> Task:
    """The task that the report of a data set names, or the `data` of a run.json.

    Before tasks had names, run.json had `choices`, and reports had nothing; both tasks are scored alike.
    """
    before = "choice" if about.get("choices") else "classification"
    return named(TASKS, about.get("task", before), "task")


TASKS = {
    "choice": CHOICE,
    "picked": PICKED,
    "grouped": GROUPED,
    "tagging": TAGGING,
    "spans": SPANS,
    "classification": CLASSIFICATION,
}  # classification comes last, as rows of others have labels too; those of picked also groups and answers
