"""A file where bundles bring them is made by no job, and whoever asks for it is told what to ask for."""

import asyncio
from pathlib import Path

import pytest

from tailprompt.plan import brought

RUN = "glee/bert-mini/cmid/prompt/775/run.json"


class Dag:
    """As much of Snakemake's as is asked for files."""

    def __init__(self, *files):
        self.targetfiles, self.begun = set(files), False

    async def init(self):
        self.begun = True


def test_a_file_of_a_bundle_that_is_asked_for_is_refused_with_what_to_ask_for(monkeypatch):
    monkeypatch.setattr(Dag, "init", Dag.init)  # which is put back
    brought.refuse_targets(Dag, Path("results/mini"))
    others = Dag(f"results/mini/runs/{RUN}", f"results/other/from_bundles/runs/{RUN}")
    asyncio.run(others.init())
    assert others.begun
    asked = Dag(f"results/mini/from_bundles/runs/{RUN}")
    with pytest.raises(SystemExit, match=rf"no job makes any; .* or for results/mini/runs/{RUN}, which is"):
        asyncio.run(asked.init())
    assert not asked.begun
