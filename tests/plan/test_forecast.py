"""`tailprompt plan`: the runs, downloads and cost of a scale agree with the plan and with finished runs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from scales import scale

from tailprompt import __main__
from tailprompt.data.table import load as load_rows
from tailprompt.errors import BadInput
from tailprompt.files import sha256, write_json
from tailprompt.plan import agreement, asked, blocks, made, own_rows, starts
from tailprompt.plan import settings as plan
from tailprompt.plan.forecast import forecast, seconds_left, unmeasured, unseen
from tailprompt.plan.hours import START, by_rule, parameters, patches, stated, text_length
from tailprompt.plan.layers import merge
from tailprompt.plan.own_rows import looked_at


def test_the_papers_scale_is_all_cells_of_every_table(tmp_path):
    text = forecast(scale("paper"), tmp_path)
    assert "7,300 runs, 0 of them done" in text and "186.57 GB of weights" in text
    assert "7300 by a rule of thumb: 6 x parameters" in text
    assert "name as root in their rows: imagenet-a, " in text and "places-lt" in text
    assert "texts are not here as they are asked; this takes corpora.text, which this scale leaves" in text


def test_the_cards_of_a_large_backbone_are_said(tmp_path):
    ppt = scale("paper") | {"make": {"ppt": {"tables": ["table4"], "figures": []}}}
    stated = "GPUs of a job: 2 with t5-xl, 4 with t5-xxl, 4 with t5-xxl-lm, 1 with others"
    assert stated in forecast(ppt, tmp_path).replace("2 with mt5-xl, 4 with mt5-xxl, ", "")
    assert "GPUs of a job" not in forecast({**ppt, "device": "cpu"}, tmp_path)


def test_the_demo_downloads_nothing():
    assert "to download: 0.00 GB (" in forecast(scale("demo"))


def test_methods_that_a_protocol_leaves_out_or_names_in_vain_are_said_with_their_tables():
    methods = ["cls-tanh", "prompt@keep=true", "linear"]
    glee = {"tables": ["table2", "claims"], "figures": []}
    demo = merge(scale("demo"), {"protocols": {"glee": {"methods": methods}}}) | {"make": {"glee": glee}}
    (out, idle) = (line for line in forecast(demo).splitlines() if "protocols." in line)
    assert out.startswith("left out, as protocols.glee.methods does not name them: ")
    assert "cls-tanh-eta (table2)" in out and "prompt-focal (table2, claims)" in out
    assert " cls-tanh (" not in out and " prompt (" not in out
    assert idle == "no run, as no table or figure names what protocols.glee.methods does: linear"
    assert "protocols.lpt" not in forecast(scale("paper") | {"make": {"lpt": {}}})


def finish(root, config, point, **changes):
    """Write the files of a run that took an hour and is what is asked, but for changes of its run.json."""
    run = root / "results/demo/runs" / point.path
    run.mkdir(parents=True)
    weights = made.weights(config, point.backbone)
    about = asked.asked(config, point, plan.settings(config, point), weights) | changes
    for name in agreement.OUTPUTS:
        (run / name).touch()
    about = {"seconds": 3600.0, "data": {"sha256": "of what it was trained on"}} | about
    (run / "run.json").write_text(json.dumps(about))
    for folder in ("config", "workflow"):
        if not (root / folder).exists():
            (root / folder).symlink_to(Path(folder).absolute())


def test_a_damaged_record_of_a_run_from_a_bundle_is_said_with_the_way_out(tmp_path):
    point = blocks.all_points(scale("demo"))[0]
    finish(tmp_path, scale("demo"), point)
    shutil.move(tmp_path / "results/demo/runs", tmp_path / "results/demo/from_bundles/runs")
    folder = tmp_path / "results/demo/from_bundles/runs" / point.path
    (folder / "run.json").write_text("{")
    with pytest.raises(BadInput, match=rf"run.json is not JSON .*; delete {folder}, and unbundle it again$"):
        forecast(scale("demo"), tmp_path)


@pytest.mark.parametrize("seconds", [None, "x", []])
def test_a_time_that_is_no_number_is_damage_of_its_run(tmp_path, seconds):
    point = blocks.all_points(scale("demo"))[0]
    finish(tmp_path, scale("demo"), point, seconds=seconds)
    with pytest.raises(BadInput, match=rf"run.json is not what its run wrote .* retrain {point.path}$"):
        forecast(scale("demo"), tmp_path)


def test_finished_runs_are_counted_and_their_time_is_believed(tmp_path):
    demo = scale("demo")
    points = blocks.all_points(demo)
    done = list({point.dataset: point for point in points if not starts.start_of(demo, point)}.values())
    for point in done:
        finish(tmp_path, demo, point)
    text, took = forecast(demo, tmp_path), dict.fromkeys(done, 3600.0)
    rest = [point for point in points if point not in done]
    left = seconds_left(demo, rest, took, tmp_path, cpu=True)
    assert "4 of them done" in text and f"time: {sum(left.values()) / 3600:.1f} hours for" in text
    assert f"(from 4 finished runs; {len(unmeasured(rest, took))} by a rule" in text
    report = tmp_path / f"results/demo/data/{done[0].dataset}.json"
    write_json(report, {"sha256": "other", "rows": {"train": 1}})
    assert "3 of them done" in forecast(demo, tmp_path)


def test_runs_of_a_bundle_are_done(tmp_path):
    demo = scale("demo")
    finish(tmp_path, demo, blocks.all_points(demo)[0])
    results = tmp_path / "results/demo"
    (results / "runs").rename(tmp_path / "runs")
    (results / "from_bundles").mkdir()
    (tmp_path / "runs").rename(results / "from_bundles/runs")
    record = next(results.glob("from_bundles/**/run.json"))
    brings = dict.fromkeys(agreement.CARRIED, "") | {"run.json": sha256(record)}
    write_json(record.with_name(agreement.DIGESTS), brings)
    with pytest.raises(BadInput, match="weights.json is not what its bundle brought"):
        forecast(demo, tmp_path)
    weights = next(results.glob("from_bundles/**/weights.safetensors"))
    weights.rename(weights.with_name("weights.json"))
    assert "1 of them done" in forecast(demo, tmp_path)


def test_few_examples_and_a_prompts_own_are_what_the_rule_counts():
    demo = scale("demo") | {"scale": "nothing-is-done"}
    points = {point.dataset: point for point in blocks.all_points(demo)}

    def an_epoch(dataset):
        seconds = by_rule(demo, points[dataset], Path("."), cpu=True) - START
        return seconds / plan.settings(demo, points[dataset])["epochs"]

    # of texts that are not there yet half of the most tokens is taken, and those of debian-topics are cut
    assert an_epoch("prompts-single") / an_epoch("debian-topics@total=32") == pytest.approx(2400 / 32 / 2)


@pytest.mark.parametrize(
    "row, cut, rows",
    [
        ({"path": "own.csv"}, {}, 40),
        ({"files": {"train": "own.csv", "dev": "own.csv"}}, {}, 40),
        ({"files": {"all": {"path": "own.csv"}}}, {"train": 7}, 7),
        ({"path": "own.csv", "verbalizer": "words.csv"}, {"shots": 8}, 24),
        ({"classes": 5}, {"shots": 8}, 40),
        ({"path": "own.csv"}, {"shots": 8}, 40),
        ({"examples": 99, "corpus": "text", "path": "own.csv"}, {}, 99),
        ({"trained_on": "other"}, {}, 0),
        ({"path": "none.csv"}, {}, 10_000),
        ({"path": "own.csv.xz"}, {}, 10_000),
        ({"files": {"all": {"url": "https://a/b.csv"}}}, {"dev": 3}, 10_000),
    ],
)
def test_rows_not_prepared_yet_are_what_is_stated_or_the_records_of_the_file(tmp_path, row, cut, rows):
    (tmp_path / "own.csv").write_text("text,label\n" + "a,b\n" * 40)
    (tmp_path / "words.csv").write_text("label,words\na,a\nb,b\nc,c\n")
    assert stated({**row, "cut": cut}, tmp_path) == rows


@pytest.mark.parametrize(
    "name, content, row, rows",
    [
        ("a.csv", 'text,label\n"two\nlines",a\n"one ""word""\n\n\n",b\n', {}, 2),
        ("a.csv", 'text;label\n"two\nlines";a\n"b;\n";b\n', {}, 2),
        ("a.csv", 'x|a\n"two\nlines"|b\n', {"separator": "|", "header": ["text", "label"]}, 2),
        ("a.tsv", 'text\tlabel\n"two\nlines"\ta\n\n', {}, 1),
        ("a.tsv", 'text\tlabel\n"one\ta\ntwo"\tb\n', {"quotes": False}, 2),
        ("a.csv", "text,label\r\na,b\r\n", {}, 1),
        ("a.csv", "text,label\n", {}, 1),
        ("a.jsonl", '{"text": "a\\nb", "label": "a"}\n' * 3, {}, 3),
    ],
)
def test_the_rows_of_a_file_are_its_records_whatever_its_lines(tmp_path, name, content, row, rows):
    (tmp_path / name).write_text(content)
    assert stated({"path": name, "cut": {}, **row}, tmp_path) == rows


@pytest.mark.parametrize("place, cut, rows", [("", {}, 7), ("train", {}, 7), ("", {"total": 3}, 3)])
def test_ones_own_images_not_decoded_yet_are_the_files_of_their_folder_for_training(
    tmp_path, place, cut, rows
):
    for number in range(7):
        (tmp_path / place / f"a/{number % 2}").mkdir(parents=True, exist_ok=True)
        (tmp_path / place / f"a/{number % 2}/{number}.png").touch()
    if place:
        (tmp_path / "test/a").mkdir(parents=True)
        (tmp_path / "test/a/8.png").touch()
    row = {"loader": "image_folder", "root": str(tmp_path), "cut": cut}
    assert stated(row, tmp_path) == rows
    assert stated({**row, "root": "absent", "cut": {}}, tmp_path) == 10_000


def test_a_run_with_other_settings_is_not_done(tmp_path):
    demo = scale("demo")
    finish(tmp_path, demo, blocks.all_points(demo)[0], settings={"lr": 1.0})
    assert ", 0 of them done" in forecast(demo, tmp_path)


def test_the_command_names_the_known_ones():
    with pytest.raises(BadInput, match="known: .*fetch.*plan"):
        __main__.dispatch(["plann"])


def test_ones_own_images_are_planned_where_their_folder_is(tmp_path, capsys):
    files = ["--configfile", "config/mine-images.yaml"]
    with pytest.raises(BadInput, match="'photos': there is no folder photos; correct its root"):
        __main__.dispatch(["plan", *files])
    (tmp_path / "there.yaml").write_text(f"datasets: {{photos: {{root: {tmp_path}}}}}")
    __main__.dispatch(["plan", *files, str(tmp_path / "there.yaml")])
    text = capsys.readouterr().out
    assert "120 runs, 0 of them done" in text and "vit-mini" in text and "lpt-phase1 12, lpt 9" in text


def test_a_plan_without_training_takes_no_hours_and_downloads_nothing(tmp_path):
    text = forecast(scale("mini") | {"train": False}, tmp_path)
    assert text.endswith("\ntime: none, as nothing is trained under train: false")
    assert "to download" not in text and "hours for" not in text


@pytest.mark.parametrize("command", ["plan", "status"])
@pytest.mark.parametrize("entry", ["train", "=false", "1x=2", "train= "])
def test_a_value_that_snakemake_would_not_read_is_one_sentence(command, entry):
    with pytest.raises(BadInput, match=f"--config takes KEY=VALUE, as train=false, not {entry}$"):
        __main__.dispatch([command, "--config", entry])


def test_the_command_wants_the_projects_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="no Snakefile"):
        __main__.dispatch(["plan"])


@pytest.mark.parametrize("command", ["plan", "fetch"])
def test_a_scale_that_is_not_there_is_one_sentence(command):
    with pytest.raises(BadInput, match="config file nope.yaml: No such file"):
        __main__.dispatch([command, "--configfile", "nope.yaml"])


def test_weights_that_another_scale_has_fetched_are_not_downloaded_again(tmp_path):
    paper = scale("paper") | {"make": {"glee": {}}}
    assert "weights: bert-base-chinese, bert-base-uncased;" in forecast(paper, tmp_path)
    marker = tmp_path / "results/other/backbones/bert-base-chinese.json"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert "weights: bert-base-uncased;" in forecast(paper, tmp_path)


def test_without_a_gpu_the_cpu_is_counted_and_the_hours_on_a_gpu_are_said(monkeypatch):
    demo, said = scale("demo") | {"scale": "nothing-is-done"}, "none is visible here"

    def hours(device: str, *gpus: str) -> str:
        monkeypatch.setattr("tailprompt.plan.hours.visible", lambda: list(gpus))
        return forecast(demo | {"device": device}).partition("time: ")[2]

    assert said in hours("auto") and said not in hours("cpu") + hours("auto", "0") + hours("cuda")
    on_cpu, on_gpu = (float(hours(device).split()[0]) for device in ("cpu", "cuda"))
    assert on_cpu > on_gpu
    assert hours("auto").startswith(f"{on_cpu} hours") and f"on a GPU {on_gpu} hours" in hours("auto")


def test_the_rule_counts_the_numbers_of_weights_whatever_their_size():
    backbones = scale("mini")["backbones"]
    assert parameters(backbones["bert-mini"], Path(".")) == 7_304_960  # they ship in half precision
    assert parameters(backbones["bert-base-uncased"], Path(".")) == pytest.approx(110e6)


def test_the_rule_counts_the_patches_of_an_image_and_the_bytes_of_ones_own_text(tmp_path):
    vit = {"img_size": 32, "patch_size": 4}
    assert patches({}, vit) == 64 and patches({"size": 16}, vit) == 16 and patches({}, {}) == 196
    (tmp_path / "own.csv").write_text("a text,label\n" * 40)
    assert text_length({"path": "own.csv"}, 128, tmp_path) == pytest.approx(13 * 40 / 39 / 4)
    assert text_length({"path": "own.csv"}, 2, tmp_path) == 2
    assert text_length({"path": "absent.csv"}, 128, tmp_path) == 64


def test_the_rule_is_within_a_factor_of_three_of_what_the_demo_took_on_a_cpu():
    """Processor seconds of its runs, one at a time on an AMD EPYC (AVX2) with two cores, 2026-11-29."""
    demo = scale("demo") | {"scale": "nothing-is-done"}
    took = {"prompt": 41, "cls-relu-ln": 39, "pt@lr=0.05": 7.7, "ppt-hybrid@lr=0.05": 7.1, "ppt-pretrain": 18}
    for point in blocks.all_points(demo):
        if seconds := took.get(point.method):
            assert seconds / 3 < by_rule(demo, point, Path("."), cpu=True) < 3 * seconds


def test_files_that_data_dir_lacks_are_named_unless_their_data_are_prepared(tmp_path):
    (tmp_path / "there/cmid").mkdir(parents=True)
    (tmp_path / "there/cmid/dev.tsv.xz").touch()
    glee = {"make": {"glee": {"tables": ["table1"], "figures": []}}, "data_dir": "there"}
    config = scale("paper") | glee | {"sets": {"long_tailed": ["cmid", "ctc"]}}
    assert "not in data_dir there: cmid/train.tsv, cmid/test.tsv, ctc/" in forecast(config, tmp_path)
    for name in ("cmid", "ctc"):
        write_json(tmp_path / f"results/paper/data/{name}.json", {"rows": {"train": 3}})
    assert "not in data_dir" not in forecast(config, tmp_path)
    lpt = {"make": {"lpt": {"tables": ["table3"], "figures": []}}, "data_dir": "there"}
    assert "Places_LT_test.txt, places-lt/\n" in forecast(scale("paper") | lpt, tmp_path)


@pytest.mark.parametrize(
    "row, content, rows",
    [
        (
            {"loader": "squad"},
            {"data": [{"paragraphs": [{"qas": [{"question": "a?"}, {"question": "b"}]}]}]},
            2,
        ),
        ({"columns": {"text": "body"}}, [{"body": "a", "label": "x"}, {"body": "b", "label": "y"}], 2),
        ({}, [{"text": "a", "label": "x"}] * 3, 3),
    ],
    ids=["questions", "own column", "texts"],
)
def test_rows_on_one_line_of_json_are_counted(tmp_path, row, content, rows):
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert stated({"cut": {}, "path": "a.json", **row}, tmp_path) == rows


def test_other_data_of_a_method_take_by_what_the_rule_says_of_both():
    config = scale("demo")
    first = next(point for point in blocks.all_points(config) if point.protocol == "glee")
    small = replace(first, dataset=f"{first.dataset.partition('@')[0]}@train=100,dev=50,test=50")
    took = 3 * by_rule(config, first, Path("."), cpu=True)
    left = seconds_left(config, [small], {first: took}, Path("."), cpu=True)
    assert left[small] == pytest.approx(3 * by_rule(config, small, Path("."), cpu=True))


def test_a_run_takes_as_long_as_those_of_its_method():
    config = scale("demo")
    points = [point for point in blocks.all_points(config) if point.protocol == "glee"]
    first = points[0]
    slow = next(each for each in points if each.method != first.method and each.dataset == first.dataset)
    done = {replace(first, seed=7): 10.0, replace(first, seed=8): 20.0, replace(slow, seed=7): 900.0}
    left = seconds_left(config, [first, slow], done, Path("."), cpu=True)
    assert (left[first], left[slow]) == (pytest.approx(15.0), pytest.approx(900.0))


@pytest.mark.parametrize(
    "text, label, says",
    [
        ("", "a", "has an empty text"),
        ("t", "", "label"),
        ("t", "A", "differ"),
        ("t", "b", "class"),
    ],
    ids=["text", "label", "case", "alone"],
)
def test_the_plan_refuses_what_preparing_a_small_file_would(tmp_path, text, label, says):
    file = tmp_path / "own.csv"
    rows = pd.DataFrame({"text": [f"t {i}" for i in range(30)] + [text], "label": ["a", "c"] * 15 + [label]})
    rows.to_csv(file, index=False)
    row = {"name": "own", "path": str(file), "language": "en"}
    with pytest.raises(BadInput) as of_plan:
        looked_at(row, tmp_path)
    with pytest.raises(BadInput) as of_prepare:
        load_rows(row, {"all": file})
    assert str(of_plan.value) == str(of_prepare.value)


def test_the_plan_says_which_rows_it_has_not_looked_at(tmp_path, monkeypatch):
    file = tmp_path / "own.csv"
    pd.DataFrame({"text": [f"t {i}" for i in range(30)], "label": ["a", "c"] * 15}).to_csv(file, index=False)
    own = {"path": str(file), "language": "en"}
    whole = {"scale": "x", "datasets": {"own": own, "photos": {"root": "p", "language": "image"}}}
    assert unseen(whole, ["own", "own@train=9"], tmp_path) == []
    assert "rows not looked at: photos (" in unseen(whole, ["own", "photos"], tmp_path)[0]
    monkeypatch.setattr(own_rows, "SMALL", 9)
    assert "rows not looked at: own (" in unseen(whole, ["own"], tmp_path)[0]
    public = {"files": {"all": {"url": "https://a/b.csv"}}}
    assert unseen(whole | {"datasets": {"own": public}}, ["own"], tmp_path) == []


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.CSV", "a.tsv", "a.tab", "a.csv.gz", "a.jsonl.xz", "a.ndjson", "a.json.bz2", "a.parquet"],
)
def test_the_rows_and_texts_of_a_file_are_counted_in_each_format_and_packing(tmp_path, name):
    table = pd.DataFrame(
        {"text": [f"the printer on floor {n} is out of paper" for n in range(300)], "label": ["a", "b"] * 150}
    )
    file, stem = tmp_path / name, name.lower().split(".")[1]
    if stem == "parquet":
        table.to_parquet(file, index=False)
    elif "json" in stem or stem == "ndjson":
        table.to_json(file, orient="records", lines=stem != "json", compression="infer")
    else:
        table.to_csv(file, index=False, sep="," if stem == "csv" else "\t", compression="infer")
    row = {"path": name, "cut": {}, "columns": {"text": "text", "label": "label"}}
    assert stated(row, tmp_path) == 300
    assert 5 < text_length(row, 128, tmp_path) < 25
