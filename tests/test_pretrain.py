"""Backbones made from raw data in a few steps, killed and resumed, and the ones that ship."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
import toy
from made_up import write_corpus
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, T5ForConditionalGeneration

from tailprompt import card, pack, pretrain, vocabulary
from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json
from tailprompt.model import backbones
from tailprompt.model.folder import weights_in
from tailprompt.plan import digests
from tailprompt.plan.schemas import read
from tailprompt.pretraining import objectives as tasks
from tailprompt.pretraining import optimizers
from tailprompt.training import loop, stopping
from tailprompt.training.graphs import Graphs

STEPS = {
    "batch": 4, "steps": 6, "lr": 1e-3, "warmup": 2, "weight_decay": 0.01, "clip": 1.0,
    "precision": "float32", "evaluate_every": 2, "seed": 1,
}  # fmt: skip
TEXT = {**STEPS, "scripts": "all", "held_out": 0.2, "length": 16, "held_out_rows": 8, "positions": 64}
BERT = {
    **TEXT, "task": "masked_language_model", "vocabulary": {"kind": "wordpiece", "size": 300, "alphabet": 60},
    "rate": 0.2, "long": {"every": 3, "length": 32},
    "shape": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
              "max_position_embeddings": 64},
}  # fmt: skip
T5 = {
    **TEXT, "task": "span_corruption", "vocabulary": {"kind": "unigram", "size": 300}, "rate": 0.15,
    "span": 3,
    "shape": {"d_model": 16, "d_kv": 8, "num_heads": 2, "d_ff": 32, "num_layers": 1, "num_decoder_layers": 1,
              "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "dropout_rate": 0.0},
}  # fmt: skip
LARGE = {**T5, "steps": 2, "shape": {**T5["shape"], "d_model": 256, "d_ff": 512}}
VIT = {
    **STEPS, "task": "classification", "held_out": 0.2, "pixels": 12,
    "shape": {"img_size": 8, "patch_size": 4, "embed_dim": 12, "depth": 1, "num_heads": 3,
              "drop_path_rate": 0.1},
    "augment": {"scale": [0.4, 1.0], "operations": 1, "magnitude": 9, "groups": 2},
}  # fmt: skip
CPU = torch.device("cpu")
SHIPPED = Path("workflow/resources/backbones")


def write_packed(recipe: dict, folder: Path) -> Path | None:
    """Raw data made up and packed; returns the tokenizer's folder."""
    if recipe["task"] == "classification":
        draw = np.random.default_rng(0)
        for split, count in {"train": 12, "held_out": 6}.items():
            pixels = draw.integers(0, 256, (count, 12, 12, 3), np.uint8)
            folder.mkdir(exist_ok=True)
            np.savez(folder / f"{split}.npz", pixels=pixels, labels=np.arange(count) % 3)
        write_json(folder / "pack.json", {"classes": 3, "sha256": {}})
        return None
    corpus = write_corpus(folder.parent / "corpus.txt")
    vocabulary.train(recipe, [corpus], folder.parent / "vocabulary")
    write_json(folder / "pack.json", pack.pack_text(recipe, [corpus], folder.parent / "vocabulary", folder))
    return folder.parent / "vocabulary"


@pytest.fixture(scope="module", params=["bert", "t5", "vit"])
def made(request, tmp_path_factory):
    """(recipe, tokenizer, packed data, checkpoint) of each kind."""
    torch.set_num_threads(1)  # as in the tests: sums of two threads round otherwise
    recipe = {"bert": BERT, "t5": T5, "vit": VIT}[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = write_packed(recipe, folder / "packed")
    pretrain.pretrain(request.param, recipe, folder / "packed", tokenizer, None, folder / "made", CPU)
    return recipe, tokenizer, folder / "packed", folder / "made"


def test_the_checkpoint_loads_with_no_code_of_ours(made):
    recipe, _, _, folder = made
    if recipe is VIT:
        model = timm.create_model(f"local-dir:{folder}", pretrained=True)
        shape = {key: value for key, value in recipe["shape"].items() if key != "drop_path_rate"}
        file = str(folder / "model.safetensors")
        other = timm.create_model("vit_tiny_patch16_224", checkpoint_path=file, num_classes=3, **shape)
        assert torch.equal(model.head.weight, other.head.weight)
        assert tuple(timm.data.resolve_model_data_config(model)["mean"]) == (0.485, 0.456, 0.406)
        return
    kind = AutoModelForMaskedLM if recipe is BERT else T5ForConditionalGeneration
    _, found = kind.from_pretrained(folder, output_loading_info=True)
    assert not found["missing_keys"] and not found["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    marks = ("[CLS]", "[MASK]", "[SEP]") if recipe is BERT else ("<extra_id_0>", "<extra_id_99>", "</s>")
    assert len(tokenizer) == 300 and all(mark in tokenizer.all_special_tokens for mark in marks)


def test_a_checkpoint_is_files_of_one_mode_and_nothing_else(made):
    assert len({file.stat().st_mode for file in made[3].iterdir()}) == 1
    assert not [file.name for file in made[3].iterdir() if file.name.startswith(".")]


def test_the_record_has_the_digest_of_each_file_that_a_backbone_is_read_from(made):
    *_, folder = made
    assert digests.told_of(folder, read_json(folder / "pretraining.json")) == digests.digests_in(folder)


def test_the_checkpoint_scores_as_its_curve_says(made):
    recipe, tokenizer, packed, folder = made
    task = tasks.build(recipe, packed, pretrain.read_tokenizer(tokenizer), CPU)
    if recipe is VIT:
        model = timm.create_model(f"local-dir:{folder}", pretrained=True)
    else:
        kind = AutoModelForMaskedLM if recipe is BERT else T5ForConditionalGeneration
        model = kind.from_pretrained(folder, dtype=torch.float32)
    told = json.loads((folder / "pretraining.json").read_text())["held_out"]
    found = pretrain.held_out(model, task=task, precision=recipe["precision"])
    assert found["held_out_loss"] == pytest.approx(told["held_out_loss"], abs=0.01)


def test_a_killed_run_resumes_to_the_same_weights(made, tmp_path, monkeypatch):
    recipe, tokenizer, packed, folder = made
    again, calls = tmp_path / "again", toy.interrupted(monkeypatch, at=6)
    with pytest.raises(KeyboardInterrupt):
        pretrain.pretrain("again", recipe, packed, tokenizer, None, again, CPU)
    assert [file.name for file in again.iterdir()] == ["state.pt"]
    torch.manual_seed(99)  # a new process starts elsewhere
    pretrain.pretrain("again", recipe, packed, tokenizer, None, again, CPU)
    assert len(calls) == 6 + 1  # step 6 of 6
    whole, resumed = (load_file(made / "model.safetensors") for made in (folder, again))
    assert all(torch.equal(resumed[name], value) for name, value in whole.items())
    curves = [pd.read_csv(made / "curve.csv").drop(columns="seconds") for made in (folder, again)]
    pd.testing.assert_frame_equal(*curves)


def test_the_curve_has_the_held_out_loss_and_accuracy_of_each_evaluation(made):
    curve = pd.read_csv(made[3] / "curve.csv")
    assert list(curve) == ["step", "loss", "held_out_loss", "held_out_accuracy", "seconds"]
    assert curve.step.tolist() == [2, 4, 6]


def test_a_loss_that_is_not_finite_stops_before_anything_is_saved(made, tmp_path, monkeypatch):
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "SHARE", float("inf"))
    recipe, tokenizer, packed, _ = made
    task = tasks.build(recipe, packed, pretrain.read_tokenizer(tokenizer), CPU)
    broken = replace(task, loss=lambda model, batch: task.loss(model, batch) * float("nan"))
    with pytest.raises(BadInput, match="stopped at step 1: the loss is nan .*: those drawn for step 1;"):
        pretrain.train(broken, recipe, tmp_path / "state.pt", "key", "x")
    assert not (tmp_path / "state.pt").exists()


def gradient(made, micro):
    """Of the second step, in micro-batches."""
    recipe, tokenizer, packed, _ = made
    task = tasks.build(recipe, packed, pretrain.read_tokenizer(tokenizer), CPU)
    parts = pretrain.drawn_by_step(task, recipe["batch"]).parts(1, micro)
    loop.accumulate(task.model.eval(), parts, pretrain.loss_of(task, "float32"), torch.tensor(0.0))
    return torch.cat([value.grad.flatten() for value in task.model.parameters() if value.grad is not None])


def test_micro_batches_add_up_to_the_gradient_of_the_batch(made):
    for micro in (3, 1):
        assert torch.allclose(gradient(made, micro), gradient(made, 4), atol=1e-6)


def test_pre_training_decays_matrices_and_spares_vectors():
    tensors = [torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)]
    optimizer = optimizers.adamw(tensors, lr=0.1, weight_decay=0.5)
    for value in tensors:
        value.grad = torch.zeros_like(value)
    optimizer.step()
    assert torch.allclose(tensors[0], torch.tensor(0.95)) and torch.equal(tensors[1], torch.ones(2))


def test_relative_steps_are_those_of_adamw_times_the_size_of_a_tensor():
    sizes = (2.0, 0.01, 0.0)  # the last counts as 0.001
    tensors = [torch.full((2, 3), size, requires_grad=True) for size in sizes]
    optimizer = optimizers.relative(tensors, lr=0.1, weight_decay=0.0)
    for _ in range(2):
        before = [value.detach().clone() for value in tensors]
        for value in tensors:
            value.grad = torch.ones_like(value)
        optimizer.step()
        for value, old in zip(tensors, before, strict=True):
            size = float(old.square().mean().sqrt().clamp(min=1e-3))
            assert torch.allclose(value, old - 0.1 * size, rtol=1e-4, atol=1e-8)


def test_a_tied_t5_has_the_embeddings_of_t5_and_scales_its_outputs(tmp_path):
    """Raffel et al. 2020: a deviation of 1, with logits scaled by the root of the width."""
    recipe = {
        **T5,
        "optimizer": "relative",
        "lr": 1e-2,
        "shape": {**T5["shape"], "tie_word_embeddings": True},
    }
    tokenizer = write_packed(recipe, tmp_path / "packed")
    task = tasks.build(recipe, tmp_path / "packed", pretrain.read_tokenizer(tokenizer), CPU)
    table = task.model.shared.weight.detach()
    assert task.model.lm_head.weight is task.model.shared.weight and table.std() == pytest.approx(1, abs=0.05)
    before = pretrain.held_out(task.model, task=task, precision="float32")["held_out_loss"]
    assert before < 8  # were they not scaled, it would be far above the logarithm of 300 words, 5.7
    pretrain.pretrain("t5", recipe, tmp_path / "packed", tokenizer, None, tmp_path / "t5", CPU)
    curve = pd.read_csv(tmp_path / "t5/curve.csv")
    assert curve["held_out_loss"].iloc[-1] < before
    assert T5ForConditionalGeneration.from_pretrained(tmp_path / "t5").config.scale_decoder_outputs


def test_training_lowers_the_held_out_loss(tmp_path):
    recipe = {**BERT, "steps": 60, "lr": 1e-2, "batch": 16, "evaluate_every": 20}
    tokenizer = write_packed(recipe, tmp_path / "packed")
    task = tasks.build(recipe, tmp_path / "packed", pretrain.read_tokenizer(tokenizer), CPU)
    before = pretrain.held_out(task.model, task=task, precision="float32")["held_out_loss"]
    curve = pretrain.train(task, recipe, tmp_path / "state.pt", "key", "").curve
    assert curve[-1]["held_out_loss"] < before - 0.3


def test_lm_adaptation_goes_on_from_its_start(tmp_path):
    recipe = {**T5, "task": "language_model", "lr": 1e-9, "steps": 1}
    tokenizer = write_packed(T5, tmp_path / "packed")
    pretrain.pretrain("t5", T5, tmp_path / "packed", tokenizer, None, tmp_path / "t5", CPU)
    pretrain.pretrain("lm", recipe, tmp_path / "packed", tokenizer, tmp_path / "t5", tmp_path / "lm", CPU)
    start, end = (load_file(tmp_path / name / "model.safetensors") for name in ("t5", "lm"))
    assert all(torch.allclose(end[name].float(), value.float(), atol=1e-3) for name, value in start.items())
    other = {**recipe, "shape": {**recipe["shape"], "d_ff": 16}}
    with pytest.raises(BadInput, match="its weights are not of this shape"):
        pretrain.pretrain("lm", other, tmp_path / "packed", tokenizer, tmp_path / "t5", tmp_path / "b", CPU)


def in_parts(folder: Path, parts: int = 3) -> tuple[dict, Path]:
    """A recipe with parts, its packed data in `folder`/packed, and its tokenizer."""
    recipe = {**T5, "parts": parts}
    return recipe, write_packed(recipe, folder / "packed")


def tokens(packed: Path, recipe: dict) -> list[int]:
    """What training reads."""
    return tasks.training_stream(packed, recipe, CPU).tolist()


def test_parts_hold_the_documents_of_the_whole_and_the_same_are_held_out(tmp_path):
    recipe, tokenizer = in_parts(tmp_path)
    packs = [tmp_path / "whole", tmp_path / "packed"]
    write_json(packs[0] / "pack.json", pack.pack_text(T5, [tmp_path / "corpus.txt"], tokenizer, packs[0]))
    words = pretrain.read_tokenizer(tokenizer)
    texts = [words.decode(tokens(packed, recipe)).split("</s>") for packed in packs]
    documents = [sorted(text.strip() for text in each) for each in texts]
    assert documents[0] == documents[1]
    assert len({(packed / "held_out.bin").read_bytes() for packed in packs}) == 1
    one, three = (json.loads((packed / "pack.json").read_text()) for packed in packs)
    assert {**one, "parts": three["parts"]} == three and "parts" not in one
    assert sum(three["parts"].values()) == one["train"] and len(three["parts"]) == 3
    assert min(three["parts"].values()) > one["train"] / 5


def test_training_reads_the_parts_that_are_named_and_needs_no_others(tmp_path):
    recipe, tokenizer = in_parts(tmp_path)
    packed = tmp_path / "packed"
    of = {number: tokens(packed, {"reads": [number]}) for number in (1, 2, 3)}
    assert tokens(packed, recipe) == [*of[1], *of[2], *of[3]]
    (packed / "train-2.bin").unlink()
    assert tokens(packed, {"reads": [3, 1]}) == [*of[3], *of[1]]
    some = {**recipe, "reads": [1, 3]}
    pretrain.pretrain("some", some, packed, tokenizer, None, tmp_path / "some", CPU)
    with pytest.raises(BadInput, match=r"packed: train-2\.bin not found; bring them, or list the others in"):
        pretrain.pretrain("all", recipe, packed, tokenizer, None, tmp_path / "all", CPU)


def read_by_transformers(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of a T5 in a folder."""
    return T5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).state_dict()


def test_a_checkpoint_in_shards_is_the_same_one_for_transformers_and_for_us(tmp_path):
    tokenizer = write_packed(LARGE, tmp_path / "packed")
    made = {name: tmp_path / name for name in ("whole", "shards", "on")}
    pretrain.pretrain("a", LARGE, tmp_path / "packed", tokenizer, None, made["whole"], CPU)
    (made["shards"]).mkdir()
    (made["shards"] / "model-00007-of-00007.safetensors").touch()  # of another checkpoint
    (made["shards"] / "model.safetensors").touch()
    recipe = {**LARGE, "shards": 1}
    pretrain.pretrain("a", recipe, tmp_path / "packed", tokenizer, None, made["shards"], CPU)
    files = weights_in(made["shards"])
    assert len(files) > 1 and sorted(made["shards"].glob("model*.safetensors")) == files
    assert all(file.stat().st_size < 1.1e6 for file in files)
    about = json.loads((made["shards"] / "pretraining.json").read_text())
    assert about["sha256"] == {file.name: sha256(file) for file in files}
    whole, shards = (read_by_transformers(made[name]) for name in ("whole", "shards"))
    assert all(torch.equal(shards[name], value) for name, value in whole.items())
    loaded = backbones.load({"family": "t5", "path": str(made["shards"])})
    assert isinstance(loaded, backbones.Backbone)
    on = {**recipe, "lr": 1e-9, "steps": 1}
    pretrain.pretrain("on", on, tmp_path / "packed", tokenizer, made["shards"], made["on"], CPU)
    after = read_by_transformers(made["on"])
    assert all(torch.allclose(after[name], value, atol=1e-3) for name, value in shards.items())
    files[0].unlink()
    with pytest.raises(BadInput, match=f"{files[0].name} not found; bring the files of its weights"):
        pretrain.pretrain("on", on, tmp_path / "packed", tokenizer, made["shards"], tmp_path / "b", CPU)
    with pytest.raises(BadInput, match=f"{files[0].name} not found; bring the files of its weights"):
        backbones.load({"family": "t5", "path": str(made["shards"])})


def test_a_corpus_too_small_for_the_vocabulary_or_a_row_is_one_sentence(tmp_path):
    corpus = write_corpus(tmp_path / "corpus.txt")
    large = {**BERT, "vocabulary": {"kind": "wordpiece", "size": 30_000, "alphabet": 60}}
    with pytest.raises(BadInput, match="too small for 30000 tokens, it gives"):
        vocabulary.train(large, [corpus], tmp_path)
    vocabulary.train(BERT, [corpus], tmp_path)
    with pytest.raises(BadInput, match="are not one row of 99999; name a larger corpus"):
        pack.pack_text({**BERT, "length": 99_999}, [corpus], tmp_path, tmp_path / "packed")


def test_the_stages_say_what_a_broken_recipe_lacks(tmp_path, monkeypatch):
    told = ["--recipe", "{}", "--corpus", "a", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["vocabulary", *told])
    with pytest.raises(BadInput, match="--recipe lacks"):
        vocabulary.main()


@pytest.mark.parametrize(
    "name, kind",
    [
        ("bert-mini", backbones.Backbone),
        ("t5-mini", backbones.Backbone),
        ("vit-mini", backbones.VisionBackbone),
    ],
)
def test_what_ships_is_its_recipe_and_its_card(name, kind):
    rows = read("config/backbones.yaml")["backbones"]
    recipe = read("config/pretraining.yaml")["pretraining"][name]
    about = json.loads((SHIPPED / name / "pretraining.json").read_text("utf-8"))
    assert about["recipe"] == {key: value for key, value in recipe.items() if key != "card"}
    assert about["sha256"] == sha256(SHIPPED / name / "model.safetensors")
    assert (SHIPPED / name / "README.md").read_text("utf-8") == card.card(about, recipe["card"])
    assert isinstance(backbones.load(rows[name]), kind)


def test_what_ships_is_at_most_32_megabytes():
    sizes = {
        folder.name: sum(file.stat().st_size for file in folder.iterdir()) for folder in SHIPPED.iterdir()
    }
    limits = {"bert-mini": 15e6, "t5-mini": 10e6, "vit-mini": 8e6}
    assert sizes.keys() == limits.keys() and sum(sizes.values()) <= 32e6
    assert all(sizes[name] <= limit for name, limit in limits.items())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize(
    "recipe", [BERT, T5, VIT, {**T5, "optimizer": "relative"}], ids=["bert", "t5", "vit", "relative"]
)
def test_captured_pre_training_equals_launched_pre_training(tmp_path, monkeypatch, recipe):
    kept, folder = {}, tmp_path / "packed"
    words = pretrain.read_tokenizer(write_packed(recipe, folder))
    monkeypatch.setattr(pretrain, "compiled", lambda loss: loss)  # a second compilation has other kernels
    for capture in (True, False):
        graphs = Graphs(torch.device("cuda"), capture=capture)
        monkeypatch.setattr(loop, "Graphs", lambda device, made=graphs: made)
        task = tasks.build({**recipe, "steps": 12}, folder, words, torch.device("cuda"))
        pretrain.train(task, {**recipe, "steps": 12}, tmp_path / "state.pt", str(capture), "x")
        kept[capture] = torch.cat([value.detach().flatten() for value in task.model.parameters()])
        assert bool(graphs.kept) == capture
    assert torch.equal(kept[True], kept[False])
