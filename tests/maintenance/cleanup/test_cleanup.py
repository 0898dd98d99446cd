"""What a cleanup removes, and what it leaves."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.maintenance.cleanup.worlds import (
    NOW,
    add,
    backdate,
    connect,
    create,
    files,
    names,
    people,
    remove,
    rename,
)
from tests.stores import Store

from omnigraph import Graph
from omnigraph.errors import ChangeFeedGap, HistoryReclaimed, InvalidArgument, ReadOnlyGraph, RequestError
from omnigraph.manifest.publisher import COMMIT_TAIL, Change, CommitDraft
from omnigraph.manifest.refs.objects import TRUNK


@pytest.fixture
def graph(local_store: Store) -> Graph:
    """Five people, one commit each; the first one is changed, the second one removed."""
    graph = create(local_store)
    for name in ("Ada", "Bo", "Cy", "Di", "Ed"):
        add(graph, name)
    rename(graph, "Ada", 2)
    remove(graph, "Bo")
    return graph


class TestHowMuchStays:
    def test_a_preview_removes_nothing_and_says_what_would_go(self, graph: Graph, local_store: Store) -> None:
        before = files(local_store)
        shown = connect(local_store, read_only=True).cleanup(keep=2, grace=NOW)
        assert files(local_store) == before
        done = graph.cleanup(keep=2, grace=NOW, confirm=True)
        assert (shown.tables, shown.branches) == (done.tables, done.branches)
        assert len(before - files(local_store)) == done.files_removed
        assert not shown.confirmed
        assert done.confirmed

    def test_the_newest_commits_stay_and_older_ones_are_still_listed(
        self, graph: Graph, local_store: Store
    ) -> None:
        commits = [commit.graph_commit_id for commit in graph.commits()]
        states = {commit: people(graph, at=commit) for commit in commits}
        graph.cleanup(keep=3, grace=NOW, confirm=True)
        left = connect(local_store)
        assert [commit.graph_commit_id for commit in left.commits()] == commits
        assert {commit: people(left, at=commit) for commit in commits[:3]} == {
            commit: states[commit] for commit in commits[:3]
        }
        for commit in commits[3:]:
            with pytest.raises(HistoryReclaimed, match=f"{commit}.*oldest.*{commits[2]}"):
                people(left, at=commit)

    def test_the_newest_state_stays_in_any_case(self, graph: Graph, local_store: Store) -> None:
        newest = people(graph)
        graph.cleanup(keep=0, grace=NOW, confirm=True)
        left = connect(local_store)
        assert people(left) == newest
        add(left, "Flo")
        assert people(left) == newest | {("Flo", 1)}

    def test_a_second_cleanup_finds_nothing(self, graph: Graph) -> None:
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        again = graph.cleanup(keep=1, grace=NOW, confirm=True)
        assert (again.tables, again.files_removed) == ((), 0)

    def test_states_of_the_last_days_stay(self, local_store: Store) -> None:
        graph = create(local_store)
        old, kept = add(graph, "Ada"), add(graph, "Bo")
        backdate(local_store, hours=10 * 24)
        newer = [add(graph, "Cy"), add(graph, "Di")]
        graph.cleanup(older_than="7d", confirm=True)
        left = connect(local_store)
        assert names(left, at=kept) == {"Ada", "Bo"}, "it was the newest state until today"
        assert [names(left, at=commit) for commit in newer] == [{"Ada", "Bo", "Cy"}, {"Ada", "Bo", "Cy", "Di"}]
        with pytest.raises(HistoryReclaimed):
            names(left, at=old)

    def test_a_state_goes_only_if_it_fails_both(self, local_store: Store) -> None:
        graph = create(local_store)
        commits = [add(graph, name) for name in ("Ada", "Bo", "Cy")]
        backdate(local_store, hours=10 * 24)
        commits.append(add(graph, "Di"))
        graph.cleanup(keep=1, older_than=dt.timedelta(days=30), confirm=True)
        assert names(connect(local_store), at=commits[0]) == {"Ada"}
        graph.cleanup(keep=3, older_than="1d", confirm=True)
        left = connect(local_store)
        assert names(left, at=commits[1]) == {"Ada", "Bo"}
        with pytest.raises(HistoryReclaimed):
            names(left, at=commits[0])

    def test_what_was_the_newest_within_the_grace_period_stays(self, graph: Graph, local_store: Store) -> None:
        before = files(local_store)
        done = graph.cleanup(keep=1, confirm=True)
        assert done.files_removed == 0
        assert before <= files(local_store)

    @pytest.mark.long
    def test_commits_are_counted_beyond_those_that_the_manifest_has(self, local_store: Store) -> None:
        graph = create(local_store)
        for _ in range(COMMIT_TAIL + 40):
            graph._repository.manifest.publish(TRUNK.ref, Change(), {}, CommitDraft("load"))
        done = graph.cleanup(keep=COMMIT_TAIL + 20, grace=NOW, confirm=True)
        assert [branch.states_removed for branch in done.branches] == [21]
        assert len(connect(local_store).commits(limit=1000)) == COMMIT_TAIL + 41

    @pytest.mark.parametrize("wrong", ["7", "d", "-1d", "1y", "", "1.5h", "99999999999d", "9" * 8 + "w"])
    def test_a_duration_that_is_none(self, graph: Graph, wrong: str) -> None:
        with pytest.raises(InvalidArgument, match="older_than"):
            graph.cleanup(older_than=wrong)

    def test_a_policy_that_says_nothing(self, graph: Graph) -> None:
        with pytest.raises(InvalidArgument, match="keep, older_than, or both"):
            graph.cleanup()
        with pytest.raises(InvalidArgument, match="number of commits"):
            graph.cleanup(keep=-1)
        with pytest.raises(InvalidArgument, match="grace"):
            graph.cleanup(keep=1, grace=dt.timedelta(seconds=-1))

    def test_a_graph_that_cannot_be_cleaned(self, graph: Graph, memory_store: Store) -> None:
        with pytest.raises(ReadOnlyGraph):
            connect(Store(graph.address), read_only=True).cleanup(keep=1, confirm=True)
        with pytest.raises(RequestError, match="memory"):
            create(memory_store).cleanup(keep=1)


class TestWhatIsNamed:
    def test_a_tag_keeps_its_state_and_no_other(self, graph: Graph, local_store: Store) -> None:
        commits = [commit.graph_commit_id for commit in graph.commits()]
        tagged, expected = commits[4], people(graph, at=commits[4])
        graph.tag("v1", at=tagged)
        for _ in range(2):
            graph.cleanup(keep=1, grace=NOW, confirm=True)
            left = connect(local_store)
            assert people(left, at="v1") == expected
            assert people(left, at=tagged) == expected
            assert left.diff("v1", "main").tables
            for other in (commits[3], commits[5]):
                with pytest.raises(HistoryReclaimed):
                    people(left, at=other)
        graph.delete_tag("v1")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        with pytest.raises(HistoryReclaimed):
            people(connect(local_store), at=tagged)

    def test_a_process_that_slept_at_a_tagged_state_wakes_up(self, graph: Graph, local_store: Store) -> None:
        """Its own version is kept but the one after it is not: that must not look like the end of the branch."""
        sleeper = connect(local_store)
        people(sleeper)
        graph.tag("v1")
        for name in ("Flo", "Gil", "Hal"):
            add(graph, name)
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        assert people(sleeper) == people(graph)
        add(sleeper, "Ida")
        assert people(connect(local_store)) == people(graph) == people(sleeper)
        assert "Ida" in names(graph)

    def test_what_a_reader_of_changes_missed_is_a_gap(self, graph: Graph) -> None:
        cursor = graph.changes().cursor
        for name in ("Flo", "Gil"):
            add(graph, name)
        newer = graph.changes().cursor
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        with pytest.raises(ChangeFeedGap):
            graph.changes(cursor=cursor)
        assert graph.changes(cursor=newer).caught_up
        add(graph, "Hal")
        assert len(graph.changes(cursor=newer).blocks) == 1


class TestBranches:
    def test_a_branch_keeps_what_it_was_forked_from(self, graph: Graph, local_store: Store) -> None:
        graph.create_branch("dev")
        forked = people(graph)
        add(graph, "Flo", branch="dev")
        for name in ("Gil", "Hal", "Ida"):
            add(graph, name)
        remove(graph, "Cy")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        left = connect(local_store)
        assert people(left, branch="dev") == forked | {("Flo", 1)}
        assert left.merge("dev").outcome == "merged"
        assert names(left) == {"Ada", "Di", "Ed", "Flo", "Gil", "Hal", "Ida"}

    def test_the_state_of_the_last_merge_stays(self, graph: Graph, local_store: Store) -> None:
        graph.create_branch("dev")
        add(graph, "Flo", branch="dev")
        graph.merge("dev")
        for branch in ("dev", "main"):
            for name in ("Gil", "Hal", "Ida"):
                add(graph, f"{name} of {branch}", branch=branch)
        remove(graph, "Flo", branch="dev")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        left = connect(local_store)
        left.merge("dev")
        assert "Flo" not in names(left), "what was merged before and removed since is not new"
        assert len(names(left)) == 4 + 6

    def test_siblings_that_left_a_table_at_different_versions(self, graph: Graph, local_store: Store) -> None:
        graph.create_branch("one")
        add(graph, "Flo", branch="one")
        add(graph, "Gil")
        graph.create_branch("two")
        add(graph, "Hal", branch="two")
        for name in ("Ida", "Jo"):
            add(graph, name)
        graph.cleanup(keep=0, grace=NOW, confirm=True)
        left = connect(local_store)
        assert left.merge("one", into="two").outcome == "merged"
        assert names(left, branch="two") == {"Ada", "Cy", "Di", "Ed", "Flo", "Gil", "Hal"}

    def test_an_untouched_branch_of_a_branch(self, graph: Graph, local_store: Store) -> None:
        graph.create_branch("one")
        add(graph, "Flo", branch="one")
        graph.create_branch("two", from_="one")
        for branch in ("main", "one"):
            for name in ("Gil", "Hal"):
                add(graph, f"{name} of {branch}", branch=branch)
        expected = names(graph, branch="two")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        left = connect(local_store)
        assert names(left, branch="two") == expected
        add(left, "Ida", branch="two")
        assert left.merge("two", into="one").outcome == "merged"
        assert names(left, branch="one") == expected | {"Gil of one", "Hal of one", "Ida"}

    def test_a_deleted_branch_leaves_nothing(self, graph: Graph, local_store: Store) -> None:
        graph.create_branch("dev")
        add(graph, "Flo", branch="dev")
        graph.delete_branch("dev")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        assert not [key for key in files(local_store) if "dev" in key]


def test_on_every_store(shared_store: Store) -> None:
    graph = create(shared_store)
    first = add(graph, "Ada")
    tagged = add(graph, "Bo")
    graph.tag("v1")
    graph.create_branch("dev")
    add(graph, "Cy", branch="dev")
    for name in ("Di", "Ed"):
        add(graph, name)
    remove(graph, "Ada")
    before = files(shared_store)
    done = graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert done.files_removed
    assert len(before - files(shared_store)) >= done.files_removed
    left = connect(shared_store)
    assert names(left) == {"Bo", "Di", "Ed"}
    assert names(left, branch="dev") == {"Ada", "Bo", "Cy"}
    assert names(left, at="v1") == names(left, at=tagged) == {"Ada", "Bo"}
    with pytest.raises(HistoryReclaimed, match="oldest"):
        names(left, at=first)
    left.merge("dev")
    assert names(left) == {"Bo", "Cy", "Di", "Ed"}
