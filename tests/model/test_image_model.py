"""An image backbone, a tuner and a head as one model: what it returns when, and which weights it takes."""

from dataclasses import replace

import pytest
import torch
import toy_images
from rounding import IMAGE, assert_near
from safetensors.torch import save_file
from tiny_vit import backbone, images, vit

from tailprompt.components.heads import LinearPredictor
from tailprompt.components.resolve import run_of
from tailprompt.components.tuners import Beside
from tailprompt.errors import BadInput
from tailprompt.model.compose import compose
from tailprompt.model.weights import held, load_trained, need_not_hold

CLASSES = [[], [], []]


def run_as(tuner, *, start=None, **changes):
    """The run of a cosine predictor on a tuner."""
    settings = toy_images.settings(
        "", tuner=tuner, **{"predictor": "cosine", **changes}, start=start and {"method": start}
    )
    return run_of(settings)


PHASE_1 = run_as("prompts", length=3)
GROUPED = run_as("group_prompts", length=3, start="phase-1")
FROZEN = run_as("frozen")


def with_norms(run):
    """The same, all layer norms learning."""
    return replace(run, tuner=replace(run.tuner, beside=replace(run.tuner.beside, norms="tuned")))


def model(run, seed=0):
    """A model of three classes on the tiny ViT, all that is drawn from `seed`."""
    body = backbone(vit())
    torch.manual_seed(seed)
    return compose(body, run, words=CLASSES)


def saved(folder, trained, lacking=()):
    """Write what is a model's own as the weights of a run."""
    tensors = {name: trained.get_parameter(name).data for name in held(trained) - {*lacking}}
    save_file(
        {**tensors, "class_vectors": trained.head.class_vectors().data.clone()},
        folder / "weights.safetensors",
    )
    return folder


def started(made, folder):
    """A model with the weights of a run whose ViT is the checkpoint's."""
    load_trained(made, folder, lacking=need_not_hold(made, tuned=False))


def test_in_training_it_gives_logits_and_with_keys_the_match_too():
    logits = model(PHASE_1).train()({"pixels": images()})
    assert logits.shape == (3, 3)
    logits, match = model(GROUPED).train()({"pixels": images()})
    assert logits.shape == (3, 3) and match.shape == (3,) and match.requires_grad


def test_in_evaluation_it_gives_the_logits_of_training_alone():
    for run in (PHASE_1, GROUPED):
        made = model(run)
        trained = made.train()({"pixels": images()})
        logits = trained if isinstance(trained, torch.Tensor) else trained[0]
        assert_near(made.eval()({"pixels": images()}), logits, rounded=IMAGE)


def test_logits_are_the_mean_over_views_and_the_choice_that_of_the_middle_one():
    made = model(GROUPED).eval()
    views = torch.stack([images(seed=seed) for seed in range(5)], 1)
    each = [made({"pixels": views[:, i]}) for i in range(5)]
    assert_near(made({"pixels": views}), sum(each) / 5, rounded=IMAGE)
    seen = [made.features({"pixels": views[:, i]}) for i in range(5)]
    assert_near(made.features({"pixels": views}), sum(seen) / 5, rounded=IMAGE)
    assert torch.equal(made.chosen({"pixels": views}), made.chosen({"pixels": views[:, 4]}))
    assert made.chosen({"pixels": views}).shape == (3, 2)
    assert model(PHASE_1).chosen({"pixels": views}) is None


def test_eta_divides_linear_logits_in_evaluation_only():
    made = model(run_as("prompts", length=3, predictor="linear", eta=1.0))
    trained, evaluated = made.train()({"pixels": images()}), made.eval()({"pixels": images()})
    bias, norms = made.head.bias(), made.head.class_vectors().norm(dim=-1)
    assert_near((trained - bias) / norms + bias, evaluated, rounded=IMAGE)


def test_what_is_its_own_is_all_but_the_pretrained_vit():
    head, groups = {"head.predictor.weight"}, {"body.groups.pool", "body.groups.keys"}
    assert held(model(FROZEN)) == head
    assert held(model(PHASE_1)) == {"body.prompts"} | head
    assert held(model(GROUPED)) == {"body.prompts"} | groups | head
    assert {"body.prompts", "body.pretrained.norm.bias"} < held(model(with_norms(PHASE_1)))
    assert len(held(model(run_as("full")))) == len(vit().state_dict()) + 1
    assert held(model(FROZEN), tuned=True) == held(model(run_as("full")))


def test_phase_two_starts_from_the_prompts_and_the_head_of_phase_one(tmp_path):
    first, second = model(PHASE_1), model(GROUPED, seed=1)
    started(second, saved(tmp_path, first))
    network = {name for name, _ in second.named_parameters() if name.startswith("body.pretrained.")}
    assert need_not_hold(second, tuned=False) == {"body.groups.pool", "body.groups.keys"} | network
    assert need_not_hold(second, tuned=True) == {"body.groups.pool", "body.groups.keys"}
    assert torch.equal(second.body.prompts, first.body.prompts)
    assert torch.equal(second.head.predictor.weight, first.head.predictor.weight)
    assert not second.body.prompts.requires_grad


def test_a_start_with_tuned_norms_and_adapters_needs_none_of_them(tmp_path):
    beside = Beside(norms="tuned", adapter=2)
    second = model(replace(GROUPED, tuner=replace(GROUPED.tuner, beside=beside)), seed=1)
    started(second, saved(tmp_path, model(PHASE_1)))


def test_a_run_without_prompts_is_no_start_for_group_prompts(tmp_path):
    second = model(GROUPED)
    with pytest.raises(BadInput, match=r"has no body\.prompts; .* tuner: prompts"):
        started(second, saved(tmp_path, model(FROZEN)))


OTHERS = [
    replace(PHASE_1, tuner=replace(PHASE_1.tuner, length=4)),
    replace(PHASE_1, head=replace(PHASE_1.head, predictor=LinearPredictor())),
    with_norms(PHASE_1),
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_start_of_another_form_is_refused(tmp_path, other):
    second = model(GROUPED)
    with pytest.raises(BadInput, match="is of another model"):
        started(second, saved(tmp_path, model(other)))


def test_prediction_needs_all_but_the_frozen_vit(tmp_path):
    trained, fresh = model(GROUPED), model(GROUPED, seed=1)
    load_trained(fresh, saved(tmp_path, trained))
    assert torch.equal(fresh.eval()({"pixels": images()}), trained.eval()({"pixels": images()}))
    for name in ("body.groups.pool", "body.prompts", "head.predictor.weight"):
        with pytest.raises(BadInput):
            load_trained(fresh, saved(tmp_path, trained, lacking=[name]))


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"tuner": "prompts", "head": "linear"}, "head is 'linear'; allowed with input pixels: predictor"),
        ({"tuner": "loro"}, "unknown tuner 'loro'; known: frozen, full, group_prompts"),
        (
            {"tuner": "soft_prompt"},
            "tuner is 'soft_prompt'; allowed on image: full, frozen, prefix, lora, prompts, ",
        ),
        (
            {"tuner": "prompts", "init": "zeros"},
            "init is 'zeros'; allowed with prompts: trunc_normal, xavier",
        ),
        (
            {"tuner": "group_prompts", "shared_blocks": 6, "start": "x"},
            "shared_blocks 6 leaves no block .* choose 0 to 3",
        ),
    ],
)
def test_what_an_image_model_has_not_is_one_sentence(changes, sentence):
    with pytest.raises(BadInput, match=sentence):
        model(run_as(**changes))
