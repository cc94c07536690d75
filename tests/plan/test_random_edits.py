"""Random edits of the configurations that ship: no run that is asked something else passes for finished."""

from __future__ import annotations

import json
from functools import cache, reduce
from pathlib import Path

from hypothesis import HealthCheck, assume, given, seed
from hypothesis import settings as trials
from hypothesis import strategies as st
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan import agreement, asked, blocks, made, standing
from tailprompt.plan.layers import merge
from tailprompt.plan.settings import settings

EDITED = ("methods", "datasets", "protocols", "backbones", "languages", "pretraining")
SCALES = ("demo", "mini", "paper")


@cache
def points(name):
    """The runs of a scale, one seed of each."""
    return sorted(
        {(p.protocol, p.backbone, p.dataset, p.method): p for p in blocks.all_points(scale(name))}.values()
    )


def told(config, point):
    """What a run is asked, and what its data set is asked."""
    weights = made.weights(config, point.backbone)
    wanted = asked.asked(config, point, settings(config, point), weights)
    return wanted, standing.wanted(config, "data", point.dataset)


def leaves(value, path=()):
    """(path, value) of each plain value in nested dictionaries."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    return [(path, value)] if isinstance(value, bool | int | float | str) else []


def near(config, point):
    """The values in the configuration that may concern a run."""
    rows = {
        "methods": [point.method.partition("@")[0]],
        "datasets": [point.dataset.partition("@")[0]],
        "protocols": [point.protocol],
        "backbones": [point.backbone],
        "languages": list(config["languages"]),
        "pretraining": [config["backbones"][point.backbone].get("recipe")],
    }
    parts = [(section, name) for section in EDITED for name in rows[section] if name in config[section]]
    return [leaf for section, name in parts for leaf in leaves(config[section][name], (section, name))]


def other(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return f"{value} x" if isinstance(value, str) else value + 1


def same(one, two):
    """Whether two JSON values are equal as text, but for 1 and 1.0."""
    return json.dumps(one, sort_keys=True).replace(".0,", ",") == json.dumps(two, sort_keys=True).replace(
        ".0,", ","
    )


@seed(16)
@trials(
    max_examples=200,
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)
@given(st.data())
def test_no_edited_run_passes_for_finished(tmp_path, draw):
    name = draw.draw(st.sampled_from(SCALES))
    config = scale(name)
    point = draw.draw(st.sampled_from(points(name)))
    path, value = draw.draw(st.sampled_from(near(config, point)))
    edit = reduce(lambda inner, key: {key: inner}, reversed(path), other(value))
    before = told(config, point)
    try:
        after = told(merge(config, edit), point)
    except (BadInput, OSError, ValueError, TypeError, LookupError):
        assume(False)  # it is refused, by the schema at the latest
    finished(tmp_path, point, before[0])
    stands = agreement.stands(after[0], point, tmp_path)
    assert stands == same(before[0], after[0]), path
    write_json(tmp_path / "note.json", before[1])
    assert standing.same([], after[1], tmp_path / "note.json") == same(before[1], after[1]), path


def finished(root: Path, point, wanted: dict) -> None:
    """A run that was asked something, and that it began from."""
    first = (wanted["start"] or {}).get("run")
    for where in filter(None, (first, point.path)):
        folder = root / "runs" / where
        folder.mkdir(parents=True, exist_ok=True)
        for file in agreement.OUTPUTS:
            (folder / file).touch()
        write_json(folder / "run.json", {**wanted, "weights_sha256": "now", "start_sha256": "now"})
