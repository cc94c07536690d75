"""The vectors that a frozen body makes of a split in every pass, computed once."""

from __future__ import annotations

from tailprompt.components.run import Run, repeated
from tailprompt.inputs.examples import Split
from tailprompt.inputs.features import Features
from tailprompt.inputs.written import Counted, Written, counted
from tailprompt.machine.clock import started
from tailprompt.model.compose import Model
from tailprompt.model.terms import Terms
from tailprompt.training.batches import predict
from tailprompt.training.precision import set_precision


def with_vectors(model: Model, splits: dict[str, Split], run: Run) -> dict[str, Split]:
    """The splits, with the vectors of those that repeat in place of their inputs."""
    if model.unit != "example" or run.input.name == "options":  # the head reads more than one vector
        return splits
    if run.input.name == "tfidf":
        return with_terms(model.body, splits)
    seen = [split for split in repeated(run) if len(splits[split])]
    return splits | {split: vectors_of(model, splits[split], run.precision) for split in seen}


def with_terms(body: Terms, splits: dict[str, Written]) -> dict[str, Counted]:
    """The splits with the vectors of their texts; the terms are fitted to the training texts, if any."""
    made = {}
    for split in sorted(splits, key=lambda name: name != "train"):
        if texts := splits[split].texts:
            spent = started()
            rows = body.fit(texts) if split == "train" else body.vectors(texts)
            made[split] = counted(splits[split], rows, spent())
    return splits | made


def vectors_of(model: Model, examples: Split, precision: str) -> Features:
    """The vectors that the head reads of each example, on its device."""
    set_precision(precision)
    spent = started()
    made = predict(model, examples, precision=precision, apply=lambda batch: model.read(batch).vector)
    return Features(
        vectors=made.to(examples.labels.device),
        labels=examples.labels,
        lengths=examples.lengths,
        names=examples.names,
        truncated=examples.truncated,
        options=getattr(examples, "options", None),
        aligned=getattr(examples, "aligned", None),
        spent=spent(),
    )
