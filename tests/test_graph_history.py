"""The history of a graph and its states of long ago, through the public API."""

from __future__ import annotations

import datetime as dt
from itertools import count

import lance
import pytest
from tests.manifest.support import SCHEMA, TRUNK, publish, publish_unlocked
from tests.stores import Store

import omnigraph
from omnigraph import Branch, Commit, Graph
from omnigraph.errors import HistoryReclaimed, SnapshotNotFound
from omnigraph.manifest.publisher import COMMIT_TAIL, Change, CommitDraft
from omnigraph.storage import layout

PERSON, CITY = "node:Person", "node:City"


@pytest.fixture
def graph(store: Store) -> Graph:
    return omnigraph.init(store.uri, SCHEMA, actor="ada", storage_options=store.options)


def fresh(graph: Graph) -> Graph:
    """The same graph, as a process sees it that has cached nothing."""
    return omnigraph.open(graph.address, read_only=True, storage_options=graph._repository.address.options)


def write(graph: Graph, branch: Branch | None = None, **how: str) -> Commit:
    """Publish one commit and return it."""
    head = publish(graph._repository, PERSON, branch=TRUNK if branch is None else branch.ref, **how).head
    assert head is not None
    return head


def merge(graph: Graph, branch: str) -> Commit:
    """Publish a commit on main whose second parent is a branch's head."""
    other = graph.snapshot(branch).commit
    assert other is not None
    draft = CommitDraft("merge", merged_parents=(other.graph_commit_id,))
    head = graph._repository.manifest.publish(TRUNK, Change(), {}, draft).head
    assert head is not None
    return head


def forget_versions(graph: Graph, branch: Branch | None = None) -> None:
    """Do what cleanup does to the manifest: keep its newest version only."""
    address = graph._repository.address
    tree = layout.native_prefix(layout.MANIFEST, None if branch is None else branch.native)
    manifest = lance.dataset(f"{address.lance_root}/{tree}", storage_options=dict(address.options) or None)
    manifest.cleanup_old_versions(older_than=dt.timedelta(0))


class TestCommits:
    def test_they_are_listed_newest_first(self, graph: Graph) -> None:
        made = [write(graph) for _ in range(3)]
        assert fresh(graph).commits()[:3] == made[::-1]

    def test_by_who_made_them_and_what_they_are(self, graph: Graph) -> None:
        load, by_bo = write(graph, kind="load", actor="ada"), write(graph, kind="mutation", actor="bo")
        assert graph.commits(actor="bo") == [by_bo]
        assert graph.commits(kind="load") == [load]
        assert [commit.kind for commit in graph.commits(actor="ada")] == ["load", "init"]
        assert graph.commits(actor="bo", kind="load") == []

    @pytest.mark.parametrize("limit", [0, 1, 2, 99])
    def test_as_many_as_are_wanted(self, graph: Graph, limit: int) -> None:
        made = [write(graph), graph.commits()[-1]]
        assert graph.commits(limit=limit) == made[:limit]

    def test_one_is_found_on_whatever_branch(self, graph: Graph) -> None:
        commit = write(graph, graph.create_branch("dev"))
        assert fresh(graph).commit(commit.graph_commit_id) == commit
        assert fresh(graph).commit(f" {commit.graph_commit_id}\n") == commit

    @pytest.mark.parametrize("id_", ["", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "' or true --", "naïve", "a\0b", "ghost"])
    def test_an_unknown_one_is_not_found(self, graph: Graph, id_: str) -> None:
        with pytest.raises(SnapshotNotFound):
            graph.commit(id_)
        with pytest.raises(SnapshotNotFound):
            graph.snapshot(at=id_)
        with pytest.raises(SnapshotNotFound):
            graph.commits(after=id_)

    def test_a_branch_that_vanishes_meanwhile_does_not_disturb_the_search(self, graph: Graph) -> None:
        branch = graph.create_branch("dev")
        assert branch.native is not None
        graph._repository.tables.drop_branch(layout.MANIFEST, branch.native)
        with pytest.raises(SnapshotNotFound):
            fresh(graph).commit("ghost")

    def test_a_merged_branch_is_part_of_the_history_before_and_after_it_is_deleted(self, graph: Graph) -> None:
        dev = graph.create_branch("dev")
        on_dev = [write(graph, dev), write(graph, dev)]
        on_main = write(graph)
        merged = merge(graph, "dev")
        first = graph.commits()[-1]
        expected = [merged, on_main, *on_dev[::-1], first]
        assert fresh(graph).commits() == expected
        graph.delete_branch("dev")
        assert fresh(graph).commits() == expected

    def test_a_commit_comes_before_its_parents_whatever_their_versions(self, graph: Graph) -> None:
        """A branch may be further in versions than the one it is merged into."""
        dev, other = graph.create_branch("dev"), graph.create_branch("other")
        for _ in range(5):
            write(graph, dev)
        write(graph, other)
        merge(graph, "dev")
        merge(graph, "other")
        commits = fresh(graph).commits()
        place = {commit.graph_commit_id: number for number, commit in enumerate(commits)}
        assert len(commits) == 9
        assert all(place[commit.graph_commit_id] < place[p] for commit in commits for p in commit.parents)


class TestLongHistories:
    def test_pages_go_on_into_the_archive(self, graph: Graph) -> None:
        for _ in range(COMMIT_TAIL + 12):
            publish_unlocked(graph._repository, PERSON)
        check_pages(fresh(graph), COMMIT_TAIL + 13)

    def test_and_on(self, local_store: Store) -> None:
        graph = omnigraph.init(local_store.uri, SCHEMA)
        for number in count(1):
            kind, actor = ("mutation", "bo") if number % 50 == 0 else ("load", "ada")
            state = publish(graph._repository, PERSON, kind=kind, actor=actor)
            if state.version == 320:
                break
        check_pages(fresh(graph), 320)
        found = fresh(graph).commits(actor="bo", kind="mutation")
        assert [commit.manifest_version for commit in found] == [301, 251, 201, 151, 101, 51]
        oldest = fresh(graph).commits(limit=999)[-1]
        assert fresh(graph).commit(oldest.graph_commit_id) == oldest
        assert fresh(graph).snapshot(at=oldest.graph_commit_id).manifest_version == 1

    def test_a_branch_knows_what_was_archived_before_and_after_it_began(self, local_store: Store) -> None:
        graph = omnigraph.init(local_store.uri, SCHEMA)
        for _ in range(COMMIT_TAIL + 10):
            publish_unlocked(graph._repository, PERSON)
        dev = graph.create_branch("dev")
        for _ in range(COMMIT_TAIL + 10):
            publish_unlocked(graph._repository, PERSON, branch=dev.ref)
            publish_unlocked(graph._repository, CITY)
        check_pages(fresh(graph).branch("dev"), 2 * COMMIT_TAIL + 21)
        check_pages(fresh(graph), 2 * COMMIT_TAIL + 21)
        graph.delete_branch("dev")
        check_pages(fresh(graph), 2 * COMMIT_TAIL + 21)


def check_pages(graph: Graph, total: int) -> None:
    """Page by page or all at once, the history is one chain of so many commits."""
    everything = graph.commits(limit=10**6)
    assert [commit.manifest_version for commit in everything] == list(range(total, 0, -1))
    assert [c.parents for c in everything[:-1]] == [(c.graph_commit_id,) for c in everything[1:]]
    pages = graph.commits(limit=60)
    while page := graph.commits(limit=60, after=pages[-1].graph_commit_id):
        pages += page
    assert pages == everything


class TestSnapshots:
    def test_by_version_and_by_commit(self, graph: Graph) -> None:
        states = [graph.snapshot()]
        for _ in range(3):
            write(graph)
            states.append(graph.snapshot())
        again = fresh(graph)
        for state in states:
            assert state.commit is not None
            assert again.snapshot(at=state.manifest_version) == state
            assert again.snapshot(at=state.commit.graph_commit_id) == state

    def test_a_branch_has_the_versions_of_its_ancestors_before_it_left_them(self, graph: Graph) -> None:
        main = [graph.snapshot()] + [graph.snapshot() for _ in range(2) if write(graph)]
        dev = graph.create_branch("dev")
        write(graph, dev)
        on_dev = graph.snapshot("dev")
        graph.create_branch("dev2", from_="dev")
        write(graph)
        for branch in ("dev", "dev2"):
            for state in main:
                found = fresh(graph).snapshot(branch, at=state.manifest_version)
                assert (found.branch, found.tables, found.commit) == (branch, state.tables, state.commit)
        assert fresh(graph).snapshot("dev2", at=4).tables == on_dev.tables

    def test_another_branchs_commit_is_shown_on_its_own_branch(self, graph: Graph) -> None:
        commit = write(graph, graph.create_branch("dev"))
        found = fresh(graph).snapshot(at=commit.graph_commit_id)
        assert (found.branch, found.commit) == ("dev", commit)
        assert found.tables == graph.snapshot("dev").tables

    @pytest.mark.parametrize("version", [0, -1, 2, 99, 2**63, 2**64 - 1, 2**64, 10**30])
    def test_a_version_that_never_was_is_not_found(self, graph: Graph, version: int) -> None:
        with pytest.raises(SnapshotNotFound, match=str(version)):
            fresh(graph).snapshot(at=version)

    def test_a_version_that_was_cleaned_away_is_reclaimed(self, graph: Graph) -> None:
        old = graph.commits()[0]
        for _ in range(3):
            write(graph)
        newest = graph.snapshot()
        forget_versions(graph)
        again = fresh(graph)
        with pytest.raises(HistoryReclaimed, match="manifest version 1"):
            again.snapshot(at=1)
        with pytest.raises(HistoryReclaimed):
            again.snapshot(at=old.graph_commit_id)
        assert again.snapshot() == newest
        assert len(again.commits()) == 4
        write(graph)
        assert again.snapshot() == graph.snapshot()


class TestDeletedBranches:
    def test_their_commits_were_there_once(self, graph: Graph) -> None:
        commit = write(graph, graph.create_branch("dev"))
        graph.delete_branch("dev")
        assert fresh(graph).commit(commit.graph_commit_id) == commit
        with pytest.raises(HistoryReclaimed, match="deleted branch 'dev'"):
            fresh(graph).snapshot(at=commit.graph_commit_id)

    @pytest.mark.parametrize(("on_main", "on_new"), [(0, 0), (0, 1), (0, 2), (0, 5), (2, 0), (5, 0), (1, 5)])
    def test_the_commits_of_an_earlier_branch_of_the_name_are_not_those_of_the_new_one(
        self, local_store: Store, on_main: int, on_new: int
    ) -> None:
        """Whatever versions the new one has: none yet, the same, or others."""
        graph = omnigraph.init(local_store.uri, SCHEMA)
        old = graph.create_branch("dev")
        commits = [write(graph, old), write(graph, old)]
        graph.delete_branch("dev")
        for _ in range(on_main):
            write(graph)
        new = graph.create_branch("dev")
        for _ in range(on_new):
            write(graph, new)
        for commit in commits:
            assert fresh(graph).commit(commit.graph_commit_id) == commit
            with pytest.raises(HistoryReclaimed, match="earlier branch 'dev'"):
                fresh(graph).snapshot(at=commit.graph_commit_id)
