"""One run: what it writes, that it can be repeated and resumed, and what each setting does to it."""

from __future__ import annotations

import json
from importlib.metadata import version

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
import toy
from conftest import ROW
from safetensors.torch import load_file

from tailprompt import train as training
from tailprompt.components.resolve import run_of
from tailprompt.data import rows
from tailprompt.data import table as data
from tailprompt.data.prepared import class_words
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.inputs import encode
from tailprompt.model import backbones
from tailprompt.model.compose import Model
from tailprompt.predict import predict_file
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.tasks.task import Given
from tailprompt.train import point_at
from tailprompt.training.selection import choose_tau, scorer_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with one run of CLS-tuning that kept its body."""
    root = tmp_path_factory.mktemp("scale")
    return toy.run(root, "cls-tanh", keep=True, features=["law", "music"])


def about(folder):
    return json.loads((folder / "run.json").read_text("utf-8"))


def test_a_run_writes_its_five_files_and_leaves_no_other(made):
    assert {file.name for file in made.iterdir()} == toy.WRITTEN


def test_run_json_says_what_the_run_was_made_of(made):
    run, path = about(made), made.parents[5] / "data/toy.parquet"
    assert run["point"] == {
        "protocol": "mine",
        "backbone": "tiny",
        "dataset": "toy",
        "method": "cls-tanh",
        "seed": 1,
    }
    assert run["settings"] == toy.settings("cls-tanh", keep=True)
    assert run["extras"] == {"features": ["law", "music"]}
    assert run["data"]["sha256"] == sha256(path) and run["data"]["rows_sha256"] == rows.of_file(path)
    assert run["data"]["rows"] == {
        "train": 24,
        "dev": 12,
        "test": 17,
    }
    assert run["versions"]["torch"] == version("torch") and run["versions"]["tailprompt"]
    assert run["sources"]["tailprompt.train"] and "CPU" in run["device"]
    assert run["computed_in"] == "float32"
    assert run["steps"] == 4 and run["best_step"] in (2, 4) and 0 < run["trainable"] == run["total"]


def test_predictions_are_the_argmax_of_the_scores_for_dev_and_test_in_order(made):
    kept, rows = toy.scores(made), toy.table()
    rows = rows[rows.split != "train"].reset_index(drop=True)
    assert all(kept[key].tolist() == rows[key].tolist() for key in ("id", "split", "label"))
    assert (kept.prediction == kept[[0, 1, 2]].to_numpy().argmax(1)).all()
    dev = kept[kept.split == "dev"]
    assert about(made)["dev"] == scorer_of(CLASSIFICATION, about(made))(
        torch.tensor(dev[[0, 1, 2]].to_numpy()), Given(dev.label.to_numpy(), ())
    )


def test_the_curve_has_a_line_an_evaluation_and_its_best_is_the_runs(made):
    curve = pd.read_csv(made / "curve.csv")
    assert curve.step.tolist() == [2, 4]
    assert about(made)["best_step"] == curve.step[curve.f1.idxmax()]
    assert about(made)["dev"]["f1"] == pytest.approx(curve.f1.max())


def test_features_are_those_of_the_classes_asked_for_and_none_else(made, tmp_path):
    kept = pd.read_parquet(made / "features.parquet")
    assert set(kept.label) == {0, 2} and len(kept) == 9 + 3 and {len(v) for v in kept.vector} == {16}
    assert len(pd.read_parquet(toy.run(tmp_path, "cls-tanh", epochs=1) / "features.parquet")) == 0


def test_features_of_an_unknown_class_are_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.delattr("tailprompt.train.fit_model")
    with pytest.raises(BadInput, match=r"features: no class .*sports.*; known: law, music, sport"):
        toy.run(tmp_path, "cls-tanh", epochs=1, features=["law", "sports"])


def test_all_files_of_a_run_may_be_read_by_whom_one_may(made):
    assert len({file.stat().st_mode for file in made.iterdir()}) == 1


def test_the_same_run_twice_is_the_same_and_another_seed_is_not(made, tmp_path):
    again, other = (toy.run(tmp_path, "cls-tanh", seed=seed) for seed in (1, 2))
    pd.testing.assert_frame_equal(toy.scores(made), toy.scores(again))
    assert not toy.scores(again)[[0, 1, 2]].equals(toy.scores(other)[[0, 1, 2]])


@pytest.mark.parametrize(
    "split, place, value, says",
    [
        ("dev", 3, float("nan"), "logits of dev example dev-0-3 are not finite"),
        ("test", 16, float("-inf"), "logits of test example test-2-2 are not finite"),
        ("test", 9, 65520.0, "scores in float16 of test example test-1-0 are not finite"),
        ("dev", 0, -1e38, "scores in float16 of dev example dev-0-0 are not finite"),
    ],
)
def test_what_diverged_is_named_with_its_example_before_anything_is_written(
    tmp_path, monkeypatch, split, place, value, says
):
    whole = training.predicted

    def broken(*told):
        logits, *others = whole(*told)
        logits[split][place, 1] = value
        return logits, *others

    monkeypatch.setattr(training, "predicted", broken)
    with pytest.raises(BadInput, match=f"training has diverged: {says}"):
        toy.run(tmp_path, "cls-tanh", epochs=1)
    assert not [*tmp_path.glob("runs/*/*/*/*/*/*")]


def test_a_learning_rate_beyond_all_measure_ends_in_a_sentence_at_the_last_step_too(tmp_path):
    with pytest.raises(BadInput, match="stopped at step 1: .* is not finite; lower lr|has diverged: "):
        toy.run(tmp_path, "cls-tanh", lr=1e38, warmup=0.0, epochs=1e-9)
    assert not [*tmp_path.glob("runs/*/*/*/*/*/run.json")]


def test_a_vector_that_is_not_finite_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(Model, "features", lambda self, batch: self.read(batch).vector.float() / 0)
    with pytest.raises(BadInput, match="features of test example test-0-0 are not finite"):
        toy.run(tmp_path, "cls-tanh", epochs=1, features=["law", "music"])


def test_a_killed_run_goes_on_to_the_same_predictions(made, tmp_path, monkeypatch):
    calls = toy.interrupted(monkeypatch, at=4)
    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path, "cls-tanh")
    folder = tmp_path / "runs/mine/tiny/toy/cls-tanh/1"
    assert {file.name for file in folder.iterdir()} == {"state.pt"}
    toy.run(tmp_path, "cls-tanh")
    assert len(calls) == 4 + 1  # step 4, after the state of step 3
    pd.testing.assert_frame_equal(toy.scores(made), toy.scores(folder))
    assert {file.name for file in folder.iterdir()} == toy.WRITTEN


@pytest.mark.parametrize("other", ["code", "weights"])
def test_a_killed_run_does_not_go_on_with_other_code_or_weights(tmp_path, monkeypatch, capfd, other):
    calls = toy.interrupted(monkeypatch, at=4)
    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path, "cls-tanh")
    if other == "code":
        monkeypatch.setattr(training, "code", lambda: {"train.py": "another"})
    else:
        real = toy.asked_of
        monkeypatch.setattr(toy, "asked_of", lambda *told: real(*told) | {"weights": {"recipe": "another"}})
    toy.run(tmp_path, "cls-tanh")
    assert len(calls) == 4 + 4 and "starting from the first step" in "".join(capfd.readouterr())


@pytest.mark.parametrize("same", [True, False], ids=["another-file", "another-text"])
def test_a_killed_run_goes_on_with_the_same_rows_only(tmp_path, monkeypatch, same):
    calls, path = toy.interrupted(monkeypatch, at=4), tmp_path / "data/toy.parquet"
    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path, "cls-tanh")
    if same:
        pq.write_table(pq.read_table(path), path, compression="gzip", row_group_size=5)
    else:
        table, classes = data.read(path)
        table.loc[0, "text"] = "another text"
        data.write(table, classes, path, sources={})
    toy.run(tmp_path, "cls-tanh")
    assert len(calls) == 4 + (1 if same else 4)


def test_a_state_of_other_settings_is_not_gone_on_from(tmp_path, capfd):
    torch.save({"key": "another"}, (tmp_path / "state.pt"))
    folder = tmp_path / "runs/mine/tiny/toy/cls-tanh/1"
    folder.mkdir(parents=True)
    (tmp_path / "state.pt").rename(folder / "state.pt")
    toy.run(tmp_path, "cls-tanh", epochs=1)
    assert about(folder)["steps"] == 2 and "starting from the first step" in "".join(capfd.readouterr())


def test_a_frozen_body_stays_as_it_was_to_the_bit_and_is_not_written(tmp_path):
    kept = load_file(toy.run(tmp_path, "cls-tanh", tuner="frozen", keep=True) / "weights.safetensors")
    assert kept and all(name.startswith("head.") or name == "class_vectors" for name in kept)
    before = backbones.load(ROW).body.state_dict()
    seen = {}
    real = toy.train.__globals__["write_weights"]

    def spy(path, model, **told):
        seen.update({name: value.clone() for name, value in model.body.pretrained.state_dict().items()})
        real(path, model, **told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(toy.train.__globals__, "write_weights", spy)
        toy.run(tmp_path, "prompt", tuner="frozen")
    assert before.keys() == seen.keys() and all(torch.equal(before[name], seen[name]) for name in before)


def test_without_keep_only_the_head_is_written_and_with_keep_all(made, tmp_path):
    head = load_file(toy.run(tmp_path, "cls-tanh") / "weights.safetensors")
    whole = load_file(made / "weights.safetensors")
    assert {name for name in whole if not name.startswith("body.")} == set(head)
    assert all(torch.equal(head[name], whole[name]) for name in head)
    assert torch.equal(head["class_vectors"], head["head.predictor.weight"])


@pytest.mark.parametrize("method", toy.TEXTS)
def test_every_method_trains_and_scores_every_class(tmp_path, method):
    folder = toy.run(tmp_path, method, epochs=1)
    assert about(folder)["steps"] == 2
    assert toy.scores(folder)[[0, 1, 2]].notna().all(axis=None)
    assert load_file(folder / "weights.safetensors")["class_vectors"].shape == (3, 16)


def test_a_run_begins_from_the_kept_weights_of_another(made, tmp_path):
    begun = toy.run(tmp_path, "cls-tanh", start=made, lr=1e-12, epochs=1)
    first, second = (toy.scores(folder)[[0, 1, 2]] for folder in (made, begun))
    assert (first - second).abs().max(axis=None) < 1e-2


@pytest.mark.parametrize("keep", [True, False])
def test_fine_tuning_begins_from_a_linear_probe_whose_body_is_the_checkpoints(tmp_path, keep):
    probe = toy.run(tmp_path, "linear", keep=keep)
    fine = toy.run(tmp_path, "finetune", start=probe, keep=True)
    still = toy.run(tmp_path, "finetune@lr=1e-12", start=probe, lr=1e-12)
    before, kept = backbones.load(ROW).body.state_dict(), load_file(fine / "weights.safetensors")
    assert any(not torch.equal(value, kept[f"body.pretrained.{name}"]) for name, value in before.items())
    first, second = (toy.scores(folder)[[0, 1, 2]] for folder in (probe, still))
    assert (first - second).abs().max(axis=None) < 1e-2


def test_a_run_cannot_begin_from_a_head_alone_or_another_head(made, tmp_path):
    head = toy.run(tmp_path, "cls-tanh", epochs=1)
    with pytest.raises(BadInput, match="holds the head without its body; set keep: true"):
        toy.run(tmp_path, "cls-relu", start=head)
    with pytest.raises(BadInput, match="is of another model"):
        toy.run(tmp_path, "prompt", start=made)


def test_a_frozen_body_does_not_begin_as_the_checkpoints_below_the_head_of_a_tuned_one(tmp_path):
    head = toy.run(tmp_path, "cls-tanh", epochs=1)
    with pytest.raises(BadInput, match="holds the head without its body; set keep: true .*cls-tanh"):
        toy.run(tmp_path, "cls-tanh@tuner=frozen", tuner="frozen", start=head)


def test_a_start_is_in_the_settings_and_given_or_neither(made, tmp_path):
    for start, asked in ((made, None), (None, {"method": "cls-tanh"})):
        settings = toy.settings("cls-tanh", start=asked, epochs=1)
        with pytest.raises(BadInput, match="start is the folder .* name in start: give both or neither"):
            toy.train(
                made.parents[5], point_at("mine/tiny/toy/cls-relu/1"), toy.asked_of(settings, ROW), CPU, start
            )


def test_tau_is_the_best_on_dev_and_the_smallest_of_equals():
    class Head(torch.nn.Module):
        def class_vectors(self):
            return torch.tensor([[4.0], [1.0]])

        def bias(self):
            return torch.zeros(2)

    model = Model(torch.nn.Identity(), Head())
    logits, labels = torch.tensor([[4.0, 2.0], [4.0, 0.5], [4.0, 3.0]]), np.array([1, 0, 1])
    scorer = scorer_of(CLASSIFICATION, {"classes": ["a", "b"]})
    run = run_of(toy.settings("", tau=[0.0, 1.0, 1.2], select="f1"))
    assert choose_tau(model, logits, Given(labels, ()), run, scorer) == 1.0
    run = run_of(toy.settings("", tau=[0.0, 0.1], select="accuracy"))
    assert choose_tau(model, logits, Given(labels * 0, ()), run, scorer) == 0.0


def test_tau_rescales_what_is_written(tmp_path):
    plain = toy.scores(toy.run(tmp_path, "cls-relu"))[[0, 1, 2]].to_numpy()
    folder = toy.run(tmp_path, "cls-relu@tau=[2.0]", tau=[2.0])
    weights = load_file(folder / "weights.safetensors")
    bias, norms = weights["head.predictor.bias"].numpy(), weights["class_vectors"].norm(dim=1).numpy()
    assert about(folder)["tau"] == 2.0
    assert toy.scores(folder)[[0, 1, 2]].to_numpy() == pytest.approx(
        (plain - bias) / norms**2 + bias, rel=0.02, abs=0.02
    )


@pytest.mark.parametrize(
    "method, changes, words, says",
    [
        ("cls-tanh", {"max_length": 600}, "a,b,c", "max_length 600 is more than"),
        ("prompt", {"template": "{text} {mask} {mask}"}, "a,b,c", "needs {text} and {mask} once"),
        ("prompt", {}, "a,a,c", r"words\.csv: classes 'music' and 'sport' are scored by the same tokens"),
        ("prompt", {}, "a,𐎀,c", r"words\.csv: the word '𐎀' of class 'sport' has no token"),
    ],
)
def test_what_is_wrong_shows_before_a_text_is_encoded_or_a_card_used(
    tmp_path, monkeypatch, method, changes, words, says
):
    def never(*arguments):
        raise AssertionError("too early")

    path = tmp_path / "words.csv"
    lines = [f"{name},{word}" for name, word in zip(toy.WORDS, words.split(","), strict=True)]
    path.write_text("\n".join(["label,words", *lines]), "utf-8")
    for target in (encode, "build"), (torch.nn.Module, "to"):
        monkeypatch.setattr(*target, never)
    with pytest.raises(BadInput, match=says):
        read = {"verbalizer": str(path)} if method == "prompt" else {}
        toy.run(tmp_path, method, **read, **changes)


def test_a_class_without_a_verbalizer_is_its_name_in_plain_words():
    assert class_words(["oil-and-gas", "free_time", "-1", "B-"], None) == {
        "oil-and-gas": "oil and gas",
        "free_time": "free time",
        "-1": "-1",
        "B-": "B-",
    }


def test_a_linear_head_takes_classes_without_words(tmp_path):
    classes = ["a", "A", "𐎀"]  # alike to the backbone, and unknown to it
    data.write(toy.table(), classes, tmp_path / "data/toy.parquet", sources={})
    folder = toy.run(tmp_path, "cls-tanh", keep=True, epochs=1)
    (tmp_path / "rows.csv").write_text("text\nsong\n")
    out = tmp_path / "out.csv"
    predict_file(folder, tmp_path / "rows.csv", out, text="text", pair=None, encoding="utf-8", device="cpu")
    assert set(pd.read_csv(out).prediction) <= set(classes)


def test_a_verbalizer_that_lacks_a_class_is_refused(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("label,words\nlaw,court\n")
    with pytest.raises(BadInput, match="no word for music, sport"):
        class_words(list(toy.WORDS), str(path))
    for twice_or_blank in ("law,judge", "law,\u200b"):
        path.write_text(f"label,words\nlaw,court\nmusic,song\nsport,ball\n{twice_or_blank}\n", "utf-8")
        with pytest.raises(BadInput, match="each label stands once with its words, but law does not"):
            class_words(list(toy.WORDS), str(path))
