"""Whether data sets can be joined in one, on which a prefix is pre-trained (P-Tuning v2, appendix A)."""

from __future__ import annotations

from collections.abc import Iterable

from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known
from tailprompt.plan.layers import origin

KINDS = {"tags": "tags", "roles": "semantic roles", "squad": "passages with answers"}  # by loader


def check_joins(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first data set that joins what has another task, language or form of answers."""
    rows = config["datasets"]
    for name, row in rows.items():
        if "joins" in row:
            check_parts(rows, row, f"{origin(layers, ['datasets', name, 'joins'])}: data set '{name}'")
        if "joins" not in rows.get(row.get("joined_in"), {"joins": []}):
            place = f"{origin(layers, ['datasets', name, 'joined_in'])}: joined_in of data set '{name}'"
            raise BadInput(f"{place} is '{row['joined_in']}', which joins nothing; name joined sets")


def check_parts(datasets: dict, row: dict, place: str) -> None:
    """Raise BadInput unless the parts of joined sets are of one task and language. place: for messages."""
    kinds = {part: kind_of(datasets[part]) for part in row["joins"]}
    if nested := [part for part in kinds if "joins" in datasets[part]]:
        raise BadInput(f"{place} joins {known(nested)}, itself of joined sets; name its parts")
    if wrong := [part for part, kind in kinds.items() if kind is None]:
        raise BadInput(f"{place} joins {known(wrong)}, but only sets of {known(KINDS.values())} are joined")
    if len(set(kinds.values())) > 1:
        each = "; ".join(f"{part} has {kind}" for part, kind in kinds.items())
        raise BadInput(f"{place} joins sets of different tasks ({each}); join sets of one task")
    if other := [part for part in kinds if datasets[part]["language"] != row["language"]]:
        raise BadInput(f"{place} is of the language '{row['language']}', and {known(other)} of another")
    open_ended = [part for part in kinds if datasets[part].get("unanswerable")]
    if open_ended and not row.get("unanswerable"):
        raise BadInput(
            f"{place} joins {known(open_ended)}, where a question may have no answer; set unanswerable: "
            "true, so that it holds of all"
        )


def kind_of(row: dict) -> str | None:
    """What is predicted of a data set, as joining tells them apart; None of what is not joined."""
    return KINDS.get(row.get("loader", "table"))


def check_joined(run: Run, row: dict, where: str) -> None:
    """Raise BadInput for a setting that has no meaning where each of joined sets has a head."""
    if "joins" not in row:
        return
    what = f"of the head, of which each set joined in '{row['name']}' has one"
    if run.training is None:
        raise BadInput(f"{where} head {run.head.name} is {what}; take predictor")
    if run.training.loss.name != "cross_entropy":
        raise BadInput(f"{where} loss {run.training.loss.name} is {what}; take cross_entropy")
    if run.eta or any(run.tau):
        raise BadInput(f"{where} eta and tau are {what}; leave them out")
