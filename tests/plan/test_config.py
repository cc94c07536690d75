"""A configuration with a key that nothing reads is refused in one sentence with file and key."""

import ast
import json
import os
from functools import partial
from pathlib import Path

import pytest
from scales import SMALL, scale, small_project

from tailprompt.components.resolve import options, readers
from tailprompt.errors import BadInput
from tailprompt.plan import blocks, config, present
from tailprompt.plan.layers import merge
from tailprompt.plan.named_files import check_named
from tailprompt.plan.runnable import check_files, check_settings
from tailprompt.plan.schemas import hint, read

SCALES = ["paper", "mini", "demo", "mine", "mine-images", "mine-tags", "mine-passages"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project whose configuration is small."""
    return small_project(tmp_path_factory.mktemp("project"))


def refused(root, given, *words):
    with pytest.raises(BadInput) as error:
        whole = config.load(values=given, root=root)
        check_settings(whole, blocks.all_points(whole), root)
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message


def accepted(root, given):
    whole = config.load(values=given, root=root)
    assert check_settings(whole, blocks.all_points(whole), root)


@pytest.mark.parametrize("name", SCALES)
def test_every_scale_is_accepted_and_every_run_has_settings(name):
    whole = scale(name)
    assert all(check_settings(whole, blocks.all_points(whole)).values())


def test_so_are_those_of_the_tests(root):
    for whole in (config.load(["tests/tiny.yaml"]), config.load(root=root)):
        assert all(check_settings(whole, blocks.all_points(whole)).values())


def test_shares_that_leave_a_split_of_prompts_nothing_are_refused_in_the_plan(root):
    given = {"datasets": {"prompts-pair": {"shares": {"dev": 0}}}}
    refused(root, given, "'prompts-pair': shares {dev: 0, test: ")


def test_without_a_scale_it_is_the_papers():
    assert config.load()["scale"] == "paper"


def test_later_wins_deeply_and_lists_are_replaced():
    below, above = {"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}, "d": 4}
    assert merge(below, above) == {"a": {"b": 1, "c": [3]}, "d": 4}
    assert below == {"a": {"b": 1, "c": [1, 2]}}


@pytest.mark.parametrize(
    "text, said",
    [
        ("slotz: 2", "unknown key 'slotz' in the top level; known: .*slots"),
        ("protocols: {glee: {settings: {lr: 1, epoch: 1}}}", "'epoch' in protocols.glee.settings; .*lr"),
        ("protocols: {glle: {seeds: [1]}}", "protocols.glle lacks .*; beside it: glee, mine"),
        ("papers: {glee: {tables: {tabel2: {average: true}}}}", "tabel2 lacks .*; beside it: .*table2"),
        ("datasets: {a/b: {language: en}}", "datasets: 'a/b' is not a name of letters"),
        ("datasets: {.: {language: en}}", "datasets: '.' is not a name of letters"),
        ("backbones: {..: {}}", "backbones: '..' is not a name of letters"),
        ("datasets: {cmid: {settings: {}}}", "unknown key 'settings' in datasets.cmid"),
        ("datasets: {cmid: {path: a.csv}}", "datasets.cmid needs one of path, files"),
        ("datasets: {x: {loader: cmid, language: zh, path: a}}", "datasets.x lacks files"),
        ("datasets: {x: {loader: r52, language: en, files: {corpus: a}}}", "datasets.x.files lacks labels"),
        ("backbones: {bert-base-chinese: {random: {layers: 2}}}", "'layers' in .*: .*num_hidden_layers"),
        ("methods: {new: {norm_eps: foo}}", "'foo' is not backbone .* or a number above 0"),
        ("methods: {new: {norm_eps: -1.0e-5}}", "-1e-05 is not backbone .* or a number above 0"),
        ("protocols: {glee: {settings: {lr: .nan}}}", "lr is nan, not a finite number"),
        ("protocols: {glee: {settings: {epochs: .inf}}}", "epochs is inf, not a finite number"),
        ("protocols: {glee: {settings: {lr: 1e-5}}}", "lr is '1e-5', not a finite number; write 1.0e-5"),
        ("protocols: {glee: {seeds: ['775']}}", "seeds.0 is '775', not .*; write it without quotes"),
        ("protocols: {glee: {seeds: [1.0]}}", "seeds.0 is 1.0, not a whole number"),
        ("protocols: {glee: {seeds: [18446744073709551616]}}", "seeds.0: .* maximum of 4294967295"),
        ("papers: {mine: {tables: {table2: {choose: {values: ['1e-3']}}}}}", "'1e-3' is not a number"),
        ("papers: {glee: {tables: {table2: {metrics: [f2/all]}}}}", "'f2/all' is not .* as f1/all"),
        ("sets: {long_tailed: [cmidd]}", "'cmidd' in sets.long_tailed is none of the datasets; .*cmid"),
        ("corpora: {txt: a.txt}", "'txt' in corpora is taken by no data set or recipe; taken: text"),
        ("sets: {long_tail: [cmid]}", "'long_tail' in sets is taken by no table.*; taken: .*long_tailed"),
        (
            "protocols: {glle: {seeds: [1], backbones: {}, settings: {}}}",
            "'glle' in protocols is taken by no",
        ),
        ("protocols: {glee: {methods: [promt]}}", "'promt' in protocols.glee.methods is none of the methods"),
        ("protocols: {glee: {datasets: {cmidd: {lr: 1}}}}", "'cmidd' in protocols.glee.datasets is none of"),
        ("protocols: {glee: {datasets: {cmid@shots=3: {}}}}", "'cmid@shots=3' in protocols.glee.datasets is"),
        (
            "protocols: {glee: {cells: {cmidd: {}}}}",
            "'cmidd' in protocols.glee.cells is none of the datasets",
        ),
        ("protocols: {glee: {cells: {cmid: {promt: {}}}}}", "'promt' in protocols.glee.cells.cmid is"),
        ("make: {gle: {}}", "'gle' in make is none of the papers; known: glee, mine"),
        (
            "make: {glee: {figures: [figure2]}}",
            "'figure2' in make.glee.figures is none of .*; known: .*figure1",
        ),
        (
            "papers: {glee: {tables: {table2: {methods: [default]}}}}",
            "'default' in .* is none of the methods",
        ),
        ("protocols: {glee: {methods: []}}", "protocols.glee.methods: \\[\\] is not a list of at least one"),
        (
            "protocols: {glee: {methods: [cls-tanh, cls-relu-ldam]}}",
            "'cls-relu-ldam' in protocols.glee.methods is in no table or figure of glee; there: cls-relu, .*",
        ),
        ('scale: "mine\\n"', r"scale: 'mine\\n' is not a name of small letters, digits and -"),
        (
            'datasets: {"tick\\n": {language: en, path: a.csv}}',
            r"datasets: 'tick\\n' is not a name of letters",
        ),
        (
            f"datasets: {{{'x' * 101}: {{language: en, path: a.csv}}}}",
            "x' is not a name of letters, .*at most 100",
        ),
        ("datasets: {x: {language: EN, path: a.csv}}", "'EN' is not a language of small letters"),
        ("datasets: {x: {language: en, path: a.csv, sha256: abc}}", "'abc' is not a SHA-256 of 64 hex"),
        ("datasets: {x: {language: en, path: '{a}.csv'}}", "'{a}.csv' is not a path without braces"),
        (
            "datasets: {x: {language: en, files: {all: '{a}.csv'}}}",
            "files.all: '{a}.csv' is not a path without",
        ),
        (
            "datasets: {x: {language: en, files: {all: {path: '{a}.csv'}}}}",
            "path: '{a}.csv' is not a path without",
        ),
        ('datasets: {cmid: {verbalizer: "a\\nb"}}', "verbalizer: .* is not a path without braces"),
        ("backbones: {x: {family: bert, path: ''}}", "backbones.x.path: '' is not a path without braces"),
        ("backbones: {x: {family: bert, hub: a b, revision: main}}", "is not a (repository of|commit of 40)"),
        (
            "protocols: {glee: {settings: {start: {method: prompt}}}}",
            "glee.settings: 'start' is not a setting for",
        ),
        (
            "protocols: {glee: {datasets: {cmid: {language: en}}}}",
            "datasets.cmid: 'language' is not a setting for",
        ),
        (
            "protocols: {glee: {cells: {cmid: {prompt: {start: null}}}}}",
            "cmid.prompt: 'start' is not a setting for",
        ),
        ("backbones: {bert-base-chinese: {settings: {title: x}}}", "settings: 'title' is not a setting for"),
        ("methods: {prompt: {features: [x]}}", "methods.prompt: 'features' is not a setting of a method"),
        ("papers: {glee: {tables: {table2: {metrics: [accuracy/class:x]}}}}", "'accuracy/class:x' is not"),
        (
            "papers: {mine: {tables: {table2: {choose: {values: ['a,lr=1']}}}}}",
            "'a,lr=1' is not a number, or a word",
        ),
        (
            "papers: {glee: {tables: {table1: {metrics: [f1/all]}}}}",
            "unknown key 'metrics' in .*; known: caption",
        ),
        ("papers: {glee: {tables: {claims: {claims: []}}}}", "is not a mapping of at least one claim"),
        ("papers: {glee: {tables: {table2: {methods: []}}}}", "methods: .* is not a list of at least one"),
        ("papers: {glee: {figures: {figure4: {classes: []}}}}", "classes: .* is not a list of at least one"),
        (
            "papers: {glee: {figures: {figure1: {kind: weight_norms}}}}",
            "papers.glee.figures.figure1 lacks methods",
        ),
        (
            "methods: {pt: {start: {folder: a, method: pt}}}",
            "methods.pt.start: {.*} is not a folder alone, or the keys of a run alone",
        ),
        ("methods: {pt: {start: {folder: a, seed: 1}}}", "{.*} is not a folder alone, or the keys of a run"),
        (
            "methods: {pt: {start: {prompts: own, dataset: cmid}}}",
            "pt.start.dataset: 'cmid' is not read beside prompts",
        ),
        ("methods: {prompt: {start: {method: promt}}}", "'promt' in methods.prompt.start.method is none of"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_its_place_and_what_is_known(root, tmp_path, text, said):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(text)
    second.write_text("threads: 2")
    with pytest.raises(BadInput, match=f"^{first}: .*{said}"):
        config.load([SMALL, first, second], root=root)


@pytest.mark.parametrize("layer", ["--config", "a file"])
def test_a_method_of_the_scale_alone_is_taken_by_something(tmp_path, layer):
    told, file = {"methods": {"promt": {"lr": 0.5}}}, tmp_path / "mine.yaml"
    file.write_text(json.dumps(told))
    given = (["config/demo.yaml"], told) if layer == "--config" else (["config/demo.yaml", file], None)
    with pytest.raises(BadInput, match="'promt' in methods is taken by no table, .*; taken: .*, prompt,"):
        config.load(*given)
    new = {"mine": {"start": {"method": "cls-tanh"}}, "again": {"start": {"method": "mine"}}}
    with pytest.raises(BadInput, match="'again' in methods"):
        config.load(["config/demo.yaml"], {"methods": new})
    new["again"]["title"] = "Run by its path"
    assert config.load(["config/demo.yaml"], {"methods": new})


def test_a_file_without_a_scale_does_not_mean_the_papers(root, tmp_path):
    mine, default = tmp_path / "mine.yaml", root / config.SCALE
    mine.write_text("threads: 2")
    with pytest.raises(BadInput, match="mine.yaml names no scale; write scale: NAME"):
        config.load([mine], root=root)
    assert config.load([default, mine], root=root)["scale"] == "small"
    assert config.load([mine], config.read(default) | {"scale": "other"}, root)["scale"] == "other"
    assert config.load(values={"threads": 2}, root=root)["scale"] == "small"
    assert config.load(values={"scale": "again"}, root=root)["make"] == {"glee": {}}


def test_null_drops_a_paper_that_an_earlier_file_makes(root):
    both = {"make": {"mine": {"tables": [], "figures": []}}}
    assert "mine" in config.load(values=both, root=root)["make"]
    assert config.load(values={"make": {**both["make"], "mine": None}}, root=root)["make"] == {"glee": {}}


@pytest.mark.parametrize(
    "given, words",
    [
        ({"datasets": {"new": {"path": "a.csv"}}}, ["datasets.new lacks language"]),
        ({"datasets": {"new": {"language": "en"}}}, ["datasets.new needs one of path, files"]),
        (
            {"datasets": {"new": {"language": "en", "path": "a", "loader": "image_lists"}}},
            ["datasets.new.loader is 'image_lists'; allowed: table"],
        ),
        (
            {"datasets": {"new": {"language": "image", "path": "a", "loader": "table"}}},
            ["datasets.new.loader is 'table'; allowed: cifar100"],
        ),
        (
            {"datasets": {"new": {"language": "image", "path": "a", "loader": "image_folder"}}},
            ["datasets.new.path: 'a' is not read by this loader", "root"],
        ),
        (
            {"datasets": {"new": {"language": "image", "files": {"tst": "a"}, "loader": "image_lists"}}},
            ["unknown key 'tst' in datasets.new.files; known: all, dev, test, train"],
        ),
        (
            {"datasets": {"new": {"language": "image", "files": {"raw": "a"}, "loader": "cifar100"}}},
            ["datasets.new.files needs one of all, train and test"],
        ),
        (
            {
                "datasets": {
                    "x": {"language": "image", "files": {"all": "a", "test": "b"}, "loader": "image_lists"}
                }
            },
            ["datasets.x.files", "is not one list of all images, or one for each of train, dev and test"],
        ),
        (
            {"backbones": {"bert-mini": {"device_map": "auto"}}},
            ["backbones.bert-mini.device_map: 'auto' is not taken by this family; a T5 alone"],
        ),
        (
            {"backbones": {"t5-mini": {"cards": 2}}},
            ["backbones.t5-mini lacks device_map, without which cards is not read"],
        ),
        (
            {"backbones": {"t5-xl": {"cards": 0}}},
            ["backbones.t5-xl.cards: 0 is not a number of GPUs from 1"],
        ),
        ({"backbones": {"t5-xl": {"dtype": "half"}}}, ["t5-xl.dtype is 'half'; allowed: float32, bfloat16"]),
        ({"backbones": {"t5-xl": {"device_map": "all"}}}, ["t5-xl.device_map is 'all'; allowed: auto"]),
        (
            {"backbones": {"bert-mini": {"size": 32}}},
            ["backbones.bert-mini.size: 32 is not taken by this family"],
        ),
        ({"datasets": {"imagenet-a": {"trained_on": "imagenet"}}}, ["'imagenet'", "imagenet-lt"]),
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
        (
            {"make": {"mine": {"tables": [], "figures": ["figure1"]}}},
            ["'figure1' in make.mine.figures is none of the papers.mine.figures", "known: none"],
        ),
        (
            {"make": {"glee": {"tables": [], "figures": []}}},
            ["make asks for no table"],
        ),
        ({"sets": {"long_tailed": []}}, ["has no data set", "sets.long_tailed"]),
        ({"methods": {"prompt": {"start": {"method": "prompt"}}}}, ["'prompt' starts from", "builds on it"]),
        ({"papers": {"glee": {"tables": {"table2": {"methods": ["prompt@lr=NaN"]}}}}}, ["lr is nan"]),
        ({"datasets": {"cmid": {"template": "{text}"}}}, ["prompt on cmid", "'{text}' needs", "{mask}"]),
        ({"papers": {"glee": {"tables": {"table2": {"methods": ["prompt@lr=1,lr=2"]}}}}}, ["a key twice"]),
    ],
)
def test_a_wrong_value_is_one_sentence_with_what_is_allowed(root, given, words):
    refused(root, given, *words)


def test_snakemakes_words_inside_braces_get_their_types_back():
    words = {"glee": {"seeds": ["775"], "lr": "1.0e-4", "tied": "false", "name": "prompt"}, "threads": 2}
    typed = {"glee": {"seeds": [775], "lr": 1e-4, "tied": False, "name": "prompt"}, "threads": 2}
    assert config.typed(words) == typed
    line = ["glee={seeds: [775], lr: 1.0e-4, tied: false}", "glee={name: prompt}", "threads=2"]
    assert config.values_of(line) == typed, "as the command line of Snakemake"
    template = {"template": "{text} is {mask}", "date": "2026-01-01", "open": "[1"}
    assert config.typed(template) == template


def test_a_file_that_is_not_there_not_yaml_or_no_mapping_is_one_sentence(tmp_path):
    broken = {"a.yaml": "a: [1", "b.yaml": "- 1", "c.yaml": "a: 1\na: 2\n"}
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    for name in [*broken, "missing.yaml"]:
        with pytest.raises(BadInput, match=name):
            config.read(tmp_path / name)
    with pytest.raises(BadInput, match="key 'a' is given twice, the second time in line 2"):
        config.read(tmp_path / "c.yaml")


def registry(file: str, name: str) -> set[str]:
    """Keys of a dict in a module, and of one of another module in it, read without importing them."""
    nodes = ast.parse(Path(file).read_text("utf-8")).body
    taken = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    places = {each.name: f"src/{node.module.replace('.', '/')}.py" for node in taken for each in node.names}
    for node in nodes:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            pairs = list(zip(node.value.keys, node.value.values, strict=True))
            others = [registry(places[value.id], value.id) for key, value in pairs if key is None]
            return {key.value for key, _ in pairs if key is not None}.union(*others)
    raise AssertionError(f"no {name} in {file}")


@pytest.mark.parametrize(
    "schema, place, file, name",
    [
        ("backbones", "additionalProperties.properties.family", "model/backbones.py", "FAMILIES"),
        ("datasets", "$defs.texts", "data/table.py", "LOADERS"),
        ("datasets", "additionalProperties.properties.shots", "data/groups.py", "SHOTS"),
        ("papers", "$defs.table.properties.kind", "tabulate.py", "KINDS"),
        ("papers", "$defs.figure.properties.kind", "draw.py", "FIGURES"),
        ("papers", "$defs.claim.properties.direction", "report/verdicts.py", "DIRECTIONS"),
        ("papers", "$defs.claim.properties.statistic", "report/tables/claims.py", "STATISTICS"),
    ],
)
def test_schemas_name_what_the_code_has(schema, place, file, name):
    found = read(f"workflow/schemas/{schema}.schema.yaml")
    for key in place.split("."):
        found = found[int(key) if key.isdigit() else key]
    assert set(found["enum"]) == registry(f"src/tailprompt/{file}", name)


@pytest.mark.parametrize(
    "slot, file, name",
    [
        ("tuner", "model/compose.py", "TUNERS"),
        ("head", "model/heads.py", "HEADS"),
        ("norm", "model/heads.py", "NORMS"),
        ("loss", "training/losses.py", "LOSSES"),
        ("sampler", "training/samplers.py", "SAMPLERS"),
        ("optimizer", "training/optimizers.py", "OPTIMIZERS"),
        ("schedule", "training/schedules.py", "SCHEDULES"),
        ("augment", "inputs/images.py", "AUGMENTATIONS"),
    ],
)
def test_components_are_what_the_code_has(slot, file, name):
    assert set(options(slot)) == registry(f"src/tailprompt/{file}", name)


@pytest.mark.parametrize(
    "key, file, name",
    [
        ("precision", "training/precision.py", "PRECISIONS"),
        ("activation", "model/heads.py", "ACTIVATIONS"),
    ],
)
def test_words_of_a_key_are_what_the_code_has(key, file, name):
    ((_, _, declared),) = readers(key)
    assert set(declared.schema["enum"]) == registry(f"src/tailprompt/{file}", name)


def test_schemas_name_the_loaders_of_images():
    found = read("workflow/schemas/datasets.schema.yaml")["$defs"]
    files = ("listings", "imagenet")
    known = set().union(*(registry(f"src/tailprompt/data/{file}.py", "LISTINGS") for file in files))
    assert set(found["images"]["enum"]) == known and set(found["folders"]["enum"]) < known


BLOCK = {"protocol": "mine", "caption": "x"}
CLAIM = {
    "section": "1", "says": "x", "method": "prompt", "than": "cls-tanh", "metric": "f1/all",
    "direction": "greater", "sets": "mine",
}  # fmt: skip


def claimed(claim):
    return {"papers": {"mine": {"tables": {"new": {**BLOCK, "kind": "claims", "claims": {"a": claim}}}}}}


@pytest.mark.parametrize(
    "claim, words",
    [
        ({**CLAIM, "than": "prompt"}, ["--config: claim 'a'", "compares 'prompt' with itself"]),
        ({**CLAIM, "metric": None}, ["metric"]),
        ({key: CLAIM[key] for key in CLAIM if key != "metric"}, ["claims.a lacks metric"]),
        ({**CLAIM, "direction": "equal"}, ["claims.a lacks margin"]),
        ({**CLAIM, "direction": "equal", "margin": 0, "margin_reason": "x"}, ["margin", "minimum of 0"]),
        ({**CLAIM, "margin": 1.0}, ["claims.a lacks margin_reason"]),
        ({**CLAIM, "metric": "f2/all"}, ["'f2/all' is not", "f1/all"]),
        ({**CLAIM, "statistic": "separability"}, ["'f1/all' is not", "gamma", "knn/20"]),
        ({**CLAIM, "metric": "knn/0", "statistic": "separability"}, ["'knn/0' is not", "knn/20"]),
        ({**CLAIM, "statistic": "seed_spread", "beyond": "f1/tail"}, ["statistic"]),
    ],
)
def test_a_claim_that_could_not_be_judged_is_refused(root, claim, words):
    refused(root, claimed(claim), *words)


@pytest.mark.parametrize(
    "what, block, words",
    [
        ("tables", {"kind": "scores", "sets": "mine"}, ["new lacks methods, metrics"]),
        ("tables", {"kind": "scores", "claims": {"a": CLAIM}}, ["papers.mine.tables.new"]),
        ("tables", {"kind": "claims", "sets": "mine"}, ["new lacks claims"]),
        ("figures", {"kind": "features", "sets": "mine", "methods": ["prompt"]}, ["new lacks classes"]),
        ("figures", {"kind": "weight_norms", "sets": "mine"}, ["new lacks methods"]),
        ("figures", {"kind": "score_by_frequency", "sets": "mine"}, ["new lacks methods"]),
    ],
)
def test_a_block_without_what_its_kind_needs_is_refused(root, what, block, words):
    refused(root, {"papers": {"mine": {what: {"new": {**BLOCK, **block}}}}}, "--config", *words)


def test_a_verbalizer_of_a_setting_must_be_there(root):
    given = {"protocols": {"glee": {"settings": {"verbalizer": "no.csv"}}}}
    refused(root, given, "under glee: there is no file no.csv")


def test_a_corpus_that_is_named_must_be_there_unless_nothing_is_made(root):
    """`cmid` stands for a data set that is made of it."""
    with pytest.raises(BadInput, match=r"no no.txt; correct the path, or .*: corpora: \{text: null\}$"):
        check_files(config.load(values={"corpora": {"text": "no.txt"}}, root=root))
    whole = config.load(values={"corpora": {"text": "no.txt"}}, root=root)
    rows = {"cmid": {**whole["datasets"]["cmid"], "corpus": "text"}}
    del rows["cmid"]["files"]
    whole |= {"datasets": {**whole["datasets"], **rows}}
    check_files({**whole, "train": False}, root)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"data_dir": "no/such"}, "data_dir no/such is no folder; correct it, or set data_dir: null"),
        (
            {"datasets": {"cmid": {"annotator": "model", "model": {"folder": "no/such"}}}},
            "'cmid': there is no folder no/such; correct its model.folder",
        ),
        ({"datasets": {"cmid": {"root": "no/such"}}}, "there is no folder no/such; correct its root"),
    ],
)
def test_a_folder_of_data_that_is_named_must_be_there(root, given, said):
    (root / "cmid.csv").touch()
    with pytest.raises(BadInput, match=said):
        check_files(config.load(values=given, root=root), root)


@pytest.mark.parametrize(
    "place", ["results", "results/raw", "results/{}", "results/{}/runs", "results/{}/images"]
)
def test_a_file_in_the_way_of_the_results_is_one_sentence(root, tmp_path, place):
    loaded = config.load(root=root)
    file = tmp_path / place.format(loaded["scale"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    with pytest.raises(BadInput, match=r"^results.* is a file, where a folder of results is wanted; move it"):
        check_files(loaded, tmp_path)


@pytest.mark.parametrize("place", ["results", "results/{}", "results/{}/runs"])
def test_a_link_to_a_disk_that_is_gone_in_the_way_of_the_results_is_one_sentence(root, tmp_path, place):
    loaded = config.load(root=root)
    link = tmp_path / place.format(loaded["scale"])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(BadInput, match=rf"^{link} is a link to .*gone, which leads nowhere; bring back"):
        check_files(loaded, tmp_path)


def of_images(**changes):
    """Changes of the rows of vit-mini."""
    return {"backbones": {name: changes for name in ("vit-mini", "vit-mini-16")}}


def long(scale, length):
    """A scale's texts with this many tokens at most."""
    rows = {"debian-sections": {"max_length": length}} if scale == "demo" else {}
    return {"protocols": {"glee": {"settings": {"max_length": length}, "datasets": rows}}}


@pytest.mark.parametrize("scale", ["demo", "mini"])
@pytest.mark.parametrize(
    "given, words",
    [
        ({"methods": {"lpt": {"shared_blocks": 100}}}, "shared_blocks 100 leaves no block .* 0 to 7"),
        (of_images(settings={"shared_blocks": 8}), "shared_blocks 8 leaves no block"),
        (of_images(size=33), "has patches of 4 pixels; set size to a multiple, not 33"),
        (partial(long, length=10**6), "max_length 1000000 is more than the 512 positions of backbone"),
        (partial(long, length=513), "max_length 513 is more than the 512 positions of backbone 'bert-mini'"),
        ({"methods": {"cls-tanh": {"epochs": 1e300}}}, "epochs: 1e.300 is greater than the maximum of 10000"),
        ({"threads": 100000}, "threads: 100000 is greater than the maximum of 1024"),
    ],
)
def test_what_a_backbone_in_a_folder_has_no_room_for_is_refused_in_the_plan(scale, given, words):
    with pytest.raises(BadInput, match=words):
        whole = config.load([f"config/{scale}.yaml"], given(scale) if callable(given) else given)
        check_settings(whole, blocks.all_points(whole))


def test_the_folder_of_a_backbone_that_a_run_takes_must_be_there(root):
    absent = {"bert-mini": {"path": "no/such"}}
    accepted(root, {"backbones": absent})  # no run takes it
    here = {"backbones": absent, "protocols": {"glee": {"backbones": {"zh": "bert-mini"}}}}
    refused(root, here, "backbone 'bert-mini': there is no folder no/such; correct its path in its row")


@pytest.fixture
def adapter(root, tmp_path):
    """Write what peft says of an adapter, and give a scale that begins from it on bert-mini, 256 wide."""

    def written(**stated):
        stated = {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 100, "token_dim": 256, **stated}
        (tmp_path / "adapter_config.json").write_text(json.dumps(stated))
        (tmp_path / "adapter_model.safetensors").touch()
        begun = {"pt": {"start": {"folder": str(tmp_path)}}}
        return {"methods": begun, "protocols": {"glee": {"backbones": {"zh": "bert-mini"}}}}

    return written


def test_a_run_begins_from_an_adapter_that_is_there(root, adapter, tmp_path):
    begun = {"start": {"folder": "no-such-folder"}}
    said = "start.folder is for tuner: soft_prompt or prefix, not full"
    refused(root, {"methods": {"cls-tanh": begun}}, said)
    refused(root, {"methods": {"pt": begun}}, "no-such-folder has no adapter_config.json; name a folder")
    given = adapter()
    (tmp_path / "adapter_model.safetensors").unlink()
    refused(root, given, "has no adapter_model.safetensors; name a folder in peft's format")
    (tmp_path / "adapter_config.json").write_text("{")
    (tmp_path / "adapter_model.safetensors").touch()
    refused(root, given, "adapter_config.json is not JSON")


@pytest.mark.parametrize(
    "stated, said",
    [
        ({"peft_type": "LORA"}, "has peft_type 'LORA', not 'PROMPT_TUNING'; a run begins from a prompt of"),
        ({"num_virtual_tokens": 20}, "has num_virtual_tokens 20, not 100; "),
        ({"num_virtual_tokens": None}, "has num_virtual_tokens None, not 100; "),
        ({"token_dim": 768}, "has token_dim 768, not 256; "),
    ],
)
def test_a_run_begins_from_an_adapter_of_its_kind_length_and_width(root, adapter, stated, said):
    refused(root, adapter(**stated), "pt on cmid under glee: ", said)


def test_an_adapter_that_fits_is_taken_and_a_width_that_no_one_states_yet_is_the_jobs_to_check(root, adapter):
    accepted(root, adapter())
    accepted(root, adapter(token_dim=None))
    accepted(root, {"methods": adapter(token_dim=768)["methods"]})  # on a backbone not downloaded yet


def with_options(**row):
    """A scale whose pt shows the classes of cmid as options."""
    return {"methods": {"pt": {"template": "{text} {choices} {mask}"}}, "datasets": {"cmid": row}}


def test_options_are_of_a_language_that_has_letters_for_them(root):
    accepted(root, with_options())
    french = {"protocols": {"glee": {"backbones": {"fr": "bert-base-chinese"}}}}
    said = "pt on cmid under glee: template '{text} {choices} {mask}': unknown language of options 'fr'"
    refused(root, with_options(language="fr") | french, said, "known: en, zh")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_verbalizer_has_no_more_classes_than_options_have_letters(root, tmp_path, language):
    words, here = tmp_path / "words.csv", {"protocols": {"glee": {"backbones": {"en": "bert-mini"}}}}
    given = with_options(language=language, verbalizer=str(words)) | here
    rows = ["label,words\n", *(f'"class\n{n}",word {n}\n\n' for n in range(17))]
    words.write_text("".join(rows[:-1]))
    accepted(root, given)
    words.write_text("".join(rows))
    refused(root, given, "pt on cmid under glee: template", "letters up to", "16; the classes are 17")


def test_what_no_file_says_is_missed_in_the_file_of_the_scale(tmp_path):
    (tmp_path / "mine.yaml").write_text("scale: mine\nmake: {glee: {}}\nthreads: 1")
    for values in (None, {"slots": 2}):
        with pytest.raises(BadInput, match=f"^{tmp_path}/mine.yaml: the top level lacks device$"):
            config.load([tmp_path / "mine.yaml"], values)


@pytest.mark.parametrize("value", [False, 2024])
def test_a_word_that_yaml_read_as_another_type_is_to_be_quoted(value):
    assert "quote it" in hint(value, "string") and not hint(True, "integer")


DRAWN = {"kind": "claims", "protocol": "glee", "table": "claims", "caption": "Claims"}


@pytest.mark.parametrize(
    "changes, limits, words",
    [
        ({"table": "table9"}, {}, ["'table9'", "papers.glee.tables"]),
        ({"table": "table1"}, {}, ["'table1' holds no claims"]),
        ({"sets": "long_tailed"}, {}, ["papers.glee.figures.drawn"]),
        (
            {},
            {"tables": ["table1"], "figures": ["drawn"]},
            ["make.glee.figures: 'drawn' is drawn from table"],
        ),
    ],
    ids=["unknown", "other kind", "with data", "not made"],
)
def test_a_figure_of_a_table_that_does_not_fit_is_refused(root, changes, limits, words):
    drawn = {"glee": {"figures": {"drawn": {**DRAWN, **changes}}}}
    refused(root, {"papers": drawn, "make": {"glee": limits}}, *words)


def test_a_figure_is_made_where_its_table_is_and_takes_no_run(root):
    given = {"papers": {"glee": {"figures": {"drawn": DRAWN}}}}
    everything = blocks.shown(config.load(values=given, root=root))
    drawn = everything["figures", "glee", "drawn"]
    assert not blocks.points(drawn) and drawn["table"] == "claims"
    less = blocks.shown(
        config.load(values=merge(given, {"make": {"glee": {"tables": ["table1"]}}}), root=root)
    )
    assert ("figures", "glee", "drawn") not in less and ("figures", "glee", "figure1") in less


def test_without_training_a_figure_of_a_table_is_made_if_the_table_is(root):
    given = {"papers": {"glee": {"figures": {"drawn": DRAWN}}}}
    everything = blocks.shown(config.load(values=given, root=root))
    for here, made in ((True, True), (False, False)):
        parts = {
            name: present.narrowed(block, is_here=lambda _, here=here: here, prepared=lambda _: True)
            for name, block in everything.items()
        }
        kept = blocks.with_tables({name: block for name, block in parts.items() if block})
        assert (("figures", "glee", "drawn") in kept) is made


def test_without_training_what_is_on_disk_of_a_table_that_is_not_made_is_called_stale(root):
    everything = {("tables", "glee", name): {"kind": "scores"} for name in ("a", "b", "c")}
    kept = {("tables", "glee", "c"): {}}
    for name in ("b.md", "c.md", "ab.md"):
        (root / "tables/glee").mkdir(parents=True, exist_ok=True)
        (root / "tables/glee" / name).touch()
    said = present.said(everything, kept, root, scored=1, runs=1).splitlines()
    assert said[1:] == [
        "  not, as none of their runs is here: a of glee, b of glee",
        f"  there still, of other or former runs, and stale: {root}/tables/glee/b.*",
    ]


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "is empty; it needs keys and values"),
        (b"# nothing but this\n---\n", "is empty; it needs keys and values"),
        (b"{}", "is empty; it needs keys and values"),
        (b"- a\n", "must hold keys and values, not a list"),
        (b"some words\n", "must hold keys and values, not a str"),
        (b"a:\n\tb: 1\n", "while scanning .* line 2, column 1"),
        ("scale: x\n".encode("utf-16"), r"is not UTF-8 \(byte 0\); save it as UTF-8"),
        ("# 0123456789012345é\nscale: x\n".encode("latin-1"), r"is not UTF-8 \(byte 18\); save it as UTF-8"),
        (b"scale: 2020-06-31\n", "day "),
        (b"a: " + 5000 * b"[" + b"\n", ""),
        (b"scale: 1" + 5000 * b"0" + b"\n", "Exceeds the limit"),
        (None, "Is a directory"),
        ("absent", "No such file or directory"),
    ],
)
def test_a_file_that_holds_no_configuration_is_one_sentence_with_its_name(tmp_path, content, says):
    file = tmp_path / "own.yaml"
    file.mkdir() if content is None else content == "absent" or file.write_bytes(content)
    with pytest.raises(BadInput, match=rf"^config file {file}: .*{says}") as error:
        config.load(["config/demo.yaml", file])
    assert "\n" not in str(error.value)


def in_place(kind, place):
    """What is not a file with rows, in the place of one."""
    made = {
        "folder": place.mkdir,
        "pipe": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place.name),
        "broken link": lambda: place.symlink_to("gone.csv"),
        "nothing": lambda: None,
        "empty file": place.touch,
        "header": lambda: place.write_text("\ufeffsentence,topic\n\n"),
    }
    made[kind]()


@pytest.mark.parametrize(
    "kind, says",
    [
        ("folder", "own.csv is a folder, where a file is wanted; correct its path in its row"),
        ("pipe", "own.csv is a pipe, where a file is wanted; correct its path in its row"),
        ("loop", "own.csv is a link to own.csv, which leads to no file; correct its path in its row"),
        ("broken link", "own.csv is a link to gone.csv, which leads to no file; correct its path in its row"),
        ("nothing", "there is no file own.csv; correct its path in its row"),
        ("empty file", "own.csv has no rows; write some, or correct its path in its row"),
        ("header", "own.csv has no rows; write some, or correct its path in its row"),
    ],
)
@pytest.mark.parametrize("form", [lambda path: {"path": path}, lambda path: {"files": {"all": path}}])
def test_what_stands_in_the_place_of_a_file_of_ones_own_is_said_before_any_job(tmp_path, kind, says, form):
    in_place(kind, tmp_path / "own.csv")
    with pytest.raises(BadInput, match=rf"^data set 'own': {says}$"):
        check_named("own", form("own.csv"), tmp_path)
    (tmp_path / "other.csv").write_text("sentence,topic\na song,music\n")
    check_named("own", form("other.csv"), tmp_path)
