"""Downloads from a server that breaks off, lies or fails, and files of the user's own."""

import gzip
import hashlib
import io
import json
import lzma
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tailprompt.data import download as sources
from tailprompt.errors import BadInput

BODY = bytes(range(256)) * 1200
DIGEST = hashlib.sha256(BODY).hexdigest()
WAITS = {"sleep": lambda seconds: None}


class Handler(BaseHTTPRequestHandler):
    """Serves BODY; `server.plan` holds one (kind of answer) for each coming request."""

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        kind = self.server.plan.pop(0) if self.server.plan else "whole"
        if isinstance(kind, int):
            return self.send_error(kind)
        start = int(wanted[6:-1]) if wanted and kind != "no ranges" else 0
        if start >= len(BODY):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(BODY) - start))
        self.end_headers()
        end = start + 131_072 if kind == "cut" else len(BODY)
        self.wfile.write(BODY[start:end])

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    for name in ("HF_HUB_OFFLINE", "TAILPROMPT_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.plan, server.asked = [], []
    thread = threading.Thread(target=server.serve_forever, args=[0.01])  # seconds that shutdown may take
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(server):
    return f"http://127.0.0.1:{server.server_port}/f.tsv"


def row(server, **entry):
    return {"name": "mine", "files": {"train": {"url": url(server), **entry}}}


def find(row, tmp_path, data_dir=None):
    return sources.found(row, data_dir=data_dir, raw=tmp_path / "raw", lock=tmp_path / "lock.json")


def test_a_download_arrives_whole_and_its_digest_is_told(server, tmp_path):
    assert sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS) == DIGEST
    assert (tmp_path / "f").read_bytes() == BODY and [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_download_that_breaks_off_goes_on_where_it_stopped(server, tmp_path):
    server.plan = ["cut", "cut"]
    sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS)
    assert server.asked == [None, "bytes=131072-", "bytes=262144-"]


def test_a_later_run_goes_on_where_an_earlier_one_stopped(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY[:5000])
    sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS)
    assert server.asked == ["bytes=5000-"] and (tmp_path / "f").read_bytes() == BODY


def test_without_a_digest_a_later_run_starts_anew_as_the_file_may_be_another_by_then(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * 5000)
    assert sources.download(url(server), tmp_path / "f", **WAITS) == DIGEST
    assert server.asked == [None]


def test_a_part_of_another_version_is_told_by_the_digest_and_the_next_run_starts_anew(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * 5000)
    with pytest.raises(BadInput, match="was changed or damaged on the way"):
        sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS)
    assert sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS) == DIGEST
    assert server.asked == ["bytes=5000-", None]


def test_a_server_without_ranges_starts_again(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * 5000)
    server.plan = ["no ranges"]
    sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS)
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_part_as_long_as_the_file_starts_again(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * len(BODY))
    sources.download(url(server), tmp_path / "f", sha256=DIGEST, **WAITS)
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_busy_server_is_asked_again_with_longer_waits(server, tmp_path):
    server.plan, waits = [503, 429], []
    sources.download(url(server), tmp_path / "f", sha256=DIGEST, sleep=waits.append)
    assert waits == [1.0, 2.0]


def test_a_download_that_stays_truncated_ends_in_one_sentence_and_no_file(server, tmp_path):
    server.plan = ["cut"] * 2
    with pytest.raises(BadInput, match="could not be downloaded in 2 attempts") as caught:
        sources.download(url(server), tmp_path / "f", sha256=DIGEST, attempts=2, **WAITS)
    assert "\n" not in str(caught.value) and not (tmp_path / "f").exists()


def test_a_missing_file_is_not_asked_for_twice(server, tmp_path):
    server.plan = [404]
    with pytest.raises(BadInput, match="the server answers 404"):
        sources.download(url(server), tmp_path / "f", **WAITS)
    assert len(server.asked) == 1


def test_no_server_at_all_ends_in_one_sentence(server, tmp_path):
    with pytest.raises(BadInput, match="could not be downloaded"):
        sources.download("http://127.0.0.1:9/f", tmp_path / "f", attempts=2, **WAITS)


def test_a_wrong_digest_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(BadInput, match="expected 00"):
        sources.download(url(server), tmp_path / "f", sha256="00", **WAITS)
    assert not list(tmp_path.iterdir())


def test_a_digest_that_no_one_stated_is_recorded_and_enforced_from_then_on(server, tmp_path):
    find(row(server), tmp_path)
    assert json.loads((tmp_path / "lock.json").read_text()) == {url(server): DIGEST}
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
        ".lock",
        "lock.json",
        "raw",
    ]
    (tmp_path / "raw" / "f.tsv").write_bytes(b"changed")
    with pytest.raises(BadInput, match=f"expected {DIGEST}"):
        find(row(server), tmp_path)


def test_a_recorded_digest_holds_for_a_new_download_too(server, tmp_path):
    (tmp_path / "lock.json").write_text(json.dumps({url(server): "00"}))
    with pytest.raises(BadInput, match="expected 00"):
        find(row(server), tmp_path)


def test_a_stated_digest_is_not_recorded(server, tmp_path):
    paths, digests = find(row(server, sha256=DIGEST), tmp_path)
    assert digests == {"f.tsv": DIGEST} and not (tmp_path / "lock.json").exists()


def test_a_file_that_is_there_is_not_downloaded_again(server, tmp_path):
    find(row(server, sha256=DIGEST), tmp_path)
    find(row(server, sha256=DIGEST), tmp_path)
    assert len(server.asked) == 1


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TAILPROMPT_OFFLINE"])
def test_offline_asks_no_one_and_says_what_is_missing(server, tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(BadInput, match="f.tsv is not there and the network is off"):
        find(row(server), tmp_path)
    assert not server.asked


def test_the_users_folder_serves_files_plain_or_packed_without_the_network(server, tmp_path):
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "f.tsv.xz").write_bytes(lzma.compress(BODY))
    paths, digests = find(row(server, sha256=DIGEST), tmp_path, data_dir=tmp_path / "data")
    assert paths == {"train": folder / "f.tsv.xz"} and digests == {"f.tsv": DIGEST} and not server.asked


def test_a_file_missing_from_the_users_folder_is_named_with_the_way_out(server, tmp_path):
    with pytest.raises(
        BadInput, match="there is no .*f.tsv or .*f.tsv.xz; put it there, or set data_dir: null"
    ):
        find(row(server), tmp_path, data_dir=tmp_path)


def test_another_version_in_the_users_folder_is_refused(server, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "f.tsv").write_bytes(b"other")
    with pytest.raises(BadInput, match=f"expected {DIGEST}"):
        find(row(server, sha256=DIGEST), tmp_path, data_dir=tmp_path)


def test_a_file_that_is_published_nowhere_needs_a_folder(tmp_path):
    with pytest.raises(BadInput, match="published nowhere; set data_dir"):
        find({"name": "mine", "files": {"train": {"name": "f.tsv"}}}, tmp_path)


def test_files_of_one_archive_are_taken_from_one_download_whose_digest_is_recorded(
    server, tmp_path, monkeypatch
):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("set/train.tsv", "a")
        archive.writestr("set/dev.tsv", "b")
    monkeypatch.setattr(f"{__name__}.BODY", packed.getvalue())
    entries = {name: {"url": url(server), "member": f"set/{name}.tsv"} for name in ("train", "dev")}
    for _ in range(2):
        paths, digests = find({"name": "mine", "files": entries}, tmp_path)
    assert {name: path.read_text() for name, path in paths.items()} == {"train": "a", "dev": "b"}
    assert len(server.asked) == 1 and digests["train.tsv"] == hashlib.sha256(b"a").hexdigest()
    recorded = json.loads((tmp_path / "lock.json").read_text())
    assert recorded == {url(server): hashlib.sha256(packed.getvalue()).hexdigest()}
    with pytest.raises(BadInput, match="expected 0000"):
        find({"name": "mine", "files": {"dev": {**entries["dev"], "sha256": "0" * 64}}}, tmp_path)


def test_a_corpus_that_the_scale_leaves_open_is_named(tmp_path):
    with pytest.raises(
        BadInput, match="'mine' is made from corpora.text, which this scale leaves open; name it"
    ):
        find({"name": "mine", "corpus": "text"}, tmp_path)
    (tmp_path / "c.txt").write_text("x")
    row = {"name": "mine", "corpus": "text", "path": str(tmp_path / "c.txt")}
    assert find(row, tmp_path)[0] == {"all": tmp_path / "c.txt"}


def test_a_row_may_name_one_path_or_one_a_split(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    path = str(tmp_path / "a.csv")
    assert list(find({"name": "mine", "path": path}, tmp_path)[0]) == ["all"]
    (tmp_path / "b.csv").write_text("y")
    files = {"train": path, "test": str(tmp_path / "b.csv")}
    assert list(find({"name": "mine", "files": files}, tmp_path)[0]) == ["train", "test"]
    with pytest.raises(BadInput, match="correct its path"):
        find({"name": "mine", "path": path + "x"}, tmp_path)
    with pytest.raises(BadInput, match="names no file"):
        find({"name": "mine"}, tmp_path)


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("name", ["a.csv", "copy.csv", "a.csv.gz"])
def test_one_file_is_not_both_train_and_another_split(tmp_path, split, name):
    (tmp_path / "a.csv").write_bytes(b"text,label\n")
    if name != "a.csv":
        pack = gzip.compress if name.endswith("gz") else bytes
        (tmp_path / name).write_bytes(pack(b"text,label\n"))
    files = {"train": str(tmp_path / "a.csv"), split: str(tmp_path / name)}
    with pytest.raises(
        BadInput, match=f"a.csv .train. and .*{name} .{split}. hold the same; name another file"
    ):
        find({"name": "mine", "files": files}, tmp_path)


def test_dev_may_be_test(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    files = {"train": str(tmp_path / "a"), "dev": str(tmp_path / "b"), "test": str(tmp_path / "b")}
    assert list(find({"name": "mine", "files": files}, tmp_path)[0]) == ["train", "dev", "test"]


@pytest.mark.parametrize("name", ["texts", "a.parquet"])
def test_a_folder_as_path_is_called_one(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match=f"{name} is a folder; name one file"):
        find({"name": "mine", "path": str(tmp_path / name)}, tmp_path)
