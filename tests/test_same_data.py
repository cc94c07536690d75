"""Equal data have equal rows: who compares a run with data, or data with data, and what each lets pass.

The files may differ, as those of two versions of pyarrow do. What was written before there were digests of
rows is compared by its file.
"""

from __future__ import annotations

import json
import shutil

import made_up
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tailprompt.bundle import bundle
from tailprompt.data import rows
from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json
from tailprompt.plan import agreement, either, held
from tailprompt.plan.points import Point
from tailprompt.report import records
from tailprompt.unbundle import unbundle

POINT = Point("glee", "mini", "made", "prompt", 1)
OTHERWISE = {"compression": "gzip", "row_group_size": 7}
WANTED = {"settings": {"lr": 1e-3}}


def prepared(root):
    """A data set of texts."""
    path = made_up.data(root).with_suffix(".parquet")
    pd.read_parquet(path).assign(text="a text").to_parquet(path, index=False)


def described(root, *, old=False):
    """The report of a data set gets its digests, or only that of the file. Returns them."""
    path, report = root / "data/made.parquet", root / "data/made.json"
    found = {"sha256": sha256(path)} | ({} if old else {"rows_sha256": rows.of_file(path)})
    about = {key: value for key, value in read_json(report).items() if key not in agreement.DATA}
    write_json(report, about | found)
    return found


def trained(root, data, seed=1):
    """A finished run on data with these digests; returns its folder."""
    folder = made_up.run(root, "prompt", seed)
    (folder / "curve.csv").write_text("step,loss\n1,2.0\n")
    about = read_json(folder / "run.json") | {"point": vars(POINT) | {"seed": seed}, "total": 9, "seconds": 1}
    about |= {"weights_sha256": sha256(folder / "weights.safetensors"), "data": {"rows": {}, **data}}
    write_json(folder / "run.json", about)
    held.keep(folder)
    return folder


def written_otherwise(root):
    """The same rows in another file."""
    path = root / "data/made.parquet"
    table = pq.read_table(path).replace_schema_metadata({"written": "elsewhere"})
    pq.write_table(table, path, **OTHERWISE)


def with_another_cell(root):
    """Another text in the last row."""
    path = root / "data/made.parquet"
    table = pd.read_parquet(path)
    table.iloc[-1, table.columns.get_loc("text")] = "another"
    table.to_parquet(path, index=False)


def untouched(root):
    """The same file."""


CASES = [  # what happens to the data, whether run and report are of before there were digests, what it is
    (untouched, False, False, "same"),
    (untouched, True, False, "same"),
    (untouched, False, True, "same"),
    (untouched, True, True, "same"),
    (written_otherwise, False, False, "same"),
    (written_otherwise, True, False, "other"),
    (written_otherwise, False, True, "other"),
    (written_otherwise, True, True, "other"),
    (with_another_cell, False, False, "other"),
    (with_another_cell, True, False, "other"),
    (with_another_cell, False, True, "other"),
    (with_another_cell, True, True, "other"),
]
IDS = [f"{change.__name__}-{'old' * run or 'new'}-{'old' * data or 'new'}" for change, run, data, _ in CASES]


@pytest.fixture(params=CASES, ids=IDS)
def case(request, tmp_path):
    """Results whose data changed after the run was trained, and whether they are the same."""
    change, old_run, old_data, kind = request.param
    root = tmp_path / "results/tiny"
    prepared(root)
    folder = trained(root, described(root, old=old_run))
    change(root)
    return root, folder, described(root, old=old_data), kind == "same"


def test_a_plan_lets_a_run_stand_on_the_same_rows(case):
    root, _, _, same = case
    assert agreement.stands(WANTED, POINT, root) == same


def test_tables_take_a_run_of_the_same_rows(case):
    _, folder, _, same = case
    assert agreement.of_data(records.record(folder), folder) == same
    if not same:
        with pytest.raises(BadInput, match=r"was trained on data that .*made\.parquet no longer holds"):
            agreement.check(folder, records.record(folder))


def test_what_another_process_finished_is_put_back_on_the_same_rows(case):
    _, folder, _, same = case
    assert held.finished(folder, WANTED, start=None, replaced=0) == same


def test_a_run_that_does_not_say_on_what_data_it_was_trained_is_not_put_back(tmp_path):
    prepared(tmp_path)
    told = described(tmp_path)
    assert held.may_stand(trained(tmp_path, told), WANTED)
    assert not held.may_stand(trained(tmp_path, told, seed=2), {"settings": {"lr": 1.0}})
    assert not held.may_stand(trained(tmp_path, {}, seed=3), WANTED)


def test_a_run_is_bundled_with_the_same_rows_and_unbundled_elsewhere(case, tmp_path):
    root, _, _, same = case
    if not same:
        with pytest.raises(BadInput, match="none of its runs is finished and what it says .*no longer holds"):
            bundle(root, tmp_path / "tiny.tar.xz", [])
        return
    bundle(root, tmp_path / "tiny.tar.xz", [])
    assert ": 1; there" in unbundle(tmp_path / "tiny.tar.xz", tmp_path / "there/tiny")


@pytest.mark.parametrize("before", ["prepared", "unbundled"])
def test_bundles_of_the_same_rows_are_of_one_data_set(case, tmp_path, before):
    """The run's data as they were, and the changed data with a run of their own, meet in one place."""
    root, folder, now, same = case
    first, there = tmp_path / "first/tiny", tmp_path / "there/tiny"
    then = agreement.digests_of(records.record(folder)["data"])
    prepared(first)
    described(first, old="rows_sha256" not in then)
    trained(first, then, seed=2)
    shutil.rmtree(folder)
    trained(root, now)
    bundle(root, tmp_path / "root.tar.xz", [])
    if before == "prepared":
        shutil.copytree(first, there)
    else:
        bundle(first, tmp_path / "first.tar.xz", [])
        unbundle(tmp_path / "first.tar.xz", there)
    if not same:
        with pytest.raises(BadInput, match=r"made\.json is of other data than made in .*root\.tar\.xz"):
            unbundle(tmp_path / "root.tar.xz", there)
        return
    assert ": 1; there already: 0" in unbundle(tmp_path / "root.tar.xz", there)
    for run in (POINT, Point("glee", "mini", "made", "prompt", 2)):
        place = either.run_folder(there, run)
        agreement.check(place, records.record(place))
        assert agreement.stands(WANTED, run, there)
    assert bundle(there, tmp_path / "both.tar.xz", [])[0].startswith(f"runs in {tmp_path}/both.tar.xz: 2 (")
    assert ": 2; there" in unbundle(tmp_path / "both.tar.xz", tmp_path / "again/tiny")


def test_tables_say_which_seeds_are_of_other_rows(case):
    root, folder, now, same = case
    runs = [folder, trained(root, now, seed=2), trained(root, now, seed=3)]
    frame = pd.DataFrame({"folder": runs, "method": "prompt", "dataset": "made", "there": True})
    said = records.mixtures(frame.assign(record=[records.record(run) for run in runs]))
    assert ([line for line in said if "differ in" in line] == []) == same


def test_rows_edited_in_the_file_are_others_whatever_the_report_says(tmp_path):
    prepared(tmp_path)
    folder = trained(tmp_path, described(tmp_path))
    with_another_cell(tmp_path)
    assert not agreement.of_data(records.record(folder), folder)
    assert agreement.data_digests(tmp_path / "data/made.parquet").keys() == {"sha256"}


@pytest.mark.parametrize("digests", [{"sha256": 1}, {"rows_sha256": [], "sha256": {}}, {}, None, [], "x"])
def test_odd_digests_are_those_of_no_rows(digests):
    known = {"sha256": "a", "rows_sha256": "b"}
    assert not agreement.same_data(known, agreement.digests_of(digests))
    assert not agreement.same_data(agreement.digests_of(digests), known)


def test_a_bundled_report_has_the_digests_of_the_file_beside_it(tmp_path):
    prepared(tmp_path / "tiny")
    told = described(tmp_path / "tiny")
    trained(tmp_path / "tiny", told)
    bundle(tmp_path / "tiny", tmp_path / "tiny.tar.xz", [])
    unbundle(tmp_path / "tiny.tar.xz", tmp_path / "there")
    brought = json.loads((tmp_path / "there/from_bundles/data/made.json").read_text())
    assert {key: brought[key] for key in agreement.DATA} == told
