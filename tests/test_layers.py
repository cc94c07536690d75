"""Who may import whom: concepts know no stages, and whatever plans or reports knows no torch."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tailprompt.sources import imported, sources

PACKAGE = Path("src/tailprompt")
ORDER = [  # a line may import from the lines above it, and a package from itself
    "__init__ errors sources",
    "files patterns points quotas schemas template matching metrics overlay separability tuning",
    "placement tensors recipes references rows answers losses samplers inject sheet cards card data state "
    "augment corruption provenance",
    "adapter annotate backbones bootstrap config decode encode images pack prepare records score starts "
    "tasks typeset vocabulary",
    "plan tuners",
    "blocks heads claims loop parameters formats",
    "compose examples forecast objective runnable figures tables",
    "outcome weights",
    "draw export predict pretrain tabulate train",
    "__main__",
]
RANK = {name: rank for rank, line in enumerate(ORDER) for name in line.split()}
MODULES = sorted(
    str(file.relative_to(PACKAGE).with_suffix("")).replace("/", ".") for file in PACKAGE.rglob("*.py")
)
HEAVY = {"torch", "transformers", "timm", "torchvision", "safetensors.torch"}


def part(module: str) -> str:
    """`data` for tailprompt.data.tables."""
    return module.removeprefix("tailprompt.").split(".")[0]


@cache
def statements(file: str) -> list[list[str]]:
    """The modules that each import statement of a file names."""
    nodes = list(ast.walk(ast.parse(Path(file).read_text("utf-8"))))
    plain = [[alias.name for alias in node.names] for node in nodes if isinstance(node, ast.Import)]
    return plain + [[node.module] for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_up_the_order(module):
    assert part(module) in RANK, f"give {module} its place in ORDER"
    name = f"tailprompt.{module.removesuffix('.__init__').removesuffix('__init__')}".rstrip(".")
    ours = {part(other) for other in imported(name) if other.startswith("tailprompt.")} & RANK.keys()
    below = {other for other in ours - {part(module)} if RANK[other] >= RANK[part(module)]}
    assert not below, f"{module} imports {', '.join(below)}"


@pytest.mark.parametrize(
    "stage",
    ["blocks", "config", "runnable", "forecast", "cards", "decode", "prepare", "score", "tabulate", "draw"],
)
def test_only_training_knows_torch(stage):
    for file in sources(f"tailprompt.{stage}"):
        for names in statements(file):
            heavy = {name for name in names if name in HEAVY or name.split(".")[0] in HEAVY}
            assert not heavy or "safetensors.numpy" in heavy, f"{file} imports {', '.join(heavy)}"


def test_planning_preparing_scoring_and_reporting_bring_no_torch_with_them():
    modules = "__main__, decode, draw, prepare, score, tabulate"
    plan = "__main__.dispatch(['plan', '--configfile', 'config/demo.yaml'])"
    code = f"import sys; from tailprompt import {modules}; {plan}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_the_plan_needs_the_standard_library_only():
    files = [Path(file) for file in sources("tailprompt.blocks")]
    own = {"__init__", "blocks", "errors", "plan", "points", "rows", "starts"}
    assert {file.stem for file in files} == own
