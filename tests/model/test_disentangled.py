"""DeBERTa: computed as transformers computes it, and a prefix that has content but no position."""

import warnings
from functools import partial

import deberta
import pytest
import torch
import toy
from deberta import KINDS, First, Second
from rounding import SLOPES, TEXT, assert_all_near, assert_near
from transformers import AutoModel

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.model import backbones
from tailprompt.model.bodies import added_mask
from tailprompt.model.compose import compose
from tailprompt.model.tuners.lora import PARTS
from tailprompt.model.weights import load_trained, write_weights

LENGTH, WORDS, WIDTH = 5, [[100], [200], [300]], 16
BATCH = {
    "input_ids": torch.arange(100, 124).view(3, 8),
    "attention_mask": torch.tensor([[1] * 8, [1] * 5 + [0] * 3, [1] * 3 + [0] * 5]),
    "token_type_ids": torch.zeros(3, 8, dtype=torch.long),
    "position": torch.tensor([0, 1, 0]),
}
THERE = BATCH["attention_mask"].bool()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The row of a small random DeBERTa of each form."""
    return {name: deberta.row(tmp_path_factory.mktemp("deberta"), name) for name in KINDS}


@pytest.fixture(params=KINDS)
def row(request, rows):
    return rows[request.param]


@pytest.fixture(params=["one", "two"])
def usual(request, rows):
    return rows[request.param]


def made(row, **changes):
    settings = {"tuner": "prefix", "head": "predictor", "input": "plain", **changes}
    if settings["tuner"] in ("prefix", "soft_prompt"):
        settings["length"] = LENGTH
    torch.manual_seed(0)
    model = compose(backbones.load(row), run_of(toy.settings("", **settings)), words=WORDS).eval()
    if settings["tuner"] == "prefix":
        for value in model.body.prefix.parameters():
            value.data.mul_(50)  # large enough to be seen
    return model


def zeroed(model):
    """The same model with a prefix of no length."""
    prefix = model.body.prefix
    prefix.keys, prefix.values = (torch.nn.Parameter(each[:, :0]) for each in (prefix.keys, prefix.values))
    return model


def whole(row):
    """The body as transformers reads it."""
    return AutoModel.from_pretrained(row["path"], dtype=torch.float32).eval()


def test_the_body_is_the_one_that_transformers_computes(row):
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    theirs, ours = whole(row)(**inputs), backbones.load(row).body.eval()(**inputs)
    assert_near(ours[0][THERE], theirs[0][THERE], rounded=TEXT)
    embedded = {"inputs_embeds": torch.randn(3, 8, WIDTH), "attention_mask": BATCH["attention_mask"]}
    theirs, ours = whole(row)(**embedded), backbones.load(row).body.eval()(**embedded)
    assert_near(ours[0][THERE], theirs[0][THERE], rounded=TEXT)


def test_its_slopes_are_those_that_transformers_computes(row):
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    slopes = []
    for body in (whole(row), backbones.load(row).body.eval()):
        body(**inputs)[0][THERE].square().mean().backward()
        slopes.append({name: value.grad for name, value in body.named_parameters() if value.grad is not None})
    assert_all_near(slopes[1], slopes[0], rounded=SLOPES * TEXT)


def test_a_prefix_of_no_length_is_the_plain_model(row):
    plain = made(row, tuner="frozen").body(BATCH).states
    assert_near(zeroed(made(row)).body(BATCH).states, plain, rounded=TEXT)


def test_padding_does_not_matter(row):
    model = made(row)
    alone = {key: value[1:2, :5] if value.ndim > 1 else value[1:2] for key, value in BATCH.items()}
    assert_near(model(alone), model(BATCH)[1:2], rounded=TEXT)
    assert (model(BATCH) - zeroed(made(row))(BATCH)).abs().max() > 0.01


def test_a_mask_that_is_added_hides_what_one_of_numbers_hides(usual):
    model = made(usual)
    body = partial(model.body.pretrained, input_ids=BATCH["input_ids"], prefix=model.body.prefix(3))
    masks = (BATCH["attention_mask"], added_mask(BATCH["attention_mask"], torch.float32))
    seen, hidden = (body(attention_mask=mask)[0][THERE] for mask in masks)
    assert torch.equal(seen, hidden)


def content_and_place(attention, kind):
    """The three projections, and those of distances: keys of the content, queries of the content."""
    if kind == "two, own keys":
        return (
            attention.query_proj,
            attention.key_proj,
            attention.value_proj,
            attention.pos_key_proj,
            (attention.pos_query_proj),
        )
    joint, heads = attention.in_proj.weight.view(2, 3, 8, WIDTH), []
    for part, bias in ((0, attention.q_bias), (1, None), (2, attention.v_bias)):
        heads.append(partial(torch.nn.functional.linear, weight=joint[:, part].flatten(0, 1), bias=bias))
    return *heads, attention.pos_proj, attention.pos_q_proj


@pytest.mark.parametrize("kind, span", [("one, short", 3), ("two, own keys", 6)])
def test_a_prefix_has_content_but_no_position(rows, kind, span):
    """An element of the attention at a time: He et al. 2021, Eq. 4, and a prefix as in P-Tuning v2's code."""
    model = made(rows[kind])
    body, (keys, values) = model.body.pretrained, model.body.prefix(3)[0]
    attention = body.encoder.layer[0].attention.self
    x = body.embeddings(BATCH["input_ids"], mask=BATCH["attention_mask"])
    query, key, value, key_of, query_of = (
        part(given).unflatten(-1, (2, 8))
        for part, given in zip(
            content_and_place(attention, kind),
            (x, x, x, *[body.encoder.rel_embeddings.weight] * 2),
            strict=True,
        )
    )
    expected = torch.zeros(3, 8, 2, 8)
    for example, head in torch.cartesian_prod(torch.arange(3), torch.arange(2)).tolist():
        tokens = range(int(BATCH["attention_mask"][example].sum()))
        for i in tokens:
            own = query[example, i, head]
            scores = [own @ each for each in keys[0, head]]
            for j in tokens:
                place, other = min(max(i - j + span, 0), 2 * span - 1), key[example, j, head]
                scores.append(own @ other + own @ key_of[place, head] + other @ query_of[place, head])
            share = (torch.stack(scores) / (3 * 8) ** 0.5).softmax(0)
            mixed = torch.cat([values[0, head], value[example, : len(tokens), head]])
            expected[example, i, head] = share @ mixed
    seen = []
    layer = body.encoder.layer[0].attention.output
    layer.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    model.body(BATCH)
    assert_near(seen[0][THERE], expected.flatten(2)[THERE], rounded=TEXT)


@pytest.mark.parametrize("layers, chosen", [("all", [0, 1]), ("2-2", [1])])
def test_each_chosen_layer_learns_and_nothing_else(usual, layers, chosen):
    model = made(usual, layers=layers).train()
    model(BATCH).square().sum().backward()
    prefix = model.body.prefix
    assert [layer for layer, pair in enumerate(prefix(3)) if pair is not None] == chosen
    assert all((value.grad.flatten(2).norm(dim=-1) > 0).all() for value in (prefix.keys, prefix.values))
    learned = {name for name, value in model.named_parameters() if value.requires_grad}
    assert learned == {f"body.prefix.{name}" for name in ("keys", "values")} | {
        f"head.predictor.{name}" for name in ("weight", "bias")
    }
    assert not any(value.grad is not None for value in model.body.pretrained.parameters())


@pytest.mark.parametrize("tuner", ["prefix", "soft_prompt", "lora"])
def test_what_is_written_and_loaded_scores_alike(usual, tuner, tmp_path):
    model = made(usual, tuner=tuner)
    write_weights(tmp_path / "weights.safetensors", model, tuned=False, keep=False)
    other = made(usual, tuner=tuner)
    load_trained(other, tmp_path)
    assert torch.equal(other(BATCH), model(BATCH))


def test_a_soft_prompt_stands_before_the_words(usual):
    model = made(usual, tuner="soft_prompt")
    words = model.body.pretrained.get_input_embeddings()(BATCH["input_ids"])
    embedded = torch.cat([model.body.prompts.expand(3, -1, -1), words], dim=1)
    mask = torch.cat([torch.ones(3, LENGTH, dtype=torch.long), BATCH["attention_mask"]], dim=1)
    theirs = whole(usual)(inputs_embeds=embedded, attention_mask=mask)[0][:, LENGTH:]
    assert_near(model.body(BATCH).states[THERE], theirs[THERE], rounded=TEXT)


def test_peft_scores_alike_with_the_same_changes(usual):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
    model = made(usual, tuner="lora")
    for change in model.body.lora.values():
        torch.nn.init.normal_(change.up)
    named = {"deberta": ["in_proj"], "deberta-v2": ["query_proj", "value_proj"]}[usual["family"]]
    rank = 8 * (2 if "in_proj" in named else 1)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=named)
    theirs = peft.inject_adapter_in_model(config, whole(usual)).eval().requires_grad_(False)
    for index, layer in enumerate(theirs.encoder.layer):
        place, attention = f"encoder_layer_{index}_attention_self", layer.attention.self
        for name in named:
            into, own = getattr(attention, name), model.body.lora
            if name == "in_proj":
                query, value = (own[f"{place}_in_proj_{part}"] for part in PARTS)
                up = torch.zeros(2, 3, 8, 16)  # heads, query to value, size of a head, rank
                up[:, 0, :, :8], up[:, 2, :, 8:] = query.up.view(2, 8, 8), value.up.view(2, 8, 8)
                down, up = torch.cat([query.down, value.down]), up.flatten(0, 2)
            else:
                down, up = own[f"{place}_{name}"].down, own[f"{place}_{name}"].up
            into.lora_A["default"].weight.data.copy_(down)
            into.lora_B["default"].weight.data.copy_(up)
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    given = theirs(**inputs)[0]
    assert_near(model.body(BATCH).states[THERE], given[THERE], rounded=TEXT)


def test_its_own_pooler_has_its_own_activation(usual):
    model = made(usual, tuner="frozen", head="pooler")
    theirs = {"deberta": First, "deberta-v2": Second}[usual["family"]].from_pretrained(usual["path"]).eval()
    first = {**BATCH, "position": torch.zeros(3, dtype=torch.long)}
    inputs = {key: BATCH[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    pooled = theirs.pooler(theirs.deberta(**inputs)[0])
    assert_near(model.features(first), pooled, rounded=TEXT)
    assert not model.head.layers.dense.weight.requires_grad


@pytest.mark.parametrize("method", ["finetune", "linear", "pt-input", "pt2", "lora"])
def test_each_method_of_the_paper_trains(usual, method, tmp_path):
    length = {"length": 4} if method in ("pt-input", "pt2") else {}
    run = toy.run(tmp_path, method, row=usual, input="plain", head="pooler", **length)
    assert toy.scores(run).notna().all(axis=None)


def test_longer_texts_than_its_table_of_distances(rows, monkeypatch):
    row = rows["two"]
    monkeypatch.setattr("tailprompt.model.disentangled.MOST", 2)
    inputs = {
        "input_ids": torch.arange(100, 160)[None],
        "attention_mask": torch.ones(1, 60, dtype=torch.long),
    }
    body = backbones.load(row).body.eval()
    body(**{key: value[:, :3] for key, value in inputs.items()})
    assert_near(body(**inputs)[0], whole(row)(**inputs)[0], rounded=TEXT)


def test_positions_end_where_a_checkpoint_has_a_table_of_them(rows):
    assert backbones.load(rows["two, absolute"]).positions == 40
    assert backbones.load(rows["two"]).positions == torch.inf


@pytest.mark.parametrize(
    "kind, family, said",
    [
        ("one", "deberta-v2", "is of the family 'deberta', but its row says family: deberta-v2"),
        ("two", "bert", "is of the family 'deberta', but its row says family: bert"),
    ],
)
def test_another_family_is_refused(rows, kind, family, said):
    with pytest.raises(BadInput, match=said):
        backbones.load({**rows[kind], "family": family})


def test_heads_that_read_words_are_refused(usual):
    with pytest.raises(BadInput, match="norm: pretrained reads a masked-language-model head, which the back"):
        made(usual, tuner="frozen", head="linear", norm="pretrained")
