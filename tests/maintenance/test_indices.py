"""`ensure_indices` on real graphs: what is built is used, stays right, and costs one version per table."""

from __future__ import annotations

from typing import Any

from tests.maintenance.looks import ensure, ids, indexed, plan, reasons, table
from tests.recovery.scenes import BEGINNING, CITY, KNOWS, LIVES_IN, PERSON, assert_settled, contents, person
from tests.recovery.scenes import new_graph as small_graph
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.maintenance.index_plan import VECTOR_ROWS

SCHEMA = """
node Doc {
  slug: String @key
  body: String? @index
  kind: enum(memo, letter) @index
  size: I64? @index
  tags: [String]?
  place: Vector(2)? @index
  @index(tags)
}
node Lonely { name: String @key }
edge Cites: Doc -> Doc { year: I32? @index }
"""
DOC, LONELY, CITES = "node:Doc", "node:Lonely", "edge:Cites"
DOC_INDEXES = {"id_btree", "slug_btree", "body_btree", "kind_btree", "size_btree"}
CITES_INDEXES = {"id_btree", "src_btree", "dst_btree", "year_btree"}


def doc(slug: str, body: str | None = None, **data: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, "body": body, "kind": "memo", **data}}


def new_graph(store: Store) -> Graph:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    documents = [
        doc(f"d{n}", f"running number {n} of the Café", size=n, tags=["x"], place=[n, 0]) for n in range(20)
    ]
    cites = [{"edge": "Cites", "from": f"d{n}", "to": "d0", "data": {"year": 1990 + n}} for n in range(1, 20)]
    graph.load([*documents, *cites], mode="append")
    return graph


def test_what_is_built_is_one_commit_and_one_version_per_table(store: Store) -> None:
    graph = new_graph(store)
    before = graph.snapshot()
    report = ensure(graph, actor="ada")
    after = graph.snapshot()
    assert report.commit == after.commit == graph.commits()[0]
    assert (report.commit.kind, report.commit.actor_id) == ("ensure_indices", "ada")
    assert {(b.table_key, b.name) for b in report.built} == {
        *((DOC, name) for name in DOC_INDEXES),
        *((CITES, name) for name in CITES_INDEXES),
    }
    assert indexed(graph, DOC) == dict.fromkeys(DOC_INDEXES, 20)
    assert indexed(graph, CITES) == dict.fromkeys(CITES_INDEXES, 19)
    for key, moved in ((DOC, 1), (CITES, 1), (LONELY, 0)):
        assert after.tables[key].table_version == before.tables[key].table_version + moved
        assert after.tables[key].row_count == before.tables[key].row_count
    assert_settled(graph)


def test_what_waits_is_reported_with_its_reason(local_store: Store) -> None:
    report = ensure(new_graph(local_store))
    found = {(d.table_key, d.column, d.kind): d.reason for d in report.deferred}
    assert found == {
        (DOC, "tags", None): "lists are not indexed",
        (DOC, "place", "IVF_FLAT"): f"20 rows; exact search is fast enough below {VECTOR_ROWS}",
        (LONELY, "id", "BTREE"): "the table is empty",
        (LONELY, "name", "BTREE"): "the table is empty",
    }
    shown = report.as_json()
    assert shown["commit"]["kind"] == "ensure_indices"
    assert {"table_key": DOC, "column": "body", "kind": "BTREE", "name": "body_btree"} in shown["built"]
    assert {
        "table_key": DOC,
        "column": "tags",
        "kind": None,
        "reason": "lists are not indexed",
    } in shown["deferred"]


def test_a_second_run_finds_nothing_to_do(store: Store) -> None:
    graph = new_graph(store)
    ensure(graph)
    before = graph.snapshot()
    report = ensure(graph)
    assert (report.commit, report.built) == (None, ())
    assert report.as_json()["commit"] is None
    assert graph.snapshot() == before


def test_an_empty_graph_has_nothing_to_build(memory_store: Store) -> None:
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    report = ensure(graph)
    assert report.commit is None
    assert {d.reason for d in report.deferred} == {"the table is empty", "lists are not indexed"}
    assert len(graph.commits()) == 1


def test_indexes_are_used(store: Store) -> None:
    graph = new_graph(store)
    ensure(graph)
    for table_key, where, name in [
        (DOC, "id = 'd3'", "id_btree"),
        (DOC, "slug = 'd3'", "slug_btree"),
        (DOC, "size between 3 and 3", "size_btree"),
        (DOC, "kind = 'letter'", "kind_btree"),
        (DOC, "body = 'x'", "body_btree"),
        (CITES, "src = 'd3'", "src_btree"),
        (CITES, "dst in ('d3', 'd4')", "dst_btree"),
        (CITES, "year > 2000", "year_btree"),
    ]:
        assert f"@{name}(BTree)" in plan(graph, table_key, where)
    assert ids(graph, DOC, "size between 3 and 4") == ["d3", "d4"]
    assert len(ids(graph, CITES, "dst = 'd0'")) == 19


def test_later_writes_are_found(store: Store) -> None:
    """New rows, changed rows and deleted rows, through indexes that do not know them yet, then rebuilt ones."""
    graph = new_graph(store)
    ensure(graph)
    graph.load([doc("d3", "walking", size=300, kind="letter"), doc("new", "swimming", size=4)], mode="merge")
    graph.load([doc("newer", "sailing", size=4)], mode="append")
    graph.mutate('query q() { delete Doc where slug = "d5" }')
    for _ in range(2):
        assert ids(graph, DOC, "size = 3 or size = 5") == []
        assert ids(graph, DOC, "size = 300") == ids(graph, DOC, "id = 'd3'") == ["d3"]
        assert ids(graph, DOC, "size = 4") == ["d4", "new", "newer"]
        assert ids(graph, DOC, "kind = 'letter'") == ["d3"]
        assert ids(graph, DOC, "body in ('walking', 'swimming')") == ["d3", "new"]
        assert "d3" not in ids(graph, DOC, "body like 'running%'")
        assert ids(graph, CITES, "src = 'd5'") == []
        ensure(graph)
    assert indexed(graph, DOC) == dict.fromkeys(DOC_INDEXES, 21)


def test_few_new_rows_wait_and_many_do_not(local_store: Store) -> None:
    graph = new_graph(local_store)
    ensure(graph)
    graph.load([doc("e0"), doc("e1")], mode="append")
    report = ensure(graph)
    assert report.commit is None
    assert "2 rows since the index was built are scanned" in reasons(report)[DOC]
    graph.load([doc("e2")], mode="append")
    version = graph.snapshot().tables[DOC].table_version
    assert {b.name for b in ensure(graph).built} == DOC_INDEXES
    assert indexed(graph, DOC) == dict.fromkeys(DOC_INDEXES, 23)
    assert graph.snapshot().tables[DOC].table_version == version + 1
    assert graph.snapshot().tables[DOC].row_count == 23


def test_a_replaced_table_is_indexed_again(local_store: Store) -> None:
    graph = new_graph(local_store)
    ensure(graph)
    graph.load([*(doc(f"d{n}", "another") for n in range(20)), doc("d20")], mode="overwrite")
    assert indexed(graph, DOC) == {}
    assert {b.name for b in ensure(graph).built if b.table_key == DOC} == DOC_INDEXES
    assert len(ids(graph, DOC, "body = 'another'")) == 20


def test_the_small_graph_is_as_it_was(store: Store) -> None:
    graph = small_graph(store)
    ensure(graph)
    assert contents(graph) == BEGINNING


class TestBranches:
    def test_a_branch_does_not_fork_a_table_only_to_index_it(self, store: Store) -> None:
        graph = small_graph(store)
        report = ensure(graph, "dev")
        assert report.commit is None
        shared = {"shared with branch main; index it there"}
        assert reasons(report) == dict.fromkeys((PERSON, CITY, KNOWS, LIVES_IN), shared)
        assert {pin.table_branch for pin in graph.snapshot("dev").tables.values()} == {None}

    def test_a_branch_indexes_its_own_tables(self, store: Store) -> None:
        graph = small_graph(store)
        graph.load([person("Cy", 9)], mode="append", branch="dev")
        report = ensure(graph, "dev")
        assert {b.table_key for b in report.built} == {PERSON}
        assert set(reasons(report)) == {CITY, KNOWS, LIVES_IN}
        assert indexed(graph, PERSON, "dev") == {"id_btree": 3, "name_btree": 3}
        assert indexed(graph, PERSON) == {}
        assert "name_btree" in plan(graph, PERSON, "name = 'Cy'", "dev")
        assert ids(graph, PERSON, "name = 'Cy'", "dev") == ["Cy"]
        assert [c.kind for c in graph.commits()] == [c.kind for c in graph.commits("dev")][2:]
        assert_settled(graph)

    def test_an_index_of_the_parent_serves_later_branches(self, store: Store) -> None:
        graph = small_graph(store)
        ensure(graph)
        graph.create_branch("later")
        assert ensure(graph, "later").deferred == ()
        graph.load([person("Cy", 9)], mode="append", branch="later")
        graph.create_branch("latest", "later")
        for branch in ("later", "latest"):
            assert "id_btree" in plan(graph, PERSON, "id = 'Cy'", branch)
            assert ids(graph, PERSON, "id in ('Ada', 'Cy')", branch) == ["Ada", "Cy"]
        assert reasons(ensure(graph, "latest")) == {PERSON: {"shared with branch later; index it there"}}

    def test_an_inherited_index_is_replaced_in_the_branch_alone(self, store: Store) -> None:
        graph = small_graph(store)
        ensure(graph)
        graph.create_branch("later")
        graph.load([person("Cy", 9)], mode="append", branch="later")
        assert {b.table_key for b in ensure(graph, "later").built} == {PERSON}
        for branch, rows in (("main", 2), ("later", 3)):
            assert set(indexed(graph, PERSON, branch).values()) == {rows}
            assert len(table(graph, PERSON, branch).describe_indices()) == 2
            assert ids(graph, PERSON, "name in ('Ada', 'Cy')", branch) == ["Ada", "Cy"][: rows - 1]
        assert ensure(graph, "later").commit is None
        assert_settled(graph)
