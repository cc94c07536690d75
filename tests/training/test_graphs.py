"""What is captured as CUDA graphs trains as what is launched one by one."""

import numpy as np
import pandas as pd
import pytest
import torch
import toy
import toy_images
from conftest import ROW, ROW_T5, SMALL

from tailprompt.training.graphs import Graphs, own_stream

DROPS = ROW | {"random": SMALL | {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}}
PLAIN = {"input": "plain", "head": "pooler"}
FORMATTED = {"input": "formatted", "head": "verbalizer"}
PREFIX = {**PLAIN, "tuner": "prefix", "length": 3}
SOFT = {**FORMATTED, "tuner": "soft_prompt", "init": "vocabulary", "length": 3}
on_a_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
LONG = {"epochs": 8, "patience": 8}
TEXTS = {
    "full": ("cls-tanh", {"row": DROPS}),
    "verbalizer": ("prompt", {}),
    "probe": ("cls-tanh-focal", {"tuner": "frozen"}),
    "soft": ("", SOFT),
    "filled": ("", {**SOFT, "max_length": 13, "length": 512 - 13}),
    "t5": ("", {**SOFT, "row": ROW_T5, "decoding": "open", "sentinel_loss": True}),
    "prefix": ("", {**PREFIX, "row": DROPS, "positions": "shifted", "body_dropout": True}),
    "prefix-mlp": ("", {**PREFIX, "mlp": True, "layers": "2-2"}),
    "prefix-t5": ("", {**FORMATTED, "tuner": "prefix", "row": ROW_T5}),
    "lora": ("", {**PLAIN, "tuner": "lora", "lora_dropout": 0.1}),
    "soft-plain": ("", {**PLAIN, "tuner": "soft_prompt", "embedded": "as_released", "body_dropout": True}),
}
IMAGES = {
    "linear": {},
    "lpt-phase1": {},
    "vpt": {"prompt_dropout": 0.1},
    "finetune": {},
    "lpt-joint": {},
    "": {"tuner": "prefix"},
}


def trained(run, root, method, **options) -> tuple[torch.Tensor, pd.DataFrame]:
    """Logits and curve of a run on the card."""
    folder = run(root, method, device="cuda", **LONG, **options)
    kept = pd.read_parquet(folder / "predictions.parquet")
    return torch.from_numpy(np.stack(kept.scores)), pd.read_csv(folder / "curve.csv").drop(columns="seconds")


@pytest.fixture
def captured(monkeypatch):
    """The keys of what was captured."""
    kept, capture = [], Graphs.capture

    def counted(graphs, key, *rest):
        capture(graphs, key, *rest)
        kept.append(key)
        assert key in graphs.kept, "was not captured"

    monkeypatch.setattr(Graphs, "capture", counted)
    return kept


def agree(run, root, method, captured, precision, **options):
    """Captured and launched runs have equal predictions and curves; float32 to the last bit, for resuming."""
    one, two = (
        trained(run, root, method, seed=seed, capture=capture, precision=precision, **options)
        for seed, capture in ((1, True), (1, False))
    )
    assert len(captured) >= 2  # steps, and the pass over dev
    assert torch.equal(one[0], two[0])
    pd.testing.assert_frame_equal(one[1], two[1], check_exact=True)


@on_a_card
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", list(TEXTS))
def test_captured_training_on_texts_equals_launched_training(tmp_path, captured, kind, precision):
    method, options = TEXTS[kind]
    agree(toy.run, tmp_path, method, captured, precision, **options)


@on_a_card
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("method", list(IMAGES))
def test_captured_training_on_images_equals_launched_training(tmp_path, captured, method, precision):
    agree(toy_images.run, tmp_path, method, captured, precision, select="f1", **IMAGES[method])


@on_a_card
@pytest.mark.parametrize("killed_at", [3, 9, 14])
def test_a_killed_captured_run_resumes_to_the_same_predictions(tmp_path, monkeypatch, killed_at):
    whole = trained(toy.run, tmp_path / "whole", "cls-tanh")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        toy.interrupted(patch, at=killed_at)
        trained(toy.run, tmp_path / "killed", "cls-tanh")
    torch.manual_seed(99)
    resumed = trained(toy.run, tmp_path / "killed", "cls-tanh")
    assert torch.equal(whole[0], resumed[0])
    pd.testing.assert_frame_equal(whole[1], resumed[1], check_exact=True)


def drawn(work, *, capture: bool) -> torch.Tensor:
    """What five calls of `work` on ones return, from a given random state."""
    graphs, ones = Graphs(torch.device("cuda"), capture=capture), torch.ones(64, device="cuda")
    torch.manual_seed(0)
    with own_stream(torch.device("cuda")):
        return torch.stack([graphs("key", [ones], work) for _ in range(5)])


def dropped(given):
    return torch.dropout(given[0], 0.5, True)


def looked_at(given):
    return dropped(given) * float(given[0].sum())


@on_a_card
def test_a_graph_draws_dropout_anew_and_as_launched_work_would():
    captured = drawn(dropped, capture=True)
    assert torch.equal(captured, drawn(dropped, capture=False)) and len(captured.unique(dim=0)) == 5


@on_a_card
def test_what_cannot_be_captured_goes_on_as_it_is_and_says_so(capsys):
    assert torch.equal(drawn(looked_at, capture=True), drawn(looked_at, capture=False))
    assert "not captured as a CUDA graph" in capsys.readouterr().out
    assert torch.equal(drawn(dropped, capture=True), drawn(dropped, capture=False))


def test_on_a_cpu_nothing_is_captured():
    graphs = Graphs(torch.device("cpu"))
    assert [float(graphs("key", [torch.tensor(k)], lambda given: 2 * given[0])) for k in (1, 2, 3)] == [
        2,
        4,
        6,
    ]
    assert not graphs.kept
