"""Heads: parity with the pretrained head whole, GLEE's variants, and norm scaling."""

import pandas as pd
import pytest
import torch
import toy
from batches import batch_of
from conftest import ROW
from rounding import TEXT, assert_near
from transformers import AutoModelForMaskedLM

from tailprompt.components import heads as told
from tailprompt.components.resolve import options, run_of
from tailprompt.errors import BadInput
from tailprompt.inputs.encode import encode, encode_words
from tailprompt.model import backbones
from tailprompt.model.compose import compose
from tailprompt.model.heads import HEADS, NORMS, Verbalizer, linear, scale_by_norm
from tailprompt.model.heads import predictor as one_layer
from tailprompt.training.precision import rounded

WORDS = {"a": "kernel", "b": "video games", "c": "网络"}
CLASSES = [[], [], []]
PLAIN = {"norm": told.NoNorm(), "predictor": told.LinearPredictor()}


def dense(backbone, **changes):
    """GLEE's CLS head of three classes."""
    return linear(backbone, told.Linear(**PLAIN | changes), CLASSES)


LINEAR = told.LinearPredictor()


def single(backbone, predictor=LINEAR, **changes):
    """The one layer of images, of three classes."""
    return one_layer(backbone, told.Predictor(predictor=predictor, **changes), CLASSES)


def composed(backbone, words, **changes):
    return compose(backbone, run_of(toy.settings("", **changes)), words=words)


@pytest.fixture
def hidden(backbone):
    return torch.randn(5, backbone.width, generator=torch.Generator().manual_seed(1))


def test_verbalizer_equals_the_whole_pretrained_head_averaged_over_word_tokens(backbone):
    real = AutoModelForMaskedLM.from_pretrained(ROW["path"], dtype=torch.float32).eval()
    whole = backbones.load({"family": "bert", "path": ROW["path"]})
    words = encode_words(WORDS, whole.tokenizer)
    model = composed(whole, words, head="verbalizer").eval()
    form = {"input": "prompted", "template": "{text} it is {mask} .", "max_length": 16, "positions": 512}
    rows = pd.DataFrame({"id": ["x", "y"], "text": ["the linux kernel", "a game"], "label": [0, 1]})
    examples = encode(rows, whole.tokenizer, **form)
    inputs, _ = batch_of(examples, torch.arange(2))
    position = inputs.pop("position")
    with torch.no_grad():
        vocabulary = real(**inputs).logits[torch.arange(2), position]
        expected = torch.stack([vocabulary[:, ids].mean(-1) for ids in words], -1)
        assert_near(model({**inputs, "position": position}), expected, rounded=TEXT)


def test_pretrained_norm_starts_from_the_head_of_the_backbone_and_fresh_norm_does_not(backbone):
    with torch.no_grad():
        backbone.norm.weight.mul_(1.7)
        backbone.norm.bias.add_(0.3)
    copied = dense(backbone, norm=told.PretrainedNorm()).layers.norm
    assert torch.equal(copied.weight, backbone.norm.weight) and torch.equal(copied.bias, backbone.norm.bias)
    assert copied.weight is not backbone.norm.weight and copied.eps == backbone.norm.eps
    fresh = dense(backbone, norm=told.FreshNorm()).layers.norm
    assert (fresh.weight == 1).all() and (fresh.bias == 0).all() and fresh.eps == backbone.norm.eps


def test_as_released_norm_has_its_own_eps(backbone):
    assert dense(backbone, norm=told.FreshNorm(norm_eps=1e-5)).layers.norm.eps == 1e-5


def test_tied_verbalizer_trains_the_input_embedding_and_untied_does_not(backbone, hidden):
    words = encode_words(WORDS, backbone.tokenizer)
    embedding = backbone.body.embeddings.word_embeddings.weight
    for tied in (True, False):
        embedding.grad = None
        head = Verbalizer(backbone, words, tied=tied)
        head.logits(head.features(hidden)).sum().backward()
        assert (embedding.grad is not None) == tied
        assert torch.equal(head.class_vectors(), Verbalizer(backbone, words).class_vectors())


def test_class_vectors_and_bias_score_like_the_head(backbone, hidden):
    for head in (Verbalizer(backbone, encode_words(WORDS, backbone.tokenizer)), dense(backbone)):
        features = head.eval().features(hidden)
        assert_near(head.logits(features), features @ head.class_vectors().T + head.bias(), rounded=TEXT)


def test_scaling_by_norm_to_the_power_zero_changes_nothing_and_to_one_gives_unit_vectors(hidden):
    vectors, bias = torch.randn(3, hidden.shape[1]), torch.randn(3)
    logits = hidden @ vectors.T + bias
    assert_near(scale_by_norm(logits, vectors, bias, 0.0), logits, rounded=TEXT)
    unit = hidden @ torch.nn.functional.normalize(vectors, dim=-1).T
    assert_near(scale_by_norm(logits, vectors, bias, 1.0), unit + bias, rounded=TEXT)
    released = scale_by_norm(logits, vectors, bias, 1.1, divide_bias=True)
    assert_near(released, logits / vectors.norm(dim=-1) ** 1.1, rounded=TEXT)


def test_eta_acts_when_the_model_predicts_and_not_when_it_trains(backbone):
    words = encode_words(WORDS, backbone.tokenizer)
    model = composed(backbone, words, eta=1.1, dropout=0.0)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    row = pd.DataFrame({"id": ["x"], "text": ["x"], "label": [0]})
    examples = encode(row, backbone.tokenizer, input="plain", max_length=8, positions=512)
    inputs, _ = batch_of(examples, torch.arange(1))
    training, predicting = model.train()(inputs), model.eval()(inputs)
    bias = model.head.bias()
    assert_near(
        (training - bias) / model.head.class_vectors().norm(dim=-1) ** 1.1 + bias, predicting, rounded=TEXT
    )


def test_cosine_predictor_is_bounded_by_its_scale(backbone, hidden):
    head = dense(backbone, predictor=told.CosinePredictor(logit_scale=30.0)).eval()
    logits = head.logits(head.features(hidden))
    assert logits.abs().max() <= 30.0
    assert_near(head.logits(2 * head.features(hidden)), logits, rounded=TEXT)
    assert head.predictor.bias is None and not head.bias().any()


def test_the_cosine_predictor_of_images_is_the_angle_times_its_scale_and_has_no_bias(backbone, hidden):
    head = single(backbone, told.CosinePredictor(logit_scale=20.0)).eval()
    angles = [
        [torch.dot(one, other) / one.norm() / other.norm() for other in head.class_vectors().detach()]
        for one in hidden
    ]
    assert_near(head.logits(head.features(hidden)), 20 * torch.tensor(angles), rounded=TEXT)
    assert [name for name, _ in head.named_parameters()] == ["predictor.weight"] and not head.bias().any()
    assert torch.allclose(head.class_vectors().norm(dim=-1), torch.ones(3))


def test_the_linear_predictor_of_images_is_linear_and_drops_features_in_training_only(backbone, hidden):
    head = single(backbone, told.LinearPredictor(), dropout=0.5).eval()
    torch.nn.init.normal_(head.predictor.bias)
    assert torch.equal(head.features(hidden), hidden)
    assert_near(head.logits(hidden), hidden @ head.class_vectors().T + head.bias(), rounded=TEXT)
    assert (head.train().features(hidden) == 0).any()


def test_frozen_body_gets_no_gradient_and_the_head_does(backbone):
    words = encode_words(WORDS, backbone.tokenizer)
    for head in ("linear", "verbalizer"):
        model = composed(backbone, words, tuner="frozen", head=head)
        assert not any(value.requires_grad for value in model.body.parameters())
        assert all(value.requires_grad for value in model.head.parameters())


@pytest.mark.parametrize(
    "key, value", [("head", "verbaliser"), ("activation", "relux"), ("norm", "batch"), ("tuner", "loro")]
)
def test_an_unknown_part_is_one_sentence_with_the_known_ones(backbone, key, value):
    with pytest.raises(BadInput, match=f"(unknown .*|{key} is) '{value}'; (known|allowed with linear): "):
        composed(backbone, [[5], [6]], **{key: value})


def test_every_declared_head_and_norm_is_there_and_none_else():
    assert options("head").keys() == HEADS.keys() and options("norm").keys() == NORMS.keys()


def test_a_frozen_body_drops_nothing_unless_it_is_told_to(backbone):
    backbone.body.requires_grad_(True)
    for module in backbone.body.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    row = pd.DataFrame({"id": ["x"], "text": ["the linux kernel"], "label": [0]})
    batch, _ = batch_of(
        encode(row, backbone.tokenizer, input="plain", max_length=8, positions=512), torch.arange(1)
    )
    words = encode_words(WORDS, backbone.tokenizer)
    rests = composed(backbone, words, tuner="frozen").body
    expected = rests.eval()(batch).vector
    assert torch.equal(rests.train()(batch).vector, expected)
    drops = composed(backbone, words, tuner="frozen", body_dropout=True).body.train()
    assert not torch.allclose(drops(batch).vector, expected)


@pytest.mark.parametrize("head", [{"head": "linear"}, {"head": "verbalizer", "input": "prompted"}], ids=str)
def test_logits_are_exact_where_the_body_computes_in_bfloat16(backbone, head):
    words = encode_words(WORDS, backbone.tokenizer)
    model = composed(backbone, words, tuner="full", **head).eval()
    row = pd.DataFrame({"id": ["x"], "text": ["the linux kernel"], "label": [0]})
    told = {"input": head.get("input", "plain"), "template": "{text} is {mask} .", "max_length": 12}
    batch, _ = batch_of(encode(row, backbone.tokenizer, positions=512, **told), torch.arange(1))
    with torch.no_grad(), rounded(model):
        vector, logits = model.read(batch).vector, model(batch)
    assert vector.dtype == torch.bfloat16 and logits.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())
