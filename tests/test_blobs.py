"""The bytes of a blob as a file, from Python and from the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.cli.command import omnigraph as run_command
from tests.stores import Store

import omnigraph
from omnigraph.errors import BlobChanged, BlobNotFound, ConstraintViolation, InvalidArgument, PreconditionFailed

SCHEMA = """
node Doc { name: String @key  note: String?  body: Blob?  seal: Blob }
edge Cites: Doc -> Doc { scan: Blob? }
"""
LARGE = bytes(range(256)) * 40_000


@pytest.fixture
def graph(local_store: Store) -> omnigraph.Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    docs = [{"name": "a", "note": "kept", "body": b"hello", "seal": b""}, {"name": "b", "seal": b"s"}]
    cites = {"edge": "Cites", "from": "a", "to": "b", "data": {"id": "c1", "scan": "base64:AAEC"}}
    graph.load([*({"type": "Doc", "data": each} for each in docs), cites], mode="append")
    return graph


def test_it_is_a_binary_file(graph: omnigraph.Graph) -> None:
    with graph.blob("Doc", "a", "body") as blob:
        assert (blob.size, blob.read(2), blob.tell(), blob.read(), blob.read()) == (5, b"he", 2, b"llo", b"")
        assert (blob.seek(1), blob.read(3)) == (1, b"ell")
        assert (blob.seek(-2, io.SEEK_END), blob.seek(-1, io.SEEK_CUR), blob.read(99)) == (3, 2, b"llo")
        assert (blob.seek(50), blob.read()) == (50, b"")
        with pytest.raises(ValueError, match="before the beginning"):
            blob.seek(-1)
    assert blob.closed
    assert io.BufferedReader(graph.blob("Doc", "a", "body")).read(4) == b"hell"
    with pytest.raises(ValueError, match="closed"):
        blob.read()
    assert graph.blob("edge:Cites", "c1", "scan").read() == b"\x00\x01\x02"


def test_null_and_empty_are_different(graph: omnigraph.Graph) -> None:
    assert graph.blob("Doc", "a", "seal").read() == b""
    with pytest.raises(BlobNotFound) as null:
        graph.blob("Doc", "b", "body")
    with pytest.raises(BlobNotFound) as missing:
        graph.blob("Doc", "z", "body")
    assert (null.value.is_null, missing.value.is_null) == (True, False)
    for name in ("note", "nothing"):
        with pytest.raises(InvalidArgument):
            graph.blob("Doc", "a", name)


def test_a_put_changes_one_property_of_one_row(graph: omnigraph.Graph) -> None:
    opened = graph.blob("Doc", "a", "body")
    done = graph.put_blob("Doc", "a", "body", LARGE, actor="ada", message="larger")
    assert done.commit is not None
    assert (done.commit.actor_id, done.commit.message) == ("ada", "larger")
    assert graph.blob("Doc", "a", "body").read() == LARGE
    assert opened.read() == b"hello"
    assert graph.blob("Doc", "a", "body", at=opened.graph_commit_id).read() == b"hello"
    found = graph.entity("Doc", "a")
    assert found is not None
    assert (found["note"], found["seal"]) == ("kept", b"")
    (change,) = graph.commit_changes(done.commit.graph_commit_id).block.changes
    assert (change.table_key, change.id) == ("node:Doc", "a")
    assert graph.put_blob("Cites", "c1", "scan", io.BytesIO(b"x")).affected_edges == 1
    assert graph.blob("Cites", "c1", "scan").read() == b"x"


def test_rules_of_the_schema_hold(graph: omnigraph.Graph) -> None:
    graph.put_blob("Doc", "a", "body", None)
    with pytest.raises(BlobNotFound):
        graph.blob("Doc", "a", "body")
    with pytest.raises(ConstraintViolation):
        graph.put_blob("Doc", "a", "seal", None)
    with pytest.raises(InvalidArgument):
        graph.put_blob("Doc", "a", "body", "text")  # type: ignore[arg-type]


def test_an_etag_stands_for_the_bytes(graph: omnigraph.Graph) -> None:
    first = graph.blob("Doc", "a", "body").etag
    graph.load([{"type": "Doc", "data": {"name": "c", "seal": b""}}], mode="append")
    assert graph.blob("Doc", "a", "body").etag == first, "other rows change nothing"
    assert graph.blob("Doc", "a", "seal").etag != first
    graph.create_branch("dev")
    assert graph.blob("Doc", "a", "body", branch="dev").etag == first
    graph.put_blob("Doc", "a", "body", b"other", if_match=first)
    assert graph.blob("Doc", "a", "body").etag != first
    with pytest.raises(BlobChanged) as lost:
        graph.put_blob("Doc", "a", "body", b"mine", if_match=first)
    assert lost.value.actual == graph.blob("Doc", "a", "body").etag
    with pytest.raises(PreconditionFailed):
        graph.put_blob("Doc", "a", "body", b"mine", if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert graph.blob("Doc", "a", "body").read() == b"other"


def test_the_command_line(graph: omnigraph.Graph, tmp_path: Path) -> None:
    place = ("--store", graph.address)
    (tmp_path / "in").write_bytes(LARGE)
    put = run_command("blob", "put", "Doc", "a", "body", "--file", "in", "--json", *place, cwd=tmp_path)
    assert json.loads(put.out)["affected_nodes"] == 1
    got = run_command("blob", "get", "Doc", "a", "body", "--out", "out", *place, cwd=tmp_path)
    assert (got.code, got.out, (tmp_path / "out").read_bytes() == LARGE) == (0, "", True)
    part = run_command("blob", "get", "Doc", "a", "body", "--offset", "65", "--length", "3", *place, cwd=tmp_path)
    assert part.out == "ABC"
    stat = json.loads(run_command("blob", "stat", "Doc", "a", "body", "--json", *place, cwd=tmp_path).out)
    assert (stat["type"], stat["size"]) == ("Doc", len(LARGE))
    typed = run_command("blob", "put", "Doc", "b", "body", *place, stdin=b"typed", cwd=tmp_path)
    assert typed.code == 0, typed.err
    assert graph.blob("Doc", "b", "body").read() == b"typed"
    lost = run_command("blob", "put", "Doc", "a", "body", "--if-match", "0" * 32, *place, cwd=tmp_path)
    assert lost.code == 4
    assert run_command("blob", "put", "Doc", "b", "body", "--null", *place, cwd=tmp_path).code == 0
    none = run_command("blob", "get", "Doc", "b", "body", *place, cwd=tmp_path)
    assert (none.code, "is null" in " ".join(none.err.split())) == (1, True)
