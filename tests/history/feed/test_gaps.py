"""Changes that were removed from the store before they were read: a gap, which is never passed over in silence."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pytest
from tests.history.feed.replica import SCHEMA, apply, exported, in_records, person
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ChangeFeedGap, HistoryReclaimed
from omnigraph.manifest.publisher import COMMIT_TAIL, Change, CommitDraft
from omnigraph.manifest.refs.objects import TRUNK
from omnigraph.storage import layout


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    for name in ("Ada", "Bo", "Cy"):
        graph.load([person(name)], mode="append")
    return graph


def clean(graph: Graph, location: str) -> Graph:
    """Remove all but the newest version of a table, and open the graph anew."""
    table = lance.dataset(f"{graph.address}/{location}")
    table.cleanup_old_versions(older_than=dt.timedelta(0))
    return omnigraph.open(graph.address)


def test_a_manifest_version_that_is_gone(graph: Graph) -> None:
    cursor, commits = graph.changes().cursor, [c.graph_commit_id for c in graph.commits()]
    cleaned = clean(graph, layout.MANIFEST)
    assert cleaned.changes(cursor=cursor).caught_up
    for name in ("Di", "Ed"):
        cleaned.load([person(name)], mode="append")
    newer = [c.graph_commit_id for c in cleaned.commits()]
    again = clean(cleaned, layout.MANIFEST)
    with pytest.raises(ChangeFeedGap, match="`omnigraph changes baseline`") as raised:
        again.changes(cursor=cursor)
    assert (raised.value.cursor, raised.value.graph_commit_id) == (cursor, commits[0])
    with pytest.raises(ChangeFeedGap) as raised:
        again.changes(start="beginning")
    assert (raised.value.cursor, raised.value.graph_commit_id) == (None, commits[-1])
    with pytest.raises(ChangeFeedGap) as raised:
        again.changes(start=f"after:{newer[1]}")
    with pytest.raises(HistoryReclaimed):
        again.commit_changes(newer[0])


def test_a_table_version_that_is_gone(graph: Graph) -> None:
    page = graph.changes(start="beginning", limit_commits=2)
    commits = [c.graph_commit_id for c in graph.commits()]
    cleaned = clean(graph, graph.snapshot().tables["node:Person"].location)
    with pytest.raises(ChangeFeedGap) as raised:
        cleaned.changes(cursor=page.cursor)
    assert (raised.value.cursor, raised.value.graph_commit_id) == (page.cursor, commits[1])
    edges = cleaned.changes(start="beginning", types=["Knows"])
    assert [len(block.changes) for block in edges.blocks] == [0, 0, 0, 0], "a table that is not asked for"


def test_a_baseline_gets_over_it(graph: Graph, tmp_path: Path) -> None:
    cleaned = clean(graph, layout.MANIFEST)
    done = cleaned.baseline(tmp_path / "baseline.jsonl")
    replica = in_records((tmp_path / "baseline.jsonl").read_text().splitlines())
    cleaned.load([person("Di", age=3)], mode="append")
    cleaned.mutate('query q() { delete Person where name = "Ada" }')
    for block in cleaned.changes(cursor=done.resume_cursor).blocks:
        apply(replica, block.as_json()["changes"])
    assert replica == exported(cleaned)


def test_an_archived_commit_is_named(local_store: Store) -> None:
    """The first commits of a long history are in the archive only."""
    graph = omnigraph.init(local_store.uri, SCHEMA)
    first = graph.commits()[0].graph_commit_id
    for _ in range(COMMIT_TAIL + 2):
        graph._repository.manifest.publish(TRUNK.ref, Change(), {}, CommitDraft("load"))
    blocks = [block for page in graph.change_pages(start="beginning") for block in page.blocks]
    assert len(blocks) == COMMIT_TAIL + 3
    with pytest.raises(ChangeFeedGap) as raised:
        clean(graph, layout.MANIFEST).changes(start="beginning")
    assert raised.value.graph_commit_id == first
