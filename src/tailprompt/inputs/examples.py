"""The input that a run's settings ask for, from the rows of a table and the words of its classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch

from tailprompt.inputs.encode import Examples, encode, encode_words
from tailprompt.inputs.images import VIEWS, VIEWS_IN_TRAINING, Images, image_examples
from tailprompt.inputs.layouts import tokenize
from tailprompt.inputs.templates import template_of
from tailprompt.model.backbones import Backbone, VisionBackbone


def examples_of(
    part: pd.DataFrame,
    *,
    backbone: Backbone | VisionBackbone,
    settings: dict,
    words: dict[str, str],
    pixels: Path | None,
    device: torch.device,
    training: bool,
) -> Examples | Images:
    """A split on the device: texts as token ids, images as views of those in the file `pixels`."""
    if isinstance(backbone, VisionBackbone):
        return view_rows(part, backbone, settings, pixels, training=training).to(device)
    return encode_rows(part, backbone, settings, words=words).to(device)


def encode_rows(
    table: pd.DataFrame, backbone: Backbone, settings: dict, *, words: dict[str, str] | None = None
) -> Examples:
    """The rows of a table (id, text, label, perhaps pair or choices) as token ids.

    words: each class's word, which formatted rows may show as options.
    """
    return encode(
        table,
        backbone.tokenizer,
        input=settings["input"],
        template=template_in(settings),
        language=settings.get("language"),
        words=words,
        max_length=settings["max_length"],
        positions=backbone.positions,
        soft_length=settings.get("soft_length", 0),
    )


def template_in(settings: dict) -> str | None:
    """What a run's input puts a text into; plain input has no template."""
    return None if settings["input"] == "plain" else template_of(settings)


def view_rows(
    table: pd.DataFrame, backbone: VisionBackbone, settings: dict, pixels: Path, *, training: bool
) -> Images:
    """The rows of a table (id, label, image) as views of the images in the file `pixels`."""
    wanted = (*VIEWS_IN_TRAINING, *VIEWS) if training else VIEWS
    return image_examples(
        pixels,
        table,
        training=training,
        size=backbone.size,
        mean=backbone.mean,
        std=backbone.std,
        tokens=backbone.tokens,
        **{key: settings[key] for key in wanted},
    )


def word_ids(
    words: dict[str, str],
    backbone: Backbone | VisionBackbone,
    settings: dict,
    *,
    source: str = "verbalizer",
) -> list[list[int]]:
    """Token ids of each class's word if the head reads words, otherwise an empty list for each."""
    if settings["head"] != "verbalizer":
        return [[] for _ in words]
    return encode_words(
        words,
        backbone.tokenizer,
        template=template_in(settings),
        language=settings.get("language"),
        source=source,
    )


def token_ids(texts: pd.Series, backbone: Backbone) -> Iterator[list[int]]:
    """Token ids of texts, which are tokenised once the first is asked for."""
    yield from tokenize(backbone.tokenizer, texts.tolist())
