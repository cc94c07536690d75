"""Soft prompts on frozen T5s and masked language models: what learns, what does not, where they start."""

import pandas as pd
import pytest
import torch
import toy
from batches import batch_of
from rounding import T5, assert_near
from safetensors.torch import load_file
from torch.nn import functional as F
from transformers import AutoModelForMaskedLM, T5ForConditionalGeneration

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.inputs.examples import encode_rows, word_ids, word_texts
from tailprompt.inputs.tokens import tokenize
from tailprompt.model import backbones
from tailprompt.model.bodies import TextBody
from tailprompt.model.compose import NEVER, compose
from tailprompt.model.tuners.soft import FREQUENT, first_prompt, top_words
from tailprompt.training.objective import objective

SHIPPED = "workflow/resources/backbones"
WORDS = {"0": "bad", "1": "good"}
RUN = {
    "input": "formatted",
    "head": "verbalizer",
    "tuner": "soft_prompt",
    "length": 7,
    "template": "soft",
}
TABLE = pd.DataFrame(
    {"id": list("abc"), "label": [0, 1, 0], "text": ["a good film", "it was so dull " * 4, "no"]}
)
INITS = ("normal", "vocabulary", "top_words", "label_words", "task_words", "as_released")


@pytest.fixture(params=["t5", "bert"])
def backbone(request):
    torch.manual_seed(0)
    return backbones.load({"family": request.param, "path": f"{SHIPPED}/{request.param}-mini"})


def told(*, form="ssc", **changes):
    """The run of a prompt of seven vectors, or of what `changes` make of it."""
    settings = {**RUN, "max_length": 40, **changes}
    if settings["tuner"] != "soft_prompt":
        settings.pop("length")
    return run_of(toy.settings("", form=form, **settings))


def answers(backbone, words=WORDS, run=None):
    """Token ids of the classes' words."""
    return word_ids(list(words), words, backbone, run or told())


def composed(backbone, **changes):
    run = told(**changes)
    texts = word_texts(TABLE, backbone, run)
    model = compose(backbone, run, words=answers(backbone), texts=texts)
    return model, encode_rows(TABLE, backbone, run, words=WORDS)


def test_the_prompt_learns_and_the_rest_stays_to_the_bit(backbone):
    model, examples = composed(backbone)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learned = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=0.1)
    inputs, labels = batch_of(examples, torch.arange(3))
    model.train()
    F.cross_entropy(model(inputs), labels).backward()
    assert (model.body.prompts.grad.norm(dim=1) > 0).all()
    optimizer.step()
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert changed == ["body.prompts"] == [n for n, value in model.named_parameters() if value.requires_grad]


def test_an_example_scores_alike_alone_and_padded_in_a_batch(backbone):
    model, examples = composed(backbone)
    model.eval()
    together = model(batch_of(examples, torch.arange(3))[0])
    alone = torch.cat([model(batch_of(examples, torch.tensor([i]))[0]) for i in range(3)])
    assert_near(together, alone, rounded=T5)


def test_t5_scores_are_those_of_its_own_generation_head():
    row = {"family": "t5", "path": f"{SHIPPED}/t5-mini"}
    model, examples = composed(backbones.load(row), tuner="full")
    own = T5ForConditionalGeneration.from_pretrained(row["path"], dtype=torch.float32).eval()
    inputs, _ = batch_of(examples, torch.arange(3))
    start = torch.tensor([[0, backbones.sentinel(backbones.load(row).tokenizer)]]).expand(3, -1)
    logits = own(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], decoder_input_ids=start
    ).logits
    words = [ids[0] for ids in answers(backbones.load(row))]
    assert_near(model.eval()(inputs), logits[:, -1, words], rounded=T5)


def test_open_decoding_is_the_softmax_of_the_whole_vocabulary():
    backbone = backbones.load({"family": "bert", "path": f"{SHIPPED}/bert-mini"})
    model, examples = composed(backbone, tuner="full", decoding="open")
    own = AutoModelForMaskedLM.from_pretrained(f"{SHIPPED}/bert-mini", dtype=torch.float32).eval()
    inputs, _ = batch_of(examples, torch.arange(3))
    position = inputs["position"]
    logits = own(inputs["input_ids"], inputs["attention_mask"]).logits[torch.arange(3), position]
    words = [ids[0] for ids in answers(backbone)]
    assert_near(model.train()(inputs).log_softmax(-1)[:, :2], logits.log_softmax(-1)[:, words], rounded=T5)
    winner = model.eval()(inputs).argmax(-1)
    assert torch.equal(winner == 2, ~torch.isin(logits.argmax(-1), torch.tensor(words)))


@pytest.mark.parametrize("ending", [False, True])
def test_the_released_loss_is_that_of_t5s_generation_of_the_sentinel_and_the_answer(ending):
    row = {"family": "t5", "path": f"{SHIPPED}/t5-mini"}
    backbone = backbones.load(row)
    released = {"tuner": "full", "decoding": "open", "sentinel_loss": True, "template": "soft_as_released"}
    released["ending_loss"] = ending  # in pre-training there is one more sentinel
    model, examples = composed(backbone, **released)
    own = T5ForConditionalGeneration.from_pretrained(row["path"], dtype=torch.float32).eval()
    inputs, labels = batch_of(examples, torch.arange(3))
    words = torch.tensor(answers(backbone))
    said = torch.cat([torch.full((3, 1), backbones.sentinel(backbone.tokenizer)), words[labels]], dim=1)
    if ending:
        after = backbone.tokenizer.convert_tokens_to_ids("<extra_id_1>")
        said = torch.cat([said, torch.full((3, 1), after)], dim=1)
    wanted = own(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=said).loss
    model.eval().training = True  # without dropout
    model.head.training = True
    cost = objective(told(**released).training, torch.ones(3))
    assert_near(cost(model(inputs), labels, 0, 0.0).mean(), wanted, rounded=T5)


def test_a_masked_language_model_has_no_sentinel_to_lose_by():
    backbone = backbones.load({"family": "bert", "path": f"{SHIPPED}/bert-mini"})
    model, examples = composed(backbone, decoding="open", sentinel_loss=True)
    assert model.train()(batch_of(examples, torch.arange(3))[0]).shape == (3, 3)


def test_open_decoding_refuses_words_of_several_tokens():
    backbone = backbones.load({"family": "bert", "path": f"{SHIPPED}/bert-mini"})
    with pytest.raises(BadInput, match="decoding: open takes words of one token each"):
        compose(backbone, told(decoding="open"), words=[[5], [6, 7]], texts=())


def test_an_option_that_is_not_there_is_never_chosen():
    backbone = backbones.load({"family": "t5", "path": f"{SHIPPED}/t5-mini"})
    run = told(form="mcc")
    options = [["one", "two", "three"], ["one", "two"]]
    rows = TABLE.head(2).assign(choices=options)
    words = {"0": "", "1": "", "2": ""}
    model = compose(backbone, run, words=answers(backbone, words, run), texts=())
    inputs, _ = batch_of(encode_rows(rows, backbone, run, words=words), torch.arange(2))
    logits = model.eval()(inputs)
    assert logits[1, 2] == NEVER and (logits[0] > NEVER).all()


@pytest.mark.parametrize("init", INITS)
def test_a_prompt_starts_where_its_init_says(backbone, init):
    table = backbone.body.get_input_embeddings().weight.detach()
    words = [[10, 11], [12]]
    torch.manual_seed(3)
    texts = tokenize(backbone.tokenizer, list(TABLE["text"]))
    prompt = first_prompt(init, 8, table, backbone.tokenizer, words=words, texts=texts, scale=100.0)
    assert prompt.shape == (8, table.shape[1]) and prompt.isfinite().all()
    rows = [(table == vector).all(1).any() for vector in prompt]
    assert all(rows) == (init not in ("normal", "as_released"))
    if init == "normal":
        assert abs(prompt.std() / table.std() - 1) < 0.1
    if init == "as_released":
        assert (prompt == prompt[0]).all() and 0.05 < prompt.std() < 0.2
    if init == "task_words":
        used = table[torch.tensor([token for ids in texts for token in ids])]
        assert all((used == vector).all(1).any() for vector in prompt)
    if init == "label_words":
        assert torch.equal(prompt, table[torch.tensor([10, 11, 12, 10, 11, 12, 10, 11])])


def test_top_words_are_a_thousand_and_whole(backbone):
    tokens = backbone.tokenizer.convert_ids_to_tokens(top_words(backbone.tokenizer, [], []))
    assert len(tokens) == FREQUENT and not [token for token in tokens if token.startswith(("##", "["))]


def test_words_that_are_not_there_and_unknown_inits_are_refused(backbone):
    table = backbone.body.get_input_embeddings().weight
    with pytest.raises(BadInput, match="init: task_words finds no word"):
        first_prompt("task_words", 8, table, backbone.tokenizer, words=[], texts=[])
    with pytest.raises(BadInput, match="unknown init 'zeros'; known: label_words"):
        first_prompt("zeros", 8, table, backbone.tokenizer, words=[])


def test_scale_is_a_change_of_space_not_of_function(backbone):
    prompt = torch.randn(4, backbone.width)
    inputs = {"input_ids": torch.tensor([[5, 6]]), "attention_mask": torch.ones(1, 2, dtype=torch.long)}
    inputs |= {
        "token_type_ids": torch.zeros(1, 2, dtype=torch.long),
        "position": torch.zeros(1, dtype=torch.long),
    }
    states = [
        TextBody(backbone.body, prompts=prompt, scale=scale, rests=True).eval()(inputs).states
        for scale in (1.0, 100.0)
    ]
    assert_near(*states, rounded=T5)


def test_text_and_prompt_share_the_positions():
    backbone = backbones.load({"family": "bert", "path": f"{SHIPPED}/bert-mini"})
    with pytest.raises(
        BadInput,
        match="max_length 510 is more than the 505 positions .* lower it, or length",
    ):
        encode_rows(TABLE, backbone, told(max_length=510), words=WORDS)


def test_a_run_starts_from_the_prompt_of_another_and_from_no_run_without(tmp_path):
    first = toy.run(tmp_path, "", **RUN)
    second = toy.run(tmp_path, "", seed=2, start=first, **{**RUN, "template": "hybrid"}, lr=1e-12)
    prompts = [load_file(run / "weights.safetensors")["body.prompts"] for run in (first, second)]
    assert_near(*prompts, rounded=T5)
    with pytest.raises(
        BadInput, match="has no body.prompts; name the run of a method with tuner: soft_prompt in start"
    ):
        toy.run(tmp_path, "", seed=3, start=toy.run(tmp_path, "prompt"), **RUN)
