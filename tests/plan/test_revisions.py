"""What `main` is: one commit for all jobs, found out once and kept."""

from __future__ import annotations

import json

import pytest
from project import ROOT
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan import asked, rows
from tailprompt.plan.config import load
from tailprompt.plan.points import Point
from tailprompt.plan.revisions import commit_of, name_of, pinned, resolved
from tailprompt.plan.settings import settings

FIRST, SECOND = "a" * 40, "b" * 40
HUB = "google/t5-v1_1-small"
POINT = Point("ppt", "t5-small", "sst2@total=32", "ft", 10)


@pytest.fixture
def config():
    """The paper's scale, whose smallest T5 is at main."""
    found = scale("paper")
    assert found["backbones"]["t5-small"]["revision"] == "main"
    return found


def once(*commits):
    """A hub that says one commit after another."""
    said = list(commits)
    return lambda hub: said.pop(0)


def test_a_commit_is_asked_for_once_and_kept(config, tmp_path):
    (tmp_path / "config").mkdir()
    for _ in range(2):
        found = resolved(config, ["t5-small", "sst2"], tmp_path, ask=once(FIRST))
        assert rows.backbone_row(found, "t5-small")["revision"] == FIRST
    assert json.loads((tmp_path / "config/lock.json").read_text()) == {name_of(HUB): FIRST}
    assert resolved(config, ["t5-small"], tmp_path, ask=once()) == pinned(config, tmp_path)
    assert asked.asked(found, POINT, settings(found, POINT), None)["backbone"]["revision"] == FIRST


def test_a_lock_keeps_the_digests_of_downloads_beside_it(config, tmp_path):
    write_json(tmp_path / "config/lock.json", {"https://example.org/x": "00"})
    resolved(config, ["t5-small"], tmp_path, ask=once(FIRST))
    assert json.loads((tmp_path / "config/lock.json").read_text()) == {
        "https://example.org/x": "00",
        name_of(HUB): FIRST,
    }


def test_a_model_that_annotates_is_pinned_too(config, tmp_path):
    config = {**config, "datasets": {"x": {"model": {"hub": "one/two", "revision": "main"}}}}
    assert resolved(config, ["x"], tmp_path, ask=once(SECOND))["datasets"]["x"]["model"]["revision"] == SECOND


def test_without_a_lock_it_is_the_commit_of_the_runs_that_are_here(config, tmp_path):
    for place in ("results/paper/from_bundles", "results/paper"):
        about = {"backbone": {"hub": HUB, "revision": FIRST}}
        write_json(tmp_path / place / "runs" / POINT.path / "run.json", about)
        assert pinned(config, tmp_path)["backbones"]["t5-small"]["revision"] == FIRST
        assert pinned(config, tmp_path)["backbones"]["t5-base"]["revision"] == "main"
        (tmp_path / place / "runs" / POINT.path / "run.json").unlink()


def test_where_nobody_knows_it_stays_main_for_the_job_to_say_so(config, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TAILPROMPT_OFFLINE", "1")
    found = resolved(config, ["t5-small"], tmp_path)
    assert found["backbones"]["t5-small"]["revision"] == "main" and not (tmp_path / "config").exists()


def test_without_a_network_it_is_the_commit_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TAILPROMPT_OFFLINE", "1")
    refs = tmp_path / "models--google--t5-v1_1-small/refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text(f"{SECOND}\n")
    assert commit_of(HUB) == SECOND


def test_a_pinned_revision_is_left_alone(config, tmp_path):
    row = config["backbones"]["bert-base-uncased"]
    assert (
        resolved(config, ["bert-base-uncased"], tmp_path, ask=once()) is config and row["revision"] != "main"
    )


@pytest.mark.parametrize("wrong", ["main", "", 7, "a" * 39, "A" * 40, f"{FIRST}\n"])
def test_a_lock_with_something_else_is_refused_in_a_sentence(tmp_path, wrong):
    write_json(tmp_path / "config/lock.json", {name_of(HUB): wrong})
    if wrong:
        with pytest.raises(BadInput, match="which is no commit; remove it"):
            pinned(scale("paper"), tmp_path)


def test_all_that_read_a_scale_see_the_same_commit(tmp_path):
    for name in ("config", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "config").unlink()
    (tmp_path / "config").mkdir()
    for file in (ROOT / "config").iterdir():
        (tmp_path / "config" / file.name).symlink_to(file)
    write_json(tmp_path / "config/lock.json", {name_of(HUB): FIRST})
    assert load(["config/paper.yaml"], root=tmp_path)["backbones"]["t5-small"]["revision"] == FIRST
