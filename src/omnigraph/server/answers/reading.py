"""The routes that read. Each is a plain function of a call, which runs in a thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

import omnigraph
from omnigraph.errors import OmniError
from omnigraph.graph import Graph, with_instead
from omnigraph.history.feed.pages import ChangePage
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION
from omnigraph.policy.actions import Action
from omnigraph.read.result.cells import json_value
from omnigraph.read.result.result import Result
from omnigraph.server.answers.calls import ARROW, NDJSON, Answer, Call, Followed, Found, Rendered, Streamed, Text
from omnigraph.server.observing.metrics import MEDIA_TYPE as METRICS

RESULT_HEADER = "Omnigraph-Result"
"""The header in which an answer without room for it says which query, on which state of the graph."""
STREAM_FROM = 8 << 20
"""A result of more bytes than this is streamed."""


def health(_: Call) -> Answer:
    """The process is alive."""
    return _plain(
        {
            "status": "ok",
            "version": omnigraph.__version__,
            "internal_schema_version": INTERNAL_SCHEMA_VERSION,
        }
    )


def readiness(call: Call) -> Answer:
    """The server takes requests: the newest state of each graph can be read, and it is not stopping."""
    if call.server.is_stopping:
        return _plain({"status": "stopping"}, 503)
    unreadable = sorted(name for name, graph in call.server.graphs.items() if not _is_readable(graph))
    if unreadable:
        return _plain({"status": "unavailable", "graphs": unreadable}, 503)
    return _plain({"status": "ready"})


def _is_readable(graph: Graph) -> bool:
    """Can the newest state of a graph be read? Why not is for the log of the store, not for callers without a
    token."""
    try:
        with_instead(graph, {Action.READ: None}).snapshot()
    except OmniError:
        return False
    return True


def openapi(call: Call) -> Answer:
    """This description of the server."""
    return _plain(call.server.openapi())


def metrics(call: Call) -> Answer:
    """Counters for Prometheus."""
    return Text(call.server.metrics_text(), METRICS)


def graphs(call: Call) -> Answer:
    """The graphs of this server."""
    listed = [{"graph_id": name, "uri": graph.address} for name, graph in sorted(call.server.graphs.items())]
    return _plain({"graphs": listed})


def snapshot(call: Call) -> Answer:
    """A state of a branch: its commit, and the version of each table."""
    found = call.graph.snapshot(call.get("branch"), at=call.get("snapshot"))
    return Found(found, found.as_json)


def schema(call: Call) -> Answer:
    """The accepted schema, as its author wrote it."""
    return _plain({"schema_source": call.graph.schema_source(call.get("branch"), at=call.get("snapshot"))})


def query(call: Call) -> Answer:
    """Run a read on one state of the graph."""
    found = call.graph.query(
        call.values["query"],
        call.get("params"),
        name=call.get("name"),
        branch=call.get("branch"),
        at=call.get("snapshot"),
        exact=call.get("exact", False),
        timeout=call.get("timeout"),
        memory_limit=call.get("memory_limit"),
        cancellation=call.cancellation,
        engine="local",
    )
    return result_answer(found, call.media_type)


def result_answer(found: Result, media_type: str) -> Answer:
    """A result in the form that the caller wants, in memory if it is small."""
    about = {
        "query_name": found.query_name,
        "target": found.target.as_json(),
        "graph_commit_id": found.graph_commit_id,
        "row_count": len(found),
    }
    headers = {RESULT_HEADER: json.dumps(about)}
    writers: dict[str, Callable[[Result, BinaryIO], None]] = {ARROW: _write_arrow, NDJSON: _write_lines}
    write = writers.get(media_type)
    if write is None:
        return Found(None, found.as_json)
    if found.table.nbytes > STREAM_FROM:
        return Streamed(lambda target: write(found, target), media_type, headers)
    sink = pa.BufferOutputStream()
    write(found, sink)
    return Rendered(sink.getvalue().to_pybytes(), media_type, headers=headers)


def _write_arrow(found: Result, target: BinaryIO) -> None:
    with pa.ipc.new_stream(target, found.table.schema) as stream:
        stream.write_table(found.table, max_chunksize=1 << 16)


def _write_lines(found: Result, target: BinaryIO) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    target.writelines(encode(row).encode() + b"\n" for row in found.iter_json_rows())


def entity(call: Call) -> Answer:
    """One node or edge with all its properties."""
    found = call.graph.entity(
        call.values["type"], call.values["id"], branch=call.get("branch"), at=call.get("snapshot")
    )

    def as_json() -> dict[str, Any]:
        shown = None if found is None else {name: json_value(value) for name, value in found.items()}
        return {"entity": shown}

    return Found(found, as_json)


def explain(call: Call) -> Answer:
    """How a query finds its rows."""
    text = call.graph.explain(
        call.values["query"],
        call.get("params"),
        name=call.get("name"),
        branch=call.get("branch"),
        at=call.get("snapshot"),
        exact=call.get("exact", False),
        analyze=call.get("analyze", False),
    )
    return _plain({"plan": text})


def branches(call: Call) -> Answer:
    """All branches, main first."""
    return _listed("branches", call.graph.branches())


def damaged(call: Call) -> Answer:
    """What is wrong with the branches and tags that cannot be read."""
    found = {"branches": call.graph.damaged_branches(), "tags": call.graph.damaged_tags()}
    return Found(found, lambda: {name: [each.as_json() for each in ones] for name, ones in found.items()})


def tags(call: Call) -> Answer:
    """All tags, by name."""
    return _listed("tags", call.graph.tags())


def commits(call: Call) -> Answer:
    """The commits that led to a branch, newest first: a page of them."""
    limit = call.get("limit", 50)
    chosen = {
        name: call.values[name] for name in ("actor", "kind", "since", "until", "after") if name in call.values
    }
    return _listed("commits", call.graph.commits(call.get("branch"), limit=limit, **chosen))


def commit(call: Call) -> Answer:
    """One commit by its id or by a tag."""
    found = call.graph.commit(call.values["commit"])
    return Found(found, found.as_json)


def commit_changes(call: Call) -> Answer:
    """What a commit has changed against its first parent: a page of it."""
    page = call.graph.commit_changes(call.values["commit"], **_filters(call, "limit", "limit_bytes", "page_token"))
    return Found(page, page.as_json)


def changes(call: Call) -> Answer:
    """The commits of a branch in order, each with what it changed: a page of them."""
    names = ("limit", "limit_bytes", "limit_commits", "page_token", "start", "cursor")
    page = call.graph.changes(call.get("branch"), **_filters(call, *names))
    return Found(page, page.as_json)


def follow(call: Call) -> Answer:
    """The changes of a branch as they are made, as server-sent events that go on until the caller leaves."""
    filters, branch, graph = _filters(call, "limit", "limit_bytes"), call.get("branch"), call.graph

    def poll(position: Mapping[str, Any]) -> ChangePage:
        return graph.changes(branch, **filters, **position)

    given = call.get("last_event_id") or call.get("cursor")
    start = {"cursor": given} if given is not None else {"start": call.get("start", "now")}
    return Followed(poll(start), poll)


def log(call: Call) -> Answer:
    """The commits that led to a branch, with the branches and tags that lead to each."""
    names = ("type", "id", "stat", "actor", "kind", "since", "until", "after", "limit")
    chosen = {name: call.values[name] for name in names if name in call.values}
    return _listed("entries", call.graph.log(call.get("branch"), **chosen))


def blame(call: Call) -> Answer:
    """For each property of one node or edge, the commit that gave it its value."""
    found = call.graph.blame(
        call.values["type"], call.values["id"], branch=call.get("branch"), at=call.get("snapshot")
    )
    return Found(found, found.as_json)


def schema_history(call: Call) -> Answer:
    """The schemas that a branch has had, newest first."""
    return _listed("schemas", call.graph.schema_history(call.get("branch")))


def recoveries(call: Call) -> Answer:
    """What became of interrupted writes."""
    return _listed("recoveries", call.graph.recoveries())


def export(call: Call) -> Answer:
    """One state of the graph, or some types of it, as records that a load takes back."""
    graph, types = call.graph, call.get("type_names") or None
    exported = with_instead(graph, {Action.READ: Action.EXPORT})
    state = exported.snapshot(call.get("branch"), at=call.get("snapshot"))

    def write(target: BinaryIO) -> None:
        graph.export(
            target,
            at=state,
            types=types,
            ordered=call.get("ordered", False),
            engine="local",
            cancellation=call.cancellation,
        )

    about = {
        "branch": state.branch,
        "graph_commit_id": state.graph_commit_id,
        "manifest_version": state.manifest_version,
        "rows": {key: state.rows(key) for key in table_keys(state.catalog, types) if key in state.tables},
    }
    return Streamed(write, NDJSON, {RESULT_HEADER: json.dumps(about)})


def baseline(call: Call) -> Answer:
    """The newest state of a branch as records, then one record with the cursor from which its changes go on."""
    graph = call.graph

    def write(target: BinaryIO) -> None:
        done = graph.baseline(target, call.get("branch"), **_filters(call))
        target.write(json.dumps({"baseline": done.as_json()}).encode() + b"\n")

    return Streamed(write, NDJSON)


def _filters(call: Call, *names: str) -> dict[str, Any]:
    """The keywords of a call about changes, as the methods of a graph name them."""
    filters = {"kind": "kinds", "type": "types", "op": "ops"}
    renamed = {filters[name]: call.values[name] for name in filters if name in call.values}
    return renamed | {name: call.values[name] for name in names if name in call.values}


def _plain(value: dict[str, Any], status: int = 200) -> Found:
    return Found(value, lambda: value, status)


def _listed(name: str, found: Sequence[Any]) -> Found:
    return Found(list(found), lambda: {name: [each.as_json() for each in found]})
