"""The loop: resuming, stopping, accumulating, and what a run that goes wrong says."""

import pytest
import torch
from timm.scheduler import CosineLRScheduler
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

from tailprompt.errors import BadInput
from tailprompt.inputs.encode import pack
from tailprompt.training import loop
from tailprompt.training.loop import accumulate, cosine, cosine_as_released, fit, linear, predict
from tailprompt.training.samplers import balanced, dual, shuffled


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


def examples(count: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=generator)
    rows = []
    for label in labels.tolist():
        length = int(torch.randint(3, 12, (1,), generator=generator))
        ids = torch.randint(1, 37, (length,), generator=generator).tolist() + [37 + label]
        rows.append((ids, [0] * len(ids), 0, False))
    return pack(rows, labels, [f"row-{i}" for i in range(count)], 0)


def judge(logits, labels):
    return {"f1": float((logits.argmax(-1) == labels).float().mean())}


def loss(logits, labels, branch=0, elapsed=0.0):
    return cross_entropy(logits, labels, reduction="none")


OPTIONS = {
    "loss": loss,
    "sampler": shuffled,
    "judge": judge,
    "select": "f1",
    "seed": 7,
    "lr": 0.01,
    "batch": 8,
    "epochs": 4,
    "patience": 9,
    "evaluate_every": 3,
    "save_seconds": 0.0,
}


def run(net, **changes):
    return fit(net, examples(64, 1), examples(24, 2), **{**OPTIONS, **changes})


def weights(net):
    return torch.cat([value.detach().flatten() for value in net.parameters()])


def test_a_run_learns_and_ends_with_the_weights_of_its_best_step():
    net = model()
    progress = run(net)
    scores = [row["f1"] for row in progress.curve]
    assert max(scores) > scores[0]
    assert (
        judge(predict(net, examples(24, 2)), examples(24, 2).labels)["f1"]
        == progress.best_score
        == max(scores)
    )
    assert progress.best_step == progress.curve[scores.index(max(scores))]["step"]  # the first of equals


@pytest.mark.parametrize("killed_at", [3, 9, 18])
def test_a_killed_run_resumes_to_the_same_weights_and_curve(tmp_path, monkeypatch, killed_at):
    whole = model()
    expected = run(whole)
    state, net = tmp_path / "state.pt", model()
    update = loop.update

    def kill(*arguments):
        if arguments[5].step == killed_at + 1:
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


def test_half_a_state_file_is_set_aside(tmp_path):
    state = tmp_path / "state.pt"
    run(model(), state=state, key="one", epochs=1)
    state.write_bytes(state.read_bytes()[:500])
    fresh = model()
    run(fresh, epochs=1)
    other = model()
    run(other, state=state, key="one", epochs=1)
    assert torch.equal(weights(fresh), weights(other))


def test_patience_counts_steps_since_the_best_one():
    progress = run(model(), patience=1, epochs=20, lr=0.0)
    assert progress.best_step == 3
    assert progress.step == 12  # the first evaluation at least one epoch of 8 steps after step 3


def test_no_epochs_leaves_the_model_as_it_is():
    net = model()
    before = weights(net).clone()
    assert run(net, epochs=0).step == 0
    assert torch.equal(weights(net), before)


def test_loss_that_is_not_finite_stops_with_step_tensor_and_examples():
    def broken(logits, labels, branch, elapsed):
        return loss(logits, labels) * float("nan")

    net = model()
    before = weights(net).clone()
    with pytest.raises(
        BadInput,
        match=r"stopped at step 1: the loss is nan \(first tensor: words.weight\); examples of .*: row-\d+",
    ):
        run(net, loss=broken)
    assert torch.equal(weights(net), before)  # nothing was applied


def test_gradient_that_is_not_finite_names_its_tensor():
    net = model()
    net.out.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(BadInput, match="gradient of out.weight is not finite"):
        run(net)


def test_accumulated_gradients_equal_those_of_the_whole_batch():
    train = examples(8, 1)
    gradients = []
    for micro in (8, 3, 1):
        net = model().eval()
        accumulate(net, train, [torch.arange(8)], micro, loss, "float32")
        gradients.append(torch.cat([value.grad.flatten() for value in net.parameters()]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6) and torch.allclose(
        gradients[0], gradients[2], atol=1e-6
    )


def test_out_of_memory_halves_the_micro_batch_and_says_so(monkeypatch, capsys):
    whole = loop.accumulate

    def small_card(net, train, batch, micro, *rest):
        if micro > 2:
            raise torch.cuda.OutOfMemoryError
        return whole(net, train, batch, micro, *rest)

    monkeypatch.setattr(loop, "accumulate", small_card)
    assert run(model(), epochs=1).micro == 2
    assert "micro-batch is now 2, the batch stays 8" in capsys.readouterr().out
    monkeypatch.setattr(loop, "accumulate", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError()))
    with pytest.raises(BadInput, match="no memory for a single example"):
        run(model(), epochs=1)


STEPS = 8  # an epoch


@pytest.mark.parametrize(
    "ours, theirs",
    [(linear, get_linear_schedule_with_warmup), (cosine, get_cosine_schedule_with_warmup)],
)
def test_schedules_are_those_of_transformers(ours, theirs):
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule, factor = theirs(optimizer, 2 * STEPS, 50), ours(2, 50, STEPS)
    for step in range(51):
        assert abs(schedule.get_last_lr()[0] - factor(step)) < 1e-9
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("schedule", [loop.constant, loop.inverse_root])
def test_schedules_of_ppt_rise_over_the_warm_up_and_then_stay_or_fall_with_the_root(schedule):
    rising = [schedule(2.0, 100, 5)(step) for step in range(11)]
    assert rising == [step / 10 for step in range(11)]
    factor = schedule(0.0, 100, 5)
    assert factor(0) == 1 and factor(15) == (1 if schedule is loop.constant else 1 / 4)


@pytest.mark.parametrize("warmup", [5, 1, 0])
def test_the_released_schedule_is_timms_with_a_step_an_epoch(warmup):
    base, epochs = 0.02, 12
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=base)
    theirs = CosineLRScheduler(
        optimizer, t_initial=epochs, warmup_t=warmup, warmup_lr_init=1e-6, warmup_prefix=False
    )
    factor = cosine_as_released(warmup, epochs * STEPS, STEPS)
    for epoch in range(epochs):
        theirs.step(epoch)
        rates = {base * factor(epoch * STEPS + step) for step in range(STEPS)}
        assert len(rates) == 1 and rates.pop() == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)


def plain_steps(net, optimizer, schedule, *, clip, epochs=2):
    """The weights after a training loop written down plainly, of the batches that `fit` takes."""
    train = examples(64, 1)
    for epoch in range(epochs):
        for (rows,) in loop.epoch_batches(train, shuffled, 8, 1, 7, epoch):
            net.train()
            inputs, labels = train.batch(rows)
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
def test_sgd_is_torchs_and_clip_zero_does_not_clip(monkeypatch, clip):
    monkeypatch.setitem(loop.SCHEDULES, "linear", lambda *_: falling)
    plain = model()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.5, momentum=0.8, weight_decay=0.01)
    expected = plain_steps(plain, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, falling), clip=clip)
    ours = model()
    plan = {"optimizer": "sgd", "momentum": 0.8, "weight_decay": 0.01, "lr": 0.5, "clip": clip, "epochs": 2}
    run(ours, **plan, select="last")
    assert torch.allclose(weights(ours), expected, atol=1e-6)


def test_prediction_does_not_depend_on_batches_or_padding():
    net, dev = model(), examples(24, 2)
    alone = torch.cat([net.eval()(dev.batch(torch.tensor([i]))[0]) for i in range(24)]).detach()
    assert torch.allclose(predict(net, dev), alone, atol=1e-6)
    assert torch.allclose(predict(net, dev, tokens=1), alone, atol=1e-6)


def test_last_keeps_the_last_weights_and_needs_no_dev():
    empty, net = pack([], [], [], 0), model()
    progress = fit(net, examples(64, 1), empty, **{**OPTIONS, "select": "last", "patience": 0.5})
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
    train, net = examples(32, 1), model().eval()
    branches = [torch.arange(8), torch.arange(8, 32, 3)]
    total = accumulate(net, train, branches, micro, weighed, "float32", 0.5)
    found = torch.cat([value.grad.flatten() for value in net.parameters()])
    net.zero_grad()
    means = [cross_entropy(net(train.batch(rows)[0]), train.labels[rows]) for rows in branches]
    expected = 1.5 * (means[0] + 0.3 * means[1])
    expected.backward()
    assert float(total) == pytest.approx(expected.item(), abs=1e-6)
    gradient = torch.cat([value.grad.flatten() for value in net.parameters()])
    assert torch.allclose(found, gradient, atol=1e-6)


def test_the_loss_hears_of_branch_and_of_the_share_of_epochs_that_are_over():
    heard = []

    def listening(logits, labels, branch, elapsed):
        heard.append((branch, elapsed))
        return loss(logits, labels)

    run(model(), loss=listening, sampler=dual, epochs=2.5, select="last")
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

        def batch(self, indices):
            events.append(("take", key(indices)))
            return super().batch(indices)

    train = Watched(**vars(examples(64, 1)))
    fit(model(), train, pack([], [], [], 0), **{**OPTIONS, "select": "last", "epochs": 1, "sampler": sampler})
    branches = 2 if sampler is dual else 1
    taken = [rows for event, rows in events if event == "take"]
    assert [rows for event, rows in events if event == "expect"] == taken[branches:]
    assert [event for event, _ in events[: 2 * branches]] == ["expect"] * branches + ["take"] * branches
