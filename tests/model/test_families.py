"""Every kind of checkpoint that a row of config/backbones.yaml names loads, on random weights."""

import json

import pytest
import tiny_vit
import torch
import toy
from conftest import ROW_T5, SHIPPED, SMALL, SMALL_T5
from rounding import TEXT, assert_near
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    MT5Config,
    MT5ForConditionalGeneration,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
)

from tailprompt.errors import BadInput
from tailprompt.model import backbones
from tailprompt.plan.schemas import read

GATED = {**SMALL_T5, "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0}
PLACES = {"max_position_embeddings": 64}


def masked(model, config, **told):
    return lambda words: model(config(vocab_size=words, **SMALL, **PLACES, **told))


def untied(model, config):
    """With an output embedding of its own, as T5 1.1 and mT5."""

    def made(words):
        whole = model(config(vocab_size=words, **GATED, tie_word_embeddings=False))
        whole.lm_head.weight = torch.nn.Parameter(torch.randn_like(whole.lm_head.weight))
        return whole

    return made


MADE = {
    "bert": masked(BertForMaskedLM, BertConfig),
    "roberta": masked(RobertaForMaskedLM, RobertaConfig, type_vocab_size=1),
    "t5": untied(T5ForConditionalGeneration, T5Config),
    "mt5": untied(MT5ForConditionalGeneration, MT5Config),
}
"""Kind -> number of words -> a small random model."""

ELSEWHERE = ("vit", "deberta", "tfidf")  # below, test_disentangled.py, test_first_tries.py: no head for words


def kind(row):
    """What of its family a row names: an mT5 is of the family t5."""
    return "mt5" if "mt5" in row.get("hub", "") else row["family"]


def kinds():
    return sorted({kind(row) for row in read("config/backbones.yaml")["backbones"].values()})


@pytest.fixture(params=[name for name in kinds() if name not in ELSEWHERE])
def named(request, tmp_path):
    """The model of a kind, and the row of its folder, as the hub has it."""
    family = "t5" if request.param == "mt5" else request.param
    tokenizer = AutoTokenizer.from_pretrained(f"{SHIPPED}{'t5' if family == 't5' else 'bert'}-mini")
    model = MADE[request.param](len(tokenizer))
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    file = tmp_path / "model/config.json"
    about = json.loads(file.read_text("utf-8"))
    if family == "t5":
        about |= {"tie_word_embeddings": False}
        about.pop("scale_decoder_outputs", None)
    file.write_text(json.dumps(about), "utf-8")
    return model, {"family": family, "path": str(tmp_path / "model")}


def test_a_checkpoint_of_every_kind_answers_as_transformers_does(named):
    model, row = named
    backbone = backbones.load(row)
    ids = torch.randint(8, 400, (3, 7))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        hidden = backbone.body.eval()(**batch, token_type_ids=torch.zeros_like(ids)).last_hidden_state
        ours = backbone.decoder(backbone.transform(hidden))
        if row["family"] == "t5":
            asked = torch.tensor([[0, backbones.sentinel(backbone.tokenizer)]]).expand(3, -1)
            batch, ours = {**batch, "decoder_input_ids": asked}, ours.flip(1)
        theirs = model.eval()(**batch).logits
    assert_near(ours, theirs, rounded=TEXT)
    assert torch.equal(backbone.decoder.weight, model.get_output_embeddings().weight)


@pytest.mark.parametrize("tuner", ["full", "soft_prompt", "prefix", "lora"])
def test_every_tuner_of_texts_trains_on_every_kind(named, tmp_path, tuner):
    _, row = named
    told = {"input": "formatted", "head": "verbalizer", "template": "soft", "tuner": tuner, "epochs": 1}
    told |= {"length": 4} if tuner in ("soft_prompt", "prefix") else {}
    folder = toy.run(tmp_path, "", row=row, **told)
    assert toy.scores(folder)[[0, 1, 2]].notna().all(axis=None)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_t5_drops_as_its_row_says(share):
    row = {**ROW_T5, "random": {**SMALL_T5, "dropout_rate": 0.1}, "dropout": share}
    backbone = backbones.load(row)
    body, ids = backbone.body.train(), torch.randint(8, 400, (3, 7))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    once, again = (body(**batch).last_hidden_state for _ in range(2))
    assert torch.equal(once, again) == (share == 0)
    parts = [part.p for part in body.modules() if isinstance(part, torch.nn.Dropout)]
    assert {*parts} == {share} and len(parts) > 10


def test_a_model_of_which_nothing_learns_is_one_sentence(tmp_path):
    told = {"input": "formatted", "head": "verbalizer", "template": "soft", "tuner": "frozen"}
    with pytest.raises(BadInput, match="nothing of this model learns; take another tuner"):
        toy.run(tmp_path, "", row=ROW_T5, **told)


def test_a_vit_of_the_kind_that_rows_name_answers_as_timm_does(tmp_path):
    assert "vit" in kinds()
    model = tiny_vit.vit(num_classes=5)
    backbone = backbones.load({"family": "vit", "path": tiny_vit.folder(tmp_path, model)})
    images = tiny_vit.images()
    with torch.no_grad():
        expected = model.eval().forward_features(images)
        torch.testing.assert_close(backbone.body.eval().forward_features(images), expected)
