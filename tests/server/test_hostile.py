"""Whatever is sent, a server answers with a status of its own: never a 500, never a hang."""

from __future__ import annotations

import json
import random
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tests.sampling import examples, quick_and_long
from tests.server.hostile import Request, bent, requests, send, send_bytes, some, whole
from tests.server.running import ADD, NAMES, Served, make_graph, serving

from omnigraph.server.connections import LONGEST_HEAD


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place: Path = tmp_path_factory.mktemp("hostile") / "g.omni"
    make_graph(place)
    with serving(place, is_open=True) as server:
        yield server


@given(request_=requests())
@settings(
    max_examples=examples(25, of=800),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_request_is_answered_with_a_500(target: Served, request_: Request) -> None:
    send(target, request_)


@pytest.mark.parametrize("turns", quick_and_long(25, 2_000))
def test_bytes_that_were_changed_on_the_way_are_refused(target: Served, turns: int) -> None:
    chance = random.Random(17)
    some(requests(), 17, turns, lambda request_: send_bytes(target, bent(whole(request_), chance)))
    assert target.request("GET", "/readyz").status == 200


def test_an_actor_in_the_request_never_wins_over_the_token(graph_place: Path) -> None:
    """No body, header or query string names the actor: the token does, or the request is refused."""
    with serving(graph_place) as server:
        add = {"query": ADD, "params": {"n": "cid"}}
        for name in ("actor", "actor_id", "as"):
            assert server.request("POST", "/graphs/default/mutate", {**add, name: "eve"}).status == 400
            line = b'{"type": "Person", "data": {"name": "x"}}'
            asked = f"/graphs/default/load/ndjson?{name}=eve"
            kind = "application/x-ndjson"
            assert server.request("POST", asked, content=line, Content_Type=kind).status == 400
        done = server.ask("/mutate", add, X_Actor="eve", Omnigraph_Actor="eve", From="eve", X_Forwarded_User="eve")
        assert done["actor_id"] == done["commit"]["actor_id"] == "ada"
        bob = server.request("POST", "/graphs/default/branches", {"name": "b"}, actor="bob")
        assert bob.json["actor_id"] == "bob"


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer token-of-ada ,Bearer token-of-bob",
        "Bearer token-of-ada\r\nAuthorization: Bearer token-of-ada",
        "Bearer wrong\r\nAuthorization: Bearer token-of-ada",
        "Bearer token-of-ada\tx",
        "Bearer token-of-ada\xa0",
        "Bearer token-of-ad",
        "Bearer token-of-adaa",
        "Bearer TOKEN-OF-ADA",
        "Bearer " + "x" * 20_000,
        "Bearer \xff\xfe",
    ],
)
def test_a_token_that_is_nearly_right_is_wrong(served: Served, authorization: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), 30) as caller:
        head = f"GET /graphs HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
        caller.sendall(head.encode("latin-1"))
        assert received(caller).split(b" ")[1] in (b"401", b"431", b"400")


def received(caller: socket.socket) -> bytes:
    """All that a server sends before it closes the connection."""
    pieces = iter(lambda: caller.recv(65_536), b"")
    return b"".join(pieces)


TRICKS = ("..", "../..", "..%2f..", "%00", "a%0ab", "main%00", ".", "%5c..%5c", "__manifest", "x" * 5_000, "%ff")


@pytest.mark.parametrize("trick", TRICKS)
def test_names_do_not_reach_outside_of_the_graph(served: Served, trick: str) -> None:
    for path in (
        f"/graphs/{trick}/schema",
        f"/graphs/default/schema?branch={trick}",
        f"/graphs/default/entity?type={trick}&id=ada",
        f"/graphs/default/blob?type=Person&id={trick}&property=photo",
        f"/graphs/default/blob?type=Person&id=ada&property={trick}",
        f"/graphs/default/commits/{trick}",
    ):
        assert served.request("GET", path).status in (400, 404), path
    for kind in ("branches", "tags"):
        path = f"/graphs/default/{kind}/{trick}"
        assert served.request("DELETE", path).status in (400, 404, 405), path
    refused = served.request("POST", "/graphs/default/branches", {"name": unquote(trick, errors="replace")})
    assert refused.status in (400, 409), trick


MALFORMED = {
    "no HTTP": b"hello\r\n\r\n",
    "no end": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 200_000 + b"\r\n\r\n",
    "two lengths": b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
    b"Content-Length: 2\r\n\r\n{}",
    "length and chunks": b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "huge length": b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999\r\n\r\n",
    "bad chunk": b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "NUL in the path": b"GET /graphs\0/default HTTP/1.1\r\nHost: x\r\n\r\n",
    "NUL in a header": b"GET /graphs HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
    "line in a header": b"GET /graphs HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
    "no version": b"GET /graphs\r\n\r\n",
    "an upgrade": b"GET /graphs HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 50,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_http_is_refused_and_leaves_no_trace(served: Served, name: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), 30) as caller:
        caller.sendall(MALFORMED[name])
        caller.shutdown(socket.SHUT_WR)
        answer = received(caller)
    assert not answer or answer.split(b" ")[1][:1] == b"4", answer[:200]
    assert served.request("GET", "/healthz").status == 200


def test_a_body_without_a_length_is_cut_off_at_the_limit(graph_place: Path) -> None:
    with (
        serving(graph_place, is_open=True, body_bytes=10_000) as server,
        socket.create_connection(("127.0.0.1", server.port), 30) as caller,
    ):
        caller.sendall(
            b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(8):
            caller.sendall(b"800\r\n" + b" " * 0x800 + b"\r\n")
        assert caller.recv(12) == b"HTTP/1.1 413"


CHUNKED = b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n" * 1_000),
        (b"GET /healthz HTTP/1.1\r\nA: ", b"a" * 8_000),
        (b"GET /", b"a" * 8_000),
        (CHUNKED + b"0\r\n", b"A: b\r\n" * 1_000),
        (CHUNKED + b"1;", b"a" * 8_000),
    ],
    ids=["headers", "a header", "a path", "trailers", "an extension of a chunk"],
)
def test_a_request_that_never_gets_to_the_point_is_cut_off(served: Served, begin: bytes, piece: bytes) -> None:
    """The parser would keep all of it in memory, of any caller and without a token."""
    with socket.create_connection(("127.0.0.1", served.port), 30) as caller:
        caller.sendall(begin)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += caller.send(piece)
        except OSError:
            pass
        assert sent < 64 << 20


def test_a_head_that_is_too_long_is_a_431(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), 30) as caller:
        caller.sendall(b"GET /healthz HTTP/1.1\r\nA: " + b"a" * LONGEST_HEAD)
        head, _, body = received(caller).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert (json.loads(body)["code"], json.loads(body)["outcome"]) == ("too_large", "nothing_written")


def test_what_comes_behind_a_body_is_no_header(graph_place: Path) -> None:
    """A proxy that looks at the headers of a request would not have seen it."""
    with (
        serving(graph_place) as server,
        socket.create_connection(("127.0.0.1", server.port), 30) as caller,
    ):
        body = json.dumps({"query": NAMES}).encode()
        head = CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close\r\nContent-Type: application/json")
        token = b"Authorization: Bearer token-of-ada"
        caller.sendall(head + b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(body), body, token))
        assert received(caller).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_bombs_and_halves_of_packed_bodies(served: Served, codec: str) -> None:
    def packed(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return bytes(sink.getvalue())

    def status(content: bytes) -> int:
        return served.request(
            "POST",
            "/graphs/default/query",
            content=content,
            Content_Type="application/json",
            Content_Encoding=codec,
        ).status

    whole = packed(json.dumps({"query": NAMES}).encode())
    assert status(whole) == 200
    assert status(whole[: len(whole) // 2]) == 400
    assert status(whole + b"rubbish") in (200, 400)
    assert status(packed(b" " * (64 << 20))) == 413
    assert status(packed(packed(b"{}"))) == 400


@pytest.mark.parametrize("count", quick_and_long(300, 10_000))
def test_idle_connections_keep_no_caller_from_its_answer(graph_place: Path, count: int) -> None:
    """Callers that connect and say nothing, or half a request, cost a socket each and nothing else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with serving(graph_place, is_open=True) as server, ExitStack() as stack:
            for number in range(min(count, hard - 200)):
                idle = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
                if number % 2:
                    idle.sendall(b"GET /graphs/default/schema HTTP/1.1\r\nHost: x\r\n")
            assert server.names() == ["ada", "bob"]
            assert server.request("GET", "/readyz").status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
