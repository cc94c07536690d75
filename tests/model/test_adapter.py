"""Soft prompts and prefixes in peft's format, both ways: equal outputs, and what is refused."""

import json
import warnings

import pytest
import torch
import toy
from rounding import TEXT, assert_near
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from tailprompt.components.resolve import run_of
from tailprompt.errors import BadInput
from tailprompt.export import export
from tailprompt.model import adapter, backbones
from tailprompt.model.bodies import TextBody
from tailprompt.model.compose import compose
from tailprompt.model.weights import load_trained

SHIPPED = "workflow/resources/backbones"
KINDS = {"t5": AutoModelForSeq2SeqLM, "bert": AutoModelForMaskedLM}
SOFT = {
    "input": "formatted",
    "head": "verbalizer",
    "tuner": "soft_prompt",
    "length": 5,
    "template": "soft",
}


@pytest.fixture(params=KINDS)
def row(request):
    return {"family": request.param, "path": f"{SHIPPED}/{request.param}-mini"}


def inputs(backbone):
    """Two inputs of different length, padded, with a sentinel or mask."""
    ids = torch.tensor([[20, 21, backbones.sentinel(backbone.tokenizer), 22], [23, 24, 0, 0]])
    ids[1, 1] = backbones.sentinel(backbone.tokenizer)
    return {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])}


def ours(backbone, prompt, scale=1.0):
    """Vocabulary logits where the answer stands, of the first input and the second."""
    given = inputs(backbone)
    body = TextBody(backbone.body, prompts=prompt, scale=scale, rests=True).eval()
    at = torch.tensor([0, 0] if backbone.tokenizer.mask_token_id is None else [2, 1])
    batch = {**given, "token_type_ids": torch.zeros_like(given["input_ids"]), "position": at}
    return backbone.decoder(backbone.transform(body(batch).vector))


def pefts(peft_model, backbone, length):
    given = inputs(backbone)
    if backbone.tokenizer.mask_token_id is None:
        start = torch.tensor([[0, backbones.sentinel(backbone.tokenizer)]] * 2)
        return peft_model(**given, decoder_input_ids=start).logits[:, -1]
    return peft_model(**given).logits[torch.arange(2), torch.tensor([2, 1]) + length]


@pytest.fixture
def peft():
    with warnings.catch_warnings():  # of what it imports
        warnings.simplefilter("ignore")
        yield pytest.importorskip("peft")


@torch.no_grad()
def test_peft_loads_what_we_write_and_scores_alike(row, peft, tmp_path):
    backbone, prompt = (
        backbones.load(row),
        torch.randn(5, backbones.load(row).width, generator=torch.Generator().manual_seed(0)),
    )
    adapter.write(tmp_path, prompt, row)
    own = KINDS[row["family"]].from_pretrained(row["path"], dtype=torch.float32)
    loaded = peft.PeftModel.from_pretrained(own, tmp_path).eval()
    assert_near(ours(backbone, prompt), pefts(loaded, backbone, 5), rounded=TEXT)


@torch.no_grad()
def test_we_load_what_peft_writes_and_score_alike(row, peft, tmp_path):
    backbone = backbones.load(row)
    config = peft.PromptTuningConfig(task_type=adapter.TASKS[row["family"]], num_virtual_tokens=5)
    own = KINDS[row["family"]].from_pretrained(row["path"], dtype=torch.float32)
    theirs = peft.get_peft_model(own, config).eval()
    theirs.save_pretrained(tmp_path)
    run = run_of(toy.settings("", **SOFT, prompt_scale=100.0))
    model = compose(backbone, run, words=[[5], [6]])
    load_trained(model, tmp_path)
    found = ours(backbone, model.body.embeddings().detach())
    assert_near(found, pefts(theirs, backbone, 5), rounded=TEXT)


def test_a_run_is_exported_and_starts_another(tmp_path):
    def prompt(folder):
        return load_file(folder / "weights.safetensors")["body.prompts"]

    run = toy.run(tmp_path, "", **SOFT, prompt_scale=10.0)
    export(run, tmp_path / "adapter")
    torch.testing.assert_close(adapter.read(tmp_path / "adapter"), 10 * prompt(run))
    again = toy.run(tmp_path, "", seed=2, start=tmp_path / "adapter", **SOFT, lr=1e-12)
    assert_near(prompt(again), 10 * prompt(run), rounded=TEXT)
    assert set(load_file(again / "weights.safetensors")) == {"body.prompts", "class_vectors"}


def test_a_prefix_is_exported_to_peft_and_starts_another_run(peft, tmp_path):
    told = {"tuner": "prefix", "head": "predictor", "length": 5, "positions": "shifted", "mlp": True}
    run = toy.run(tmp_path, "", **told)
    export(run, tmp_path / "adapter")
    own = backbones.load(toy.ROW).body
    theirs = peft.PeftModel.from_pretrained(own, tmp_path / "adapter").eval()
    model = compose(backbones.load(toy.ROW), run_of(toy.settings("", **told)), words=[[], [], []]).eval()
    load_trained(model, run)
    given = inputs(backbones.load(toy.ROW))
    zeros = torch.zeros_like(given["input_ids"])
    ours = model.body({**given, "token_type_ids": zeros, "position": zeros[:, 0]}).vector
    assert_near(ours, theirs(**given).last_hidden_state[:, 0], rounded=TEXT)
    again = toy.run(tmp_path, "", seed=2, start=tmp_path / "adapter", **told, lr=1e-12)
    first, second = (load_file(each / "weights.safetensors") for each in (run, again))
    for name in ("body.prefix.keys", "body.prefix.values"):
        assert_near(first[name], second[name], rounded=TEXT)


def test_a_prefix_that_peft_cannot_have_is_not_exported(tmp_path):
    run = toy.run(tmp_path, "", tuner="prefix", head="predictor", length=5)
    with pytest.raises(BadInput, match="peft's prefixes are of all layers and shift positions"):
        export(run, tmp_path / "adapter")


NOT_OURS = {
    "linear": ({"tuner": "frozen", "head": "linear"}, "trained its head alone, and an adapter has none"),
    "finetune": ({"tuner": "full"}, "tuned the whole backbone, which is in its weights if keep: true"),
    "prompt, as released": (
        {"tuner": "soft_prompt", "head": "predictor", "length": 3, "embedded": "as_released"},
        "embeds its prompt twice",
    ),
}


@pytest.mark.parametrize("name", list(NOT_OURS))
def test_why_a_run_cannot_be_exported_and_what_can_be_is_one_sentence(tmp_path, name):
    told, says = NOT_OURS[name]
    run = toy.run(tmp_path, "", epochs=1, **told)
    with pytest.raises(BadInput, match=f"{says}.*; export writes the soft_prompt"):
        export(run, tmp_path / "adapter")


def test_exporting_overwrites_nothing_and_takes_finished_runs_only(tmp_path):
    run = toy.run(tmp_path, "", **SOFT)
    for taken in (run, tmp_path):
        with pytest.raises(BadInput, match="is there and not empty; name another folder"):
            export(run, taken)
    with pytest.raises(BadInput, match="is not the folder of a finished run .*run.json"):
        export(tmp_path, tmp_path / "adapter")
    (run / "weights.safetensors").rename(run / "weights.json")
    with pytest.raises(BadInput, match="came in a bundle, in which weights do not travel"):
        export(run, tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


@pytest.mark.parametrize("length", ["x", 0, 4, None])
def test_an_adapter_has_as_many_vectors_as_it_says(length, tmp_path):
    adapter.write(tmp_path, torch.zeros(3, 16), toy.ROW)
    config = tmp_path / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_virtual_tokens": length}))
    with pytest.raises(BadInput, match=f"num_virtual_tokens is {length!r}; .* has vectors for 1 to 3"):
        adapter.read(tmp_path)


def test_a_prompt_of_an_adapter_is_finite(tmp_path):
    broken = torch.full((3, 16), torch.nan)
    with pytest.raises(BadInput, match="is not written: prompt_embeddings is not finite"):
        adapter.write(tmp_path, broken, toy.ROW)
    adapter.write(tmp_path, torch.zeros(3, 16), toy.ROW)
    save_file({adapter.TENSOR: broken}, tmp_path / adapter.WEIGHTS)  # by another program
    with pytest.raises(BadInput, match="prompt_embeddings holds numbers that are not finite"):
        adapter.read(tmp_path)


def test_what_is_no_such_adapter_is_refused(tmp_path):
    run = toy.run(tmp_path, "cls-tanh")
    with pytest.raises(BadInput, match="tuned the whole backbone.*; export writes the soft_prompt"):
        export(run, tmp_path / "adapter")
    adapter.write(tmp_path / "adapter", torch.zeros(3, 16), toy.ROW)
    for changes, said in (({}, "with tuner: soft_prompt"), (SOFT, "has a prompt of 3 x 16, not 5 x 16")):
        with pytest.raises(BadInput, match=said):
            toy.run(tmp_path, "cls-tanh", seed=3, start=tmp_path / "adapter", **changes)
    config = tmp_path / "adapter/adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"peft_type": "LORA"}))
    with pytest.raises(BadInput, match="has peft_type 'LORA', not 'PROMPT_TUNING'; "):
        adapter.read(tmp_path / "adapter")
