"""The comparison of speeds runs to its end, and our losses are those of the systems beside it."""

import numpy as np
import pandas as pd
import pytest


def test_the_comparison_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(".")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    from benchmarks.__main__ import main

    only = ["bert-mini CMID", "LPT phase 2", "losses"]
    main(["--small", "--device", "cpu", "--seconds", "1e-9", "--out", str(tmp_path), "--only", *only])
    table = pd.read_csv(tmp_path / "speed.csv")
    compiled = table["system"].str.contains("compiled")  # on a GPU only
    assert table.loc[~compiled, "note"].isna().all(), table["note"].tolist()
    assert (table.loc[~compiled, "rate"] > 0).all()
    assert {"bert-mini CMID", "LPT phase 2"} == {*table["part"]}
    assert (tmp_path / "speed.pdf").exists() and (tmp_path / "speed.png").exists()
    losses = pd.read_csv(tmp_path / "losses.csv", index_col="step")
    assert losses.sub(losses["Trainer"], axis=0).abs().to_numpy().max() < 1e-3
    assert all(system in (tmp_path / "speed.md").read_text() for system in table["system"])


@pytest.mark.parametrize(
    "options, says",
    [
        (["--threads", "0"], "threads are numbers from 1 to"),
        (["--threads", "100000"], "threads are numbers from 1 to"),
        *(
            (["--seconds", text], f"{text} is not a finite number above 0")
            for text in ("0", "-1", "nan", "inf")
        ),
        (["--seconds", "x"], "invalid seconds value: 'x'"),
        (["--device", "cuda"], "--device cuda: torch finds no GPU here"),
        (["--only", "CMID", "nope"], "--only nope: no part is named so; known: bert-base CMID"),
        (["--systems", "Trainer", "nope"], "--systems nope: no system of these parts is named so; known: "),
        (["--only", "losses", "--systems", "ours"], "--systems ours: no system of these parts is named so"),
        (["--out", "FOLDER/file"], "file: no folder that can be written to (File exists)"),
        (["--out", "FOLDER/file/below"], "below: no folder that can be written to (Not a directory)"),
        (["--out", "/proc/none"], "--out /proc/none: no folder that can be written to"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence_before_any_work(
    tmp_path, monkeypatch, capsys, options, says
):
    monkeypatch.syspath_prepend(".")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    from benchmarks import __main__ as benchmarks

    monkeypatch.delattr(benchmarks, "matmul_rate")
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        benchmarks.main([option.replace("FOLDER", str(tmp_path)) for option in options])
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_without_a_model_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(".")
    from benchmarks.__main__ import main

    with pytest.raises(SystemExit, match="2"):
        main(["scores", str(tmp_path)])
    assert "is no folder of a model: it has no config.json" in capsys.readouterr().err


def test_scores_are_told_with_their_difference_and_its_interval(monkeypatch):
    monkeypatch.syspath_prepend(".")
    from benchmarks.scores import written

    rows = [
        {"method": "lora", "seed": seed, "system": system, "F1": f1, "F1, tail": f1}
        for system, found in (("ours", (50.0, 52.0)), ("peft, Trainer", (48.0, 50.0)))
        for seed, f1 in enumerate(found)
    ]
    cells = (
        "51.0 ± 1.4 | 49.0 ± 1.4 | +2.0 (-4.1 to +8.1)"  # t of 2 degrees of freedom, 4.303, times 2 ** 0.5
    )
    assert written(pd.DataFrame(rows)).splitlines()[-1] == f"| lora | peft, Trainer | {cells} | {cells} |"


def test_a_difference_without_seeds_in_it_has_no_interval(monkeypatch):
    monkeypatch.syspath_prepend(".")
    from benchmarks.scores import difference

    assert difference(np.array([59.0, 59.0]), np.array([58.5, 58.5])) == "+0.5"
