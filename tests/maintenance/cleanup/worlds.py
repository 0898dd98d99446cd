"""Graphs with a history, and what can be read of them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.stores import Store

import omnigraph
from omnigraph import Graph

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person { since: I32? }\n"
PEOPLE = "query people() { match { $p: Person } return { $p.name, $p.age } }"
NOW = "0s"
"""A grace period for tests: whatever is not needed goes at once."""


def create(store: Store) -> Graph:
    return omnigraph.init(store.uri, SCHEMA, storage_options=store.options)


def connect(store: Store, *, read_only: bool = False) -> Graph:
    """The graph as a process sees it that has cached nothing."""
    return omnigraph.open(store.uri, read_only=read_only, storage_options=store.options)


def add(graph: Graph, *names: str, branch: str = "main") -> str:
    """Insert people as one commit, and return its id."""
    graph.load(
        [{"type": "Person", "data": {"name": name, "age": 1}} for name in names], mode="append", branch=branch
    )
    return graph.commits(branch, limit=1)[0].graph_commit_id


def rename(graph: Graph, name: str, age: int, branch: str = "main") -> str:
    """Change a person, and return the id of the commit."""
    graph.mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}', branch=branch)
    return graph.commits(branch, limit=1)[0].graph_commit_id


def remove(graph: Graph, name: str, branch: str = "main") -> str:
    """Delete a person, and return the id of the commit."""
    graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
    return graph.commits(branch, limit=1)[0].graph_commit_id


def people(graph: Graph, *, branch: str | None = None, at: str | int | None = None) -> set[tuple[str, int]]:
    """Who is in a state."""
    found = graph.query(PEOPLE, branch=branch) if at is None else graph.query(PEOPLE, at=at)
    return {(row["p.name"], row["p.age"]) for row in found.rows}


def names(graph: Graph, *, branch: str | None = None, at: str | int | None = None) -> set[str]:
    return {name for name, _ in people(graph, branch=branch, at=at)}


def files(store: Store) -> set[str]:
    """All files of tables, and the objects of the graph, by key."""
    return {entry.key for entry in store.objects().entries("") if not entry.key.startswith("__locks/")}


def backdate(store: Store, hours: float) -> None:
    """Let all files of a graph on a disk be so much older."""
    for folder, _, found in os.walk(store.uri):
        for name in found:
            path = Path(folder, name)
            written = path.stat().st_mtime - hours * 3600
            os.utime(path, (written, written))
