"""A process that writes for a long time needs no more memory than one that has just begun."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from tests.processes import children, say
from tests.stores import Store
from tests.write.support import change, put

import omnigraph

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
INSERT = 'query q() { insert Knows { from: "ada", to: "bo" } }'
FRAGMENTS = 3_000
"""Each version of the table describes so many fragments, about 1.5 MB of them."""

WRITES = 200


def write_and_measure(store: Store) -> None:
    """In a child: fill a table with fragments, then write one row at a time; say how much memory that took."""
    graph = omnigraph.init(store.uri, SCHEMA)
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("ada", "bo")], mode="append")
    edges = [{"id": str(number), "src": "ada", "dst": "bo"} for number in range(FRAGMENTS)]
    put(graph, change(graph.catalog, "edge:Knows", edges, fresh=True), rows_per_file=1)
    graph.mutate(INSERT)
    before = resident()
    for _ in range(WRITES):
        graph.mutate(INSERT)
    say(resident() - before)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells how much memory is used")
@pytest.mark.long
def test_the_versions_that_a_process_has_written_do_not_stay_in_its_memory(local_store: Store) -> None:
    with children((write_and_measure, local_store)) as [child]:
        grown = int(child.hear())
    assert grown < 150 << 20, f"{grown >> 20} MB more after {WRITES} writes"
