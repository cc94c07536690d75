"""Prompts in a ViT: what must equal the plain timm model, the released form, and what must not move."""

import jaxtyping
import pytest
import timm
import torch
from tailprompt.model.tuners.vision import prompted
from tiny_vit import DEPTH, SETTINGS, WIDTH, images, vit
from torch.nn import functional as F

from tailprompt.errors import BadInput
from tailprompt.model import limits as tuning
from tailprompt.plan.schemas import read

GROUPED = {"tuner": "group_prompts", "length": 3, "pool": 5, "shared_blocks": 2}


def tuned(settings, **changes):
    """A tuner on that ViT in evaluation mode, its parameters away from their starts too."""
    body = prompted(vit(**changes), **settings).eval()
    for name, value in body.named_parameters():
        if not name.startswith("vit."):
            value.data.add_(torch.randn_like(value))
    return body


def appended(model, tokens, prompts):
    """Plain timm blocks, prompts appended to the tokens before each and dropped after it."""
    for layer, more in zip(model.blocks, prompts, strict=True):
        more = more.expand(len(tokens), -1, -1)
        tokens = layer(torch.cat([tokens, more], 1))[:, : tokens.shape[1]]
    return tokens


def embedded(model, pixels):
    return model.norm_pre(model._pos_embed(model.patch_embed(pixels)))


def phase_one(body, pixels):
    """Class token after the final norm, all the released way."""
    tokens = appended(body.vit, embedded(body.vit, pixels), body.prompts)
    return body.vit.norm(tokens)[:, 0]


def phase_two(body, pixels):
    """Features and chosen prompts the released way: two whole passes, an example at a time."""
    features, chosen = [], []
    for one in pixels.split(1):
        nearness = F.normalize(phase_one(body, one)) @ F.normalize(body.keys).T
        best = nearness[0].argsort(descending=True)[: body.chosen]
        group = sum(body.pool[i] for i in best) / len(best)
        later = [
            torch.cat([shared, own]) for shared, own in zip(body.prompts[-len(group) :], group, strict=True)
        ]
        prompts = [*body.prompts[: -len(group)], *later]
        tokens = appended(body.vit, embedded(body.vit, one), prompts)
        features.append(body.vit.norm(tokens)[:, 0])
        chosen.append(best)
    return torch.cat(features), torch.stack(chosen)


def near(one, other):
    return torch.allclose(one, other, atol=2e-5, rtol=1e-4)


KINDS = [
    {},
    {"init_values": 0.3},
    {"qkv_bias": False, "pre_norm": True},
    {"qk_norm": True, "reg_tokens": 2},
    {"no_embed_class": True, "pos_embed": "learn", "dynamic_img_size": True},
]


@pytest.mark.parametrize("kind", KINDS)
def test_without_prompts_features_are_those_of_timm(kind):
    body = tuned({"tuner": "frozen"}, **kind)
    assert near(body(images()).features, body.vit.forward_features(images())[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_as_keys_and_values_equal_prompts_appended_and_dropped(kind):
    body = tuned({"tuner": "prompts", "length": 3}, **kind)
    assert near(body(images()).features, phase_one(body, images()))
    assert not near(body(images()).features, body.vit.forward_features(images())[:, 0])


def test_gradients_of_prompts_equal_those_of_the_appended_form():
    body = tuned({"tuner": "prompts", "length": 3})
    ours = torch.autograd.grad(body(images()).features.square().sum(), body.prompts)[0]
    theirs = torch.autograd.grad(phase_one(body, images()).square().sum(), body.prompts)[0]
    assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-3) and ours.abs().min() > 0


def test_prompts_of_length_zero_change_nothing():
    body = tuned({"tuner": "prompts", "length": 0})
    assert near(body(images()).features, body.vit.forward_features(images())[:, 0])


def test_shallow_prompts_are_tokens_of_the_plain_model():
    body = tuned({"tuner": "prompts_shallow", "length": 3})
    tokens = embedded(body.vit, images())
    whole = body.vit.blocks(torch.cat([tokens, body.prompts.expand(3, -1, -1)], 1))
    assert near(body(images()).features, body.vit.norm(whole)[:, 0])


def test_group_prompts_of_no_length_leave_phase_one():
    body = tuned(GROUPED)
    body.pool = torch.nn.Parameter(body.pool[:, :, :0])
    assert near(body(images()).features, phase_one(body, images()))


@pytest.mark.parametrize("changes", [{}, {"shared_blocks": 0}, {"shared_blocks": 3}, {"chosen": 3}])
def test_reusing_the_early_blocks_changes_nothing(changes):
    body = tuned({**GROUPED, **changes})
    made = body(images(8))
    features, chosen = phase_two(body, images(8))
    assert near(made.features, features) and torch.equal(made.chosen, chosen)
    assert len(made.chosen.unique()) > 2  # not the same few for all


def test_the_match_is_one_minus_the_mean_cosine_with_the_chosen_keys():
    body = tuned(GROUPED)
    made, query = body(images()), phase_one(body, images())
    for match, row, asked in zip(made.match, made.chosen, query, strict=True):
        cosines = [torch.dot(asked, body.keys[i]) / asked.norm() / body.keys[i].norm() for i in row]
        assert torch.isclose(match, 1 - sum(cosines) / len(cosines), atol=1e-5)  # LPT Eq. 5


def test_the_pretrained_query_is_the_class_token_without_any_prompt():
    body = tuned({**GROUPED, "query": "pretrained"})
    query = body.vit.forward_features(images())[:, 0]
    expected = (F.normalize(query) @ F.normalize(body.keys).T).topk(2).indices
    assert torch.equal(body(images()).chosen, expected)


def test_the_choice_for_an_image_does_not_depend_on_the_others_of_its_batch():
    body = tuned(GROUPED)
    together = body(images(8)).chosen
    assert torch.equal(together, torch.cat([body(one).chosen for one in images(8).split(1)]))


@pytest.mark.parametrize("joint", [False, True])
def test_no_gradient_reaches_the_query(joint):
    body = tuned({**GROUPED, "joint": joint}).train()
    body(images()).match.sum().backward()
    assert [name for name, value in body.named_parameters() if value.grad is not None] == ["keys"]


@pytest.mark.parametrize(
    "settings, learns",
    [
        ({"tuner": "frozen"}, set()),
        ({"tuner": "prompts"}, {"prompts"}),
        ({"tuner": "prompts_shallow"}, {"prompts"}),
        (GROUPED, {"pool", "keys"}),
        ({**GROUPED, "joint": True}, {"prompts", "pool", "keys"}),
        ({**GROUPED, "query": "pretrained"}, {"pool", "keys"}),
    ],
)
def test_a_step_moves_what_learns_and_nothing_else_by_a_bit(settings, learns):
    body = tuned(settings, drop_path_rate=0.5, proj_drop_rate=0.5).train()
    head = torch.nn.Linear(WIDTH, 2)
    before = {name: value.clone() for name, value in body.state_dict().items()}
    learned = [value for value in body.parameters() if value.requires_grad]
    made = body(images())
    loss = head(made.features).square().sum() + (0 if made.match is None else made.match.sum())
    loss.backward()
    torch.optim.SGD([*learned, *head.parameters()], lr=0.1, weight_decay=0.1).step()
    moved = {name for name, value in body.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == learns


def test_a_frozen_network_drops_no_paths_in_training_and_a_tuned_one_does():
    frozen, full = (tuned({"tuner": name}, drop_path_rate=0.9).train() for name in ("frozen", "full"))
    plain = frozen.vit.forward_features(images())[:, 0]
    assert near(frozen(images()).features, plain) and not near(full(images()).features, plain)


def test_full_tuning_trains_all():
    body = tuned({"tuner": "full"}).train()
    body(images()).features.square().sum().backward()
    assert all(value.grad.abs().sum() > 0 for value in body.parameters())


def test_tuned_norms_are_all_that_learns_of_the_vit():
    body = tuned({"tuner": "prompts", "norms": "tuned"})
    learned = {name for name, value in body.named_parameters() if value.requires_grad} - {"prompts"}
    assert learned == {name for name, _ in body.named_parameters() if ".norm" in name}
    assert len(learned) == 2 * (2 * DEPTH + 1)


@pytest.mark.parametrize("extra", [{"adapter": 4}, {"border": 2}])
def test_adapters_and_border_start_as_identity_and_then_matter(extra):
    body = prompted(vit(), tuner="frozen", **extra).eval()
    plain = body.vit.forward_features(images())[:, 0]
    assert near(body(images()).features, plain)
    for value in (value for value in body.parameters() if value.requires_grad):
        value.data.add_(torch.randn_like(value))
    assert not near(body(images()).features, plain)


def test_a_border_touches_the_frame_only():
    body = prompted(vit(), tuner="frozen", border=2)
    body.border.pixels.data.fill_(1.0)
    added = body.border(images()) - images()
    assert near(added[:, :, 2:-2, 2:-2], torch.zeros(())) and near(added[:, :, :2], torch.ones(()))
    assert near(added[..., -2:], torch.ones(())) and body.border.pixels.numel() == 3 * (16**2 - 12**2)


def test_prompt_dropout_is_drawn_for_each_example_and_only_in_training():
    body = tuned({"tuner": "prompts", "prompt_dropout": 0.5})
    alike = images(1).expand(2, -1, -1, -1)
    one, other = body.train()(alike).features
    assert not near(one, other)
    assert near(*body.eval()(alike).features)


def test_frozen_shared_prompts_are_never_dropped_from_the_query():
    body = tuned({**GROUPED, "prompt_dropout": 0.9})
    assert near(body.train()(images()).match, body.eval()(images()).match)


@pytest.mark.parametrize("init, bound", [("trunc_normal", 2.0), ("xavier", (6 / (3 * 16 + WIDTH)) ** 0.5)])
def test_prompts_start_as_the_papers_say(init, bound):
    prompts = prompted(vit(), tuner="prompts", length=50, prompt_init=init).prompts
    deviation = 0.02 if init == "trunc_normal" else bound / 3**0.5
    assert prompts.abs().max() <= bound and abs(prompts.std() / deviation - 1) < 0.05


def test_the_parameters_of_a_vit_b_are_the_papers():
    with torch.device("meta"):
        base = timm.models.VisionTransformer(num_classes=0)
        counts = {
            name: value.numel() for name, value in prompted(base, tuner="group_prompts").named_parameters()
        }
        adapted = prompted(base, tuner="frozen", adapter=4)
    assert counts["prompts"] == 92_160 and counts["pool"] == 921_600  # LPT Table 1; appendix B and Table 12
    assert counts["keys"] == 15_360
    # LIFT's count for 100 classes
    assert sum(value.numel() for value in adapted.parameters() if value.requires_grad) == 101_436


@pytest.mark.parametrize("settings", [{"tuner": "prompts"}, GROUPED])
def test_half_precision_comes_near_and_keeps_features_in_full(settings):
    body = tuned(settings)
    exact = body(images()).features
    with torch.autocast("cpu", torch.bfloat16):
        made = body.train()(images()).features
    made.sum().backward()
    assert made.dtype == torch.float32 and (made - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"chosen": 3, "pool": 2}, "chosen 3 of a pool of 2 group prompts"),
        ({"chosen": 0}, "chosen goes from 1 to pool"),
        ({"shared_blocks": 12}, "shared_blocks 12 leaves no block .* 12: choose 0 to 11"),
        ({"start": None}, "either from the run named in start or, with joint"),
        ({"joint": True}, "state one of the two"),
        ({"border": 112}, "border 112 leaves nothing of 224 pixels"),
        ({"query": "pretrained", "norms": "tuned"}, "norms must be frozen"),
    ],
)
def test_settings_that_do_not_go_together_are_one_sentence(changes, sentence):
    grouped = {**SETTINGS, "tuner": "group_prompts", "start": "phase-1"}
    tuning.check(grouped, depth=12, size=224)
    with pytest.raises(BadInput, match=sentence):
        tuning.check({**grouped, **changes}, depth=12, size=224)


@pytest.mark.parametrize("zoom, size", [(1.0, None), (1.0, 224), (1.001, 224), (0.5, None)])
def test_five_crops_need_images_larger_than_they_are(zoom, size):
    tuning.check_views(1, zoom, size)
    tuning.check_views(5, 1.143, size)
    with pytest.raises(BadInput, match=f"views is 1, or 5 with test_zoom above 1, not 5 with {zoom:g}"):
        tuning.check_views(5, zoom, size)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's compiler advises
@pytest.mark.parametrize("settings", [{"tuner": "prompts"}, GROUPED])
def test_compiled_blocks_compute_the_same(settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # its checks cannot be compiled
    body, pixels = tuned(settings).cuda(), images(8).cuda()
    learned = [value for value in body.parameters() if value.requires_grad]

    def features_and_slopes():
        made = body(pixels)
        loss = made.features.square().sum() + (0 if made.match is None else made.match.sum())
        return made.features, *torch.autograd.grad(loss, learned)

    plain = features_and_slopes()
    body.compile_blocks()
    for one, other in zip(plain, features_and_slopes(), strict=True):
        assert torch.allclose(one, other, atol=1e-3, rtol=1e-3)


def test_the_schema_names_every_tuner_of_images_and_that_of_texts_alone():
    schema = read("workflow/schemas/settings.schema.yaml")
    names = ", ".join(sorted({*schema["properties"]["tuner"]["enum"]} - {"soft_prompt"}))
    with pytest.raises(BadInput, match=f"unknown tuner of images 'lora'; known: {names}$"):
        prompted(vit(), tuner="lora")
