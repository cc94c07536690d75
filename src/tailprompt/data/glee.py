"""Loaders of GLEE's long-tailed data sets in their raw form, split as the authors split them.

Each loader draws from Python's own generator with seed 1234, which gives the rows in the authors' order.
"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd

from tailprompt.data.columns import LABEL, PAIR, SPLIT, TEXT, are_texts
from tailprompt.data.contents import PLACE, decoded
from tailprompt.data.readers import json_objects
from tailprompt.data.separated import form_of, rows_of
from tailprompt.errors import BadInput, counted, few

SEED = 1234

# CMID spells six of its intents in two ways
MERGED = {
    "药物功效": "药物作用",
    "药物药物禁忌": "药物禁忌",
    "病症病症禁忌": "病症禁忌",
    "药物设备用法": "其他设备用法",
    "病症诱因": "病症病因",
    "治疗方案手术时间": "治疗方案治疗时间",
}


def load_cmid(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """CMID.json (a JSON list or JSON Lines), shuffled: the first fifth is test, the next tenth dev."""
    objects = json_objects(paths["raw"], keys={"originalText", "label_4class", "label_36class"})
    wrong = [n for n, o in objects if not (is_intent(o["label_4class"]) and is_intent(o["label_36class"]))]
    if wrong:
        raise BadInput(
            f"{paths['raw']}: entries {few(wrong)} have no list of texts for label_4class and label_36class"
        )
    examples = [(o["originalText"], intent(o), place(paths["raw"], n)) for n, o in objects]
    random.Random(SEED).shuffle(examples)
    test, dev = int(0.2 * len(examples)), int(0.3 * len(examples))
    return framed({"train": examples[dev:], "dev": examples[test:dev], "test": examples[:test]}, row)


def is_intent(labels) -> bool:
    """Whether labels are a list of texts, with at least the first, which counts."""
    return are_texts(labels) and len(labels) > 0


def intent(example: dict) -> str:
    """CMID's label: primary and secondary intent joined, without the quotes in the strings."""
    name = example["label_4class"][0].strip("'") + example["label_36class"][0].strip("'")
    return MERGED.get(name, name)


def load_clue(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """CLUE's IFLYTEK: its labelled dev set is the test set."""

    def examples(path):
        objects = json_objects(path, keys={"sentence", "label_des"})
        return [(o["sentence"], o["label_des"], place(path, n)) for n, o in objects]

    return held_out(examples(paths["train"]), examples(paths["dev"]), row)


def load_ctc(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """CHIP-CTC: lines of id, label, text; its validation file is the test set."""

    def examples(path):
        lines = fields_of(path, "utf-8-sig", 3)
        return [(text, label, place(path, n)) for n, (_, label, text) in lines]

    return held_out(examples(paths["train"]), examples(paths["validation"]), row)


def load_msra(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """The third SIGHAN bakeoff's MSRA corpus: one example for each entity in a sentence."""
    return held_out(mentions(paths["train"]), mentions(paths["test"]), row)


def mentions(path: Path) -> list[tuple]:
    """(sentence, entity, type, place) of every entity in a bakeoff file, in order."""
    try:
        root = ElementTree.fromstring(decoded(path, "gb18030"))
    except ElementTree.ParseError as error:
        raise BadInput(f"{path} is not well-formed XML ({error})") from None
    found = []
    for number, sentence in enumerate(root.iter("SENTENCE"), 1):
        # a <w> is a word, or holds one element that is an entity
        words = [word[0] if len(word) else word for word in sentence.iter("w")]
        text = "".join(word.text or "" for word in words)
        entities = [word for word in words if word.tag != "w"]
        found += [(text, e.text, e.get("TYPE"), f"{path.name}:sentence {number}") for e in entities]
    return found


def load_r52(paths: dict[str, Path], row: dict) -> pd.DataFrame:
    """R52: a file with one document a line, and one with its number, split and label; the order is kept."""
    texts = decoded(paths["corpus"], "latin-1").rstrip("\n").split("\n")
    labels = r52_labels(paths["labels"])
    if len(texts) != len(labels):
        raise BadInput(
            f"{paths['corpus']} has {counted(len(texts), 'line')} but {paths['labels']} has {len(labels)}"
        )
    examples = [
        (text.strip(), label, place(paths["corpus"], n), split)
        for n, (text, (split, label)) in enumerate(zip(texts, labels, strict=True), 1)
    ]
    return framed({s: [e[:3] for e in examples if e[3] == s] for s in ("train", "dev", "test")}, row)


def r52_labels(path: Path) -> list[tuple[str, str]]:
    """(split, label) of each document; a training document goes to dev with probability 0.1."""
    draw = random.Random(SEED)
    found = []
    for _, (_, split, label) in fields_of(path, "latin-1", 3):
        moved = split == "train" and draw.random() < 0.1
        found.append(("dev" if moved else split, label))
    return found


def fields_of(path: Path, encoding: str, width: int) -> list[tuple[int, list[str]]]:
    """Lines of a tab-separated file without a header, each of `width` fields."""
    rows = rows_of(decoded(path, encoding), path, form_of("\t", quotes=True))
    lines = [(number, fields) for number, fields in rows if fields]
    ragged = [number for number, fields in lines if len(fields) != width]
    if ragged:
        raise BadInput(
            f"{path}: {counted(len(ragged), 'line', 'do not have')} {width} fields (lines {few(ragged)})"
        )
    return lines


def held_out(train: list[tuple], test: list[tuple], row: dict) -> pd.DataFrame:
    """GLEE, section 3.1: a tenth of the shuffled training examples is the dev set."""
    random.Random(SEED).shuffle(train)
    dev = int(0.1 * len(train))
    return framed({"train": train[dev:], "dev": train[:dev], "test": test}, row)


def framed(splits: dict[str, list[tuple]], row: dict) -> pd.DataFrame:
    """One table of each split's examples, which are (text, label, place) or (text, pair, label, place).

    With `quotes: false` in the data set's row, texts are those that GLEE's code reads in the TSVs it wrote.
    """
    rows = [(split, *example) for split, examples in splits.items() for example in examples]
    paired = bool(rows) and len(rows[0]) == 5
    table = pd.DataFrame(rows, columns=[SPLIT, TEXT, *([PAIR] if paired else []), LABEL, PLACE])
    if row.get("quotes", True):
        return table
    return table.assign(**{column: table[column].map(quoted) for column in (TEXT, PAIR) if column in table})


def quoted(text: str) -> str:
    """A text as a TSV's writer encloses it where it has a quotation mark, a tab or a line end."""
    return '"' + text.replace('"', '""') + '"' if {*text} & {*'"\t\r\n'} else text


def place(path: Path, number: int) -> str:
    """Where an example is, for messages."""
    return f"{path.name}:{number}"
