"""Who may import whom: packages open to those named beside them; whatever plans or reports knows no torch.

And how large a module may be.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tailprompt.__main__ import STAGES
from tailprompt.plan.dependencies import imported, sources

PACKAGE = Path("src/tailprompt")
DOORS = {  # package -> packages that it may import from, beside itself and SHARED of the root
    "components": set(),
    "plan": {"components", "data", "inputs", "model", "pretraining", "tasks"},
    "data": {"inputs"},
    "inputs": {"components", "model"},
    "tasks": set(),
    "machine": set(),
    "model": {"components"},
    "training": {"components", "data", "inputs", "model", "tasks"},
    "pretraining": {"components", "data", "inputs"},
    "report": {"plan", "tasks"},
}
SHARED = {"__init__", "errors", "files", "machine", "seals"}
MODULES = sorted(
    str(file.relative_to(PACKAGE).with_suffix("")).replace("/", ".") for file in PACKAGE.rglob("*.py")
)
LINES = 300  # of a module, at the most
HEAVY = {"torch", "transformers", "timm", "torchvision", "safetensors.torch"}


def room(module: str) -> str:
    """`data` for tailprompt.data.readers."""
    return module.removeprefix("tailprompt.").split(".")[0]


@cache
def statements(file: str) -> list[list[str]]:
    """The modules that each import statement of a file names."""
    nodes = list(ast.walk(ast.parse(Path(file).read_text("utf-8"))))
    plain = [[alias.name for alias in node.names] for node in nodes if isinstance(node, ast.Import)]
    return plain + [[node.module] for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


@pytest.mark.parametrize("module", [name for name in MODULES if "." in name])
def test_imports_go_through_doors(module):
    assert room(module) in DOORS, f"give {room(module)} its doors"
    name = f"tailprompt.{module.removesuffix('.__init__')}"
    ours = {room(other) for other in imported(name) if other.startswith("tailprompt.")}
    modules = {room(other) for other in MODULES} & ours
    wrong = modules - DOORS[room(module)] - {room(module)} - SHARED
    assert not wrong, f"{module} imports {', '.join(sorted(wrong))}"


def test_doors_lead_round_no_circle():
    open_to, left = dict(DOORS), set(DOORS)
    while done := {room for room in left if not open_to[room] & left}:
        left -= done
    assert not left, f"{', '.join(sorted(left))} import each other"


def test_the_root_holds_the_stages_only():
    beside = {"__init__", "__main__", "errors", "files", "seals", "attempt"}  # attempt: the command `try`
    assert {name for name in MODULES if "." not in name} == {*STAGES} | beside


def test_no_module_is_over_300_lines():
    files = {name: PACKAGE / f"{name.replace('.', '/')}.py" for name in MODULES}
    lines = {name: len(file.read_text("utf-8").splitlines()) for name, file in files.items()}
    assert not {name: number for name, number in lines.items() if number > LINES}


@pytest.mark.parametrize(
    "stage",
    ["plan.blocks", "plan.config", "plan.runnable", "plan.forecast", "machine.gpus", "decode", "prepare",
     "score", "tabulate", "draw", "bundle", "unbundle"],
)  # fmt: skip
def test_only_training_knows_torch(stage):
    for file in sources(f"tailprompt.{stage}"):
        for names in statements(file):
            heavy = {name for name in names if name in HEAVY or name.split(".")[0] in HEAVY}
            assert not heavy or "safetensors.numpy" in heavy, f"{file} imports {', '.join(heavy)}"


def test_only_figures_import_seaborn():
    files = [file for file in PACKAGE.rglob("*.py") if ["seaborn"] in statements(str(file))]
    assert files and {file.parent.name for file in files} == {"figures"}


def test_the_plan_reads_names_of_metrics_without_the_tasks_that_compute_them():
    assert not {file for file in sources("tailprompt.plan.schemas") if file.endswith("tasks/task.py")}


SLOW = HEAVY | {"sklearn", "seaborn", "scipy.spatial", "scipy.stats", "torch._dynamo"}
LOAD = "from tailprompt.model import backbones; backbones.load({{'family': '{}', 'path': '{}'}})"
SHIPPED = "workflow/resources/backbones"


@pytest.mark.parametrize(
    "code, absent",
    [
        ("from tailprompt.machine import preload", SLOW | {"numpy", "pandas", "tailprompt.train"}),
        ("from tailprompt import bundle, decode, prepare, score, tabulate, unbundle", SLOW | {"matplotlib"}),
        ("from tailprompt import draw, __main__", SLOW),
        ("from tailprompt.__main__ import plan; plan(['--configfile', 'config/demo.yaml'])", SLOW),
        ("from tailprompt.plan import present, standing", SLOW | {"pandas", "requests", "PIL"}),
        ("from tailprompt import train", SLOW - {"torch", "safetensors.torch"} | {"matplotlib"}),
        (LOAD.format("bert", f"{SHIPPED}/bert-mini"), {"timm", "sklearn", "matplotlib"}),
        (LOAD.format("vit", f"{SHIPPED}/vit-mini"), {"transformers", "sklearn", "matplotlib"}),
    ],
    ids=["preload", "light", "draw", "plan", "standing", "train", "text", "image"],
)
def test_a_stage_imports_nothing_slow_that_it_does_not_need(code, absent):
    found = f"import sys; print(sorted({absent} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{found}"], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


@pytest.mark.parametrize("stage", ["backbones", "train"])
def test_a_job_asks_the_preloaded_process_before_it_imports_torch(stage):
    before, torch, _ = (PACKAGE / f"{stage}.py").read_text("utf-8").partition("\nimport torch\n")
    assert torch and 'if __name__ == "__main__":' in before and f'run("tailprompt.{stage}")' in before


@pytest.mark.parametrize(
    "equation", [*(f"LPT Eq. {n}" for n in range(1, 9)), *(f"PPT Eq. {n}" for n in range(2, 6)), "GLEE Eq. 1"]
)
def test_an_equation_is_found_at_a_line_that_computes_it(equation):
    """As docs/notation.md says: `grep -rn "# LPT Eq. 8" src`."""
    found = [
        line
        for file in PACKAGE.rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if f"# {equation}" in line and not line.strip().startswith("#")
    ]
    assert found
