"""What comes from elsewhere is data: no file of it runs code, and none is written outside its folder."""

from __future__ import annotations

import ast
import io
import stat
import tarfile
import zipfile

import pytest
from project import ROOT

from tailprompt.data import archives
from tailprompt.errors import BadInput

SOURCES = sorted(file for place in ("src", "benchmarks") for file in (ROOT / place).rglob("*.py"))
PICKLES = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
NEVER = {"eval", "exec", "os.system", "os.popen", "pd.read_pickle", "pandas.read_pickle", "pickle.load"}
NEVER |= {"pickle.loads", "yaml.unsafe_load", "yaml.full_load"}
METHODS = {"extractall", "to_pickle", "read_pickle"}  # of any object
OPTIONS = {"shell": True, "allow_pickle": True, "weights_only": False, "trust_remote_code": True}


def found(tree):
    """(line, name, keywords) of each call; a keyword that is no constant has the value None."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            yield node.lineno, ast.unparse(node.func), words


def risky(name, words):
    """Why a call might run what a file says, or nothing."""
    if name in NEVER or name.rpartition(".")[2] in METHODS:
        return f"{name} is called"
    if name == "torch.load" and words.get("weights_only") is not True:
        return "torch.load without weights_only=True"
    return next((f"{key}={value}" for key, value in OPTIONS.items() if words.get(key) is value), "")


def imported(tree):
    """The modules that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_no_source_runs_what_a_file_says():
    calls = [(file, *call) for file in SOURCES for call in found(ast.parse(file.read_text("utf-8")))]
    faults = [f"{file}:{line}: {why}" for file, line, *call in calls if (why := risky(*call))]
    assert len(calls) > 5000 and not faults


def test_pickle_is_imported_only_where_cifars_archive_is_read_without_calling_anything():
    users = [file.name for file in SOURCES if PICKLES & {*imported(ast.parse(file.read_text("utf-8")))}]
    assert users == ["listings.py"]  # whose Unpickler tests/test_decode.py feeds an evil pickle


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "np.load(f, allow_pickle=True)",
        "pd.read_pickle(f)",
        "archive.extractall(d)",
        "subprocess.run(c, shell=True)",
        "kind.from_pretrained(f, trust_remote_code=True)",
        "eval(text)",
    ],
)
def test_the_test_would_see(line):
    assert [call for _, *call in found(ast.parse(line)) if risky(*call)]


def tarred(path, name, kind=tarfile.REGTYPE, target=""):
    """A tar archive with a plain file `set/a.txt` and one entry."""
    with tarfile.open(path, "w:gz") as archive:
        for each, type_, link in (("set/a.txt", tarfile.REGTYPE, ""), (name, kind, target)):
            entry = tarfile.TarInfo(each)
            entry.type, entry.linkname = type_, link
            entry.size = 4 if type_ == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(b"evil" if entry.size else b""))


def zipped(path, name, kind=stat.S_IFREG, target="evil"):
    """The same as zip."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set/a.txt", "evil")
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (kind | 0o644) << 16
        archive.writestr(entry, target)


OUTSIDE = ("../../b.txt", "/tmp/b.txt", "set/../../../b.txt", "C:\\b.txt/b.txt")


@pytest.mark.parametrize("packed", [tarred, zipped])
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_is_written_where_it_is_asked_for_wherever_the_archive_wants_it(tmp_path, packed, name):
    folder = tmp_path / "a/b/c"
    folder.mkdir(parents=True)
    packed(folder / "x", name)
    archives.extract(folder / "x", "b.txt", folder / "out")
    assert (folder / "out").read_text() == "evil"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["out", "x"]


TARS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]


@pytest.mark.parametrize("kind", TARS, ids=["symbolic", "hard", "folder", "pipe", "device"])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "set/a.txt"])
def test_a_link_a_folder_or_a_device_of_a_tar_archive_is_no_file_of_it(tmp_path, kind, target):
    tarred(tmp_path / "x", "set/b.txt", kind, target)
    with pytest.raises(BadInput, match=r"has 0 files b\.txt; it has set/a\.txt$"):
        archives.extract(tmp_path / "x", "b.txt", tmp_path / "out")
    assert dict(archives.texts(tmp_path / "x")) == {"set/a.txt": b"evil"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_a_device_of_a_zip_archive_is_no_file_of_it(tmp_path, kind):
    zipped(tmp_path / "x", "set/b.txt", kind, "/etc/passwd")
    with pytest.raises(BadInput, match=r"has 0 files b\.txt; it has set/a\.txt$"):
        archives.extract(tmp_path / "x", "b.txt", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
