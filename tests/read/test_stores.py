"""Queries read graphs wherever they are: on a disk, in memory, in a bucket; through a read-only handle too."""

from __future__ import annotations

import pytest
from tests.stores import Store

import omnigraph
from omnigraph.read.plan.access import Path, forced_access

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"
FRIENDS = """query friends($name: String) {
  match { $p: Person { name: $name }  $p knows $f }
  return { $f.name, $f.age } order { $f.name }
}"""
PEOPLE: list[dict[str, object]] = [
    {"type": "Person", "data": {"name": name, "age": age}} for name, age in (("Ada", 36), ("Bo", 25), ("Cy", None))
]
KNOWS: list[dict[str, object]] = [{"edge": "Knows", "from": "Ada", "to": name} for name in ("Bo", "Cy")]
EXPECTED = [{"f.name": "Bo", "f.age": 25}, {"f.name": "Cy", "f.age": None}]


@pytest.mark.parametrize("path", ["memory", "index"])
@pytest.mark.quick_on_s3
def test_a_query_reads_any_store_by_either_path(store: Store, path: Path) -> None:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load(PEOPLE + KNOWS, mode="append")
    graph.create_branch("side")
    with forced_access(path):
        assert graph.query(FRIENDS, {"name": "Ada"}).rows == EXPECTED
        graph.ensure_indices()
        assert graph.query(FRIENDS, {"name": "Ada"}, branch="side").rows == EXPECTED


def test_a_read_only_graph_can_be_queried(shared_store: Store) -> None:
    written = omnigraph.init(shared_store.uri, SCHEMA, storage_options=shared_store.options)
    written.load(PEOPLE + KNOWS, mode="append")
    graph = omnigraph.open(shared_store.uri, read_only=True, storage_options=shared_store.options)
    assert graph.query(FRIENDS, {"name": "Ada"}).rows == EXPECTED
    written.mutate('query q() { delete Person where name = "Cy" }')
    assert graph.query(FRIENDS, {"name": "Ada"}).rows == EXPECTED[:1]
