"""Blobs that are copied from addresses elsewhere: only from where the operator allows it, and only so much."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import obstore
import pytest
from tests.cli.command import COMMAND
from tests.cli.command import omnigraph as run_command
from tests.stores import S3Server

import omnigraph
from omnigraph.errors import (
    BadValue,
    BlobNotFound,
    BlobSourceUnavailable,
    InvalidArgument,
    OmniError,
    RecordError,
    ResourceLimit,
)
from omnigraph.settings import BlobSettings, BulkSettings, Settings
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.external.sources import BlobSources

SCHEMA = "node Doc { name: String @key  body: Blob? }"
ADD = "query add($n: String, $b: Blob) { insert Doc { name: $n, body: $b } }"
SET = "query set($n: String, $b: String) { update Doc set { body: $b } where name = $n }"


def a_graph(place: Path, *allowed: str, bulk: BulkSettings | None = None, **limits: int) -> omnigraph.Graph:
    blobs = BlobSettings(allow=allowed, **limits)
    return omnigraph.init(place / "g.omni", SCHEMA, settings=Settings(blobs=blobs, bulk=bulk or BulkSettings()))


def doc(name: str, uri: str) -> dict[str, object]:
    return {"type": "Doc", "data": {"name": name, "body": uri}}


def body(graph: omnigraph.Graph, name: str) -> bytes:
    return graph.blob("Doc", name, "body").read()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with files, one of them below another directory, and a secret beside it."""
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.bin").write_bytes(b"one")
    (folder / "deep" / "two words.bin").write_bytes(b"two")
    (tmp_path / "secret").write_bytes(b"secret")
    return folder


def test_nothing_is_allowed_by_default(tmp_path: Path, data: Path) -> None:
    graph = a_graph(tmp_path)
    uri = (data / "one.bin").as_uri()
    with pytest.raises(RecordError, match="external blobs are not allowed here"):
        graph.load([doc("a", uri)], mode="append")
    with pytest.raises(BadValue, match="external blobs are not allowed here"):
        graph.mutate(ADD, {"n": "a", "b": uri})
    assert graph.commits(limit=2)[0].kind == "init"


def test_loads_and_mutations_copy_files(tmp_path: Path, data: Path) -> None:
    graph = a_graph(tmp_path, data.as_uri())
    graph.load([doc("a", (data / "one.bin").as_uri()), doc("b", "base64:eA==")], mode="append")
    graph.mutate(ADD, {"n": "c", "b": f"{data.as_uri()}/deep/two%20words.bin"})
    graph.mutate(SET, {"n": "b", "b": (data / "one.bin").as_uri()})
    (data / "one.bin").unlink()
    assert [body(graph, name) for name in "abc"] == [b"one", b"one", b"two"]


def test_staged_loads_copy_in_their_tasks(tmp_path: Path, data: Path) -> None:
    graph = a_graph(tmp_path, data.as_uri(), bulk=BulkSettings(small_load=0, smallest_slice=64, slice_bytes=64))
    lines = tmp_path / "docs.jsonl"
    uri = (data / "one.bin").as_uri()
    lines.write_text("".join(json.dumps(doc(f"d{n}", uri)) + "\n" for n in range(9)))
    graph.load(lines, mode="append")
    assert {body(graph, f"d{n}") for n in range(9)} == {b"one"}


def test_refused_records_have_their_lines_and_can_be_skipped(tmp_path: Path, data: Path) -> None:
    graph = a_graph(tmp_path, data.as_uri())
    lines, bad = tmp_path / "docs.jsonl", tmp_path / "bad.jsonl"
    good = doc("a", (data / "one.bin").as_uri())
    lines.write_text("\n".join(json.dumps(each) for each in (doc("x", "file:///etc/passwd"), good)))
    with pytest.raises(RecordError) as caught:
        graph.load(lines, mode="append")
    assert [problem.line for problem in caught.value.problems] == [1]
    graph.load(lines, mode="append", skip_bad=True, bad_records=bad)
    assert body(graph, "a") == b"one"
    assert "not below an address" in json.loads(bad.read_text())["reasons"][0]


def test_names_outside_of_the_directory_are_refused(tmp_path: Path, data: Path) -> None:
    sources = BlobSources.of(BlobSettings(allow=(data.as_uri(), "https://files.example.org/pub")), {})
    base = data.as_uri()
    for uri in (
        f"{base}/../secret",
        f"{base}/%2e%2e/secret",
        f"{base}/..%2fsecret",
        f"{base}/%252e%252e/secret",
        f"{base}//one.bin",
        f"{base}x/one.bin",
        f"{base}/",
        f"{base}/one.bin?x",
        f"{base}/one.bin#x",
        f"{base}/a\\b",
        f"{base}/a%00b",
        f"{base}/a b",
        base,
        "file://other/etc/passwd",
        "ftp://files.example.org/pub/x",
        "http://files.example.org/pub/x",
        "https://files.example.org:8443/pub/x",
        "https://files.example.org/public/x",
        "https://files.example.org@evil.example/pub/x",
        "https://ada:word@files.example.org/pub/x",
        "https://[::1]/pub/x",
        "https://localhost/pub/x",
        "https://files.example.org.evil.example/pub/x",
        f"{base}/{'x' * 70_000}",
        "one.bin",
        "",
    ):
        assert sources.refusal(uri) is not None, uri
    assert sources.refusal(f"{base}/deep/two%20words.bin") is None
    assert sources.refusal("https://FILES.example.org:443/pub/x") is None


def test_links_devices_and_directories_are_refused(tmp_path: Path, data: Path) -> None:
    graph = a_graph(tmp_path, data.as_uri())
    (data / "link").symlink_to(tmp_path / "secret")
    (data / "way").symlink_to(tmp_path)
    os.mkfifo(data / "pipe")
    for name in ("link", "way/secret", "pipe", "deep", "missing"):
        with pytest.raises(BlobSourceUnavailable):
            graph.mutate(ADD, {"n": "a", "b": f"{data.as_uri()}/{name}"})
    with pytest.raises(BlobSourceUnavailable):
        graph.load([doc("a", f"{data.as_uri()}/link")], mode="append")
    with pytest.raises(BlobNotFound):
        body(graph, "a")


def test_limits_hold_for_one_blob_and_for_all_of_a_write(tmp_path: Path, data: Path) -> None:
    small = BulkSettings(small_load=0, smallest_slice=64, slice_bytes=64)
    uri = (data / "one.bin").as_uri()
    lines = tmp_path / "docs.jsonl"
    lines.write_text("".join(json.dumps(doc(f"d{n}", uri)) + "\n" for n in range(4)))
    for number, bulk in enumerate((small, BulkSettings())):
        place = tmp_path / str(number)
        place.mkdir()
        graph = a_graph(place, data.as_uri(), bulk=bulk, largest=3, total=11)
        with pytest.raises(ResourceLimit, match="of one write"):
            graph.load(lines, mode="append")
        graph.load([doc("d1", uri), doc("d2", uri)], mode="append")
        (data / "four").write_bytes(b"four")
        with pytest.raises(ResourceLimit, match="of one external blob"):
            graph.mutate(ADD, {"n": "e", "b": (data / "four").as_uri()})
        assert len(graph.query("query q() { match { $d: Doc } return { $d.name } }")) == 2


@pytest.mark.parametrize(
    "entry", ["/data", "file:///", "s3://", "https://a@b/", "data/", "file:///a/../b", "gopher://x/"]
)
def test_a_list_with_a_mistake_is_refused(tmp_path: Path, entry: str) -> None:
    with pytest.raises(InvalidArgument, match=r"blobs\.allow"):
        a_graph(tmp_path, entry)


def test_the_environment_allows_for_all_graphs_of_a_process(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_BLOB_SOURCES", f"s3://none/ {data.as_uri()}")
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    graph.load([doc("a", (data / "one.bin").as_uri())], mode="append")
    assert body(graph, "a") == b"one"


def test_objects_of_a_bucket(tmp_path: Path, s3_server: S3Server) -> None:
    store = s3_server.store()
    bucket = store.address.bucket
    client = s3_store(parse_address(f"s3://{bucket}", store.options))
    obstore.put(client, "blobs/ä 1", b"from a bucket")
    obstore.put(client, "other", b"other")
    blobs = BlobSettings(allow=(f"s3://{bucket}/blobs/",))
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options, settings=Settings(blobs=blobs))
    graph.load([doc("a", f"s3://{bucket}/blobs/%C3%A4%201")], mode="append")
    assert body(graph, "a") == b"from a bucket"
    with pytest.raises(BlobSourceUnavailable, match="no such object"):
        graph.load([doc("b", f"s3://{bucket}/blobs/none")], mode="append")
    for outside in (f"s3://{bucket}/other", f"s3://{bucket}/blobs/../other"):
        with pytest.raises(RecordError):
            graph.load([doc("b", outside)], mode="append")


class _Web(BaseHTTPRequestHandler):
    """A web server with a file, and all that can go wrong with one."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        name = self.path.removeprefix("/pub/")
        if name == "moved":
            self.send_response(302)
            self.send_header("Location", "/secret")
            self.end_headers()
            return
        self.send_response(404 if name == "none" else 200)
        if name == "packed":
            self.send_header("Content-Encoding", "gzip")
        if name != "endless":
            self.send_header("Content-Length", {"short": "99", "huge": str(1 << 40)}.get(name, "4"))
        self.end_headers()
        for _ in range(64 if name == "endless" else 1):
            with contextlib.suppress(ConnectionError):  # a reader that has seen enough
                self.wfile.write(b"site" * (1 if name != "endless" else 1 << 15))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/pub/"
        server.shutdown()


def test_a_web_server(tmp_path: Path, web: str) -> None:
    graph = a_graph(tmp_path, web, largest=1 << 20)
    graph.load([doc("a", f"{web}file")], mode="append")
    assert body(graph, "a") == b"site"
    wrong: dict[str, type[OmniError]] = dict.fromkeys(("moved", "none", "packed", "short"), BlobSourceUnavailable)
    for name, error in (wrong | {"huge": ResourceLimit, "endless": ResourceLimit}).items():
        with pytest.raises(error):
            graph.mutate(ADD, {"n": "b", "b": f"{web}{name}"})
    assert "/secret" not in _Web.asked
    with pytest.raises(BadValue):
        graph.mutate(ADD, {"n": "b", "b": web.replace("127.0.0.1", "localhost") + "file"})


def test_a_name_that_leads_into_the_own_network_is_refused(
    tmp_path: Path, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = web.replace("127.0.0.1", "files.example.org")
    port = int(web.split(":")[2].partition("/")[0])
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", port))])
    with pytest.raises(BlobSourceUnavailable, match="no public address"):
        a_graph(tmp_path, named).mutate(ADD, {"n": "b", "b": f"{named}file"})


def test_the_command_line(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, lines = str(tmp_path / "g.omni"), tmp_path / "docs.jsonl"
    omnigraph.init(place, SCHEMA)
    lines.write_text(json.dumps(doc("a", (data / "one.bin").as_uri())))
    load = ["load", place, "--data", str(lines), "--mode", "append"]
    assert b"external blobs are not allowed here" in run_command(*load).stderr
    monkeypatch.setenv("OMNIGRAPH_BLOB_SOURCES", data.as_uri())
    assert run_command(*load).code == 0
    assert body(omnigraph.open(place), "a") == b"one"


def test_a_server_allows_what_its_operator_does(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a caller has set for itself does not count."""
    omnigraph.init(tmp_path / "g.omni", SCHEMA)
    allowed = f"{data.as_uri()}/deep/"
    serve = ["serve", "--port", "0", "--unauthenticated", "--blob-source", allowed]
    with subprocess.Popen([*COMMAND, *serve], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip().partition("=")[2]
        monkeypatch.setenv("OMNIGRAPH_BLOB_SOURCES", data.as_uri())
        with omnigraph.connect(f"http://{address}") as graph:
            graph.load([doc("a", f"{allowed}two%20words.bin")], mode="append")
            assert graph.blob("Doc", "a", "body").read() == b"two"
            outside = (data / "one.bin").as_uri()
            with pytest.raises(RecordError, match="not below an address"):
                graph.load([doc("b", outside)], mode="append")
            with pytest.raises(BadValue, match="not below an address"):
                graph.mutate(ADD, {"n": "b", "b": outside})
            with pytest.raises(BlobSourceUnavailable) as missing:
                graph.mutate(ADD, {"n": "b", "b": f"{allowed}none"})
            assert missing.value.uri == f"{allowed}none"
        process.terminate()
