"""The change feed: every commit of a branch in order, with what it changed, in pages of bounded size."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.copies import Copies
from tests.history.feed.replica import SCHEMA, knows, person, place
from tests.sampling import sampled

import omnigraph
from omnigraph import AsyncGraph, ChangePage, Graph
from omnigraph.errors import BranchNotFound, InvalidArgument, ParentlessCommit, RequestError, SnapshotNotFound


def make(where: Path) -> None:
    graph = omnigraph.init(where, SCHEMA)
    graph.load([person("Bo"), person("Ada", age=36), place("Rome"), knows("Ada", "Bo", id="k1")], mode="append")
    graph.mutate('query q() { update Person set { age: 37 } where name = "Ada" }', actor="act-1")
    graph.mutate('query q() { delete Person where name = "Bo" }')
    graph.ensure_indices()


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    """A graph with five commits: its creation, a load, an update, a delete with an edge, and an index."""
    return copies.graph(make, tmp_path / "g")


def shown(page: ChangePage) -> list[list[str]]:
    """The changes of each block, as `+ node:Person/Ada`."""
    marks = {"insert": "+", "update": "~", "delete": "-"}
    return [[f"{marks[c.op]} {c.table_key}/{c.id}" for c in block.changes] for block in page.blocks]


def every_block(graph: Graph, branch: str | None = None, **options: Any) -> list[list[str]]:
    """The changes of each commit, put together from all pages."""
    found: list[list[str]] = []
    goes_on = False
    for page in graph.change_pages(branch, **{"start": "beginning", **options}):
        for block, changes in zip(page.blocks, shown(page), strict=True):
            if goes_on:
                found[-1] += changes
            else:
                found.append(changes)
            goes_on = not block.complete
    assert not goes_on
    return found


FEED = [
    [],
    ["+ node:Person/Ada", "+ node:Person/Bo", "+ node:Place/Rome", "+ edge:Knows/k1"],
    ["~ node:Person/Ada"],
    ["- node:Person/Bo", "- edge:Knows/k1"],
    [],
]


class TestOrder:
    def test_nodes_come_before_edges_and_ids_in_order(self, graph: Graph) -> None:
        page = graph.changes(start="beginning")
        assert shown(page) == FEED
        assert [block.cause.kind for block in page.blocks] == [c.kind for c in graph.commits()[::-1]]
        assert (page.caught_up, page.next_page_token) == (True, None)

    def test_a_change_has_the_rows_before_and_after(self, graph: Graph) -> None:
        block = graph.changes(start="beginning").blocks[2]
        (change,) = block.changes
        assert (change.before, change.after, change.changed) == (
            {"id": "Ada", "name": "Ada", "age": 36, "city": None},
            {"id": "Ada", "name": "Ada", "age": 37, "city": None},
            ("age",),
        )
        assert (block.cause.actor_id, block.cause.branch) == ("act-1", "main")
        assert block.as_json()["changes"] == [
            {
                "kind": "node",
                "type": {"id": graph.catalog.nodes["Person"].id, "name": "Person"},
                "id": "Ada",
                "op": "update",
                "before": {"properties": {"name": "Ada", "age": 36, "city": None}},
                "after": {"properties": {"name": "Ada", "age": 37, "city": None}},
                "changed": ["age"],
            }
        ]

    def test_an_edge_has_its_endpoints(self, graph: Graph) -> None:
        deleted = graph.changes(start="beginning").blocks[3].as_json()["changes"][1]
        assert deleted["before"] == {"properties": {"since": None}, "endpoints": {"from": "Ada", "to": "Bo"}}
        assert "after" not in deleted


class TestWhereAPollBegins:
    def test_now_is_the_default(self, graph: Graph) -> None:
        page = graph.changes()
        assert (page.blocks, page.caught_up) == ((), True)
        graph.load([person("Cy")], mode="append")
        assert shown(graph.changes(cursor=page.cursor)) == [["+ node:Person/Cy"]]

    def test_after_a_commit(self, graph: Graph) -> None:
        first = graph.commits()[-1].graph_commit_id
        assert shown(graph.changes(start=f"after:{first}")) == FEED[1:]

    def test_a_cursor_stays_good_and_gives_the_same_again(self, graph: Graph) -> None:
        cursor = graph.changes(start="beginning", limit_commits=2).cursor
        assert shown(graph.changes(cursor=cursor)) == shown(graph.changes(cursor=cursor)) == FEED[2:]

    def test_a_poll_ends_at_the_head_of_its_first_page(self, graph: Graph) -> None:
        page = graph.changes(start="beginning", limit=4)
        graph.load([person("Cy")], mode="append")
        rest = graph.changes(page_token=page.next_page_token)
        assert (shown(rest), rest.caught_up) == (FEED[2:], True)
        assert shown(graph.changes(cursor=rest.cursor)) == [["+ node:Person/Cy"]]

    @pytest.mark.parametrize(
        ("options", "error", "said"),
        [
            ({"start": "yesterday"}, InvalidArgument, "now, beginning or after:COMMIT"),
            ({"start": "after:"}, InvalidArgument, "now, beginning or after:COMMIT"),
            ({"start": "after:01ARZ3NDEKTSV4RRFFQ69G5FAV"}, SnapshotNotFound, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ({"start": "now", "cursor": "x"}, InvalidArgument, "not both"),
            ({"cursor": "x", "page_token": "x"}, InvalidArgument, "not both"),
            ({"cursor": 5}, InvalidArgument, "it is a text"),
            ({"branch": "nope"}, BranchNotFound, "'nope'"),
            ({"types": ["Persn"]}, RequestError, "'Persn'"),
            ({"ops": ["remove"]}, InvalidArgument, "there is no 'remove'"),
            ({"limit": 0}, InvalidArgument, "from 1 to 8,192"),
            ({"limit": 8_193}, InvalidArgument, "from 1 to 8,192"),
            ({"limit_bytes": (32 << 20) + 1}, InvalidArgument, "'limit_bytes'"),
            ({"limit_commits": 513}, InvalidArgument, "from 1 to 512"),
            ({"limit": True}, InvalidArgument, "a whole number"),
        ],
    )
    def test_what_is_refused(
        self, graph: Graph, options: dict[str, Any], error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            graph.changes(**options)

    def test_after_a_commit_that_was_merged_in_is_refused(self, graph: Graph) -> None:
        """It is in the history, but not among the first parents, so that nothing comes after it."""
        graph.create_branch("dev")
        graph.load([person("Cy")], mode="append", branch="dev")
        merged = graph.commits("dev")[0].graph_commit_id
        graph.merge("dev")
        with pytest.raises(InvalidArgument, match="not among the first parents of 'main'"):
            graph.changes(start=f"after:{merged}")


class TestPages:
    @pytest.mark.parametrize(("limit", "commits"), sampled(product([1, 2, 3, 4, 5, 1_000], [1, 2, 128]), 6))
    def test_pages_of_any_size_hold_the_same(self, graph: Graph, limit: int, commits: int) -> None:
        assert every_block(graph, limit=limit, limit_commits=commits) == FEED
        for page in graph.change_pages(start="beginning", limit=limit, limit_commits=commits):
            assert sum(len(block.changes) for block in page.blocks) <= limit
            assert (page.next_page_token is None) != (page.cursor is None)

    def test_only_complete_commits_have_a_cursor(self, graph: Graph) -> None:
        page = graph.changes(start="beginning", limit=2)
        assert [block.complete for block in page.blocks] == [True, False]
        assert (page.cursor, page.caught_up) == (None, False)
        rest = graph.changes(page_token=page.next_page_token, limit=2)
        assert shown(rest) == [["+ node:Place/Rome", "+ edge:Knows/k1"]]
        assert rest.blocks[0].complete

    def test_a_page_token_works_in_another_handle(self, graph: Graph) -> None:
        """Nothing of a consumer is kept: another process has as little to go on."""
        page = graph.changes(start="beginning", limit=3)
        other = omnigraph.open(graph.address, read_only=True)
        assert shown(other.changes(page_token=page.next_page_token)) == [["+ edge:Knows/k1"], *FEED[2:]]

    def test_a_poll_walks_through_so_many_commits(self, graph: Graph) -> None:
        page = graph.changes(start="beginning", limit_commits=3)
        assert (shown(page), page.caught_up) == (FEED[:3], False)
        rest = graph.changes(cursor=page.cursor, limit_commits=2)
        assert (shown(rest), rest.caught_up) == (FEED[3:], True)

    def test_pages_are_packed_by_bytes(self, graph: Graph) -> None:
        """A change that is larger than a page is alone on one."""
        cursor = graph.changes().cursor
        sizes = {"a": 300, "b": 300, "c": 5_000, "d": 300}
        graph.load([person(name, city="x" * size) for name, size in sizes.items()], mode="append")
        pages = graph.change_pages(cursor=cursor, limit_bytes=1_000)
        assert [shown(page) for page in pages] == [
            [["+ node:Person/a", "+ node:Person/b"]],
            [["+ node:Person/c"]],
            [["+ node:Person/d"]],
        ]


class TestFilters:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"kinds": ["edge"]}, [[], ["+ edge:Knows/k1"], [], ["- edge:Knows/k1"], []]),
            ({"types": ["Place"]}, [[], ["+ node:Place/Rome"], [], [], []]),
            ({"ops": ["update"]}, [[], [], ["~ node:Person/Ada"], [], []]),
            ({"kinds": ["node"], "ops": ["delete"]}, [[], [], [], ["- node:Person/Bo"], []]),
        ],
    )
    @pytest.mark.parametrize("limit", [1, 1_000])
    def test_every_commit_has_its_block(
        self, graph: Graph, options: dict[str, Any], expected: list[list[str]], limit: int
    ) -> None:
        assert every_block(graph, limit=limit, **options) == expected


class TestBranches:
    def test_a_branch_of_a_branch_inherits_history(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.load([person("Cy")], mode="append", branch="dev")
        graph.create_branch("dev2", "dev")
        for branch in ("main", "dev"):
            graph.load([person("not here")], mode="append", branch=branch)
        graph.load([person("Di")], mode="append", branch="dev2")
        expected = [*FEED, ["+ node:Person/Cy"], ["+ node:Person/Di"]]
        assert every_block(graph, "dev2") == every_block(graph, "dev2", limit=1, limit_commits=1) == expected
        forked = graph.commits("dev")[1].graph_commit_id
        assert shown(graph.changes("dev2", start=f"after:{forked}")) == [["+ node:Person/Di"]]
        blocks = graph.changes("dev2", start="beginning").blocks
        assert [block.cause.branch for block in blocks] == ["main"] * 5 + ["dev", "dev2"]

    def test_a_new_branch_has_nothing_new(self, graph: Graph) -> None:
        graph.create_branch("dev")
        cursor = graph.changes("dev").cursor
        assert graph.changes("dev", cursor=cursor).blocks == ()
        graph.load([person("Cy")], mode="append", branch="dev")
        assert shown(graph.branch("dev").changes(cursor=cursor)) == [["+ node:Person/Cy"]]

    def test_a_merge_is_one_block_against_its_first_parent(self, graph: Graph) -> None:
        cursor = graph.changes().cursor
        graph.create_branch("dev")
        graph.load([person("Cy")], mode="append", branch="dev")
        graph.load([person("Di")], mode="append", branch="dev")
        graph.load([person("Ed")], mode="append")
        graph.merge("dev")
        graph.delete_branch("dev")
        page = graph.changes(cursor=cursor)
        assert shown(page) == [["+ node:Person/Ed"], ["+ node:Person/Cy", "+ node:Person/Di"]]
        assert [len(block.cause.parents) for block in page.blocks] == [1, 2]

    def test_a_compaction_changes_nothing(self, graph: Graph) -> None:
        for name in ("Cy", "Di", "Ed"):
            graph.load([person(name)], mode="append")
        cursor = graph.changes().cursor
        graph.optimize()
        page = graph.changes(cursor=cursor)
        assert {block.cause.kind for block in page.blocks} == {"optimize"}
        assert all(changes == [] for changes in shown(page))

    def test_what_a_stream_notes_is_no_commit(self, graph: Graph) -> None:
        """A batch without rows makes a version of the manifest and no commit."""
        from omnigraph.manifest.refs.objects import TRUNK
        from omnigraph.manifest.streams import Batch

        cursor = graph.changes().cursor
        repository = graph._repository
        with repository.locks.control() as lock:
            repository.manifest.note_batch(TRUNK.ref, Batch("s", 0, "q"), lock)
        page = graph.changes(cursor=cursor)
        assert (page.blocks, page.caught_up) == ((), True)
        graph.load([person("Cy")], mode="append")
        assert shown(graph.changes(cursor=page.cursor)) == [["+ node:Person/Cy"]]


class TestOneCommit:
    def test_its_changes(self, graph: Graph) -> None:
        commits = [commit.graph_commit_id for commit in graph.commits()]
        found = [graph.commit_changes(commit).block for commit in commits[-2::-1]]
        assert [[change.id for change in block.changes] for block in found] == [
            ["Ada", "Bo", "Rome", "k1"],
            ["Ada"],
            ["Bo", "k1"],
            [],
        ]

    def test_in_pages(self, graph: Graph) -> None:
        commit = graph.commits()[-2].graph_commit_id
        first = graph.commit_changes(commit, limit=3)
        assert ([c.id for c in first.block.changes], first.block.complete) == (["Ada", "Bo", "Rome"], False)
        rest = omnigraph.open(graph.address).commit_changes(commit, page_token=first.next_page_token)
        assert ([c.id for c in rest.block.changes], rest.block.complete) == (["k1"], True)
        assert rest.next_page_token is None

    def test_the_first_commit_has_nothing_to_be_compared_with(self, graph: Graph) -> None:
        first = graph.commits()[-1].graph_commit_id
        with pytest.raises(ParentlessCommit, match=f"commit {first} created the graph"):
            graph.commit_changes(first)

    def test_of_any_branch(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.load([person("Cy")], mode="append", branch="dev")
        (change,) = graph.commit_changes(graph.commits("dev")[0].graph_commit_id).block.changes
        assert change.id == "Cy"


def test_event_loops_have_it_too(graph: Graph) -> None:
    async def main() -> None:
        async with AsyncGraph(graph) as awaited:
            pages = [page async for page in awaited.change_pages(start="beginning", limit=4)]
            assert [changes for page in pages for changes in shown(page)] == FEED
            commit = pages[-1].blocks[-1].cause.graph_commit_id
            assert (await awaited.changes()).cursor == pages[-1].cursor
            assert (await awaited.commit_changes(commit)).block.changes == ()
            with pytest.raises(InvalidArgument):
                async for _ in awaited.change_pages(start="never"):
                    pass

    asyncio.run(main())
