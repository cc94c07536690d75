"""Claims: verdicts that follow from made-up truth, and arithmetic checked by hand or against simulation."""

from pathlib import Path

import made_up
import numpy as np
import pandas as pd
import pytest
from blocks import block, results
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from tailprompt.errors import BadInput
from tailprompt.plan import blocks
from tailprompt.plan.schemas import read
from tailprompt.report import bootstrap, records
from tailprompt.report import verdicts as claims
from tailprompt.report.tables.claims import claims as table
from tailprompt.report.tables.claims import printed_effects
from tailprompt.tasks.classification import CLASSIFICATION

GLEE = read("config/papers/glee.yaml")
TAIL = {
    "id": "tail", "says": "Prompt-tuning is better on the tail", "section": "3.2", "table": "table2",
    "method": "prompt", "than": "cls-tanh", "metric": "f1/tail", "direction": "greater",
}  # fmt: skip
NORMS = {**TAIL, "id": "norms", "statistic": "norm_slope"}
FOCAL = {
    **TAIL, "id": "focal", "method": "cls-tanh-focal", "than": "prompt", "direction": "not_greater",
    "margin": 1.0, "margin_reason": "made up",
}  # fmt: skip


def random():
    return np.random.default_rng(0)


def normal(mean, spread=1.0):
    return random().normal(mean, spread, 4000)


@pytest.mark.parametrize(
    "direction, mean, expected",
    [
        ("greater", 5, "holds"), ("greater", 0, "undecided"), ("greater", -5, "fails"),
        ("not_greater", -5, "holds"), ("not_greater", 2, "undecided"), ("not_greater", 7, "fails"),
        ("equal", 1, "undecided"), ("equal", 6, "fails"), ("equal", -6, "fails"),
    ],
)  # fmt: skip
def test_verdicts_follow_the_effect(direction, mean, expected):
    assert claims.verdict(*claims.decide(direction, normal(mean), margin=2.0)) == expected


def test_equality_needs_precision_not_absence_of_evidence():
    assert claims.verdict(*claims.decide("equal", normal(0, 0.3), margin=1.0)) == "holds"
    assert claims.verdict(*claims.decide("equal", normal(0, 3.0), margin=1.0)) == "undecided"


def test_holm_by_hand():
    assert claims.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_order_and_lies_between_p_and_bonferroni(ps):
    adjusted = claims.holm(ps)
    assert all(p <= q <= min(1, len(ps) * p) + 1e-12 for p, q in zip(ps, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(ps, kind="stable")] == sorted(adjusted)


def drawn(gold, predicted, *names, classes=6, **groups):
    rows = pd.DataFrame({"label": gold, "prediction": predicted})
    added = {"run": CLASSIFICATION.added(rows, {"classes": range(classes)})}
    return bootstrap.replicates(CLASSIFICATION, names, groups, added, random())["run"]


def test_the_first_row_of_resamples_is_the_split_itself():
    gold, predicted = made_up.labels(), made_up.predictions(0.7, 1).prediction.to_numpy()
    found = drawn(gold, predicted, "f1/all", "f1/t", t=[3, 4, 5])
    assert found["f1/all"][0] == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert found["f1/t"][0] == pytest.approx(np.mean(f1_score(gold, predicted, average=None)[3:]))


def test_resampled_scores_are_those_of_the_drawn_examples():
    gold, predicted = made_up.labels(), made_up.predictions(0.7, 1).prediction.to_numpy()
    taken = bootstrap.times(len(gold), bootstrap.DRAWS, random()).astype(int)
    for row, value in zip(taken[:9], drawn(gold, predicted, "f1/all")["f1/all"], strict=False):
        again = np.repeat(gold, row), np.repeat(predicted, row)
        assert value == pytest.approx(f1_score(*again, average="macro", zero_division=0))


def test_few_seeds_do_not_look_surer_than_they_are():
    first = np.broadcast_to(random().normal(size=4), (4000, 4))
    draws = bootstrap.difference(first, np.zeros_like(first), random())
    assert np.std(draws) == pytest.approx(np.std(first[0], ddof=1) / 2, rel=0.05)


def test_identical_methods_have_no_effect_in_any_draw():
    scores = random().random((51, 3))
    effect = claims.score(scores, scores, random())
    assert effect.value == 0 and not effect.draws.any()


def test_a_paired_difference_has_the_standard_error_of_the_pairs():
    gold = np.zeros(4000, int)
    first, second = (random().random((2, 4000)) < [[0.2], [0.25]]).astype(int)
    a, b = (drawn(gold, p, "accuracy/all", classes=2)["accuracy/all"] for p in (first, second))
    error = np.std(second.astype(float) - first) / np.sqrt(4000)
    assert np.std(claims.score(a[:, None], b[:, None], random()).draws) == pytest.approx(100 * error, rel=0.1)


def test_spread_over_seeds_covers_the_truth_as_often_as_it_says():
    hits, draws = 0, random()
    for _ in range(300):
        method, than = draws.normal(0, 1, 5), draws.normal(0, 4, 5)
        low, high = bootstrap.interval(claims.seed_spread(method, than, 400, draws).draws)
        hits += low < 2 < high  # log2(4 / 1)
    assert 0.91 < hits / 300 < 0.99


def test_spread_over_one_seed_is_unknown_not_zero():
    effect = claims.seed_spread(np.array([0.5]), np.array([0.7]), 10, random())
    assert np.isnan(effect.value)
    assert claims.verdict(*claims.decide("greater", effect.draws)) == "undecided"


def test_norms_of_a_power_law_have_its_exponent_as_slope():
    train = np.array([1000, 300, 100, 30, 10, 3, 0])
    steep, flat = train**0.25 + (train == 0), np.ones(7)
    effect = claims.norm_slope(flat[None], steep[None], train, 100, random())
    assert effect.value == pytest.approx(0.25)
    assert effect.draws[~np.isnan(effect.draws)] == pytest.approx(0.25)


def test_the_effect_over_all_is_the_mean_over_data_sets():
    parts = [claims.Effect(value, np.full(9, value), 5) for value in (1.0, 3.0, float("nan"))]
    assert claims.over_all(parts).value == 2.0


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    listed = [{**claim, "datasets": ["one", "two"]} for claim in (TAIL, NORMS, FOCAL)]
    listed.append({**TAIL, "id": "left-out", "method": "prompt-focal", "datasets": []})
    spec = block("claims", ["cls-tanh", "cls-tanh-focal", "prompt"], ["one", "two"], claims=listed)
    return table(results(tmp_path_factory.mktemp("claims"), spec, reported="r52"), spec)


def line(judged, claim, dataset="all"):
    return judged[0].set_index(["id", "dataset"]).loc[(claim, dataset)]


def test_a_clear_claim_holds_beside_the_papers_effect(judged):
    assert line(judged, "tail").verdict == "holds"
    assert line(judged, "tail").reported == pytest.approx(np.mean([8.1, 12.7, 4.9, 0.3, 18.4]))
    assert line(judged, "tail", "one").reported == pytest.approx(85.0 - 66.6)
    assert line(judged, "tail").low < line(judged, "tail").ours < line(judged, "tail").high


def test_norms_and_margins_are_judged_too(judged):
    assert line(judged, "norms").verdict == "holds"
    assert line(judged, "norms").ours == pytest.approx(0.23, abs=0.01)
    assert line(judged, "focal").verdict == "holds"


def test_a_claim_whose_methods_this_scale_leaves_out_is_not_run(judged):
    assert line(judged, "left-out").verdict == "not run"
    assert line(judged, "left-out").reported == pytest.approx(np.mean([7.3, 12.4, 4.2, -0.3, 15.7]), abs=0.11)


def test_fewer_than_five_seeds_and_margins_are_said(judged):
    notes = " ".join(judged[1].notes)
    assert "Fewer than five seeds here (3 at least)" in notes
    assert "margin 1, made up" in notes


def test_one_seed_says_nothing_of_the_spread(tmp_path):
    spec = block("claims", ["cls-tanh", "prompt"], seeds=[1], claims=[{**TAIL, "datasets": ["made"]}])
    notes = " ".join(table(results(tmp_path, spec), spec)[1].notes)
    assert "One seed here: spread over seeds is unknown" in notes and "Fewer than" not in notes


def test_the_holm_family_is_the_claims_judged_over_all(judged):
    long = judged[0]
    overall = long[(long.dataset == "all") & long.p.notna()]
    assert len(overall) == 3
    assert overall.p_holm.tolist() == claims.holm(overall.p.tolist())
    assert long[long.dataset != "all"].p_holm.isna().all()


def test_a_claim_may_be_of_one_class_and_of_methods_that_no_paper_prints(tmp_path):
    claim = {**TAIL, "metric": "f1/class:zinc", "datasets": ["made"]}
    other = {**TAIL, "id": "other", "method": "prompt@keep=true", "datasets": ["made"]}
    spec = block("claims", ["cls-tanh", "prompt", "prompt@keep=true"], claims=[claim, other])
    long = table(results(tmp_path, spec, reported="r52"), spec)[0].set_index(["id", "dataset"])
    assert long.seeds[:, "all"].tolist() == [3, 3] and long.reported.isna().all()


def test_runs_scored_on_other_examples_are_refused(tmp_path):
    spec = block("claims", claims=[{**TAIL, "datasets": ["made"]}])
    results(tmp_path, spec)
    other = made_up.run(tmp_path, "prompt", 3) / "predictions.parquet"
    pd.read_parquet(other).iloc[:-1].to_parquet(other, index=False)
    (tmp_path / "data/made.parquet").unlink()  # with which each run is compared
    with pytest.raises(BadInput, match="its test examples are not those of the other runs on made"):
        table(tmp_path, spec)


def config(methods=None):
    """A configuration with GLEE's claims, one data set a set, and the methods a scale runs."""
    listed = read("config/methods.yaml")
    protocol = {"seeds": [1], "backbones": {"en": "mini"}, "settings": {}} | (
        {"methods": methods} if methods else {}
    )
    return {
        "scale": "tiny",
        "backbones": {"mini": {}},
        "datasets": {name: {"language": "en"} for name in ("long", "short")},
        "methods": listed["methods"],
        "sets": {"long_tailed": ["long"], "few_shot": ["short"]},
        "protocols": {"glee": protocol},
    }


SPEC = GLEE["papers"]["glee"]["tables"]["claims"]


def test_a_claims_table_takes_exactly_the_runs_its_claims_compare():
    expanded = blocks.expand(config(), SPEC)
    cells = {(run["dataset"], run["method"]) for run in expanded["runs"]}
    few = {method for dataset, method in cells if dataset == "short"}
    assert few == {"cls-tanh", "cls-relu", "cls-relu-ptln"}
    assert ("long", "cls-tanh-eta") not in cells and ("long", "prompt-untied") in cells
    assert len(expanded["runs"]) == len(cells)


def test_claims_about_methods_that_a_scale_does_not_run_take_no_runs():
    expanded = blocks.expand(config(["cls-tanh", "prompt"]), SPEC)
    assert {run["method"] for run in expanded["runs"]} == {"cls-tanh", "prompt"}
    judged = [claim["id"] for claim in expanded["claims"] if claim["datasets"]]
    assert judged == ["prompt-f1", "prompt-tail", "prompt-head", "prompt-spread", "prompt-norms"]


@pytest.mark.parametrize("paper, count", [("glee", 17), ("lpt", 40), ("ppt", 22)])
def test_every_claim_is_well_formed(paper, count):
    folder = Path(__file__).parents[2] / "config"
    stated = read(folder / f"papers/{paper}.yaml")["papers"][paper]["tables"]
    printed = pd.read_csv(folder / f"reported/{paper}.csv")
    assert len(stated["claims"]["claims"]) == count
    for name, claim in stated["claims"]["claims"].items():
        assert claim["direction"] in claims.DIRECTIONS
        assert ("margin" in claim) == (claim["direction"] != "greater") == ("margin_reason" in claim)
        if "table" in claim:
            effects = printed_effects(claim, printed)
            assert effects, f"{name} names a table that does not print both of its methods"


def test_the_printed_effects_of_lpt_go_the_way_of_its_claims():
    folder = Path(__file__).parents[2] / "config"
    paper = read(folder / "papers/lpt.yaml")["papers"]["lpt"]
    printed = pd.read_csv(folder / "reported/lpt.csv")
    for name, claim in paper["tables"]["claims"]["claims"].items():
        mean = np.mean(list(printed_effects(claim, printed).values()))
        limit = {"greater": mean > 0, "not_greater": mean < claim.get("margin", 0)}
        assert limit.get(claim["direction"], abs(mean) < claim.get("margin", 0)), name


def test_the_printed_effects_of_ppt_go_the_way_of_its_claims():
    folder = Path(__file__).parents[2] / "config"
    content = read(folder / "papers/ppt.yaml")
    rows = read(folder / "datasets.yaml")["datasets"]
    printed = pd.read_csv(folder / "reported/ppt.csv")
    for name, claim in content["papers"]["ppt"]["tables"]["claims"]["claims"].items():
        here = {rows[dataset.partition("@")[0]]["reported"] for dataset in content["sets"][claim["sets"]]}
        effects = [value for dataset, value in printed_effects(claim, printed).items() if dataset in here]
        limit = claim.get("margin", 0)
        if "table" in claim:
            mean = np.mean(effects)
            assert mean > 0 if claim["direction"] == "greater" else mean < limit, name


def test_a_claim_compares_the_runs_that_dev_chose(tmp_path):
    made_up.data(tmp_path)
    spec = block("claims", ["prompt", "cls-tanh"], claims=[TAIL | {"datasets": ["made"]}])
    spec["choose"] = {"over": "lr", "values": [0.001, 0.01], "by": "f1/all"}
    spec["runs"] = [run | {"run": f"{run['method']}@lr={lr}"} for run in spec["runs"] for lr in (0.001, 0.01)]
    for run in spec["runs"]:
        for seed in spec["seeds"]:
            skill = 0.9 if run["run"] == "prompt@lr=0.01" else 0.2
            made_up.run(tmp_path, run["run"], seed, skill=skill)
    long, tex, _ = table(tmp_path, spec)
    assert long.set_index("dataset").ours["all"] > 40
    assert "Of each method on each data set the lr with the best mean dev f1/all." in tex.notes


@pytest.mark.parametrize("kind", ["score", "seed_spread", "separability"])
@pytest.mark.parametrize("beyond", [{}, {"beyond": "f1/tail"}], ids=["alone", "beyond"])
def test_claims_of_a_paper_without_printed_numbers_have_no_printed_effects(kind, beyond):
    metric = "knn/1" if kind == "separability" else "f1/all"
    claim = {"method": "prompt", "than": "cls-tanh", "metric": metric, "statistic": kind, **beyond}
    assert printed_effects(claim, records.reported("mine")) == {}
