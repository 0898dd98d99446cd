"""A small graph, the writes that are interrupted in these tests, and ways to look at what they leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.sidecar import Sidecar, list_sidecars, read_sidecars
from omnigraph.storage.tables import TableRef

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
PERSON, CITY, KNOWS, LIVES_IN = "node:Person", "node:City", "edge:Knows", "edge:LivesIn"

Contents = Mapping[str, list[tuple[Any, ...]]]
"""The rows of each table, sorted; edges as pairs of ends."""

BEGINNING: Contents = {
    PERSON: [("Ada", 36), ("Bo", 7)],
    CITY: [("Paris",)],
    KNOWS: [("Ada", "Bo"), ("Bo", "Ada")],
    LIVES_IN: [("Ada", "Paris")],
}


def new_graph(store: Store) -> Graph:
    """The graph every test starts from, with a branch that has not been written to."""
    graph = omnigraph.init(store.uri, SCHEMA, actor="ada", storage_options=store.options)
    graph.load(
        [
            person("Ada", 36),
            person("Bo", 7),
            {"type": "City", "data": {"name": "Paris"}},
            edge("Knows", "Ada", "Bo"),
            edge("Knows", "Bo", "Ada"),
            edge("LivesIn", "Ada", "Paris"),
        ],
        mode="append",
    )
    graph.create_branch("dev")
    return graph


def person(name: str, age: int | None = None) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def edge(name: str, source: str, target: str, **data: str) -> dict[str, Any]:
    return {"edge": name, "from": source, "to": target, "data": data}


@dataclass(frozen=True)
class Write:
    """A write to several tables, and what it makes of a graph."""

    run: Callable[[Graph, str], object]
    effect: Callable[[Contents], Contents]
    tables: int
    kind: Literal["mutation", "load"]


def _insert(graph: Graph, branch: str) -> object:
    text = 'query meet() { insert Person { name: "Cy", age: 9 }  insert Knows { from: "Cy", to: "Ada" } }'
    return graph.mutate(text, branch=branch, actor="victim")


def _merge(graph: Graph, branch: str) -> object:
    rows = [person("Ada", 99), person("Eve"), edge("LivesIn", "Eve", "Paris", id="eve-paris")]
    return graph.load(rows, mode="merge", branch=branch, actor="victim")


def _overwrite(graph: Graph, branch: str) -> object:
    rows = [person("Ada", 1), person("Zoe", 2), edge("Knows", "Zoe", "Ada")]
    return graph.load(rows, mode="overwrite", branch=branch, actor="victim")


def _delete(graph: Graph, branch: str) -> object:
    return graph.mutate('query leave() { delete Person where name = "Bo" }', branch=branch, actor="victim")


def _with(contents: Contents, **tables: list[tuple[Any, ...]]) -> Contents:
    keys = {"person": PERSON, "knows": KNOWS, "lives_in": LIVES_IN, "city": CITY}
    return {**contents, **{keys[name]: sorted(rows) for name, rows in tables.items()}}


def _others(contents: Contents, table_key: str, *names: str) -> list[tuple[Any, ...]]:
    """The rows of a table that mention none of the names."""
    return [row for row in contents[table_key] if not set(names) & set(row)]


WRITES = {
    "mutation": Write(
        _insert,
        lambda c: _with(c, person=[*_others(c, PERSON, "Cy"), ("Cy", 9)], knows=[*c[KNOWS], ("Cy", "Ada")]),
        2,
        "mutation",
    ),
    "merge": Write(
        _merge,
        lambda c: _with(
            c,
            person=[*_others(c, PERSON, "Ada", "Eve"), ("Ada", 99), ("Eve", None)],
            lives_in=[*_others(c, LIVES_IN, "Eve"), ("Eve", "Paris")],
        ),
        2,
        "load",
    ),
    "overwrite": Write(
        _overwrite, lambda c: _with(c, person=[("Ada", 1), ("Zoe", 2)], knows=[("Zoe", "Ada")]), 2, "load"
    ),
    "delete": Write(
        _delete, lambda c: _with(c, person=_others(c, PERSON, "Bo"), knows=_others(c, KNOWS, "Bo")), 2, "mutation"
    ),
}


def found_city(graph: Graph, branch: str, name: str = "Rome") -> None:
    """A next write, of a table that the others leave alone."""
    graph.load([{"type": "City", "data": {"name": name}}], mode="merge", branch=branch)


def with_city(contents: Contents, name: str = "Rome") -> Contents:
    return _with(contents, city=[*contents[CITY], (name,)])


def contents(graph: Graph, branch: str = "main") -> Contents:
    """Everything a reader of a branch sees."""
    found = {}
    for table_key, pin in graph.snapshot(branch).tables.items():
        own = ["name"] if table_key.startswith("node:") else ["src", "dst"]
        columns = ["name", "age"] if table_key == PERSON else own
        ref = TableRef(pin.location, pin.table_branch, pin.table_version)
        rows = graph._repository.tables.scan(ref, columns).read_all()
        assert rows.num_rows == pin.row_count
        found[table_key] = sorted(tuple(row.values()) for row in rows.to_pylist())
    return found


def as_read(store: Store, branch: str = "main") -> Contents:
    """What a newcomer sees who may not repair anything."""
    return contents(omnigraph.open(store.uri, read_only=True, storage_options=store.options), branch)


def sidecars(repository: Repository) -> list[Sidecar]:
    """The sidecars there are."""
    keys = list_sidecars(repository.objects)
    return [sidecar for key in keys for sidecar in read_sidecars(repository.objects, key)]


def assert_settled(graph: Graph) -> None:
    """Nothing is pending, and every table of every branch is exactly where the manifest says."""
    repository = graph._repository
    assert list_sidecars(repository.objects) == []
    for branch in graph.branches():
        for pin in graph.snapshot(branch.name).tables.values():
            ref = TableRef(pin.location, pin.table_branch, pin.table_version)
            assert repository.tables.exists(ref), f"{pin} is missing"
            if pin.table_branch == branch.native:
                assert not repository.tables.moved(ref), f"{pin} is behind"


def history(graph: Graph, branch: str) -> list[tuple[str, str | None]]:
    """Kinds and actors of a branch's commits, newest first, without those of the beginning."""
    return [(commit.kind, commit.actor_id) for commit in graph.commits(branch)][:-2]
