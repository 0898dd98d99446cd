"""The truth table of merges: what becomes of each pair of operations, one on either side."""

from __future__ import annotations

from typing import Any

import pytest
from tests.history.test_diff import content

from omnigraph import Graph
from omnigraph.errors import MergeConflicts

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""
NAMES = ("Alice", "Bob", "Carol", "Dan")
PEOPLE: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name, "age": 30}} for name in NAMES]
BASE: list[dict[str, Any]] = [*PEOPLE, {"edge": "Knows", "from": "Bob", "to": "Carol"}]

OPERATIONS = {
    "nothing": (),
    "add node": ('insert Person { name: "Eve", age: $n }',),
    "remove node": ('delete Person where name = "Alice"',),
    "add edge": ('insert Knows { from: "Alice", to: "Carol" }',),
    "remove edge": ('delete Knows where from = "Bob"',),
    "set age": ('update Person set { age: $n } where name = "Alice"',),
    "set age 31": ('update Person set { age: 31 } where name = "Alice"',),
    "set city": ('update Person set { city: "Rome" } where name = "Alice"',),
    "set as is": ('update Person set { age: 30 } where name = "Alice"',),
    "add, remove": ('insert Person { name: "Fay" }', 'delete Person where name = "Fay"'),
}
"""What a side does; ``$n`` is another number on each side."""

TABLE = """
source \\ target | nothing | add node | remove node | add edge | remove edge | set age | set age 31 | set city | set as is | add, remove
nothing         | current | current  | current     | current  | current     | current | current    | current  | current   | current
add node        | ahead   | insert   | merged      | merged   | merged      | merged  | merged     | merged   | merged    | merged
remove node     | ahead   | merged   | merged      | orphan   | merged      | delete  | delete     | delete   | merged    | merged
add edge        | ahead   | merged   | orphan      | merged   | merged      | merged  | merged     | merged   | merged    | merged
remove edge     | ahead   | merged   | merged      | merged   | merged      | merged  | merged     | merged   | merged    | merged
set age         | ahead   | merged   | delete      | merged   | merged      | update  | update     | merged   | merged    | merged
set age 31      | ahead   | merged   | delete      | merged   | merged      | update  | merged     | merged   | merged    | merged
set city        | ahead   | merged   | delete      | merged   | merged      | merged  | merged     | merged   | merged    | merged
set as is       | ahead   | merged   | merged      | merged   | merged      | merged  | merged     | merged   | merged    | merged
add, remove     | ahead   | merged   | merged      | merged   | merged      | merged  | merged     | merged   | merged    | merged
"""  # noqa: E501
CONFLICTS = {
    "insert": "divergent_insert",
    "update": "divergent_update",
    "delete": "delete_vs_update",
    "orphan": "orphan_edge",
}
OUTCOMES = {"current": "already_up_to_date", "ahead": "fast_forward", "merged": "merged"}


def truth() -> dict[tuple[str, str], str]:
    """The outcome, or the kind of all conflicts, by what the source and what the target has done."""
    head, *rows = (line.split("|") for line in TABLE.strip().splitlines())
    targets = [cell.strip() for cell in head[1:]]
    named = {**CONFLICTS, **OUTCOMES}
    return {
        (source.strip(), target): named[cell.strip()]
        for source, *cells in rows
        for target, cell in zip(targets, cells, strict=True)
    }


def write(graph: Graph, branch: str, operation: str, number: int) -> None:
    """Do one of the operations."""
    for statement in OPERATIONS[operation]:
        params = {"n": number} if "$n" in statement else {}
        declared = "$n: I32" if params else ""
        graph.mutate(f"query q({declared}) {{ {statement} }}", params, branch=branch)


def merged(graph: Graph, source: str, target: str, **options: Any) -> str:
    """The outcome of a merge, or the kind of all its conflicts. The preview says the same."""
    before = content(graph, graph.snapshot(target))
    plan = graph.preview_merge(source, target, **options)
    if plan.conflicts:
        with pytest.raises(MergeConflicts) as raised:
            graph.merge(source, target, **options)
        assert content(graph, graph.snapshot(target)) == before
        assert raised.value.conflicts == plan.conflicts
        (kind,) = {conflict.kind.value for conflict in plan.conflicts}
        return kind
    done = graph.merge(source, target, **options)
    assert plan == done.plan
    assert (done.commit is None) == (done.outcome == "already_up_to_date")
    return done.outcome.value
