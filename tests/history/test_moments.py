"""Snapshots by time: a branch as it stood at a moment."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.cli.command import omnigraph as run
from tests.history.truth import BASE, SCHEMA, write
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, SnapshotNotFound
from omnigraph.manifest import publisher
from omnigraph.manifest.state import Commit

TICK = dt.timedelta(microseconds=1)


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    return graph


def found(graph: Graph, at: dt.datetime | str, branch: str | None = None) -> str | None:
    return graph.snapshot(branch, at=at).graph_commit_id


def written(graph: Graph, branch: str, number: int) -> Commit:
    write(graph, branch, "add node", number)
    return graph.commits(branch)[0]


def test_it_is_the_newest_commit_that_is_not_later(graph: Graph) -> None:
    first, second = graph.commits()[0], written(graph, "main", 1)
    assert found(graph, first.created_at) == first.graph_commit_id
    assert found(graph, second.created_at - TICK) == first.graph_commit_id
    assert found(graph, second.created_at) == second.graph_commit_id
    assert found(graph, dt.datetime(9999, 1, 1)) == second.graph_commit_id


def test_a_text_names_a_moment_in_any_zone(graph: Graph) -> None:
    first, second = graph.commits()[0], written(graph, "main", 1)
    for zone in (dt.UTC, dt.timezone(dt.timedelta(hours=-7))):
        assert found(graph, second.created_at.astimezone(zone).isoformat()) == second.graph_commit_id
        assert found(graph, (second.created_at - TICK).astimezone(zone).isoformat(" ")) == first.graph_commit_id
    assert found(graph, second.created_at.replace(tzinfo=None).isoformat()) == second.graph_commit_id
    assert found(graph, "9999-01-01T00:00Z") == second.graph_commit_id


def test_before_the_first_commit_there_is_nothing(graph: Graph) -> None:
    with pytest.raises(SnapshotNotFound, match="branch 'main' from 1999"):
        graph.snapshot(at="1999-01-01T00:00Z")


@pytest.mark.parametrize("text", ["2026-13-01T12:00Z", "2026-11-01T25:00"])
def test_a_moment_that_is_none_is_the_name_of_nothing(graph: Graph, text: str) -> None:
    with pytest.raises(SnapshotNotFound, match=text):
        graph.snapshot(at=text)


def test_every_branch_has_its_own_line(graph: Graph) -> None:
    graph.create_branch("dev")
    on_dev = written(graph, "dev", 1)
    on_main = written(graph, "main", 2)
    graph.merge("dev", resolve="ours")
    assert found(graph, on_main.created_at - TICK) != on_dev.graph_commit_id
    assert found(graph, on_main.created_at, "dev") == on_dev.graph_commit_id
    before = on_dev.created_at - TICK
    assert found(graph, before, "dev") == found(graph, before, "main")
    with pytest.raises(InvalidArgument, match="a state by itself"):
        graph.snapshot("dev", at=on_main.graph_commit_id)


def test_archived_commits_are_found(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "COMMIT_TAIL", 3)
    monkeypatch.setattr(publisher, "_ARCHIVE_BATCH", 2)
    made = [written(graph, "main", number) for number in range(1, 9)]
    reopened = omnigraph.open(graph.address)
    assert [found(reopened, one.created_at) for one in made] == [one.graph_commit_id for one in made]


def test_queries_diffs_and_tags_take_it(graph: Graph) -> None:
    then = graph.commits()[0].created_at
    before = graph.snapshot()
    made = written(graph, "main", 1)
    query = "query all() { match { $p: Person } return { count($p) as n } }"
    later = graph.query(query).rows[0]["n"]
    result = graph.query(query, at=then)
    assert (result.rows[0]["n"], later) == (before.rows("node:Person"), before.rows("node:Person") + 1)
    assert result.as_json()["target"] == {"snapshot": then.isoformat()}
    assert graph.diff(then).as_json() == graph.diff(before).as_json()
    assert graph.tag("then", made.created_at).graph_commit_id == made.graph_commit_id


def test_the_command_line_takes_it_with_a_branch(graph: Graph) -> None:
    made = written(graph, "main", 1)
    text = made.created_at.isoformat()
    for options in (["--at", text], ["--snapshot", text, "--branch", "main"]):
        shown = run("snapshot", "--store", graph.address, "--json", *options)
        assert (shown.code, made.graph_commit_id in shown.out) == (0, True)
    query = "query n() { match { $p: Person } return { count($p) as n } }"
    early = run("query", "--store", graph.address, "-e", query, "--at", "1999-01-01T00:00Z")
    assert (early.code, "or before" in early.err) == (1, True)
