"""P-Tuning v2's prefix: equal to other routes to the same keys and values, and what learns of it."""

import inspect
import math
import warnings
from functools import partial

import pytest
import tiny_vit
import torch
import toy
import toy_images
from conftest import ROW, ROW_T5, SHIPPED, SMALL
from rounding import TEXT, assert_near
from safetensors.torch import load_file, save_file
from transformers import DynamicCache

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.model import backbones
from tailprompt.model.attention import block, embed
from tailprompt.model.bodies import added_mask
from tailprompt.model.compose import compose
from tailprompt.model.weights import held, load_trained, write_weights

LENGTH, WORDS = 5, [[100], [200], [300]]
BATCH = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.tensor([[1] * 8, [1] * 5 + [0] * 3, [1] * 3 + [0] * 5]),
    "token_type_ids": torch.tensor([[0] * 4 + [1] * 4] * 3),
    "position": torch.tensor([0, 1, 0]),
}
PIXELS = {"pixels": tiny_vit.images(3)}


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    """A row of a small random RoBERTa, with the tokenizer of the BERT that ships."""
    from transformers import AutoTokenizer, RobertaConfig, RobertaForMaskedLM

    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = AutoTokenizer.from_pretrained(f"{SHIPPED}bert-mini")
    config = RobertaConfig(
        **SMALL, vocab_size=len(tokenizer), max_position_embeddings=40, type_vocab_size=2, pad_token_id=0
    )
    torch.manual_seed(0)
    RobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"family": "roberta", "path": str(folder)}


@pytest.fixture(params=["bert", "roberta"])
def row(request):
    return ROW if request.param == "bert" else request.getfixturevalue("roberta")


@pytest.fixture
def peft():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("peft")


def told(**changes):
    settings = {"tuner": "prefix", "length": LENGTH, "head": "predictor", "input": "plain", **changes}
    if settings["tuner"] != "prefix":
        settings.pop("length")
    return run_of(toy.settings("", **settings))


def made(row, **changes):
    """A model whose prefix is large enough to be seen."""
    torch.manual_seed(0)
    model = compose(backbones.load(row), told(**changes), words=WORDS).eval()
    return enlarged(model)


def enlarged(model):
    for value in model.body.prefix.parameters():
        value.data.mul_(50)
    return model


def t5_made(**changes):
    return made(ROW_T5, head="verbalizer", input="formatted", template="soft", **changes)


def of_images(**changes):
    torch.manual_seed(0)
    run = run_of(toy_images.settings("", tuner="prefix", length=LENGTH, **changes))
    return enlarged(compose(tiny_vit.backbone(tiny_vit.vit()), run, words=WORDS).eval())


def zeroed(model, positions=None):
    """The same model with a prefix of no length."""
    if positions == "kept":
        model.body.first = None
    prefix = model.body.prefix
    prefix.keys, prefix.values = (torch.nn.Parameter(each[:, :0]) for each in (prefix.keys, prefix.values))
    return model


def cache_of(prefix, batch):
    """The keys and values as the cache of a decoder."""
    cache = DynamicCache()
    for layer, (key, value) in enumerate(prefix(batch)):
        cache.update(key.expand(batch, -1, -1, -1), value.expand(batch, -1, -1, -1), layer)
    return cache


def test_it_is_what_the_route_through_the_cache_gives(row):
    model = made(row, positions="shifted")
    ours = model.body(BATCH).states
    body = backbones.load(row).body.eval()
    seen = torch.cat([torch.ones(3, LENGTH), BATCH["attention_mask"]], dim=1)[:, None, None]
    first = body.config.max_position_embeddings - backbones.load(row).positions + LENGTH
    name = "cache" if "cache" in inspect.signature(body.encoder.forward).parameters else "past_key_values"
    theirs = body(
        input_ids=BATCH["input_ids"],
        token_type_ids=BATCH["token_type_ids"],
        position_ids=(first + torch.arange(8))[None],
        attention_mask=(1 - seen) * torch.finfo(torch.float32).min,
        **{name: cache_of(model.body.prefix, 3)},
    ).last_hidden_state
    there = BATCH["attention_mask"].bool()
    assert (ours - zeroed(model, positions="kept").body(BATCH).states)[there].abs().max() > 0.1
    assert_near(ours[there], theirs[there], rounded=TEXT)


def test_it_is_what_peft_makes_of_it(row, peft):
    model = made(row, positions="shifted")
    prefix = model.body.prefix
    config = peft.PrefixTuningConfig(task_type="FEATURE_EXTRACTION", num_virtual_tokens=LENGTH)
    theirs = peft.get_peft_model(backbones.load(row).body, config).eval()
    both = torch.stack([prefix.keys, prefix.values], dim=1).permute(2, 0, 1, 3).flatten(1)
    theirs.prompt_encoder["default"].embedding.weight.data.copy_(both)
    given = theirs(input_ids=BATCH["input_ids"], attention_mask=BATCH["attention_mask"]).last_hidden_state
    untyped = {**BATCH, "token_type_ids": torch.zeros_like(BATCH["token_type_ids"])}  # peft leaves them out
    there = BATCH["attention_mask"].bool()
    assert_near(model.body(untyped).states[there], given[there], rounded=TEXT)


def test_a_prefix_of_no_length_is_the_plain_model(row):
    plain = compose(backbones.load(row), told(tuner="frozen"), words=WORDS).eval().body(BATCH).states
    assert torch.equal(zeroed(made(row)).body(BATCH).states, plain)


def test_a_prefix_of_no_length_is_the_plain_t5_and_vit():
    settings = {"tuner": "frozen", "head": "verbalizer", "input": "formatted", "template": "soft"}
    plain = compose(backbones.load(ROW_T5), told(**settings), words=WORDS).eval().body(BATCH).states
    assert torch.equal(zeroed(t5_made()).body(BATCH).states, plain)
    vit = tiny_vit.vit().eval()
    features = vit.forward_features(PIXELS["pixels"])[:, 0]
    torch.testing.assert_close(zeroed(of_images()).body(PIXELS).vector, features)


def test_padding_does_not_matter(row):
    model = made(row, positions="shifted", layers="2-2")
    alone = {key: value[1:2, :5] if value.ndim > 1 else value[1:2] for key, value in BATCH.items()}
    assert_near(model(alone), model(BATCH)[1:2], rounded=TEXT)


def test_a_mask_that_is_added_hides_what_one_of_booleans_hides(row):
    model = made(row)
    inputs = {key: BATCH[key] for key in ("input_ids", "token_type_ids")}
    added = added_mask(BATCH["attention_mask"], torch.float32)
    body = partial(model.body.pretrained, **inputs, prefix=model.body.prefix(3))
    there = BATCH["attention_mask"].bool()
    seen, hidden = (body(attention_mask=mask)[0][there] for mask in (BATCH["attention_mask"], added))
    assert_near(seen, hidden, rounded=TEXT)


def test_positions_are_kept_unless_they_are_shifted(row):
    kept, shifted = made(row), made(row, positions="shifted")
    table = kept.body.pretrained.embeddings.position_embeddings.weight
    with torch.no_grad():
        table[: -LENGTH or None] = table[LENGTH:].clone()  # as if all began later
    there = BATCH["attention_mask"].bool()
    torch.testing.assert_close(kept.body(BATCH).states[there], shifted.body(BATCH).states[there])


@pytest.mark.parametrize("layers, chosen", [("all", [0, 1, 2, 3]), ("1-2", [0, 1]), ("4-4", [3])])
def test_each_chosen_layer_learns_and_no_other(layers, chosen):
    row = {**ROW, "random": {**SMALL, "num_hidden_layers": 4}}
    for model, batch in ((made(row, layers=layers), BATCH), (of_images(layers=layers), PIXELS)):
        prefix = model.body.prefix
        pairs = prefix(3)
        assert [layer for layer, pair in enumerate(pairs) if pair is not None] == chosen
        model(batch).square().sum().backward()
        for value in (prefix.keys, prefix.values):
            assert value.shape[0] == len(chosen)
            assert (value.grad.flatten(2).norm(dim=-1) > 0).all()
        learned = {name for name, value in model.body.named_parameters() if value.requires_grad}
        assert learned == {"prefix.keys", "prefix.values"}


@pytest.mark.parametrize("body_dropout", [True, False])
def test_the_frozen_body_drops_where_it_is_told(body_dropout):
    row = {**ROW, "random": {**SMALL, "hidden_dropout_prob": 0.5}}
    model = made(row, body_dropout=body_dropout, prefix_dropout=0.0).train()
    assert torch.equal(model(BATCH), model(BATCH)) != body_dropout


def test_dropout_differs_between_examples_and_ends_with_training():
    model = made(ROW, prefix_dropout=0.5)
    same = {key: value[:1].expand(3, *value.shape[1:]) for key, value in BATCH.items()}
    assert torch.equal(model(same)[0], model(same)[1])
    model.train()
    key, _ = model.body.prefix(3)[0]
    assert not torch.equal(key[0], key[1])
    assert 0.2 < (key == 0).float().mean() < 0.8


def test_the_network_makes_what_the_released_code_makes():
    network = made(ROW, mlp=True, mlp_hidden=7).body.prefix.network
    first, _, last = network.layers
    hidden = torch.tanh(network.embedding @ first.weight.T + first.bias)
    flat = hidden @ last.weight.T + last.bias
    # P-Tuning v2's code: view(length, 2 layers, heads, size), permute([2, 0, 3, 1, 4]).split(2)
    pairs = flat.view(LENGTH, 4, 2, 8).permute(1, 2, 0, 3).split(2)
    prefix = made(ROW, mlp=True, mlp_hidden=7).body.prefix
    for ours, (key, value) in zip(prefix(1), pairs, strict=True):
        torch.testing.assert_close(ours[0][0], key)
        torch.testing.assert_close(ours[1][0], value)


@pytest.mark.parametrize("mlp", [True, False])
def test_what_is_written_is_keys_and_values_and_scores_alike(mlp, tmp_path):
    model = made(ROW, mlp=mlp, layers="2-2")
    write_weights(tmp_path / "weights.safetensors", model, tuned=False, keep=False)
    written = load_file(tmp_path / "weights.safetensors")
    head = {"head.predictor.weight", "head.predictor.bias", "class_vectors"}
    assert written.keys() == {"body.prefix.keys", "body.prefix.values", *head}
    assert written["body.prefix.keys"].shape == (1, LENGTH, 16)
    torch.manual_seed(1)
    other = compose(backbones.load(ROW), told(mlp=mlp, layers="2-2"), words=WORDS).eval()
    load_trained(other, tmp_path)
    assert torch.equal(other(BATCH), model(BATCH))
    assert other.body.prefix.keys.requires_grad


def test_weights_without_a_prefix_or_with_another_are_refused(tmp_path):
    model = made(ROW)
    save_file(
        {name: model.get_parameter(name).data for name in held(model) if "head" in name},
        tmp_path / "weights.safetensors",
    )
    with pytest.raises(
        BadInput, match="has no body.prefix.keys; name the run of a method with tuner: prefix"
    ):
        load_trained(model, tmp_path)
    write_weights(tmp_path / "weights.safetensors", made(ROW, length=LENGTH + 1), tuned=False, keep=False)
    with pytest.raises(BadInput, match="is of another model"):
        load_trained(model, tmp_path)


def test_a_t5_adds_no_bias_to_a_prefix():
    model = t5_made()
    encoder, prefix = model.body.pretrained.encoder, model.body.prefix
    first = encoder.block[0].layer[0]
    x = first.layer_norm(encoder.embed_tokens(BATCH["input_ids"]))
    attention, (keys, values) = first.SelfAttention, prefix(3)[0]
    query, key, value = (part(x).view(3, 8, 2, 8) for part in (attention.q, attention.k, attention.v))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) + attention.compute_bias(8, 8)
    scores = scores.masked_fill(BATCH["attention_mask"][:, None, None] == 0, -torch.inf)
    before = torch.einsum("bqhd,bhkd->bhqk", query, keys.expand(3, -1, -1, -1))
    shares = torch.cat([before, scores], dim=-1).softmax(
        -1
    )  # Li and Liang 2021, Eq. 7: of both in one softmax
    mixed = torch.einsum("bhqk,bhkd->bqhd", shares[..., :LENGTH], values.expand(3, -1, -1, -1))
    mixed = mixed + torch.einsum("bhqk,bkhd->bqhd", shares[..., LENGTH:], value)
    seen = []
    attention.register_forward_hook(lambda module, given, output: seen.append(output[0]))
    model.body(BATCH)
    assert_near(seen[0], attention.o(mixed.flatten(2)), rounded=TEXT)


def test_a_vit_attends_to_keys_and_values_as_they_are():
    model = of_images()
    layer, (keys, values) = model.body.pretrained.blocks[0], model.body.prefix(3)[0]
    x = embed(model.body.pretrained, PIXELS["pixels"])
    query, key, value = layer.attn.qkv(layer.norm1(x)).view(3, -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
    key, value = (
        torch.cat([keys.expand(3, -1, -1, -1), key], 2),
        torch.cat([values.expand(3, -1, -1, -1), value], 2),
    )
    mixed = (query @ key.mT / math.sqrt(8)).softmax(-1) @ value
    after = x + layer.ls1(layer.attn.proj(mixed.transpose(1, 2).flatten(2)))
    after = after + layer.ls2(layer.mlp(layer.norm2(after)))
    ours = block(layer, x, prefix=(keys, values))
    assert_near(ours, after, rounded=TEXT)
