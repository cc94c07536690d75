"""Scores of ours beside those of the libraries that people use: the same split, settings and seeds.

    PYTHONPATH=src python -m benchmarks scores FOLDER

FOLDER: a sentence encoder of the form of sentence-transformers, as all-MiniLM-L6-v2. Ours are the runs of
benchmarks/scores.yaml, by Snakemake. Beside them are scikit-learn's TF-IDF and logistic regression, setfit's
Trainer, and peft's LoRA in transformers' Trainer, on the same rows. scikit-learn scores all predictions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_ind
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline, make_union

from tailprompt.data import table as data
from tailprompt.files import read_json
from tailprompt.machine.cpus import CPUS
from tailprompt.plan import blocks, config
from tailprompt.plan.either import run_folder
from tailprompt.plan.places import report_file
from tailprompt.plan.points import Point

SCALE = "benchmarks/scores.yaml"
Splits = dict[str, pd.DataFrame]


def tfidf(splits: Splits, classes: list[str], told: dict, folder: str, seed: int) -> np.ndarray:
    """scikit-learn's pipeline; dev chooses C among those of our row."""
    train, dev, test = (splits[split] for split in ("train", "dev", "test"))
    made = []
    for C in told["C"]:
        words = TfidfVectorizer(
            ngram_range=(1, told["word_terms"]), max_features=told["terms"], sublinear_tf=True
        )
        letters = TfidfVectorizer(
            ngram_range=(2, told["character_terms"]),
            analyzer="char_wb",
            max_features=told["terms"],
            sublinear_tf=True,
        )
        head = LogisticRegression(C=C, class_weight="balanced", max_iter=1000)
        made.append(make_pipeline(make_union(words, letters), head).fit(train.text, train.label))
    best = max(made, key=lambda one: macro(dev.label, one.predict(dev.text)))
    return best.predict(test.text)


def setfit(splits: Splits, classes: list[str], told: dict, folder: str, seed: int) -> np.ndarray:
    """setfit's Trainer as it comes, but for the number of steps and the tokens that are read."""
    from datasets import Dataset  # ty: ignore[import-not-found]
    from setfit import SetFitModel, Trainer, TrainingArguments  # ty: ignore[import-not-found]

    torch.manual_seed(seed)
    model = SetFitModel.from_pretrained(folder)
    model.model_body.max_seq_length = told["max_length"]
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            max_steps=told["steps"],
            seed=seed,
            save_strategy="no",
            report_to="none",
            show_progress_bar=False,
        )
        rows = Dataset.from_pandas(splits["train"][["text", "label"]], preserve_index=False)
        Trainer(model=model, args=arguments, train_dataset=rows).train()
    return np.asarray(model.predict(splits["test"].text.tolist(), show_progress_bar=False))


def lora(splits: Splits, classes: list[str], told: dict, folder: str, seed: int) -> np.ndarray:
    """peft's LoRA with its classifier, in transformers' Trainer."""
    from peft import LoraConfig, get_peft_model
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(classes))
    made = LoraConfig(
        task_type="SEQ_CLS", r=told["rank"], lora_alpha=told["alpha"], target_modules=["query", "value"]
    )
    rows = {split: encoded(part, tokenizer, told["max_length"]) for split, part in splits.items()}
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            out,
            seed=seed,
            use_cpu=True,
            num_train_epochs=told["epochs"],
            per_device_train_batch_size=told["batch"],
            per_device_eval_batch_size=64,
            learning_rate=told["lr"],
            warmup_steps=round(told["warmup"] * -(-len(rows["train"]) // told["batch"])),
            weight_decay=told["weight_decay"],
            adam_epsilon=told["adam_eps"],
            max_grad_norm=told["clip"],
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        collate = DataCollatorWithPadding(tokenizer)
        trainer = Trainer(
            get_peft_model(model, made), arguments, train_dataset=rows["train"], data_collator=collate
        )
        trainer.train()
        return trainer.predict(rows["test"]).predictions.argmax(-1)


def encoded(part: pd.DataFrame, tokenizer, longest: int) -> list[dict]:
    """Rows as Trainer takes them."""
    made = tokenizer(part.text.tolist(), truncation=True, max_length=longest)
    return [
        {"labels": label, **{key: made[key][row] for key in made}} for row, label in enumerate(part.label)
    ]


LIBRARIES: dict[str, tuple[str, Callable]] = {
    "tfidf": ("scikit-learn", tfidf),
    "setfit": ("setfit", setfit),
    "lora": ("peft, Trainer", lora),
}


def macro(labels, predicted, classes=None) -> float:
    """Macro F1 in points, of some classes or of those that occur in labels."""
    among = sorted(set(labels)) if classes is None else classes
    return 100 * f1_score(labels, predicted, labels=among, average="macro", zero_division=0)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scores", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="of the sentence encoder")
    options = parser.parse_args(arguments)
    if not (options.folder / "config.json").is_file():
        parser.error(f"{options.folder} is no folder of a model: it has no config.json")
    folder = str(options.folder.resolve())
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as row:
        row.write(f"backbones: {{encoder: {{family: bert, path: {json.dumps(folder)}}}}}\n")
        row.flush()
        files = [SCALE, row.name]
        command = [sys.executable, "-m", "snakemake", "--cores", str(CPUS), "--quiet", "all", "--configfile"]
        subprocess.run([*command, *files, "--", "runs"], check=True)
        scale = config.load(files)
    print(f"\n{written(pd.DataFrame(compared(scale, folder)))}")


def compared(scale: dict, folder: str) -> list[dict]:
    """The scores of each run, ours and of the library beside it, one thread each, as many at once as CPUs."""
    results, points = Path("results", scale["scale"]), list(blocks.all_points(scale))
    start = get_context("spawn")
    with ProcessPoolExecutor(CPUS, start, initializer=torch.set_num_threads, initargs=(1,)) as workers:
        found = workers.map(beside, points, repeat(results), repeat(folder))
        return [row for rows in found for row in rows]


def beside(point: Point, results: Path, folder: str) -> list[dict]:
    """The scores of a run of ours, and of its library on the same rows; none where that is not installed."""
    name, library = LIBRARIES[point.method]
    table, classes = data.read(results / "data" / f"{point.dataset}.parquet")
    tail = read_json(report_file(results, point.dataset))["groups"]["test"]["tail"]
    splits = {split: table[table.split == split] for split in ("train", "dev", "test")}
    ours = pd.read_parquet(run_folder(results, point) / "predictions.parquet")
    ours = ours[ours.split == "test"].set_index("id").prediction.loc[splits["test"].id]
    told = read_json(run_folder(results, point) / "run.json")["settings"]
    begun = time.process_time()
    try:
        theirs = library(splits, classes, told, folder, point.seed)
    except ImportError as error:
        print(f"{name}: {error}", flush=True)
        return []
    print(f"{name}, seed {point.seed}: {time.process_time() - begun:.0f} s of a processor", flush=True)
    labels, rows = splits["test"].label.to_numpy(), []
    for system, predicted in (("ours", ours), (name, theirs)):
        scores = {"F1": macro(labels, predicted), "F1, tail": macro(labels, predicted, tail)}
        rows.append({"method": point.method, "seed": point.seed, "system": system, **scores})
    return rows


def written(found: pd.DataFrame) -> str:
    """The table: mean and SD over seeds, and ours less the library's with its 95 % interval."""
    lines = ["| method | library | F1: ours | theirs | difference | F1, tail: ours | theirs | difference |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for method, part in found.groupby("method", sort=False):
        name, _ = LIBRARIES[method]
        cells = [method, name]
        for score in ("F1", "F1, tail"):
            ours, theirs = (part[part.system == system][score].to_numpy() for system in ("ours", name))
            cells += [f"{each.mean():.1f} ± {each.std(ddof=1):.1f}" for each in (ours, theirs)]
            cells.append(difference(ours, theirs))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Ours less theirs, with Welch's interval; without one where seeds change nothing."""
    between = f"{ours.mean() - theirs.mean():+.1f}"
    if not (ours.std() or theirs.std()):
        return between
    low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    return f"{between} ({low:+.1f} to {high:+.1f})"
