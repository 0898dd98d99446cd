"""A graph from creation on, through the public API, on every kind of store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.manifest.support import SCHEMA, TRUNK, move, publish, stored
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchExists, BranchNotFound, BranchProtected, ReadOnlyGraph, SnapshotNotFound
from omnigraph.manifest.publisher import CommitDraft

PERSON, CITY, KNOWS = "node:Person", "node:City", "edge:Knows"


def init(store: Store) -> Graph:
    return omnigraph.init(store.uri, SCHEMA, actor="ada", storage_options=store.options)


def open_again(store: Store, *, read_only: bool = False) -> Graph:
    return omnigraph.open(store.uri, read_only=read_only, actor="bo", storage_options=store.options)


class TestLife:
    @pytest.mark.quick_on_s3
    def test_a_new_graph_has_its_tables_one_branch_and_one_commit(self, store: Store) -> None:
        init(store)
        graph = open_again(store)
        assert graph.schema == SCHEMA
        assert set(graph.catalog.nodes) == {"Person", "City"}
        assert [branch.name for branch in graph.branches()] == ["main"]
        snapshot = graph.snapshot()
        assert {key: (pin.table_version, pin.row_count) for key, pin in snapshot.tables.items()} == {
            CITY: (1, 0),
            KNOWS: (1, 0),
            PERSON: (1, 0),
        }
        (commit,) = graph.commits()
        assert snapshot.commit == commit
        assert (commit.kind, commit.actor_id, commit.parents, commit.branch) == ("init", "ada", (), "main")

    def test_the_handle_that_created_it_and_one_that_opened_it_see_the_same(self, store: Store) -> None:
        created = init(store)
        opened = open_again(store)
        publish(created._repository, PERSON)
        assert opened.snapshot() == created.snapshot()
        assert opened.address == created.address

    def test_a_graph_can_be_created_beside_other_files(self, local_store: Store) -> None:
        readme = local_store.objects()
        readme.put("README.md", b"my graph")
        init(local_store)
        assert readme.has("README.md")

    def test_two_graphs_on_one_store_do_not_meet(self, store: Store) -> None:
        one, other = init(store), init(Store(store.uri + "-2", store.options))
        one.create_branch("dev")
        publish(one._repository, PERSON)
        assert [branch.name for branch in other.branches()] == ["main"]
        assert other.snapshot().manifest_version == 1


class TestReadOnly:
    def test_reading_leaves_the_store_as_it_is(self, store: Store) -> None:
        made = init(store)
        made.create_branch("dev")
        publish(made._repository, PERSON)
        before = stored(store)
        graph = open_again(store, read_only=True)
        look_at_everything(graph)
        look_at_everything(graph.branch("dev"))
        assert stored(store) == before

    def test_writing_is_refused(self, store: Store) -> None:
        init(store).create_branch("dev")
        before = stored(store)
        graph = open_again(store, read_only=True)
        with pytest.raises(ReadOnlyGraph, match=r"g was opened read-only"):
            graph.create_branch("dev2")
        with pytest.raises(ReadOnlyGraph):
            graph.delete_branch("dev")
        assert stored(store) == before

    @pytest.mark.quick_on_s3
    def test_a_reader_follows_the_writers(self, store: Store) -> None:
        writer, reader = init(store), open_again(store, read_only=True)
        for _ in range(3):
            publish(writer._repository, PERSON)
            assert reader.snapshot() == writer.snapshot()
        writer.create_branch("dev")
        assert reader.branches() == writer.branches()


def look_at_everything(graph: Graph) -> None:
    """Use every way of reading there is."""
    assert graph.schema
    assert graph.catalog.nodes
    assert repr(graph)
    for branch in graph.branches():
        assert branch.as_json()
        snapshot = graph.snapshot(branch.name)
        assert snapshot.as_json()
        assert snapshot.commit is not None
        for commit in graph.commits(branch.name):
            assert graph.commit(commit.graph_commit_id) == commit
            assert graph.snapshot(at=commit.graph_commit_id).commit == commit
            assert graph.snapshot(branch.name, at=commit.manifest_version).tables
    with pytest.raises(BranchNotFound):
        graph.snapshot("ghost")


class TestBranches:
    def test_they_are_created_from_any_branch_and_deleted(self, store: Store) -> None:
        graph = init(store)
        graph.create_branch("dev")
        graph.create_branch("dev2", from_="dev", actor="cy")
        again = open_again(store)
        assert [(b.name, b.parent, b.creator) for b in again.branches()] == [
            ("main", None, None),
            ("dev", "main", "ada"),
            ("dev2", "dev", "cy"),
        ]
        again.delete_branch("dev2")
        again.delete_branch("dev")
        assert [branch.name for branch in graph.branches()] == ["main"]

    def test_a_view_of_a_branch_works_on_it(self, store: Store) -> None:
        graph = init(store)
        graph.create_branch("dev")
        view = graph.branch(" dev")
        publish(graph._repository, PERSON, branch=graph._repository.branches.find("dev").ref)
        assert view.snapshot() == graph.snapshot("dev") != graph.snapshot()
        assert [commit.branch for commit in view.commits()] == ["dev", "main"]
        assert view.create_branch("dev2").parent == "dev"
        assert "branch='dev'" in repr(view)

    def test_a_view_does_not_delete_the_branch_it_works_on(self, store: Store) -> None:
        graph = init(store)
        graph.create_branch("dev")
        with pytest.raises(BranchProtected, match="another one"):
            graph.branch("dev").delete_branch("dev")
        graph.delete_branch("dev")

    @pytest.mark.quick_on_s3
    def test_what_one_branch_writes_no_other_sees(self, store: Store) -> None:
        graph = init(store)
        dev = graph.create_branch("dev")
        before = graph.snapshot()
        publish(graph._repository, PERSON, branch=dev.ref)
        assert open_again(store).snapshot() == before
        publish(graph._repository, CITY)
        assert open_again(store).snapshot("dev").tables[CITY].table_version == 1


class TestManyThreads:
    """One handle, eight threads, everything at once."""

    def test_branches_come_and_go(self, store: Store) -> None:
        graph = init(store)
        start = Barrier(8)

        def work(number: int) -> None:
            start.wait()
            graph.create_branch(f"dev{number}")
            view = graph.branch(f"dev{number}")
            (first,) = view.commits()
            assert view.commit(first.graph_commit_id) == first
            assert view.snapshot(at=first.graph_commit_id).tables == view.snapshot().tables
            with pytest.raises(SnapshotNotFound):
                view.commit("nowhere")
            if number % 2:
                graph.delete_branch(f"dev{number}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert [branch.name for branch in graph.branches()] == ["main", *(f"dev{n}" for n in (0, 2, 4, 6))]

    def test_a_name_is_given_to_one_of_them(self, store: Store) -> None:
        graph = init(store)
        start = Barrier(8)

        def work(number: int) -> bool:
            start.wait()
            try:
                graph.create_branch("dev", actor=str(number))
            except BranchExists:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            winners = [number for number, won in enumerate(pool.map(work, range(8))) if won]
        assert [str(number) for number in winners] == [graph.branches()[1].creator]

    def test_every_commit_of_every_thread_is_in_the_history(self, store: Store) -> None:
        graph = init(store)

        def work(number: int) -> None:
            for _ in range(3):
                with graph._repository.locks.commit("main") as lock:
                    state = graph._repository.manifest.latest(None)
                    change, expected = move(state, PERSON)
                    draft = CommitDraft("load", actor_id=str(number))
                    graph._repository.manifest.publish(TRUNK, change, expected, draft, lock)
                graph.snapshot()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        commits = open_again(store).commits()
        assert len(commits) == 1 + 8 * 3
        assert graph.snapshot().tables[PERSON].table_version == 1 + 8 * 3
        assert [c.parents for c in commits[:-1]] == [(c.graph_commit_id,) for c in commits[1:]]


def test_a_text_is_checked_without_being_run(memory_store: Store) -> None:
    graph = omnigraph.init(memory_store.uri, "node Person { name: String @key }")
    good = "query a() { match { $p: Person } return { $p.name } }"
    report = graph.check(f"{good}  query b() {{ match {{ $p: Persn }} return {{ $p }} }}")
    assert (report.ok, [result.error is None for result in report.results]) == (False, [True, False])


def test_the_memory_of_queries_can_be_set(local_store: Store) -> None:
    written = omnigraph.init(local_store.uri, "node Person { name: String @key }")
    written.load([{"type": "Person", "data": {"name": "Ada"}}], mode="append")
    graph = omnigraph.open(local_store.uri, cache_bytes=0)
    assert graph.query("query q() { match { $p: Person } return { $p.name } }").rows == [{"p.name": "Ada"}]
    assert graph._cache.usage().limit == 0
