"""A signal, a kill or too little memory: what is kept of a run, where it goes on, and what is said."""

import os
import signal

import pytest
import torch
from test_loop import evaluate, loss, model, run, weights

from tailprompt.errors import BadInput, Stopped, stage
from tailprompt.machine import progress as shown
from tailprompt.training import loop, stopping
from tailprompt.training.stopping import SIGNALS


def without_times(curve):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in curve]


@pytest.fixture(scope="module")
def undisturbed():
    """The weights and the curve of a run that nothing ends."""
    net = model()
    return weights(net), without_times(run(net).curve), weights(net)


def sent(number, *, at):
    """A loss during whose evaluation number `at` this process is sent a signal."""
    count = iter(range(10**6))

    def disturbed(*arguments):
        if next(count) == at:
            os.kill(os.getpid(), number)
        return loss(*arguments)

    return disturbed


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("at", [0, 2, 3, 7, 31], ids="at {}".format)  # every third step is evaluated
def test_a_signal_saves_after_the_current_step_says_where_and_nothing_of_the_run_changes(
    tmp_path, monkeypatch, capsys, undisturbed, number, at
):
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 1e9)
    state = tmp_path / "state.pt"
    signal.signal(number, signal.default_int_handler)
    with pytest.raises(Stopped) as end:
        run(model(), loss=sent(number, at=at), state=state)
    assert signal.getsignal(number) is signal.default_int_handler
    assert end.value.code == 128 + number
    assert end.value.text == (
        f"stopped by {number.name} after step {at + 1} of 32; {state} holds all of them, and the same "
        "command goes on from there"
    )
    torch.manual_seed(99)  # a new process starts elsewhere
    net, taken = model(), []
    progress = run(net, loss=lambda *each: taken.append(1) or loss(*each), state=state)
    assert len(taken) == 31 - at and f"going on after step {at + 1}\n" in capsys.readouterr().out
    assert torch.equal(weights(net), undisturbed[2]) and without_times(progress.curve) == undisturbed[1]


def test_a_second_signal_does_not_wait_for_the_step(tmp_path):
    def twice(*arguments):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return loss(*arguments)

    with pytest.raises(KeyboardInterrupt):
        run(model(), loss=twice, state=tmp_path / "state.pt")


def test_an_ignored_signal_stays_ignored(tmp_path, undisturbed):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    net = model()
    run(net, loss=sent(signal.SIGHUP, at=4), state=tmp_path / "state.pt")
    assert torch.equal(weights(net), undisturbed[2])


def test_what_diverged_is_not_saved_for_a_signal(tmp_path):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    broken = sent(signal.SIGTERM, at=1)
    with pytest.raises(BadInput, match="stopped at step 1: the loss is inf"):
        run(model(), loss=lambda *each: broken(*each) / 0, state=tmp_path / "state.pt")
    assert not [*tmp_path.iterdir()]


def test_saving_takes_at_most_its_share_of_the_time(tmp_path, monkeypatch):
    now, saved = iter(range(10**6)), []
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "save", lambda *_: saved.append(next(now)))
    run(model(), epochs=12, state=tmp_path / "state.pt")
    gaps = [later - sooner for sooner, later in zip(saved, saved[1:], strict=False)]
    assert len(saved) > 3 and min(gaps) >= 2 / 0.05


def test_a_run_without_a_terminal_says_a_line_every_few_minutes_and_no_bar(monkeypatch, capsys):
    now = iter(range(0, 10**6, 7))
    monkeypatch.setattr(shown.time, "monotonic", lambda: float(next(now)))
    show = shown.lines("toy", total=1000, done=100)
    for step in range(101, 200):
        show(step, {"loss": 0.5} if step > 101 else {})
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "toy: 102 of 1,000 steps, loss 0.500; 0.1429 steps a second, at most 105 minutes left"
    assert [int(line.split()[1]) for line in said] == [102, 105, 111, 123, 146, 172, 198]


def test_nothing_in_the_log_of_a_run_breaks_a_line(capfd):
    run(model())
    assert "\r" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "error, says",
    [
        (
            MemoryError(),
            "error: this machine has too little memory (MemoryError); give the job",
        ),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't\nallocate"), "error: this machine has too"),
        (torch.OutOfMemoryError("CUDA out of memory"), "error: the GPU has too little memory (CUDA out of"),
    ],
    ids=["python", "torch", "card"],
)
def test_too_little_memory_is_one_sentence(capsys, error, says):
    with pytest.raises(SystemExit) as end:
        stage(lambda: (_ for _ in ()).throw(error))
    said = capsys.readouterr().err
    assert end.value.code == 2 and said.startswith(says) and said.count("\n") == 1


def test_memory_that_the_system_does_not_give_is_a_sentence(capsys):
    with pytest.raises(SystemExit):
        stage(lambda: torch.empty(2**46))  # 256 TB
    assert "error: this machine has too little memory (" in capsys.readouterr().err


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match="a fault"):
        stage(lambda: (_ for _ in ()).throw(RuntimeError("a fault")))


@pytest.mark.parametrize("at", [1, 4, 10], ids="evaluation {}".format)
def test_an_evaluation_without_memory_on_the_card_keeps_the_state_says_what_helps_and_changes_nothing(
    tmp_path, monkeypatch, capsys, undisturbed, at
):
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 1e9)
    state, count = tmp_path / "state.pt", iter(range(1, 10**6))

    def crowded(net):
        if next(count) == at:
            raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB")
        return evaluate(net)

    with pytest.raises(SystemExit) as end:
        stage(lambda: run(model(), evaluate=crowded, state=state))
    step = 3 * at
    assert end.value.code == 2 and capsys.readouterr().err == (
        f"error: the GPU has too little memory to evaluate after step {step} of 32 (CUDA out of memory. "
        f"Tried to allocate 2 GiB); {state} holds all of them, so run the same command again where fewer "
        "jobs share the GPU (slots), or lower max_length, or take a smaller backbone\n"
    )
    net, taken = model(), []
    progress = run(net, loss=lambda *each: taken.append(1) or loss(*each), state=state)
    assert len(taken) == 32 - step
    assert torch.equal(weights(net), undisturbed[2]) and without_times(progress.curve) == undisturbed[1]


@pytest.mark.parametrize("at", [5, 20], ids="step {}".format)
def test_a_step_without_memory_on_the_card_goes_on_with_half_a_micro_batch_or_leaves_what_was_saved(
    tmp_path, monkeypatch, at
):
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "SHARE", 1e9)  # saved after each step
    state, whole, count = tmp_path / "state.pt", loop.accumulate, iter(range(10**6))

    def full(*arguments):
        if next(count) >= at:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(*arguments)

    monkeypatch.setattr(loop, "accumulate", full)
    with pytest.raises(BadInput, match="no memory for a single example; lower max_length"):
        run(model(), state=state)
    monkeypatch.setattr(loop, "accumulate", whole)
    assert run(model(), state=state, loss=loss).step == 32 and torch.load(state)["progress"]["step"] >= at
