"""The loop: resuming, stopping, accumulating, and what a run that goes wrong says."""

import pickle
import zlib
from dataclasses import replace
from functools import partial
from io import BytesIO

import pytest
import torch
from batches import batch_of
from torch import nn
from torch.nn.functional import cross_entropy

from tailprompt.errors import BadInput
from tailprompt.inputs.texts import UNLABELLED, Examples
from tailprompt.training import loop, stopping
from tailprompt.training.batches import cut, epoch_batches, of_outputs, predict, sampled, sizes
from tailprompt.training.loop import Batches, Part, Schedule, accumulate, fit, learner_of, tired
from tailprompt.training.losses import LOSSES
from tailprompt.training.objective import of_tokens
from tailprompt.training.optimizers import adamw, sgd
from tailprompt.training.samplers import balanced, dual, shuffled
from tailprompt.training.schedules import linear
from tailprompt.training.state import Progress, resume


class Bag(nn.Module):
    """Mean of word vectors, dropout, linear: small, and its training depends on the random state."""

    def __init__(self):
        super().__init__()
        self.words, self.drop, self.out = nn.Embedding(40, 8), nn.Dropout(0.2), nn.Linear(8, 3)

    def forward(self, batch):
        there = batch["attention_mask"][..., None]
        mean = (self.words(batch["input_ids"]) * there).sum(1) / there.sum(1)
        return self.out(self.drop(mean))


def model():
    torch.manual_seed(0)
    return Bag()


class Tokens(nn.Module):
    """Three outputs of each token."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 3)

    def forward(self, batch):
        return self.words(batch["input_ids"])


def examples(count: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=generator)
    texts = []
    for label in labels.tolist():
        length = int(torch.randint(3, 12, (1,), generator=generator))
        texts.append([*torch.randint(1, 37, (length,), generator=generator).tolist(), 37 + label])
    lengths, tokens = torch.tensor([len(ids) for ids in texts]), torch.tensor(sum(texts, []))
    names, at = [f"row-{i}" for i in range(count)], torch.zeros_like(labels)
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return Examples(
        tokens, torch.zeros_like(tokens), starts, lengths, at, labels, names, pad=0, most=12, truncated=0
    )


def judge(logits, labels):
    return {"f1": float((logits.argmax(-1) == labels).float().mean())}


def evaluate(net):
    dev = examples(24, 2)
    return judge(predict(net, dev), dev.labels)


def loss(logits, labels, branch=0, elapsed=0.0):
    return cross_entropy(logits, labels, reduction="none")


SCHEDULE = {
    "optimizer": partial(adamw, weight_decay=0.0, adam_eps=1e-6),
    "rate": partial(linear, warmup=1.0),
    "lr": 0.01,
    "epochs": 4,
    "patience": 9,
    "clip": 1.0,
    "evaluate_every": 3,
    "select": "f1",
}


@pytest.fixture(autouse=True)
def saved_at_each_step(monkeypatch):
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "SHARE", float("inf"))


def batches(sampler=shuffled, *, train=None):
    return sampled(train or examples(64, 1), sampler, batch=8, bucket=1, seed=7)


def run(net, *, loss=loss, evaluate=evaluate, on=None, state=None, key="", **changes):
    schedule = Schedule(**{**SCHEDULE, **changes})
    return fit(net, on or batches(), of_outputs(loss), evaluate, schedule, state=state, key=key, label="toy")


def weights(net):
    return torch.cat([value.detach().flatten() for value in net.parameters()])


def test_a_run_learns_and_ends_with_the_weights_of_its_best_step():
    net = model()
    progress = run(net)
    scores = [row["f1"] for row in progress.curve]
    assert max(scores) > scores[0]
    assert evaluate(net)["f1"] == progress.best_score == max(scores)
    assert progress.best_step == progress.curve[scores.index(max(scores))]["step"]  # the first of equals


def test_a_score_that_is_undefined_is_never_the_best():
    scores = iter([float("nan"), 0.3, float("nan"), 0.2] + [0.1] * 9)
    progress = run(model(), evaluate=lambda _: {"f1": next(scores)})
    assert (progress.best_score, progress.best_step) == (0.3, 6)


def test_parts_that_come_in_evaluation_mode_are_trained_from_the_first_step():
    net, seen = model(), []
    net.drop.eval()  # as a checkpoint of transformers
    net.drop.register_forward_hook(lambda layer, *_: seen.append(layer.training))
    run(net, evaluate=lambda _: {"f1": 0.0})
    assert len(seen) == 32 and all(seen)


@pytest.mark.parametrize("killed_at", [3, 9, 18])
def test_a_killed_run_resumes_to_the_same_weights_and_curve(tmp_path, monkeypatch, killed_at):
    whole = model()
    expected = run(whole)
    state, net = tmp_path / "state.pt", model()
    update = loop.update

    def kill(*arguments):
        if arguments[4].step == killed_at + 1:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(loop, "update", kill)
    with pytest.raises(KeyboardInterrupt):
        run(net, state=state, key="same")
    monkeypatch.setattr(loop, "update", update)
    torch.manual_seed(99)  # a new process starts elsewhere
    net = Bag()
    progress = run(net, state=state, key="same")
    assert torch.equal(weights(net), weights(whole))
    drop = lambda curve: [{key: value for key, value in row.items() if key != "seconds"} for row in curve]  # noqa: E731
    assert drop(progress.curve) == drop(expected.curve)


def test_the_state_of_other_settings_is_not_resumed(tmp_path):
    state = tmp_path / "state.pt"
    run(model(), state=state, key="one", epochs=1)
    fresh = model()
    run(fresh, epochs=1)
    other = model()
    run(other, state=state, key="two", epochs=1)
    assert torch.equal(weights(fresh), weights(other))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The state of a run of an epoch, and the weights of one that begins anew."""
    state, fresh = tmp_path_factory.mktemp("run") / "state.pt", model()
    run(fresh, epochs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopping, "SAVE_SECONDS", 0.0)
        patch.setattr(stopping, "SHARE", float("inf"))
        run(model(), state=state, key="one", epochs=1)
    return state.read_bytes(), weights(fresh)


def checked(content: bytes) -> bytes:
    """A state with the right checksum."""
    return content + zlib.crc32(content).to_bytes(4, "little")


def written(value) -> bytes:
    """An object as torch writes it."""
    file = BytesIO()
    torch.save(value, file)
    return file.getvalue()


def changed(content: bytes, **parts) -> bytes:
    """A state in which some parts are others, with the right checksum."""
    return checked(written(torch.load(BytesIO(content[:-4])) | parts))


DAMAGE = {
    **{f"cut at {at}": lambda state, at=at: state[: int(at * len(state))] for at in (0, 0.1, 0.5, 0.99)},
    **{f"a bit at {at}": lambda state, at=at: flipped(state, at) for at in (0, 0.2, 0.5, 0.7, 0.95, 1)},
    "zeros": lambda state: bytes(len(state)),
    "zeros inside": lambda state: state[:4000] + bytes(512) + state[4512:],
    "without a checksum": lambda state: state[:-4],
    "text": lambda state: checked(b"hello"),
    "json": lambda state: b"{}",
    "a pickle": lambda state: checked(pickle.dumps({"key": "one"})),
    "a list": lambda state: checked(written([1])),
    "a key alone": lambda state: checked(written({"key": "one"})),
    "other tensors": lambda state: changed(state, learned={"words.weight": torch.ones(2)}),
    "no progress": lambda state: changed(state, progress={}),
    "another optimizer": lambda state: changed(state, optimizer={"state": {}, "param_groups": []}),
    "no random numbers": lambda state: changed(state, random=torch.zeros(3)),
}


def flipped(content: bytes, place: float) -> bytes:
    """The content with one bit changed."""
    at = int(place * (len(content) - 1))
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_said_and_the_run_begins_anew(tmp_path, capsys, trained, damage):
    (tmp_path / "state.pt").write_bytes(damage(trained[0]))
    net = model()
    run(net, state=tmp_path / "state.pt", key="one", epochs=1)
    assert torch.equal(weights(net), trained[1])
    assert capsys.readouterr().out.count("; starting from the first step\n") == 1


def test_a_state_that_cannot_be_opened_is_said(tmp_path, capsys):
    state, net = tmp_path / "state.pt", model()
    state.symlink_to(tmp_path / "away")
    assert resume(state, "one", learner_of(net, Schedule(**SCHEDULE), 8, 8)) is None
    assert capsys.readouterr().out.endswith("; starting from the first step\n")


@pytest.mark.parametrize(
    "scores, patience, every, steps",
    [
        ([0.1, 0.9, 0.8, 0.7, 0.6], 1.0, 3, 6 + 8),  # as GLEE's logs: best + patience, between evaluations
        ([0.1, 0.9, 0.8, 0.95, 0.6, 0.5, 0.4], 1.0, 3, 12 + 8),
        ([0.1, 0.2, 0.3], 0.0, 3, 3),
        ([0.9, 0.1, 0.1], 0.25, 6, 12),  # evaluated once more, however short the patience
        ([0.9, 0.1, 0.1, 0.1], 2.0, 8, 24),
    ],
)
def test_a_run_ends_when_its_best_step_is_patience_steps_back(scores, patience, every, steps):
    each = iter([*scores, *[0.0] * 99])
    progress = run(
        model(), evaluate=lambda _: {"f1": next(each)}, patience=patience, evaluate_every=every, epochs=20
    )
    assert progress.step == steps


def test_a_run_without_selection_never_tires():
    assert run(model(), evaluate=lambda _: {}, select="last", patience=0.1, evaluate_every=6).step == 32


def test_glees_rows_end_two_epochs_after_their_best_step_as_its_logs_do():
    of_r52, epoch = Progress(step=1572, best_step=1200, curve=[{"step": 1500}]), 186
    assert tired(of_r52, 2 * epoch) and not tired(replace(of_r52, step=1571), 2 * epoch)


def test_no_epochs_leaves_the_model_as_it_is():
    net = model()
    before = weights(net).clone()
    assert run(net, epochs=0).step == 0
    assert torch.equal(weights(net), before)


def test_loss_that_is_not_finite_stops_with_step_tensor_and_examples():
    def broken(logits, labels, branch, elapsed):
        return loss(logits, labels) * float("nan")

    with pytest.raises(
        BadInput,
        match=r"stopped at step 1: the loss is nan \(first tensor: words.weight\); examples of .*: row-\d+",
    ):
        run(model(), loss=broken)


def test_the_first_step_of_several_that_are_not_finite_is_named_and_nothing_of_it_is_kept(tmp_path):
    steps = iter(range(100))
    broken = lambda logits, labels, *_: loss(logits, labels) / (next(steps) < 4)  # noqa: E731
    on, state = batches(), tmp_path / "state.pt"
    with pytest.raises(BadInput, match=f"stopped at step 5: the loss is inf .*: {', '.join(on.names(4))};"):
        run(model(), loss=broken, on=on, state=state)
    assert torch.load(state)["progress"]["step"] == 4


def test_gradient_that_is_not_finite_names_its_tensor():
    net = model()
    net.out.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(BadInput, match="gradient of out.weight is not finite"):
        run(net)


class TwoHeads(Bag):
    """A bag whose steps take turns with two last layers, so that each leaves one out."""

    def __init__(self):
        super().__init__()
        self.heads, self.steps = nn.ModuleList([self.out, nn.Linear(8, 3)]), 0

    def forward(self, batch):
        self.out, self.steps = self.heads[self.steps % 2], self.steps + 1
        return super().forward(batch)


def test_the_tensor_of_a_step_that_leaves_others_out_is_named():
    torch.manual_seed(0)
    net = TwoHeads()
    net.heads[0].weight.register_hook(lambda gradient: gradient * float("inf"))
    name = next(name for name, value in net.named_parameters() if value is net.heads[0].weight)
    with pytest.raises(BadInput, match=f"step 1: the gradient of {name} is not finite"):
        run(net, evaluate_every=2)  # the second step has another head


@pytest.mark.parametrize("select", ["f1", "last"])
@pytest.mark.parametrize("epochs, step", [(1e-9, 1), (3 / 8, 3), (6 / 8, 3)])
def test_a_tensor_that_an_update_before_an_evaluation_breaks_is_named_and_not_kept(
    tmp_path, select, epochs, step
):
    net, taken = model(), []

    def breaking(values, *, lr):
        optimizer = sgd(values, lr=lr, momentum=0.0, weight_decay=0.0)

        def broken(*_):
            taken.append(1)
            if len(taken) == step:
                net.out.bias.data[1] = float("nan")

        optimizer.register_step_post_hook(broken)
        return optimizer

    with pytest.raises(BadInput, match=f"stopped at step {step}: out.bias is not finite; lower lr"):
        run(net, optimizer=breaking, epochs=epochs, select=select, state=tmp_path / "state.pt")
    kept = [torch.load(file)["progress"]["step"] for file in tmp_path.iterdir()]
    assert kept == ([step - 1] if step > 1 else [])


@pytest.mark.parametrize("epochs", [1e300, float("inf"), float("nan"), 1e9 / 7])
def test_more_steps_than_anyone_takes_are_refused_before_the_first(epochs):
    with pytest.raises(BadInput, match="are more than 1,000,000,000 steps; lower epochs"):
        run(model(), epochs=epochs)


def one_step(train, branches):
    """Batches whose first step has these rows in its branches."""
    orders = torch.stack([rows.repeat(len(train))[: len(train)] for rows in branches])
    return sampled(train, lambda *_: orders, batch=len(train), bucket=1, seed=0)


def accumulated(net, on, micro, loss=loss, elapsed=0.0):
    return accumulate(net, on.parts(0, micro), of_outputs(loss), torch.tensor(elapsed))


def test_accumulated_gradients_equal_those_of_the_whole_batch():
    train = examples(8, 1)
    gradients = []
    for micro in (8, 3, 1):
        net = model().eval()
        accumulated(net, one_step(train, [torch.arange(8)]), micro)
        gradients.append(torch.cat([value.grad.flatten() for value in net.parameters()]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6) and torch.allclose(
        gradients[0], gradients[2], atol=1e-6
    )


def test_out_of_memory_halves_the_micro_batch_and_says_so(monkeypatch, capsys):
    whole = loop.accumulate

    def small(net, parts, *rest):
        parts = list(parts)
        if len(parts[0].staged[0]) > 2:
            raise torch.cuda.OutOfMemoryError
        return whole(net, parts, *rest)

    monkeypatch.setattr(loop, "accumulate", small)
    assert run(model(), epochs=1).micro == 2
    assert "micro-batch is now 2, the batch stays 8" in capsys.readouterr().out
    monkeypatch.setattr(loop, "accumulate", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError()))
    with pytest.raises(BadInput, match="no memory for a single example"):
        run(model(), epochs=1)


def plain_steps(net, optimizer, schedule, *, clip, epochs=2):
    """The weights after a training loop written down plainly, of the batches that `fit` takes."""
    train = examples(64, 1)
    for epoch in range(epochs):
        for (rows,) in epoch_batches(train, shuffled, batch=8, bucket=1, seed=7, epoch=epoch):
            net.train()
            inputs, labels = batch_of(train, rows)
            cross_entropy(net(inputs), labels).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    return weights(net)


def falling(step):
    return 0.95**step


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_sgd_is_torchs_and_clip_zero_does_not_clip(clip):
    plain = model()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.5, momentum=0.8, weight_decay=0.01)
    expected = plain_steps(plain, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, falling), clip=clip)
    ours = model()
    optimizer = partial(sgd, momentum=0.8, weight_decay=0.01)
    run(ours, optimizer=optimizer, rate=lambda *_: falling, lr=0.5, clip=clip, epochs=2, select="last")
    assert torch.allclose(weights(ours), expected, atol=1e-6)


def test_prediction_does_not_depend_on_batches_or_padding():
    net, dev = model(), examples(24, 2)
    alone = torch.cat([net.eval()(batch_of(dev, torch.tensor([i]))[0]) for i in range(24)]).detach()
    assert torch.allclose(predict(net, dev), alone, atol=1e-6)
    assert torch.allclose(predict(net, dev, tokens=1), alone, atol=1e-6)


def test_last_keeps_the_last_weights_and_needs_no_dev():
    net = model()
    progress = run(net, evaluate=lambda _: {}, select="last", patience=0.5)
    assert progress.step == progress.best_step == 32 and not progress.best
    assert [set(row) for row in progress.curve] == [{"step", "epoch", "loss", "lr", "seconds"}] * 11
    judged = model()
    run(judged, select="last")
    assert torch.equal(weights(judged), weights(net))  # whatever dev says


def weighed(logits, labels, branch, elapsed):
    """A loss that tells branches and epochs apart."""
    return loss(logits, labels) * (1.0, 0.3)[branch] * (1 + elapsed)


@pytest.mark.parametrize("micro", [8, 3])
def test_two_branches_add_up_as_the_sum_of_their_means_whatever_the_micro_batch(micro):
    train, net = examples(8, 1), model().eval()
    branches = [torch.arange(8), torch.arange(8) // 3]
    total = accumulated(net, one_step(train, branches), micro, weighed, 0.5)
    found = torch.cat([value.grad.flatten() for value in net.parameters()])
    net.zero_grad()
    means = [cross_entropy(net(batch_of(train, rows)[0]), train.labels[rows]) for rows in branches]
    expected = 1.5 * (means[0] + 0.3 * means[1])
    expected.backward()
    assert float(total) == pytest.approx(expected.item(), abs=1e-6)
    gradient = torch.cat([value.grad.flatten() for value in net.parameters()])
    assert torch.allclose(found, gradient, atol=1e-6)


@pytest.mark.parametrize("micro", [8, 3, 1])
def test_the_parts_of_a_shape_have_the_gradient_of_the_whole_batch(micro):
    train, rows = examples(8, 1), torch.arange(8)
    rows = rows[train.lengths.argsort(stable=True)]
    ways = [(int(train.lengths[rows[3]]), 16), (16,)]
    gradients = []
    for allowed in (ways, ways[1:], ()):
        net, seen = model().eval(), []
        for part, there, width in cut(rows, rows, train.lengths, allowed, micro):
            inputs, labels = train.made(there, width=width or train.width(part))
            (loss(net(inputs), labels).sum() / 8).backward()
            seen += part.tolist()
        assert seen == rows.tolist()
        gradients.append(torch.cat([value.grad.flatten() for value in net.parameters()]))
    assert torch.allclose(*gradients[:2], atol=1e-6) and torch.allclose(*gradients[1:], atol=1e-6)


@pytest.mark.parametrize("micro", [8, 3, 1])
def test_the_loss_of_tokens_is_divided_by_the_labelled_tokens_of_the_batch(micro):
    train, net = examples(8, 1), Tokens()
    place = torch.arange(int(train.lengths.max()))
    labels = torch.where(place < train.lengths[:, None] - 2, place % 3, UNLABELLED)  # all tokens but two
    train = replace(train, labels=labels, unit="token")
    on = sampled(train, shuffled, batch=8, bucket=1, seed=7)
    cost = partial(of_tokens, partial(cross_entropy, reduction="none"))

    total = accumulate(net, on.parts(0, micro), of_outputs(lambda *told: cost(*told[:2])), torch.tensor(0.0))
    everything = net(batch_of(train, torch.arange(8))[0]).flatten(0, 1)
    mean = cross_entropy(everything, labels.flatten(), ignore_index=UNLABELLED)
    assert float(total) == pytest.approx(float(mean.detach()), abs=1e-6)


def test_the_loss_of_an_answer_is_the_mean_of_its_ends():
    logits = torch.randn(4, 9, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[0, 0], [2, 5], [3, 3], [1, 8]])
    costs = of_tokens(partial(LOSSES["cross_entropy"], counts=torch.ones(2)), logits, labels)
    ends = [cross_entropy(logits[..., end], labels[:, end], reduction="none") for end in (0, 1)]
    assert torch.allclose(costs, (ends[0] + ends[1]) / 2)


def test_outputs_of_tokens_come_in_order_and_padded_to_the_longest_text():
    train = replace(examples(8, 1), unit="token", labels=torch.zeros(8, 12, dtype=torch.long))
    net = Tokens()
    made = predict(net, train, tokens=20)
    assert made.shape == (8, int(train.lengths.max()), 3)
    order = train.lengths.argsort(descending=True, stable=True)
    for rows in order.split(sizes(train.lengths[order].tolist(), 20)):
        inputs = batch_of(train, rows)[0]["input_ids"]
        assert torch.equal(made[rows, : inputs.shape[1]], net.words(inputs))
        assert not made[rows, inputs.shape[1] :].any()


def test_the_loop_takes_any_batches():
    net = nn.Linear(2, 1)
    part = Part([torch.ones(4, 2)], lambda ones: ones, 4, "ones")
    on = Batches(1, 4, lambda step, micro: [part], lambda step: ["ones"])
    schedule = Schedule(**{**SCHEDULE, "epochs": 5, "select": "last", "patience": float("inf")})
    curve = fit(net, on, lambda net, batch, _: net(batch)[:, 0] ** 2, lambda _: {}, schedule).curve
    assert [row["step"] for row in curve] == [3, 5] and curve[1]["loss"] < curve[0]["loss"]


def test_the_loss_hears_of_branch_and_of_the_share_of_epochs_that_are_over():
    heard = []

    def listening(logits, labels, branch, elapsed):
        heard.append((branch, float(elapsed)))
        return loss(logits, labels)

    run(model(), loss=listening, on=batches(dual), epochs=2.5, select="last")
    shares = [epoch * 8 / 20 for epoch in (0, 1, 2) for _ in range(8)][:20]
    assert heard == [(branch, share) for share in shares for branch in (0, 1)]


@pytest.mark.parametrize("sampler", [balanced, dual])
def test_what_comes_next_is_expected_while_a_batch_is_worked_on(monkeypatch, sampler):
    events = []

    def key(rows):
        return tuple(rows.tolist())

    class Watched(type(examples(1, 1))):
        def expect(self, indices):
            events.append(("expect", key(indices)))

        def staged(self, indices, there):
            events.append(("take", key(indices)))
            return super().staged(indices, there)

    train = Watched(**vars(examples(64, 1)))
    run(model(), on=batches(sampler, train=train), evaluate=lambda _: {}, select="last", epochs=1)
    branches = 2 if sampler is dual else 1
    taken = [rows for event, rows in events if event == "take"]
    assert [rows for event, rows in events if event == "expect"] == taken[branches:]
    assert [event for event, _ in events[: 2 * branches]] == ["expect"] * branches + ["take"] * branches
