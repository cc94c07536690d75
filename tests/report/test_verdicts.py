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
from tailprompt.report.tables.printed import printed_effects
from tailprompt.report.uncertainty import MeanError
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


def near(mean, spread=1.0):
    """An effect whose error is normal."""
    draws = spread * random().normal(size=4000)
    return claims.Effect(mean, MeanError(((1e-12, 9),), draws, 0.0), 10)


@pytest.mark.parametrize(
    "direction, mean, expected",
    [
        ("greater", 5, "holds"), ("greater", 3, "undecided"), ("greater", -1, "fails"),
        ("not_greater", -5, "holds"), ("not_greater", 2, "undecided"), ("not_greater", 7, "fails"),
        ("equal", 1, "undecided"), ("equal", 6, "fails"), ("equal", -6, "fails"),
    ],
)  # fmt: skip
def test_verdicts_follow_the_effect(direction, mean, expected):
    assert claims.verdict(*claims.decide(direction, near(mean), margin=2.0)) == expected


def test_equality_needs_precision_not_absence_of_evidence():
    assert claims.verdict(*claims.decide("equal", near(0.0, 0.3), margin=1.0)) == "holds"
    assert claims.verdict(*claims.decide("equal", near(0.0, 3.0), margin=1.0)) == "undecided"


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


def test_sums_that_runs_share_are_those_of_each_run_alone():
    gold, other = made_up.labels(), made_up.labels()[::-1]
    pairs = [(gold, other), (gold, gold), (other, gold), (gold, other)]
    alone = [drawn(*pair, "f1/all")["f1/all"] for pair in pairs]
    rows = [pd.DataFrame({"label": label, "prediction": guess}) for label, guess in pairs]
    added = {i: CLASSIFICATION.added(each, {"classes": range(6)}) for i, each in enumerate(rows)}
    found = bootstrap.replicates(CLASSIFICATION, ["f1/all"], {}, added, random())
    assert all(np.array_equal(found[i]["f1/all"], values) for i, values in enumerate(alone))


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


def test_one_resample_of_examples_serves_all_data_sets_that_have_them():
    taken = [bootstrap.times(50, 9, bootstrap.stream(*map(str, range(n)))) for n in (50, 50, 49)]
    assert np.array_equal(taken[0], taken[1]) and not np.array_equal(taken[0], taken[2])


def test_identical_methods_have_no_effect_and_no_verdict():
    scores = random().random((51, 3))
    effect = claims.score(scores, scores)
    assert effect.value == 0 and claims.verdict(*claims.decide("greater", effect)) == "undecided"


def test_a_paired_difference_has_the_standard_error_of_the_pairs():
    gold = np.zeros(4000, int)
    first, second = (random().random((2, 4000)) < [[0.2], [0.25]]).astype(int)
    a, b = (drawn(gold, p, "accuracy/all", classes=2)["accuracy/all"] for p in (first, second))
    error = np.std(second.astype(float) - first) / np.sqrt(4000)
    assert np.std(claims.score(a[:, None], b[:, None]).error.test) == pytest.approx(100 * error, rel=0.1)


def test_spread_over_seeds_covers_the_truth_as_often_as_it_says():
    hits, draws = 0, random()
    for _ in range(300):
        method, than = draws.normal(0, 1, 5), draws.normal(0, 4, 5)
        low, high = claims.interval(claims.seed_spread(method, than))
        hits += low < 2 < high  # log2(4 / 1)
    assert 0.91 < hits / 300 < 0.99


@pytest.mark.parametrize("method, than", [([0.5], [0.7]), ([0.5, 0.5], [0.7, 0.8])])
def test_spread_over_one_seed_or_of_equal_scores_is_unknown_not_zero(method, than):
    effect = claims.seed_spread(np.array(method), np.array(than))
    assert np.isnan(effect.value)
    assert claims.verdict(*claims.decide("greater", effect)) == "undecided"


def test_norms_of_a_power_law_have_its_exponent_as_slope():
    train = np.array([1000, 300, 100, 30, 10, 3, 0])
    steep, flat = train**0.25 + (train == 0), np.ones(7)
    taken = bootstrap.times(7, 100, random())
    effect = claims.norm_slope(np.stack([flat, flat]), np.stack([steep, steep]), train, taken)
    assert effect.value == pytest.approx(0.25)
    draws = effect.error.test
    assert draws[~np.isnan(draws)] == pytest.approx(0.25)


def test_the_effect_over_all_is_the_mean_over_data_sets():
    error = near(0.0).error
    parts = [claims.Effect(value, error, 5) for value in (1.0, 3.0, float("nan"))]
    assert claims.over_all(parts).value == 2.0


def test_cuts_of_one_test_set_are_not_independent():
    draws = random().normal(size=(2, 4000))
    alone, other = (claims.Effect(1.0, MeanError(((1e-12, 9),), each, 0.0), 10) for each in draws)
    reaches = [
        np.diff(claims.interval(effect))[0]
        for effect in (alone, claims.over_all([alone, alone]), claims.over_all([alone, other]))
    ]
    assert reaches[1] == pytest.approx(reaches[0], rel=1e-6)  # of the same examples nothing more is learnt
    assert reaches[2] == pytest.approx(reaches[0] / np.sqrt(2), rel=0.05)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    listed = [{**claim, "datasets": ["one", "two"]} for claim in (TAIL, NORMS, FOCAL)]
    listed.append({**TAIL, "id": "left-out", "method": "prompt-focal", "datasets": []})
    methods = ["cls-tanh", "cls-tanh-focal", "prompt"]
    spec = block("claims", methods, ["one", "two"], [1, 2, 3, 4], claims=listed)
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
    assert "Fewer than five seeds here (4 at least)" in notes
    assert "margin 1, made up" in notes


def test_one_seed_says_nothing_of_the_spread(tmp_path):
    spec = block("claims", ["cls-tanh", "prompt"], seeds=[1], claims=[{**TAIL, "datasets": ["made"]}])
    long, sheet, _ = table(results(tmp_path, spec), spec)
    notes = " ".join(sheet.notes)
    assert "One seed here: spread over seeds is unknown" in notes and "Fewer than" not in notes
    assert (long.verdict == "undecided").all() and long[["p", "low", "high"]].isna().all(axis=None)


def two_sets(tmp_path, **leave_out):
    """The table of two claims on two data sets, of which some runs are missing."""
    both = [{**TAIL, "datasets": ["one", "two"]}]
    both.append({**both[0], "id": "focal", "says": "Focal loss is no better", "method": "cls-tanh-focal"})
    spec = block("claims", ["cls-tanh", "cls-tanh-focal", "prompt"], ["one", "two"], claims=both)
    results(tmp_path, spec)
    for name, methods in leave_out.items():
        for method in methods:
            for seed in spec["seeds"]:
                (made_up.run(tmp_path, method, seed, dataset=name) / "run.json").unlink()
    long, sheet, _ = table(tmp_path, spec)
    return long.set_index(["id", "dataset"]), sheet


def test_a_claim_says_which_data_sets_it_lacks(tmp_path):
    long, sheet = two_sets(tmp_path, two=["prompt"])
    assert long.sets["tail", "all"] == "1 of 2" and long.lacks["tail", "all"] == "two"
    assert long.verdict["tail", "two"] == "not run" and long.sets["focal", "all"] == "2"
    words = "Without TWO, where no seed has both methods: Prompt-tuning is better on the tail."
    assert words in sheet.notes
    assert "Missing on TWO: Prompt-tuning (seeds 1, 2, 3)." in sheet.notes


def test_a_table_takes_data_sets_with_the_same_test_examples_together(tmp_path):
    spec = block("claims", datasets=["one", "two"], claims=[{**TAIL, "datasets": ["one", "two"]}])
    results(tmp_path, spec)
    together = table(tmp_path, spec)[0].set_index("dataset").loc["all"]
    for file in [tmp_path / "data/two.parquet", *tmp_path.glob("runs/*/*/two/*/*/predictions.parquet")]:
        rows = pd.read_parquet(file)
        rows.assign(id="other-" + rows.id).to_parquet(file, index=False)
    apart = table(tmp_path, spec)[0].set_index("dataset").loc["all"]
    assert apart.ours == together.ours
    assert apart.high - apart.low < 0.95 * (together.high - together.low)


def test_a_whole_claims_table_says_nothing_of_missing_runs(tmp_path):
    notes = " ".join(two_sets(tmp_path)[1].notes)
    assert "Without" not in notes and "Missing" not in notes


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


def own(paper):
    """Claim, its printed effects by data set, and the printed names of the data sets that it is of."""
    content, rows = read(f"config/papers/{paper}.yaml"), read("config/datasets.yaml")["datasets"]
    printed = pd.read_csv(f"config/reported/{paper}.csv")
    for name, claim in content["papers"][paper]["tables"]["claims"]["claims"].items():
        parts = [dataset.partition("@") for dataset in content["sets"].get(claim["sets"], [])]
        names = {rows[name].get("reported") for name, _, _ in parts}
        names |= {f"{rows[name].get('reported')}{at}{cut}" for name, at, cut in parts}
        if "table" in claim:
            on = {key: blocks.on(claim[key], claim.get("backbone")) for key in ("method", "than")}
            yield name, claim, printed_effects({**claim, **on}, printed), names


PRINTED = {
    "ppt": 16.4, "ppt-chinese": 19.2, "ppt-full": 5.43, "complementary": 3.07, "complementary-pt": 6.27,
    "hybrid-pt": 13.2, "spread": 2.81, "spread-chinese": 1.33, "unified": -1.35, "unified-pt": 17.75,
    "ppt-lm": 16.18,
}  # fmt: skip


@pytest.mark.parametrize("paper", ["glee", "lpt", "ppt", "ptuning2"])
def test_printed_effects_are_of_the_claims_own_data_sets(paper):
    for name, _, effects, names in own(paper):
        assert effects and effects.keys() <= names, name


def test_printed_effects_of_ppt_by_hand():
    means = {name: np.mean(list(effects.values())) for name, _, effects, _ in own("ppt")}
    assert {name: means[name] for name in PRINTED} == pytest.approx(PRINTED, abs=0.06)


def test_the_printed_effects_of_ppt_go_the_way_of_its_claims():
    for name, claim, effects, _ in own("ppt"):
        mean = np.mean(list(effects.values()))
        assert mean > 0 if claim["direction"] == "greater" else mean < claim["margin"], name


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
    assert (
        "Of each method on each data set the lr with the best mean dev f1/all, where it has several."
        in tex.notes
    )


@pytest.mark.parametrize("kind", ["score", "seed_spread", "separability"])
@pytest.mark.parametrize("beyond", [{}, {"beyond": "f1/tail"}], ids=["alone", "beyond"])
def test_claims_of_a_paper_without_printed_numbers_have_no_printed_effects(kind, beyond):
    metric = "knn/1" if kind == "separability" else "f1/all"
    claim = {"method": "prompt", "than": "cls-tanh", "metric": metric, "statistic": kind, **beyond}
    assert printed_effects(claim, records.reported("mine")) == {}
