"""A branch of a branch of a branch: reads, searches with indexes, merges up and down, and deletions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.history.test_diff import content
from tests.maintenance.looks import ids, indexed, plan, table
from tests.recovery.scenes import assert_settled
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchInUse, BranchNotFound, HistoryReclaimed

SCHEMA = """
node Doc { slug: String @key  body: String? @index  size: I64? @index  place: Vector(2)? @index }
edge Cites: Doc -> Doc { year: I32? }
"""
DOC = "node:Doc"
COUNT = 300
LEVELS = ["a", "b", "c"]


def doc(number: int, **more: Any) -> dict[str, Any]:
    data = {"slug": f"d{number:03}", "body": f"word{number} common", "size": number, "place": [number, 0]}
    return {"type": "Doc", "data": {**data, **more}}


@pytest.fixture
def few_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let vectors be indexed from a few hundred on."""
    monkeypatch.setattr("omnigraph.maintenance.index_plan.VECTOR_ROWS", 100)


def new_graph(store: Store) -> Graph:
    """Three branches, each forked from the one before. Each level adds a document, changes one and removes one."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    cites = [{"edge": "Cites", "from": f"d{n:03}", "to": "d000"} for n in range(1, 20)]
    graph.load([*map(doc, range(COUNT)), *cites], mode="append")
    graph.ensure_indices()
    for level, (parent, branch) in enumerate(zip(["main", *LEVELS], LEVELS, strict=False)):
        graph.create_branch(branch, parent)
        new, changed = COUNT + level, 100 + level
        graph.load([doc(new), doc(changed, body="changed", size=-level)], mode="merge", branch=branch)
        graph.mutate(f'query q() {{ delete Doc where slug = "d{level + 1:03}" }}', branch=branch)
    return graph


def documents(level: int) -> list[str]:
    """The documents of the branch at a level."""
    removed = range(1, level + 2)
    return [f"d{n:03}" for n in range(COUNT + level + 1) if n not in removed]


def check_reads(graph: Graph, branch: str, level: int) -> None:
    """What a branch holds, by its rows, by each kind of index, and by queries."""
    snapshot = graph.snapshot(branch)
    assert sorted(content(graph, snapshot)[DOC]) == documents(level)
    assert snapshot.tables[DOC].row_count == COUNT
    new, removed, changed = f"d{COUNT + level}", f"d{level + 1:03}", f"d{100 + level}"
    for name, expected in ((new, [new]), (removed, []), ("d200", ["d200"])):
        assert ids(graph, DOC, f"slug = '{name}'", branch) == expected
    assert ids(graph, DOC, f"size = {-level} and slug > 'd0'", branch) == sorted(
        {changed, *(["d000"] if level == 0 else [])}
    )
    assert ids(graph, DOC, "body = 'word200 common'", branch) == ["d200"]
    assert ids(graph, DOC, f"body = 'word{COUNT + level} common'", branch) == [new]
    assert ids(graph, DOC, f"body = 'word{100 + level} common'", branch) == []
    assert ids(graph, DOC, "body = 'changed'", branch) == [f"d{100 + each}" for each in range(level + 1)]
    assert nearest(graph, branch, COUNT + level) == [new, f"d{COUNT + level - 1}"]
    assert nearest(graph, branch, level + 1)[0] != removed
    found = graph.query(
        f'query q() {{ match {{ $d: Doc {{ slug: "{new}" }} }} return {{ $d.body }} }}', branch=branch
    )
    assert found.rows == [{"d.body": f"word{COUNT + level} common"}]
    cited = graph.query(
        'query q() { match { $d: Doc $o: Doc { slug: "d000" } $d cites $o } return { $d.slug } }', branch=branch
    )
    assert len(cited.rows) == 19 - (level + 1)


def nearest(graph: Graph, branch: str, number: int) -> list[str]:
    """The two documents nearest to a place, by the index and the rows that it does not know."""
    query = {"column": "place", "q": [float(number), 0.0], "k": 2, "nprobes": 100}
    found = table(graph, DOC, branch).scanner(columns=["id", "_distance"], nearest=query).to_table()
    return [str(each) for each in found.sort_by("_distance")["id"].to_pylist()]


@pytest.mark.usefixtures("few_vectors")
def test_reads_and_searches(shared_store: Store) -> None:
    """With the indexes of main and rows on top of them, with indexes of its own, and after a compaction."""
    graph = new_graph(shared_store)
    for level, branch in enumerate(LEVELS):
        check_reads(graph, branch, level)
    graph.ensure_indices(branch="c")
    graph.load([doc(102, body="changed", size=-2)], mode="merge", branch="c")
    graph.load([doc(250)], mode="merge", branch="c")
    assert {"size_btree", "body_btree", "place_ivf"} <= set(indexed(graph, DOC, "c"))
    assert "ScalarIndexQuery" in plan(graph, DOC, "size = 5", "c")
    check_reads(graph, "c", 2)
    assert graph.optimize(branch="c").commit is not None
    check_reads(graph, "c", 2)
    graph.ensure_indices(branch="c")
    check_reads(graph, "c", 2)
    check_reads(graph, "b", 1)


@pytest.mark.usefixtures("few_vectors")
def test_merges_up_and_down(shared_store: Store) -> None:
    graph = new_graph(shared_store)
    deepest = content(graph, graph.snapshot("c"))
    graph.load([doc(200, body="of main")], mode="merge")
    for branch, parent in (("c", "b"), ("b", "a"), ("a", "main")):
        assert graph.merge(branch, parent).outcome == ("merged" if parent == "main" else "fast_forward")
    assert [change.id for change in graph.diff("c", "main")] == ["d200"]
    deepest[DOC]["d200"]["body"] = "of main"
    for parent, branch in (("main", "a"), ("a", "b"), ("b", "c")):
        assert graph.merge(parent, branch).outcome == "fast_forward"
        assert content(graph, graph.snapshot(branch)) == deepest
    graph.load([doc(7, body="straight")], mode="merge", branch="c")
    assert graph.merge("c", "main").outcome == "fast_forward"
    assert ids(graph, DOC, "body = 'straight'") == ["d007"]
    assert_settled(graph)


def test_deletions(shared_store: Store) -> None:
    """Refused while there are children, allowed afterwards; what was merged stays."""
    graph = new_graph(shared_store)
    deepest, oldest = content(graph, graph.snapshot("c")), graph.commits()[-2].graph_commit_id
    of_c = graph.commits("c")[0].graph_commit_id
    for branch, child in (("a", "b"), ("b", "c")):
        with pytest.raises(BranchInUse, match=f"branch '{branch}' is the parent of {child}"):
            graph.delete_branch(branch)
    graph.merge("c", "main")
    for branch in reversed(LEVELS):
        graph.delete_branch(branch)
    assert [branch.name for branch in graph.branches()] == ["main"]
    tables = graph._repository.tables
    assert [tables.native_branches(pin.location) for pin in graph.snapshot().tables.values()] == [[], []]
    again = omnigraph.open(shared_store.uri, storage_options=shared_store.options)
    assert content(again, again.snapshot()) == deepest
    assert len(again.diff(oldest)) == 12
    with pytest.raises(HistoryReclaimed, match="deleted branch 'c'"):
        again.diff(of_c)
    with pytest.raises(BranchNotFound):
        again.merge("c", "main")
    again.create_branch("a")
    again.load([doc(5, body="again")], mode="merge", branch="a")
    assert again.merge("a", "main").outcome == "fast_forward"
    assert_settled(again)
