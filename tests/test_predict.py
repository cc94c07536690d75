"""A trained run on new rows: the classes it gave its own test rows, whatever the file, and clear refusals."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import toy
from rounding import of_half

from tailprompt import predict
from tailprompt.data import table as data
from tailprompt.errors import BadInput
from tailprompt.plan import agreement
from tailprompt.tasks.classification import CLASSIFICATION

SOFT = {
    "input": "formatted",
    "head": "verbalizer",
    "tuner": "soft_prompt",
    "length": 4,
    "template": "soft",
}


def words(root):
    """A verbalizer of words with one token each, as open decoding needs."""
    file = root / "words.csv"
    file.write_text("label,words\nmusic,song\nsport,match\nlaw,court\n", "utf-8")
    return file


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders by name; the pair's is on texts in two parts."""
    root, paired, asked = (tmp_path_factory.mktemp(name) for name in ("single", "paired", "asked"))
    (asked / "data").mkdir()
    data.write(questions(), list("ABC"), asked / "data/toy.parquet", sources={})
    options = {**SOFT, "form": "mcc"}
    return {
        "prompt": toy.run(root, "prompt", keep=True),
        "eta": toy.run(root, "cls-relu-eta", keep=True),
        "tau": toy.run(root, "cls-relu-tau", keep=True, tau=[1.5]),
        "ldam": toy.run(root, "cls-relu-ldam", keep=True),
        "frozen": toy.run(root, "cls-tanh-focal", tuner="frozen"),
        "head": toy.run(root, "cls-tanh", epochs=1),
        "probed": toy.run(root, "finetune", start=toy.run(root, "linear"), keep=True),
        "soft": toy.run(root, "", **SOFT),
        "open": toy.run(root, "", seed=2, **SOFT, decoding="open", verbalizer=str(words(root))),
        "unified": toy.run(root, "", seed=3, **{**SOFT, "template": "unified"}),
        "prefix": toy.run(root, "", seed=4, tuner="prefix", head="pooler", positions="shifted", mlp=True),
        "lora": toy.run(root, "", seed=5, tuner="lora", head="predictor"),
        "pair": toy.run(paired, "cls-tanh", keep=True, pair=True),
        "options": toy.run(asked, "", **options),
        "open options": toy.run(asked, "", seed=2, **options, decoding="open"),
    }


def questions():
    """The texts as questions with the classes' words as options, of which every other row lacks the last."""
    table = toy.table().assign(pair="what is it")
    known = [*toy.WORDS.values()]
    return table.assign(choices=[known[: 2 + (i % 2 or label == 2)] for i, label in enumerate(table.label)])


@pytest.fixture
def rows(tmp_path):
    """A CSV of the test rows with a column of its own."""
    table = toy.table()
    table = table[table.split == "test"].assign(place=lambda t: t.id.str.upper())[["id", "place", "text"]]
    table.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def test_a_run_from_a_bundle_has_no_weights_to_predict_with(runs, rows, tmp_path):
    point = runs["frozen"].relative_to(runs["frozen"].parents[5])
    brought = shutil.copytree(runs["frozen"], tmp_path / "from_bundles" / point)
    (brought / "weights.safetensors").rename(brought / "weights.json")
    for folder in (tmp_path / point, brought):
        with pytest.raises(BadInput, match="from_bundles.* came in a bundle, in which weights do not travel"):
            run(folder, rows)


def run(folder, file, *, out=None, **columns):
    out = out or predict.beside(file)
    predict.predict_file(folder, file, out, **columns, encoding="utf-8-sig", device="cpu")
    return out


def softmax(values):
    values = np.exp(values - values.max(1, keepdims=True))
    return values / values.sum(1, keepdims=True)


@pytest.mark.parametrize(
    "name", ["prompt", "eta", "tau", "ldam", "frozen", "probed", "soft", "unified", "prefix", "lora"]
)
def test_a_runs_own_test_rows_get_the_predictions_it_stored(runs, rows, name):
    made = pd.read_csv(run(runs[name], rows))
    kept = toy.scores(runs[name]).query("split == 'test'")
    assert made.id.tolist() == kept.id.tolist()
    assert made.prediction.tolist() == [list(toy.WORDS)[label] for label in kept.prediction]
    stored = kept[[0, 1, 2]].to_numpy()
    assert made.probability.to_numpy() == pytest.approx(softmax(stored).max(1), rel=0, abs=of_half(stored))


def test_pairs_are_read_where_the_runs_data_had_them(runs, tmp_path):
    table = toy.table(pair=True).query("split == 'test'").rename(columns={"text": "a", "pair": "b"})
    table.to_parquet(tmp_path / "rows.parquet")
    made = pd.read_csv(run(runs["pair"], tmp_path / "rows.parquet", text="a", pair="b"))
    kept = toy.scores(runs["pair"]).query("split == 'test'")
    assert made.prediction.tolist() == [list(toy.WORDS)[label] for label in kept.prediction]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_options_are_read_where_the_runs_data_had_them_and_the_letter_of_one_is_the_answer(
    runs, tmp_path, suffix
):
    table = questions().query("split == 'test'").drop(columns="label").rename(columns={"choices": "options"})
    predict.WRITERS[suffix](table, tmp_path / f"rows.{suffix}")
    out = run(runs["options"], tmp_path / f"rows.{suffix}", choices=["options"], out=tmp_path / "out.parquet")
    made, kept = pd.read_parquet(out), toy.scores(runs["options"]).query("split == 'test'")
    assert made.prediction.tolist() == [*map("ABC".__getitem__, kept.prediction)]
    stored = kept[[0, 1, 2]].to_numpy()
    assert made.probability.to_numpy() == pytest.approx(softmax(stored).max(1), rel=0, abs=of_half(stored))
    assert [*map(list, made.options)] == table.options.tolist()
    texts = [given["ABC".index(letter)] for given, letter in zip(table.options, made.prediction, strict=True)]
    assert made.prediction_text.tolist() == texts
    few = table.options.map(len).eq(2).to_numpy()
    assert few.any() and made.third[few].isna().all() and made.third[~few].isin([*"ABC"]).all()
    assert (made.third_probability[few] == 0).all()


def test_empty_and_repeated_options_are_taken_as_in_training_and_said(runs, tmp_path, capsys):
    lines = [["a", " \u200b"], ["a b", "c", " a  b"], ["x", "y"]]
    rows = [json.dumps({"text": "song", "pair": "what is it", "choices": each}) for each in lines]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    made = pd.read_csv(run(runs["options"], tmp_path / "a.jsonl"), keep_default_na=False)
    assert len(made) == 3
    says = "rows 1 with an empty option (a.jsonl:1), 1 with an option twice (a.jsonl:2); each option is taken"
    assert says in capsys.readouterr().err


def test_options_in_columns_of_their_own_are_options_in_a_list(runs, tmp_path):
    table = questions().query("split == 'test' and label == 2")
    table.to_json(tmp_path / "lists.jsonl", orient="records", lines=True)
    table.assign(**dict(zip("xyz", zip(*table.choices, strict=True), strict=True))).drop(
        columns="choices"
    ).to_csv(tmp_path / "columns.csv")
    lists = pd.read_csv(run(runs["options"], tmp_path / "lists.jsonl"))
    columns = pd.read_csv(run(runs["options"], tmp_path / "columns.csv", choices=[*"xyz"]))
    assert lists.probability.equals(columns.probability) and lists.second.equals(columns.second)


def test_open_decoding_predicts_among_the_options_of_a_row(runs, tmp_path):
    table = questions().query("split == 'test'")
    table.to_parquet(tmp_path / "rows.parquet")
    made = pd.read_csv(run(runs["open options"], tmp_path / "rows.parquet"))
    kept = toy.scores(runs["open options"]).query("split == 'test'")[[0, 1, 2]].to_numpy()
    best = [row[: len(given)].argmax() for row, given in zip(kept, table.choices, strict=True)]
    assert made.prediction.tolist() == [*map("ABC".__getitem__, best)]


@pytest.mark.parametrize(
    "row, given, words",
    [
        ({"choices": ["a"]}, None, ["1 row does not have 2 to 3 choices", "a.jsonl:1"]),
        ({"choices": [*"abcd"]}, None, ["1 row does not have 2 to 3 choices", "a.jsonl:1"]),
        ({"choices": "a, b"}, None, ["no list of texts in the column 'choices'", "several columns"]),
        ({"options": [*"ab"]}, None, ["no column 'choices'", "options", "the one of lists,", "--choices"]),
        ({"x": "a", "y": "b"}, ["x", "z"], ["no column 'z'", "x, y", "--choices"]),
    ],
)
def test_bad_options_are_one_sentence(runs, tmp_path, row, given, words):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "song", "pair": "what is it", **row}) + "\n")
    refused(words, runs["options"], tmp_path / "a.jsonl", choices=given)


def test_columns_of_the_file_stay_and_three_classes_follow(runs, rows):
    made, given = pd.read_csv(run(runs["prompt"], rows)), pd.read_csv(rows)
    assert made.columns.tolist() == [*given.columns, *CLASSIFICATION.shown_as]
    pd.testing.assert_frame_equal(made[given.columns.tolist()], given)
    best = made[["probability", "second_probability", "third_probability"]]
    assert (best.sum(axis=1) - 1).abs().max() < 1e-5 and (best.diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_is_read_and_written(runs, rows, tmp_path, suffix):
    expected = pd.read_csv(run(runs["prompt"], rows))
    given = pd.read_csv(rows)
    predict.WRITERS[suffix](given, tmp_path / f"in.{suffix}")
    out = run(runs["prompt"], tmp_path / f"in.{suffix}", out=tmp_path / f"out.{suffix}")
    read = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "parquet": pd.read_parquet,
    }
    pd.testing.assert_frame_equal(read[suffix](out), expected, check_dtype=False)


def test_an_earlier_answer_is_replaced_and_that_is_said(runs, rows, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["predict", str(runs["prompt"]), str(rows), "--device", "cpu"])
    said = []
    for _ in range(2):
        predict.main()
        said.append(capsys.readouterr())
    assert [each.out for each in said] == [f"{predict.beside(rows)}\n"] * 2
    assert ["in place of the file" in each.err for each in said] == [False, True]


@pytest.mark.parametrize("name", ["predictions.parquet", "features.parquet", "curve.csv", "run.json"])
def test_files_of_a_run_are_never_written_over(runs, rows, name):
    for folder in (runs["prompt"], runs["tau"]):
        before = (folder / name).read_bytes()
        refused([name], runs["prompt"], rows, out=folder / name)
        assert (folder / name).read_bytes() == before


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_only_an_earlier_answer_is_replaced(runs, rows, tmp_path, suffix):
    out, table = tmp_path / f"out.{suffix}", pd.read_csv(rows)
    for _ in range(2):
        run(runs["prompt"], rows, out=out)
    predict.WRITERS[suffix](table.assign(prediction="law"), out)
    said = ["was not written by tailprompt predict (it has no columns prediction and probability); name"]
    refused(said, runs["prompt"], rows, out=out)
    out.write_bytes(b"\xff\xfe of another kind")
    refused(said, runs["prompt"], rows, out=out)
    answered = run(runs["prompt"], rows, out=tmp_path / "again.csv")
    for file in (rows, answered):  # whose columns prediction and probability may be the user's own
        refused(["itself; name another file"], runs["prompt"], file, out=file)


def test_rows_in_chunks_are_rows_in_one(runs, rows, tmp_path, monkeypatch):
    whole = pd.read_csv(run(runs["prompt"], rows))
    monkeypatch.setattr(predict, "CHUNK", 5)
    parts = pd.read_csv(run(runs["prompt"], rows, out=tmp_path / "parts.csv"))
    assert parts.prediction.equals(whole.prediction)
    assert (parts.probability - whole.probability).abs().max() < 1e-4


def test_outside_the_projects_folder_the_folder_to_go_to_is_said(runs, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "which is not there from", "run tailprompt predict in the project's folder"
    refused([f"{runs['prompt']} needs its backbone workflow/", *said], runs["prompt"], rows)


def test_a_run_moved_elsewhere_predicts_without_data_or_config(runs, rows, tmp_path):
    moved = shutil.copytree(runs["prompt"], tmp_path / "elsewhere")
    for file in moved.iterdir():
        if file.name not in ("run.json", "weights.safetensors"):
            file.unlink()
    assert len(pd.read_csv(run(moved, rows))) == 17


def refused(words, *arguments, **options):
    with pytest.raises(BadInput) as error:
        run(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message


def test_what_is_no_finished_run_is_refused(runs, rows, tmp_path):
    refused(["is not the folder of a finished run", "results/<scale>/runs/"], tmp_path, rows)
    (tmp_path / "run.json").write_text(json.dumps({"settings": {}}))
    refused(["is not the folder of a finished run", "lacks backbone, classes, data"], tmp_path, rows)
    (tmp_path / "run.json").write_text("[]")
    refused(["is not the folder of a finished run", "must be a JSON object, not a list"], tmp_path, rows)
    about = json.loads((runs["prompt"] / "run.json").read_text("utf-8"))
    (tmp_path / "run.json").write_text(json.dumps({**about, "settings": {"head": "linear"}}))
    refused(["is not the folder of a finished run", "settings lack input"], tmp_path, rows)
    settings = {key: value for key, value in about["settings"].items() if key != "tuner"}
    (tmp_path / "run.json").write_text(json.dumps({**about, "settings": settings}))
    refused(["is not the folder of a finished run", "settings lack tuner"], tmp_path, rows)
    (tmp_path / "run.json").write_text(json.dumps({**about, "words": {}}))
    refused(["is not the folder of a finished run", "its words lacks law, music, sport"], tmp_path, rows)
    moved = shutil.copytree(runs["prompt"], tmp_path / "cut")
    (moved / "weights.safetensors").write_bytes(b"cut")
    refused(["weights.safetensors is not what its run wrote"], moved, rows)


def test_scores_that_are_not_finite_are_refused_and_nothing_is_written(runs, rows, monkeypatch, tmp_path):
    whole = predict.predict

    def broken(*told, **more):
        logits = whole(*told, **more)
        logits[4, 1] = float("nan")
        return logits

    monkeypatch.setattr(predict, "predict", broken)
    with pytest.raises(BadInput, match="logits of .* not finite"):
        predict.predict_file(runs["prompt"], rows, tmp_path / "out.csv", encoding="utf-8", device="cpu")
    assert not (tmp_path / "out.csv").exists()


def test_a_run_that_kept_its_head_only_is_refused(runs, rows):
    said = "set keep: true in the scale's file, methods: {cls-tanh: {keep: true}}, and run it again"
    refused(["holds the head without its body", said], runs["head"], rows)


def test_a_head_that_began_from_another_runs_body_is_refused_without_it(runs, rows, tmp_path):
    begin = {"tuner": "frozen", "start": runs["prompt"], "epochs": 1}
    head = toy.run(tmp_path, "prompt-focal", **begin)
    refused(["holds the head without its body"], head, rows)
    whole = toy.run(tmp_path, "prompt-focal", keep=True, **begin)
    kept = toy.scores(whole).query("split == 'test'")
    made = pd.read_csv(run(whole, rows))
    assert made.prediction.tolist() == [list(toy.WORDS)[label] for label in kept.prediction]


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("a.csv", "id,words\n1,song\n", ["a.csv has no column 'text'", "id, words", "--text"]),
        ("a.csv", "id,text\n1,\n2, \n", ["empty text", "a.csv:3"]),
        ("a.csv", "", ["a.csv is empty"]),
        ("a.csv", "id,text\n", ["a.csv has no rows"]),
        (
            "a.jsonl",
            '{"text": ["song"]}\n',
            ["holds list in the column 'text' (a.jsonl:1), where text", "is wanted"],
        ),
        ("a.csv", "text,prediction\nsong,1\n", ["has a column prediction already"]),
        ("a.xlsx", "x", ["save its sheet as CSV", "csv"]),
    ],
)
def test_a_bad_file_is_one_sentence(runs, tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    refused(words, runs["prompt"], tmp_path / name)


def test_another_encoding_is_stated_with_an_option(runs, tmp_path):
    (tmp_path / "a.csv").write_bytes("text\ncafé\n".encode("latin-1"))
    refused(
        ["a.csv", "is not UTF-8", "state its encoding with --encoding"], runs["prompt"], tmp_path / "a.csv"
    )


def test_half_a_character_in_any_column_is_refused_before_it_could_not_be_written(runs, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "song", "note": "\\ud800"}\n')
    refused(["a.jsonl: line 1", "surrogates not allowed"], runs["prompt"], tmp_path / "a.jsonl")


def test_a_place_that_cannot_be_written_shows_before_the_model_is_loaded(runs, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "apply", None)
    (tmp_path / "file").touch()
    out = tmp_path / "file/out.csv"
    refused(["file/out.csv cannot be written"], runs["prompt"], rows, out=out)
    (tmp_path / "out.csv").mkdir()
    refused(["out.csv is a folder"], runs["prompt"], rows, out=tmp_path / "out.csv")


def test_bad_places_are_one_sentence_before_anything_is_read(runs, rows, tmp_path):
    refused(["there is no file"], runs["prompt"], tmp_path / "none.csv")
    refused(["unknown file format", "'xlsx'", "jsonl"], runs["prompt"], rows, out=tmp_path / "a.xlsx")
    refused(["single texts; leave out --pair"], runs["prompt"], rows, pair="id")
    refused(["has no column 'pair'", "--pair"], runs["pair"], rows)
    refused(["rows of text and pair; leave out --choices"], runs["pair"], rows, choices=["id"])


def test_open_decoding_may_answer_with_no_class_and_predicts_among_the_classes(runs, rows):
    made = pd.read_csv(run(runs["open"], rows))
    kept = toy.scores(runs["open"]).query("split == 'test'")
    assert kept.prediction.max() == 3 and kept.columns[-1] == 3  # a random backbone says any word
    assert made.prediction.tolist() == [list(toy.WORDS)[i] for i in kept[[0, 1, 2]].to_numpy().argmax(1)]


OWN = {
    "prompt": ({"text": "docstring"}, {"text": "docstring"}),
    "pair": ({"text": "question", "pair": "passage"}, {"text": "question", "pair": "passage"}),
    "options": ({"text": "q", "pair": "of", "choices": ["one", "two", "three"]}, {"text": "q", "pair": "of"}),
}


@pytest.mark.parametrize("name", OWN)
def test_the_columns_of_the_runs_own_data_are_known(runs, tmp_path, name):
    columns, renamed = OWN[name]
    paired = name == "pair"
    table = questions() if name == "options" else toy.table(pair=True) if paired else toy.table()
    table = table[table.split == "test"].drop(columns=["id", "split", "label"])
    if name == "options":
        table = table[table.choices.map(len) == len(columns["choices"])]
    table.to_parquet(tmp_path / "plain.parquet")
    expected = pd.read_csv(run(runs[name], tmp_path / "plain.parquet")).prediction
    theirs = table.rename(columns=renamed)
    if name == "options":
        lists = theirs.pop("choices")
        theirs = theirs.assign(**{key: lists.str[i] for i, key in enumerate(columns["choices"])})
    theirs.to_parquet(tmp_path / "own.parquet")
    report = agreement.data_of(runs[name]).with_suffix(".json")
    before = report.read_text() if report.is_file() else None
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps({"row": {"columns": columns}}))
    try:
        made = pd.read_csv(run(runs[name], tmp_path / "own.parquet")).prediction
        again = pd.read_csv(run(runs[name], tmp_path / "plain.parquet")).prediction
    finally:
        report.unlink() if before is None else report.write_text(before)
    assert made.tolist() == again.tolist() == expected.tolist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_column_with_the_name_of_places_is_refused_and_does_not_vanish(runs, tmp_path, ending):
    table = pd.DataFrame({"file:line": ["a", "b"], "text": ["the court", "a song"]})
    file = tmp_path / f"rows.{ending}"
    if ending == "jsonl":
        table.to_json(file, orient="records", lines=True)
    elif ending == "parquet":
        table.to_parquet(file)
    else:
        table.to_csv(file, index=False, sep="," if ending == "csv" else "\t")
    refused(["has a column 'file:line'", "rename the column"], runs["prompt"], file)
    refused(["rename the column"], runs["prompt"], file, text="file:line")


FORMS = {
    "quotes": ({"quotes": False}, 'text,n\n"the court,1\na "song",2\n', ['"the court', 'a "song"']),
    "separator": ({"separator": "|"}, "text|n\nthe court|1\na song|2\n", ["the court", "a song"]),
    "escape": ({"escape": "\\"}, 'text,n\n"the \\"court",1\na song,2\n', ['the "court', "a song"]),
    "header": ({"header": ["text", "n"]}, "the court,1\na song,2\n", ["the court", "a song"]),
}


@pytest.mark.parametrize("key", FORMS)
def test_the_form_of_a_file_can_be_stated_as_in_a_row_of_data(runs, tmp_path, key, monkeypatch, capsys):
    form, text, texts = FORMS[key]
    file, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text(text)
    (values,) = form.values()
    words = values if isinstance(values, list) else [str(values).lower()]
    monkeypatch.setattr(
        "sys.argv", ["", str(runs["prompt"]), str(file), "--out", str(out), f"--{key}", *words]
    )
    predict.main()
    table = pd.read_csv(out)
    assert table.text.tolist() == texts and table.prediction.notna().all()


def test_quotes_are_read_as_in_the_runs_own_data_unless_stated(runs, tmp_path, monkeypatch):
    file = tmp_path / "rows.csv"
    file.write_text('text\n"the court"\n')
    monkeypatch.setattr(predict, "own_row", lambda _: {"quotes": False})
    for form, text in ((None, '"the court"'), ({"quotes": True}, "the court")):
        out = tmp_path / "out.jsonl"
        predict.predict_file(runs["prompt"], file, out, form=form, encoding="utf-8", device="cpu")
        assert pd.read_json(out, lines=True).text.tolist() == [text]


def test_the_help_says_that_probabilities_are_not_calibrated(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["", "--help"])
    with pytest.raises(SystemExit):
        predict.main()
    assert "not calibrated" in " ".join(capsys.readouterr().out.split())
