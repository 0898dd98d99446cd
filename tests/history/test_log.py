"""The log of a branch: filters, pages, names and counts."""

from __future__ import annotations

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.copies import Copies
from tests.history.truth import BASE, SCHEMA, write

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import BranchNotFound, InvalidArgument, SnapshotNotFound
from omnigraph.history.log import LogFilter
from omnigraph.manifest.state import Commit


def make(place: Path) -> None:
    omnigraph.init(place, SCHEMA, actor="ada")
    graph = omnigraph.open(place)
    graph.load(BASE, mode="append", actor="bo", message="first people")
    graph.create_branch("dev")
    write(graph, "dev", "add node", 1)
    write(graph, "main", "set age", 2)
    graph.tag("reviewed", at="dev")
    graph.merge("dev", actor="ada", message="looks good")


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    """Two branches that were merged; the newest commit last: init, load, Eve on dev, age on main, merge."""
    return copies.graph(make, tmp_path / "g")


def kinds(found: list[Any]) -> list[str]:
    return [getattr(entry, "commit", entry).kind for entry in found]


ALL = ["merge", "mutation", "mutation", "load", "init"]


class TestLog:
    def test_it_names_what_leads_to_a_commit(self, graph: Graph) -> None:
        merge, age, eve, load, init = graph.log()
        assert kinds(graph.log()) == ALL
        assert (merge.branches, eve.branches, eve.tags) == (("main",), ("dev",), ("reviewed",))
        assert merge.commit.parents == (age.commit.graph_commit_id, eve.commit.graph_commit_id)
        assert [entry.branches + entry.tags for entry in (age, load, init)] == [(), (), ()]

    def test_it_counts_what_a_commit_changed(self, graph: Graph) -> None:
        person = {"insert": 0, "update": 0, "delete": 0}
        changes = [entry.changes for entry in graph.log(stat=True)]
        assert changes == [
            {"node:Person": {**person, "insert": 1}},
            {"node:Person": {**person, "update": 1}},
            {"node:Person": {**person, "insert": 1}},
            {"node:Person": {**person, "insert": 4}, "edge:Knows": {**person, "insert": 1}},
            {},
        ]

    def test_what_a_deleted_branch_changed_is_not_known(self, graph: Graph) -> None:
        graph.delete_tag("reviewed")
        graph.delete_branch("dev")
        found = graph.log(stat=True)
        assert [entry.changes is None for entry in found] == [False, False, True, False, False]
        assert found[2].as_json()["changes"] is None

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"actor": "ada"}, ["merge", "init"]),
            ({"kind": "mutation"}, ["mutation", "mutation"]),
            ({"actor": "bo", "kind": "load"}, ["load"]),
            ({"actor": "bo", "kind": "merge"}, []),
            ({"limit": 2}, ["merge", "mutation"]),
            ({"limit": 0}, []),
            ({"since": "2000-01-01"}, ALL),
            ({"since": "2000-01-01T00:00:00+02:00", "until": "2001-01-01"}, []),
            ({"until": "2000-01-01"}, []),
            ({"since": "2999-01-01T00:00:00Z"}, []),
        ],
    )
    def test_filters(self, graph: Graph, options: Any, expected: list[str]) -> None:
        assert kinds(graph.log(**options)) == expected
        assert kinds(graph.commits(**options)) == expected

    def test_times_have_a_beginning_and_an_end(self, graph: Graph) -> None:
        times = [entry.commit.created_at for entry in graph.log()]
        assert kinds(graph.log(since=times[3], until=times[0])) == ["mutation", "mutation", "load"]
        assert kinds(graph.log(since=times[3].astimezone(dt.timezone(dt.timedelta(hours=5))))) == ALL[:4]

    def test_pages(self, graph: Graph) -> None:
        found: list[str] = []
        after = None
        while page := graph.log(limit=2, after=after):
            after = page[-1].commit.graph_commit_id
            found += kinds(page)
        assert found == ALL
        assert kinds(graph.log(after="reviewed")) == ["load", "init"]

    def test_refusals(self, graph: Graph) -> None:
        with pytest.raises(InvalidArgument, match="'yesterday' is no time; write it as 2026-05-01"):
            graph.log(since="yesterday")
        with pytest.raises(InvalidArgument, match="'until' cannot be used"):
            graph.commits(until=3)  # type: ignore[arg-type]
        with pytest.raises(SnapshotNotFound):
            graph.log(after="01ARZ3NDEKTSV4RRFFQ69G5FAV")
        with pytest.raises(BranchNotFound):
            graph.log("nope")

    def test_from_an_event_loop(self, graph: Graph) -> None:
        async def scenario() -> list[str]:
            async with AsyncGraph(graph) as each:
                return kinds(await each.log(limit=1))

        assert asyncio.run(scenario()) == ["merge"]


def test_clocks_that_differ_hide_no_commit() -> None:
    """A walk ends only behind commits that are older than `since` by more than clocks differ."""
    noon = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
    wanted = LogFilter(since=noon)
    times = [noon - dt.timedelta(minutes=minutes) for minutes in (0, 1, 61)]
    commits = [Commit("c", "main", 1, (), at, "load") for at in times]
    assert [wanted.takes(commit) for commit in commits] == [True, False, False]
    assert [wanted.ends_at(commit) for commit in commits] == [False, False, True]


class TestCommand:
    def test_for_people(self, graph: Graph) -> None:
        merge, *_ = graph.commits()
        shown = run("log", "--store", graph.address, "--stat", "--limit", "1").out.splitlines()
        assert shown == [
            f"{merge.graph_commit_id}  main",
            f"    {merge.created_at:%Y-%m-%d %H:%M:%S}  merge by ada  merges {merge.parents[1]}",
            "    looks good",
            "    node:Person  1 insert",
            f"more: --after {merge.graph_commit_id}",
        ]

    @pytest.mark.parametrize("command", [("log",), ("commit", "list")])
    def test_log_and_commit_list_filter_alike(self, graph: Graph, command: tuple[str, ...]) -> None:
        place = (*command, "--store", graph.address, "--json")
        for options in (("--actor", "ada"), ("--filter", "actor=ada")):
            assert [c["kind"] for c in run(*place, *options).json["commits"]] == ["merge", "init"]
        first = run(*place, "--kind", "mutation", "--limit", "1").json
        assert first["next"] == first["commits"][0]["graph_commit_id"]
        second = run(*place, "--filter", "kind=mutation", "--after", first["next"]).json
        assert (len(second["commits"]), second["next"]) == (1, None)
        assert run(*place, "--until", "2000-01-01").json["commits"] == []
        assert run(*place, "--since", "soon").json["argument"] == "since"
        assert "is not a filter" in run(*place, "--filter", "color=red").json["error"]
        assert "two values for actor" in run(*place, "--actor", "a", "--filter", "actor=b").json["error"]

    def test_json(self, graph: Graph) -> None:
        (entry,) = run("log", "--branch", "dev", "--store", graph.address, "--json", "--limit", "1").json[
            "commits"
        ]
        assert (entry["branches"], entry["tags"], entry["changes"]) == (["dev"], ["reviewed"], None)
