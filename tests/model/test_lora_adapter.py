"""LoRA in peft's format: peft reads what we write, and scores alike."""

import json
import warnings

import deberta
import pytest
import tiny_vit
import torch
import toy
import toy_images
from conftest import ROW, ROW_T5
from rounding import TEXT, assert_near
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.export import export
from tailprompt.model import backbones, checkpoints, lora_adapter
from tailprompt.model.compose import compose
from tailprompt.model.encoder_decoder import EncoderDecoder
from tailprompt.model.weights import write_weights

BATCH = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.tensor([[1] * 8, [1] * 5 + [0] * 3, [1] * 3 + [0] * 5]),
    "token_type_ids": torch.zeros(3, 8, dtype=torch.long),
    "position": torch.tensor([0, 1, 0]),
}
WORDS = [[100], [200], [300]]
HEADS = {"t5": {"head": "verbalizer", "input": "formatted", "template": "soft"}}
TOLD = {"tuner": "lora", "rank": 4, "alpha": 12.0, "layers": "2-2"}


@pytest.fixture
def peft():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("peft")


def written(backbone, settings, row, folder):
    """A model whose changes are not zero, and its adapter in a folder."""
    model = compose(backbone, run_of(settings), words=WORDS).eval()
    for change in model.body.lora.values():
        torch.nn.init.normal_(change.up)
    write_weights(folder / "weights.safetensors", model, tuned=False, keep=False)
    lora_adapter.write(folder / "adapter", load_file(folder / "weights.safetensors"), settings, row)
    return model


def plain(row):
    """A body without changes, and the model of transformers that it is made of."""
    if row["family"] != "t5":
        body = backbones.load(row).body
        return body, body
    whole = checkpoints.drawn(AutoModelForSeq2SeqLM, row["path"], {}, row["random"])
    return EncoderDecoder(whole, backbones.sentinel(backbones.load(row).tokenizer)), whole


@pytest.mark.parametrize("kind", ["bert", "t5", "deberta-v2"])
def test_peft_loads_what_we_write_and_scores_alike(kind, peft, tmp_path):
    rows = {"bert": ROW, "t5": ROW_T5}
    row = rows[kind] if kind in rows else deberta.row(tmp_path / "backbone", "two")
    told = HEADS.get(kind, {"head": "predictor", "input": "plain"})
    model = written(backbones.load(row), toy.settings("", **told, **TOLD), row, tmp_path)
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    own, whole = plain(row)
    peft.PeftModel.from_pretrained(whole, tmp_path / "adapter")  # goes into the layers that both have
    given = own.eval()(**inputs).last_hidden_state
    assert_near(model.body(BATCH).states, given, rounded=TEXT)
    assert not torch.allclose(backbones.load(row).body.eval()(**inputs)[0], given, atol=1e-3)


def test_both_changes_of_a_vit_are_one_of_twice_the_rank(peft, tmp_path):
    row, settings = {"family": "vit", "path": "somewhere"}, toy_images.settings("", **TOLD)
    model = written(tiny_vit.backbone(tiny_vit.vit()), settings, row, tmp_path)
    about = json.loads((tmp_path / "adapter/adapter_config.json").read_text("utf-8"))
    assert (about["r"], about["lora_alpha"], about["target_modules"]) == (8, 24.0, ["blocks.1.attn.qkv"])
    theirs = peft.PeftModel.from_pretrained(tiny_vit.vit(), tmp_path / "adapter").eval()
    pixels = tiny_vit.images(3)
    given = theirs.base_model.model.forward_features(pixels)[:, 0]
    assert_near(model.body({"pixels": pixels}).vector, given, rounded=TEXT)


def test_a_run_is_exported(tmp_path):
    run = toy.run(tmp_path, "", tuner="lora", head="predictor")
    export(run, tmp_path / "adapter")
    names = load_file(tmp_path / "adapter/adapter_model.safetensors").keys()
    assert "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight" in names
    assert len(names) == 2 * 2 * 2  # layers, projections, matrices


def test_a_deberta_of_the_first_version_is_refused(tmp_path):
    with pytest.raises(BadInput, match="LoRA of a deberta is in parts of layers that are not exported; take"):
        lora_adapter.write(tmp_path, {}, {"rank": 8, "alpha": 16.0}, {"family": "deberta"})
