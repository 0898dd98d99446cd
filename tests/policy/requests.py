"""Every route of a server, and every command that uses one: what is sent, and which verb of a graph it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.policy.verbs import ADD, DELETE, NAMES, PERSON, RECORD, SCHEMA, VERBS, Need, Verb

from omnigraph.policy.actions import Action

NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"
BLOB = "type=Person&id=ada&property=photo"
FREE_ROUTES = {"health", "readiness", "openapi", "metrics"}
"""Routes that tell nothing about any graph."""


@dataclass(frozen=True)
class Sent:
    """A request: its path below the graph, a body, and what has to be there before."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"


Request = Callable[[int, Any], Sent]


def get(path: str) -> Request:
    return lambda _, prepared: Sent("GET", path.format(prepared))


def post(path: str, **body: Any) -> Request:
    return lambda _, __: Sent("POST", path, body)


DELETED = {"query": DELETE, "params": {"n": "nobody"}}
CHANGED = VERBS["mutate"]
ROUTES: dict[str, tuple[Verb, Request]] = {
    "graphs": (Verb(lambda _: [Need(Action.GRAPH_LIST)], CHANGED.run), lambda _, __: Sent("GET", "/graphs")),
    "snapshot": (VERBS["snapshot"], get("/snapshot?branch=%20main%20")),
    "schema": (VERBS["schema_source"], get("/schema")),
    "query": (VERBS["query"], post("/query", query=NAMES)),
    "explain": (VERBS["explain"], post("/explain", query=NAMES)),
    "entity": (VERBS["entity"], get("/entity?type=Person&id=ada")),
    "stat_blob": (VERBS["blob"], lambda _, __: Sent("HEAD", f"/blob?{BLOB}")),
    "get_blob": (VERBS["blob"], get(f"/blob?{BLOB}")),
    "put_blob": (VERBS["put_blob"], lambda _, __: Sent("PUT", f"/blob?{BLOB}", b"other", BYTES)),
    "clear_blob": (VERBS["put_blob"], lambda _, __: Sent("DELETE", "/blob?type=Person&id=bob&property=photo")),
    "branches": (VERBS["branches"], get("/branches")),
    "damaged": (VERBS["damaged_branches"], get("/damaged")),
    "tags": (VERBS["tags"], get("/tags")),
    "commits": (VERBS["commits"], get("/commits")),
    "log": (VERBS["log"], get("/log?type=Person&id=ada")),
    "blame": (VERBS["blame"], get("/blame?type=Person&id=ada")),
    "schema_history": (VERBS["schema_history"], get("/schema/history")),
    "commit_changes": (VERBS["commit_changes"], get("/commits/{}/changes")),
    "commit": (VERBS["commit"], get("/commits/{}")),
    "changes": (VERBS["changes"], get("/changes")),
    "follow": (VERBS["changes"], get("/changes/events")),
    "recoveries": (VERBS["recoveries"], get("/recoveries")),
    "export": (VERBS["export"], post("/export")),
    "baseline": (VERBS["baseline"], post("/changes/baseline")),
    "queries": (Verb(lambda _: [Need(Action.INVOKE_QUERY, "main")], CHANGED.run), get("/queries")),
    "invoke": (
        Verb(lambda _: [Need(Action.INVOKE_QUERY, "main")], CHANGED.run),
        post("/queries/gone", params={"n": "nobody"}),
    ),
    "invoke_if_graph_commit": (
        Verb(lambda _: [Need(Action.INVOKE_QUERY, "main")], CHANGED.run),
        post("/queries/gone/if-graph-commit", params={"n": "nobody"}),
    ),
    "mutate": (CHANGED, post("/mutate", **DELETED)),
    "mutate_if_graph_commit": (
        Verb(lambda _: [Need(Action.CHANGE, "main", PERSON)], CHANGED.run),
        lambda n, _: Sent("POST", "/mutate/if-graph-commit", {"query": ADD, "params": {"n": f"c{n}"}}),
    ),
    "load": (VERBS["load"], post("/load", data=RECORD)),
    "load_records": (
        VERBS["ingest"],
        lambda n, _: Sent("POST", f"/load/ndjson?branch=ing/{n}&from=main", RECORD.encode(), NDJSON),
    ),
    "create_branch": (VERBS["create_branch"], lambda n, _: Sent("POST", "/branches", {"name": f"new/{n}"})),
    "merge": (VERBS["merge"], lambda n, _: Sent("POST", "/branches/merge", {"source": f"src/{n}"})),
    "preview_merge": (
        VERBS["preview_merge"],
        lambda n, _: Sent("POST", "/branches/merge/preview", {"source": f"src/{n}"}),
    ),
    "revert": (VERBS["revert"], lambda _, commit: Sent("POST", "/revert", {"commits": [commit]})),
    "cherry_pick": (VERBS["cherry_pick"], lambda _, commit: Sent("POST", "/cherry-pick", {"commit": commit})),
    "reset": (VERBS["reset"], lambda _, commit: Sent("POST", "/reset", {"commit": commit})),
    "delete_branch": (VERBS["delete_branch"], lambda n, _: Sent("DELETE", f"/branches/old/{n}")),
    "create_tag": (VERBS["tag"], lambda n, _: Sent("POST", "/tags", {"name": f"t{n}"})),
    "delete_tag": (VERBS["delete_tag"], lambda n, _: Sent("DELETE", f"/tags/d{n}")),
    "plan_schema": (VERBS["plan_schema"], post("/schema/plan", schema_source=SCHEMA)),
    "apply_schema": (VERBS["apply_schema"], post("/schema/apply", schema_source=SCHEMA)),
}
"""The row of each route."""

Words = Callable[[int, Any], Sequence[str]]


def words(*given: str) -> Words:
    return lambda _, prepared: [each.format(prepared) for each in given]


GONE = json.dumps({"n": "nobody"})
COMMANDS: dict[str, tuple[Verb, Words]] = {
    "query": (VERBS["query"], words("query", "-e", NAMES.replace("{", "{{").replace("}", "}}"))),
    "explain": (VERBS["explain"], words("explain", "-e", NAMES.replace("{", "{{").replace("}", "}}"))),
    "entity": (VERBS["entity"], words("entity", "Person", "ada")),
    "blob stat": (VERBS["blob"], words("blob", "stat", "Person", "ada", "photo")),
    "mutate": (CHANGED, lambda _, __: ["mutate", "-e", DELETE, "--params", GONE]),
    "load": (VERBS["load"], words("load", "--mode", "merge", "--data", "-")),
    "ingest": (VERBS["ingest"], lambda n, _: ["ingest", "--branch", f"ing/{n}", "--data", "-"]),
    "export": (VERBS["export"], words("export")),
    "snapshot": (VERBS["snapshot"], words("snapshot")),
    "log": (VERBS["commits"], words("log")),
    "blame": (VERBS["blame"], words("blame", "Person", "ada")),
    "revert": (VERBS["revert"], words("revert", "{}")),
    "cherry-pick": (VERBS["cherry_pick"], words("cherry-pick", "{}")),
    "reset": (VERBS["reset"], words("reset", "--to", "{}")),
    "schema show": (VERBS["schema_source"], words("schema", "show")),
    "schema history": (VERBS["schema_history"], words("schema", "history")),
    "branch create": (VERBS["create_branch"], lambda n, _: ["branch", "create", f"new/{n}"]),
    "branch list": (VERBS["branches"], words("branch", "list")),
    "branch merge": (VERBS["merge"], lambda n, _: ["branch", "merge", f"src/{n}"]),
    "branch delete": (VERBS["delete_branch"], lambda n, _: ["branch", "delete", f"old/{n}", "--yes"]),
    "tag create": (VERBS["tag"], lambda n, _: ["tag", "create", f"t{n}"]),
    "tag list": (VERBS["tags"], words("tag", "list")),
    "tag delete": (VERBS["delete_tag"], lambda n, _: ["tag", "delete", f"d{n}"]),
    "commit list": (VERBS["commits"], words("commit", "list")),
    "commit show": (VERBS["commit"], words("commit", "show", "{}")),
    "changes poll": (VERBS["changes"], words("changes", "poll")),
    "commit changes": (VERBS["commit_changes"], words("commit", "changes", "{}")),
    "changes baseline": (VERBS["baseline"], words("changes", "baseline", "--out", "base.jsonl", "--force")),
    "blob get": (VERBS["blob"], words("blob", "get", "Person", "ada", "photo")),
    "blob put": (VERBS["put_blob"], words("blob", "put", "Person", "ada", "photo")),
    "schema get": (VERBS["schema_source"], words("schema", "get")),
    "schema plan": (VERBS["plan_schema"], words("schema", "plan", "--to", "schema.pg")),
    "schema apply": (VERBS["apply_schema"], words("schema", "apply", "--to", "schema.pg")),
    "lint": (VERBS["catalog"], words("lint", "--query", "all.gq")),
    "queries validate": (VERBS["catalog"], words("queries", "validate", ".")),
    "queries list": (ROUTES["queries"][0], words("queries", "list")),
    "recovery list": (VERBS["recoveries"], words("recovery", "list")),
    "graphs list": (Verb(lambda _: [Need(Action.GRAPH_LIST)], CHANGED.run), words("graphs", "list")),
}
"""The row of each command that asks a server."""

OF_STORAGE = {
    "backup",
    "backups",
    "cleanup",
    "clone",
    "diff",
    "doctor",
    "embed",
    "index",
    "init",
    "jobs",
    "maintain",
    "optimize",
    "repair",
    "restore",
    "serve",
}
"""Commands that work on the files of a graph: their user can read and write these without any policy."""
OF_A_CLUSTER = {
    "cluster apply",
    "cluster approve",
    "cluster force-unlock",
    "cluster import",
    "cluster plan",
    "cluster refresh",
    "cluster status",
    "cluster validate",
}
"""Commands of the operator of a cluster, who writes its policies."""
WITHOUT_A_GRAPH = {
    "alias",
    "fmt",
    "login",
    "logout",
    "policy actions",
    "policy explain",
    "policy test",
    "policy validate",
    "profile list",
    "profile show",
    "schema infer",
    "version",
}
"""Commands that ask no graph anything."""
