"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import omnigraph
from omnigraph.messages.failures import CODES
from omnigraph.server.answers.calls import JSON
from omnigraph.server.routes.parameters import Place
from omnigraph.server.routes.route import Access, Route
from omnigraph.server.routes.table import ROUTES

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_FLAG: Final = {"type": "boolean"}
_OBJECT: Final = {"type": "object"}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _list(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(schema)}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**members: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has all these members, and perhaps others."""
    return {"type": "object", "required": list(members), "properties": {k: dict(v) for k, v in members.items()}}


_TABLE: Final = _object(
    table_key=_TEXT,
    location=_TEXT,
    table_version=_NUMBER,
    table_branch=_or_null(_TEXT),
    row_count=_NUMBER,
)
_LOADED: Final = _list(_object(name=_TEXT, entities_loaded=_NUMBER))
SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "health": _object(status=_TEXT, version=_TEXT, internal_schema_version=_NUMBER),
    "readiness": _object(status=_TEXT),
    "object": _OBJECT,
    "graphs": _object(graphs=_list(_object(graph_id=_TEXT, uri=_TEXT))),
    "snapshot": _object(
        branch=_TEXT,
        manifest_version=_NUMBER,
        graph_commit_id=_or_null(_TEXT),
        internal_schema_version=_NUMBER,
        tables=_list(_TABLE),
    ),
    "schema": _object(schema_source=_TEXT),
    "result": _object(
        query_name=_TEXT,
        target=_OBJECT,
        row_count=_NUMBER,
        columns=_list(_TEXT),
        rows=_list(_OBJECT),
        graph_commit_id=_or_null(_TEXT),
    ),
    "explain": _object(plan=_TEXT),
    "entity": _object(entity=_or_null(_OBJECT)),
    "branch": _object(
        name=_TEXT,
        parent=_or_null(_TEXT),
        fork_manifest_version=_or_null(_NUMBER),
        fork_commit_id=_or_null(_TEXT),
        created_at=_or_null(_TEXT),
        creator=_or_null(_TEXT),
    ),
    "branches": _object(branches=_list(_ref("branch"))),
    "tag": _object(
        name=_TEXT, graph_commit_id=_TEXT, branch=_TEXT, manifest_version=_NUMBER, creator=_or_null(_TEXT)
    ),
    "tags": _object(tags=_list(_ref("tag"))),
    "name": _object(name=_TEXT),
    "commit": _object(
        graph_commit_id=_TEXT,
        branch=_TEXT,
        manifest_version=_NUMBER,
        parents=_list(_TEXT),
        created_at=_TEXT,
        kind=_TEXT,
        actor_id=_or_null(_TEXT),
        message=_or_null(_TEXT),
    ),
    "commits": _object(commits=_list(_ref("commit"))),
    "commit_changes": _object(
        cause=_ref("commit"), changes=_list(_OBJECT), complete=_FLAG, next_page_token=_or_null(_TEXT)
    ),
    "changes": _object(
        branch=_TEXT,
        blocks=_list(_object(cause=_ref("commit"), changes=_list(_OBJECT), complete=_FLAG)),
        next_page_token=_or_null(_TEXT),
        cursor=_or_null(_TEXT),
        caught_up=_FLAG,
    ),
    "damaged": _object(branches=_list(_OBJECT), tags=_list(_OBJECT)),
    "log": _object(entries=_list(_OBJECT)),
    "blame": _OBJECT,
    "schema_history": _object(schemas=_list(_OBJECT)),
    "merge_plan": _object(outcome=_TEXT, source=_TEXT, target=_TEXT, conflicts=_list(_OBJECT)),
    "undo": _object(branch=_TEXT, kind=_TEXT, commit=_or_null(_ref("commit"))),
    "queries": _object(queries=_list(_object(name=_TEXT, mutation=_FLAG, params=_list(_OBJECT)))),
    "recoveries": _object(recoveries=_list(_OBJECT)),
    "mutation": _object(
        branch=_TEXT,
        query_name=_TEXT,
        affected_nodes=_NUMBER,
        affected_edges=_NUMBER,
        actor_id=_or_null(_TEXT),
        commit=_or_null(_ref("commit")),
    ),
    "load": _object(
        branch=_TEXT,
        base_branch=_or_null(_TEXT),
        branch_created=_FLAG,
        mode=_TEXT,
        nodes=_LOADED,
        edges=_LOADED,
        total_entities=_NUMBER,
        edges_without_identity=_NUMBER,
        commit=_or_null(_ref("commit")),
    ),
    "merge": _object(outcome=_TEXT, source=_TEXT, target=_TEXT, commit=_or_null(_ref("commit"))),
    "schema_plan": _OBJECT,
    "schema_result": _object(commit=_or_null(_ref("commit"))),
    "failure": _object(
        error=_TEXT,
        code={"type": "string"},
        outcome={"type": "string", "enum": ["nothing_written", "written", "unknown"]},
        request_id=_or_null(_TEXT),
    ),
}


def openapi_document(*, is_open: bool) -> dict[str, Any]:
    """All routes, as OpenAPI describes them. A server without tokens asks for none."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, is_open)
    components: dict[str, Any] = {"schemas": {name: dict(schema) for name, schema in SCHEMAS.items()}}
    if not is_open:
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "OmniGraph", "version": omnigraph.__version__},
        "paths": paths,
        "components": components,
    }


def _operation(route: Route, is_open: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [
            {"name": each.name, "in": each.place.value, "required": each.required, "schema": each.schema}
            for each in route.parameters
            if each.place is not Place.BODY
        ],
        "responses": {
            "200": {"description": "Done.", "content": {form: _form(route, form) for form in route.gives}},
            "default": {
                "description": f"What is wrong. The code is one of {', '.join(sorted(CODES.values()))}.",
                "content": {JSON: {"schema": _ref("failure")}},
            },
        },
    }
    body = _request_body(route)
    if body is not None:
        found["requestBody"] = body
    if route.access is not Access.OPEN and not is_open:
        found["security"] = [{"bearer": []}]
    return found


def _form(route: Route, form: str) -> dict[str, Any]:
    return {"schema": _ref(route.answer)} if form == JSON else {"schema": _TEXT}


def _request_body(route: Route) -> dict[str, Any] | None:
    if route.takes is None:
        return None
    members = [each for each in route.parameters if each.place is Place.BODY]
    required = [each.name for each in members if each.required]
    schema: dict[str, Any] = _TEXT
    if route.takes == JSON:
        schema = {
            "type": "object",
            "properties": {each.name: each.schema for each in members},
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }
    return {"required": bool(required), "content": {route.takes: {"schema": schema}}}
