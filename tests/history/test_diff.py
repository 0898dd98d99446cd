"""The difference of two states: every pair of them, on any branches, whatever lies between."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchNotFound, InvalidArgument

SCHEMA = """
node Person { name: String @key  age: I32?  height: F64?  tags: [String]?  face: Vector(2)?  photo: Blob? }
node Place { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **more}}


def content(graph: Graph, at: Any) -> dict[str, dict[str, Any]]:
    """Everything in a state, by table and id."""
    snapshot = at if isinstance(at, omnigraph.Snapshot) else graph.snapshot(at=at)
    found: dict[str, dict[str, Any]] = {}
    for key, pin in snapshot.tables.items():
        names = snapshot.entity(key).columns
        rows = graph._repository.tables.scan(pin.ref, names, whole_blobs=True).read_all().to_pylist()
        found[key] = {row["id"]: row for row in rows}
    return found


def applied(state: dict[str, dict[str, Any]], diff: omnigraph.Diff) -> dict[str, dict[str, Any]]:
    """A state with the changes of a diff made to it, each checked against what it says was there."""
    new = {key: dict(rows) for key, rows in state.items()}
    for change in diff:
        rows = new[change.table_key]
        assert (rows.get(change.id), change.op) == (
            change.before,
            "insert" if change.before is None else "delete" if change.after is None else "update",
        )
        if change.after is None:
            del rows[change.id]
        else:
            rows[change.id] = change.after
        if change.op == "update":
            assert change.before is not None
            assert change.after is not None
            assert set(change.changed) == _differing(change) != set()
    return new


def _differing(change: omnigraph.Change) -> set[str]:
    """The properties that differ, bit for bit: zero and minus zero do."""
    before, after = change.before or {}, change.after or {}
    return {name for name in after if repr(after[name]) != repr(before[name])}


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load([person(name, age=age) for name, age in (("Ada", 36), ("Bo", 25), ("Cy", 41))], mode="append")
    return graph


def shown(diff: omnigraph.Diff) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(change.op.value, change.id, change.changed) for change in diff]


def test_inserts_updates_and_deletes(graph: Graph) -> None:
    before = graph.snapshot()
    graph.load([person("Ada", age=37, tags=["x"]), person("Dee")], mode="merge")
    graph.mutate('query q() { delete Person where name = "Bo" }')
    diff = graph.diff(before)
    assert shown(diff) == [("update", "Ada", ("age", "tags")), ("delete", "Bo", ()), ("insert", "Dee", ())]
    assert diff.stat == {
        "node:Person": {"insert": 1, "update": 1, "delete": 1},
        "total": {"insert": 1, "update": 1, "delete": 1},
    }
    back = graph.diff(graph.snapshot(), before)
    assert shown(back) == [("update", "Ada", ("age", "tags")), ("insert", "Bo", ()), ("delete", "Dee", ())]


def test_what_was_written_and_is_the_same_is_no_change(graph: Graph) -> None:
    before = graph.snapshot()
    graph.load([person("Ada", age=36)], mode="merge")
    graph.mutate('query q() { insert Person { name: "Dee" } }')
    graph.mutate('query q() { delete Person where name = "Dee" }')
    graph.ensure_indices()
    assert shown(graph.diff(before)) == []


def test_an_overwrite_shows_only_what_differs(graph: Graph) -> None:
    before = graph.snapshot()
    graph.load([person("Ada", age=36), person("Bo", age=26)], mode="overwrite")
    assert shown(graph.diff(before)) == [("update", "Bo", ("age",)), ("delete", "Cy", ())]


def test_two_branches_against_each_other(graph: Graph) -> None:
    """Each has changed something since they parted; what both have changed alike is no difference."""
    graph.create_branch("dev")
    graph.load([person("Ada", age=1), person("Cy", age=2)], mode="merge", branch="dev")
    graph.load([person("Bo", age=3), person("Cy", age=2), person("Dee")], mode="merge")
    assert shown(graph.diff("main", "dev")) == [
        ("update", "Ada", ("age",)),
        ("update", "Bo", ("age",)),
        ("delete", "Dee", ()),
    ]


def test_filters(graph: Graph) -> None:
    before = graph.snapshot()
    graph.load(
        [person("Dee"), {"type": "Place", "data": {"name": "Rome"}}, {"edge": "Knows", "from": "Ada", "to": "Bo"}],
        mode="append",
    )
    graph.mutate('query q() { delete Person where name = "Cy" }')
    assert [c.table_key for c in graph.diff(before, kinds=["edge"])] == ["edge:Knows"]
    assert [c.table_key for c in graph.diff(before, types=["Place", "Knows"])] == ["node:Place", "edge:Knows"]
    assert shown(graph.diff(before, ops=["delete"])) == [("delete", "Cy", ())]


def test_names_that_are_no_filter_are_refused(graph: Graph) -> None:
    with pytest.raises(InvalidArgument, match="there is no 'remove'; there are insert, update, delete"):
        graph.diff("main", ops=["remove"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="there is no 'vertex'; there are node, edge"):
        graph.diff("main", kinds=["vertex"])  # type: ignore[list-item]


def test_states_by_name(graph: Graph) -> None:
    first = graph.commits()[-1].graph_commit_id
    graph.create_branch("dev")
    for before in (first, 1, "main"):
        graph.diff(before, "dev")
    assert len(graph.diff(first, "dev")) == len(graph.diff(1)) == 3
    with pytest.raises(BranchNotFound, match="'nope'"):
        graph.diff("nope")


@pytest.mark.parametrize("seed", range(4))
def test_a_diff_applied_to_the_older_state_gives_the_newer(seed: int, local_store: Store) -> None:
    """Random writes on a tree of branches: each pair of states, in both directions."""
    chance = random.Random(seed)
    graph = omnigraph.init(local_store.uri, SCHEMA)
    branches, states = ["main"], [graph.snapshot()]
    for step in range(14):
        branch = chance.choice(branches)
        names = [f"p{chance.randrange(6)}" for _ in range(3)]
        match chance.randrange(7):
            case 0 if len(branches) < 4:
                branches.append(f"b{step}")
                graph.create_branch(branches[-1], branch)
            case 1:
                graph.mutate(f'query q() {{ delete Person where name = "{names[0]}" }}', branch=branch)
            case 2:
                graph.ensure_indices(branch=branch)
            case 3:
                graph.load([_random(chance, name) for name in sorted(set(names))], mode="overwrite", branch=branch)
            case _:
                graph.load([_random(chance, name) for name in sorted(set(names))], mode="merge", branch=branch)
        states.append(graph.snapshot(branch))
    for _ in range(24):
        before, after = chance.choice(states), chance.choice(states)
        assert applied(content(graph, before), graph.diff(before, after)) == content(graph, after)


def _random(chance: random.Random, name: str) -> dict[str, Any]:
    values = {
        "age": chance.choice([None, 0, 1]),
        "height": chance.choice([None, 0.0, -0.0, 1.5]),
        "tags": chance.choice([None, [], ["a"], ["a", "b"]]),
        "face": chance.choice([None, [0, 1], [1, 0]]),
        "photo": chance.choice([None, "base64:", "base64:AAEC"]),
    }
    return person(name, **{key: value for key, value in values.items() if chance.random() < 0.7})
