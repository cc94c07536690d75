"""Made-up results of a tiny long-tailed experiment, in the formats that the stages write."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

CLASSES = ["earn", "acq", "电商", "快递", "tea & co_1", "zinc"]
TRAIN = [400, 150, 60, 25, 9, 3]
TEST = [80, 40, 16, 8, 4, 2]
SKILL = {"cls-tanh": 0.55, "cls-tanh-focal": 0.62, "prompt": 0.85, "prompt-focal": 0.85}  # right on the tail
SETTINGS = {"lr": 1e-3}
GROUPS = {"head": [0], "tail": [1, 2, 3, 4, 5], "many": [0, 1], "medium": [2, 3], "few": [4, 5]}


def labels() -> np.ndarray:
    """Gold labels of the made-up test split."""
    return np.repeat(np.arange(len(TEST)), TEST)


def data(root: Path, dataset: str = "made", **changes) -> Path:
    """Write a data set's Parquet and report; returns the report's path."""
    gold = labels()
    table = pd.concat(
        pd.DataFrame({"id": [f"{split}-{i}" for i in range(len(gold))], "split": split, "label": gold})
        for split in ("dev", "test")
    )
    report = {
        "dataset": dataset,
        "title": dataset.upper(),
        "note": None,
        "language": "en",
        "reported": None,
        "classes": CLASSES,
        "counts": {"train": TRAIN, "dev": TEST, "test": TEST},
        "shared": {"train,test": 0},
        "conflicts": 0,
        "row": {},
        "rows": {"train": sum(TRAIN), "dev": sum(TEST), "test": sum(TEST)},
        "groups": {"dev": GROUPS, "test": GROUPS},
        "imbalance": 133.3,
        "mean_length": 32.04,
        **changes,
    }
    path = root / "data" / f"{dataset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(path.with_suffix(".parquet"), index=False)
    path.write_text(json.dumps(report, ensure_ascii=False), "utf-8")
    return path


def predictions(skill: float, seed: int, *, split: str = "test") -> pd.DataFrame:
    """Predictions right on the head nine times in ten and on the tail with probability `skill`."""
    gold = labels()
    random = np.random.default_rng(seed)
    right = random.random(len(gold)) < np.where(gold == 0, 0.9, skill)
    predicted = np.where(right, gold, random.integers(0, 2, len(gold)))
    ids = [f"{split}-{i}" for i in range(len(gold))]
    return pd.DataFrame({"id": ids, "split": split, "label": gold, "prediction": predicted})


def run(
    root: Path, method: str, seed: int, *, dataset: str = "made", skill: float | None = None, **record
) -> Path:
    """Write a run's folder; returns it."""
    base = method.partition("@")[0]
    skill = SKILL.get(base, 0.6) if skill is None else skill
    folder = root / "runs" / "glee" / "mini" / dataset / method / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    number = abs(hash_of(method)) + seed
    both = [predictions(skill, number, split=split) for split in ("dev", "test")]
    pd.concat(both).to_parquet(folder / "predictions.parquet", index=False)
    random = np.random.default_rng(number)
    vectors = random.normal(size=(len(CLASSES), 32))
    slope = 0.02 if base.startswith("prompt") else 0.25
    vectors *= (np.asarray(TRAIN, float) ** slope)[:, None] / np.linalg.norm(vectors, axis=1, keepdims=True)
    save_file({"class_vectors": vectors.astype("float32")}, folder / "weights.safetensors")
    features(random).to_parquet(folder / "features.parquet", index=False)
    written = {
        "device": "cpu",
        "versions": {"torch": "2"},
        "sources": {"loop.py": "aa"},
        "settings": SETTINGS,
    }
    written |= {"trainable": 7, "best_step": 40} | record
    (folder / "run.json").write_text(json.dumps(written), "utf-8")
    return folder


def features(random: np.random.Generator) -> pd.DataFrame:
    """Vectors of all training and test examples, of which classes lie about centres of their own."""
    centres = random.normal(size=(len(CLASSES), 16))
    parts = []
    for split, counts in (("train", TRAIN), ("test", TEST)):
        gold = np.repeat(np.arange(len(counts)), counts)
        values = (centres[gold] + random.normal(size=(len(gold), 16))).astype("float32")
        ids = [f"{split}-{i}" for i in range(len(gold))]
        parts.append(pd.DataFrame({"id": ids, "split": split, "label": gold, "vector": list(values)}))
    return pd.concat(parts, ignore_index=True)


def hash_of(text: str) -> int:
    """A number from a text, the same in every process."""
    return sum(ord(letter) * 31**place for place, letter in enumerate(text)) % 100_003


def write_corpus(path: Path) -> Path:
    """A corpus of 300 one-line documents of 400 made-up words; returns its path."""
    draw = random.Random(0)
    syllables = [first + vowel for first in "bcdfghklmnprstvw" for vowel in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(400)]
    paragraphs = [" ".join(draw.choices(words, k=20)) for _ in range(300)]
    path.write_text("\n\n".join(paragraphs), "utf-8")
    return path
