"""Whatever is sent, a server answers with a status of its own: never a 500, never a hang."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples
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


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place: Path = tmp_path_factory.mktemp("hostile") / "g.omni"
    make_graph(place)
    with serving(place, is_open=True) as server:
        yield server


@st.composite
def requests(draw: st.DrawFn) -> tuple[Route, str, bytes | None, dict[str, str]]:
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


@given(request_=requests())
@settings(
    max_examples=examples(25, of=1_500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_request_is_answered_with_a_500(
    target: Served, request_: tuple[Route, str, bytes | None, dict[str, str]]
) -> None:
    route, path, content, headers = request_
    found = target.pool.request(
        route.method, target.url + path, body=content, headers=headers, timeout=60, redirect=False
    )
    assert found.status < 500, (route.name, path, content, found.data)
    if found.status != 200:
        assert {"error", "code", "outcome", "request_id"} <= set(found.json())
