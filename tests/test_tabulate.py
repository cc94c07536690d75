"""Tables: reported beside ours, what is missing or mixed said, and files that compile."""

import re
import shutil
import subprocess

import made_up
import numpy as np
import pandas as pd
import pytest
from blocks import block, results
from sklearn.metrics import f1_score

from tailprompt import tabulate
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.report import records, sheet, typeset
from tailprompt.report.tables.scores import scores
from tailprompt.report.tables.statistics import statistics

METRICS = {"metrics": ["accuracy/all", "f1/all", "f1/head", "f1/tail"], "average": True}


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr("tailprompt.report.bootstrap.DRAWS", 200)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Two methods, three seeds, a data set that no paper prints."""
    spec = block("scores", **METRICS)
    return results(tmp_path_factory.mktemp("plain"), spec), spec


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The same on a data set that the paper prints as R52."""
    spec = block("scores", **METRICS)
    return results(tmp_path_factory.mktemp("printed"), spec, reported="r52"), spec


def cell(long, dataset="made", method="prompt", metric="f1/all"):
    return long.set_index(["dataset", "method", "metric"]).loc[(dataset, method, metric)]


def test_ours_is_mean_and_sample_sd_over_seeds_in_points(plain):
    root, spec = plain
    long, _, _ = scores(root, spec)
    table = records.scores(root, records.runs(root, spec), ["f1/all"])
    values = table.query("split == 'test' and method == 'prompt'").value
    assert cell(long).ours == pytest.approx(100 * values.mean())
    assert cell(long).spread == pytest.approx(100 * values.std(ddof=1))
    assert cell(long).n == 3


def test_another_token_is_a_class_to_the_table_and_to_the_bootstrap_alike(tmp_path):
    spec = block("scores", **METRICS)
    root = results(tmp_path, spec)
    for file in root.glob("runs/*/*/*/prompt/*/predictions.parquet"):  # of a run with open decoding
        rows = pd.read_parquet(file)
        rows.loc[rows.index % 9 == 0, "prediction"] = len(made_up.CLASSES)
        rows.to_parquet(file, index=False)
    long, _, _ = scores(root, spec)
    (folder,) = root.glob("runs/*/*/*/prompt/1")
    test = pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    table = records.scores(root, records.runs(root, spec), ["f1/all"])
    ours = table.query("split == 'test' and method == 'prompt' and seed == 1").value.item()
    assert ours == pytest.approx(f1_score(test.label, test.prediction, average="macro"))
    for metric in spec["metrics"]:
        first, other = (cell(long, method=method, metric=metric) for method in ("cls-tanh", "prompt"))
        assert other.gain == pytest.approx(other.ours - first.ours)


def test_flagged_runs_are_named_under_the_table(tmp_path):
    spec = block("scores", **METRICS)
    root = results(tmp_path, spec)
    for seed, names in ((1, ["constant", "still"]), (2, ["constant"])):
        (folder,) = root.glob(f"runs/*/*/*/prompt/{seed}")
        write_json(folder / "run.json", records.record(folder) | {"flags": names})
    _, tex, _ = scores(root, spec)
    assert "All test examples are predicted as one class: Prompt-tuning on MADE (seeds 1, 2)." in tex.notes
    assert "Training loss does not move: Prompt-tuning on MADE (seeds 1)." in tex.notes


def test_cuts_of_one_data_set_are_told_apart(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("photos@imbalance=10", "photos@imbalance=100", "r52"):
        title = name.partition("@")[0]
        about = {"title": title, "classes": [], "rows": {}, "counts": {}, "groups": {}}
        write_json(tmp_path / "data" / f"{name}.json", about)

    def titles(*names: str) -> list[str]:
        spec = {"datasets": [{"dataset": name} for name in names]}
        return [report["title"] for report in records.reports(tmp_path, spec).values()]

    both = ["photos, imbalance 10", "photos, imbalance 100", "r52"]
    assert titles("photos@imbalance=10", "photos@imbalance=100", "r52") == both
    assert titles("photos@imbalance=10", "r52") == ["photos", "r52"]


def test_reported_stands_in_the_same_row_with_the_difference(printed):
    root, spec = printed
    long, tex, _ = scores(root, spec)
    one = cell(long)
    assert (one.reported, one.reported_spread) == (85.3, 0.6)
    assert one.difference == pytest.approx(one.ours - 85.3)
    assert ["reported", "ours", "diff."] == list(tex.heads[1:4])


def test_an_as_released_row_is_compared_with_its_methods_printed_number(tmp_path):
    spec = block("scores", methods=["cls-tanh", "prompt-as-released"], **METRICS)
    long, _, _ = scores(results(tmp_path, spec, reported="r52"), spec)
    assert cell(long, method="prompt-as-released").reported == 85.3


def test_without_printed_numbers_their_columns_are_left_out(plain):
    root, spec = plain
    _, tex, _ = scores(root, spec)
    assert list(tex.heads) == ["Method", "Accuracy", "F1", "Head F1", "Tail F1", "n"]


def test_missing_seeds_are_named_and_n_says_so(tmp_path):
    spec = block("scores", **METRICS)
    long, tex, _ = scores(results(tmp_path, spec, leave_out=[("prompt", 2)]), spec)
    assert cell(long).n == 2
    assert "Missing on MADE: Prompt-tuning (seeds 2)." in tex.notes


def test_several_seeds_have_a_mean_and_a_spread(plain):
    notes = scores(*plain)[1].notes
    assert "Ours: mini at scale tiny, seeds 1, 2, 3; points, mean with SD over n seeds." in notes
    assert any("Student's t over seeds and the bootstrap over test examples" in note for note in notes)


@pytest.mark.parametrize("seeds, said", [([1], "seed 1"), ([1, 2], "seeds 1, 2")])
def test_one_seed_has_neither_a_mean_nor_a_spread(tmp_path, seeds, said):
    spec = block("scores", seeds=seeds, **METRICS)
    others = [(method, 2) for method in ("cls-tanh", "prompt")]
    long, tex, _ = scores(results(tmp_path, spec, leave_out=others), spec)
    assert cell(long).n == 1 and np.isnan(cell(long).spread)
    assert any(f"{said}; points, one run each, of unknown spread over seeds." in n for n in tex.notes)
    assert not any(note.startswith("*:") for note in tex.notes) and np.isnan(cell(long).p)


def test_a_scale_not_run_shows_the_paper_and_blanks(tmp_path):
    spec = block("scores", **METRICS)
    everything = [(method, seed) for method in ("cls-tanh", "prompt") for seed in (1, 2, 3)]
    long, tex, _ = scores(results(tmp_path, spec, reported="r52", leave_out=everything), spec)
    assert cell(long).reported == 85.3 and np.isnan(cell(long).ours)
    assert "None of these runs has been made at this scale yet." in tex.notes
    assert "nan" not in typeset.tex(tex) and "nan" not in typeset.md(tex)


def test_the_most_frequent_class_is_beside_the_scores_where_a_block_asks(tmp_path):
    spec = block("scores", metrics=["accuracy/all"])
    root, says = results(tmp_path, spec), "Accuracy of the most frequent class: MADE 53.3."
    assert says in scores(root, spec | {"majority": True})[1].notes
    assert says not in scores(root, spec)[1].notes


def test_notes_of_rebuilt_data_and_mixed_devices_are_under_the_table(tmp_path):
    spec = block("scores", **METRICS)
    results(tmp_path, spec, note="rebuilt, not the authors' file")
    made_up.run(tmp_path, "prompt", 3, device="NVIDIA H100", sources={"loop.py": "bb"})
    _, tex, _ = scores(tmp_path, spec)
    assert "MADE: rebuilt, not the authors' file." in tex.notes
    assert any("mix devices: NVIDIA H100 1, cpu 5" in note for note in tex.notes)
    assert any("mix 2 versions of the source code (5, 1 runs)" in note for note in tex.notes)


@pytest.mark.parametrize(
    "empty, report, says",
    [
        (["many"], {}, "Blank on MADE: many has no class (`many` in its row"),
        (["few"], {}, "Blank on MADE: few has no class (`few` in its row"),
        (["head", "tail"], {"threshold": None}, "MADE: head and tail, as its row states no threshold."),
        (["head"], {"threshold": 0.65}, "MADE: head has no class, as test has examples of one class only."),
        ([], {"threshold": 0.5}, "Head of MADE: its largest class alone, which has 53% of the examples"),
    ],
)
def test_a_group_without_classes_or_with_one_against_the_rule_is_explained(tmp_path, empty, report, says):
    groups = made_up.GROUPS | dict.fromkeys(empty, [])
    shown = [f"accuracy/{group}" for group in groups]
    spec = block("scores", metrics=shown)
    results(tmp_path, spec, groups={"dev": groups, "test": groups}, **report)
    _, tex, _ = scores(tmp_path, spec)
    assert [note for note in tex.notes if "Blank on" in note or "Head of" in note] == [
        note for note in tex.notes if says in note
    ]
    assert any(says in note for note in tex.notes)


def test_groups_with_classes_need_no_note(plain):
    root, spec = plain
    _, tex, _ = scores(root, spec)
    assert not any("Blank on" in note or "Head of" in note for note in tex.notes)


def test_a_run_that_chose_its_step_on_test_is_said_to(tmp_path):
    spec = block("scores", seeds=[1], **METRICS)
    results(tmp_path, spec)
    made_up.run(tmp_path, "prompt", 1, selection_split="test")
    long, tex, _ = scores(tmp_path, spec)
    assert cell(long).selection_split == "test" and cell(long, method="cls-tanh").selection_split == "dev"
    assert "Selected on test, as the paper did: Prompt-tuning." in tex.notes


def test_seeds_that_were_asked_something_else_and_starts_of_other_code_are_said(tmp_path):
    spec = block("scores", **METRICS)
    results(tmp_path, spec)
    first = made_up.run(tmp_path, "first", 1, sources={"loop.py": "bb"}, threads=4)
    path = first.relative_to(tmp_path / "runs").as_posix()
    made_up.run(tmp_path, "prompt", 3, settings={"lr": 2e-3}, start={"run": path})
    _, tex, _ = scores(tmp_path, spec)
    assert any(" on made differ in settings.lr." in note for note in tex.notes)
    assert any("mix 2 versions of the source code (6, 1 runs)" in note for note in tex.notes)
    assert any("mix 2 numbers of CPU threads" in note for note in tex.notes)


def test_what_only_newer_runs_say_of_themselves_is_not_said_to_differ(tmp_path):
    spec = block("scores", **METRICS)
    results(tmp_path, spec)
    made_up.run(tmp_path, "prompt", 3, computed_in="bfloat16")
    _, tex, _ = scores(tmp_path, spec)
    assert not any("computed_in" in note for note in tex.notes)
    for seed in (1, 2, 3):
        made_up.run(tmp_path, "prompt", seed, computed_in="tf32" if seed < 3 else "bfloat16")
    _, tex, _ = scores(tmp_path, spec)
    assert any(" on made differ in computed_in." in note for note in tex.notes)


def test_runs_alike_are_not_said_to_be_mixed(plain):
    root, spec = plain
    _, tex, _ = scores(root, spec)
    assert not any("mix" in note for note in tex.notes)


def test_the_average_is_over_data_sets_and_only_where_all_are_run(tmp_path):
    spec = block("scores", datasets=["one", "two"], **METRICS)
    results(tmp_path, spec)
    shutil.rmtree(tmp_path / "runs/glee/mini/two/cls-tanh")
    long, _, _ = scores(tmp_path, spec)
    mean = (cell(long, "one").ours + cell(long, "two").ours) / 2
    assert cell(long, "avg").ours == pytest.approx(mean)
    assert np.isnan(cell(long, "avg", "cls-tanh").ours)


def test_the_papers_average_stands_only_beside_the_papers_data_sets(tmp_path):
    names = ["cmid", "iflytek", "ctc", "msra", "r52"]
    spec = block("scores", datasets=names, seeds=[1], **METRICS)
    for name in names:
        made_up.data(tmp_path, name, reported=name)
    long, _, _ = scores(tmp_path, spec)
    assert cell(long, "avg").reported == 70.4
    made_up.data(tmp_path, "msra", reported=None)
    long, _, _ = scores(tmp_path, spec)
    assert np.isnan(cell(long, "avg").reported)


def test_choose_takes_the_best_on_dev_and_names_it(tmp_path):
    spec = block("scores", methods=["prompt"], **METRICS)
    rates = ["prompt@lr=0.001", "prompt@lr=0.01"]
    spec["runs"] = [{**spec["runs"][0], "run": rate} for rate in rates]
    spec["choose"] = {"over": "lr", "values": [0.001, 0.01], "by": "f1/all"}
    made_up.data(tmp_path)
    for rate, skill in zip(rates, (0.3, 0.9), strict=True):
        for seed in spec["seeds"]:
            made_up.run(tmp_path, rate, seed, skill=skill)
    long, tex, _ = scores(tmp_path, spec)
    assert cell(long).run == "prompt@lr=0.01"
    assert cell(long).n == 3
    assert any("lr with the best mean dev f1/all on MADE: Prompt-tuning 0.01" in note for note in tex.notes)


def test_choosing_never_looks_at_test():
    rows = [
        {"dataset": "d", "method": "m", "run": run, "split": split, "score": "f1/all", "value": value}
        for run, split, value in [
            ("a", "dev", 0.6),
            ("b", "dev", 0.5),
            ("a", "test", 0.1),
            ("b", "test", 0.9),
        ]
    ]
    assert records.choose(pd.DataFrame(rows), "f1/all") == {("d", "m"): "a"}


def test_a_value_that_lacks_seeds_is_not_chosen():
    same = {"dataset": "d", "method": "m", "split": "dev", "score": "f1/all"}
    rows = [same | {"run": run, "value": value} for run, value in [("a", 0.5), ("a", 0.5), ("b", 0.9)]]
    table = pd.DataFrame(rows)
    assert records.choose(table, "f1/all") == {("d", "m"): "a"}


def test_the_gain_over_the_first_method_has_an_interval_and_p(plain):
    root, spec = plain
    long, _, _ = scores(root, spec)
    tail = cell(long, metric="f1/tail")
    assert tail.low < tail.gain < tail.high and tail.p < 0.05
    assert np.isnan(cell(long, method="cls-tanh").gain)


@pytest.mark.parametrize(
    "methods, says",
    [
        (("cls-tanh", "prompt"), "Prompt-tuning wins on MADE: "),
        (("prompt-focal", "cls-tanh-focal", "prompt"), "No method wins clearly on MADE; Prompt-tuning"),
    ],
)
def test_the_winner_is_ranked_on_dev_and_leads_on_test_with_an_interval(tmp_path, methods, says):
    spec = block("scores", methods, **METRICS, winner="f1/all")
    long, tex, _ = scores(results(tmp_path, spec), spec)
    assert tex.notes[0].startswith(says) and "95% interval" in tex.notes[0]
    assert not re.search(r"-\d", tex.notes[0]), "a number below zero has a minus sign"
    assert f": f1/all {cell(long).ours:.1f} on test" in tex.notes[0] or "focal" in tex.notes[0]


def test_a_score_may_be_of_one_class_to_show_to_choose_by_and_to_win_by(tmp_path):
    name = "f1/class:tea & co_1"
    spec = block("scores", metrics=["f1/all", name, "recall/class:earn"], average=True, winner=name)
    spec["choose"] = {"over": "lr", "values": [0.001], "by": name}
    spec["runs"] = [run | {"run": f"{run['method']}@lr=0.001"} for run in spec["runs"]]
    long, tex, _ = scores(results(tmp_path, spec), spec)
    assert cell(long, metric=name).n == 3 and cell(long, metric=name).p <= 1
    assert "F1 of tea & co_1" in [title for title, _ in tex.groups] + list(tex.heads)
    assert any(name in note and "against" in note for note in tex.notes)


def test_choosing_by_a_score_that_is_undefined_is_one_sentence():
    rows = {
        "split": "dev",
        "score": "f1/few",
        "dataset": "d",
        "method": "m",
        "run": ["a", "b"],
        "value": np.nan,
    }
    with pytest.raises(BadInput, match="choose: f1/few of m is undefined on dev of d"):
        records.choose(pd.DataFrame(rows), "f1/few")


def test_one_seed_names_no_winner(tmp_path):
    spec = block("scores", seeds=[1], **METRICS, winner="f1/all")
    note = scores(results(tmp_path, spec), spec)[1].notes[0]
    assert (
        note.startswith("No method wins clearly on MADE; Prompt-tuning") and "(no interval: one seed" in note
    )


def test_macro_scores_say_over_which_classes_they_are_means(tmp_path):
    spec = block("scores", metrics=["accuracy/all", "f1/all", "f1/head"])
    says = "F1: the mean over classes that occur in the labels or the predictions of test; "
    assert any(note.startswith(says) for note in scores(results(tmp_path, spec), spec)[1].notes)
    spec["metrics"] = ["accuracy/all"]
    assert not any("the mean over classes" in note for note in scores(tmp_path, spec)[1].notes)


def test_a_winner_is_open_until_two_methods_are_run(tmp_path):
    spec = block("scores", **METRICS, winner="f1/all")
    gone = [("cls-tanh", seed) for seed in (1, 2, 3)]
    _, tex, _ = scores(results(tmp_path, spec, leave_out=gone), spec)
    assert tex.notes[0].startswith("Which method wins on MADE is open")


def test_statistics_stand_beside_the_papers(tmp_path):
    spec = block("statistics", name="table1")
    results(tmp_path, spec, reported="r52", rows={"train": 5943, "dev": 617, "test": 2571})
    long, tex, _ = statistics(tmp_path, spec)
    values = long.set_index("metric")
    assert values.loc["rows/train", ["reported", "ours"]].tolist() == [5943, 5943]
    assert values.loc["rows/test", "difference"] == 1
    bold = {cell.text for cell in tex.blocks[0].rows[0] if cell.best}
    assert "2,571" in bold and "5,943" not in bold


@pytest.mark.parametrize(
    "value, text",
    [(1234.56, "1,234.6"), (-0.04, "0.0"), (-1.26, "\u22121.3"), (None, ""), (float("nan"), "")],
)
def test_numbers_for_people(value, text):
    assert sheet.number(value) == text


def test_numbers_with_a_sign_have_none_at_zero():
    assert [sheet.number(value, signed=True) for value in (2, 0.01, -3)] == ["+2.0", "0.0", "\u22123.0"]


def awkward():
    rows = [[sheet.Cell("50% & more_of #1 {x} ~^\\"), sheet.Cell("51.1", "0.4", "*", True)]]
    notes = ["\u5feb\u9012 \u00b1 < 1", "a | b * c"]
    return sheet.Sheet(
        "A & B", "tab:x", [("", 1), ("G_1", 1)], ["Method", "ours"], "lr", [sheet.Block("", rows)], notes
    )


def test_only_wide_tables_lie_sideways():
    wide = [sheet.Cell("x" * 40)] * 4
    made = sheet.Sheet("A", "tab:x", [("", 4)], list("abcd"), "llll", [sheet.Block("", [wide])])
    assert r"\begin{sidewaystable}" in typeset.tex(made)
    assert r"\begin{table}" in typeset.tex(awkward())


def test_latex_escapes_what_latex_reads():
    text = typeset.tex(awkward())
    assert r"50\% \& more\_of \#1 \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert r"\textbf{51.1}$^{*}_{0.4}$" in text
    assert r"\ideographs{" in text


def test_markdown_and_html_escape_what_they_read():
    assert r"a \| b \* c" in typeset.md(awkward())
    page = typeset.html(awkward())
    assert "50% &amp; more_of" in page and "&lt; 1" in page and "<b>51.1</b>" in page


def test_an_html_table_can_be_searched_and_sorted_without_anything_from_elsewhere():
    page = typeset.html(awkward())
    assert page.count('<input type="search"') == page.count("<script>") == 1
    assert "src=" not in page and "http" not in page
    assert page.index("<h1>") < page.index("<input") < page.index("<table>") < page.index("<script>")
    assert '<div class="wide"><table>' in page and 'name="viewport"' in page  # on a phone
    assert "td:first-child { min-width: 10em; position: sticky;" in page  # names stay beside their numbers


def test_all_four_files_are_written_and_the_csv_holds_every_number(plain, tmp_path):
    root, spec = plain
    tabulate.tabulate(root, spec, tmp_path / "tables/glee/table2")
    made = sorted(path.name for path in (tmp_path / "tables/glee").iterdir())
    assert made == [".table2.sha256", "table2.csv", "table2.html", "table2.md", "table2.tex"]
    table = pd.read_csv(tmp_path / "tables/glee/table2.csv")
    assert len(table) == 2 * 4
    assert {"reported", "ours", "spread", "n", "difference", "low", "high", "p", "missing_seeds"} <= set(
        table
    )


def test_an_unknown_kind_is_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="unknown kind of table 'pie'; known: claims, feature_statistics, "):
        tabulate.tabulate(tmp_path, block("pie"), tmp_path / "x")


@pytest.mark.parametrize(
    "metric, says",
    [("f2/all", "before / comes one of accuracy, average_precision, bal"), ("f1/tial", "few, head")],
)
def test_a_metric_misspelt_is_one_sentence(plain, metric, says):
    root, spec = plain
    with pytest.raises(BadInput, match=says):
        scores(root, spec | {"metrics": [metric]})


def test_data_not_prepared_is_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="has not been prepared"):
        tabulate.tabulate(tmp_path, block("statistics"), tmp_path / "x")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_latex_compiles(tmp_path):
    spec = block("scores", datasets=["cmid", "r52"], seeds=[1, 2], **METRICS)
    tabulate.tabulate(results(tmp_path, spec, reported="r52"), spec, tmp_path / "table2")
    document = r"""\documentclass{article}
    \usepackage[a4paper,margin=2cm]{geometry}
    \usepackage{adjustbox,array,booktabs,rotating}
    \begin{document}\input{table2.tex}\end{document}"""
    (tmp_path / "paper.tex").write_text(document, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    if "File `" in done.stdout and "not found" in done.stdout:
        pytest.skip("a LaTeX package is not installed")
    assert done.returncode == 0, done.stdout[-2000:]
