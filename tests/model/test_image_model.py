"""An image backbone, a tuner and a head as one model: what it returns when, and which weights it takes."""

import pytest
import torch
from safetensors.torch import save_file
from tiny_vit import DEPTH, SETTINGS, SIZE, WIDTH, images, vit

from tailprompt.errors import BadInput
from tailprompt.model.backbones import VisionBackbone
from tailprompt.model.compose import SETTINGS_OF_IMAGES, compose
from tailprompt.model.weights import load_trained

HEAD = {"head": "predictor", "dropout": 0.0, "predictor": "cosine", "logit_scale": 20.0}
PHASE_1 = {**SETTINGS, **HEAD, "length": 3, "eta": 0.0, "eta_bias": False}
GROUPED = {**PHASE_1, "tuner": "group_prompts", "pool": 5, "shared_blocks": 2, "start": "phase-1"}
CLASSES = [[], [], []]


def model(settings, seed=0):
    """A model of three classes on the tiny ViT, all that is drawn from `seed`."""
    body = vit()
    torch.manual_seed(seed)
    backbone = VisionBackbone(body, WIDTH, DEPTH, SIZE, (0.5,) * 3, (0.5,) * 3, tokens=17)
    return compose(backbone, settings, words=CLASSES)


def saved(folder, trained, lacking=()):
    """Write what is a model's own as the weights of a run."""
    tensors = {name: trained.get_parameter(name).data for name in trained.own - {*lacking}}
    save_file(
        {**tensors, "class_vectors": trained.head.class_vectors().data.clone()},
        folder / "weights.safetensors",
    )
    return folder


def test_in_training_it_gives_logits_and_with_keys_the_match_too():
    logits = model(PHASE_1).train()({"pixels": images()})
    assert logits.shape == (3, 3)
    logits, match = model(GROUPED).train()({"pixels": images()})
    assert logits.shape == (3, 3) and match.shape == (3,) and match.requires_grad


def test_in_evaluation_it_gives_the_logits_of_training_alone():
    for settings in (PHASE_1, GROUPED):
        made = model(settings)
        trained = made.train()({"pixels": images()})
        logits = trained if isinstance(trained, torch.Tensor) else trained[0]
        assert torch.allclose(made.eval()({"pixels": images()}), logits, atol=1e-5)


def test_logits_are_the_mean_over_views_and_the_choice_that_of_the_middle_one():
    made = model(GROUPED).eval()
    views = torch.stack([images(seed=seed) for seed in range(5)], 1)
    each = [made({"pixels": views[:, i]}) for i in range(5)]
    assert torch.allclose(made({"pixels": views}), sum(each) / 5, atol=1e-5)
    seen = [made.features({"pixels": views[:, i]}) for i in range(5)]
    assert torch.allclose(made.features({"pixels": views}), sum(seen) / 5, atol=1e-5)
    assert torch.equal(made.chosen({"pixels": views}), made.chosen({"pixels": views[:, 4]}))
    assert made.chosen({"pixels": views}).shape == (3, 2)
    assert model(PHASE_1).chosen({"pixels": views}) is None


def test_eta_divides_linear_logits_in_evaluation_only():
    made = model({**PHASE_1, "predictor": "linear", "eta": 1.0})
    trained, judged = made.train()({"pixels": images()}), made.eval()({"pixels": images()})
    bias, norms = made.head.bias(), made.head.class_vectors().norm(dim=-1)
    assert torch.allclose((trained - bias) / norms + bias, judged, atol=1e-4)


def test_what_is_its_own_is_all_but_the_pretrained_vit():
    head, groups = {"head.predictor.weight"}, {"body.pool", "body.keys"}
    assert model({**PHASE_1, "tuner": "frozen"}).own == head
    assert model(PHASE_1).own == {"body.prompts"} | head
    assert model(GROUPED).own == {"body.prompts"} | groups | head
    assert {"body.prompts", "body.vit.norm.bias"} < model({**PHASE_1, "norms": "tuned"}).own
    assert len(model({**PHASE_1, "tuner": "full"}).own) == len(vit().state_dict()) + 1


def test_phase_two_starts_from_the_prompts_and_the_head_of_phase_one(tmp_path):
    first, second = model(PHASE_1), model(GROUPED, seed=1)
    load_trained(second, saved(tmp_path, first), new=second.new(tuned=False))
    assert second.new(tuned=False) == {"body.pool", "body.keys"}
    assert torch.equal(second.body.prompts, first.body.prompts)
    assert torch.equal(second.head.predictor.weight, first.head.predictor.weight)
    assert not second.body.prompts.requires_grad


def test_a_start_with_tuned_norms_and_adapters_needs_none_of_them(tmp_path):
    second = model({**GROUPED, "norms": "tuned", "adapter": 2}, seed=1)
    load_trained(second, saved(tmp_path, model(PHASE_1)), new=second.new(tuned=False))


def test_a_run_without_prompts_is_no_start_for_group_prompts(tmp_path):
    second = model(GROUPED)
    with pytest.raises(BadInput, match=r"has no body\.prompts; .* tuner: prompts"):
        load_trained(
            second, saved(tmp_path, model({**PHASE_1, "tuner": "frozen"})), new=second.new(tuned=False)
        )


@pytest.mark.parametrize("other", [{"length": 4}, {"predictor": "linear"}, {"norms": "tuned"}])
def test_a_start_of_another_form_is_refused(tmp_path, other):
    second = model(GROUPED)
    with pytest.raises(BadInput, match="is of another model"):
        load_trained(second, saved(tmp_path, model({**PHASE_1, **other})), new=second.new(tuned=False))


def test_prediction_needs_all_but_the_frozen_vit(tmp_path):
    trained, fresh = model(GROUPED), model(GROUPED, seed=1)
    load_trained(fresh, saved(tmp_path, trained), started=True)
    assert torch.equal(fresh.eval()({"pixels": images()}), trained.eval()({"pixels": images()}))
    for name in ("body.pool", "body.prompts", "head.predictor.weight"):
        with pytest.raises(BadInput):
            load_trained(fresh, saved(tmp_path, trained, lacking=[name]), started=True)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"head": "linear"}, "unknown head of images 'linear'; known: predictor"),
        ({"tuner": "lora"}, "unknown tuner of images 'lora'; known: frozen, full"),
        ({"prompt_init": "zeros"}, "unknown prompt_init 'zeros'"),
        ({"tuner": "group_prompts", "start": "x"}, "shared_blocks 6 leaves no block .* choose 0 to 3"),
    ],
)
def test_what_an_image_model_has_not_is_one_sentence(changes, sentence):
    with pytest.raises(BadInput, match=sentence):
        model({**PHASE_1, **changes})


def test_the_settings_that_it_reads_are_listed():
    assert {*PHASE_1, "precision", "test_zoom", "views"} == set(SETTINGS_OF_IMAGES)
