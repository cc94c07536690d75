"""Self-supervised data sets from plain text, for pre-training prompts (PPT, section 3.2).

Each loader makes an example of a unit of text, or none if it cannot. `units` reads the units from a corpus
and decides which become examples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data.checks import refuse
from tailprompt.data.columns import CHOICES, ID, LABEL, LETTERS, PAIR, SPLIT, TEXT
from tailprompt.data.quotas import EXAMPLES, quotas
from tailprompt.data.sentiment import ANNOTATORS, THRESHOLDS, accepted
from tailprompt.data.units import LEAST_WORDS, Unit, collected, shortened
from tailprompt.errors import BadInput, named
from tailprompt.files import read_parquet

SINGLE, SINGLE_LENGTH, CLASSES = 11, 256, "12345"  # fewest characters, most words, classes
CANDIDATES = 4
PAIR_LENGTH = 512

# (words of the query, words of an option, wrong options from the same document); tokens in the released code
CHOICE = (389, 86, 1)
UNIFIED = {
    **dict.fromkeys((2, 3, 4), (400, 50, 1)),
    5: (400, 40, 1),
    6: (300, 40, 1),
    7: (250, 30, 2),
    **dict.fromkeys((8, 9), (200, 30, 2)),
    10: (150, 20, 2),
    **dict.fromkeys(range(11, 17), (150, 20, 3)),
}


def load_next_sentence_pair(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Pairs of units (PPT, section 3.2.1), a third of each class.

    Label 2: the units are neighbours. Label 1: they are from the same document. Label 0: they are from two
    documents. Pairs in which one text is over a hundred times as long as the other are left out, as released.
    """
    cut = scaled(PAIR_LENGTH, row)

    def example(unit: Unit) -> dict | None:
        label = unit.chance.randrange(3)
        if label == 0:
            found = unit.elsewhere(1)
        else:
            found = [unit.chance.choice(unit.neighbours())] if label == 2 else unit.apart(1)
        if not found or found[0] in ([unit.text] if label == 2 else [unit.text, *unit.neighbours()]):
            return None
        other = found[0]
        if not 0.01 <= len(unit.text) / len(other) <= 100:
            return None
        return {TEXT: shortened(unit.text, cut), PAIR: shortened(other, cut), LABEL: str(label)}

    return collected(paths, row, example, units=5, least=5, words=LEAST_WORDS)


def load_next_sentence_choice(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Six options (PPT, section 3.2.2): a neighbour of the query, a unit of its document, four of others."""
    return collected(paths, row, lambda unit: options(unit, 6, CHOICE, row), units=5, least=10)


def load_unified_choice(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Two to sixteen options (PPT, section 3.3), shorter if there are more."""

    def example(unit: Unit) -> dict | None:
        count = unit.chance.randint(min(UNIFIED), max(UNIFIED))
        return options(unit, count, UNIFIED[count], row)

    return collected(paths, row, example, units=6, least=10)


def options(unit: Unit, count: int, lengths: tuple[int, int, int], row: dict) -> dict | None:
    """The query and its `count` options in random order; None if two options read the same.

    No wrong option is the query or one of its neighbours.
    """
    query, option, same = scaled(lengths[0], row), scaled(lengths[1], row), lengths[2]
    right = shortened(unit.chance.choice(unit.neighbours()), option)
    inside = unit.apart(same)
    outside = unit.elsewhere(count - 1 - same) if count - 1 > same else []
    wrong = [shortened(text, option) for text in inside + outside]
    taken = {shortened(text, option) for text in [unit.text, *unit.neighbours()]}
    if len({*wrong} - taken) < count - 1 or right == shortened(unit.text, option):
        return None
    place = unit.chance.randrange(count)
    choices = [*wrong[:place], right, *wrong[place:]]
    return {TEXT: shortened(unit.text, query), CHOICES: choices, LABEL: LETTERS[place]}


def load_pseudo_label(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Single units with a sentiment, 1 to 5, of which an annotator is sure (PPT, section 3.2.3).

    Each class gets up to a fifth of the examples; the released code takes them as they come. Annotations of a
    model are read from the file that stage annotate wrote.
    """
    if row.get("annotator") == "model":
        return annotated(paths["all"], row)
    annotate = named(ANNOTATORS, row.get("annotator", "vader"), "annotator")(row)
    cut = scaled(SINGLE_LENGTH, row)

    def example(unit: Unit) -> dict | None:
        text = shortened(unit.text, cut)
        label = accepted(annotate(text))
        return None if label is None else {TEXT: text, LABEL: str(label + 1)}

    return collected(paths, row, example, units=1, least=SINGLE, classes=CLASSES)


def scaled(words: int, row: dict) -> int:
    """A number of words, times the `lengths` of a row; one at least."""
    return max(1, round(words * row.get("lengths", 1.0)))


def candidates(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Units for a model to annotate, `CANDIDATES` times as many as the wanted examples."""
    cut, many = scaled(SINGLE_LENGTH, row), {**row, "examples": CANDIDATES * row.get("examples", EXAMPLES)}
    return collected(
        paths, many, lambda unit: {TEXT: shortened(unit.text, cut), LABEL: None}, units=1, least=SINGLE
    )


def annotated(path: Path, row: dict) -> pd.DataFrame:
    """The first examples of each class among annotated candidates (split, id, text, probabilities).

    Raises BadInput if rows do not have five probabilities, or the annotator is sure of no text.
    """
    table = read_parquet(path, SPLIT, ID, TEXT, "probabilities")
    wrong = ~table["probabilities"].map(are_probabilities).astype(bool)
    refuse(table, wrong, f"{path}: {{rows}} {len(CLASSES)} probabilities ({{places}})", verb="do not hold")
    labels = table.pop("probabilities").map(accepted)
    if not labels.notna().any():
        raise BadInput(
            f"'{row['name']}': of no text in {path} is the annotator surer than the thresholds of its "
            f"classes, {', '.join(map(str, THRESHOLDS))}; name another annotator or a larger corpus"
        )
    table = table[labels.notna()].assign(**{LABEL: [CLASSES[int(c)] for c in labels.dropna()]})
    place = table.groupby([SPLIT, LABEL]).cumcount()
    return table[place < table[SPLIT].map(quotas(row, len(CLASSES))) // len(CLASSES)].reset_index(drop=True)


def are_probabilities(cell) -> bool:
    """Whether a cell of a table has a probability for each class."""
    return np.shape(cell) == (len(CLASSES),) and cell.dtype.kind == "f" and bool(np.isfinite(cell).all())
