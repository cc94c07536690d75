"""What components declare: each key means something, takes its default, and the code has its function."""

from __future__ import annotations

import inspect
from typing import Literal

import pytest

from tailprompt.components import declare, resolve
from tailprompt.components.declare import ABSENT, choice, component, every, key, part, settings_of
from tailprompt.components.run import Run
from tailprompt.components.training import Training
from tailprompt.inputs.images import AUGMENTATIONS
from tailprompt.inputs.layouts import LAYOUTS
from tailprompt.model.compose import TUNERS
from tailprompt.model.heads import HEADS, NORMS
from tailprompt.plan.schemas import Strict
from tailprompt.training.losses import LOSSES
from tailprompt.training.objective import BRANCH
from tailprompt.training.optimizers import OPTIMIZERS
from tailprompt.training.samplers import SAMPLERS
from tailprompt.training.schedules import SCHEDULES

DECLARED = [(slot, owner, each) for slot, owner, each in every(Run) if each.kind != "part"]
KEYS = [place for place in DECLARED if place[2].kind == "key"]
REGISTRIES = {
    "augment": AUGMENTATIONS,
    "head": HEADS,
    "loss": LOSSES,
    "norm": NORMS,
    "optimizer": OPTIMIZERS,
    "sampler": SAMPLERS,
    "schedule": SCHEDULES,
    "tuner": TUNERS,
}
OF_TRAINING = {"optimizer": {"lr"}, "schedule": {"warmup"}}  # what Training gives each, beside its own keys
MADE = {"epsilon"}  # what a loss draws unless a test gives it
COUNTED = {"dual_weight"}  # read by the objective, which adds the branches


def said(place) -> str:
    slot, owner, each = place
    return f"{slot}-{owner}-{each.name}".strip("-")


def keys_of(option: type) -> set[str]:
    """The keys of a component."""
    return {each.name for each in settings_of(option) if each.kind == "key"}


def hyper_parameters(function) -> dict:
    """What a function takes by name only, with the defaults."""
    taken = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in taken if one.kind is one.KEYWORD_ONLY}


def allows(schema: dict, value) -> bool:
    """Whether a schema takes a value as JSON has it."""
    return Strict(schema).is_valid(list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize("place", DECLARED, ids=said)
def test_every_setting_has_a_meaning_in_words_that_end_without_a_stop(place):
    says = place[2].says
    assert says.strip() == says != "" and not says.endswith(".")


@pytest.mark.parametrize("place", KEYS, ids=said)
def test_every_key_has_a_type_or_words(place):
    schema = place[2].schema
    assert "type" in schema or "enum" in schema
    Strict.check_schema(schema)


@pytest.mark.parametrize("place", [place for place in KEYS if place[2].default is not ABSENT], ids=said)
def test_every_default_is_allowed_and_in_its_own_type(place):
    each = place[2]
    assert allows(each.schema, each.default)
    assert repr(each.value(each.default)) == repr(each.default)


@pytest.mark.parametrize("place", [place for place in DECLARED if place[2].kind == "choice"], ids=said)
def test_every_choice_has_a_default_among_its_components(place):
    each = place[2]
    assert {each.default, *each.others.values()} <= each.options.keys()


@pytest.mark.parametrize("place", DECLARED, ids=said)
def test_what_a_field_is_read_with_is_there_to_be_chosen(place):
    for slot, names in place[2].when.items():
        known = {"train", "test", "pairs"} if slot == "rows" else resolve.options(slot)
        assert names and set(names) <= set(known)


def test_a_key_of_several_components_takes_the_same_values_in_each_but_for_words():
    schemas = {}
    for _, _, each in KEYS:
        bounds = {name: value for name, value in each.schema.items() if name != "enum"}
        assert schemas.setdefault(each.name, bounds) == bounds, each.name


def test_no_key_has_the_name_of_a_choice_and_choices_of_one_name_are_among_the_same():
    choices = [each for _, _, each in DECLARED if each.kind == "choice"]
    assert not {each.name for each in choices} & {each.name for _, _, each in KEYS}
    assert all(each.options == resolve.options(each.name) for each in choices)


@pytest.mark.parametrize("slot", REGISTRIES)
def test_components_are_called_as_what_makes_them(slot):
    assert resolve.options(slot).keys() == REGISTRIES[slot].keys()
    assert all(option.name == name for name, option in resolve.options(slot).items())


def test_inputs_of_texts_are_called_as_their_layouts():
    texts = {name: option for name, option in resolve.options("input").items() if option.reads == "text"}
    plain = {"options", "windows", "tfidf"}  # sequences of their own, laid out as plain is; counts of terms
    assert texts.keys() - plain == LAYOUTS.keys()
    for name, layout in LAYOUTS.items():
        taken = inspect.signature(layout).parameters
        assert keys_of(texts[name]) & {"template", "language"} <= taken.keys()
        assert all(one.default is inspect.Parameter.empty for one in taken.values())


@pytest.mark.parametrize("slot", ["loss", "sampler", "optimizer", "schedule"])
def test_a_function_has_its_components_name_takes_its_keys_and_has_no_defaults(slot):
    for name, option in resolve.options(slot).items():
        function = REGISTRIES[slot][name]
        taken = hyper_parameters(function)
        keys = {key for key in keys_of(option) - COUNTED if not key.endswith(BRANCH)}
        scaled = {"scale"} if getattr(option, "scaled", False) else set()
        scaled |= {"lr"} if getattr(option, "of_rate", False) else set()
        assert function.__name__ == name
        assert taken.keys() - MADE == keys | scaled | OF_TRAINING.get(slot, set())
        assert {taken[key] for key in taken.keys() - MADE} <= {inspect.Parameter.empty}


@pytest.mark.parametrize("slot", ["head", "norm", "tuner"])
def test_what_makes_a_model_takes_its_component_and_has_no_defaults(slot):
    for function in REGISTRIES[slot].values():
        taken = inspect.signature(function).parameters
        assert list(taken)[:2] == ["backbone", "told"]
        assert all(one.default is inspect.Parameter.empty for one in taken.values())


def test_keys_of_a_second_branch_go_with_those_of_the_first():
    for option in resolve.options("loss").values():
        second = {key for key in keys_of(option) if key.endswith(BRANCH)}
        assert {key.removesuffix(BRANCH) for key in second} <= keys_of(option)


def test_training_is_a_part_and_its_keys_are_those_of_no_slot():
    assert {"lr", "epochs", "batch"} <= {each.name for each in settings_of(Training)}
    assert all(slot == "" for slot, _, each in DECLARED if each.name in ("lr", "loss", "augment"))


@component("inner")
class Inner:
    """A component of two keys."""

    words: Literal["a", "b"] = key("a", "words")
    share: float | None = key(None, "a share", minimum=0)


@component("other")
class Other:
    """One of none."""


@component("kept")
class Kept:
    """A part."""

    several: tuple[float, ...] = key((0.0,), "several", items={"type": "number"})


@component("outer")
class Outer:
    """All three kinds of fields."""

    inner: Inner | Other = choice("other", "which", image="inner")
    kept: Kept = part(when={"inner": ("inner",)})
    size: int = key(says="a size", minimum=1)


def test_a_component_is_a_frozen_dataclass_with_the_name_it_was_given():
    assert Outer.name == "outer" and Inner().words == "a"
    with pytest.raises(AttributeError, match="cannot assign"):
        Inner().share = 1.0


def test_fields_are_keys_choices_and_parts_by_their_types():
    inner, kept, size = settings_of(Outer)
    assert (inner.kind, inner.options, inner.default, inner.others) == (
        "choice", {"inner": Inner, "other": Other}, "other", {"image": "inner"},
    )  # fmt: skip
    assert (kept.kind, kept.options, kept.when) == ("part", {"kept": Kept}, {"inner": ("inner",)})
    assert (size.kind, size.default, size.schema) == ("key", ABSENT, {"type": "integer", "minimum": 1})
    words, share = settings_of(Inner)
    assert words.schema == {"enum": ["a", "b"]}
    assert share.schema == {"type": ["number", "null"], "minimum": 0}


def test_what_is_below_has_its_slot_and_owner_and_a_part_those_of_what_it_is_a_part_of():
    found = {(slot, owner, each.name) for slot, owner, each in every(Outer)}
    below = {("inner", "inner", "words"), ("inner", "inner", "share")}
    assert found == {("", "", "inner"), ("", "", "kept"), ("", "", "several"), ("", "", "size"), *below}
    assert all(each.when for _, _, each in every(Outer) if each.name in ("kept", "several"))


@pytest.mark.parametrize(
    "given, schema, typed",
    [
        (1, {"type": "number"}, 1.0),
        (1, {"type": "integer"}, 1),
        (True, {"type": "boolean"}, True),
        (1, {"type": ["number", "string"]}, 1.0),
        ("backbone", {"type": ["number", "string"]}, "backbone"),
        (None, {"type": ["number", "null"]}, None),
        (5, {"enum": [1, 5]}, 5),
        ([0, 1], {"type": "array", "items": {"type": "number"}}, (0.0, 1.0)),
        ([0, 1], {"type": "array", "items": {"type": "integer"}}, (0, 1)),
    ],
)
def test_a_whole_number_becomes_a_float_where_one_is_declared_and_a_list_a_tuple(given, schema, typed):
    value = declare.Setting("a", "key", "", {}, schema=schema).value(given)
    assert repr(value) == repr(typed)
