"""The configuration is refused where it says what nobody reads, in one sentence with file and key."""

import ast
from pathlib import Path

import pytest
import yaml

from tailprompt import blocks, config
from tailprompt.errors import BadInput

SCALES = ["config/paper.yaml", "config/mini.yaml", "config/demo.yaml", "config/mine.yaml", "tests/tiny.yaml"]


def refused(given, *words):
    with pytest.raises(BadInput) as error:
        whole = config.load(given, "mine.yaml")
        config.check_settings(whole, blocks.all_points(whole))
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_accepted_and_every_run_has_settings(scale):
    whole = config.load(config.read(scale), scale)
    assert all(config.check_settings(whole, blocks.all_points(whole)).values())


def test_without_a_scale_it_is_the_papers():
    assert config.load({})["scale"] == "paper"


def test_later_wins_deeply_and_lists_are_replaced():
    below, above = {"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}, "d": 4}
    assert config.merge(below, above) == {"a": {"b": 1, "c": [3]}, "d": 4}
    assert below == {"a": {"b": 1, "c": [1, 2]}}


def test_a_mistyped_key_is_named_with_its_file_and_the_known_keys():
    refused(
        {"protocols": {"glee": {"settings": {"lerning_rate": 1}}}},
        "mine.yaml",
        "'lerning_rate'",
        "protocols.glee.settings",
        "lr",
    )
    refused({"slotz": 2}, "mine.yaml", "'slotz'", "top level", "slots")


@pytest.mark.parametrize(
    "given, words",
    [
        ({"datasets": {"new": {"path": "a.csv"}}}, ["datasets.new lacks language"]),
        ({"datasets": {"new": {"language": "en"}}}, ["datasets.new needs some of path, files"]),
        ({"languages": {"en": {"templat": "x"}}}, ["languages.en", "templat", "template"]),
        (
            {"backbones": {"new": {"family": "bert", "hub": "a/b"}}},
            ["backbones.new needs one of path, hub and revision"],
        ),
        ({"device": "gpu"}, ["device is 'gpu'", "cuda"]),
        ({"threads": 0}, ["threads", "minimum"]),
        ({"methods": {"new": {"loss": "focl"}}}, ["methods.new.loss", "focl", "focal", "ldam"]),
        ({"protocols": {"glee": {"settings": {"lr": "1e-5"}}}}, ["1e-5", "write 1.0e-5"]),
        ({"backbones": {"new": {"hub": "a/b", "revision": "main"}}}, ["backbones.new"]),
        ({"datasets": {"a/b": {"language": "en"}}}, ["a/b"]),
        ({"papers": {"glee": {"tables": {"table9": {"kind": "scores"}}}}}, ["table9"]),
        ({"make": {"gle": {}}}, ["gle", "glee"]),
        ({"make": {"glee": {"tables": ["table9"]}}}, ["table9", "table1"]),
        ({"sets": {"long_tailed": ["cmidd"]}}, ["cmidd", "cmid"]),
        ({"sets": {"long_tailed": ["cmid@shot=3"]}}, ["shot", "shots"]),
        ({"papers": {"glee": {"tables": {"table2": {"methods": ["promt"]}}}}}, ["promt", "prompt"]),
        ({"papers": {"glee": {"tables": {"table2": {"methods": ["prompt@lossy=1"]}}}}}, ["lossy", "loss"]),
        ({"papers": {"glee": {"tables": {"table2": {"methods": ["prompt@loss=focl"]}}}}}, ["focl", "focal"]),
        ({"papers": {"glee": {"tables": {"table2": {"protocol": "gle"}}}}}, ["gle", "glee"]),
        ({"papers": {"glee": {"tables": {"table2": {"sets": "long"}}}}}, ["long", "long_tailed"]),
        ({"protocols": {"glee": {"backbones": {"zh": "bert-base"}}}}, ["bert-base", "bert-base-chinese"]),
    ],
)
def test_a_wrong_value_is_one_sentence_with_what_is_allowed(given, words):
    refused(given, *words)


def test_snakemakes_words_inside_braces_get_their_types_back():
    words = {"glee": {"seeds": ["775"], "lr": "1.0e-4", "tied": "false", "name": "prompt"}, "threads": 2}
    typed = {"glee": {"seeds": [775], "lr": 1e-4, "tied": False, "name": "prompt"}, "threads": 2}
    assert config.typed(words) == typed


def test_a_file_that_is_not_there_not_yaml_or_no_mapping_is_one_sentence(tmp_path):
    broken = {"a.yaml": "a: [1", "b.yaml": "- 1", "c.yaml": "a: 1\na: 2\n"}
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    for name in [*broken, "missing.yaml"]:
        with pytest.raises(BadInput, match=name):
            config.read(tmp_path / name)


def registry(file: str, name: str) -> set[str]:
    """Keys of a dict in a module, read without importing it."""
    for node in ast.parse(Path(file).read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return {key.value for key in node.value.keys}
    raise AssertionError(f"no {name} in {file}")


@pytest.mark.parametrize(
    "schema, place, file, name",
    [
        ("settings", "properties.loss", "losses.py", "LOSSES"),
        ("settings", "properties.sampler", "samplers.py", "SAMPLERS"),
        ("settings", "properties.head", "compose.py", "HEADS"),
        ("settings", "properties.tuner", "tuners/__init__.py", "TUNERS"),
        ("settings", "properties.activation", "heads.py", "ACTIVATIONS"),
        ("settings", "properties.norm", "heads.py", "NORMS"),
        ("backbones", "additionalProperties.properties.family", "backbones.py", "FAMILIES"),
        ("datasets", "additionalProperties.properties.loader", "data/__init__.py", "LOADERS"),
        ("papers", "$defs.table.properties.kind", "tabulate.py", "KINDS"),
        ("papers", "$defs.figure.properties.kind", "draw.py", "FIGURES"),
        ("papers", "$defs.claim.properties.direction", "claims.py", "DIRECTIONS"),
        ("papers", "$defs.claim.properties.statistic", "tables/claims.py", "STATISTICS"),
    ],
)
def test_schemas_name_what_the_code_has(schema, place, file, name):
    found = yaml.safe_load(Path(f"workflow/schemas/{schema}.schema.yaml").read_text("utf-8"))
    for key in place.split("."):
        found = found[key]
    assert set(found["enum"]) == registry(f"src/tailprompt/{file}", name)
