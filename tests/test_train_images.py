"""Runs on images: what each method learns, writes and leaves alone, and that a run can be repeated."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
import toy
import toy_images
from rounding import assert_near
from safetensors.torch import load_file
from tiny_vit import DEPTH, SIZE, WIDTH

from tailprompt.components.declare import settings_of
from tailprompt.components.resolve import run_of
from tailprompt.components.training import Training
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.model import backbones
from tailprompt.training.selection import check_dev

HEAD = {"head.predictor.weight", "class_vectors"}
GROUPS = {"body.prompts", "body.groups.pool", "body.groups.keys"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A scale's folder with a prepared set of pictures."""
    folder = tmp_path_factory.mktemp("scale")
    toy_images.prepare(folder)
    return folder


@pytest.fixture(scope="module")
def first(root):
    """A run of LPT's first phase."""
    return toy_images.run(root, "lpt-phase1")


@pytest.fixture(scope="module")
def second(root, first):
    """A run of its second phase, which began from it."""
    return toy_images.run(root, "lpt", start=first)


def weights(folder):
    return load_file(folder / "weights.safetensors")


def about(folder):
    return json.loads((folder / "run.json").read_text("utf-8"))


OWN = [
    ("linear", HEAD | {"head.predictor.bias"}, 3 * WIDTH + 3),
    ("vpt", HEAD | {"head.predictor.bias", "body.prompts"}, DEPTH * 2 * WIDTH + 3 * WIDTH + 3),
    ("vpt-shallow", HEAD | {"head.predictor.bias", "body.prompts"}, 2 * WIDTH + 3 * WIDTH + 3),
    ("lpt-joint", HEAD | GROUPS, (DEPTH * 2 + 5 * 2 * 2 + 5 + 3) * WIDTH),
    ("lpt-plus", HEAD | {"body.prompts"}, (DEPTH * 2 + 3) * WIDTH),
    ("visual-prompting@border=2", None, 3 * (SIZE**2 - (SIZE - 4) ** 2) + 3 * WIDTH + 3),
    ("adapter", None, None),
    ("norm-tuning", None, (2 * DEPTH + 1) * 2 * WIDTH + 3 * WIDTH + 3),
    ("linear-balanced", HEAD | {"head.predictor.bias"}, 3 * WIDTH + 3),
]


@pytest.mark.parametrize("method, own, learned", OWN)
def test_a_method_learns_and_writes_what_is_its_own(root, method, own, learned):
    changes = {"border": 2} if "border" in method else {}
    folder = toy_images.run(root, method, epochs=1, **changes)
    kept, told = weights(folder), about(folder)
    assert {file.name for file in folder.iterdir()} == toy.WRITTEN
    assert own is None or set(kept) == own
    assert learned is None or told["trainable"] == learned
    assert told["selection_split"] == "none" and told["best_step"] == told["steps"] == 3
    assert toy.scores(folder)[[0, 1, 2]].notna().all(axis=None) and set(told["dev"]) == {"accuracy", "f1"}
    assert torch.equal(kept["class_vectors"], kept["head.predictor.weight"])
    assert kept["class_vectors"].shape == (3, WIDTH)


@pytest.mark.parametrize("method", sorted(set(toy.IMAGES) - {method for method, *_ in OWN}))
def test_every_other_method_trains_and_scores_every_class(root, first, method):
    begun = first if toy.METHODS[method].get("start") else None
    folder = toy_images.run(root, method, seed=4, start=begun, epochs=1)
    assert about(folder)["steps"] == 3 and weights(folder)["class_vectors"].shape == (3, WIDTH)
    assert toy.scores(folder)[[0, 1, 2]].notna().all(axis=None)


def test_run_json_says_how_the_images_were_decoded_and_what_a_phase_learned(first, second):
    assert about(first)["data"]["decoded"] == {"side": 20, "fit": "crop", "border": 0, "upright": True}
    assert about(first)["trainable"] == (DEPTH * 2 + 3) * WIDTH
    assert about(second)["trainable"] == (5 * 2 * 2 + 5 + 3) * WIDTH  # pool, keys and head


def test_the_second_phase_begins_from_the_first_and_leaves_its_prompts(first, second):
    before, after = weights(first), weights(second)
    assert set(before) == HEAD | {"body.prompts"} and set(after) == HEAD | GROUPS
    assert torch.equal(before["body.prompts"], after["body.prompts"])
    moved = (before["head.predictor.weight"] - after["head.predictor.weight"]).norm(dim=1)
    fresh = (torch.randn(3, WIDTH) - after["head.predictor.weight"]).norm(dim=1)
    assert ((0 < moved) & (moved < fresh / 2)).all()


def test_the_second_phase_without_learning_gives_what_its_start_holds(root, first):
    folder = toy_images.run(root, "lpt@lr=1e-12", lr=1e-12, start=first, weight_decay=0.0)
    before, after = weights(first), weights(folder)
    assert all(torch.allclose(after[name], value, atol=1e-6) for name, value in before.items())


@pytest.mark.parametrize("method", ["linear", "vpt", "lpt"])
def test_a_frozen_vit_stays_as_it_was_to_the_bit(tmp_path, root, first, monkeypatch, method):
    seen = {}
    write = toy_images.train.__globals__["write_weights"]

    def spy(path, model, **told):
        seen.update({name: value.clone() for name, value in model.body.pretrained.state_dict().items()})
        write(path, model, **told)

    monkeypatch.setitem(toy_images.train.__globals__, "write_weights", spy)
    toy_images.run(root, f"{method}@lr=0.2", lr=0.2, start=first if method == "lpt" else None)
    before = backbones.load(toy_images.backbone(root)).body.state_dict()
    assert before.keys() == seen.keys() and all(torch.equal(before[name], seen[name]) for name in before)


def test_the_chosen_group_prompts_of_each_image_stand_beside_its_prediction(first, second):
    kept = toy.scores(second)
    assert kept.split.tolist() == ["dev"] * 12 + ["test"] * 17 and "prompts" not in toy.scores(first)
    assert all(len(set(chosen)) == 2 and set(chosen) <= set(range(5)) for chosen in kept.prompts)


def test_vectors_are_those_of_all_training_and_test_images_without_augmentation(root):
    folder = toy_images.run(root, "vpt@views", vectors=True)
    kept = pd.read_parquet(folder / "features.parquet")
    table, _ = data.read(root / "data/toy.parquet")
    wanted = pd.concat([table[table.split == split] for split in ("train", "test")])
    assert kept[["id", "split", "label"]].values.tolist() == wanted[["id", "split", "label"]].values.tolist()
    tensors, logits = weights(folder), toy.scores(folder).query("split == 'test'")[[0, 1, 2]]
    test = torch.tensor(np.stack(kept.vector[kept.split == "test"]))
    made = test @ tensors["head.predictor.weight"].T + tensors["head.predictor.bias"]
    assert_near(made, logits.to_numpy().astype(np.float16), rounded=1)


def test_the_same_run_twice_is_the_same_and_another_seed_is_not(second, first, tmp_path):
    toy_images.prepare(tmp_path)
    again, other = (toy_images.run(tmp_path, "lpt", start=first, seed=seed) for seed in (1, 2))
    pd.testing.assert_frame_equal(toy.scores(second), toy.scores(again))
    assert not toy.scores(again)[[0, 1, 2]].equals(toy.scores(other)[[0, 1, 2]])


@pytest.mark.parametrize("method", ["lpt", "lpt-plus"])
def test_a_killed_run_with_views_and_mixup_ends_as_one_that_was_not(
    root, first, tmp_path, monkeypatch, method
):
    told = {"flip": True, "augment": "resized_crop", "epochs": 3}
    start = first if method == "lpt" else None
    whole = toy_images.run(root, method, seed=5, start=start, **told)
    toy_images.prepare(tmp_path)
    calls = toy.interrupted(monkeypatch, at=8)
    with pytest.raises(KeyboardInterrupt):
        toy_images.run(tmp_path, method, seed=5, start=start, **told)
    torch.manual_seed(99)
    resumed = toy_images.run(tmp_path, method, seed=5, start=start, **told)
    assert len(calls) == 8 + 2  # two steps after the state of step 7
    assert all(torch.equal(value, weights(resumed)[name]) for name, value in weights(whole).items())
    pd.testing.assert_frame_equal(toy.scores(whole), toy.scores(resumed))


def test_a_state_of_a_run_that_began_in_other_weights_is_not_gone_on_from(first, root, tmp_path, monkeypatch):
    other = toy_images.run(root, "lpt-phase1@lr=0.01", lr=0.01)
    toy_images.prepare(tmp_path)
    steps = toy.interrupted(monkeypatch, at=5)
    with pytest.raises(KeyboardInterrupt):
        toy_images.run(tmp_path, "lpt", start=first)
    again = other.parent.rename(tmp_path / first.parent.name) / other.name
    resumed = toy_images.run(tmp_path, "lpt", start=again)
    assert len(steps) == 5 + 6  # all steps of two epochs
    assert about(resumed)["start_sha256"] == sha256(again / "weights.safetensors")


def test_a_head_from_class_means_points_where_the_features_of_its_class_are(root):
    told = {"head_start": "class_means", "lr": 1e-12, "vectors": True, "views": 1, "test_zoom": 1.0}
    folder = toy_images.run(root, "lpt-plus@lr=1e-12", **told)
    kept = pd.read_parquet(folder / "features.parquet").query("split == 'train'")
    means = torch.tensor(np.stack([np.stack(part.vector).mean(0) for _, part in kept.groupby("label")]))
    expected = torch.nn.functional.normalize(means, dim=1)
    assert torch.allclose(weights(folder)["class_vectors"], expected, atol=1e-5)


def test_a_loss_that_is_not_finite_stops_the_run_and_writes_nothing(root):
    with pytest.raises(BadInput, match=r"training stopped at step \d: the .* examples of the batch: .*\.png"):
        toy_images.run(root, "vpt@lr=1e30", lr=1e30)
    assert not any((root / "runs/mine/tiny/toy/vpt@lr=1e30/1").glob("*.parquet"))


def test_fine_tuning_begins_from_a_linear_probe_whose_body_is_the_checkpoints(root):
    probe = toy_images.run(root, "linear@lr=0.3", lr=0.3)
    fine = toy_images.run(root, "finetune", start=probe, keep=True, lr=1e-3)
    still = toy_images.run(root, "finetune@lr=1e-12", start=probe, keep=True, lr=1e-12, weight_decay=0.0)
    kept, before = weights(fine), backbones.load(toy_images.backbone(root)).body.state_dict()
    assert {f"body.pretrained.{name}" for name in before} < set(kept)
    moved = [
        name for name, value in before.items() if not torch.equal(value, kept[f"body.pretrained.{name}"])
    ]
    assert len(moved) == len(before)
    first, second = (toy.scores(folder)[[0, 1, 2]] for folder in (probe, still))
    assert (first - second).abs().max(axis=None) < 1e-2


def test_fine_tuning_does_not_begin_from_a_fine_tuned_head_alone(root):
    head = toy_images.run(root, "finetune", seed=3, lr=1e-3)
    with pytest.raises(BadInput, match="holds the head without its body; set keep: true"):
        toy_images.run(root, "finetune-balanced", start=head)


@pytest.mark.parametrize("method", ["lpt", "lpt-plus"])
def test_a_test_set_alone_is_judged_by_the_run_it_starts_from(root, first, second, method):
    run = second if method == "lpt" else toy_images.run(root, "lpt-plus", seed=2)
    row = {"trained_on": "toy"}
    if not (root / "data/shifted.parquet").exists():
        toy_images.prepare(root, "shifted", {"test": (9, 5, 3)}, **row)
    folder = toy_images.run(root, method, dataset="shifted", start=run, trains=False, vectors=True)
    assert all(torch.equal(value, weights(folder)[name]) for name, value in weights(run).items())
    table, told = toy.scores(folder), about(folder)
    assert set(table.split) == {"test"} and told["steps"] == 0 and told["dev"] == {}
    training = {each.name for each in settings_of(Training)}
    assert "lr" in training and not told["settings"].keys() & training


@pytest.mark.parametrize("select, split", [("last", "none"), ("accuracy", "dev")])
def test_a_test_set_alone_says_how_the_run_was_selected_that_it_judges(root, select, split):
    run = toy_images.run(root, "linear", seed=5, epochs=1, select=select)
    if not (root / "data/shifted.parquet").exists():
        toy_images.prepare(root, "shifted", {"test": (9, 5, 3)}, trained_on="toy")
    other = {"last": "accuracy", "accuracy": "last"}[select]  # what its own protocol says counts for nothing
    folder = toy_images.run(root, "linear", seed=5, dataset="shifted", start=run, trains=False, select=other)
    assert about(run)["selection_split"] == about(folder)["selection_split"] == split


ROWS = {"train": 9, "dev": 0, "test": 3}


@pytest.mark.parametrize(
    "settings, rows, says",
    [
        ({"select": "last", "tau": [0.0]}, ROWS, None),
        ({"select": "f1", "tau": [0.0]}, {**ROWS, "dev": 3}, None),
        ({"select": "f1", "tau": [0.0]}, {**ROWS, "train": 0}, None),
        ({"select": "f1", "tau": [0.0]}, ROWS, "select: f1 needs dev rows, and x has none; set select: last"),
        (
            {"select": "last", "tau": [0.0, 1.0]},
            {**ROWS, "dev": 3},
            "tau: select chooses one of several on dev",
        ),
        ({"select": "f1", "tau": [0.0, 1.0]}, {**ROWS, "train": 0}, "tau: select chooses one of several"),
    ],
)
def test_what_is_chosen_on_dev_needs_one(settings, rows, says):
    run = run_of(toy_images.settings("", **settings))
    if says is None:
        check_dev(run, rows, "x")
        return
    with pytest.raises(BadInput, match=says):
        check_dev(run, rows, "x")
