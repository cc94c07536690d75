"""Rows of a table, and the words of its classes, as the input that a run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch

from tailprompt.components.resolve import values
from tailprompt.components.run import Run
from tailprompt.inputs.encode import encode, encode_words
from tailprompt.inputs.features import Features
from tailprompt.inputs.images import Images, image_examples
from tailprompt.inputs.texts import Examples
from tailprompt.inputs.tokens import tokenize
from tailprompt.inputs.words import encode_sentences
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.limits import places

Split = Examples | Images | Features


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
) -> Examples | Images:
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
) -> Examples:
    """The rows of a table (id, text, label, perhaps pair or choices; or id, words, tags) as token ids.

    words: each class's word, which formatted rows may show as options. kept: folder of texts' token ids.
    """
    told, tuner = run.input, run.tuner
    room = {
        "max_length": told.max_length,
        "positions": backbone.positions,
        "prompt_length": places(tuner),
    }
    if "words" in table:
        return encode_sentences(table, backbone.tokenizer, **room, kept=kept)
    return encode(
        table,
        backbone.tokenizer,
        input=told.name,
        template=getattr(told, "template", None),
        language=getattr(told, "language", None),
        words=words,
        **room,
        kept=kept,
    )


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
    """Token ids of each class's word where the head reads words, else of nothing."""
    if run.head.name != "verbalizer":
        return [[] for _ in classes]
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
