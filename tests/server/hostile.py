"""Hostile requests to a real server for a while: `python -m tests.server.hostile --seconds 120 [--seed N]`.

Three kinds take turns: requests to every route with right and wrong values, cases that schemathesis makes of the
OpenAPI document, and valid requests whose bytes were changed on the way. A 5xx, an error without its envelope, or
a server that does not answer any more ends the run with exit code 1 and shows the request.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.server.running import ADD, NAMES, SET_AGE, Served, make_graph, serving

from omnigraph.server.routes.parameters import Kind, Place
from omnigraph.server.routes.route import Route
from omnigraph.server.routes.table import ROUTES

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["main", "dev", "default", "../x", "a/b", "\0", "Person", "node:Person", "ada", "1", NAMES, ADD, SET_AGE]
    ),
    st.text("01ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RIGHT: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: TEXTS,
    Kind.TEXTS: st.lists(TEXTS, max_size=3),
    Kind.NUMBER: st.integers(),
    Kind.SECONDS: st.floats(0.001, 5),
    Kind.FLAG: st.booleans(),
    Kind.OBJECT: st.dictionaries(TEXTS, VALUES, max_size=3),
    Kind.OBJECTS: st.lists(st.dictionaries(st.sampled_from(["table_key", "id", "side"]), TEXTS), max_size=2),
    Kind.STATE: TEXTS | st.integers(),
}
KNOWN = {
    "graph": ["default"],
    "branch": ["main", "dev", "nowhere"],
    "type": ["Person", "Knows", "Other"],
    "id": ["ada", "k1", "nobody"],
    "property": ["photo", "age", "other"],
    "query": ["names", "add", "other"],
    "mode": ["append", "merge", "overwrite"],
}
"""Values with which a request gets further than with a random text."""
Request = tuple[Route, str, bytes | None, dict[str, str]]
"""A route, the path with its query string, the body and the headers."""
_RUBBISH: Final = (b"\0", b"\r\n", b"%00", b"../", b"\xff\xfe", b"9" * 40, b"{" * 30)
_TURN: Final = 40
"""So many requests of one kind follow each other."""


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request to one of the routes: some of its parameters are right, some are anything."""
    route = draw(st.sampled_from([route for route in ROUTES if route.name != "follow"]))
    path, query, body = route.path, [], {}
    headers = {"Content-Type": route.takes or draw(st.sampled_from(["application/json", "text/plain"]))}
    for each in route.parameters:
        if not each.required and draw(st.booleans()):
            continue
        value = draw(st.one_of(RIGHT[each.kind], VALUES) if each.name != "graph" else st.just("default"))
        match each.place:
            case Place.PATH:
                path = path.replace(f"{{{each.name}}}", quote(str(value), safe=draw(st.sampled_from(["", "/"]))))
            case Place.QUERY:
                query.append((each.name, str(value)))
            case Place.HEADER:
                headers[each.name] = quote(str(value))
            case Place.BODY:
                body[each.name] = value
    content = None
    if route.takes == "application/json":
        content = draw(
            st.one_of(st.just(json.dumps(body).encode()), st.just(json.dumps(body).encode()), st.binary())
        )
    elif route.takes is not None:
        content = draw(st.binary(max_size=80))
    return route, path + (f"?{urlencode(query)}" if query else ""), content, headers


def send(target: Served, request: Request) -> int:
    """Send one request; the status of its answer, which must not be a failure of the server."""
    route, path, content, headers = request
    found = target.pool.request(
        route.method, target.url + path, body=content, headers=headers, timeout=60, redirect=False
    )
    assert found.status < 500, (route.name, path, content, headers, found.data)
    if found.status >= 400 and route.method != "HEAD":
        assert {"error", "code", "outcome", "request_id"} <= set(found.json()), (path, found.data)
    return found.status


def document(target: Served) -> dict[str, Any]:
    """The OpenAPI document of a server, with names that are there in the place of some texts."""
    found: dict[str, Any] = target.request("GET", "/openapi.json").json
    for methods in found["paths"].values():
        for operation in methods.values():
            for each in operation["parameters"]:
                if each["name"] in KNOWN and "enum" not in each["schema"]:
                    each["schema"] = {"type": "string", "enum": KNOWN[each["name"]]}
    return found


def operations(target: Served) -> dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], int]]]:
    """What schemathesis makes of the document: for each operation its cases, and what sends and checks one."""
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.config import SchemathesisConfig
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    @schemathesis.serializer("application/x-ndjson")
    def lines(_: Any, value: Any) -> bytes:
        return str(value).encode(errors="replace")

    # Without a cache it writes nothing into the directory that it runs in.
    config = SchemathesisConfig.from_dict({"cache": {"enabled": False}})
    schema = schemathesis.openapi.from_dict(document(target), config=config)
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]

    def tried(case: Any) -> int:
        answer = case.call(base_url=target.url, timeout=60)
        case.validate_response(answer, checks=checks)
        assert answer.headers["x-request-id"]
        return int(answer.status_code)

    found: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], int]]] = {}
    for each in schema.get_all_operations():
        operation: Any = each.ok()  # type: ignore[union-attr]
        name = operation.definition.raw["operationId"]
        if name != "follow":  # it has no end
            found[name] = operation.as_strategy(), tried
    return found


def bent(content: bytes, chance: random.Random) -> bytes:
    """The bytes of a request with some of them changed, left out, doubled or cut off."""
    held = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(held) + 1)
        match chance.randrange(5):
            case 0:
                held[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del held[place : place + chance.randint(1, 20)]
            case 2:
                held[place:place] = held[place : place + chance.randint(1, 40)]
            case 3:
                held[place:place] = chance.choice(
                    [b"\0", b"\r\n", b"%00", b"../", b"\xff\xfe", b"9" * 40, b"{" * 30]
                )
            case _:
                del held[place:]
    return bytes(held)


def send_bytes(target: Served, content: bytes) -> int:
    """Send bytes that may be no HTTP; the status of the answer, or 0 if there is none."""
    with socket.create_connection(("127.0.0.1", target.port), 30) as caller:
        caller.sendall(content)
        caller.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: caller.recv(65_536), b""))
    status = int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    assert status < 500, (content, answer)
    return status


def whole(request: Request) -> bytes:
    """A request as it goes over the wire."""
    route, path, content, headers = request
    lines = [f"{route.method} {path} HTTP/1.1", "Host: x", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(content or b'')}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (content or b"")


def some(strategy: st.SearchStrategy[Any], number: int, count: int, use: Callable[[Any], object]) -> None:
    """Use so many values of a strategy, others for each number."""

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(value=strategy)
    def run(value: Any) -> None:
        use(value)

    run()


@contextmanager
def attacked() -> Iterator[Served]:
    """A server to be attacked, with a small graph and stored queries."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_graph(folder / "g.omni")
        (folder / "stored.gq").write_text(f"{NAMES}\n{ADD}")
        with serving(folder / "g.omni", is_open=True, queries=folder) as target:
            yield target


def attack(target: Served, seconds: float, number: int) -> dict[str, Counter[int]]:
    """Attack a server; how many answers of each kind of request had which status."""
    seen: dict[str, Counter[int]] = {kind: Counter() for kind in ("values", "bytes", "schemathesis")}
    cases, chance, end = operations(target), random.Random(number), time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        strategy, tried = cases[chance.choice(sorted(cases))]
        kinds: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], int]]] = {
            "values": (requests(), lambda one: send(target, one)),
            "bytes": (requests(), lambda one: send_bytes(target, bent(whole(one), chance))),
            "schemathesis": (strategy, tried),
        }
        for kind, (values, sent) in kinds.items():
            some(values, number, _TURN, partial(_count, seen[kind], sent))
        assert target.request("GET", "/readyz").status == 200
    return seen


def _count(statuses: Counter[int], sent: Callable[[Any], int], one: Any) -> None:
    statuses[sent(one)] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given_ = parser.parse_args()
    sys.stdout.write(f"seed {given_.seed}\n")
    sys.stdout.flush()
    with attacked() as target:
        seen = attack(target, given_.seconds, given_.seed)
    for kind, statuses in seen.items():
        counted = ", ".join(f"{status or 'closed'}: {count}" for status, count in sorted(statuses.items()))
        sys.stdout.write(f"{kind}: {sum(statuses.values()):,} requests; {counted}\n")
    sys.stdout.write("no answer was a failure of the server\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
