"""Whatever is written while files are folded at every turn: each state in history stays what it was."""

from __future__ import annotations

import tempfile
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

import omnigraph
from omnigraph import Graph, Settings, Snapshot, WriteSettings

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
EAGER = Settings(write=WriteSettings(fold_files=2, fold_rows=6, exact_rows=1))

Content: TypeAlias = dict[str, int]
"""The age of each person, and for each edge the number 0, by id."""

NAMES = st.sampled_from([f"p{number}" for number in range(6)])
STEPS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("put"), st.lists(NAMES, min_size=1, max_size=3, unique=True), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.lists(NAMES, min_size=1, max_size=1), st.just(0)),
    st.tuples(st.just("link"), st.lists(NAMES, min_size=1, max_size=1), st.integers(0, 5)),
    st.tuples(st.sampled_from(["index", "optimize"]), st.just([]), st.just(0)),
)


def make(graph: Graph, branch: str, content: Content, step: tuple[str, list[str], int], number: int) -> Content:
    """Make a step on a branch; what the branch holds afterwards."""
    kind, names, value = step
    match kind:
        case "put":
            people = [{"type": "Person", "data": {"name": name, "age": value}} for name in names]
            graph.load(people, mode="merge", branch=branch)
            return {**content, **dict.fromkeys(names, value)}
        case "delete":
            graph.mutate(f'query q() {{ delete Person where name = "{names[0]}" }}', branch=branch)
            return {key: age for key, age in content.items() if names[0] not in key.split("-")[:2]}
        case "link" if names[0] in content and f"p{value}" in content:
            edge = f"{names[0]}-p{value}-{number}"
            row = {"edge": "Knows", "from": names[0], "to": f"p{value}", "data": {"id": edge}}
            graph.load([row], mode="append", branch=branch)
            return {**content, edge: 0}
        case "index":
            graph.ensure_indices(branch=branch)
        case "optimize":
            graph.optimize(branch=branch)
    return content


def held(graph: Graph, snapshot: Snapshot) -> Content:
    people = graph.query("query q() { match { $p: Person } return { $p.name as n, $p.age as a } }", at=snapshot)
    edges = graph._repository.tables.scan(snapshot.tables["edge:Knows"].ref, ["id"]).read_all()
    return {row["n"]: row["a"] for row in people.rows} | dict.fromkeys(edges["id"].to_pylist(), 0)


def difference(before: Content, after: Content) -> dict[str, str]:
    """What happened to each id that was touched between two contents."""
    ops = dict.fromkeys(before.keys() - after.keys(), "delete") | dict.fromkeys(after.keys() - before, "insert")
    return ops | {key: "update" for key in before.keys() & after.keys() if before[key] != after[key]}


@given(
    steps=st.lists(STEPS, min_size=6, max_size=14),
    fork_after=st.integers(1, 5),
    pairs=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=3),
)
@settings(max_examples=examples(3, of=60), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_state_stays_what_it_was(steps: list[Any], fork_after: int, pairs: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = omnigraph.init(f"{folder}/g", SCHEMA, settings=EAGER)
        seen: list[tuple[Snapshot, Content]] = [(graph.snapshot(), {})]
        branch, content = "main", Content()
        writers: dict[str, str] = {}
        for number, step in enumerate(steps):
            if number == fork_after:
                branch = "dev"
                graph.create_branch(branch)
            before, content = content, make(graph, branch, content, step, number)
            snapshot = graph.snapshot(branch)
            assert held(graph, snapshot) == content
            seen.append((snapshot, content))
            writers |= dict.fromkeys(difference(before, content), snapshot.graph_commit_id or "")
            for name in (name for name in content if "-" not in name):
                blamed = graph.blame("Person", name, branch=branch)["age"]
                assert (blamed.value, blamed.commit.graph_commit_id) == (content[name], writers[name])
        fresh = omnigraph.open(f"{folder}/g", read_only=True)
        for snapshot, expected in seen:
            assert held(fresh, snapshot) == held(graph, snapshot) == expected
        for left, right in pairs:
            (one, before), (other, after) = seen[left % len(seen)], seen[right % len(seen)]
            found = {change.id: change.op.value for change in graph.diff(one, other)}
            assert found == difference(before, after)
