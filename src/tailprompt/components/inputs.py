"""Components of `input`: what a backbone reads of an example."""

from __future__ import annotations

from tailprompt.components.declare import component, key

MAX_LENGTH = {"minimum": 8}
FITTED = ("logistic_regression", "neighbours", "class_means")  # heads that are fitted, without steps
ENCODERS = ("bert", "roberta", "deberta", "deberta-v2")  # the last two without a head for masked words


@component("plain")
class Plain:
    """[CLS] text [SEP], perhaps with a second text; read at [CLS] (GLEE section 2.2)."""

    reads = "text"
    families = ENCODERS
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)


@component("pooled")
class Pooled:
    """[CLS] text [SEP], perhaps with a second text; the mean over its tokens, as of sentence encoders."""

    reads = "text"
    families = ENCODERS
    heads = ("linear", "predictor", *FITTED)
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)
    unit_length: bool = key(True, "true divides the mean by its length, as all-MiniLM does")


@component("tfidf")
class Tfidf:
    """TF-IDF of words in a row and of pieces of words (scikit-learn), fitted on the training texts.

    A Chinese or Japanese character is a word.
    """

    reads = "text"
    families = ("tfidf",)
    heads = ("logistic_regression",)
    word_terms: int = key(2, "most words in a row that are a term", minimum=1)
    character_terms: int = key(5, "most characters of a word that are a term, from 2", minimum=2)
    texts_of_term: int = key(1, "training texts that a term must be in", minimum=1)
    terms: int = key(20_000, "most terms of each kind, the most frequent", minimum=1)


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
    ending_loss: bool = key(
        False,
        "beside sentinel_loss: true adds that of the sentinel after the answer, and takes a third of the sum "
        "(PPT's code in pre-training)",
    )


@component("pixels")
class Pixels:
    """An image."""

    reads = "image"
    families = ("vit",)
    heads = ("predictor", *FITTED)
    test_zoom: float = key(
        1.0, "1 resizes to the model's size; 1.143 crops the centre of a larger image (LPT's code)", minimum=1
    )
    views: int = key(1, "views of a test image: 1, or 5 for the mean over five crops", enum=[1, 5])


@component("options")
class Options:
    """[CLS] text [SEP] option [SEP] for each option, which the head scores by itself (P-Tuning v2's COPA)."""

    reads = "text"
    families = ENCODERS
    heads = ("linear", "predictor", "pooler")
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)


@component("windows")
class Windows:
    """[CLS] question [SEP] passage [SEP], of a long passage in windows; an answer is a piece of the passage.

    The values are those of P-Tuning v2's code (tasks/qa/dataset.py, arguments.py).
    """

    reads = "text"
    families = ENCODERS
    heads = ("predictor",)
    max_length: int = key(says="most tokens; by default the data set's", **MAX_LENGTH)
    stride: int = key(128, "tokens of a passage that two windows share", minimum=0)
    n_best: int = key(20, "first and last tokens of a window that are combined to answers", minimum=1)
    longest_answer: int = key(30, "most tokens of an answer", minimum=1)
    null_threshold: float | None = key(
        None,
        "by how much the logits of no answer must be higher than the best answer's; null is what scores best "
        "on dev, as the script of SQuAD 2.0 finds it",
    )
    unanswerable: bool = key(says="whether a question may have no answer; the data set says it", of_data=True)
