"""What a run writes: predictions that rounding does not change, and nothing that is not finite."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.inputs.texts import Examples
from tailprompt.model.tensors import write_tensors
from tailprompt.tasks import classification
from tailprompt.tasks.classification import CLASSIFICATION
from tailprompt.training.outcome import write_predictions

NEAR = torch.tensor([[10.001, 10.003, 30.0], [-10.003, -10.001, -30.0], [100.02, 100.03, 0.0]])


def split(labels):
    none = torch.zeros(len(labels), dtype=torch.int64)
    names = [f"row-{i}" for i in range(len(labels))]
    return Examples(none, none, none, none, none, torch.tensor(labels), names, pad=0, most=1, truncated=0)


def written(path, logits, **changes):
    write_predictions(
        path, {"test": logits}, {"test": split([1] * len(logits))}, None, CLASSIFICATION, None, **changes
    )
    return pd.read_parquet(path)


def test_a_prediction_is_of_logits_before_they_are_rounded(tmp_path):
    rows = written(tmp_path / "predictions.parquet", NEAR[:, :2])
    assert rows["prediction"].tolist() == [1, 1, 1]
    assert np.stack(rows["scores"]).dtype == np.float16


def test_a_prediction_that_is_chosen_again_among_some_classes_is_of_logits_that_are_not_rounded(tmp_path):
    rows = written(tmp_path / "predictions.parquet", NEAR, exact=True)
    rows["accepted"] = [[1]] * 3
    assert classification.answers(rows, among=[0, 1]).tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_no_file_is_written_with_a_number_that_is_not_finite(tmp_path, number):
    writers = {
        "about.json": lambda file: write_json(file, {"dev": [{"f1": number}]}),
        "weights.safetensors": lambda file: write_tensors(
            file, {"first": torch.zeros(2), "own": torch.tensor([1.0, number])}
        ),
        "predictions.parquet": lambda file: written(file, torch.tensor([[0.0, number]])),
    }
    for name, write in writers.items():
        with pytest.raises(BadInput, match="not finite"):
            write(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_numbers_that_are_finite_are_written(tmp_path):
    write_json(tmp_path / "about.json", {"dev": [{"f1": 0.5}]})
    write_tensors(tmp_path / "weights.safetensors", {"ids": torch.arange(3), "half": torch.ones(2).half()})
    assert json.loads((tmp_path / "about.json").read_text("utf-8")) == {"dev": [{"f1": 0.5}]}
