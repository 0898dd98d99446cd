"""What a server refuses, and how it says so: with a status, a code, a message and nothing written."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import ADD, NAMES, Served, serving

from omnigraph.errors import ChangeFeedGap, SchemaChanged
from omnigraph.messages.failures import failure_body
from omnigraph.server.settings import ServerSettings

JSON = "application/json"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer unknown",
        "Bearer  token-of-ada",
        "Basic token-of-ada",
        "token-of-ada",
    ],
)
def test_without_a_known_token_there_is_nothing(served: Served, authorization: str | None) -> None:
    headers: dict[str, Any] = {} if authorization is None else {"Authorization": authorization}
    for method, path in (("GET", "/graphs"), ("GET", "/graphs/default/schema"), ("GET", "/metrics")):
        refused = served.request(method, path, actor=None, **headers)
        assert (refused.status, refused.json["code"]) == (401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"


def test_an_error_has_an_id_that_the_caller_may_choose(served: Served) -> None:
    refused = served.request("GET", "/graphs/other/schema", X_Request_Id="call-17")
    assert refused.headers["x-request-id"] == refused.json["request_id"] == "call-17"
    assert (refused.status, refused.json["code"]) == (404, "not_found")
    made = served.request("GET", "/graphs/other/schema", X_Request_Id="not a single word")
    assert len(made.json["request_id"]) == 26


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/graphs/default/nothing", 404, "GET /openapi.json"),
        ("/graphs/default/schema/", 404, "GET /openapi.json"),
        ("/graphs/../etc/schema", 404, "GET /openapi.json"),
        ("/graphs/%2e%2e/schema", 404, "no graph '..'"),
        ("/graphs/no%20such/schema", 404, "no graph 'no such'"),
        ("/graphs/default/snapshot?branch=mian", 404, "did you mean 'main'?"),
        ("/graphs/default/snapshot?branch=../../etc", 404, "no branch"),
        ("/graphs/default/snapshot?branch=%00", 404, "no branch"),
        ("/graphs/default/snapshot?branche=main", 400, "did you mean 'branch'?"),
        ("/graphs/default/snapshot?branch=a&branch=b", 400, "2 times"),
        ("/graphs/default/commits?limit=ten", 400, "whole number"),
        ("/graphs/default/commits?limit=99999999999999999999", 400, "whole number"),
        ("/graphs/default/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV", 404, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("/graphs/default/changes?cursor=nonsense", 400, "change cursor rejected"),
        ("/graphs/default/changes?kind=thing", 400, "'kind' cannot be used: 'thing' is none of node, edge"),
        ("/graphs/default/changes?limit=1e3", 400, "whole number, not '1e3'"),
        ("/graphs/default/entity?type=Person", 400, "'id'"),
        ("/graphs/default/entity?type=Perso&id=x", 400, "Perso"),
    ],
)
def test_what_is_not_there_or_not_understood(served: Served, path: str, status: int, said: str) -> None:
    refused = served.request("GET", path)
    assert refused.status == status, refused.content
    assert said in refused.json["error"]
    assert refused.json["outcome"] == "nothing_written"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "'query'"),
        (b"[]", "object"),
        (b"{", "not JSON"),
        (b'{"query": 1}', "'query'"),
        (b'{"query": "query q() { match { $p: Persn } return { $p } }"}', "unknown node type `Persn`"),
        (b'{"query": "query q() {"}', "parse error"),
        (b'{"query": "x", "snapshot": true}', "'snapshot'"),
        (b'{"query": "x", "params": []}', "'params'"),
        (b'{"query": "x", "timeout": NaN}', "not JSON"),
        (b'{"query": "x", "query": "y"}', "'query' is given twice"),
        (b'{"query": "x", "params": {"n": 1, "n": 2}}', "'n' is given twice"),
        (b'{"query": "x", "timeout": 0}', "'timeout'"),
        (b'{"query": "x", "nam": "y"}', "did you mean 'name'?"),
        (b'{"query": "\\ud800"}', "Unicode"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"query": "x", "params": ' + b'{"a":' * 80 + b"1" + b"}" * 81, "nested"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_bodies_that_are_no_query(served: Served, body: bytes, said: str) -> None:
    refused = served.request("POST", "/graphs/default/query", content=body, Content_Type=JSON)
    assert refused.status == 400, refused.content
    assert said in refused.json["error"]


@pytest.mark.parametrize("header", ["Idempotency-Key", "Omnigraph-If-Graph-Commit", "Omnigraph-Graph-Commit-Id"])
def test_an_empty_condition_is_none(served: Served, header: str) -> None:
    """A variable that a script has forgotten to fill is a mistake, not a condition that holds."""
    given: dict[str, Any] = {header: " "}
    refused = served.request("POST", "/graphs/default/mutate", {"query": ADD}, **given)
    assert (refused.status, refused.json["argument"]) == (400, header)


def test_the_code_of_an_error_is_one_of_its_status(served: Served) -> None:
    """The kinds of one code are told apart by their fields, as clients of other versions can read them."""
    first = served.ask("/commits?limit=1000")["commits"][-1]["graph_commit_id"]
    parentless = served.request("GET", f"/graphs/default/commits/{first}/changes")
    known = {"reason": "parentless_commit", "graph_commit_id": first}
    assert (parentless.status, parentless.json["code"]) == (409, "conflict")
    assert parentless.json["change_diff_refusal"] == known
    cursor = served.request("GET", "/graphs/default/changes?cursor=x")
    assert (cursor.status, cursor.json["code"]) == (400, "bad_request")
    gap = failure_body(ChangeFeedGap("main", "c", first))
    assert (gap["code"], gap["change_feed_gap"]) == ("gone", {"cursor": "c", "first_unreadable_commit_id": first})
    assert failure_body(SchemaChanged("main"))["read_set_conflict"] == {"member": "schema"}


def test_a_mutation_is_no_query_and_a_query_no_mutation(served: Served) -> None:
    assert served.request("POST", "/graphs/default/query", {"query": ADD}).status == 400
    assert served.request("POST", "/graphs/default/mutate", {"query": NAMES}).status == 400


def test_forms_and_methods_that_a_route_does_not_have(served: Served) -> None:
    content = b'{"query": "x"}'
    assert served.request("POST", "/graphs/default/query", content=content).status == 415
    csv = served.request("POST", "/graphs/default/query", {"query": NAMES}, Accept="text/csv")
    assert (csv.status, csv.json["code"]) == (415, "unsupported_media_type")
    odd = served.request(
        "POST", "/graphs/default/query", content=content, Content_Type=JSON, Content_Encoding="br"
    )
    assert odd.status == 415
    wrong = served.request("PUT", "/graphs/default/query", {})
    assert (wrong.status, wrong.json["code"]) == (405, "method_not_allowed")


def test_rows_that_break_a_rule_are_named(served: Served) -> None:
    line = b'{"type": "Person", "data": {"name": "old", "age": 900}}'
    refused = served.request(
        "POST", "/graphs/default/load/ndjson", content=line, Content_Type="application/x-ndjson"
    )
    assert (refused.status, refused.json["violations"][0]["rule"]) == (400, "range")
    known = b'{"type": "Person", "data": {"name": "ada"}}'
    path = "/graphs/default/load/ndjson?mode=append"
    conflict = served.request("POST", path, content=known, Content_Type="application/x-ndjson")
    assert (conflict.status, conflict.json["key_conflict"]["entity_id"]) == (409, "ada")


def test_a_query_that_takes_too_long_or_too_much_is_stopped(served: Served) -> None:
    pairs = "query pairs() { match { $a: Person  $b: Person } return { $a.name as a, $b.name as b } }"
    slow = served.request("POST", "/graphs/default/query", {"query": pairs, "timeout": 1e-9})
    assert (slow.status, slow.json["resource_limit"]["resource"]) == (413, "seconds")
    large = served.request("POST", "/graphs/default/query", {"query": pairs, "memory_limit": 1})
    assert (large.status, large.json["resource_limit"]["resource"]) == (413, "bytes")


def test_bodies_have_a_limit_packed_or_not(served: Served) -> None:
    limit = ServerSettings().body_bytes
    large = served.request("POST", "/graphs/default/query", content=b" " * (limit + 1), Content_Type=JSON)
    assert (large.status, large.json["resource_limit"]["limit"]) == (413, limit)
    bomb = gzip.compress(b" " * (64 << 20))
    assert len(bomb) < limit
    packed = served.request(
        "POST", "/graphs/default/query", content=bomb, Content_Type=JSON, Content_Encoding="gzip"
    )
    assert (packed.status, packed.json["code"]) == (413, "too_large")
    broken = served.request(
        "POST", "/graphs/default/query", content=b"no", Content_Type=JSON, Content_Encoding="gzip"
    )
    assert broken.status == 400


def test_a_body_that_stops_arriving_is_given_up(graph_place: Path) -> None:
    with serving(graph_place, is_open=True, body_seconds=0.2) as server:
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            caller.sendall(
                b"POST /graphs/default/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 100\r\n\r\n{"query'
            )
            assert b"408 Request Timeout" in caller.recv(4096)
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            caller.sendall(b"POST /graphs/default/mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert server.names() == ["ada", "bob"]


def test_an_actor_has_so_many_writes_at_a_time(graph_place: Path) -> None:
    """One write is held open by a body that does not end; the next one of the same actor has to wait its turn."""
    with serving(graph_place, actor_writes=1) as server:
        with socket.create_connection(("127.0.0.1", server.port), 30) as slow:
            slow.sendall(
                b"POST /graphs/default/mutate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-ada\r\n"
                b"Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
            )
            assert b"100 Continue" in slow.recv(4096)
            body = {"query": ADD, "params": {"n": "cid"}}
            refused = server.request("POST", "/graphs/default/mutate", body)
            assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
            assert refused.headers["retry-after"] == "1"
            assert server.request("POST", "/graphs/default/mutate", body, actor="bob").status == 200
            assert server.names() == ["ada", "bob", "cid"]
        assert server.request("GET", "/graphs/default/schema").status == 200
