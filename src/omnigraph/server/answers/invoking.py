"""The routes of stored queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.errors import InvalidArgument, PolicyDenied, QueryNotFound
from omnigraph.policy.actions import Action
from omnigraph.server.answers import reading, writing
from omnigraph.server.answers.calls import Answer, Call, Found
from omnigraph.server.answers.stored import StoredQuery

_INVOKED: Final = {Action.READ: Action.INVOKE_QUERY, Action.CHANGE: Action.INVOKE_QUERY}
"""What a stored query does is allowed to those who may invoke it."""


def queries(call: Call) -> Answer:
    """The stored queries of the graph, with their parameters and what they return."""
    listed = [stored.compiled.as_json() for _, stored in sorted(call.stored.items())]
    return Found({"queries": listed}, lambda: {"queries": listed})


def invoke(call: Call) -> Answer:
    """Run a stored query: the answer is that of a query, or that of a mutation."""
    name = call.values["query"]
    stored = call.stored.get(name)
    if stored is None:
        raise QueryNotFound(name)
    expected = call.get("expect_mutation")
    if expected is not None and expected != stored.is_mutation:
        does = "writes" if stored.is_mutation else "only reads"
        raise InvalidArgument("expect_mutation", f"the stored query '{name}' {does}")
    if stored.is_mutation and "snapshot" in call.values:
        raise InvalidArgument("snapshot", f"the stored query '{name}' writes, and older states are only read")
    if not stored.is_mutation and "omnigraph_if_graph_commit" in call.values:
        raise InvalidArgument("Omnigraph-If-Graph-Commit", f"the stored query '{name}' only reads")
    return _run(call, stored)


def invoke_mutation(call: Call) -> Answer:
    """Run a stored query that writes, if the branch is at a commit."""
    return invoke(replace(call, values={**call.values, "expect_mutation": True}))


def _run(call: Call, stored: StoredQuery) -> Answer:
    name = stored.name
    plain = replace(call, values={**call.values, "query": stored.text, "name": name}, instead=_INVOKED)
    try:
        return writing.mutate(plain) if stored.is_mutation else reading.query(plain)
    except PolicyDenied as denied:
        if denied.action != Action.INVOKE_QUERY:
            raise
        raise QueryNotFound(name) from None
