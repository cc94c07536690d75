"""A file where bundles bring them is made by no job, and whoever asks for it is told what to ask for."""

import asyncio
from pathlib import Path

import pytest

from tailprompt.errors import BadInput
from tailprompt.files import sha256, write_json
from tailprompt.plan import agreement, brought
from tailprompt.plan.points import Point

RUN = "glee/bert-mini/cmid/prompt/775/run.json"


class Dag:
    """As much of Snakemake's as is asked for files."""

    def __init__(self, *files):
        self.targetfiles, self.begun = set(files), False

    async def init(self):
        self.begun = True


@pytest.mark.parametrize("place", ["", "./", f"{Path.cwd()}/"], ids=["plain", "dot", "absolute"])
def test_a_file_of_a_bundle_that_is_asked_for_is_refused_with_what_to_ask_for(monkeypatch, place):
    monkeypatch.setattr(Dag, "init", Dag.init)  # which is put back
    brought.refuse_targets(Dag, Path("results/mini"))
    others = Dag(f"results/mini/runs/{RUN}", f"results/other/from_bundles/runs/{RUN}")
    asyncio.run(others.init())
    assert others.begun
    asked = Dag(place + f"results/mini/from_bundles/runs/{RUN}")
    with pytest.raises(SystemExit, match=rf"no job makes any; .* or for results/mini/runs/{RUN}, which is"):
        asyncio.run(asked.init())
    assert not asked.begun


@pytest.mark.parametrize("harm", [b'{"settings": {"lr": 2}}', b"{"])
def test_a_run_that_does_not_stand_as_its_record_is_damaged_is_no_run_to_train(tmp_path, harm):
    point = Point.at(RUN.removesuffix("/run.json"))
    folder = tmp_path / "from_bundles/runs" / point.path
    for name in agreement.CARRIED:
        write_json(folder / name, {"settings": {"lr": 1}})
    brings = dict.fromkeys(agreement.CARRIED, "") | {"run.json": sha256(folder / "run.json")}
    write_json(folder / agreement.DIGESTS, brings)
    brought.check_runs(tmp_path, [point, Point.at("glee/bert-mini/cmid/not-here/1")])
    (folder / "run.json").write_bytes(harm)
    with pytest.raises(BadInput, match=rf"run.json is not what its bundle brought .* delete {folder}, and"):
        brought.check_runs(tmp_path, [point])
    (folder / agreement.DIGESTS).unlink()
    with pytest.raises(BadInput, match=rf"sha256.json is gone or damaged, .* delete {folder}, and"):
        brought.check_runs(tmp_path, [point])


@pytest.mark.parametrize("name", [*agreement.CARRIED, "separability.json"])
def test_a_run_of_a_bundle_that_lost_a_file_is_no_run_to_train_either(tmp_path, name):
    point = Point.at(RUN.removesuffix("/run.json"))
    folder = tmp_path / "from_bundles/runs" / point.path
    names = [*agreement.CARRIED, "separability.json"]
    for each in names:
        write_json(folder / each, {})
    write_json(folder / agreement.DIGESTS, {each: sha256(folder / each) for each in names})
    brought.check_runs(tmp_path, [point])
    (folder / name).unlink()
    with pytest.raises(BadInput, match=rf"{name} is not what its bundle brought .* delete {folder}, and"):
        brought.check_runs(tmp_path, [point])
