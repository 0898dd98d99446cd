"""Blobs over HTTP: whole and partial reads, conditions, and writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import Served, serving

from omnigraph.errors import RangeUnsatisfiable
from omnigraph.server.transfer.conditions import Span, is_known, matches, wanted_span

BLOB = "/graphs/default/blob?type=Person&id={}&property=photo"
ADA, BOB, ANNA = BLOB.format("ada"), BLOB.format("bob"), BLOB.format("anna")
LARGE = bytes(range(256)) * 40_000
SIZE = len(LARGE)


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a graph in which ada has a large photo, and bob has none."""
    from tests.server.running import make_graph

    place = tmp_path_factory.mktemp("blobs") / "g.omni"
    make_graph(place)
    with serving(place) as server:
        assert server.request("PUT", ADA, content=LARGE).status == 200
        yield server


def test_a_blob_is_read_whole(blobs: Served) -> None:
    found = blobs.request("GET", ADA, Accept_Encoding="gzip, zstd")
    assert (found.status, found.content) == (200, LARGE)
    assert found.headers["Content-Length"] == str(SIZE)
    assert found.headers["Content-Type"] == "application/octet-stream"
    assert found.headers["Accept-Ranges"] == "bytes"
    assert "Content-Encoding" not in found.headers
    head = blobs.ask("/commits?limit=1")["commits"][0]["graph_commit_id"]
    assert found.headers["Omnigraph-Snapshot-Id"] == head


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        (f"bytes={SIZE - 5}-", SIZE - 5, SIZE),
        ("bytes=-7", SIZE - 7, SIZE),
        ("bytes=100-99999999999", 100, SIZE),
        (f"bytes=-{SIZE * 2}", 0, SIZE),
        (f"bytes=100-{'9' * 5_000}", 100, SIZE),
        (f"bytes={'0' * 5_000}7-9", 7, 10),
        (f"bytes=-{'9' * 30}", 0, SIZE),
    ],
)
def test_one_range_is_answered_with_206(blobs: Served, asked: str, start: int, end: int) -> None:
    found = blobs.request("GET", ADA, Range=asked)
    assert (found.status, found.content) == (206, LARGE[start:end])
    assert found.headers["Content-Range"] == f"bytes {start}-{end - 1}/{SIZE}"


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=5-2", "bytes=x-y", "bytes=-", "lines=0-1", "0-5"])
def test_what_is_not_one_range_stands_for_all_bytes(blobs: Served, asked: str) -> None:
    found = blobs.request("GET", ADA, Range=asked)
    assert (found.status, len(found.content)) == (200, SIZE)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        (f"bytes={SIZE}-", SIZE, SIZE),
        ("bytes=-0", SIZE, SIZE),
        (f"bytes={SIZE + 5}-{SIZE + 9}", SIZE + 5, SIZE + 10),
        (f"bytes={'9' * 5_000}-", 10**18, SIZE),
    ],
)
def test_a_range_without_bytes_is_a_416(blobs: Served, asked: str, start: int, end: int) -> None:
    found = blobs.request("GET", ADA, Range=asked)
    assert found.status == 416
    assert found.headers["Content-Range"] == f"bytes */{SIZE}"
    assert found.json["blob_range"] == {"start": start, "end": end, "length": SIZE}


def test_head_reads_no_bytes_and_ignores_ranges(blobs: Served) -> None:
    found = blobs.request("HEAD", ADA)
    assert (found.status, found.content) == (200, b"")
    assert found.headers["Content-Length"] == str(SIZE)
    assert found.headers["ETag"] == blobs.request("GET", ADA, Range="bytes=0-0").headers["ETag"]
    assert blobs.request("HEAD", BOB).status == 404


def test_conditions(blobs: Served) -> None:
    etag = blobs.request("HEAD", ADA).headers["ETag"]
    assert blobs.request("GET", ADA, If_None_Match=etag).status == 304
    assert blobs.request("HEAD", ADA, If_None_Match=f'"other", W/{etag}').status == 304
    assert blobs.request("GET", ADA, If_None_Match='"other"', Range="bytes=0-1").status == 206
    assert blobs.request("GET", ADA, If_Match=f'"other", {etag}', Range="bytes=0-1").status == 206
    lost = blobs.request("GET", ADA, If_Match='"other"', If_None_Match=etag)
    assert (lost.status, lost.json["precondition_failure"]["actual"]) == (412, etag.strip('"'))
    assert blobs.request("GET", ADA, If_Match=f"W/{etag}").status == 412
    assert blobs.request("GET", BOB, If_Match="*").status == 412
    assert blobs.request("GET", ADA, Range="bytes=0-1", If_Range=etag).status == 206
    assert blobs.request("GET", ADA, Range="bytes=0-1", If_Range='"other"').status == 200


def test_a_put_is_one_commit_of_the_tokens_actor(blobs: Served) -> None:
    blobs.ask("/branches", {"name": "put"})
    place = BOB + "&branch=put&message=hello"
    done = blobs.request("PUT", place, content=b"one", Idempotency_Key="k1").json
    again = blobs.request("PUT", place, content=b"one", Idempotency_Key="k1")
    assert (again.json, again.headers["Idempotency-Replayed"]) == (done, "true")
    assert done["commit"]["actor_id"] == "ada"
    assert done["commit"]["message"] == "hello"
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 0)
    etag = blobs.request("HEAD", place.partition("&message")[0]).headers["ETag"]
    assert blobs.request("PUT", place, content=b"two", If_Match=etag).status == 200
    assert blobs.request("PUT", place, content=b"three", If_Match=etag).status == 412
    assert blobs.request("PUT", place, content=b"three", If_Match="*").status == 400
    assert blobs.request("GET", BOB + "&branch=put").content == b"two"
    assert blobs.request("GET", BOB).status == 404
    assert blobs.request("DELETE", BOB + "&branch=put").status == 200
    assert blobs.request("GET", BOB + "&branch=put").json["blob"]["is_null"] is True
    assert blobs.request("PUT", ANNA + "&branch=put", content=b"x").status == 404
    assert blobs.request("PUT", f"{BOB}&branch=put&entity=edge", content=b"x").status == 400
    assert blobs.request("PUT", f"{BOB}&branch=put&entity=node", content=b"x").status == 200
    assert blobs.request("GET", f"{BOB}&branch=put&entity=node").content == b"x"
    older = done["commit"]["graph_commit_id"]
    assert blobs.request("GET", f"{BOB}&snapshot={older}").content == b"one"


def test_an_address_instead_of_bytes_is_refused(blobs: Served) -> None:
    record = '{"type": "Person", "data": {"name": "eve", "photo": "s3://bucket/key"}}'
    refused = blobs.request("POST", "/graphs/default/load", {"data": record})
    assert refused.status == 400
    assert "external blobs are not allowed" in refused.json["error"]


def test_large_bodies_are_refused_before_they_are_read(graph_place: Path) -> None:
    with serving(graph_place, load_bytes=1000) as server:
        refused = server.request("PUT", BOB, content=b"x" * 1001)
        assert (refused.status, refused.json["resource_limit"]["limit"]) == (413, 1000)


def test_tags_and_spans_by_themselves() -> None:
    assert matches("*", "a")
    assert not matches("*", None)
    assert not matches('W/"a"', "a")
    assert is_known('"b", W/"a"', "a")
    assert wanted_span("bytes=1-", None, "a", 3) == Span(1, 3, 3)
    for asked, size in (("bytes=0-", 0), ("bytes=" + "9" * 30 + "-", 3)):
        with pytest.raises(RangeUnsatisfiable):
            wanted_span(asked, None, "a", size)
