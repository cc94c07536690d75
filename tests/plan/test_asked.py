"""What a run is asked, when it stands, and the file that says so."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scales import scale

from tailprompt.errors import BadInput
from tailprompt.files import read_at, read_json, sha256, write_json
from tailprompt.plan import (
    agreement,
    asked,
    asked_file,
    blocks,
    digests,
    either,
    future,
    made,
    standing,
    starts,
)
from tailprompt.plan.layers import merge
from tailprompt.plan.note import note, outputs_in
from tailprompt.plan.points import Point
from tailprompt.plan.settings import settings

WANTED = {"settings": {"lr": 1.0}, "extras": {}, "start": None}


def of(config, point):
    """What a run of a scale that ships is asked."""
    return asked.asked(config, point, settings(config, point), made.weights(config, point.backbone))


def point(config, method):
    """The first run of a method in the demo."""
    return next(each for each in blocks.all_points(config) if each.method == method)


def finished(root, wanted, path="p/b/d/m/1", **changes):
    """A point and its folder below `root`, with all its files and a run.json that says what is asked."""
    where = Point.at(path)
    folder = root / "runs" / where.path
    folder.mkdir(parents=True)
    for name in agreement.OUTPUTS:
        (folder / name).touch()
    write_json(folder / "run.json", {**wanted, **changes})
    return where, folder


def test_settings_backbone_words_and_start_are_asked_and_extras_apart():
    demo = scale("demo")
    first = point(demo, "prompt")
    found = of(demo, first)
    assert found.keys() == {"settings", "extras", "backbone", "weights", "verbalizer", "start"}
    assert not found["settings"].keys() & {"features", "vectors"} and found["start"] is None
    assert found["verbalizer"][0] == ["label", "words"]
    file = Path(found["backbone"]["path"], "model.safetensors")
    assert found["weights"][file.name] == sha256(file)


def test_what_a_start_is_asked_is_asked_of_what_starts_from_it_but_for_its_extras():
    demo = scale("demo")
    second = point(demo, "lpt")
    first = starts.start_of(demo, second)
    assert of(demo, second)["start"]["run"] == first.path
    edited = merge(demo, {"methods": {first.method: {"weight_decay": 0.5}}})
    assert of(edited, second)["start"] != of(demo, second)["start"]
    assert of(edited, second)["settings"] == of(demo, second)["settings"]


def test_a_made_backbone_is_as_its_recipe_and_what_that_starts_from():
    mini = scale("mini")
    grown = next(name for name, row in mini["backbones"].items() if "start" in recipe_of(mini, row))
    recipe = mini["backbones"][grown]["recipe"]
    edited = merge(mini, {"pretraining": {recipe: {"lr": 0.5}}})
    carded = merge(mini, {"pretraining": {recipe: {"card": {"seen": "another"}}}})
    assert made.weights(mini, grown) == made.weights(carded, grown) != made.weights(edited, grown)


def recipe_of(config, row):
    """The recipe that makes a backbone, or nothing."""
    return config["pretraining"].get(row.get("recipe"), {})


def test_a_large_file_is_not_read_again_until_it_changes(tmp_path, monkeypatch):
    file, read = tmp_path / "model.safetensors", []
    monkeypatch.setattr(digests, "LARGE", 1)
    monkeypatch.setattr(digests, "sha256", lambda file: read.append(file) or sha256(file))
    for number, text in enumerate(("one", "two"), 1):
        file.write_text(text)
        past = file.stat().st_mtime_ns - 10**10
        for turn in range(3):  # it changed just now in the first, and so may again
            monkeypatch.setattr(digests, "QUIET", 10**12 if turn == 0 else -(10**12))
            os.utime(file, ns=(past, past))
            assert digests.digest_of(file, tmp_path) == sha256(file)
            digests.noted.cache_clear()
        assert len(read) in (2 * number, 3 * number)


def test_digests_that_are_damaged_are_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "LARGE", 1)
    file = tmp_path / "large"
    file.write_text("text")
    (tmp_path / "results").mkdir()
    for damaged in ("[", "[]", '{"a": 1}'):
        (tmp_path / digests.KEPT).write_text(damaged)
        digests.noted.cache_clear()
        assert digests.digest_of(file, tmp_path) == sha256(file)


def test_a_kept_digest_with_any_bit_flipped_is_computed_anew_and_one_without_a_check_too(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(digests, "LARGE", 1)
    monkeypatch.setattr(digests, "QUIET", -(10**12))
    monkeypatch.chdir(tmp_path)
    file, kept = tmp_path / "large", tmp_path / digests.KEPT
    file.write_text("text")
    digests.noted.cache_clear()
    assert digests.digest_of(file) == sha256(file)
    whole = kept.read_bytes()
    for place in range(0, len(whole), 5):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        digests.noted.cache_clear()
        assert digests.digest_of(file) == sha256(file)
    [(name, entry)] = json.loads(whole).items()
    write_json(kept, {name: [*entry[:3], "of an older version"]})
    digests.noted.cache_clear()
    assert digests.digest_of(file) == sha256(file)


@pytest.mark.parametrize(
    "changes, keys",
    [
        ({}, []),
        ({"extras": {"features": ["a", "b"], "vectors": True}}, []),
        ({"settings": {"lr": 2.0, "old": 1}}, ["settings.lr", "settings.old"]),
        ({"start": {"run": "p/b/d/m/1"}}, ["start"]),
        ({"settings": None}, ["settings"]),
    ],
)
def test_a_run_differs_in_what_is_asked_and_may_hold_more_extras(changes, keys):
    assert agreement.differing(WANTED | changes, WANTED) == keys


@pytest.mark.parametrize("has", [None, {}, {"features": ["a"]}, {"features": ["a", "b"], "vectors": False}])
def test_a_run_that_lacks_extras_differs(has):
    wanted = WANTED | {"extras": {"features": ["a", "b"], "vectors": True}}
    assert "extras.vectors" in agreement.differing(WANTED | {"extras": has}, wanted)


def test_a_run_stands_with_all_its_files_and_no_damage(tmp_path):
    where, folder = finished(tmp_path, WANTED)
    assert agreement.stands(WANTED, where, tmp_path)
    assert not agreement.stands(WANTED | {"settings": {"lr": 2.0}}, where, tmp_path)
    (folder / "curve.csv").unlink()
    assert not agreement.stands(WANTED, where, tmp_path)
    (folder / "curve.csv").touch()
    (folder / "run.json").write_text("{")
    assert not agreement.stands(WANTED, where, tmp_path)


def test_a_run_stands_on_the_weights_that_its_start_has_now(tmp_path):
    wanted = WANTED | {"start": {"run": "p/b/d/first/1"}}
    finished(tmp_path, WANTED, "p/b/d/first/1", weights_sha256="now")
    for number, (began, there) in enumerate([("now", True), ("before", False), (None, False)]):
        where, _ = finished(tmp_path, wanted, f"p/b/d/second/{number}", start_sha256=began)
        assert agreement.stands(wanted, where, tmp_path) == there


def test_a_bundled_run_stands_without_its_start_but_not_on_another(tmp_path):
    wanted = WANTED | {"start": {"run": "p/b/d/first/1"}}
    where, here = finished(tmp_path, wanted, "p/b/d/second/1", start_sha256="then")
    assert not agreement.stands(wanted, where, tmp_path), "its start was removed here"
    (here / "weights.safetensors").rename(here / "weights.json")
    (tmp_path / "from_bundles").mkdir()
    (tmp_path / "runs").rename(tmp_path / "from_bundles/runs")
    assert agreement.stands(wanted, where, tmp_path)
    assert either.came_alone(tmp_path / "from_bundles/runs" / where.path)
    asked_otherwise = WANTED | {"start": {"run": "p/b/d/first/1", "asked": "another"}}
    assert not agreement.stands(asked_otherwise, where, tmp_path)
    for there, stands in (("then", True), ("now", False)):
        _, start = finished(tmp_path, WANTED, "p/b/d/first/1", weights_sha256=there)
        assert agreement.stands(wanted, where, tmp_path) == stands
        shutil.rmtree(start)


def brought(root, wanted, path="p/b/d/m/1", **changes):
    """The same of a run that a bundle brought."""
    where, folder = finished(root / "from_bundles", wanted, path, **changes)
    (folder / "weights.safetensors").rename(folder / "weights.json")
    return where, folder


OTHERS = WANTED | {"settings": {"lr": 2.0}}


@pytest.mark.parametrize(
    "here, theirs, taken", [(0, 0, "here"), (0, 1, "here"), (1, 0, "theirs"), (1, 1, "here")]
)
def test_of_a_run_made_here_and_one_of_a_bundle_the_one_that_is_asked_is_taken(tmp_path, here, theirs, taken):
    where, own = finished(tmp_path, (WANTED, OTHERS)[here])
    _, bundled = brought(tmp_path, (WANTED, OTHERS)[theirs])
    found = either.run_folder(tmp_path, where, lambda: WANTED)
    assert found == {"here": own, "theirs": bundled}[taken]
    assert agreement.stands(WANTED, where, tmp_path) == (not (here and theirs))
    assert either.run_folder(tmp_path, where) == own, "nothing says what is asked"
    write_json(tmp_path / "asked" / f"{where.path}.json", WANTED | {"replaces": 1})
    assert either.taken(own) == found, "as a job finds it"
    (own / "run.json").unlink()
    assert either.run_folder(tmp_path, where) == bundled


@pytest.mark.parametrize("here", [0, 1])
def test_weights_are_those_of_the_run_made_here_and_it_is_said_where_tables_show_another(
    tmp_path, capsys, here
):
    where, own = finished(tmp_path, (WANTED, OTHERS)[here])
    _, bundled = brought(tmp_path, WANTED)
    write_json(tmp_path / "asked" / f"{where.path}.json", WANTED)
    assert either.with_weights(own) == own
    said = f"{own} is not what is asked now; tables show {bundled}, whose weights did not travel\n"
    assert capsys.readouterr().err == ("", said)[here]
    (own / "run.json").unlink()
    assert either.with_weights(own) == bundled, "for the sentence that it has none"


def test_a_run_that_lacks_files_or_is_on_former_data_gives_way_to_that_of_a_bundle(tmp_path):
    where, own = finished(tmp_path, WANTED, data={"sha256": "then"})
    _, bundled = brought(tmp_path, WANTED, data={"sha256": "now"})
    assert either.run_folder(tmp_path, where, lambda: WANTED) == own
    write_json(tmp_path / "data/d.json", {"sha256": "now"})
    assert either.run_folder(tmp_path, where, lambda: WANTED) == bundled
    write_json(own / "run.json", WANTED)
    assert either.run_folder(tmp_path, where, lambda: WANTED) == own
    (own / "curve.csv").unlink()
    assert either.run_folder(tmp_path, where, lambda: WANTED) == bundled


def test_a_bundled_run_stands_without_its_start_though_that_is_here_with_other_settings(tmp_path):
    wanted = WANTED | {"start": {"run": "p/b/d/first/1", "asked": agreement.digest_of_asked(WANTED)}}
    where, bundled = brought(tmp_path, wanted, "p/b/d/second/1", start_sha256="then")
    _, start = finished(tmp_path, OTHERS, "p/b/d/first/1", weights_sha256="now")
    assert agreement.stands(wanted, where, tmp_path) and either.came_alone(bundled)
    write_json(start / "run.json", WANTED | {"extras": {"vectors": True}, "weights_sha256": "now"})
    assert not agreement.stands(wanted, where, tmp_path) and not either.came_alone(bundled)


def test_the_file_is_written_where_it_differs_and_is_newer_than_outputs_that_are_to_go(tmp_path):
    _, folder = finished(tmp_path, WANTED)
    made_here = standing.of_run(folder)
    file, other = tmp_path / "asked/1.json", WANTED | {"settings": {"lr": 2.0}}
    standing.write(file, WANTED, made_here, settled=True)
    written = file.stat().st_mtime_ns
    standing.write(file, WANTED, made_here, settled=True)
    assert json.loads(file.read_text()) == WANTED and file.stat().st_mtime_ns == written
    standing.write(file, other, made_here, settled=False)
    content = json.loads(file.read_text())
    assert content.pop("replaces") == max(each.stat().st_mtime_ns for each in folder.iterdir())
    assert content.pop("planned") == standing.PLANNED and content == other
    os.utime(file, ns=(1, 1))
    standing.write(file, other, made_here, settled=False)
    assert file.stat().st_mtime_ns > min(each.stat().st_mtime_ns for each in folder.iterdir())
    again = file.stat().st_mtime_ns
    standing.write(file, other, made_here, settled=True)  # it was trained: what it replaced no longer matters
    assert file.stat().st_mtime_ns == again
    standing.write(tmp_path / "new.json", other, [tmp_path / "nothing"], settled=False)
    assert json.loads((tmp_path / "new.json").read_text()) == other


def test_a_dry_run_writes_apart_unless_what_is_there_stands(tmp_path):
    where, folder = finished(tmp_path, WANTED)
    made_here = standing.of_run(folder)
    file = standing.ask(tmp_path, where.path, WANTED, made_here, settled=True, apart=False)
    assert file == tmp_path / f"asked/{where.path}.json"
    assert standing.ask(tmp_path, where.path, WANTED, made_here, settled=True, apart=True) == file
    other = WANTED | {"settings": {"lr": 2.0}}
    planned = standing.ask(tmp_path, where.path, other, made_here, settled=False, apart=True)
    assert planned == tmp_path / f"planned/{where.path}.json" and json.loads(file.read_text()) == WANTED
    assert planned.stat().st_mtime_ns > max(each.stat().st_mtime_ns for each in made_here)


BEFORE = {"row": {"path": "a.csv", "scheme": None}, "files": {"a.csv": "1"}, "words": None}
ASKED = {**BEFORE, "named": []}
NOTES = {
    "as asked": (ASKED, True),
    "time of what it replaced": ({**ASKED, "replaces": 1}, True),
    "other value": ({**ASKED, "files": {"a.csv": "2"}}, False),
    "key of the row newly there": ({**ASKED, "row": {"path": "a.csv"}}, False),
    "key of the row gone": ({**ASKED, "row": {**ASKED["row"], "rest": True}}, False),
    "other class named": ({**ASKED, "named": ["law"]}, False),
    "of before classes were named": (BEFORE, True),
    **{f"without {key}": ({k: ASKED[k] for k in ASKED if k != key}, False) for key in BEFORE},
    "empty": ({}, False),
}
DAMAGED = {"nothing": "", "cut": '{"row": {"pa', "list": "[]", "zeros": "\0" * 9}


@pytest.mark.parametrize("noted, stands", NOTES.values(), ids=NOTES)
def test_what_was_made_stands_where_its_note_says_all_that_is_asked(tmp_path, noted, stands):
    note = tmp_path / "note.json"
    assert standing.same([], ASKED, note), "made before there were notes"
    write_json(note, noted)
    assert standing.same([], ASKED, note) == stands
    assert not standing.same([tmp_path / "gone"], ASKED, note)


def test_with_neither_a_note_nor_what_was_asked_only_data_are_made_again(tmp_path):
    stands = {kind: standing.same([], ASKED, tmp_path / f"made/{kind}/toy.json") for kind in standing.KINDS}
    assert [kind for kind in stands if not stands[kind]] == ["data"]


ASKED_BEFORE = {
    "the same": (ASKED, True),
    "other value": ({**ASKED, "files": {"a.csv": "2"}}, False),
    "to be replaced, and no job has left a note": ({**ASKED, "replaces": 1, "planned": 2}, False),
}


@pytest.mark.parametrize("before, stands", ASKED_BEFORE.values(), ids=ASKED_BEFORE)
def test_without_a_note_what_was_asked_before_tells_whether_a_file_is_believed(tmp_path, before, stands):
    write_json(tmp_path / "asked/data/toy.json", before)
    assert standing.same([], ASKED, tmp_path / "made/data/toy.json") == stands


def test_a_note_is_of_the_files_that_its_job_made_and_of_no_others(tmp_path):
    files, given = outputs_in(tmp_path, "data", "toy@total=9"), tmp_path / "asked/data/toy@total=9.json"
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(file.suffix)
    write_json(given, ASKED)
    left = tmp_path / "made/data/toy@total=9.json"
    note(given, left)
    assert standing.same(files, ASKED, left)
    for file in files:
        times, content = file.stat(), file.read_text()
        file.write_text("of another time")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not standing.same(files, ASKED, left)
        file.write_text(content)
    files[0].unlink()
    note(given, left)  # another Snakemake has removed a file
    assert read_json(left)["made"].keys() == {files[1].name}


def test_a_note_of_what_is_no_kind_is_a_copy(tmp_path):
    report = tmp_path / "data/toy.json"
    report.parent.mkdir()
    report.write_text('{"rows": {}}')
    note(report, tmp_path / "made/reports/toy.json")
    assert (tmp_path / "made/reports/toy.json").read_bytes() == report.read_bytes()


def test_classes_that_are_named_now_are_not_in_a_note_of_before(tmp_path):
    write_json(tmp_path / "note.json", BEFORE)
    assert not standing.same([], {**ASKED, "named": ["law"]}, tmp_path / "note.json")


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_note_is_not_believed(tmp_path, content):
    note = tmp_path / "note.json"
    note.write_text(content)
    assert not standing.same([], ASKED, note)


@pytest.mark.parametrize("said", [[], ["row"], ["row", "files", "words", "first"]], ids=len)
def test_rows_of_a_note_that_does_not_say_all_are_known_by_their_digests_alone(tmp_path, monkeypatch, said):
    config = scale("demo")
    dataset = blocks.all_points(config)[0].dataset
    asked_now = standing.wanted(config, "data", dataset)
    monkeypatch.setattr(standing, "wanted", lambda *_: asked_now)
    write_json(tmp_path / standing.note(config, "data", dataset), {key: asked_now[key] for key in said})
    assert standing.rows_to_be(config, dataset, tmp_path) == {}


@pytest.mark.parametrize("key", ["row", "parts", "first", "words"])
def test_rows_of_a_note_in_another_form_are_known_by_their_digests_alone(tmp_path, monkeypatch, key):
    config = scale("demo")
    dataset = blocks.all_points(config)[0].dataset
    asked_now = standing.wanted(config, "data", dataset)
    monkeypatch.setattr(standing, "wanted", lambda *_: asked_now)
    write_json(tmp_path / standing.note(config, "data", dataset), asked_now | {key: "x"})
    assert standing.rows_to_be(config, dataset, tmp_path) == {}


def test_a_run_stands_on_the_rows_that_its_data_have_now(tmp_path):
    for number, (trained, there) in enumerate([("now", True), ("before", False), (None, True)]):
        where, _ = finished(tmp_path, WANTED, f"p/b/d/m/{number}", data={"sha256": trained})
        write_json(tmp_path / "data/d.json", {"sha256": "now"})
        assert agreement.stands(WANTED, where, tmp_path) == there


def test_training_refuses_words_that_are_no_longer_those_that_are_asked(tmp_path):
    (tmp_path / "words.csv").write_text("label,words\na,x\n")
    wanted = {"settings": {"verbalizer": "words.csv"}, "extras": {}, "backbone": {}}
    file = tmp_path / "1.json"
    write_json(file, wanted | {"verbalizer": [["label", "words"], ["a", "x"]], "replaces": 1})
    assert "replaces" not in asked_file.read_asked(file, tmp_path)
    (tmp_path / "words.csv").write_text("label,words\na,y\n")
    with pytest.raises(BadInput, match=r"words\.csv is no longer what .*1\.json says"):
        asked_file.read_asked(file, tmp_path)


def test_a_run_stands_on_the_copy_of_a_report_whose_data_were_removed(tmp_path):
    where, _ = finished(tmp_path, WANTED, data={"rows_sha256": "these", "sha256": "of a file"})
    assert agreement.stands(WANTED, where, tmp_path), "of an older version, which left no copy"
    for rows, there in ("these", True), ("others", False):
        write_json(tmp_path / "made/reports/d.json", {"rows_sha256": rows})
        read_at.cache_clear()
        assert agreement.stands(WANTED, where, tmp_path) == there
    write_json(tmp_path / "data/d.json", {"rows_sha256": "these"})
    assert agreement.stands(WANTED, where, tmp_path), "what is there goes before the copy"


@pytest.mark.parametrize("place", ["results/tiny/runs/curve.csv", "own data/rows.csv"])
def test_a_file_of_the_future_is_named_with_the_command_that_mends_it(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    file, results = Path(place), Path("results/tiny")
    for each in (file, results / "asked.json"):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.touch()
    future.check_times([file, Path("not/there")], results)
    later = file.stat().st_mtime + 3600
    os.utime(file, (later, later))
    with pytest.raises(BadInput, match=rf"^{place} is of the future by the clock \(.*\), and ") as error:
        future.check_times([results / "asked.json", file], results)
    subprocess.run(str(error.value).partition("or run: ")[2], shell=True, check=True)
    future.check_times([file], results)
