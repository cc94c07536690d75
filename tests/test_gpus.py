"""Each job gets a GPU: tested with pretended GPUs."""

import multiprocessing
import os
from contextlib import ExitStack

import pytest

from tailprompt.errors import BadInput
from tailprompt.machine import gpus


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpus, "installed", lambda: ["0", "1"])


def show(monkeypatch, ids):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ids)


def mine():
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def test_auto_without_a_card_is_the_cpu(monkeypatch):
    monkeypatch.setattr(gpus, "installed", list)
    with gpus.free("auto") as device:
        assert device == "cpu"


def test_without_a_driver_there_is_no_card_whatever_the_variable_says(monkeypatch):
    monkeypatch.setattr(gpus, "installed", list)
    show(monkeypatch, "0")
    with gpus.free("auto") as device:
        assert device == "cpu"
    with pytest.raises(BadInput, match="no GPU is visible"), gpus.free("cuda"):
        pass


def test_cuda_without_a_card_is_refused(monkeypatch):
    show(monkeypatch, "")
    with pytest.raises(BadInput, match="no GPU is visible"), gpus.free("cuda"):
        pass


def test_the_cpu_takes_no_card(monkeypatch):
    show(monkeypatch, "3")
    with gpus.free("cpu") as device:
        assert device == "cpu" and mine() == "3"


def test_jobs_get_cards_of_their_own_and_give_them_back(monkeypatch):
    show(monkeypatch, "4,7")
    with gpus.free("auto") as device:
        assert (device, mine()) == ("cuda", "4")
        show(monkeypatch, "4,7")
        with gpus.free("auto"):
            assert mine() == "7"
        assert mine() == "4,7"
    with gpus.free("auto"):
        assert mine() == "4"


def test_an_empty_card_comes_before_a_second_slot(monkeypatch):
    taken = []
    with ExitStack() as stack:
        for _ in range(4):
            show(monkeypatch, "0,1")
            stack.enter_context(gpus.free("auto", slots=2))
            taken.append(mine())
    assert taken == ["0", "1", "0", "1"]


def test_a_job_of_several_cards_has_them_whole_and_gives_them_back(monkeypatch):
    show(monkeypatch, "4,5,6")
    with gpus.free("auto", slots=2):
        show(monkeypatch, "4,5,6")
        with gpus.free("auto", slots=2, wanted=2):
            assert mine() == "5,6"
            show(monkeypatch, "4,5,6")
            with gpus.free("auto", slots=2):
                assert mine() == "4"
    show(monkeypatch, "4,5,6")
    with gpus.free("auto", slots=2, wanted=9):
        assert mine() == "4,5,6"


@pytest.mark.parametrize(
    "wanted, said", [(9, "9 GPUs are wanted, 2 visible; all"), (2, ""), (float("inf"), "")]
)
def test_a_job_that_gets_fewer_gpus_than_its_row_says_tells_so(monkeypatch, capsys, wanted, said):
    show(monkeypatch, "4,5")
    with gpus.free("auto", wanted=wanted):
        assert mine() == "4,5"
    heard = capsys.readouterr().err
    assert said in heard and bool(said) == bool(heard)


def test_a_job_that_waits_for_several_gpus_keeps_none_from_others(monkeypatch):
    show(monkeypatch, "0,1")
    monkeypatch.setattr(gpus.time, "sleep", lambda seconds: os.close(held.pop()))
    held = [gpus.take("0", 1)]
    assert gpus.whole(["0", "1"], 2, 2) == {}
    assert len(taken := gpus.whole(["1"], 2, 2)) == 1
    gpus.give_back(taken)
    with gpus.free("auto", slots=2, wanted=2):
        assert mine() == "0,1" and not held


def test_a_job_waits_for_a_gpu_and_a_dead_job_keeps_none(monkeypatch, capsys):
    show(monkeypatch, "0")
    ready, end = multiprocessing.get_context("fork").Event(), multiprocessing.get_context("fork").Event()
    other = multiprocessing.get_context("fork").Process(target=hold, args=(ready, end))
    other.start()
    ready.wait(10)
    monkeypatch.setattr(gpus.time, "sleep", lambda seconds: (other.kill(), other.join()))
    with gpus.free("auto"):
        assert mine() == "0"
    assert "waiting" in capsys.readouterr().err


def hold(ready, end):
    with gpus.free("auto"):
        ready.set()
        end.wait(30)


def test_inside_a_slurm_job_the_card_is_slurms(monkeypatch):
    show(monkeypatch, "0")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    with gpus.free("auto") as one, gpus.free("auto") as two:
        assert one == two == "cuda" and mine() == "0"


@pytest.fixture
def mps(tmp_path, monkeypatch):
    """A pretended MPS, whose log says what it was asked."""
    program, log = tmp_path / "bin" / gpus.MPS, tmp_path / "log"
    program.parent.mkdir()
    started = f'echo start "${gpus.PIPE}" "${{CUDA_VISIBLE_DEVICES-all}}"'
    program.write_text(f'#!/bin/sh\n[ -n "$1" ] && {started} >> {log} || cat >> {log}\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv(gpus.PIPE, "")  # so that what is set goes with the test
    monkeypatch.delenv(gpus.PIPE)
    monkeypatch.setenv("CUDA_MPS_LOG_DIRECTORY", "")
    return log


def test_processes_that_share_a_gpu_find_an_mps_that_ends_with_the_workflow(mps, monkeypatch):
    """It serves all GPUs: one that saw the second alone would call it the first."""
    monkeypatch.setattr(gpus, "CONTEXT", "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    gpus.share()
    gpus.share()  # it is there
    gpus.unshare()
    assert mps.read_text() == f"start {gpus.folder('mps')} all\nquit\n"


def test_where_mps_does_not_work_it_is_ended_and_told(mps, monkeypatch, capsys):
    monkeypatch.setattr(gpus, "CONTEXT", "raise SystemExit(3)")
    gpus.share()
    assert "take turns" in capsys.readouterr().err and gpus.PIPE not in os.environ
    assert mps.read_text().endswith("quit\n")
    gpus.unshare()


def test_someone_elses_mps_is_left_alone(mps, monkeypatch):
    monkeypatch.setenv(gpus.PIPE, "/elsewhere")
    gpus.share()
    gpus.unshare()
    assert not mps.exists() and os.environ[gpus.PIPE] == "/elsewhere"
