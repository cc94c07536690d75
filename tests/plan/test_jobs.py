"""The inputs and parameters of each kind of job."""

from dataclasses import replace
from pathlib import Path

import pytest
from scales import scale

from tailprompt.data import places
from tailprompt.errors import BadInput
from tailprompt.files import write_json
from tailprompt.plan import blocks, digests, made, rows, standing, starts
from tailprompt.plan.jobs import data, recipes, runs, shown
from tailprompt.plan.layers import merge
from tailprompt.plan.places import begins_at
from tailprompt.plan.points import Point

DIGITS = "digits@imbalance=20"


def first(config, method):
    """The first run of a method."""
    return next(point for point in blocks.all_points(config) if point.method == method)


def test_cuts_of_images_share_what_is_decoded_and_texts_have_none():
    demo = scale("demo")
    assert data.listing(demo, DIGITS) == data.listing(demo, "digits") == "results/demo/images/digits.parquet"
    assert data.images(demo, DIGITS) == "results/demo/images/digits.npy"
    assert data.images(demo, "debian-sections") == []
    assert data.raw_folder(demo, DIGITS) == "results/raw/digits"


def test_a_data_sets_files_are_those_with_a_path_and_its_words():
    demo = scale("demo")
    assert data.user_files(demo, "debian-sections") == ["workflow/resources/data/debian_sections.parquet"]
    assert data.verbalizer(demo, "debian-sections") == "config/verbalizers/debian-sections.csv"
    assert data.verbalizer(demo, "digits") == []


def test_what_decoding_is_told_does_not_change_with_a_title():
    demo = scale("demo")
    changed = merge(demo, {"datasets": {"digits": {"title": "Other"}}})
    assert data.row_to_decode(demo, DIGITS) == data.row_to_decode(changed, DIGITS)
    assert rows.dataset_row(demo, DIGITS) != rows.dataset_row(changed, DIGITS)


def test_a_corpus_that_a_scale_leaves_open_is_named_in_words():
    assert recipes.corpus_named({"corpora": {"text": "a.txt"}}, "text") == "a.txt"
    assert "corpora.text (this scale leaves it open" in recipes.corpus_named({"corpora": None}, "text")


def test_a_recipe_goes_on_from_what_ships_or_from_another():
    paper = scale("paper")
    shipped = "workflow/resources/backbones/t5-mini"
    assert recipes.to_pretrain(paper, "t5-mini-lm") == {
        "packed": "results/paper/pretraining/t5-mini-lm/packed",
        "tokenizer": f"{shipped}/tokenizer.json",
        "start": f"{shipped}/model.safetensors",
    }
    made = merge(paper, {"backbones": {"t5-mini": {"recipe": "t5-mini", "path": None}}})
    assert recipes.to_pretrain(made, "t5-mini-lm") == {
        "packed": "results/paper/pretraining/t5-mini/packed",
        "tokenizer": "results/paper/pretraining/t5-mini/vocabulary/tokenizer.json",
        "start": "results/paper/pretraining/t5-mini/model.safetensors",
    }
    assert recipes.tokenizer(paper, "vit-mini") == []


def test_a_recipe_may_go_on_from_one_that_went_on_and_uses_the_data_of_the_first():
    more = {"more": {**scale("paper")["pretraining"]["t5-small-wiki-lm"], "start": "t5-small-wiki-lm"}}
    made = merge(scale("paper"), {"pretraining": more})
    first = "results/paper/pretraining/t5-small-wiki"
    assert recipes.to_pretrain(made, "more") == {
        "packed": f"{first}/packed",
        "tokenizer": f"{first}/vocabulary/tokenizer.json",
        "start": f"{first}-lm/model.safetensors.index.json",
    }


def test_a_text_of_articles_is_made_and_asked_for_by_its_commit(tmp_path):
    mini = merge(scale("mini"), {"corpora": {"text": "a.txt", "wiki": "clone"}})
    (tmp_path / "a.txt").write_text("one")
    made = "results/mini/corpora/wiki.txt.gz"
    assert recipes.to_learn(mini, "t5-small-wiki") == {"corpus": [made, "a.txt"]}
    assert recipes.to_pack(mini, "t5-mini")["data"] == ["a.txt"]
    assert recipes.to_collect(mini, "wiki") == {"repository": "clone"}
    for kind in ("vocabulary", "packed"):
        noted(mini, kind, "t5-small-wiki", tmp_path)
    elsewhere = merge(mini, {"corpora": {"wiki": "other"}})
    later = merge(mini, {"articles": {"wiki": {"commit": "0" * 40}}})
    for kind in ("vocabulary", "packed"):
        assert standing.stands(elsewhere, kind, "t5-small-wiki", tmp_path)
        assert not standing.stands(later, kind, "t5-small-wiki", tmp_path)
    (tmp_path / "a.txt").write_text("two")
    assert not standing.stands(mini, "packed", "t5-small-wiki", tmp_path)
    (tmp_path / "a.txt").unlink()
    assert standing.stands(mini, "packed", "t5-small-wiki", tmp_path)


def test_backbones_are_made_whose_corpora_a_scale_names():
    mini = scale("mini")
    assert recipes.to_make(mini) == list(mini["pretraining"])
    text = merge(mini, {"corpora": {"text": "a.txt"}})
    assert recipes.to_make(text) == ["bert-mini", "t5-mini", "t5-mini-lm"]
    assert "t5-small-wiki" in recipes.to_make(merge(text, {"corpora": {"wiki": "clone"}}))


def noted(config, kind, name, root):
    """What a job makes, and the note that it leaves."""
    for file in standing.outputs(config, kind, name, root):
        write_json(file, {})
    write_json(root / standing.note(config, kind, name), standing.wanted(config, kind, name, root))


def test_a_checkpoint_of_a_chain_stands_while_those_before_it_are_asked_the_same(tmp_path):
    made = merge(scale("paper"), {"backbones": {"t5-mini": {"recipe": "t5-mini", "path": None}}})
    assert not standing.stands(made, "checkpoint", "t5-mini-lm", tmp_path)
    noted(made, "checkpoint", "t5-mini-lm", tmp_path)
    assert standing.stands(made, "checkpoint", "t5-mini-lm", tmp_path)
    for recipe in ("t5-mini", "t5-mini-lm"):
        other = merge(made, {"pretraining": {recipe: {"lr": 1}}})
        assert not standing.stands(other, "checkpoint", "t5-mini-lm", tmp_path)
    carded = merge(made, {"pretraining": {"t5-mini": {"card": {"seen": "another"}}}})
    assert standing.stands(carded, "checkpoint", "t5-mini-lm", tmp_path)


def test_a_corpus_that_is_no_longer_there_is_taken_to_be_as_it_was(tmp_path):
    config = merge(scale("demo"), {"corpora": {"text": "corpus.txt"}})
    (tmp_path / "corpus.txt").write_text("one")
    noted(config, "vocabulary", "bert-mini", tmp_path)
    (tmp_path / "corpus.txt").write_text("two")
    assert not standing.stands(config, "vocabulary", "bert-mini", tmp_path)
    (tmp_path / "corpus.txt").unlink()
    assert standing.stands(config, "vocabulary", "bert-mini", tmp_path)


@pytest.mark.parametrize("own", ["null", "gone.txt"])
def test_a_corpus_that_never_was_here_is_as_a_bundle_tells(tmp_path, own):
    config = merge(scale("demo"), {"corpora": {"text": "corpus.txt"}})
    (tmp_path / "corpus.txt").write_text("one")
    asked = made.read_back(made.packed(config, "bert-mini", tmp_path))
    here = merge(config, {"corpora": {"text": None if own == "null" else own}})
    assert made.packed(here, "bert-mini", tmp_path) != asked
    for kind in ("packed", "vocabulary"):
        note = tmp_path / f"results/demo/from_bundles/made/{kind}/bert-mini.json"
        write_json(note, {"corpus": asked["corpus"]})
    assert made.packed(here, "bert-mini", tmp_path) == asked
    (tmp_path / "gone.txt").write_text("another")
    other = merge(here, {"corpora": {"text": "gone.txt"}})
    assert made.packed(other, "bert-mini", tmp_path) != asked


@pytest.mark.parametrize("place", ["made", "from_bundles/made"])
def test_a_corpus_that_was_renamed_is_what_it_was_by_its_content(tmp_path, place):
    config = merge(scale("demo"), {"corpora": {"text": "one.txt", "more": "two.txt"}})
    config = merge(config, {"pretraining": {"bert-mini": {"corpus": ["text", "more"]}}})
    for name in ("one", "two", "other"):
        (tmp_path / f"{name}.txt").write_text(name.replace("other", "one"))
    noted = made.read_back(made.packed(config, "bert-mini", tmp_path))
    for kind in ("packed", "vocabulary"):
        write_json(tmp_path / f"results/demo/{place}/{kind}/bert-mini.json", {"corpus": noted["corpus"]})
    renamed = merge(config, {"corpora": {"text": "other.txt"}})
    assert made.packed(renamed, "bert-mini", tmp_path) == noted
    digests.check_corpora(noted["corpus"], [tmp_path / "other.txt", tmp_path / "two.txt"])
    swapped = merge(config, {"corpora": {"text": "two.txt", "more": "one.txt"}})
    assert made.packed(swapped, "bert-mini", tmp_path) != noted
    (tmp_path / "other.txt").write_text("another")
    assert made.packed(renamed, "bert-mini", tmp_path) != noted
    with pytest.raises(BadInput, match="changed after this job was planned: .*other.txt"):
        digests.check_corpora(noted["corpus"], [tmp_path / "other.txt", tmp_path / "two.txt"])


def two_corpora(folder):
    """A scale whose recipe takes two corpora, which are in a folder."""
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(name)
    config = merge(scale("demo"), {"corpora": {"text": "one.txt", "more": "two.txt"}})
    return merge(config, {"pretraining": {"bert-mini": {"corpus": ["text", "more"]}}})


def test_corpora_in_another_order_are_packed_anew_and_again_when_that_is_taken_back(tmp_path):
    config = two_corpora(tmp_path)
    others = (
        {"corpora": {"text": "two.txt", "more": "one.txt"}},
        {"pretraining": {"bert-mini": {"corpus": ["more", "text"]}}},
    )
    usual = made.packed(config, "bert-mini", tmp_path)
    for change in others:
        swapped = merge(config, change)
        asked = made.packed(swapped, "bert-mini", tmp_path)
        assert asked["corpus"] != usual["corpus"] and asked["tokenizer"] != usual["tokenizer"]
        digests.check_corpora(asked["corpus"], [tmp_path / "two.txt", tmp_path / "one.txt"])
        for kind in ("packed", "vocabulary"):
            write_json(tmp_path / f"results/demo/made/{kind}/bert-mini.json", {"corpus": asked["corpus"]})
        assert made.packed(swapped, "bert-mini", tmp_path) == asked
        assert made.packed(config, "bert-mini", tmp_path) == usual
    gone = merge(swapped, {"corpora": {"text": None, "more": None}})
    assert made.packed(gone, "bert-mini", tmp_path) == asked


def test_corpora_of_which_one_took_the_name_of_another_are_those_that_were_asked(tmp_path):
    config = two_corpora(tmp_path)
    asked = made.packed(config, "bert-mini", tmp_path)["corpus"]
    (tmp_path / "two.txt").rename(tmp_path / "three.txt")
    (tmp_path / "one.txt").rename(tmp_path / "two.txt")
    digests.check_corpora(asked, [tmp_path / "two.txt", tmp_path / "three.txt"])
    with pytest.raises(BadInput, match=r"changed after .*: .*/two\.txt;"):
        digests.check_corpora(asked, [tmp_path / "three.txt", tmp_path / "two.txt"])


def test_a_corpus_that_was_renamed_is_that_of_a_bundle_though_another_was_packed_here(tmp_path):
    config = two_corpora(tmp_path)
    asked = made.packed(config, "bert-mini", tmp_path)
    for kind in ("packed", "vocabulary"):
        for place, text in (("from_bundles/made", "one.txt"), ("made", "two.txt")):
            note = made.packed(merge(config, {"corpora": {"text": text}}), "bert-mini", tmp_path)["corpus"]
            write_json(tmp_path / f"results/demo/{place}/{kind}/bert-mini.json", {"corpus": note})
    (tmp_path / "one.txt").rename(tmp_path / "other.txt")
    renamed = merge(config, {"corpora": {"text": "other.txt"}})
    assert made.packed(renamed, "bert-mini", tmp_path) == asked


def test_a_corpus_of_which_a_part_is_gone_is_as_it_was_if_the_other_part_is(tmp_path):
    config = merge(scale("demo"), {"corpora": {"text": "one.txt", "more": "two.txt"}})
    config = merge(config, {"pretraining": {"bert-mini": {"corpus": ["text", "more"]}}})
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(name)
    noted(config, "vocabulary", "bert-mini", tmp_path)
    (tmp_path / "two.txt").unlink()
    assert standing.stands(config, "vocabulary", "bert-mini", tmp_path)
    (tmp_path / "one.txt").write_text("another")
    assert not standing.stands(config, "vocabulary", "bert-mini", tmp_path)


def test_files_below_data_dir_are_a_data_sets_own_plain_or_xz(tmp_path):
    config = merge(scale("paper"), {"data_dir": "own"})
    name = next(key for key, row in config["datasets"].items() if "url" in str(row.get("files")))
    row = rows.dataset_row(config, name)
    entry = next(iter(row["files"].values()))
    place = tmp_path / places.places(row, entry, "own")[1]
    assert data.user_files(config, name, tmp_path) == []
    place.parent.mkdir(parents=True)
    place.touch()
    assert data.user_files(config, name, tmp_path) == [str(place.relative_to(tmp_path))]
    assert data.user_files({**config, "data_dir": None}, name, tmp_path) == []


def test_a_recipe_is_told_the_keys_it_reads():
    demo = scale("demo")
    assert recipes.part(demo, "vit-mini", keys=("pixels", "vocabulary")).keys() == {"pixels"}
    assert "card" not in recipes.part(demo, "vit-mini") and recipes.card_texts(demo, "vit-mini")


def test_a_backbone_takes_the_files_of_its_folder_or_what_its_recipe_makes():
    mini = scale("mini")
    assert "workflow/resources/backbones/bert-mini/model.safetensors" in recipes.backbone_files(
        mini, "bert-mini"
    )
    made = next(name for name, row in mini["backbones"].items() if "recipe" in row)
    folder = rows.made_in(mini, mini["backbones"][made]["recipe"])
    assert recipes.backbone_files(mini, made) == [f"{folder}/model.safetensors"]
    with pytest.raises(BadInput, match="unknown backbone 'nope'"):
        recipes.backbone_files(mini, "nope")


def test_a_run_takes_the_weights_of_its_start():
    demo = scale("demo")
    second = first(demo, "lpt")
    taken = runs.to_train(demo, second)
    assert taken["images"] == "results/demo/images/digits.npy"
    assert taken["start"] == [f"results/demo/runs/{first(demo, 'lpt-phase1').path}/weights.safetensors"]
    adapted = merge(demo, {"methods": {"lpt": {"start": {"folder": "there"}}}})
    assert runs.start_weights(adapted, second) == ["there/adapter_model.safetensors"]
    run, folder = {"run": starts.start_of(demo, second).path}, {"folder": "there"}  # as they are asked
    began = [begins_at(Path("results/demo"), start) for start in (run, folder, {})]
    assert began == [Path(taken["start"][0]).parent, Path("there"), None]


@pytest.mark.parametrize(
    "wanted, device, cards, taken",
    [
        (1, "cpu", 4, 0),
        (1, "auto", 0, 0),
        (1, "auto", None, 1),
        (1, "cuda", 4, 1),
        (4, "cuda", 2, 6),
        (2, "cuda", 4, 6),
        (4, "cuda", None, 4),
    ],
)
def test_a_job_takes_one_slot_or_whole_cards(wanted, device, cards, taken):
    assert runs.slots_taken(wanted, device=device, slots=3, cards=cards) == taken


def test_a_backbone_that_is_laid_over_cards_has_room_in_main_memory():
    row = {"family": "t5", "megabytes": 5000}
    config = {"backbones": {"plain": row, "laid": row | {"device_map": "auto"}}}
    assert [runs.host_mb(config, f"p/{name}/d/m/1") for name in config["backbones"]] == [12000, 17000]


def test_a_table_takes_its_runs_predictions_its_data_and_its_kinds_code():
    demo = scale("demo")
    everything = blocks.shown(demo)
    block = shown.block(everything, "tables", "glee", "table3", everything)
    assert shown.predictions(block, file=lambda point: point.path) == [
        run.path for run in blocks.points(block)
    ]
    assert shown.reports(block, file=str.upper) == [row["dataset"].upper() for row in block["datasets"]]
    assert shown.reported(block) == "config/reported/glee.csv"
    with pytest.raises(BadInput, match="make names no table 'nope' of glee; it names .*table3"):
        shown.block(everything, "tables", "glee", "nope", everything)
    with pytest.raises(BadInput, match="train: false, and none of the runs of table 'table3' of"):
        shown.block({}, "tables", "glee", "table3", everything)


def test_a_start_is_idle_if_all_that_begins_from_it_stands_alone_or_is_idle_and_no_table_takes_it():
    first, second, third, other = (Point("p", "b", "d", method, 1) for method in "abcd")
    after, alone = {first: [second], second: [third]}, {third}.__contains__
    assert starts.idle(first, {third}, after, alone)
    assert not starts.idle(first, {first, third}, after, alone)
    assert not starts.idle(first, {second, third}, after, alone)
    assert not starts.idle(first, {third, other}, after | {first: [second, other]}, alone)
    assert not starts.idle(third, set(), after, alone), "nothing begins from it"


@pytest.mark.parametrize("name", ["demo", "mini", "paper"])
def test_the_code_of_every_table_and_figure_is_there(name):
    for (what, *_), block in blocks.shown(scale(name)).items():
        files = shown.code(block, stage={"tables": "tabulate", "figures": "draw"}[what])
        kinds = {Path(file).stem for file in files if f"report/{what}/" in file}
        assert block["kind"] in kinds


def test_every_table_is_made_in_each_form():
    everything = {("tables", "glee", "a"): {"kind": "scores"}, ("figures", "glee", "b"): {"kind": "lda"}}
    assert shown.targets(everything, "demo", "tables", "md", "csv") == [
        "results/demo/tables/glee/a.md",
        "results/demo/tables/glee/a.csv",
    ]


def test_a_data_set_is_told_the_classes_that_tables_and_figures_name():
    demo = scale("demo")
    name = "debian-sections@train=1000,dev=300,test=1000"
    drawn = data.row_to_prepare(demo, name, shown=blocks.shown(demo))
    classes = demo["papers"]["glee"]["figures"]["figure4"]["classes"]
    assert drawn["asked"] == sorted(classes) and drawn["cut"] == {"train": 1000, "dev": 300, "test": 1000}
    scored = {"papers": {"glee": {"tables": {"table2": {"metrics": ["f1/class:java"]}}}}}
    told = data.row_to_prepare(demo, name, shown=blocks.shown(merge(demo, scored)))
    assert told == {**drawn, "asked": sorted([*classes, "java"])}
    bare = merge(demo, {"make": {"glee": {"figures": []}}})
    assert "asked" not in data.row_to_prepare(bare, name, shown=blocks.shown(bare))


def test_what_a_model_annotates_is_prepared_from_what_it_wrote():
    paper = merge(scale("paper"), {"corpora": {"text": "a.txt"}})
    stars, lexicon = "prompts-single-stars", "prompts-single-zh"
    assert data.prepared_row(paper, stars)["path"] == f"results/paper/annotated/{stars}.parquet"
    assert data.user_files(paper, stars) == [f"results/paper/annotated/{stars}.parquet"]
    assert data.row_to_annotate(paper, stars)["path"] == data.corpus(paper, stars) == "a.txt"
    assert data.user_files(paper, lexicon) == ["a.txt", "config/lexicons/zh.csv"]


def test_what_annotating_is_told_does_not_change_with_a_title_or_a_length():
    paper = scale("paper")
    changed = merge(paper, {"datasets": {"prompts-single-stars": {"title": "Other", "max_length": 9}}})
    told = [data.row_to_annotate(one, "prompts-single-stars") for one in (paper, changed)]
    assert told[0] == told[1] and {"model", "examples", "name"} <= told[0].keys()


def test_a_data_set_without_a_corpus_has_none_and_one_that_a_scale_leaves_open_names_it():
    assert data.corpus(scale("demo"), "debian-sections") == "workflow/resources/data/debian_sections.parquet"
    assert data.corpus(scale("demo"), "digits") == []
    open_so = merge(scale("paper"), {"corpora": {"text": None}})
    assert "corpora.text (this scale leaves it open" in data.corpus(open_so, "prompts-single-stars")


def test_printed_numbers_go_to_a_figure_that_draws_them_and_to_no_other():
    assert shown.drawn_from({"kind": "accuracy_by_parameters", "paper": "lpt"}) == "config/reported/lpt.csv"
    assert shown.drawn_from({"kind": "lda", "paper": "lpt"}) == []
    claims = {"kind": "claims", "scale": "mini", "paper": "lpt", "table": "claims"}
    assert shown.drawn_from(claims) == "results/mini/tables/lpt/claims.csv"
    assert shown.reported({"kind": "scores", "paper": "mine"}) == []


def test_a_test_set_of_tags_is_prepared_after_the_report_of_the_runs_that_it_tests():
    paper = scale("paper")
    assert data.learned(paper, "conll05-brown") == "results/paper/data/conll05.json"
    assert not data.learned(paper, "conll05") and not data.learned(paper, "imagenet-a")


def test_brown_tests_the_runs_of_the_wall_street_journal_and_trains_none():
    paper = scale("paper")
    brown = [point for point in blocks.all_points(paper) if point.dataset == "conll05-brown"]
    assert brown and all(starts.start_of(paper, each) == replace(each, dataset="conll05") for each in brown)


@pytest.mark.parametrize("name", ["mini", "demo"])
def test_the_first_page_is_told_each_run_once_and_where_claims_are(name):
    config = scale(name)
    everything = blocks.shown(config)
    told = shown.overview(config, everything, everything)
    points = {point.path for block in everything.values() for point in blocks.points(block)}
    assert sorted(told["runs"]) == sorted(points) and told["planned"] == len(points)
    assert told["claims"][0]["table"] == "tables/glee/claims.csv"
    assert all(
        one["figure"] == one["table"].replace("tables", "figures")[:-3] + "png" for one in told["claims"]
    )


def test_the_first_page_counts_what_is_planned_and_not_here():
    config = scale("demo")
    whole = blocks.shown(config)
    lacks = {point.path for point in blocks.points(whole["tables", "glee", "table2"])[:2]}
    part = {name: {**block, "lacks": sorted(lacks)} for name, block in whole.items()}
    told = shown.overview(config, part, whole)
    assert not lacks & {*told["runs"]} and told["planned"] == len(told["runs"]) + 2
