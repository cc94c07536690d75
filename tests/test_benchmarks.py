"""The comparison of speeds runs to its end, and our losses are those of the systems beside it."""

import pandas as pd


def test_the_comparison_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(".")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    from benchmarks.__main__ import main

    only = ["bert-mini CMID", "LPT phase 2", "losses"]
    main(["--small", "--device", "cpu", "--seconds", "0", "--out", str(tmp_path), "--only", *only])
    table = pd.read_csv(tmp_path / "speed.csv")
    compiled = table["system"].str.contains("compiled")  # on a GPU only
    assert table.loc[~compiled, "note"].isna().all(), table["note"].tolist()
    assert (table.loc[~compiled, "rate"] > 0).all()
    assert {"bert-mini CMID", "LPT phase 2"} == {*table["part"]}
    assert (tmp_path / "speed.pdf").exists() and (tmp_path / "speed.png").exists()
    losses = pd.read_csv(tmp_path / "losses.csv", index_col="step")
    assert losses.sub(losses["Trainer"], axis=0).abs().to_numpy().max() < 1e-3
    assert all(system in (tmp_path / "speed.md").read_text() for system in table["system"])
