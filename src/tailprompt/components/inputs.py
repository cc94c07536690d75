"""Components of `input`: what a backbone reads of an example."""

from __future__ import annotations

from tailprompt.components.declare import component, key

MAX_LENGTH = {"minimum": 8}


@component("plain")
class Plain:
    """[CLS] text [SEP], perhaps with a second text; read at [CLS] (GLEE section 2.2)."""

    reads = "text"
    families = ("bert", "roberta")
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)


@component("prompted")
class Prompted:
    """The data set's template with one mask, read at the mask (GLEE section 2.2)."""

    reads = "text"
    families = ("bert", "roberta")
    template: str = key(
        says="words around {text}, {mask} and perhaps {pair}; the data set's, or as_released: its "
        "template_as_released where it has one",
        minLength=1,
    )
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)


@component("formatted")
class Formatted:
    """A text, a pair or a question with options, around the place of the answer (PPT section 3)."""

    reads = "text"
    families = ("bert", "roberta", "t5")
    heads = ("verbalizer",)
    template: str = key(
        says="soft | hybrid | unified | soft_as_released | hard_as_released | unified_as_released, or words "
        "around {text}, {mask} and perhaps {pair} and {choices}",
        minLength=1,
    )
    language: str = key(says="of the letters before options; the data set gives it", of_data=True)
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)
    sentinel_loss: bool = key(
        False,
        "for a T5: true adds the loss of the sentinel before the answer and halves the sum (PPT's code)",
    )


@component("pixels")
class Pixels:
    """An image."""

    reads = "image"
    families = ("vit",)
    heads = ("predictor",)
    test_zoom: float = key(
        1.0, "1 resizes to the model's size; 1.143 crops the centre of a larger image (LPT's code)", minimum=1
    )
    views: int = key(1, "views of a test image: 1, or 5 for the mean over five crops", enum=[1, 5])
