"""A process that writes for a long time needs no more memory than one that has just begun."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from lance.fragment import write_fragments
from tests.processes import children, say
from tests.stores import Store

import omnigraph
from omnigraph.formats.columns import table_schema
from omnigraph.formats.rows import fresh_ids, rows_of
from omnigraph.graph import Graph
from omnigraph.storage.files.staged import settle_data
from omnigraph.storage.staging import stage_appended_files
from omnigraph.storage.tables import TableRef
from omnigraph.write.protocol import Prepared, Stage, StagedTable, WriteRequest, commit_write

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
INSERT = 'query q() { insert Knows { from: "ada", to: "bo" } }'
FRAGMENTS = 3_000
"""Each version of the table describes so many fragments, about 1.5 MB of them."""

WRITES = 200


def write_and_measure(store: Store) -> None:
    """In a child: fill a table with fragments, then write one row at a time; say how much memory that took."""
    graph = omnigraph.init(store.uri, SCHEMA)
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("ada", "bo")], mode="append")
    add_fragments(graph)
    graph.mutate(INSERT)
    before = resident()
    for _ in range(WRITES):
        graph.mutate(INSERT)
    say(resident() - before)


def add_fragments(graph: Graph) -> None:
    """Commit edges, each in a fragment of its own."""
    repository, knows = graph._repository, graph.catalog.edges["Knows"]
    ends = {"id": fresh_ids(FRAGMENTS).to_pylist(), "src": ["ada"] * FRAGMENTS, "dst": ["bo"] * FRAGMENTS}
    rows = rows_of(knows, ends, FRAGMENTS).cast(table_schema(knows))

    def stage(ref: TableRef, operation: str) -> StagedTable:
        handle = repository.tables.open(ref)
        fragments = list(write_fragments(rows, handle, mode="append", max_rows_per_file=1))
        settle_data(handle.uri, fragments)
        return StagedTable(stage_appended_files(handle, ref.location, ref.branch, fragments, operation), FRAGMENTS)

    request = WriteRequest("load", repository.branches.find("main"))
    stages: dict[str, Stage] = {knows.table_key: stage}
    commit_write(repository, request, lambda _: Prepared({}, None, repeatable=True, stages=stages))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells how much memory is used")
def test_the_versions_that_a_process_has_written_do_not_stay_in_its_memory(local_store: Store) -> None:
    with children((write_and_measure, local_store)) as [child]:
        grown = int(child.hear())
    assert grown < 150 << 20, f"{grown >> 20} MB more after {WRITES} writes"
