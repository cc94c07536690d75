"""Names reach the shell as they are: what files and texts are called runs nothing and is not changed."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import stand_ins
import yaml
from project import ROOT, snakemake

from tailprompt.errors import BadInput
from tailprompt.plan.config import load

EVIL = "-x '\"; touch pwned; $(touch pwned) `touch pwned` &|<>*?[a]~#!\\ 数据"
TEXT = f"{EVIL}\n--out {{input}} {{nothing}} {{{{params.x}}}} %s"
NOTED = """
with open("told.jsonl", "a", encoding="utf-8") as file:
    print(json.dumps(sys.argv[1:]), file=file)
"""
MORE = {  # stages without a stand-in
    "decode": """
row, out = json_option(options["--dataset"], "--dataset"), Path(options["--out"])
assert Path(row["root"], "a/1.png").is_file()
new(out)
new(out.with_suffix(".parquet"))
""",
    "card": """
Path(options["--out"]).write_text(json.dumps(json_option(options["--texts"], "--texts")))
""",
    "score": 'new(options["--collect"] + "/scores.parquet")\n',
}
PLACES = ("own/filed", "own/tiny", "judge", "corpus.txt", "tests/other.csv", "tests/words.csv", "photos")


def evil(place):
    """A place with a name that a shell would run."""
    return "/".join(f"{word}{EVIL}" for word in place.split("/"))


def renamed(value):
    """A configuration in which each place has its other name, and each text is one."""
    if isinstance(value, dict):
        texts = {"title", "seen", "data", "licences", "measured", "limits"}
        return {
            key: TEXT if key in texts and isinstance(one, str) else renamed(one) for key, one in value.items()
        }
    return evil(value) if value in (*PLACES, "own") else value


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The project with stand-ins that note what they are told, in a folder of such a name."""
    folder = tmp_path_factory.mktemp("copy") / EVIL
    stand_ins.made(folder)
    for stage, code in MORE.items():
        (folder / f"src/tailprompt/{stage}.py").write_text(stand_ins.OPTIONS + code)
    for stage in (*stand_ins.STAGES, *MORE):
        file = folder / f"src/tailprompt/{stage}.py"
        file.write_text(file.read_text().replace(stand_ins.OPTIONS, stand_ins.OPTIONS + NOTED))
    (folder / "photos/a").mkdir(parents=True)
    (folder / "photos/a/1.png").touch()
    for place in PLACES:
        (folder / evil(place)).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (folder / place).is_dir() else shutil.copy
        copy(folder / place, folder / evil(place))
    (folder / evil("own/filed")).rename(folder / evil("own") / "filed")
    config = yaml.safe_load(stand_ins.SCALE)
    config["datasets"]["photos"] = {"language": "image", "loader": "image_folder", "root": "photos"}
    (folder / "matrix.yaml").write_text(json.dumps(renamed(config)))
    return folder


@pytest.mark.workflow
def test_each_rule_tells_its_stage_names_as_they_are_and_the_shell_runs_nothing_of_them(project):
    made = ["all", "scores", "results/tiny/pretraining/grown/README.md", "results/tiny/data/photos.parquet"]
    scales = ("--configfile", "tests/tiny.yaml", "matrix.yaml")
    done = snakemake(project, *made, *scales, "--profile", "workflow/profiles/local", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert not [*project.rglob("pwned")]
    told = [json.loads(line) for line in (project / "told.jsonl").read_text().splitlines()]
    values = {word for words in told for word in words}
    assert {evil("own"), evil("corpus.txt")} <= values
    texts = json.loads((project / "results/tiny/pretraining/grown/README.md").read_text())
    assert {*texts.values()} == {TEXT}
    assert json.loads((project / "results/tiny/data/toy.json").read_text())["row"]["title"] == TEXT


WORDS = ("resources", "threads")  # numbers, and names from a list
BUILT = ("listing", "learned", "parts", "start", "tokenizer")  # options that are quoted where they are made


def test_every_value_in_a_shell_line_is_quoted():
    rules = "".join(file.read_text("utf-8") for file in sorted((ROOT / "workflow/rules").glob("*.smk")))
    lines = re.findall(r"^    shell:\n((?:        .*\n)+)", rules, re.MULTILINE)
    fields = [field for line in lines for field in re.findall(r"(?<!\{)\{([^{}]+)\}", line)]
    plain = [field for field in fields if not field.endswith(":q")]
    assert len(lines) == rules.count("    shell:\n") and len(fields) > 60
    allowed = {*(f"params.{name}" for name in BUILT)}
    assert not [field for field in plain if field not in allowed and field.split(".")[0] not in WORDS]


NAMES = ("-x", "a b", "a'b", 'a"b', "a;b", "a\nb", "数据", "../x", "a/b", "$(x)", "`x`", "", ".x", "a{b}")


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize(
    "config",
    [
        lambda name: {"scale": name},
        lambda name: {"datasets": {name: {"language": "en", "path": "tests/toy.csv"}}},
        lambda name: {"methods": {name: {"head": "cls"}}},
        lambda name: {"backbones": {name: {"family": "bert", "path": "x"}}},
        lambda name: {"pretraining": {name: {}}},
        lambda name: {"corpora": {name: "x"}},
        lambda name: {"papers": {name: {}}},
        lambda name: {"papers": {"glee": {"tables": {name: {}}}}},
        lambda name: {"papers": {"glee": {"figures": {name: {}}}}},
        lambda name: {"protocols": {name: {}}},
    ],
    ids="scale dataset method backbone recipe corpus paper table figure protocol".split(),
)
def test_a_name_that_becomes_a_folder_is_of_plain_letters_or_refused_in_a_sentence(tmp_path, config, name):
    file = tmp_path / "scale.yaml"
    file.write_text(json.dumps(config(name)))
    with pytest.raises(BadInput, match="a name of") as error:
        load(["tests/tiny.yaml", str(file)])
    assert "\n" not in str(error.value)


BELOW = ("../x", "a/../x", "/etc/x", "-x", "a\nb", "")


@pytest.mark.parametrize("value", ["-x", "a\nb", "", "{x}"])
@pytest.mark.parametrize("key", ["data_dir", "corpora", "path", "verbalizer", "files", "backbone"])
def test_a_path_that_would_pass_for_an_option_is_refused(tmp_path, key, value):
    row = {"language": "en", "path": "tests/toy.csv"}
    config = {
        "data_dir": {"data_dir": value},
        "corpora": {"corpora": {"text": value}},
        "path": {"datasets": {"x": {**row, "path": value}}},
        "verbalizer": {"datasets": {"x": {**row, "verbalizer": value}}},
        "files": {"datasets": {"x": {"language": "en", "files": {"train": {"path": value}}}}},
        "backbone": {"backbones": {"x": {"family": "bert", "path": value}}},
    }[key]
    file = tmp_path / "scale.yaml"
    file.write_text(json.dumps(config))
    with pytest.raises(BadInput, match="is not a path without braces") as error:
        load(["tests/tiny.yaml", str(file)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", BELOW, ids=range(len(BELOW)))
@pytest.mark.parametrize("key", ["name", "member"])
def test_a_download_is_written_into_its_own_folder(tmp_path, key, value):
    entry = {"url": "https://example.org/x.zip", key: value}
    file = tmp_path / "scale.yaml"
    config = {"datasets": {"x": {"language": "en", "files": {"train": entry}}}}
    file.write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"a path without braces, line ends and \.\.") as error:
        load(["tests/tiny.yaml", str(file)])
    assert "\n" not in str(error.value)
