"""What people try first: fitted heads reach the numbers of scikit-learn, and `predict` repeats them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
import toy
import toy_images
from conftest import ROW
from rounding import of_half
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline, make_union

from tailprompt import predict
from tailprompt.components.resolve import composed, run_of
from tailprompt.errors import BadInput
from tailprompt.model import backbones, fitted, limits
from tailprompt.model.compose import compose
from tailprompt.model.terms import Terms
from tailprompt.training.batches import predict as outputs
from tailprompt.training.pairs import of_one_class, of_two_classes

NOTHING = {"family": "tfidf"}
ROWS = {
    "tfidf": {"row": NOTHING},
    "embedding": {},
    "knn": {},
    "class-means": {},
    "setfit": {"steps": 6, "pairs": 8, "keep": True},
    "setfit-lora": {"steps": 6, "pairs": 8},
}
TEXTS = ["the court of law", "a court", "the song of songs", "a song of the guitar", "law law law"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("first")
    return {name: toy.run(root, name, **changes) for name, changes in ROWS.items()}


def split(name: str) -> pd.DataFrame:
    table = toy.table()
    return table[table.split == name]


def test_every_row_with_a_fitted_head_on_texts_is_run_here():
    assert {name for name in toy.FITTED if not name.startswith("image-")} == {*ROWS}


def vectorizer(**told):
    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, **told),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, **told),
    )


@pytest.mark.parametrize("told", [{}, {"min_df": 2}, {"max_features": 7}], ids=["all", "twice", "few"])
def test_terms_are_weighted_as_scikit_learn_does(told):
    ours = Terms(
        word_terms=2,
        character_terms=5,
        texts_of_term=told.get("min_df", 1),
        terms=told.get("max_features", 20_000),
    )
    theirs = vectorizer(**told)
    np.testing.assert_allclose(ours.fit(TEXTS).toarray(), theirs.fit_transform(TEXTS).toarray(), atol=1e-6)
    new = ["a new law", "nothing known xyz", ""]
    np.testing.assert_allclose(ours.vectors(new).toarray(), theirs.transform(new).toarray(), atol=1e-6)


def test_a_chinese_character_is_a_word():
    terms = Terms(word_terms=1, character_terms=2, texts_of_term=1, terms=100)
    terms.fit(["感冒了怎么办", "BERT模型"])
    assert set(json.loads(bytes(terms.known.numpy()))[0]) == {*"感冒了怎么办模型", "bert"}


def test_tfidf_reaches_the_scores_of_scikit_learns_pipeline(runs):
    train, dev, test = (split(name) for name in ("train", "dev", "test"))
    tried = json.loads((runs["tfidf"] / "run.json").read_text())["tried"]
    best = float(max(tried, key=tried.get).partition("=")[2])
    told = {"C": best, "class_weight": "balanced", "max_iter": 1000}
    theirs = make_pipeline(vectorizer(), LogisticRegression(**told)).fit(train.text, train.label)
    ours = toy.scores(runs["tfidf"])
    for name, part in (("dev", dev), ("test", test)):
        rows = ours[ours.split == name]
        assert rows.prediction.tolist() == theirs.predict(part.text).tolist()
        stored = rows[[0, 1, 2]].to_numpy()
        made = torch.tensor(stored).softmax(1).numpy()
        np.testing.assert_allclose(made, theirs.predict_proba(part.text), rtol=0, atol=of_half(stored))


def embedded(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean over tokens, of length 1, of each text alone, so that nothing is padded."""
    backbone, part = backbones.load(ROW), split(name)
    vectors = []
    for text in part.text:
        tokens = backbone.tokenizer(text, truncation=True, max_length=24, return_tensors="pt")
        with torch.no_grad():
            vectors.append(backbone.body.eval()(**tokens).last_hidden_state[0].mean(0).numpy())
    vectors = np.stack(vectors)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), part.label.to_numpy()


@pytest.mark.parametrize("name", ["embedding", "knn", "class-means"])
def test_heads_on_frozen_embeddings_reach_the_scores_of_scikit_learn(runs, name):
    about = json.loads((runs[name] / "run.json").read_text())
    best = float(max(about["tried"] or {"=1": 0}, key=(about["tried"] or {"=1": 0}).get).partition("=")[2])
    theirs = {
        "embedding": LogisticRegression(C=best, class_weight="balanced", max_iter=1000),
        "knn": KNeighborsClassifier(int(best), metric="cosine"),
        "class-means": NearestCentroid(),
    }[name].fit(*embedded("train"))
    ours = toy.scores(runs[name]).query("split == 'test'")
    assert ours.prediction.tolist() == theirs.predict(embedded("test")[0]).tolist()


@pytest.mark.parametrize("name", list(ROWS))
def test_new_rows_get_the_predictions_that_the_run_stored(runs, tmp_path, name):
    split("test")[["id", "text"]].to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "made.csv"
    predict.predict_file(runs[name], tmp_path / "rows.csv", out, encoding="utf-8-sig", device="cpu")
    kept = toy.scores(runs[name]).query("split == 'test'")
    assert pd.read_csv(out).prediction.tolist() == [list(toy.WORDS)[label] for label in kept.prediction]


def test_dev_chooses_and_what_it_chose_from_is_recorded(runs):
    for name, tried in (("tfidf", 3), ("embedding", 3), ("knn", 3), ("class-means", 0), ("setfit", 0)):
        about = json.loads((runs[name] / "run.json").read_text())
        assert len(about["tried"]) == tried
        assert not tried or about["dev"]["f1"] == pytest.approx(max(about["tried"].values()))


def test_two_classes_have_the_probabilities_of_scikit_learn():
    draws = np.random.default_rng(0)
    vectors, labels = (
        draws.normal(size=(30, 4)),
        draws.integers(0, 2, 30) * 2,
    )  # the class between has no rows
    ours = fitted.LogisticRegression(4, 3, class_weight="none")
    ours.fit(vectors, labels, 1.0)
    made = ours.logits(torch.from_numpy(vectors).float()).softmax(1).detach().numpy()
    theirs = LogisticRegression(max_iter=1000).fit(vectors, labels).predict_proba(vectors)
    np.testing.assert_allclose(made[:, [0, 2]], theirs, atol=1e-5)
    assert made[:, 1].max() == 0


@pytest.mark.parametrize("head", ["logistic_regression", "neighbours", "class_means"])
def test_a_class_without_training_rows_is_never_predicted(head):
    words, vectors = [[]] * 3, np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    told = {"input": "pooled", "tuner": "frozen", "head": head, "select": "last", "max_length": 8}
    run = run_of(toy.completed(told, reads="text"))
    made = fitted.FITTED[head](type("Backbone", (), {"width": 4}), run.head, words)
    made.fit(vectors, np.arange(12) % 2, {"logistic_regression": 1.0, "neighbours": 3}.get(head))
    assert set(made.logits(torch.from_numpy(vectors)).argmax(1).tolist()) == {0, 1}


def test_padding_does_not_change_a_mean_over_tokens(backbone):
    from tailprompt.inputs.examples import encode_rows

    told = {"input": "pooled", "tuner": "frozen", "head": "class_means", "select": "last", "max_length": 24}
    run = run_of(toy.completed(told, reads="text"))
    model, rows = compose(backbone, run, words=[[]] * 3), encode_rows(split("train"), backbone, run)
    alone = outputs(model, rows, tokens=1, apply=lambda batch: model.read(batch).vector)
    together = outputs(model, rows, apply=lambda batch: model.read(batch).vector)
    torch.testing.assert_close(alone, together, atol=1e-6, rtol=1e-5)


def test_pairs_are_of_one_class_and_of_two_and_every_pair_is_as_likely():
    labels = torch.tensor([2, 0, 2, 0, 2, 1])
    draw = torch.Generator().manual_seed(0)
    same, other = of_one_class(labels)(6000, draw), of_two_classes(labels)(6000, draw)
    assert (labels[same[:, 0]] == labels[same[:, 1]]).all() and (same[:, 0] != same[:, 1]).all()
    assert (labels[other[:, 0]] != labels[other[:, 1]]).all()
    for pairs, number in ((same, 4), (other, 11)):
        counts = pairs.sort(1).values.unique(dim=0, return_counts=True)[1]
        assert len(counts) == number and (counts - 6000 / number).abs().max() < 6 * (6000 / number) ** 0.5


def test_pairs_need_two_classes():
    with pytest.raises(BadInput, match="two classes"):
        of_two_classes(torch.tensor([1, 1]))


@pytest.mark.parametrize(
    "told, says",
    [
        ({"input": "pooled", "tuner": "full", "head": "linear"}, None),
        ({"input": "tfidf", "tuner": "full", "head": "logistic_regression"}, "allowed with head logistic"),
        ({"input": "tfidf", "tuner": "frozen", "head": "neighbours"}, "allowed with input tfidf"),
        ({"input": "prompted", "tuner": "frozen", "head": "verbalizer"}, None),
    ],
)
def test_what_a_fitted_head_does_not_go_with_is_refused(told, says):
    given = {**toy.TRAINING, **told}

    def lookup(slot, key):
        from tailprompt.components.resolve import given_to

        return given_to(given, slot, key)

    if says is None:
        composed(lookup, reads="text")
        return
    with pytest.raises(BadInput, match=says):
        composed(lookup, reads="text")


def test_a_search_on_dev_needs_dev(tmp_path):
    with pytest.raises(BadInput, match="C: select chooses one of several on dev"):
        toy.run(tmp_path, "embedding", select="last")


def test_a_killed_run_on_pairs_goes_on_where_it_was(tmp_path, monkeypatch, runs):
    toy.interrupted(monkeypatch, at=4)
    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path, "setfit", **ROWS["setfit"])
    folder = toy.run(tmp_path, "setfit", **ROWS["setfit"])
    pd.testing.assert_frame_equal(toy.scores(folder), toy.scores(runs["setfit"]))


IMAGES = {"image-embedding": {}, "image-knn": {"neighbours": [3]}, "image-class-means": {}}


@pytest.mark.parametrize("name", list(IMAGES))
def test_heads_on_frozen_features_of_images_reach_the_scores_of_scikit_learn(tmp_path, name):
    folder = toy_images.run(tmp_path, name, select="f1", vectors=True, **IMAGES[name])
    rows, tried = (
        pd.read_parquet(folder / "features.parquet"),
        json.loads((folder / "run.json").read_text())["tried"],
    )
    train, test = (rows[rows.split == part] for part in ("train", "test"))
    best = float(max(tried, key=tried.get).partition("=")[2]) if tried else 3
    theirs = {
        "image-embedding": LogisticRegression(C=best, class_weight="balanced", max_iter=1000),
        "image-knn": KNeighborsClassifier(3, metric="cosine"),
        "image-class-means": NearestCentroid(),
    }[name].fit(np.stack(train.vector), train.label)
    made = toy.scores(folder).query("split == 'test'")
    assert made.id.tolist() == test.id.tolist()
    assert made.prediction.tolist() == theirs.predict(np.stack(test.vector)).tolist()


def test_lifts_adapters_have_the_width_of_its_code():
    told = {"input": "pixels", "tuner": "frozen", "head": "predictor", "adapter": "by_classes"}
    run = run_of(toy.completed({**toy_images.TRAINING, **told, "select": "last"}, reads="image"))
    widths = {
        (classes, depth): limits.sized(run.tuner, classes=classes, depth=depth).beside.adapter
        for classes, depth in ((100, 12), (365, 12), (1000, 12), (8142, 12), (10, 8))
    }
    assert [*widths.values()] == [4, 8, 32, 256, 1]
