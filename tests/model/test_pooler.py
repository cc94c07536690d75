"""The head that reads the pooler, and heads that learn behind a soft prompt before plain input."""

import pytest
import torch
import toy
from conftest import FOLDER, ROW, ROW_T5, SMALL
from rounding import TEXT, assert_near
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertForPreTraining, BertModel

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.model.weights import held, load_trained, write_weights
from tailprompt.predict import predict_file

BATCH = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.tensor([[1] * 8, [1] * 5 + [0] * 3, [1] * 3 + [0] * 5]),
    "token_type_ids": torch.tensor([[0] * 3 + [1] * 5] * 3),
    "position": torch.tensor([0, 0, 0]),
}
DENSE = {"head.layers.dense.weight", "head.layers.dense.bias"}
LAST = {"head.predictor.weight", "head.predictor.bias"}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """A row of a small random BERT whose checkpoint has a pooler."""
    folder = tmp_path_factory.mktemp("pooled")
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    torch.manual_seed(0)
    BertForPreTraining(BertConfig(**SMALL, vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"family": "bert", "path": str(folder)}


@pytest.fixture
def bare(pooled, tmp_path):
    """A row of the same BERT without its pooler."""
    BertForMaskedLM.from_pretrained(pooled["path"]).save_pretrained(tmp_path / "bare")
    AutoTokenizer.from_pretrained(FOLDER).save_pretrained(tmp_path / "bare")
    return {"family": "bert", "path": str(tmp_path / "bare")}


@pytest.fixture
def headless(pooled, tmp_path):
    """A row of the same BERT with its pooler, but without a masked-language-model head."""
    BertModel.from_pretrained(pooled["path"]).save_pretrained(tmp_path / "headless")
    AutoTokenizer.from_pretrained(FOLDER).save_pretrained(tmp_path / "headless")
    return {"family": "bert", "path": str(tmp_path / "headless")}


def made(row, **changes):
    torch.manual_seed(0)
    run = run_of(toy.settings("", **{"input": "plain", "head": "pooler", **changes}))
    return compose(backbones.load(row), run, words=[[], [], []], texts=[]).eval()


def learned(model):
    return {name for name, value in model.named_parameters() if value.requires_grad and "head" in name}


def test_it_is_what_transformers_pools(pooled):
    model = made(pooled, tuner="frozen")
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    theirs = BertForPreTraining.from_pretrained(pooled["path"]).eval().bert(**inputs).pooler_output
    assert_near(model.features(BATCH), theirs, rounded=TEXT)


def test_a_checkpoint_without_a_head_for_words_serves_all_that_reads_none(pooled, headless):
    ours, theirs = made(headless, tuner="frozen"), made(pooled, tuner="frozen")
    assert torch.equal(ours.features(BATCH), theirs.features(BATCH))
    for changes in ({"head": "verbalizer", "input": "prompted"}, {"head": "linear", "norm": "pretrained"}):
        with pytest.raises(BadInput, match="reads a masked-language-model head, which the backbone's check"):
            made(headless, **changes)
    assert made(headless, head="linear", norm="fresh")(BATCH).shape == (3, 3)


def test_the_pooler_learns_where_the_body_does(pooled):
    assert learned(made(pooled, tuner="full")) == DENSE | LAST
    for tuner in ("frozen", "prefix", "lora", "soft_prompt"):
        assert learned(made(pooled, tuner=tuner)) == LAST


def test_a_pooler_that_the_checkpoint_lacks_is_drawn_and_learns(bare):
    model = made(bare, tuner="prefix")
    assert learned(model) == DENSE | LAST <= held(model)
    assert model.head.drawn
    assert 0.015 < model.head.layers.dense.weight.std() < 0.025
    assert not model.head.layers.dense.bias.any()


@pytest.mark.parametrize("tuner", ["prefix", "lora", "soft_prompt"])
def test_what_is_written_and_loaded_scores_alike(pooled, bare, tuner, tmp_path):
    for row in (pooled, bare):
        model = made(row, tuner=tuner)
        write_weights(tmp_path / "weights.safetensors", model, tuned=False, keep=False)
        torch.manual_seed(1)
        other = made(row, tuner=tuner)
        for name in held(other):
            other.get_parameter(name).data.add_(1)
        load_trained(other, tmp_path)
        assert torch.equal(other(BATCH), model(BATCH))


def test_a_t5_has_none():
    run = run_of(toy.settings("", input="plain", head="pooler", tuner="frozen"))
    with pytest.raises(BadInput, match="head pooler is for a bert, roberta or deberta"):
        compose(backbones.load(ROW_T5), run, words=[[], []])


@pytest.mark.parametrize("head", ["pooler", "predictor", "linear"])
def test_behind_a_soft_prompt_prompt_and_head_learn_and_cls_is_read(head):
    model = made(ROW, tuner="soft_prompt", length=4, head=head)
    names = {name for name, value in model.named_parameters() if value.requires_grad}
    assert {name for name in names if not name.startswith("head")} == {"body.prompts"}
    assert LAST <= names
    read = model.body(BATCH)
    assert read.states.shape == (3, 8, 16)
    assert torch.equal(read.vector, read.states[:, 0])


@pytest.mark.parametrize("embedded", ["correct", "as_released"])
def test_a_text_behind_a_soft_prompt_is_embedded_once_or_twice(embedded):
    model = made(ROW, tuner="soft_prompt", length=4, embedded=embedded)
    body, seen = model.body.pretrained, BATCH["attention_mask"]
    embeddings, types = body.embeddings, BATCH["token_type_ids"]
    words = embeddings.word_embeddings(BATCH["input_ids"])
    if embedded == "as_released":
        places = embeddings.position_embeddings.weight[:8]
        words = embeddings.LayerNorm(words + places + embeddings.token_type_embeddings(types))
        types = torch.zeros_like(types)
    whole = torch.cat([model.body.prompts.expand(3, -1, -1), words], dim=1)
    types = torch.cat([torch.zeros(3, 4, dtype=torch.long), types], dim=1)
    again = whole + embeddings.position_embeddings.weight[:12] + embeddings.token_type_embeddings(types)
    hidden = embeddings.LayerNorm(again)
    mask = torch.cat([torch.ones(3, 4), seen], dim=1)[:, None, None].bool()
    for layer in body.encoder.layer:
        hidden = layer(hidden, mask)
    states = hidden[:, 4:][seen.bool()]
    assert_near(model.body(BATCH).states[seen.bool()], states, rounded=TEXT)


@pytest.mark.parametrize("body_dropout", [True, False])
def test_the_body_behind_a_soft_prompt_drops_where_it_is_told(body_dropout):
    row = {**ROW, "random": {**SMALL, "hidden_dropout_prob": 0.5}}
    changes = {"tuner": "soft_prompt", "length": 4, "head": "predictor", "body_dropout": body_dropout}
    model = made(row, **changes).train()
    assert torch.equal(model(BATCH), model(BATCH)) != body_dropout


def test_training_says_that_the_pooler_is_drawn_and_a_trained_run_does_not(bare, tmp_path, capsys):
    run = toy.run(tmp_path, "", tuner="prefix", head="pooler", length=2, row=bare)
    says = "has no pooler: that of the head is drawn, and learns"
    assert says in capsys.readouterr().out
    (tmp_path / "new.csv").write_text("text\na song\n", "utf-8")
    predict_file(run, tmp_path / "new.csv", tmp_path / "out.csv", encoding="utf-8", device="cpu")
    assert says not in capsys.readouterr().out
