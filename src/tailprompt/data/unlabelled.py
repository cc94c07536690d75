"""Self-supervised data sets from plain text, with which a prompt is pre-trained (PPT, section 3.2).

A task makes an example of a unit of text, or none where it cannot; `units` reads them from a corpus and says
which become examples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data.checks import refuse
from tailprompt.data.quotas import EXAMPLES, quotas
from tailprompt.data.readers import CHOICES, ID, LABEL, LETTERS, PAIR, SPLIT, TEXT
from tailprompt.data.sentiment import ANNOTATORS, THRESHOLDS, accepted
from tailprompt.data.units import LEAST_WORDS, Unit, collected, shortened
from tailprompt.errors import BadInput, named
from tailprompt.files import read_parquet

SINGLE, SINGLE_LENGTH, CLASSES = 11, 256, "12345"  # characters at least, words at most, stars
CANDIDATES = 4
PAIR_LENGTH = 512

# words of the query, words of an option, wrong options from the query's own document; as released, in tokens
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
    """Pairs of units (PPT, section 3.2.1): 2 next to each other, 1 of one document, 0 of two; a third each.

    Pairs of which one text is over a hundred times as long as the other are left out, as released.
    """
    cut = max(1, round(PAIR_LENGTH * row.get("lengths", 1.0)))

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
    """Six options (PPT, section 3.2.2): a unit next to the query, one of its document, four of others."""
    share = row.get("lengths", 1.0)
    return collected(paths, row, lambda unit: options(unit, 6, CHOICE, share), units=5, least=10)


def load_unified_choice(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Two to sixteen options (PPT, section 3.3): the more, the shorter they are."""
    share = row.get("lengths", 1.0)

    def example(unit: Unit) -> dict | None:
        count = unit.chance.randint(min(UNIFIED), max(UNIFIED))
        return options(unit, count, UNIFIED[count], share)

    return collected(paths, row, example, units=6, least=10)


def options(unit: Unit, count: int, lengths: tuple[int, int, int], share: float) -> dict | None:
    """The query and its `count` options in random order; none where two would read the same.

    Nothing but the right option may be a unit next to the query, or the query itself.
    """
    query, option, same = lengths
    query, option = max(1, round(query * share)), max(1, round(option * share))
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
    """Single units with the sentiment, 1 to 5, that an annotator is sure of (PPT, section 3.2.3).

    As many of each class as there are, up to a fifth: the released code takes them as they come. What a
    model has annotated (stage annotate) is read from its file.
    """
    if row.get("annotator") == "model":
        return annotated(paths["all"], row)
    annotate, cut = named(ANNOTATORS, row.get("annotator", "vader"), "annotator")(row), single_length(row)

    def example(unit: Unit) -> dict | None:
        text = shortened(unit.text, cut)
        label = accepted(annotate(text))
        return None if label is None else {TEXT: text, LABEL: str(label + 1)}

    return collected(paths, row, example, units=1, least=SINGLE, classes=CLASSES)


def single_length(row: dict) -> int:
    """Words of a single unit."""
    return max(1, round(SINGLE_LENGTH * row.get("lengths", 1.0)))


def candidates(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """Units for a model to annotate, `CANDIDATES` times as many as examples are asked for."""
    cut, many = single_length(row), {**row, "examples": CANDIDATES * row.get("examples", EXAMPLES)}
    return collected(
        paths, many, lambda unit: {TEXT: shortened(unit.text, cut), LABEL: None}, units=1, least=SINGLE
    )


def annotated(path: Path, row: dict) -> pd.DataFrame:
    """The examples among annotated candidates (split, id, text, probabilities), the first of each class.

    Raises BadInput where rows do not have five probabilities, or the annotator was sure of none.
    """
    table = read_parquet(path, SPLIT, ID, TEXT, "probabilities")
    wrong = ~table["probabilities"].map(are_probabilities).astype(bool)
    refuse(table, wrong, f"{path}: {{n}} rows do not hold {len(CLASSES)} probabilities ({{places}})")
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
    """Whether a cell of a table is a probability of each class."""
    return np.shape(cell) == (len(CLASSES),) and cell.dtype.kind == "f" and bool(np.isfinite(cell).all())
