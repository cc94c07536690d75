"""What a first round gives each method: how much of a text it reads, and steps by what each costs.

Every run gets about the same seconds by the rule of `plan.hours`. A frozen body whose vectors are computed
once leaves steps of a head alone, which cost next to nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from tailprompt.data.prepared import class_words
from tailprompt.plan import blocks
from tailprompt.plan.hours import THREAD, computing, of_an_epoch
from tailprompt.plan.points import Point
from tailprompt.plan.settings import resolved

SECONDS = 70.0  # of a run, by the rule: 200 steps of texts of 48 tokens in bert-mini
OF_IMAGES = 50.0  # the same of images, which are also decoded and augmented
FEWEST, MOST = 200, 4000  # steps of a run; a head on R52's frozen vectors still improves at 2000
BATCH = 8  # small, so that few rows give many steps
EVALUATIONS = 4  # of a run, which cost as much as many steps
COVERED = 0.9  # share of the texts that are read whole, where the seconds allow
LENGTHS = range(16, 129, 8)  # tokens that a text may be cut to


def lengths(texts: Sequence[str], backbone: Mapping, template: str) -> Int[np.ndarray, " texts"]:
    """The tokens of texts in a template, by the tokenizer of a backbone that has a folder."""
    tokenizer = tokenizer_of(backbone)
    words = re.sub(r"\{\w+\}", " ", template)
    own = 1 + len(tokenizer.encode(words, add_special_tokens=False).ids)  # 1: of the mask
    return np.array([own + len(made.ids) for made in tokenizer.encode_batch(list(texts))])


def unknown(texts: Sequence[str], backbone: Mapping) -> float:
    """The share of the tokens of texts that are not in the vocabulary, as emoji often are not."""
    tokenizer, of = tokenizer_of(backbone), Counter()
    for made in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        of.update(made.ids)
    return of[tokenizer.token_to_id("[UNK]")] / max(1, of.total())


def unspoken(names: Sequence[str], backbone: Mapping) -> list[str]:
    """The classes whose names a head that reads words cannot score: of unknown tokens, or of another's."""
    tokenizer, words = tokenizer_of(backbone), class_words(list(names), None).values()
    made = [each.ids for each in tokenizer.encode_batch(list(words), add_special_tokens=False)]
    nothing, keys = {tokenizer.token_to_id("[UNK]")}, [tuple(sorted(ids)) for ids in made]
    return [name for name, ids in zip(names, keys, strict=True) if {*ids} <= nothing or keys.count(ids) > 1]


def tokenizer_of(backbone: Mapping):
    """The tokenizer in the folder of a backbone; no text is cut."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(backbone["path"], "tokenizer.json")))
    tokenizer.no_truncation()
    return tokenizer


def longest(tokens: Int[np.ndarray, " texts"], parameters: float) -> int:
    """The tokens that texts are cut to: most fit, or FEWEST steps of a body that learns last SECONDS."""
    wanted = float(np.quantile(tokens, COVERED))
    enough = next((length for length in LENGTHS if length >= wanted), LENGTHS[-1])
    fitting = [
        length
        for length in LENGTHS
        if seconds(3, parameters, np.minimum(tokens, length).mean()) * FEWEST <= SECONDS
    ]
    return min(enough, max(fitting, default=LENGTHS[0]))


def seconds(passes: int, parameters: float, tokens: float) -> float:
    """Of a step, by the rule. passes: of each of its rows."""
    return computing(BATCH * passes, parameters, tokens, THREAD)


def steps(passes: int, parameters: float, tokens: float, allowed: float = SECONDS) -> int:
    """How many steps a run may take, in tens: as many as last the seconds allowed."""
    each = seconds(passes, parameters, tokens)
    return min(MOST, max(FEWEST, int(allowed / each) // 10 * 10)) if each else MOST


def schedule(number: int, rows: int) -> dict[str, str]:
    """The settings of so many steps on so many training rows."""
    epochs = number / -(-rows // BATCH)
    return {
        "epochs": plainly(epochs, 4),
        "patience": plainly(epochs, 4),
        "warmup": plainly(epochs / 10, 2),
        "evaluate_every": str(number // EVALUATIONS),
    }


def plainly(value: float, digits: int) -> str:
    """A number of so many digits without an exponent, which YAML reads as a text (4e+02)."""
    return f"{float(f'{value:.{digits}g}'):.10g}"


def cheaper(
    scale: dict, parameters: float, tokens: float, rows: int, allowed: float
) -> dict[str, dict[str, str]]:
    """The settings of the methods whose rows take fewer passes than those of a body that learns."""
    found = {}
    for method, point in firsts(scale).items():
        run = resolved(scale, point).run
        if run.training is not None and (passes := of_an_epoch(run)) < 3:
            found[method] = schedule(steps(passes, parameters, tokens, allowed), rows)
    return found


def firsts(scale: dict) -> dict[str, Point]:
    """The first point of each method."""
    found: dict[str, Point] = {}
    for point in blocks.all_points(scale):
        found.setdefault(point.method, point)
    return found
