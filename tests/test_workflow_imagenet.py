"""LPT's Tables 6 and 16 through the workflow, on a made-up tree of ImageNet's form."""

from __future__ import annotations

import imagenet_tree
import pandas as pd
import pytest
from project import copied, snakemake

pytestmark = pytest.mark.workflow

FEW = """
sets: {out_of_distribution: [imagenet-v2, imagenet-a, objectnet]}
protocols: {lpt: {methods: [linear, lpt]}}
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Both tables of two methods; without ReaL, whose 46,837 images take minutes."""
    folder = copied(tmp_path_factory.mktemp("copy") / "project")
    imagenet_tree.write(folder)
    (folder / "few.yaml").write_text(FEW)
    done = snakemake(folder, "tables", "--cores", "2", "--configfile", "shifted.yaml", "few.yaml")
    assert done.returncode == 0, done.stdout
    return folder / "results/shifted/tables/lpt"


def test_each_shifted_test_set_is_scored_by_the_run_on_imagenet_lt(tables):
    for name, sets in (("table6", 1), ("table16", 3)):
        rows = pd.read_csv(tables / f"{name}.csv").query("metric == 'accuracy/all' and dataset != 'avg'")
        assert len(rows[rows.ours.notna()]) == 2 * sets and rows.ours.dropna().between(0, 100).all()


def test_classes_that_a_test_set_lacks_are_said(tables):
    assert "ObjectNet" in (tables / "table16.md").read_text("utf-8")
