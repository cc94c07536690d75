"""One set of versions: constraints.txt; environments and pyproject agree with it and name no index."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILES = [
    "constraints.txt",
    "environment.yml",
    "Makefile",
    "pyproject.toml",
    *map(str, Path("envs").glob("*.yaml")),
]


def pins() -> dict[str, str]:
    lines = [line for line in Path("constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


@pytest.mark.parametrize("file", sorted(Path("envs").glob("*.yaml")), ids=str)
def test_conda_environments_have_the_constraints_versions(file):
    inside = yaml.safe_load(file.read_text())["dependencies"][-1]["pip"]
    stated = {
        canonicalize_name(name): version for name, _, version in (line.partition("==") for line in inside)
    }
    assert stated.items() <= pins().items()


def test_what_pyproject_asks_for_is_pinned_within_its_range():
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    asked = [
        Requirement(line) for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]
    ]
    for requirement in asked:
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), str(requirement)


@pytest.mark.parametrize("file", FILES)
def test_no_index_is_named(file):
    assert not re.search(r"index-url|find-links|https?://", Path(file).read_text())
