"""The comparison of speeds runs to its end, and our losses are those of the systems beside it."""

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
