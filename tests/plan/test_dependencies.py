"""The source files that a module depends on, which rules take as input."""

import os
from pathlib import Path

import pytest

from tailprompt.plan.dependencies import digest, sources

FILES = {
    "pkg/__init__.py": "",
    "pkg/top.py": "import json\nfrom pkg import absolute\nfrom .near import thing\n",
    "pkg/absolute.py": "import pkg.sub.deep\n",
    "pkg/near.py": "from . import circle\nthing = 1\n",
    "pkg/circle.py": "from pkg import near\n",
    "pkg/sub/__init__.py": "from .inside import value\n",
    "pkg/sub/deep.py": "from ..late import later\n",
    "pkg/sub/inside.py": "value = 1\n",
    "pkg/late.py": "def later():\n    from pkg import lazy\n",
    "pkg/lazy.py": "",
    "pkg/unused.py": "",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return str(tmp_path)


def found(module, root, **options):
    return {str(Path(file).relative_to(root)) for file in sources(module, root, **options)}


def test_imports_are_followed_absolute_relative_lazy_in_packages_and_in_circles(root):
    assert found("pkg.top", root) == FILES.keys() - {"pkg/unused.py"}


def test_a_package_imports_what_its_init_does(root):
    assert found("pkg.sub", root) == {"pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/inside.py"}


def test_a_package_can_be_left_out(root):
    assert not any("sub" in file for file in found("pkg.top", root, without="pkg.sub"))


@pytest.mark.parametrize("file, same", [("unused", True), ("near", False), ("sub/inside", False)])
def test_one_digest_tells_of_the_content_of_all_of_them_whatever_their_times(root, file, same):
    before, path = digest("pkg.top", root), Path(root, f"pkg/{file}.py")
    status, text = path.stat(), path.read_text()
    for edited, unchanged in ((f"{text}# edited\n", same), (text, True)):
        path.write_text(edited)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (digest("pkg.top", root) == before) == unchanged


def test_a_module_that_is_not_there_is_an_error(root):
    with pytest.raises(FileNotFoundError, match="pkg.missing"):
        sources("pkg.missing", root)


def test_figures_and_training_share_nothing_but_leaves():
    both = set(sources("tailprompt.train")) & set(sources("tailprompt.tabulate"))
    shared = {Path(file).name for file in both}
    tasks = {path.name for path in Path("src/tailprompt/tasks").glob("*.py")}
    leaves = {"__init__.py", "errors.py", "files.py", "seals.py", "points.py", "places.py", "agreement.py"}
    assert shared <= leaves | tasks


@pytest.mark.parametrize("module", ["tables.scores", "tables.claims", "figures.score_by_frequency"])
def test_tables_and_figures_know_the_names_of_runs_and_nothing_of_their_settings(module):
    names = {Path(file).stem for file in sources(f"tailprompt.report.{module}")}
    assert "points" in names and not names & {"plan", "rows", "starts", "blocks", "config"}


def test_an_import_is_found_in_whatever_statement_it_stands(root):
    around = [
        "try:\n    {}\nexcept OSError:\n    pass\n",
        "try:\n    pass\nexcept OSError:\n    {}\n",
        "try:\n    pass\nexcept OSError:\n    pass\nelse:\n    {}\n",
        "try:\n    pass\nfinally:\n    {}\n",
        "if not root:\n    pass\nelif root:\n    pass\nelse:\n    {}\n",
        "match root:\n    case 1:\n        {}\n",
        "with root:\n    for each in root:\n        {}\n",
        "class One:\n    async def two(self):\n        while True:\n            {}\n",
    ]
    for number, text in enumerate(around):
        Path(root, f"pkg/around{number}.py").write_text(text.format("import pkg.unused"))
        assert "pkg/unused.py" in found(f"pkg.around{number}", root), text
