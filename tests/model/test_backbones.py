"""The parts of a backbone compute what the whole does, and missing weights are reported in one sentence."""

from __future__ import annotations

import json
import shutil
import sys

import huggingface_hub
import pytest
import tiny_vit
import torch
from conftest import FOLDER, ROW, SMALL
from rounding import TEXT, assert_near
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, RobertaConfig, RobertaForMaskedLM

from tailprompt import annotate
from tailprompt import backbones as fetching
from tailprompt.errors import BadInput
from tailprompt.files import sha256
from tailprompt.model import backbones
from tailprompt.model.checkpoints import interpolation
from tailprompt.plan import schemas

HUB = {"family": "bert", "hub": "nobody/nothing", "revision": "0" * 40}


def ids(vocabulary: int) -> dict[str, torch.Tensor]:
    """Two texts of random tokens, the second padded."""
    tokens = torch.randint(5, vocabulary, (2, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens)
    mask[1, 6:] = 0
    return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": torch.zeros_like(tokens)}


def assert_same(taken: backbones.Backbone, whole: torch.nn.Module):
    """Body, transform and decoder in a row give the whole model's hidden states and logits."""
    batch = ids(whole.config.vocab_size)
    with torch.no_grad():
        expected = whole.eval()(**batch, output_hidden_states=True)
        hidden = taken.body.eval()(**batch).last_hidden_state
        logits = taken.decoder(taken.transform(hidden))
    assert torch.equal(hidden, expected.hidden_states[-1])
    assert_near(logits, expected.logits, rounded=TEXT)


def test_the_shipped_backbone_is_the_one_that_transformers_loads():
    taken = backbones.load({"family": "bert", "path": FOLDER})
    assert_same(taken, AutoModelForMaskedLM.from_pretrained(FOLDER, dtype=torch.float32))
    assert taken.decoder.weight is taken.body.embeddings.word_embeddings.weight
    assert isinstance(taken.norm, torch.nn.LayerNorm) and taken.norm.weight.std() > 0.01  # trained, not fresh
    assert (taken.width, taken.positions) == (taken.body.config.hidden_size, 512)


def test_a_roberta_taken_apart_is_the_whole(tmp_path, tokenizer):
    config = RobertaConfig(**SMALL, vocab_size=len(tokenizer), max_position_embeddings=40, type_vocab_size=1)
    whole = RobertaForMaskedLM(config)
    torch.nn.init.normal_(whole.lm_head.bias)  # zero when drawn
    whole.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    taken = backbones.load({"family": "roberta", "path": str(tmp_path)})
    assert_same(taken, whole)
    assert taken.positions == 38  # pad_token_id 1 takes the first two


def test_random_weights_are_the_same_each_time_and_disturb_no_one(backbone):
    torch.manual_seed(5)
    again = backbones.load(ROW)
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(5))
    first, second = backbone.body.state_dict(), again.body.state_dict()
    assert again.width == 16 and all(torch.equal(first[name], second[name]) for name in first)


def test_fetching_gives_the_digest_of_each_file(tmp_path, monkeypatch):
    out = tmp_path / "row.json"
    row = {"family": "bert", "path": FOLDER}
    told = ["backbones", "--name", "mini", "--row", json.dumps(row), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", told)
    fetching.main()
    made = json.loads(out.read_text("utf-8"))
    assert made["name"] == "mini" and made["path"] == FOLDER
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(made["sha256"])
    assert all(digest == sha256(f"{FOLDER}/{file}") for file, digest in made["sha256"].items())


@pytest.mark.parametrize("act", [backbones.load, fetching.fetch])
def test_a_folder_that_lacks_files_is_refused_with_their_names(tmp_path, act):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="model.safetensors, tokenizer.json not found"):
        act({"family": "bert", "path": str(tmp_path)})


def changed(folder, change):
    """Change the tensors of a folder's weights."""
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors", {"format": "pt"})


def written(name, text):
    return lambda folder: (folder / name).write_text(text)


def without_a_layer(weights):
    return {name: value for name, value in weights.items() if ".layer.0." not in name}


def misshapen(weights):
    name = "bert.encoder.layer.0.output.dense.weight"
    return {**weights, name: weights[name][:3].contiguous()}


def config_of(**changes):
    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}))

    return change


def vocabulary_of(change):
    """A tokenizer of the words that `change` makes of its own."""

    def damage(folder):
        path = folder / "tokenizer.json"
        about = json.loads(path.read_text("utf-8"))
        about["model"]["vocab"] = change(about["model"]["vocab"])
        path.write_text(json.dumps(about), "utf-8")

    return damage


def special_alone(words):
    return {word: i for word, i in words.items() if word.startswith("[") and word.endswith("]") and i < 5}


@pytest.mark.parametrize(
    "damage, row, sentence",
    [
        (written("model.safetensors", "cut"), {}, r"backbone folder .* cannot be read \(.*\)"),
        (written("tokenizer.json", "{}"), {}, "cannot be read"),
        (written("config.json", "{"), {}, "cannot be read .*JSON"),
        (written("config.json", "[]"), {}, "cannot be read"),
        (lambda folder: changed(folder, without_a_layer), {}, r"lack 16 tensors .*bert\.encoder\.layer\.0"),
        (
            lambda folder: changed(folder, misshapen),
            {},
            r"lack 1 .* shape: .*layer\.0\.output\.dense\.weight",
        ),
        (config_of(num_hidden_layers=1), {}, r"hold 48 tensors of layers that config\.json does not state"),
        (vocabulary_of(special_alone), {}, "its tokenizer has no words"),
        (written("tokenizer_config.json", '{"tokenizer_class": "NoSuch"}'), {}, "no padding token"),
        (vocabulary_of(lambda words: {**words, "more": 16050}), {}, "ids up to 16050, .* 15360 embeddings"),
        (None, {"family": "roberta"}, "is of the family 'bert', but its row says family: roberta"),
        (None, {"random": {"hidden_size": 33}}, r"cannot be read \(.*33.* multiple of .*heads"),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, capfd, damage, row, sentence):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    if damage:
        damage(tmp_path)
    with pytest.raises(BadInput, match=sentence) as error:
        backbones.load({"family": "bert", "path": str(tmp_path), **row})
    assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)
    assert not "".join(capfd.readouterr())


def test_old_names_tied_weights_and_a_pooler_are_no_damage(tmp_path):
    def as_google_wrote_it(weights):
        old = {
            name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): value
            for name, value in weights.items()
        }
        pooler = {
            "bert.pooler.dense.weight": torch.zeros(128, 128),
            "bert.pooler.dense.bias": torch.zeros(128),
        }
        return {**old, **pooler, "cls.seq_relationship.weight": torch.zeros(2, 128)}

    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    changed(tmp_path, as_google_wrote_it)
    taken = backbones.load({"family": "bert", "path": str(tmp_path)})
    assert_same(taken, AutoModelForMaskedLM.from_pretrained(FOLDER, dtype=torch.float32))


def test_a_fault_of_the_weights_shows_when_they_are_fetched(tmp_path, monkeypatch):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    changed(tmp_path, without_a_layer)
    row = json.dumps({"family": "bert", "path": str(tmp_path)})
    monkeypatch.setattr(
        sys, "argv", ["backbones", "--name", "x", "--row", row, "--out", str(tmp_path / "x.json")]
    )
    with pytest.raises(BadInput, match="lack 16 tensors"):
        fetching.main()
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("act", [backbones.load, fetching.fetch])
def test_without_network_a_hub_backbone_that_is_not_in_the_cache_is_one_sentence(tmp_path, monkeypatch, act):
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        BadInput, match="nobody/nothing at revision 0+ is neither in the .* cache nor could be"
    ) as error:
        act(HUB)
    assert "HF_HOME" in str(error.value) and "\n" not in str(error.value)


def test_without_network_weights_in_the_cache_are_taken_though_the_hub_would_list_its_files(
    tmp_path, monkeypatch
):
    from huggingface_hub import constants
    from huggingface_hub.errors import OfflineModeIsEnabled

    kept = tmp_path / "models--nobody--nothing/snapshots" / HUB["revision"]
    shutil.copytree(FOLDER, kept)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    asks = huggingface_hub.snapshot_download

    def lists_first(*, local_files_only=False, **asked):
        if not local_files_only:
            raise OfflineModeIsEnabled("no network")  # as huggingface_hub 1.33 with a cache of an older one
        return asks(**asked, local_files_only=True)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lists_first)
    assert "model.safetensors" in fetching.fetch(HUB)


def test_an_unknown_family_is_refused_with_the_known_ones():
    with pytest.raises(
        BadInput, match="unknown backbone family 'gpt'; known: bert, deberta, deberta-v2, roberta"
    ):
        backbones.load({"family": "gpt", "path": FOLDER})


def timm_vit(path, **changes):
    """A folder of the tiny ViT with a classifier, and the ViT."""
    model = tiny_vit.vit(num_classes=7)
    return tiny_vit.folder(path, model, **changes), model.eval()


def test_a_vit_is_the_one_that_was_written_without_its_classifier(tmp_path):
    path, whole = timm_vit(tmp_path)
    taken = backbones.load({"family": "vit", "path": path})
    assert (taken.width, taken.depth, taken.size) == (tiny_vit.WIDTH, tiny_vit.DEPTH, tiny_vit.SIZE)
    assert (taken.mean, taken.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    pixels = tiny_vit.images()
    assert torch.equal(taken.body.eval()(pixels), whole.forward_head(whole.forward_features(pixels), True))


def test_positions_of_a_vit_are_resampled_to_the_size_of_its_row(tmp_path):
    path, whole = timm_vit(tmp_path)
    taken = backbones.load({"family": "vit", "path": path, "size": 24})
    assert taken.size == 24 and taken.body.pos_embed.shape[1] == 1 + 6 * 6
    whole.set_input_size(24)
    assert_near(taken.body.pos_embed, whole.pos_embed, rounded=TEXT)


@pytest.mark.parametrize(
    "stated, row, taken",
    [
        ("bicubic", {}, "bilinear"),  # as LPT's code, whatever the checkpoint states
        ("bicubic", {"interpolation": "own"}, "bicubic"),
        ("bilinear", {"interpolation": "own"}, "bilinear"),
        ("bilinear", {"interpolation": "bicubic"}, "bicubic"),
    ],
)
def test_images_are_scaled_as_the_row_or_the_checkpoint_says(tmp_path, stated, row, taken):
    path, _ = timm_vit(tmp_path, pretrained_cfg={"interpolation": stated, "num_classes": 7})
    assert backbones.load({"family": "vit", "path": path, **row}).interpolation == taken
    with pytest.raises(BadInput, match="states interpolation lanczos; set bilinear or bicubic in its row"):
        interpolation({"interpolation": "own"}, "lanczos", path)


def test_a_vit_with_another_classifier_than_its_row_expects_is_another_checkpoint(tmp_path):
    path, _ = timm_vit(tmp_path)
    assert backbones.load({"family": "vit", "path": path, "outputs": 7}).width
    with pytest.raises(BadInput, match="has a classifier of 7 classes, and its row says outputs: 21843"):
        backbones.load({"family": "vit", "path": path, "outputs": 21843})


def test_every_vit_from_the_hub_says_how_many_classes_it_was_trained_on():
    rows = schemas.read("config/backbones.yaml")["backbones"].values()
    assert all("outputs" in row for row in rows if row["family"] == "vit" and "hub" in row)


def test_weights_are_those_of_the_rows_digest_or_refused():
    row = {"family": "bert", "path": FOLDER}
    assert fetching.fetch(row | {"sha256": sha256(f"{FOLDER}/model.safetensors")}) == fetching.fetch(row)
    with pytest.raises(BadInput, match="model.safetensors has the SHA-256 .*, and its row says 0000"):
        fetching.fetch(row | {"sha256": "0" * 64})


def test_no_job_reads_a_revision_that_moves():
    row = {"family": "bert", "hub": "one/two", "revision": "main"}
    with pytest.raises(BadInput, match="^one/two at revision main is no fixed version"):
        fetching.fetch(row)
    with pytest.raises(BadInput, match="^one/two at revision main is no fixed version"):
        annotate.load({"hub": "one/two", "revision": "main"})


MINE = {"img_size": 16, "patch_size": 4, "embed_dim": 32, "depth": 4, "num_heads": 4}


@pytest.mark.parametrize(
    "kind, row, sentence",
    [
        (
            {"class_token": False, "global_pool": "avg"},
            {},
            "does not end in a class token after a final norm",
        ),
        ({"global_pool": "avg"}, {}, "does not end in a class token"),
        ({"scale_attn_norm": True}, {}, r"has blocks \(Block, Attention\) of another kind"),
        ({"depth": 3}, {}, "cannot be read .*Unexpected key"),
        ({"depth": 5}, {}, "cannot be read .*Missing key"),
        ({}, {"size": 30}, "30 x 30 pixels are not square of whole patches; set size .* multiple of 4"),
        ({"img_size": [16, 32]}, {}, "16 x 32 pixels are not square"),
    ],
)
def test_a_vit_that_prompts_cannot_enter_is_one_sentence(tmp_path, kind, row, sentence):
    shape = {key: value for key, value in kind.items() if key != "depth"}
    path = tiny_vit.folder(tmp_path, tiny_vit.vit(num_classes=7, **shape), model_args={**MINE, **kind})
    with pytest.raises(BadInput, match=sentence) as error:
        backbones.load({"family": "vit", "path": path, **row})
    assert "\n" not in str(error.value)


def test_another_image_model_of_timm_is_not_of_the_family(tmp_path):
    import timm

    model = timm.create_model("test_resnet", num_classes=3)
    path = tiny_vit.folder(
        tmp_path, model, architecture="test_resnet", model_args={}, pretrained_cfg={"num_classes": 3}
    )
    with pytest.raises(BadInput, match="is of the family 'ResNet', but its row says family: vit"):
        backbones.load({"family": "vit", "path": path})
