"""A graph with everything that a copy has to bring along, and all that can be seen of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.history.test_diff import content
from tests.stores import Store

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person { name: String @key  age: I32? @index  motto: String? @index  face: Vector(2)?  photo: Blob? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City { }
"""
LARGE = "base64:" + "QUJD" * 30_000
"""A blob that lies in a file of its own."""


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **more}}


def city(name: str) -> dict[str, Any]:
    return {"type": "City", "data": {"name": name}}


def knows(one: str, other: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": one, "to": other, "data": {}}


def found(store: Store) -> Graph:
    """A graph with branches of branches that share tables, merges, deletions, indexes, blobs and tags."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options or None)
    people = [person("Ada", age=36, motto="ad astra"), person("Bo")]
    graph.load([*people, city("Rome"), knows("Ada", "Bo")], mode="append")
    graph.tag("v1")
    graph.ensure_indices()
    graph.create_branch("dev/one")
    graph.load([person("Cy", face=[0.0, 1.0], photo=LARGE)], mode="append", branch="dev/one")
    graph.mutate('query q() { delete Person where name = "Bo" }', branch="dev/one")
    graph.create_branch("sub", from_="dev/one")
    graph.load([person("Di"), knows("Di", "Cy")], mode="merge", branch="sub")
    graph.create_branch("idle")
    graph.load([person("Ed", age=5)], mode="append")
    graph.merge("dev/one", into="main")
    graph.create_branch("gone")
    graph.load([city("Oslo")], mode="append", branch="gone")
    graph.delete_branch("gone")
    graph.apply_schema(SCHEMA.replace("node City { ", "node City { mayor: String?  "))
    graph.load([city("Bonn")], mode="append")
    graph.tag("v2", "sub")
    return graph


@dataclass(frozen=True)
class Seen:
    """All that a reader sees of a graph."""

    branches: dict[str, Any]
    states: dict[str, Any]
    tags: dict[str, str]
    logs: dict[str, list[str]]
    diffs: dict[str, list[Any]]
    blames: dict[str, Any]
    feeds: dict[str, list[Any]]
    schemas: dict[str, str]


def states(graph: Graph) -> dict[str, Any]:
    """The content of each commit's state, or what is said of one that is gone."""
    commits = {c.graph_commit_id for branch in graph.branches() for c in graph.commits(branch.name)}
    found: dict[str, Any] = {}
    for commit in commits:
        try:
            found[commit] = content(graph, commit)
        except omnigraph.HistoryReclaimed as error:
            found[commit] = str(error)
    return found


def look(graph: Graph) -> Seen:
    """Everything: each branch, the state of each commit, tags, logs, differences, origins and changes."""
    branches = [branch.name for branch in graph.branches()]
    return Seen(
        {branch.name: branch.as_json() for branch in graph.branches()},
        states(graph),
        {tag.name: tag.graph_commit_id for tag in graph.tags()},
        {name: [entry.commit.graph_commit_id for entry in graph.log(branch=name)] for name in branches},
        {name: [change.as_json() for change in graph.diff("main", name)] for name in branches},
        {name: [each.as_json() for each in graph.blame("Person", "Ada", branch=name)] for name in branches},
        {name: fed(graph, name) for name in branches},
        {name: graph.schema_source(name) for name in branches},
    )


def fed(graph: Graph, branch: str) -> list[Any]:
    """All changes of a branch from its beginning, without the cursors, which name the graph's place."""
    page = graph.changes(start="beginning", branch=branch)
    return [block.as_json() for block in page.blocks]


def write_everywhere(graph: Graph) -> None:
    """Write to every type on every branch, and merge all branches."""
    branches = [branch.name for branch in graph.branches()]
    for name in branches:
        mark = f"new on {name}"
        lives = {"edge": "LivesIn", "from": mark, "to": mark, "data": {}}
        graph.load([person(mark), city(mark), knows(mark, mark), lives], mode="merge", branch=name)
        assert graph.entity("Person", mark, branch=name) is not None
    for name in branches[1:]:
        graph.merge(name, into="main", resolve="ours")
        assert graph.entity("Person", f"new on {name}") is not None
    graph.create_branch("after", from_="sub")
    graph.mutate('query q() { update Person set { age: 1 } where name = "Di" }', branch="after")
    graph.ensure_indices(branch="after")


def small(store: Store) -> Graph:
    """A graph with a branch and a tag, for tests that need no more."""
    schema = "node Person { name: String @key }"
    graph = omnigraph.init(store.uri, schema, storage_options=store.options or None)
    graph.load([person("Ada")], mode="append")
    graph.create_branch("dev")
    graph.load([person("Bo")], mode="append", branch="dev")
    graph.tag("v1")
    return graph


def names(graph: Graph, branch: str = "main") -> set[str]:
    """The people on a branch."""
    found = graph.query("query q() { match { $p: Person } return { $p.name as name } }", branch=branch)
    return {row["name"] for row in found}


def glance(graph: Graph) -> dict[str, Any]:
    """The people, the head and the schema of each branch, and the tags: less than `look`, and quicker."""
    branches = [branch.name for branch in graph.branches()]
    tags = {f"tag {tag.name}": tag.graph_commit_id for tag in graph.tags()}
    return {name: (names(graph, name), graph.snapshot(name).graph_commit_id) for name in branches} | tags


def write_and_merge(graph: Graph) -> None:
    """Write to each branch of a small graph, and merge it."""
    for branch in graph.branches():
        graph.load([person(f"new on {branch.name}")], mode="append", branch=branch.name)
        if branch.name != "main":
            graph.merge(branch.name, into="main")
        assert f"new on {branch.name}" in names(graph)
