"""The OpenAPI document describes the server that is running: its routes, its parameters and its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.server.running import ADD, NAMES, Served, serving

from omnigraph.messages.failures import CODES, STATUSES
from omnigraph.server.routes.openapi import SCHEMAS
from omnigraph.server.routes.route import Access
from omnigraph.server.routes.table import ROUTES

LINE = b'{"type": "Person", "data": {"name": "cid"}}'
BLOB = "/graphs/default/blob?type=Person&id=ada&property=photo"
NDJSON = "application/x-ndjson"
CALLS: dict[str, tuple[str, object]] = {
    "health": ("/healthz", None),
    "readiness": ("/readyz", None),
    "openapi": ("/openapi.json", None),
    "metrics": ("/metrics", None),
    "graphs": ("/graphs", None),
    "snapshot": ("/graphs/default/snapshot", None),
    "schema": ("/graphs/default/schema", None),
    "query": ("/graphs/default/query", {"query": NAMES}),
    "explain": ("/graphs/default/explain", {"query": NAMES}),
    "entity": ("/graphs/default/entity?type=Person&id=ada", None),
    "branches": ("/graphs/default/branches", None),
    "damaged": ("/graphs/default/damaged", None),
    "tags": ("/graphs/default/tags", None),
    "commits": ("/graphs/default/commits", None),
    "commit_changes": ("/graphs/default/commits/HEAD/changes", None),
    "commit": ("/graphs/default/commits/HEAD", None),
    "changes": ("/graphs/default/changes?start=beginning", None),
    "log": ("/graphs/default/log?stat=true", None),
    "blame": ("/graphs/default/blame?type=Person&id=ada", None),
    "schema_history": ("/graphs/default/schema/history", None),
    "put_blob": (BLOB, b"hello"),
    "get_blob": (BLOB, None),
    "stat_blob": (BLOB, None),
    "clear_blob": (BLOB, None),
    "queries": ("/graphs/default/queries", None),
    "invoke": ("/graphs/default/queries/names", {}),
    "invoke_if_graph_commit": ("/graphs/default/queries/add/if-graph-commit", {"params": {"n": "fay", "a": 1}}),
    "recoveries": ("/graphs/default/recoveries", None),
    "export": ("/graphs/default/export", {}),
    "baseline": ("/graphs/default/changes/baseline", {}),
    "create_branch": ("/graphs/default/branches", {"name": "dev"}),
    "mutate": ("/graphs/default/mutate", {"query": ADD, "params": {"n": "dan"}, "branch": "dev"}),
    "preview_merge": ("/graphs/default/branches/merge/preview", {"source": "dev"}),
    "merge": ("/graphs/default/branches/merge", {"source": "dev"}),
    "delete_branch": ("/graphs/default/branches/dev", None),
    "mutate_if_graph_commit": ("/graphs/default/mutate/if-graph-commit", {"query": ADD, "params": {"n": "eve"}}),
    "load": ("/graphs/default/load", {"data": LINE.decode()}),
    "load_records": ("/graphs/default/load/ndjson", LINE),
    "revert": ("/graphs/default/revert", {"commits": ["HEAD"]}),
    "cherry_pick": ("/graphs/default/cherry-pick", {"commit": "HEAD"}),
    "reset": ("/graphs/default/reset", {"commit": "HEAD"}),
    "create_tag": ("/graphs/default/tags", {"name": "v1"}),
    "delete_tag": ("/graphs/default/tags/v1", None),
    "plan_schema": ("/graphs/default/schema/plan", {"schema_source": "node Person { name: String @key }"}),
    "apply_schema": (
        "/graphs/default/schema/apply",
        {"schema_source": "SCHEMA\nnode Place { code: String @key }"},
    ),
}
"""One request for each route, in an order in which all of them succeed."""


def test_every_route_answers_as_the_document_says(graph_place: Path) -> None:
    (graph_place.parent / "stored.gq").write_text(f"{NAMES}\n{ADD}")
    with serving(graph_place, queries=graph_place.parent) as server:
        document = server.request("GET", "/openapi.json", actor=None).json
        operations = {
            operation["operationId"]: (path, method, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        assert set(operations) == {route.name for route in ROUTES} == {*CALLS, "follow"}
        for name, (path, body) in CALLS.items():
            template, method, operation = operations[name]
            reply = called(server, method.upper(), path, body)
            assert reply.status == 200, (name, reply.content)
            forms = operation["responses"]["200"]["content"]
            form = reply.headers["content-type"].partition(";")[0]
            assert form in forms, name
            if form == "application/json":
                check(document, forms[form]["schema"], reply.json, name)
            assert template.count("{") == sum(each["in"] == "path" for each in operation["parameters"])


def called(server: Served, method: str, path: str, body: object) -> Any:
    """The reply to one request of the table above."""
    head = server.ask("/commits?limit=1")["commits"][0]["graph_commit_id"]
    path = path.replace("HEAD", head)
    if isinstance(body, dict):
        body = json.loads(json.dumps(body).replace("HEAD", head))
    if isinstance(body, bytes):
        return server.request(method, path, content=body, Content_Type=NDJSON)
    if isinstance(body, dict) and str(body.get("schema_source", "")).startswith("SCHEMA"):
        body = {"schema_source": server.ask("/schema")["schema_source"] + body["schema_source"][6:]}
    condition = {"Omnigraph_If_Graph_Commit": head} if path.endswith("/if-graph-commit") else {}
    return server.request(method, path, body, **condition)


def check(document: Mapping[str, Any], schema: Mapping[str, Any], value: Any, where: str) -> None:
    """Compare a value with a JSON schema, as far as ours go."""
    if "$ref" in schema:
        found = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        check(document, found, value, where)
        return
    if "anyOf" in schema:
        one, null = schema["anyOf"]
        assert null == {"type": "null"}
        if value is not None:
            check(document, one, value, where)
        return
    kinds: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "boolean": bool,
        "object": dict,
        "array": list,
    }
    is_right = isinstance(value, kinds[schema["type"]])
    assert is_right, f"{where} is {value!r}, not {schema['type']}"
    for name in schema.get("required", ()):
        assert name in value, f"{where} has no {name}"
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            check(document, inner, value[name], f"{where}.{name}")
    for index, each in enumerate(value if schema["type"] == "array" else ()):
        check(document, schema["items"], each, f"{where}[{index}]")


def test_a_server_without_tokens_asks_for_none(graph_place: Path) -> None:
    with serving(graph_place, is_open=True) as server:
        document = server.request("GET", "/openapi.json").json
    assert "securitySchemes" not in document["components"]
    assert all("security" not in each for methods in document["paths"].values() for each in methods.values())


def test_the_table_of_routes_is_whole() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert {route.answer for route in ROUTES} - set(SCHEMAS) == {"bytes", "text", "records"}
    for route in ROUTES:
        assert route.summary.endswith("."), route.name
        assert (route.access is Access.OPEN) == (route.name in {"health", "readiness", "openapi"})
    assert set(STATUSES.values()) <= set(CODES)
