"""The loop: resuming, stopping, accumulating, and what a run that goes wrong says."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import get_linear_schedule_with_warmup

from tailprompt import loop
from tailprompt.encode import pack
from tailprompt.errors import BadInput
from tailprompt.loop import accumulate, fit, linear, predict
from tailprompt.samplers import shuffled


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


def loss(logits, labels):
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
    def broken(logits, labels):
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
        accumulate(net, train, torch.arange(8), micro, loss, "float32")
        gradients.append(torch.cat([value.grad.flatten() for value in net.parameters()]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6) and torch.allclose(
        gradients[0], gradients[2], atol=1e-6
    )


def test_out_of_memory_halves_the_micro_batch_and_says_so(monkeypatch, capsys):
    whole = loop.accumulate

    def small_card(net, train, indices, micro, *rest):
        if micro > 2:
            raise torch.cuda.OutOfMemoryError
        return whole(net, train, indices, micro, *rest)

    monkeypatch.setattr(loop, "accumulate", small_card)
    assert run(model(), epochs=1).micro == 2
    assert "micro-batch is now 2, the batch stays 8" in capsys.readouterr().out
    monkeypatch.setattr(loop, "accumulate", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError()))
    with pytest.raises(BadInput, match="no memory for a single example"):
        run(model(), epochs=1)


def test_schedule_is_transformers_linear_schedule_with_warmup():
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule, factor = get_linear_schedule_with_warmup(optimizer, 10, 50), linear(10, 50)
    for step in range(50):
        assert abs(schedule.get_last_lr()[0] - factor(step)) < 1e-9
        optimizer.step()
        schedule.step()


def test_prediction_does_not_depend_on_batches_or_padding():
    net, dev = model(), examples(24, 2)
    alone = torch.cat([net.eval()(dev.batch(torch.tensor([i]))[0]) for i in range(24)]).detach()
    assert torch.allclose(predict(net, dev), alone, atol=1e-6)
    assert torch.allclose(predict(net, dev, tokens=1), alone, atol=1e-6)
