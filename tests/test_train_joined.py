"""Training on joined sets (P-Tuning v2, multi-task), and what a run takes of it."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
import toy
from batches import batch_of
from conftest import ROW
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

from tailprompt import export, predict
from tailprompt.components.resolve import run_of
from tailprompt.data import joined
from tailprompt.data import table as data
from tailprompt.data.prepared import Prepared
from tailprompt.errors import BadInput
from tailprompt.inputs.examples import examples_of
from tailprompt.model import backbones
from tailprompt.plan.points import Point
from tailprompt.tasks.registry import TASKS
from tailprompt.tasks.registry import told as task_of
from tailprompt.train import begun_model, train
from tailprompt.training.batches import of_outputs, sampled
from tailprompt.training.samplers import shuffled
from tailprompt.training.state import Progress

NAMES, TOWNS, FIRMS = ["Ann", "Bob", "Eve"], ["Rome", "Lyon"], ["Acme", "Initech"]
PREFIX = {"input": "plain", "head": "predictor", "tuner": "prefix", "length": 3, "prefix_dropout": 0.1}
TOLD = {**PREFIX, "head.dropout": 0.1, "lr": 0.03, "batch": 8, "epochs": 3, "max_length": 16}
WINDOWS = {**TOLD, "input": "windows", "max_length": 24, "stride": 4, "select": "f1"}
STARTS = {"dataset": "both", "method": "joined", "head": "fresh"}


def tagged(kinds, *, n, seed):
    """Sentences of a few entities, of which the longest need several windows of 16 tokens."""
    draw, rows = np.random.default_rng(seed), []
    for i in range(n):
        words, tags = [], []
        for _ in range(int(draw.integers(1, 7))):
            kind = int(draw.integers(len(kinds)))
            words += [str(draw.choice(kinds[kind])), f"again{i}"]
            tags += [2 * kind + 1, 0]
        split = ("train", "train", "dev", "test")[i % 4]
        rows.append({"id": f"{split}-{i}", "split": split, "words": words, "tags": tags})
    return pd.DataFrame(rows)


def asking(*, n, seed, answerable):
    """Questions whose answer is the name in a passage, or none."""
    draw, rows = np.random.default_rng(seed), []
    for i in range(n):
        name, there = str(draw.choice(NAMES)), bool(answerable or draw.integers(2))
        split = ("train", "train", "dev", "test")[i % 4]
        passage = f"it was {name if there else 'nobody'} who left number {seed} {i} of them all"
        found = {"answers": [name] if there else [], "starts": [7] if there else []}
        rows.append({"id": f"{split}-{i}", "split": split, "label": int(not there), "text": "who ?"})
        rows[-1] |= {"pair": passage, **found}
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root with two sets of tags and two of questions, each joined in `both` or `asked`, or alone."""
    root = tmp_path_factory.mktemp("joined")
    parts = {
        "one": (tagged([NAMES, TOWNS], n=40, seed=1), ["PER", "LOC"]),
        "two": (tagged([FIRMS], n=22, seed=2), ["ORG"]),
        "old": (asking(n=24, seed=3, answerable=True), ["answerable"]),
        "new": (asking(n=24, seed=4, answerable=False), ["answerable", "unanswerable"]),
    }
    for name, part in parts.items():
        data.write(*part, root / f"data/{name}.parquet", sources={})
    for name, of in {
        "both": ["one", "two"],
        "alone": ["one"],
        "asked": ["old", "new"],
        "sole": ["new"],
    }.items():
        table, classes, _ = joined.load([root / f"data/{part}.parquet" for part in of])
        data.write(table, classes, root / f"data/{name}.parquet", sources={})
    return root


def trained(root, dataset, method="joined", *, start=None, told=TOLD, device="cpu", capture=True, **changes):
    """Train on a data set below `root`; returns the run's folder."""
    settings = toy.completed(
        {**toy.TRAINING, **told, "start": STARTS if start else None, **changes}, reads="text"
    )
    point = Point("mine", "tiny", dataset, method, 1)
    train(root, point, toy.asked_of(settings, ROW), torch.device(device), start, capture=capture)
    return root / "runs" / point.path


def tensors(folder):
    """The weights of a run, with those of the only head under the names of a single set's."""
    read = load_file(folder / "weights.safetensors")
    return {name.replace("heads.0.", ""): value for name, value in read.items()}


def opened(root, dataset, told=TOLD):
    """A prepared set, its model, and its training examples."""
    run = run_of(toy.completed({**toy.TRAINING, **told}, reads="text"))
    table, classes = data.read(root / f"data/{dataset}.parquet")
    prepared = Prepared(root / f"data/{dataset}.parquet", table, classes, {}, {})
    backbone = backbones.load(ROW)
    task = TASKS[task_of(table)]
    model, _ = begun_model(backbone, run, prepared, None, task, task.outputs(classes))
    given = {"backbone": backbone, "run": run, "words": {}, "pixels": None, "device": torch.device("cpu")}
    return prepared, model, examples_of(prepared.parts["train"], training=True, **given)


@pytest.mark.parametrize("single, one, told", [("one", "alone", TOLD), ("new", "sole", WINDOWS)])
def test_a_joined_set_of_one_set_is_training_on_it_alone_to_the_bit(root, single, one, told):
    extra = {"unanswerable": True} if told is WINDOWS else {}
    first, second = (trained(root, each, "same", told=told, **extra) for each in (single, one))
    kept, same = tensors(first), tensors(second)
    assert kept.keys() == same.keys() and all(torch.equal(kept[name], same[name]) for name in kept)
    curves = [pd.read_csv(folder / "curve.csv").drop(columns="seconds") for folder in (first, second)]
    pd.testing.assert_frame_equal(*curves, check_exact=True)
    made = [pd.read_parquet(folder / "predictions.parquet").drop(columns="id") for folder in (first, second)]
    assert made[0].map(str).equals(made[1].map(str))


@pytest.mark.parametrize("dataset, told", [("both", TOLD), ("asked", {**WINDOWS, "unanswerable": True})])
def test_each_batch_is_of_one_set_and_other_heads_get_no_gradient(root, dataset, told):
    prepared, model, examples = opened(root, dataset, told)
    batches, met = sampled(examples, shuffled, batch=8, bucket=1, seed=1), []
    loss = of_outputs(lambda logits, *_: logits.float().square().mean((1, 2)))
    for step in range(batches.per_epoch):
        (part,) = batches.parts(step, 8)
        assert len({name.partition("/")[0] for name in batches.names(step)}) == 1
        batch = part.made(*part.staged)
        assert prepared.sets[batch[0]["set"]] == batches.names(step)[0].partition("/")[0]
        model.zero_grad(set_to_none=True)
        loss(model, batch, torch.zeros(())).sum().backward()
        graded = [head.predictor.weight.grad is not None for head in model.head.heads]
        assert graded == [number == batch[0]["set"] for number in range(2)]
        assert all(value.grad.abs().sum() > 0 for value in model.body.prefix.parameters())
        met += batches.names(step)
    assert sorted(met) == sorted(examples.names)


def test_the_loss_of_a_set_is_that_of_its_own_tags(root):
    _, model, examples = opened(root, "both")
    model.eval()
    (rows,) = (examples.sets == 1).nonzero().T
    inputs, labels = batch_of(examples, rows)
    with torch.no_grad():
        all_tags = model({**inputs, "set": 1})
        head = model.head.heads[1]
        own = head.logits(head.features(model.read(inputs).states.float()))
    there, first = labels >= 0, 2 * 2  # the tags of the set before
    assert (labels[there] == 0).any() and labels.max() > first
    alone = torch.where(labels > 0, labels - first, labels)
    pairs = [(all_tags[there], labels[there]), (own[there], alone[there])]
    assert torch.equal(*(cross_entropy(*pair, reduction="none") for pair in pairs))
    assert torch.isin(all_tags[there].argmax(-1), torch.tensor(model.head.columns[1])).all()


def test_a_step_is_chosen_by_the_mean_of_the_scores_of_the_sets(root):
    folder = trained(root, "both")
    about = json.loads((folder / "run.json").read_text("utf-8"))
    assert about["data"]["sets"] == ["one", "two"]
    made = pd.read_parquet(folder / "predictions.parquet").query("split == 'dev'")
    f1 = []
    for _, rows in made.groupby(made["id"].str.partition("/")[0]):
        counts = TASKS["tagging"].added(rows, {"classes": about["classes"]})
        f1.append(TASKS["tagging"].score("f1", {name: each.sum(0) for name, each in counts.items()}))
    assert about["dev"]["f1"] == pytest.approx(np.mean(f1)) and len(f1) == 2 and f1[0] != f1[1]
    curve = pd.read_csv(folder / "curve.csv").set_index("step")["f1"]
    assert curve[about["best_step"]] == curve.max() == pytest.approx(about["dev"]["f1"])


def test_a_start_gives_its_prefix_and_not_its_head(root, monkeypatch):
    start = trained(root, "both")
    monkeypatch.setattr("tailprompt.train.fit_model", lambda *_, **__: Progress())
    begun, fresh = (trained(root, "two", name, start=at) for name, at in (("mpt", start), ("new", None)))
    taken, joint, plain = (tensors(folder) for folder in (begun, start, fresh))
    prefix = [name for name in taken if name.startswith("body.prefix.")]
    assert len(prefix) == 2 and all(torch.equal(taken[name], joint[name]) for name in prefix)
    heads = [name for name in taken if name.startswith("head.")]
    assert heads and all(torch.equal(taken[name], plain[name]) for name in heads)  # drawn by its own seed
    assert all(taken[name].shape[0] == 3 for name in heads)  # O, B and I of its one type


def test_a_killed_run_on_joined_sets_goes_on_to_the_same_weights(root, monkeypatch):
    expected = tensors(trained(root, "both", "whole"))
    with monkeypatch.context() as patch:
        toy.interrupted(patch, at=8)
        with pytest.raises(KeyboardInterrupt):
            trained(root, "both", "killed")
    begun = toy.interrupted(monkeypatch, at=0)
    again = tensors(trained(root, "both", "killed"))
    assert len(begun) < 3 * sampled(opened(root, "both")[2], shuffled, batch=8, bucket=1, seed=1).per_epoch
    assert all(torch.equal(expected[name], again[name]) for name in expected)


def test_rows_of_no_set_are_not_predicted_and_the_prefix_is_exported(root, tmp_path):
    run = trained(root, "both", "shifted", positions="shifted")
    file = tmp_path / "new.csv"
    pd.DataFrame({"text": ["Ann left"]}).to_csv(file, index=False)
    with pytest.raises(BadInput, match=r"is on joined sets \(one, two\), each with a head"):
        predict.predict_file(run, file, tmp_path / "out.csv", encoding="utf-8", device="cpu")
    export.export(run, tmp_path / "adapter")
    assert (tmp_path / "adapter/adapter_model.safetensors").is_file()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("dataset, told", [("both", TOLD), ("asked", {**WINDOWS, "unanswerable": True})])
def test_steps_on_joined_sets_that_are_captured_are_those_that_are_launched(root, dataset, told):
    given = {"told": told, "device": "cuda", "epochs": 8, "patience": 8}
    runs = [trained(root, dataset, f"on-a-card-{way}", capture=way, **given) for way in (True, False)]
    captured, launched = map(tensors, runs)
    assert all(torch.equal(captured[name], launched[name]) for name in launched)
