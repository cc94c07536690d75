"""Whether settings and scores suit what is predicted: classes, options, tags, or pieces of passages."""

from __future__ import annotations

from collections.abc import Iterator

from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known
from tailprompt.plan.blocks import points
from tailprompt.plan.rows import dataset_row, form_of, has_passages, has_tags, kind_of
from tailprompt.plan.settings import resolved
from tailprompt.tasks.metrics import METRICS as SCORES

METRICS = {  # of each kind, as `tasks` has them, which needs numpy
    "classes": ("accuracy", "precision", "recall", "f1", "balanced_accuracy", "average_precision"),
    "options": ("accuracy", "precision", "recall", "f1"),
    "groups": ("accuracy", "exact", "f1"),
    "tags": ("precision", "recall", "f1", "f1_as_released"),
    "passages": ("exact", "f1"),
}
VECTORS = ("features", "vectors")


def predicts(row: dict) -> str:
    """What is predicted of the rows of a data set, as METRICS names it."""
    if kind_of(row) == "image":
        return "classes"
    if has_tags(row):
        return "tags"
    if has_passages(row):
        return "passages"
    if row.get("loader") in ("multirc", "record") or "group" in row.get("columns", {}):
        return "groups"
    return "options" if form_of(row) == "mcc" else "classes"


def check_suits(run: Run, row: dict, extras: dict, where: str) -> None:
    """Raise BadInput for a setting that the rows of a data set leave without a meaning."""
    kind = predicts(row)
    several = kind in ("tags", "passages") or run.input.name == "options"
    what = f"{kind}, which data set '{row['name']}' has"
    if several and getattr(run.head, "head_start", "random") == "class_means":
        raise BadInput(f"{where} head_start class_means is of classes, not of {what}; take random")
    if several and (asked := [key for key in VECTORS if extras.get(key)]):
        raise BadInput(f"{where} {' and '.join(asked)} are of classes, not of {what}; leave the set out")
    if run.head.name == "neighbours" and (run.eta or any(run.tau)):
        raise BadInput(f"{where} eta and tau divide by norms of class vectors, and neighbours have none")
    if run.select == "f1_as_released" and row.get("loader") != "roles":
        raise BadInput(f"{where} select f1_as_released is of semantic roles, not of {what}; take f1 or last")
    if kind not in ("tags", "passages"):
        return
    if run.select == "accuracy":
        raise BadInput(f"{where} select accuracy is of classes, not of {what}; take f1 or last")
    if run.training and run.training.sampler.name != "shuffled":
        sampler = run.training.sampler.name
        raise BadInput(f"{where} sampler {sampler} is of classes, not of {what}; take shuffled")
    if kind == "passages":
        check_passages(run, where)


def check_dev(run: Run, row: dict, where: str) -> None:
    """Raise BadInput if dev is to choose something and the row says that there will be none."""
    files, shares = row.get("files", {}), row.get("shares")
    may_tell = "all" in files and row.get("loader") != "cifar100"  # rows that may name their splits
    if shares is None or shares.get("dev") or "dev" in files or may_tell:
        return
    several = [key for key in ("C", "neighbours") if len(getattr(run.head, key, ())) > 1]
    chosen = several or (["select"] if run.training and run.select != "last" else [])
    if chosen:
        instead = f"state one {several[0]}" if several else "take select: last"
        raise BadInput(
            f"{where} {chosen[0]} is chosen on dev rows, and data set '{row['name']}' has none (no file, no "
            f"share); {instead}, or let its row cut some: shares: {{dev: 0.1}}"
        )


def check_warmup(run: Run, where: str) -> None:
    """Raise BadInput for a learning rate that rises for longer than training lasts, and is never reached."""
    training = run.training
    if training and training.warmup > training.epochs:
        raise BadInput(
            f"{where} warmup {training.warmup:g} is of more epochs than training has ({training.epochs:g}); "
            "lower it, or raise epochs"
        )


def check_passages(run: Run, where: str) -> None:
    """Raise BadInput for a loss or windows with which no answer can be learned."""
    loss = run.training.loss.name if run.training else "cross_entropy"
    if loss != "cross_entropy":
        raise BadInput(f"{where} loss {loss} is of classes, and answers have none; take cross_entropy")
    if run.input.stride >= run.input.max_length - 3:
        raise BadInput(
            f"{where} stride {run.input.stride} is what two windows of {run.input.max_length} tokens share; "
            "lower it, or raise max_length"
        )


def check_scores(config: dict, everything: dict[tuple[str, str, str], dict]) -> None:
    """Raise BadInput for a score in a table, figure or claim that one of its data sets does not have."""
    for (_, paper, name), block in everything.items():
        for dataset, metric in scores_of(block):
            allowed = METRICS[predicts(dataset_row(config, dataset))]
            if metric.partition("/")[0] in {*SCORES} - {*allowed}:
                raise BadInput(
                    f"{name} of {paper}: data set '{dataset}' has no {metric}; before / comes one of "
                    f"{known(allowed)}"
                )


def check_norms(config: dict, everything: dict[tuple[str, str, str], dict]) -> None:
    """Raise BadInput for a figure of class vectors' norms with a run that has no vector for each class."""
    for (_, paper, name), block in everything.items():
        if block["kind"] != "weight_norms":
            continue
        for point in points(block):
            kind = predicts(dataset_row(config, point.dataset))
            if kind in ("tags", "passages") or resolved(config, point).run.input.name == "options":
                raise BadInput(
                    f"{name} of {paper}: weight_norms are of classes, not of {kind}, which data set "
                    f"'{point.dataset}' has under {point.method}; leave the data set or the method out"
                )


def scores_of(block: dict) -> Iterator[tuple[str, str]]:
    """The data sets of a block, each with every score that the block asks of it."""
    stated = [*block.get("metrics", ()), *([block["winner"]] if block.get("winner") else [])]
    stated += [block.get("choose", block)["by"]] if block.get("choose", block).get("by") else []
    for dataset in block["datasets"]:
        yield from ((dataset["dataset"], metric) for metric in stated)
    for claim in block.get("claims", ()):
        yield from ((dataset, claim["metric"]) for dataset in claim["datasets"] if "metric" in claim)
