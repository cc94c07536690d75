"""Rows of a table, and the words of its classes, as the input that a run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from tailprompt.components.resolve import values
from tailprompt.components.run import Run
from tailprompt.inputs.encode import encode, encode_words
from tailprompt.inputs.features import Features
from tailprompt.inputs.images import Images, image_examples
from tailprompt.inputs.options import encode_options
from tailprompt.inputs.passages import encode_questions
from tailprompt.inputs.texts import Examples
from tailprompt.inputs.tokens import tokenize
from tailprompt.inputs.words import encode_sentences
from tailprompt.inputs.written import Written, written
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.limits import places

Split = Examples | Images | Features | Written
GROUPED = ("group", "option", "answers")  # columns by which tasks score a question's options together


def examples_of(
    part: pd.DataFrame,
    *,
    backbone: Backbone | VisionBackbone,
    run: Run,
    words: dict[str, str],
    pixels: Path | None,
    device: torch.device,
    training: bool,
    kept: Path | None = None,
) -> Split:
    """A split on the device: texts as token ids (of which `kept` holds some), images as views of `pixels`."""
    if backbone.reads == "image":
        return view_rows(part, backbone, run, pixels, training=training).to(device)
    return encode_rows(part, backbone, run, words=words, kept=kept).to(device)


def encode_rows(
    table: pd.DataFrame,
    backbone: Backbone,
    run: Run,
    *,
    words: dict[str, str] | None = None,
    kept: Path | None = None,
) -> Examples | Written:
    """The rows of a table (id, text, label, perhaps pair or choices; or id, words, tags) as token ids.

    words: each class's word, which formatted rows may show as options. kept: folder of texts' token ids.
    """
    examples = encoded(table, backbone, run, words=words, kept=kept)
    if "set" not in table:
        return examples
    of_row = dict(zip(table["id"], table["set"].cat.codes, strict=True))
    return replace(examples, sets=torch.tensor([of_row[name] for name in examples.names]))


def encoded(
    table: pd.DataFrame, backbone: Backbone, run: Run, *, words: dict[str, str] | None, kept: Path | None
) -> Examples | Written:
    """The rows of a table in the form of the run's input."""
    told, tuner = run.input, run.tuner
    limits = {"positions": backbone.positions, "prompt_length": places(tuner), "kept": kept}
    if told.name == "tfidf":
        return written(table)
    if "words" in table:
        return encode_sentences(table, backbone.tokenizer, max_length=told.max_length, **limits)
    if told.name == "windows":
        return encode_questions(table, backbone.tokenizer, **values(told), **limits)
    if told.name == "options":
        return encode_options(table, backbone.tokenizer, most=len(words), **values(told), **limits)
    examples = encode(
        table,
        backbone.tokenizer,
        input=told.name,
        template=getattr(told, "template", None),
        language=getattr(told, "language", None),
        words=words,
        max_length=told.max_length,
        **limits,
    )
    if getattr(told, "ending_loss", False) and backbone.tokenizer.mask_token_id is None:
        examples = replace(examples, answer=said(examples.labels, backbone, run, words or {}))
    grouped = [column for column in GROUPED if column in table]
    return replace(examples, aligned=table[grouped]) if grouped else examples


def said(labels: Tensor, backbone: Backbone, run: Run, words: dict[str, str]) -> Tensor:
    """The id of each example's right answer, which a T5 decodes."""
    ids = word_ids(list(words), words, backbone, run)
    return torch.tensor([tokens[0] for tokens in ids])[labels]


def view_rows(
    table: pd.DataFrame, backbone: VisionBackbone, run: Run, pixels: Path, *, training: bool
) -> Images:
    """The rows of a table (id, label, image) as views of the images in the file `pixels`."""
    told = run.training.images if training and run.training else None
    changes = (
        {"augment": told.augment.name, "flip": told.flip, "mixup": told.mixup, **values(told.augment)}
        if told
        else {}
    )
    return image_examples(
        pixels,
        table,
        training=training,
        size=backbone.size,
        mean=backbone.mean,
        std=backbone.std,
        tokens=backbone.tokens,
        test_zoom=run.input.test_zoom,
        views=run.input.views,
        kernel=backbone.interpolation,
        **changes,
    )


def word_ids(
    classes: Sequence[str],
    words: dict[str, str],
    backbone: Backbone | VisionBackbone,
    run: Run,
    *,
    source: str = "verbalizer",
) -> list[list[int]]:
    """Token ids of each output's word where the head reads words, else of nothing.

    Outputs are the classes; of options that are sequences of their own there is one, the score of an option.
    """
    if run.head.name != "verbalizer":
        return [[] for _ in (classes[:1] if run.input.name == "options" else classes)]
    return encode_words(
        words,
        backbone.tokenizer,
        template=getattr(run.input, "template", None),
        language=getattr(run.input, "language", None),
        source=source,
    )


def word_texts(table: pd.DataFrame, backbone: Backbone | VisionBackbone, run: Run) -> list[list[int]]:
    """Token ids of the training texts, where a soft prompt begins with words of them."""
    if run.tuner.name != "soft_prompt" or run.tuner.init != "task_words":
        return []
    texts = table["words"].map(" ".join) if "words" in table else table["text"]
    return tokenize(backbone.tokenizer, texts.tolist())
