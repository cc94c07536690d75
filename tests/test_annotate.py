"""The stage that has a model annotate texts of a corpus."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from tailprompt import annotate, prepare
from tailprompt.errors import BadInput

MINI = "workflow/resources/backbones/bert-mini"
READ = {"language": "en", "loader": "pseudo_label", "annotator": "model"}


@pytest.fixture(scope="module")
def stars(tmp_path_factory):
    """A random classifier of `labels` classes with the shipped tokenizer."""

    def make(labels=5):
        folder = tmp_path_factory.mktemp("stars")
        tokenizer = AutoTokenizer.from_pretrained(MINI)
        torch.manual_seed(0)
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config = BertConfig(vocab_size=len(tokenizer), num_labels=labels, initializer_range=1.0, **shape)
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return str(folder)

    return make


def test_probabilities_do_not_depend_on_the_batch_and_keep_the_order_of_the_texts(stars, monkeypatch):
    texts, stated = [f"{'a long ' * (n % 7)}text {n}" for n in range(20)], {"folder": stars()}
    alone = annotate.probabilities(texts, stated, torch.device("cpu"))
    monkeypatch.setattr(annotate, "BATCH", 3)
    by_three = annotate.probabilities(texts, stated, torch.device("cpu"))
    assert torch.allclose(torch.tensor(alone), torch.tensor(by_three), atol=1e-5)
    assert torch.tensor(alone).sum(1).allclose(torch.ones(20)) and torch.tensor(alone).std(0).max() > 0.01


def test_a_model_needs_five_classes_and_to_be_there(stars, tmp_path):
    with pytest.raises(BadInput, match="has 3 classes; 5 are needed"):
        annotate.load({"folder": stars(3)})
    with pytest.raises(BadInput, match="annotator .*none: there is no folder"):
        annotate.load({"folder": str(tmp_path / "none")})
    with pytest.raises(BadInput, match="annotator .* cannot be read"):
        annotate.load({"folder": str(tmp_path)})


def test_a_model_whose_classifier_was_never_trained_is_refused(stars):
    folder = Path(stars())
    weights = load_file(folder / "model.safetensors")
    body = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier.")}
    save_file(body, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        BadInput, match=r"its weights lack classifier\.bias, classifier\.weight; take a model"
    ):
        annotate.load({"folder": str(folder)})


def test_the_stage_writes_texts_with_their_probabilities(stars, tmp_path, monkeypatch, capsys):
    (tmp_path / "c.txt").write_text("\n\n".join(f"this is the text number {n}" for n in range(300)))
    row = {"name": "p", "path": str(tmp_path / "c.txt"), "model": {"folder": stars()}, "examples": 20}
    command = ["annotate", "--dataset", json.dumps(row | {"shares": {"dev": 0.3, "test": 0.3}})]
    command += ["--raw", str(tmp_path), "--out", str(tmp_path / "out.parquet"), "--device", "cpu"]
    monkeypatch.setattr("sys.argv", command)
    annotate.main()
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert list(table) == ["split", "id", "text", "probabilities"] and len(table) == 80
    assert all(len(row) == 5 for row in table["probabilities"])
    with open(tmp_path / "out.parquet", "ab") as damaged:
        damaged.write(b"~")
    told = ["prepare", "--dataset", json.dumps(row | {"path": str(tmp_path / "out.parquet"), **READ})]
    monkeypatch.setattr("sys.argv", [*told, "--raw", "raw", "--out", str(tmp_path / "made.parquet")])
    with pytest.raises(BadInput, match=r"out\.parquet is not what its job wrote \(SHA-256\); run snakemake"):
        prepare.main()
    row = {"name": "p", "corpus": "text", "model": {"folder": "x"}}
    monkeypatch.setattr("sys.argv", [*command[:2], json.dumps(row), *command[3:]])
    with pytest.raises(BadInput, match="made from corpora.text, which this scale leaves open; name it"):
        annotate.main()
