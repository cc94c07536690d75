"""Vectors of a frozen body: which splits have them, and that a run on them is the run on its examples."""

import json

import pandas as pd
import pytest
import tiny_vit
import torch
import toy
import toy_images
from batches import batch_of
from conftest import ROW, SMALL

from tailprompt.components.resolve import run_of
from tailprompt.inputs.encode import encode
from tailprompt.inputs.features import Features
from tailprompt.inputs.templates import template_named
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.training import repeats
from tailprompt.training.batches import predict
from tailprompt.training.repeats import repeated, vectors_of, with_vectors

ALL, EVALUATED = ("train", "dev", "test"), ("dev", "test")
STILL = {"augment": "none", "flip": False, "mixup": 0.0}
PROBE = {"tuner": "frozen"}
WORDS = {"0": "no", "1": "maybe", "2": "yes"}
OPTIONS = template_named("soft", "en", "mcc")


def image_run(method, **changes):
    return run_of(toy_images.settings(method, **changes))


def text_run(method, **changes):
    return run_of(toy.settings(method, **changes))


def model_of(run):
    torch.manual_seed(0)
    if run.input.reads == "image":
        return compose(tiny_vit.backbone(tiny_vit.vit()), run, words=[[], [], []])
    backbone = backbones.load(ROW | {"random": SMALL | {"hidden_dropout_prob": 0.1}})
    return compose(backbone, run, words=[[100], [200], [300]], texts=[[101, 102]])


CASES = [
    *((name, image_run, {}) for name in toy.IMAGES),
    *((name, image_run, STILL) for name in toy.IMAGES),
    *((name, text_run, {}) for name in toy.TEXTS + toy.FORMATTED),
    *((name, text_run, PROBE) for name in toy.TEXTS),
    *(("linear", image_run, STILL | {key: value}) for key, value in (("flip", True), ("mixup", 0.5))),
    *(("linear", image_run, STILL | {"augment": name}) for name in ("pad_crop", "resized_crop")),
    ("linear", image_run, STILL | {"views": 5}),
    ("cls-tanh", text_run, PROBE | {"body_dropout": True}),
    ("ft-as-released", text_run, PROBE),
]


@pytest.mark.parametrize(
    "method, made, changes", CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_the_vectors_of_a_split_repeat_where_the_body_stays_and_draws_nothing(method, made, changes):
    run = made(method, **changes)
    model, images = model_of(run), run.training.images
    learns = any(value.requires_grad for value in model.body.parameters())
    draws = any(layer.training and layer.p for layer in model.train().body.modules() if is_dropout(layer))
    if images:
        draws |= images.augment.name != "none" or images.flip or images.mixup > 0
    reads_more = model.sentinels or getattr(run.input, "sentinel_loss", False)
    assert repeated(run) == (() if learns else EVALUATED if draws or reads_more else ALL)


def is_dropout(layer):
    return isinstance(layer, torch.nn.Dropout)


@pytest.mark.parametrize(
    "train, method, changes, splits",
    [
        (toy_images.run, "linear-balanced", STILL | {"dropout": 0.2, "select": "f1"}, ALL),
        (toy_images.run, "linear", STILL | {"views": 5, "test_zoom": 1.25}, ALL),
        (toy_images.run, "linear", {"mixup": 0.0}, EVALUATED),
        (toy.run, "cls-relu-ln", PROBE | {"bucket": 2}, ALL),
        (toy.run, "prompt", PROBE, ALL),
        (toy.run, "cls-tanh", PROBE | {"body_dropout": True}, EVALUATED),
    ],
)
def test_a_run_on_vectors_is_the_run_on_its_examples(tmp_path, monkeypatch, train, method, changes, splits):
    seen = {}

    def noted(model, parts, run):
        seen.update(with_vectors(model, parts, run))
        return dict(seen)

    monkeypatch.setattr("tailprompt.train.with_vectors", noted)
    quick = train(tmp_path, method, **changes)
    assert tuple(name for name, part in seen.items() if isinstance(part, Features)) == splits
    monkeypatch.setattr(repeats, "repeated", lambda run: ())
    plain = train(tmp_path, f"{method}@plainly", **changes)
    assert not any(isinstance(part, Features) for part in seen.values())
    curves = [pd.read_csv(folder / "curve.csv").drop(columns="seconds") for folder in (quick, plain)]
    pd.testing.assert_frame_equal(*curves, rtol=1e-4)
    ours, theirs = (toy.scores(folder) for folder in (quick, plain))
    assert list(ours["id"]) == list(theirs["id"])
    classes = [name for name in ours.columns if isinstance(name, int)]
    torch.testing.assert_close(*(torch.tensor(table[classes].to_numpy()) for table in (ours, theirs)))


class Spent(torch.nn.Module):
    def forward(self, batch):
        raise AssertionError("the body was asked again")


def test_once_there_are_vectors_the_body_is_not_asked_again():
    run = text_run("cls-tanh", **PROBE)
    made, splits = model_of(run), {name: encoded(["a", "b b", "c"]) for name in ALL}
    logits = predict(made, splits["dev"])
    seen = with_vectors(made, splits, run)
    made.body = Spent()
    torch.testing.assert_close(predict(made, seen["dev"]), logits)
    assert made.train()(batch_of(seen["train"], torch.tensor([2, 0]))[0]).shape == (2, 3)


def encoded(texts, **columns):
    rows = pd.DataFrame({"id": texts, "label": 0, "text": texts, **columns})
    told = {"input": "formatted", "template": OPTIONS, "words": WORDS} if columns else {"input": "plain"}
    tokenizer = backbones.load(ROW).tokenizer
    return encode(rows, tokenizer, language="en", positions=512, max_length=32, **told)


def test_vectors_keep_the_number_of_options():
    run = text_run("pt-mc", tuner="frozen", template=OPTIONS)
    made = model_of(run)
    examples = encoded(["a", "b"], choices=[["one", "two", "three"], ["one", "two"]])
    logits = predict(made, vectors_of(made, examples, "float32"))
    torch.testing.assert_close(logits, predict(made, examples))
    assert (logits[1] < -9999).tolist() == [False, False, True]


def test_batches_of_vectors_are_those_of_the_examples():
    run, examples = text_run("cls-tanh", **PROBE), encoded(["a b c", "a", "b c"])
    vectors = vectors_of(model_of(run), examples, "float32")
    for field in ("labels", "lengths", "names", "truncated"):
        assert getattr(vectors, field) is getattr(examples, field)


@pytest.mark.parametrize("method, changes", [("cls-tanh", PROBE), ("cls-tanh", {})], ids=["vectors", "body"])
def test_the_time_of_predictions_on_test_is_in_run_json_with_that_of_the_body(
    tmp_path, monkeypatch, method, changes
):
    clock = iter(range(10_000))  # each look at it takes a second
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    folder = toy.run(tmp_path, method, epochs=1, **changes)
    about = json.loads((folder / "run.json").read_text("utf-8"))
    assert about["prediction_seconds"] == (2 if changes else 1)
    assert 0 < about["prediction_cpu_seconds"] < about["cpu_seconds"]
