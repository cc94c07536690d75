"""What is given becomes a typed run, and a run what it is told: defaults, keys that are shared, refusals."""

from __future__ import annotations

import dataclasses
import re

import pytest
import toy
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import completed
from two_dropouts import Clouded, forget

from tailprompt.components import resolve, training
from tailprompt.components.declare import choice, component, every, key, settings_of
from tailprompt.components.resolve import composed, flat, made, names, options, run_of
from tailprompt.components.run import Run
from tailprompt.components.training import Training
from tailprompt.errors import BadInput
from tailprompt.plan.schemas import Strict

NEEDED = {"lr": 1e-3, "batch": 8, "epochs": 1, "patience": 1, "select": "f1", "max_length": 16}
TEXTS = {"template": "{text} {mask}", "language": "en"}
SCHEMA = Strict({"properties": resolve.property_schema(), "additionalProperties": False})
CHOICES = sorted({each.name for _, _, each in every(Run) if each.kind == "choice"})
KEYS = [(slot, owner, each) for slot, owner, each in every(Run) if each.kind == "key"]
WORDS = sorted({(slot, owner, each.name) for slot, owner, each in KEYS if "enum" in each.schema})
SPOKEN = {name: [] for _, _, name in WORDS}  # every word that some component's key of a name knows
for _, _, each in KEYS:
    SPOKEN.get(each.name, []).extend(each.schema.get("enum", []))


def told(given: dict, reads: str = "text", **more) -> dict:
    """The settings of what is given beside what every run needs."""
    return completed({**NEEDED, **TEXTS, **given}, reads=reads, **more)


def refusal(given: dict, reads: str = "text") -> str:
    with pytest.raises(BadInput) as error:
        told(given, reads)
    return str(error.value)


@pytest.mark.parametrize("method", toy.METHODS)
def test_settings_become_a_run_and_the_run_the_same_settings(method):
    found = toy.told(method, toy.TRAINING, reads=toy.READS[method])
    read = values_of(run_of(found))
    assert read.keys() == found.keys() and all(read[name] == found[name] for name in found)


def values_of(run: Run) -> dict:
    """The values that a run's components read, by key; of a choice its name."""
    parts = resolve.parts(run)
    fields = [(each, getattr(part, each.name)) for part in parts for each in settings_of(type(part))]
    chosen = {each.name: value.name for each, value in fields if each.kind == "choice" and value}
    beside = {**chosen, "rows": "train"}
    keys = {each.name: value for each, value in fields if each.kind == "key" and each.read_where(beside)}
    return chosen | {name: list(value) if isinstance(value, tuple) else value for name, value in keys.items()}


def test_what_is_left_out_has_its_default_and_what_is_not_read_is_not_told():
    found = told({"gamma": 3.0, "pool": 7})
    assert found["loss"] == "cross_entropy" and found["dropout"] == 0.1
    assert not found.keys() & {"gamma", "pool", "template", "language"}
    assert told({"loss": "focal", "gamma": 3.0})["gamma"] == 3.0


def test_a_default_may_depend_on_what_the_backbone_reads():
    assert (told({})["input"], told({})["head"]) == ("plain", "linear")
    images = told({}, reads="image")
    assert (images["input"], images["head"]) == ("pixels", "predictor")


@pytest.mark.parametrize("key", sorted(NEEDED))
def test_a_key_without_a_default_must_be_given(key):
    lacking = {name: value for name, value in {**NEEDED, **TEXTS}.items() if name != key}
    with pytest.raises(BadInput, match=f"^no {key} is given, which "):
        completed(lacking, reads="text")


@pytest.mark.parametrize("name", sorted(told({}).keys() - {"lr"}))
def test_settings_that_lack_one_are_no_runs(name):
    complete = told({})
    del complete[name]
    with pytest.raises(BadInput, match=f"^settings lack {name}$"):
        run_of(complete)


def test_a_whole_number_is_the_float_that_it_equals():
    whole, broken = told({"lr": 1, "tau": [0, 1]}), told({"lr": 1.0, "tau": [0.0, 1.0]})
    assert repr(whole) == repr(broken) and repr(whole["tau"]) == "[0.0, 1.0]"
    assert repr(whole["batch"]) == "8" and repr(whole["epochs"]) == "1.0"


def test_a_data_set_for_test_alone_is_told_nothing_of_training():
    found = told({}, trains=False)
    below = {each.name for _, _, each in every(Training)}
    assert "lr" in below and not found.keys() & below
    assert run_of(found).training is None and run_of(told({})).training is not None


@pytest.mark.parametrize(
    "given, reads, said",
    [
        ({"loss": "focl"}, "text", "unknown loss 'focl'; known: .*focal"),
        (
            {"head": "verbaliser"},
            "text",
            "unknown head 'verbaliser'; known: class_means, .*verbalizer",
        ),
        ({"tuner": "prompts"}, "text", "tuner is 'prompts'; allowed on text: full, frozen, soft_prompt"),
        ({"input": "plain"}, "image", "input is 'plain'; allowed on image: pixels"),
        ({"head": "linear"}, "image", "head is 'linear'; allowed with input pixels: predictor"),
        ({"input": "formatted", "template": "soft"}, "text", "allowed with input formatted: verbalizer"),
        (
            {"tuner": "prompts", "init": "normal"},
            "image",
            "init is 'normal'; allowed with prompts: trunc",
        ),
        ({"precision": "half"}, "text", "precision is 'half'; allowed: float32, tf32, bfloat16"),
        ({"views": 2}, "image", "views is 2; allowed with pixels: 1, 5"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_does(given, reads, said):
    assert re.search(said, refusal(given, reads))


@component("inner")
class Inner:
    """Two keys, one of them the other's."""

    dropout: float = key(0.1, "of features")
    size: int = key(1, "a size")


@component("second")
class Second:
    """The same key with another default, twice deep."""

    dropout: float = key(0.5, "of logits")


@component("toy")
class Toy:
    """A run of two slots."""

    left: Inner = choice("inner", "one")
    right: Second = choice("second", "the other")


def toy_composed(given: dict) -> tuple[Toy, dict]:
    """A toy and what it was told."""
    found: dict = {}
    made_so = made(Toy, lambda *place: resolve.given_to(given, *place), {"reads": "text"}, found, "")
    return made_so, found


def test_both_defaults_of_one_key_survive_and_are_told_apart():
    run, found = toy_composed({})
    assert (run.left.dropout, run.right.dropout) == (0.1, 0.5)
    told = flat(found)
    assert (told["left.dropout"], told["right.dropout"]) == (0.1, 0.5) and "dropout" not in told
    assert toy_composed(told)[0] == run


@pytest.mark.parametrize(
    "given, both",
    [
        ({"dropout": 0.3}, (0.3, 0.3)),
        ({"left.dropout": 0.3}, (0.3, 0.5)),
        ({"right.dropout": 0.3}, (0.1, 0.3)),
        ({"dropout": 0.3, "right.dropout": 0.2}, (0.3, 0.2)),
        ({"left.dropout": 0.3, "right.dropout": 0.3}, (0.3, 0.3)),
        ({"left.dropout": 0.5}, (0.5, 0.5)),
    ],
)
def test_a_plain_key_speaks_to_both_components_and_a_qualified_one_to_its_own(given, both):
    run, found = toy_composed(given)
    assert (run.left.dropout, run.right.dropout) == both
    told = flat(found)
    assert ("dropout" in told) == (both[0] == both[1]) and toy_composed(told)[0] == run


@given(st.dictionaries(st.sampled_from(["dropout", "left.dropout", "right.dropout"]), st.floats(0, 1)))
@settings(max_examples=50)
def test_whatever_is_given_to_two_components_comes_back(given):
    run, found = toy_composed(given)
    assert toy_composed(flat(found))[0] == run


def test_a_key_of_the_run_keeps_its_name_where_a_component_differs_in_it():
    told = {("", "x"): 1, ("left", "x"): 1, ("right", "x"): 2}
    assert names(told) == {("", "x"): "x", ("left", "x"): "left.x", ("right", "x"): "right.x"}
    assert {place: resolve.given_to(flat(told), *place) for place in told} == told


def test_the_real_run_tells_apart_what_its_head_and_a_new_loss_call_dropout(two_dropouts):
    found = told({"loss": "clouded"})
    assert (found["head.dropout"], found["loss.dropout"]) == (0.1, 0.5) and "dropout" not in found
    run = run_of(found)
    assert (run.head.dropout, run.training.loss) == (0.1, Clouded(dropout=0.5))
    assert told({"loss": "clouded", "dropout": 0.2})["dropout"] == 0.2
    assert told({})["dropout"] == 0.1


@given(st.data(), st.sampled_from(["text", "image"]))
@settings(max_examples=300)
def test_the_schema_lets_pass_whatever_is_composed(data, reads):
    words = {**{slot: sorted(options(slot)) for slot in CHOICES}, **SPOKEN}
    names = data.draw(st.sets(st.sampled_from(sorted(words)), max_size=4))
    try:
        found = told({name: data.draw(st.sampled_from(words[name])) for name in names}, reads=reads)
    except BadInput:
        return
    assert SCHEMA.is_valid(found), found
    assert flat(composed(lambda *place: resolve.given_to(found, *place), reads=reads)[1]) == found


@given(st.sampled_from(CHOICES), st.text(max_size=12), st.booleans())
@settings(max_examples=200)
def test_a_name_that_no_component_has_is_refused_by_both(slot, name, qualified):
    place = next((place for place, _, each in every(Run) if each.name == slot), "")
    where = f"{place}.{slot}" if qualified and place else slot
    assert SCHEMA.is_valid({where: name}) == (name in options(slot))


@pytest.mark.parametrize("slot, owner, name", WORDS)
def test_a_word_that_a_key_does_not_know_is_refused_by_both(slot, owner, name):
    each = next(each for place, by, each in every(Run) if (place, by, each.name) == (slot, owner, name))
    assert not SCHEMA.is_valid({name: "no such word"})
    with pytest.raises(BadInput, match=f"{name} is 'no such word'; allowed{owner and ' with '}{owner}: "):
        resolve.allowed(each, "no such word", owner)
    for word in each.schema["enum"]:
        assert SCHEMA.is_valid({name: word}) and resolve.allowed(each, word, owner) == word
        assert not slot or SCHEMA.is_valid({f"{slot}.{name}": word})


def test_the_schema_knows_each_key_plainly_and_for_its_component_and_no_other():
    properties = resolve.property_schema()
    places = {(slot, each.name) for slot, _, each in every(Run) if each.kind != "part"}
    qualified = {f"{slot}.{key}" for slot, key in places if slot}
    assert properties.keys() == {key for _, key in places} | qualified


@pytest.mark.parametrize(
    "key, said",
    [
        ("lr", "every run reads that learns by steps"),
        ("gamma", "is read only where loss is focal or focal_as_released"),
        ("loss.margin", "is read only where loss is ldam or asymmetric_gcl_as_released"),
        ("mixup", "is read only where input is pixels"),
        ("norm_eps", "is read only where norm is fresh or pretrained"),
    ],
)
def test_where_a_key_is_read_is_said_in_words(key, said):
    assert resolve.where_read(key) == said


def test_the_keys_of_a_component_are_what_its_function_takes():
    loss = options("loss")["asymmetric_gcl"]
    single = run_of(told({"loss": "asymmetric_gcl", "noise": 2})).training
    assert resolve.values(single.loss, sampler="shuffled") == {
        "noise": 2.0, "lambda_positive": 0.0, "lambda_negative": 4.0,
    }  # fmt: skip
    assert resolve.values(loss(**dataclasses.asdict(single.loss)), sampler="dual").keys() == {
        each.name for each in settings_of(loss)
    }


def test_every_setting_is_documented_once_with_what_reads_it_its_default_and_its_meaning():
    rows = resolve.documented()
    assert len({(row["read by"], row["setting"]) for row in rows}) == len(rows)
    assert {row["setting"] for row in rows} == resolve.keys()
    assert all(row["meaning"] for row in rows)


def test_components_that_declare_a_key_with_other_bounds_are_refused_by_name(monkeypatch):
    @component("bounded")
    class Bounded:
        """A loss whose gamma is not focal's."""

        gamma: float = key(0.5, "exponent", minimum=0, maximum=1)

    monkeypatch.setattr(training, "Loss", training.Loss | Bounded)
    forget()
    with pytest.raises(BadInput, match="component 'bounded' declares gamma with other bounds"):
        resolve.property_schema()
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    "change, said",
    [
        ({"lr": "high"}, "settings.lr: 'high' is not of type 'number'"),
        ({"lr": -1.0}, "settings.lr: -1.0 is less than or equal to the minimum of 0"),
        ({"batch": 0}, "settings.batch: 0 is less than the minimum of 1"),
        ({"tau": []}, "settings.tau: "),
        ({"select": None}, "settings.select: None is not one of"),
        ({"tuner": ["full"]}, "settings.tuner: "),
        ({"start": "run"}, "settings.start: 'run' is no start"),
        ({"gamma": 1.0}, "settings have gamma, which this run does not read"),
    ],
)
def test_settings_that_someone_wrote_by_hand_are_refused_in_one_sentence(change, said):
    told = completed({**NEEDED}, reads="text")
    with pytest.raises(BadInput, match=re.escape(said)):
        run_of({**told, **change})


def test_settings_of_an_older_run_take_defaults_for_what_was_declared_since():
    told = completed({**NEEDED}, reads="text")
    older = {key: value for key, value in told.items() if key != "head_start"} | {"gone": 1}
    assert run_of(older, whole=False) == run_of(told)
    with pytest.raises(BadInput, match="settings lack head_start"):
        run_of(older)
