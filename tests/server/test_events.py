"""Changes as server-sent events: they come as they are made, and go on behind the last one after a break."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tests.server.running import ADD, TOKENS, Served, serving


def followed(
    server: Served, path: str, **headers: str
) -> Generator[tuple[str | None, dict[str, Any]], None, None]:
    """The ids and the pages of the events that a server sends."""
    found = server.pool.request(
        "GET", f"{server.url}/graphs/default{path}", headers=headers, preload_content=False, timeout=60
    )
    assert found.status == 200, found.data
    assert found.headers["content-type"].startswith("text/event-stream")
    held = b""
    try:
        for piece in found.stream(1, decode_content=False):
            held += piece
            if not held.endswith(b"\n\n"):
                continue
            fields = dict(line.split(": ", 1) for line in held.decode().strip().splitlines())
            held = b""
            yield fields.get("id"), json.loads(fields["data"])
    finally:
        found.close()


def test_changes_come_as_they_are_made(graph_place: Path) -> None:
    with serving(graph_place, is_open=True) as server:
        follower = followed(server, "/changes/events?kind=node")
        first, page = next(follower)
        assert page["blocks"] == []
        server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}})
        _, page = next(follower)
        assert [change["id"] for block in page["blocks"] for change in block["changes"]] == ["cid"]
        follower.close()
        assert first is not None
        again = followed(server, "/changes/events?kind=node", **{"Last-Event-ID": first})
        _, page = next(again)
        assert [change["id"] for block in page["blocks"] for change in block["changes"]] == ["cid"]
        server.stop()
        assert list(again) == []


def test_followers_are_counted_and_wrong_cursors_refused(graph_place: Path) -> None:
    with serving(graph_place, is_open=True, followers=1) as server:
        follower = followed(server, "/changes/events?start=beginning")
        next(follower)
        assert server.request("GET", "/graphs/default/changes/events").status == 429
        assert server.request("GET", "/graphs/default/changes/events?cursor=x").status == 400
        follower.close()


def test_a_follower_of_a_deleted_branch_is_told_so(graph_place: Path) -> None:
    with serving(graph_place, is_open=True) as server:
        server.ask("/branches", {"name": "dev"})
        follower = followed(server, "/changes/events?branch=dev")
        next(follower)
        assert server.request("DELETE", "/graphs/default/branches/dev").status == 200
        told, body = next(follower)
        assert (told, body["code"], body["outcome"]) == (None, "not_found", "nothing_written")
        assert list(follower) == []


def test_a_head_request_has_an_end(served: Served) -> None:
    """It gets the headers of a stream, and the connection takes the next request."""
    with socket.create_connection(("127.0.0.1", served.port), 30) as caller:
        token = f"Authorization: Bearer {TOKENS['ada']}"
        for path in ("/graphs/default/changes/events", "/graphs/default/schema"):
            caller.sendall(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n\r\n".encode())
            assert caller.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")
