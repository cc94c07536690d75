"""Prompts in a ViT: what must equal the plain timm model, the released form, and what must not move."""

from functools import partial

import jaxtyping
import pytest
import timm
import torch
from rounding import IMAGE, SLOPES, assert_near
from rounding import near as near_by
from tiny_vit import DEPTH, WIDTH, backbone, images, vit
from torch.nn import functional as F

from tailprompt.components.resolve import options
from tailprompt.components.tuners import Beside, Frozen, Full, GroupPrompts, Lora, Prompts, PromptsShallow
from tailprompt.errors import BadInput
from tailprompt.model import limits as tuning
from tailprompt.model.compose import TUNERS
from tailprompt.training.precision import rounded

GROUPED = {"length": 3, "pool": 5, "shared_blocks": 2}


def prompted(model, tuner, beside=None, **told):
    """A tuner on a ViT, told its keys and what learns beside."""
    told = tuner(**told, beside=Beside(**beside or {}))
    return TUNERS[told.name](backbone(model), told, words=[], texts=None)


def tuned(tuner, beside=None, kind=None, **told):
    """A tuner on that ViT in evaluation mode, its parameters away from their starts too."""
    body = prompted(vit(**kind or {}), tuner, beside, **told).eval()
    for name, value in body.named_parameters():
        if not name.startswith("pretrained."):
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
    tokens = appended(body.pretrained, embedded(body.pretrained, pixels), body.prompts)
    return body.pretrained.norm(tokens)[:, 0]


def phase_two(body, pixels):
    """Features and chosen prompts the released way: two whole passes, an example at a time."""
    features, chosen = [], []
    for one in pixels.split(1):
        nearness = F.normalize(phase_one(body, one)) @ F.normalize(body.groups.keys).T
        best = nearness[0].argsort(descending=True)[: body.groups.chosen]
        group = sum(body.groups.pool[i] for i in best) / len(best)
        later = [
            torch.cat([shared, own]) for shared, own in zip(body.prompts[-len(group) :], group, strict=True)
        ]
        prompts = [*body.prompts[: -len(group)], *later]
        tokens = appended(body.pretrained, embedded(body.pretrained, one), prompts)
        features.append(body.pretrained.norm(tokens)[:, 0])
        chosen.append(best)
    return torch.cat(features), torch.stack(chosen)


near = partial(near_by, rounded=IMAGE)
KINDS = [
    {},
    {"init_values": 0.3},
    {"qkv_bias": False, "pre_norm": True},
    {"qk_norm": True, "reg_tokens": 2},
    {"no_embed_class": True, "pos_embed": "learn", "dynamic_img_size": True},
]


@pytest.mark.parametrize("kind", KINDS)
def test_without_prompts_features_are_those_of_timm(kind):
    body = tuned(Frozen, kind=kind)
    assert near(body({"pixels": images()}).vector, body.pretrained.forward_features(images())[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_as_keys_and_values_equal_prompts_appended_and_dropped(kind):
    body = tuned(Prompts, length=3, kind=kind)
    assert near(body({"pixels": images()}).vector, phase_one(body, images()))
    assert not near(body({"pixels": images()}).vector, body.pretrained.forward_features(images())[:, 0])


def test_gradients_of_prompts_equal_those_of_the_appended_form():
    body = tuned(Prompts, length=3)
    ours = torch.autograd.grad(body({"pixels": images()}).vector.square().sum(), body.prompts)[0]
    theirs = torch.autograd.grad(phase_one(body, images()).square().sum(), body.prompts)[0]
    assert_near(ours, theirs, rounded=SLOPES * IMAGE)
    assert ours.abs().min() > 0


def test_prompts_of_length_zero_change_nothing():
    body = tuned(Prompts, length=0)
    assert near(body({"pixels": images()}).vector, body.pretrained.forward_features(images())[:, 0])


def test_shallow_prompts_are_tokens_of_the_plain_model():
    body = tuned(PromptsShallow, length=3)
    tokens = embedded(body.pretrained, images())
    whole = body.pretrained.blocks(torch.cat([tokens, body.prompts.expand(3, -1, -1)], 1))
    assert near(body({"pixels": images()}).vector, body.pretrained.norm(whole)[:, 0])


def test_group_prompts_of_no_length_leave_phase_one():
    body = tuned(GroupPrompts, **GROUPED)
    body.groups.pool = torch.nn.Parameter(body.groups.pool[:, :, :0])
    assert near(body({"pixels": images()}).vector, phase_one(body, images()))


@pytest.mark.parametrize("changes", [{}, {"shared_blocks": 0}, {"shared_blocks": 3}, {"chosen": 3}])
def test_reusing_the_early_blocks_changes_nothing(changes):
    body = tuned(GroupPrompts, **GROUPED | changes)
    made = body({"pixels": images(8)})
    features, chosen = phase_two(body, images(8))
    assert near(made.vector, features) and torch.equal(made.chosen, chosen)
    assert len(made.chosen.unique()) > 2  # not the same few for all


def test_the_match_is_one_minus_the_mean_cosine_with_the_chosen_keys():
    body = tuned(GroupPrompts, **GROUPED)
    made, query = body({"pixels": images()}), phase_one(body, images())
    for match, row, asked in zip(made.match, made.chosen, query, strict=True):
        cosines = [
            torch.dot(asked, body.groups.keys[i]) / asked.norm() / body.groups.keys[i].norm() for i in row
        ]
        assert_near(match, 1 - sum(cosines) / len(cosines), rounded=IMAGE)  # LPT Eq. 5


def test_the_pretrained_query_is_the_class_token_without_any_prompt():
    body = tuned(GroupPrompts, **GROUPED, query="pretrained")
    query = body.pretrained.forward_features(images())[:, 0]
    expected = (F.normalize(query) @ F.normalize(body.groups.keys).T).topk(2).indices
    assert torch.equal(body({"pixels": images()}).chosen, expected)


def test_the_choice_for_an_image_does_not_depend_on_the_others_of_its_batch():
    body = tuned(GroupPrompts, **GROUPED)
    together = body({"pixels": images(8)}).chosen
    assert torch.equal(together, torch.cat([body({"pixels": one}).chosen for one in images(8).split(1)]))


@pytest.mark.parametrize("joint", [False, True])
def test_no_gradient_reaches_the_query(joint):
    body = tuned(GroupPrompts, **GROUPED, joint=joint).train()
    body({"pixels": images()}).match.sum().backward()
    assert [name for name, value in body.named_parameters() if value.grad is not None] == ["groups.keys"]


@pytest.mark.parametrize(
    "tuner, told, learns",
    [
        (Frozen, {}, set()),
        (Prompts, {}, {"prompts"}),
        (PromptsShallow, {}, {"prompts"}),
        (GroupPrompts, GROUPED, {"groups.pool", "groups.keys"}),
        (GroupPrompts, {**GROUPED, "joint": True}, {"prompts", "groups.pool", "groups.keys"}),
        (GroupPrompts, {**GROUPED, "query": "pretrained"}, {"groups.pool", "groups.keys"}),
    ],
)
def test_a_step_moves_what_learns_and_nothing_else_by_a_bit(tuner, told, learns):
    body = tuned(tuner, kind={"drop_path_rate": 0.5, "proj_drop_rate": 0.5}, **told).train()
    head = torch.nn.Linear(WIDTH, 2)
    before = {name: value.clone() for name, value in body.state_dict().items()}
    learned = [value for value in body.parameters() if value.requires_grad]
    made = body({"pixels": images()})
    loss = head(made.vector).square().sum() + (0 if made.match is None else made.match.sum())
    loss.backward()
    torch.optim.SGD([*learned, *head.parameters()], lr=0.1, weight_decay=0.1).step()
    moved = {name for name, value in body.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == learns


def test_a_frozen_network_drops_no_paths_in_training_and_a_tuned_one_does():
    frozen, full = (tuned(tuner, kind={"drop_path_rate": 0.9}).train() for tuner in (Frozen, Full))
    plain = frozen.pretrained.forward_features(images())[:, 0]
    assert near(frozen({"pixels": images()}).vector, plain) and not near(
        full({"pixels": images()}).vector, plain
    )


def test_full_tuning_trains_all():
    body = tuned(Full).train()
    body({"pixels": images()}).vector.square().sum().backward()
    assert all(value.grad.abs().sum() > 0 for value in body.parameters())


def test_tuned_norms_are_all_that_learns_of_the_vit():
    body = tuned(Prompts, {"norms": "tuned"})
    learned = {name for name, value in body.named_parameters() if value.requires_grad} - {"prompts"}
    assert learned == {name for name, _ in body.named_parameters() if ".norm" in name}
    assert len(learned) == 2 * (2 * DEPTH + 1)


@pytest.mark.parametrize("extra", [{"adapter": 4}, {"border": 2}])
def test_adapters_and_border_start_as_identity_and_then_matter(extra):
    body = prompted(vit(), Frozen, extra).eval()
    plain = body.pretrained.forward_features(images())[:, 0]
    assert near(body({"pixels": images()}).vector, plain)
    for value in (value for value in body.parameters() if value.requires_grad):
        value.data.add_(torch.randn_like(value))
    assert not near(body({"pixels": images()}).vector, plain)


def test_a_border_touches_the_frame_only():
    body = prompted(vit(), Frozen, {"border": 2})
    body.border.pixels.data.fill_(1.0)
    added = body.border(images()) - images()
    frame = torch.ones(3, 16, 16)
    frame[:, 2:-2, 2:-2] = 0
    assert near(added, frame, largest=images().abs().max().item())
    assert body.border.pixels.numel() == 3 * (16**2 - 12**2)


def test_prompt_dropout_is_drawn_for_each_example_and_only_in_training():
    body = tuned(Prompts, prompt_dropout=0.5)
    alike = images(1).expand(2, -1, -1, -1)
    one, other = body.train()({"pixels": alike}).vector
    assert not near(one, other)
    assert near(*body.eval()({"pixels": alike}).vector)


def test_frozen_shared_prompts_are_never_dropped_from_the_query():
    body = tuned(GroupPrompts, **GROUPED, prompt_dropout=0.9)
    assert near(body.train()({"pixels": images()}).match, body.eval()({"pixels": images()}).match)


@pytest.mark.parametrize("init, bound", [("trunc_normal", 2.0), ("xavier", (6 / (3 * 16 + WIDTH)) ** 0.5)])
def test_prompts_start_as_the_papers_say(init, bound):
    prompts = prompted(vit(), Prompts, length=50, init=init).prompts
    deviation = 0.02 if init == "trunc_normal" else bound / 3**0.5
    assert prompts.abs().max() <= bound and abs(prompts.std() / deviation - 1) < 0.05


def test_the_parameters_of_a_vit_b_are_the_papers():
    with torch.device("meta"):
        base = timm.models.VisionTransformer(num_classes=0)
        body = prompted(base, GroupPrompts)
        counts = {name: value.numel() for name, value in body.named_parameters()}
        adapted = prompted(base, Frozen, {"adapter": 4})
    assert (
        counts["prompts"] == 92_160 and counts["groups.pool"] == 921_600
    )  # LPT Table 1; appendix B and Table 12
    assert counts["groups.keys"] == 15_360
    # LIFT's count for 100 classes
    assert sum(value.numel() for value in adapted.parameters() if value.requires_grad) == 101_436


@pytest.mark.parametrize("tuner, told", [(Prompts, {}), (GroupPrompts, GROUPED)])
def test_half_precision_comes_near_and_gradients_stay_in_full(tuner, told):
    body = tuned(tuner, **told)
    exact = body({"pixels": images()}).vector
    with rounded(body):
        made = body.train()({"pixels": images()}).vector
        made.float().sum().backward()
    assert made.dtype == torch.bfloat16 and (made - exact).norm() < 0.05 * exact.norm()
    assert {value.grad.dtype for value in body.parameters() if value.grad is not None} == {torch.float32}


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"chosen": 3, "pool": 2}, "chosen 3 of a pool of 2 group prompts"),
        ({"chosen": 0}, "chosen goes from 1 to pool"),
        ({"shared_blocks": 12}, "shared_blocks 12 leaves no block .* 12: choose 0 to 11"),
        ({"starts": False}, "either from the run named in start or, with joint"),
        ({"joint": True}, "state one of the two"),
        ({"border": 112}, "border 112 leaves nothing of 224 pixels"),
        ({"query": "pretrained", "norms": "tuned"}, "norms must be frozen"),
    ],
)
def test_settings_that_do_not_go_together_are_one_sentence(changes, sentence):
    def check(*, starts=True, **told):
        beside = {key: told.pop(key) for key in ("border", "norms") if key in told}
        tuning.check(GroupPrompts(**told, beside=Beside(**beside)), starts=starts, depth=12, size=224)

    check()
    with pytest.raises(BadInput, match=sentence):
        check(**changes)


@pytest.mark.parametrize("zoom, size", [(1.0, None), (1.0, 224), (1.001, 224), (0.5, None)])
def test_five_crops_need_images_larger_than_they_are(zoom, size):
    tuning.check_views(1, zoom, size)
    tuning.check_views(5, 1.143, size)
    with pytest.raises(BadInput, match=f"views is 1, or 5 with test_zoom above 1, not 5 with {zoom:g}"):
        tuning.check_views(5, zoom, size)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's compiler advises
@pytest.mark.parametrize("tuner, told", [(Prompts, {}), (GroupPrompts, GROUPED), (Lora, {})])
def test_compiled_blocks_compute_the_same(tuner, told, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # its checks cannot be compiled
    body, pixels = tuned(tuner, **told).cuda(), images(8).cuda()
    learned = [value for value in body.parameters() if value.requires_grad]

    def features_and_slopes():
        made = body({"pixels": pixels})
        loss = made.vector.square().sum() + (0 if made.match is None else made.match.sum())
        return made.vector, *torch.autograd.grad(loss, learned)

    plain = features_and_slopes()
    body.compile_blocks()
    for one, other in zip(plain, features_and_slopes(), strict=True):
        assert_near(one, other, rounded=SLOPES * IMAGE)


def test_every_declared_tuner_is_there_and_none_else():
    assert options("tuner").keys() == TUNERS.keys()
