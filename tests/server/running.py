"""A real server in a process of its own, and a small client for tests that look at bytes and headers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
from tests.processes import Child, children

import omnigraph
from omnigraph import failpoints
from omnigraph.server.answers.stored import read_stored
from omnigraph.server.application import Server
from omnigraph.server.graphs import addresses, open_graphs
from omnigraph.server.observing.logs import quiet
from omnigraph.server.run import Listening, run_server
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import parse_tokens

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  photo: Blob?  @range(age, 0..150) }
edge Knows: Person -> Person { since: I32? }
"""
ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
NAMES = "query names() { match { $p: Person } return { $p.name as name } order { name asc } }"
SET_AGE = "query set($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
PEOPLE = "\n".join(
    json.dumps(each)
    for each in (
        {"type": "Person", "data": {"name": "ada", "age": 36, "born": "1815-12-10"}},
        {"type": "Person", "data": {"name": "bob", "age": 41}},
        {"edge": "Knows", "from": "ada", "to": "bob", "data": {"id": "k1", "since": 1840}},
    )
)
TOKENS = {"ada": "token-of-ada", "bob": "token-of-bob"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Served:
    """A running server. Requests are made as ``actor``, whose token is sent."""

    url: str
    child: Child
    actor: str | None = "ada"
    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=32, retries=False))

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: bytes | None = None,
        actor: str | None = "",
        **headers: Any,
    ) -> Reply:
        """Make one request; a keyword `if_match` is the header `If-Match`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        who = self.actor if actor == "" else actor
        if who is not None:
            sent.setdefault("Authorization", f"Bearer {TOKENS[who]}")
        if body is not None:
            content = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        found = self.pool.request(
            method, self.url + path, body=content, headers=sent, timeout=60, decode_content=False
        )
        return Reply(found.status, found.headers, found.data)

    def ask(self, path: str, body: object = None, **headers: Any) -> Any:
        """The JSON that a route of the default graph answers a request which must succeed."""
        method = "GET" if body is None else "POST"
        found = self.request(method, f"/graphs/default{path}", body, **headers)
        assert found.status == 200, found.content
        return found.json

    def names(self, branch: str = "main") -> list[str]:
        """The people on a branch."""
        return [row["name"] for row in self.ask("/query", {"query": NAMES, "branch": branch})["rows"]]

    def stop(self) -> None:
        """Ask it to stop, as an operator would, and see it end well."""
        os.kill(self.child.pid, signal.SIGTERM)
        self.child.join()


def serve(
    place: str,
    is_open: bool = False,
    limits: Mapping[str, Any] | None = None,
    tls: tuple[str, str] | None = None,
    failpoint: str | None = None,
    queries: str | None = None,
) -> None:
    """In a child: serve what is at a place, until a signal comes or a failpoint kills the process."""
    tokens = None if is_open else parse_tokens(json.dumps(TOKENS), "tokens")
    served = open_graphs(addresses(place, None), read_only=False, require_all=False)
    certificate, key = (None, None) if tls is None else map(Path, tls)
    listening = Listening(port=0, certificate=certificate, key=key)
    stored = {} if queries is None else read_stored(Path(queries), served.graphs)
    server = Server(served, tokens, ServerSettings(**(limits or {})), quiet, stored)
    with nullcontext() if failpoint is None else failpoints.armed(failpoint, failpoints.die):
        run_server(server, listening)


@contextmanager
def serving(
    place: str | Path,
    *,
    is_open: bool = False,
    failpoint: str | None = None,
    queries: Path | None = None,
    **limits: Any,
) -> Iterator[Served]:
    """A server of a graph, or of a directory of graphs."""
    folder = None if queries is None else str(queries)
    with children((serve, str(place), is_open, limits, None, failpoint, folder)) as (child,):
        name, _, address = child.hear().partition("=")
        assert name == "OMNIGRAPH_LISTEN_ADDR"
        yield Served(f"http://{address}", child, None if is_open else "ada")


def make_graph(place: str | Path) -> None:
    """A small graph with two people who know each other."""
    with omnigraph.init(place, SCHEMA) as graph:
        graph.load(PEOPLE.encode(), mode="merge")
