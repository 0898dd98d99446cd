"""Publishing: one compare-and-swap that makes a change of many tables visible at once."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.manifest.support import (
    TRUNK,
    LostLock,
    interrupted,
    move,
    new_graph,
    publish,
    publish_unlocked,
    reopened,
)

from omnigraph.errors import HistoryReclaimed, LockLost, ManifestConflict, PublishContention
from omnigraph.manifest.publisher import COMMIT_TAIL, PUBLISHER_RETRY_BUDGET, Change, CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin, Tombstone
from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef

PERSON, CITY, KNOWS = "node:Person", "node:City", "edge:Knows"


@pytest.fixture
def graph(tmp_path: Path) -> Repository:
    return new_graph(tmp_path)


def version_files(graph: Repository) -> int:
    return sum(key.endswith(".manifest") for key in graph.objects.list(f"{layout.MANIFEST}/_versions"))


class TestWhatIsPublished:
    def test_a_change_of_many_tables_is_seen_whole(self, graph: Repository) -> None:
        before = graph.manifest.latest(None)
        after = publish(graph, PERSON, KNOWS, actor="bo")
        assert after.version == before.version + 1
        assert {
            key: pin.table_version - before.tables[key].table_version for key, pin in after.tables.items()
        } == {
            CITY: 0,
            KNOWS: 1,
            PERSON: 1,
        }
        assert reopened(graph).manifest.latest(None) == after

    def test_its_commit_is_published_with_it(self, graph: Repository) -> None:
        first = graph.manifest.latest(None).head
        state = publish(graph, PERSON, kind="mutation", actor="bo")
        assert state.head is not None
        assert first is not None
        assert state.head.parents == (first.graph_commit_id,)
        assert (state.head.manifest_version, state.head.branch) == (state.version, "main")
        assert (state.head.kind, state.head.actor_id) == ("mutation", "bo")

    def test_a_merge_has_its_other_parent_too(self, graph: Repository) -> None:
        first = graph.manifest.latest(None).head
        draft = CommitDraft("merge", merged_parents=("C1",))
        head = graph.manifest.publish(TRUNK, Change(), {}, draft).head
        assert first is not None
        assert head is not None
        assert head.parents == (first.graph_commit_id, "C1")

    def test_a_hidden_table_is_gone_and_the_versions_before_still_show_it(self, graph: Repository) -> None:
        before = graph.manifest.latest(None)
        gone = Tombstone(CITY, before.tables[CITY].location, before.tables[CITY].table_version)
        after = graph.manifest.publish(TRUNK, Change(tombstones=(gone,)), {}, CommitDraft("schema"))
        assert set(after.tables) == {PERSON, KNOWS}
        assert reopened(graph).manifest.latest(None) == after
        assert reopened(graph).manifest.at(None, before.version) == before

    def test_a_type_that_was_dropped_comes_back_in_another_place(self, graph: Repository) -> None:
        old = graph.manifest.latest(None).tables[CITY]
        gone = Tombstone(CITY, old.location, old.table_version)
        new = TablePin(CITY, layout.table_location(CITY, added_by="01A"), 1)
        graph.manifest.publish(TRUNK, Change({CITY: new}, (gone,)), {}, CommitDraft("schema"))
        assert reopened(graph).manifest.latest(None).tables[CITY] == new

    def test_every_older_state_stays_readable(self, graph: Repository) -> None:
        states = [graph.manifest.latest(None), *(publish(graph, PERSON) for _ in range(5))]
        fresh = reopened(graph).manifest
        assert [fresh.at(None, state.version) for state in states] == states


class TestExpectedVersions:
    def test_a_match_publishes(self, graph: Repository) -> None:
        change, expected = move(graph.manifest.latest(None), PERSON, CITY)
        graph.manifest.publish(TRUNK, change, expected, CommitDraft("load"))
        assert reopened(graph).manifest.latest(None).tables[PERSON].table_version == expected[PERSON] + 1

    def test_a_mismatch_says_which_table_and_publishes_nothing(self, graph: Repository) -> None:
        change, expected = move(graph.manifest.latest(None), PERSON, CITY)
        state = publish(graph, CITY)
        with pytest.raises(ManifestConflict) as caught:
            graph.manifest.publish(TRUNK, change, expected, CommitDraft("load"))
        conflict = caught.value
        assert (conflict.kind, conflict.table_key) == ("ExpectedVersionMismatch", CITY)
        assert (conflict.expected, conflict.actual) == (expected[CITY], expected[CITY] + 1)
        assert reopened(graph).manifest.latest(None) == state

    def test_a_table_that_is_not_there_is_at_version_zero(self, graph: Repository) -> None:
        with pytest.raises(ManifestConflict) as caught:
            graph.manifest.publish(TRUNK, Change(), {"node:Ghost": 3}, CommitDraft("load"))
        assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:Ghost", 3, 0)
        pin = TablePin("node:New", "nodes/new", 1)
        graph.manifest.publish(TRUNK, Change({"node:New": pin}), {"node:New": 0}, CommitDraft("schema"))
        with pytest.raises(ManifestConflict, match="node:New"):
            graph.manifest.publish(TRUNK, Change({"node:New": pin}), {"node:New": 0}, CommitDraft("schema"))

    def test_no_expectations_publish_over_whatever_is_there(self, graph: Repository) -> None:
        change, _ = move(graph.manifest.latest(None), PERSON)
        publish(graph, PERSON)
        publish(graph, PERSON)
        state = graph.manifest.publish(TRUNK, change, {}, CommitDraft("load"))
        assert state.tables[PERSON] == change.pins[PERSON]

    def test_writers_of_different_tables_do_not_fail_each_other(self, graph: Repository) -> None:
        """Both read the same state; the second publishes on top of the first."""
        other = reopened(graph)
        mine, theirs = move(graph.manifest.latest(None), PERSON), move(other.manifest.latest(None), CITY)
        graph.manifest.publish(TRUNK, *mine, CommitDraft("load"))
        state = other.manifest.publish(TRUNK, *theirs, CommitDraft("load"))
        assert state.tables[PERSON] == mine[0].pins[PERSON]
        assert state.tables[CITY] == theirs[0].pins[CITY]


class TestOwnCommit:
    """A recoverer may publish for a writer it took for dead, who then finds that the work is done."""

    def test_publishing_the_same_commit_again_is_a_success_without_a_second_one(self, graph: Repository) -> None:
        change, expected = move(graph.manifest.latest(None), PERSON)
        draft = CommitDraft("load")
        reopened(graph).manifest.publish(TRUNK, change, expected, draft)
        after = publish(graph, PERSON)
        assert graph.manifest.publish(TRUNK, change, expected, draft) == after
        ids = [commit.graph_commit_id for commit in reopened(graph).manifest.latest(None).commits]
        assert ids.count(draft.graph_commit_id) == 1

    def test_also_when_it_happens_between_looking_and_writing(self, graph: Repository) -> None:
        change, expected = move(graph.manifest.latest(None), PERSON)
        draft = CommitDraft("load")
        rescuer = reopened(graph)
        with interrupted(
            "publish.before_commit", lambda: rescuer.manifest.publish(TRUNK, change, expected, draft)
        ):
            state = graph.manifest.publish(TRUNK, change, expected, draft)
        assert state.head is not None
        assert state.head.graph_commit_id == draft.graph_commit_id
        assert (state.version, version_files(graph)) == (2, 2)


class TestLostRaces:
    def test_a_lost_race_is_run_again_on_the_new_state(self, graph: Repository) -> None:
        other = reopened(graph)
        with interrupted("publish.before_commit", lambda: publish_unlocked(other, CITY)):
            state = publish(graph, PERSON)
        assert [commit.manifest_version for commit in state.commits] == [1, 2, 3]
        assert {state.tables[PERSON].table_version, state.tables[CITY].table_version} == {2}

    def test_the_loser_checks_its_expectations_again(self, graph: Repository) -> None:
        other, change = reopened(graph), move(graph.manifest.latest(None), PERSON)
        with (
            interrupted("publish.before_commit", lambda: publish_unlocked(other, PERSON)),
            pytest.raises(ManifestConflict, match=PERSON),
        ):
            graph.manifest.publish(TRUNK, *change, CommitDraft("load"))
        assert reopened(graph).manifest.latest(None).version == 2

    def test_who_always_loses_gives_up_and_has_published_nothing(self, graph: Repository) -> None:
        other, draft = reopened(graph), CommitDraft("load")
        moved = move(graph.manifest.latest(None), PERSON)
        with (
            interrupted("publish.before_commit", lambda: publish_unlocked(other, CITY), times=99),
            pytest.raises(PublishContention) as caught,
        ):
            graph.manifest.publish(TRUNK, *moved, draft)
        assert caught.value.attempts == PUBLISHER_RETRY_BUDGET + 1
        state = reopened(graph).manifest.latest(None)
        assert state.version == 1 + caught.value.attempts
        assert state.tables[PERSON].table_version == 1
        assert draft.graph_commit_id not in {commit.graph_commit_id for commit in state.commits}


def test_a_writer_that_lost_its_lock_publishes_nothing(graph: Repository) -> None:
    before = version_files(graph)
    change = move(graph.manifest.latest(None), PERSON)
    with pytest.raises(LockLost):
        graph.manifest.publish(TRUNK, *change, CommitDraft("load"), LostLock())
    assert version_files(graph) == before


class TestLineage:
    def test_the_parents_are_one_chain(self, graph: Repository) -> None:
        for key in (PERSON, CITY, KNOWS) * 3:
            publish(graph, key)
        commits = reopened(graph).manifest.latest(None).commits
        assert [commit.manifest_version for commit in commits] == list(range(1, 11))
        assert [commit.parents for commit in commits] == [
            (),
            *((earlier.graph_commit_id,) for earlier in commits[:-1]),
        ]

    def test_the_manifest_keeps_a_bounded_tail_and_the_archive_the_rest(self, graph: Repository) -> None:
        published = [graph.manifest.latest(None).head, *(publish(graph, PERSON).head for _ in range(300))]
        kept = reopened(graph).manifest.latest(None).commits
        assert 0 < len(kept) <= COMMIT_TAIL
        archived = sorted(graph.manifest.archive.read().values(), key=lambda commit: commit.manifest_version)
        assert [*archived, *kept] == published

    def test_a_writer_that_loses_after_archiving_archives_again_and_readers_see_each_commit_once(
        self, graph: Repository
    ) -> None:
        while len(graph.manifest.latest(None).commits) < COMMIT_TAIL:
            publish(graph, PERSON)
        other = reopened(graph)
        with interrupted("publish.before_commit", lambda: publish_unlocked(other, CITY)):
            publish(graph, PERSON)
        archive = graph.manifest.archive.read()
        kept = {commit.graph_commit_id for commit in graph.manifest.latest(None).commits}
        stored = graph.tables.scan(TableRef(layout.COMMITS, None, graph.tables.newest(layout.COMMITS) or 0))
        assert stored.read_all().num_rows == 2 * len(archive)
        assert len(kept) + len(archive) == COMMIT_TAIL + 2
        assert kept.isdisjoint(archive)


_LIES = ["null", '"x"', "99", "0", "-9", "1e999"]


class TestFindingTheNewest:
    """A hint says where to start looking. It may lag, lie or be missing."""

    @pytest.mark.parametrize(
        "hint", [None, b"", b"{", b"[]", b"{}", b"\xff", *(f'{{"version": {v}}}'.encode() for v in _LIES)]
    )
    def test_a_useless_hint_costs_time_only(self, graph: Repository, hint: bytes | None) -> None:
        newest = [publish(graph, PERSON) for _ in range(3)][-1]
        if hint is None:
            graph.objects.delete(layout.head_hint(None))
        else:
            graph.objects.put(layout.head_hint(None), hint)
        assert reopened(graph, read_only=True).manifest.latest(None) == newest

    @pytest.mark.parametrize("behind", [1, 15, 16, 17, 40])
    def test_a_hint_may_lag(self, graph: Repository, behind: int) -> None:
        newest = [publish(graph, PERSON) for _ in range(41)][-1]
        graph.objects.put(layout.head_hint(None), json.dumps({"version": newest.version - behind}).encode())
        assert reopened(graph, read_only=True).manifest.latest(None) == newest

    @pytest.mark.parametrize("others", [1, 20])
    def test_a_reader_sees_what_others_published_since(self, graph: Repository, others: int) -> None:
        reader, writer = reopened(graph, read_only=True), reopened(graph)
        reader.manifest.latest(None)
        newest = [publish(writer, PERSON) for _ in range(others)][-1]
        assert reader.manifest.latest(None) == newest

    def test_a_reader_that_slept_through_a_cleanup_sees_the_newest(self, graph: Repository) -> None:
        """The versions between the one it knows and the newest are gone, and so is the one it knows."""
        reader, writer = reopened(graph, read_only=True), reopened(graph)
        reader.manifest.latest(None)
        newest = [publish(writer, PERSON) for _ in range(5)][-1]
        for version in range(1, newest.version):
            graph.objects.delete(layout.version_file(layout.MANIFEST, None, version))
        assert reader.manifest.latest(None) == newest

    def test_a_hint_that_cannot_be_written_does_not_fail_the_publish(self, graph: Repository) -> None:
        hint = Path(graph.address.root) / layout.head_hint(None)
        hint.unlink()
        hint.mkdir()
        (hint / "in the way").touch()
        state = publish(graph, PERSON)
        assert reopened(graph).manifest.latest(None) == state

    def test_a_manifest_that_vanished_is_reported(self, graph: Repository) -> None:
        shutil.rmtree(Path(graph.address.root) / layout.MANIFEST)
        with pytest.raises(HistoryReclaimed):
            graph.manifest.latest(None)


def test_pins_outlive_the_process_that_published_them(graph: Repository) -> None:
    pin = graph.manifest.latest(None).tables[PERSON]
    moved = replace(pin, table_version=7, table_branch="dev.01", row_count=2**40)
    graph.manifest.publish(TRUNK, Change({PERSON: moved}), {}, CommitDraft("load"))
    assert reopened(graph).manifest.latest(None).tables[PERSON] == moved
