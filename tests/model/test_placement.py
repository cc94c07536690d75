"""A T5 over several devices, in bfloat16, with layers computed twice: the same function, and what learns."""

from __future__ import annotations

import json

import accelerate.utils
import pandas as pd
import pytest
import torch
import toy
from batches import batch_of
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.inputs.examples import encode_rows, word_ids, word_texts
from tailprompt.model import backbones, placement
from tailprompt.model.compose import compose
from tailprompt.plan.points import Point
from tailprompt.predict import predict_file
from tailprompt.train import train
from tailprompt.training.batches import of_outputs, predict, sampled
from tailprompt.training.fitting import schedule_of
from tailprompt.training.loop import fit
from tailprompt.training.objective import objective
from tailprompt.training.samplers import shuffled

FOLDER = "workflow/resources/backbones/t5-mini"
ROW = {"family": "t5", "path": FOLDER}
WORDS = {"0": "bad", "1": "good"}
RUN = {"input": "formatted", "head": "verbalizer", "template": "soft", "max_length": 40}
TABLE = pd.DataFrame(
    {"id": list("abc"), "label": [0, 1, 0], "text": ["a good film", "it was so dull " * 4, "no"]}
)
CPU = torch.device("cpu")
NEAR, DISK = (
    ("shared", "encoder", "decoder.embed_tokens", "lm_head"),
    ("block", "final_layer_norm", "dropout"),
)
FAR = {**dict.fromkeys(NEAR, "cpu"), **{f"decoder.{part}": "disk" for part in DISK}}


def told(*, tuner="soft_prompt", **changes):
    """The run of a prompt of seven vectors, or of another tuner."""
    length = {"length": 7} if tuner == "soft_prompt" else {}
    return run_of(toy.settings("", **RUN, tuner=tuner, **length, **changes))


def composed(row=ROW, device=CPU, **changes):
    torch.manual_seed(0)
    run = told(**changes)
    backbone = backbones.load(row, device, learns=run.tuner.name == "full")
    words, texts = word_ids(list(WORDS), WORDS, backbone, run), word_texts(TABLE, backbone, run)
    model = compose(backbone, run, words=words, texts=texts).to(device)
    return model, encode_rows(TABLE, backbone, run, words=WORDS).to(device)


def loss_slope_and_logits(model, examples):
    inputs, labels = batch_of(examples, torch.arange(3))
    loss = F.cross_entropy(model.train()(inputs), labels)
    loss.backward()
    return loss.detach(), model.body.prompts.grad, predict(model, examples)


def assert_same(one, other, **tolerance):
    for ours, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)


@pytest.fixture
def far(monkeypatch):
    """A row whose decoder, and its embeddings, accelerate reads from disk in each pass."""
    monkeypatch.setattr(backbones, "placed", lambda *_: {"dtype": torch.float32, "device_map": FAR})
    return ROW


@pytest.mark.parametrize("decoding", ["restricted", "open"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_layers_on_two_devices_are_those_on_one(far, decoding, checkpointing, monkeypatch):
    model, examples = composed(far | {"checkpointing": checkpointing}, decoding=decoding)
    assert {value.device.type for value in model.body.pretrained.decoder.block.parameters()} == {"meta"}
    monkeypatch.setattr(backbones, "placed", lambda *_: {"dtype": torch.float32})
    near = composed(decoding=decoding)
    assert_same(loss_slope_and_logits(model, examples), loss_slope_and_logits(*near), atol=1e-5, rtol=1e-4)
    assert model.body.prompts.grad.norm() > 0


def test_layers_computed_twice_give_the_same_slope_and_keep_less():
    def kept(model, examples):
        sizes = []

        def pack(value):
            sizes.append(value.numel())
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            model.train()(batch_of(examples, torch.arange(3))[0])
        return sum(sizes)

    plain, again = composed(), composed(ROW | {"checkpointing": True})
    assert kept(*again) < kept(*plain) / 2
    assert_same(loss_slope_and_logits(*plain), loss_slope_and_logits(*again), atol=1e-5, rtol=1e-4)


def test_a_frozen_body_of_layers_computed_twice_drops_nothing():
    model, _ = composed(ROW | {"checkpointing": True})
    assert not any(
        part.training for part in model.train().body.modules() if isinstance(part, torch.nn.Dropout)
    )
    assert not any(part.training for part in model.eval().modules())


@pytest.mark.parametrize("decoding", ["restricted", "open"])
def test_a_prompt_before_bfloat16_weights_is_float32_and_learns(decoding):
    model, examples = composed(ROW | {"dtype": "bfloat16"}, decoding=decoding)
    assert {value.dtype for value in model.body.pretrained.parameters()} == {torch.bfloat16}
    assert model.body.prompts.dtype == torch.float32
    loss, slope, logits = loss_slope_and_logits(model, examples)
    exact = loss_slope_and_logits(*composed(decoding=decoding))
    assert slope.dtype == torch.float32 and torch.cosine_similarity(slope, exact[1], dim=1).min() > 0.9
    assert_same((loss, logits), (exact[0], exact[2]), atol=0.2, rtol=0.02)


def test_full_tuning_takes_float32_whatever_the_row_says():
    model, _ = composed(ROW | {"dtype": "bfloat16"}, tuner="full")
    assert {value.dtype for value in model.parameters()} == {torch.float32}


def test_looking_at_a_large_checkpoint_reads_none_of_it():
    body = backbones.load(ROW | {"device_map": "auto"}, torch.device("meta")).body
    assert {value.device.type for value in body.parameters()} == {"meta"}


def empty(layers: int):
    """A T5 without weights, whose output embedding is its own as in those of version 1.1."""
    config = AutoConfig.from_pretrained(FOLDER, num_layers=layers, num_decoder_layers=layers)
    with torch.device("meta"):
        model = AutoModelForSeq2SeqLM.from_config(config, dtype=torch.float32)
        model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    return model


@pytest.fixture
def machine(monkeypatch):
    """Gives a machine memory: megabytes of each card, and of main memory."""

    def with_memory(*cards: float, host: float = 0.0):
        free = {**{card: size * 1e6 for card, size in enumerate(cards)}, "cpu": host * 1e6}
        # accelerate would ask the cards that are not there
        monkeypatch.setattr(accelerate.utils, "get_max_memory", lambda: free)
        monkeypatch.setattr("accelerate.utils.modeling.get_max_memory", lambda asked: dict(asked))
        monkeypatch.setattr("accelerate.utils.modeling.is_cuda_available", lambda: True, raising=False)

    return with_memory


def megabytes(model, places, device):
    sizes = accelerate.utils.compute_module_sizes(model)
    return sum(sizes[name] for name, place in places.items() if place == device) / 1e6


def test_layers_lie_evenly_over_cards_with_both_embeddings_on_the_first(machine):
    machine(60, 60)
    model = empty(12)
    places = placement.over_cards(model, "it", learns=False)
    assert set(places.values()) == {0, 1} and places["shared"] == places["lm_head"] == 0
    shares = [megabytes(model, places, card) for card in (0, 1)]
    assert max(shares) < 0.8 * 60 and abs(shares[0] - shares[1]) < 0.4 * sum(shares)


def test_what_cards_do_not_hold_stays_in_main_memory_unless_it_learns(machine):
    machine(24, host=100)
    model = empty(12)
    assert set(placement.over_cards(model, "it", learns=False).values()) == {0, "cpu"}
    with pytest.raises(BadInput, match=r"it, tuned whole, needs .* GB; 1 GPU has 0.0"):
        placement.over_cards(model, "it", learns=True)


def test_a_backbone_larger_than_all_memory_is_one_sentence(machine):
    machine(6, 6, host=10)
    with pytest.raises(BadInput, match="0.0 GB free, main memory counted in; set cards in its row"):
        placement.over_cards(empty(3), "it", learns=False)


def trained(model, examples):
    """The curve of three steps, and the logits after them."""
    run = told(lr=0.1, epochs=3, patience=3, select="last", warmup=1.0)
    batches = sampled(examples, shuffled, batch=3, bucket=1, seed=1)
    cost = of_outputs(objective(run.training, torch.ones(2)))
    progress = fit(model, batches, cost, lambda _: {}, schedule_of(run.training, run.select))
    return torch.tensor([line["loss"] for line in progress.curve]), predict(model, examples)


def test_three_steps_over_two_devices_are_those_on_one(far, monkeypatch):
    row = far | {"checkpointing": True}
    one = trained(*composed(row))
    monkeypatch.setattr(backbones, "placed", lambda *_: {"dtype": torch.float32})
    other = trained(*composed(row))
    assert one[0][2] < one[0][0]
    assert_same(one, other, atol=1e-3, rtol=1e-3)


def test_a_run_writes_where_its_layers_lay(far, tmp_path, monkeypatch):
    toy.data.write(toy.table(), list(toy.WORDS), tmp_path / "data/toy.parquet", sources={})
    settings = toy.settings("pt", length=3, epochs=1)
    folders = []
    for name in ("far", "near"):
        point = Point("mine", name, "toy", "pt", 1)
        train(tmp_path, point, toy.asked_of(settings, ROW), CPU, None)
        folders.append(tmp_path / "runs" / point.path)
        monkeypatch.setattr(backbones, "placed", lambda *_: {"dtype": torch.float32})
    runs = [json.loads((folder / "run.json").read_text("utf-8")) for folder in folders]
    assert runs[0]["device_map"] == FAR and "device_map" not in runs[1]
    assert runs[0]["trainable"] == 3 * 192 and runs[0]["total"] == runs[1]["total"]
    pd.testing.assert_frame_equal(*map(toy.scores, folders), atol=2e-2)


def test_a_row_for_cards_trains_and_predicts_on_a_cpu_too(tmp_path):
    toy.data.write(toy.table(), list(toy.WORDS), tmp_path / "data/toy.parquet", sources={})
    row = ROW | {"device_map": "auto", "dtype": "bfloat16", "checkpointing": True}
    point = Point("mine", "large", "toy", "pt", 1)
    settings = toy.settings("pt", length=3, epochs=1)
    train(tmp_path, point, toy.asked_of(settings, row), CPU, None)
    run, rows, out = tmp_path / "runs" / point.path, tmp_path / "rows.csv", tmp_path / "out.csv"
    toy.table().query("split == 'test'").to_csv(rows, index=False)
    predict_file(run, rows, out, encoding="utf-8-sig", device="cpu")
    stored = toy.scores(run).query("split == 'test'").prediction
    assert pd.read_csv(out).prediction.tolist() == [list(toy.WORDS)[place] for place in stored]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA cards")
@pytest.mark.parametrize("tuner", ["soft_prompt", "full"])
def test_three_steps_over_two_cards_are_those_on_one(tuner):
    card, row = torch.device("cuda"), ROW | {"checkpointing": True}
    one = trained(*composed(row, card, tuner=tuner))
    model, examples = composed(row | {"device_map": "auto"}, card, tuner=tuner)
    assert {value.device.index for value in model.parameters()} == {0, 1}
    assert_same(one, trained(model, examples), atol=1e-3, rtol=1e-3)
