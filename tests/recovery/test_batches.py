"""Writes of several threads that one of them commits in a row: each is a commit of its own, whole or not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.faults.store import Rule, faulty_store
from tests.processes import see_killed
from tests.recovery.lines import INSERT, in_line, insert_and_die, insert_behind, insert_in_line
from tests.recovery.racers import errors, once
from tests.recovery.scenes import PERSON, assert_settled, contents, new_graph, sidecars
from tests.recovery.victims import connect
from tests.sampling import sampled
from tests.stores import S3Server, Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ConstraintViolation, OmniError, SidecarUnreadable, StorageUnavailable
from omnigraph.recovery.classify import Decision, Movement, classify, decide, ref_before
from omnigraph.recovery.sidecar import list_sidecars, read_sidecars
from omnigraph.write.committing.batches import MOST_TOGETHER

NAMES = [f"p{number}" for number in range(5)]


def people(graph: Graph, branch: str = "main") -> set[str]:
    return {row[0] for row in contents(graph, branch)[PERSON]} - {"Ada", "Bo"}


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_each_is_a_commit_of_its_own(store: Store, branch: str) -> None:
    graph = new_graph(store)
    graph.mutate(INSERT, {"n": "first"}, branch=branch)
    before = graph.snapshot(branch).manifest_version
    made = [result.commit for result in insert_in_line(graph, NAMES, branch)]
    assert sorted(commit.manifest_version for commit in made) == [before + 1 + number for number in range(5)]
    for commit in made:
        found = graph.snapshot(at=commit.graph_commit_id).tables[PERSON].row_count
        assert found == 3 + commit.manifest_version - before
    assert people(graph, branch) == {"first", *NAMES}
    assert_settled(graph)


def test_on_a_disk_all_states_are_written_before_the_first_table_moves(local_store: Store) -> None:
    graph = new_graph(local_store)
    graph.mutate(INSERT, {"n": "first"})
    files = Path(local_store.uri, "__manifest/data")
    seen: list[int] = []
    with failpoints.armed("write.between_writes", lambda: seen.append(len(list(files.iterdir())))):
        insert_in_line(graph, NAMES)
    assert seen == [len(list(files.iterdir()))] * 4
    again = connect(local_store)
    assert people(again) == {"first", *NAMES}
    pin = again.snapshot().tables[PERSON]
    assert pin.checksum == again._repository.tables.version_checksum(pin.ref)


def test_they_share_the_lock_and_the_looks(s3_server: S3Server) -> None:
    with faulty_store(s3_server) as place:
        graph = new_graph(place.store)
        graph.mutate(INSERT, {"n": "first"})
        place.forget()
        insert_in_line(graph, NAMES)
        requests = place.journal()
    taken = [
        request for request in requests if request.key.startswith("__locks/branch") and request.method == "PUT"
    ]
    looks = [request for request in requests if request.method == "LIST"]
    assert len(taken) == 2
    assert len(looks) == 1 + len(NAMES)
    assert people(graph) == {"first", *NAMES}


def test_one_that_is_against_the_rules_by_then_is_refused_alone(local_store: Store) -> None:
    """Two of them give the same mail: whichever comes second is prepared again, and refused."""
    graph = omnigraph.init(local_store.uri, "node Person { name: String @key  mail: String? @unique }")
    text = "query q($n: String, $m: String) { insert Person { name: $n, mail: $m } }"
    mails = {"a": "x", "b": "y", "c": "x"}
    results = in_line(graph, lambda name: graph.mutate(text, {"n": name, "m": mails[name]}), list(mails))
    (error,) = errors(results)
    assert isinstance(error, ConstraintViolation)
    assert graph.snapshot().tables[PERSON].row_count == 2
    assert_settled(graph)


def test_the_same_row_twice_is_written_twice(local_store: Store) -> None:
    """They change the same row, so they cannot be moved onto each other and are prepared one after the other."""
    graph = new_graph(local_store)
    results = insert_in_line(graph, ["twin", "twin", "other"])
    assert len({result.commit.graph_commit_id for result in results}) == 3
    assert people(graph) == {"twin", "other"}
    assert_settled(graph)


def test_files_are_not_folded_behind_a_write_that_takes_rows_from_them(local_store: Store) -> None:
    """The thread that commits for all replaces Ada, whose old row lies in one of eight small files."""
    graph = new_graph(local_store)
    early = [f"early{number}" for number in range(7)]
    for name in early:
        graph.mutate(INSERT, {"n": name})
    insert_behind(graph, "Ada", NAMES)
    assert [row[0] for row in contents(graph)[PERSON]] == sorted({"Ada", "Bo", *NAMES, *early})
    assert_settled(graph)


def test_rows_fold_the_files_that_writes_leave(local_store: Store) -> None:
    """However many rows of commits there are, a table has few files, and each commit can be read."""
    graph = new_graph(local_store)
    names = [[f"{turn}-{number}" for number in range(6)] for turn in range(12)]
    with graph._repository.locks.arriving("main"):
        for each in names:
            insert_in_line(graph, each)
    assert people(graph) == {name for each in names for name in each}
    handle = graph._repository.tables.open(graph.snapshot().tables[PERSON].ref)
    assert len(handle.fragment_ids()) < 24
    for commit in graph.commits(limit=40):
        assert graph.snapshot(at=commit.graph_commit_id).manifest_version == commit.manifest_version
    assert_settled(graph)


@pytest.mark.parametrize(
    ("threads", "turns"),
    [
        pytest.param(11, 5, id="rows that fit into the manifest several times"),
        pytest.param(MOST_TOGETHER, 3, id="rows that fill the manifest"),
    ],
)
def test_rows_go_on_where_the_manifest_has_no_room_for_more_commits(
    local_store: Store, threads: int, turns: int
) -> None:
    """Older commits are archived before a row, so that none of its writes has to be prepared again."""
    graph = new_graph(local_store)
    prepared: list[None] = []
    with failpoints.armed("write.after_stage", lambda: prepared.append(None)):
        for turn in range(turns):
            insert_in_line(graph, [f"{turn}-{number}" for number in range(threads)])
    assert len(prepared) == threads * turns
    commits = graph.commits(limit=200)
    assert [commit.kind for commit in commits].count("mutation") == threads * turns
    assert all(commit.parents == (before.graph_commit_id,) for commit, before in pairwise(commits))
    assert_settled(graph)


def test_nothing_is_left_of_versions_that_did_not_get_their_turn(local_store: Store) -> None:
    """Their files are written before, and removed when a write in front of them fails."""
    graph = new_graph(local_store)
    graph.mutate(INSERT, {"n": "first"})
    with failpoints.armed("write.between_writes", once(_refuse)):
        insert_in_line(graph, NAMES)
    assert not [path for path in Path(local_store.uri).rglob("*") if "#" in path.name]
    assert len(people(graph)) == 5
    assert_settled(graph)


def _refuse() -> None:
    raise StorageUnavailable("the store", "it is gone")


KILLED = {
    "recovery.sidecar_write": 0,
    "write.after_sidecar": 0,
    "write.after_tables": 1,
    "publish.before_commit": 1,
    "publish.after_commit": 1,
    "write.after_publish": 1,
    "write.between_writes": 1,
}
"""Where a process is killed that commits several writes in a row, and how many of them there are afterwards."""


@pytest.mark.parametrize(("failpoint", "whole"), sampled(KILLED.items(), 4))
@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_kill_leaves_whole_writes(local_store: Store, failpoint: str, whole: int, branch: str) -> None:
    check_killed(local_store, failpoint, whole, branch)


@pytest.mark.long
@pytest.mark.parametrize(("failpoint", "whole"), KILLED.items())
def test_a_kill_leaves_whole_writes_on_an_object_store(s3_store: Store, failpoint: str, whole: int) -> None:
    check_killed(s3_store, failpoint, whole, "main")


def check_killed(store: Store, failpoint: str, whole: int, branch: str) -> None:
    new_graph(store)
    see_killed(failpoint, insert_and_die, store, NAMES, branch)
    killed = connect(store)._repository
    pending, objects = len(sidecars(killed)), len(list_sidecars(killed.objects))
    graph = omnigraph.open(store.uri, storage_options=store.options)
    assert len(people(graph, branch)) == whole
    assert len(graph._repository.manifest.latest(None).commits) >= whole
    assert_settled(graph)
    assert (pending, objects) == ((0, 0) if failpoint == "recovery.sidecar_write" else (len(NAMES), 1))
    insert_in_line(graph, ["q1", "q2"], branch)
    assert people(graph, branch) >= {"q1", "q2"}
    assert len(people(graph, branch)) == whole + 2
    assert graph.doctor().is_healthy


def test_a_write_that_fails_takes_none_along(local_store: Store) -> None:
    """The one in the middle is undone and says why; those behind it are prepared again."""
    graph = new_graph(local_store)
    left = [StorageUnavailable("the store", "it is gone")]

    def fail() -> None:
        if left:
            raise left.pop()

    with failpoints.armed("write.between_writes", fail):
        results = insert_in_line(graph, NAMES)
    (error,) = errors(results)
    assert isinstance(error, StorageUnavailable)
    assert len(people(graph)) == 4
    assert_settled(graph)
    assert len(graph.recoveries()) == 1, "only the write that failed was recovered"


def test_sidecars_that_cannot_be_written_fail_one_write_only(s3_server: S3Server) -> None:
    """The thread that wrote them is told; the others have moved nothing and are prepared again."""
    with faulty_store(s3_server) as place:
        graph = new_graph(place.store)
        place.forget()
        graph.mutate(INSERT, {"n": "first"})
        place.arm(Rule("PUT", "__recovery/*.json", 1, "refuse"))
        results = insert_in_line(graph, NAMES)
        assert place.disarm() == [1]
    assert len(people(graph)) == 1 + len([result for result in results if not isinstance(result, OmniError)])
    assert len(errors(results)) <= 1
    assert_settled(graph)


@pytest.mark.parametrize("failpoint", ["recovery.after_audit", "recovery.sidecar_delete"])
def test_a_recovery_that_dies_between_two_writes_of_a_row_is_repeated(local_store: Store, failpoint: str) -> None:
    """Each write that is resolved is taken out of the object of the row; the next recovery goes on behind it."""
    new_graph(local_store)
    see_killed("write.after_tables", insert_and_die, local_store, NAMES, "main")
    left: list[int] = []
    for resolved in range(len(NAMES)):
        graph = connect(local_store)
        with failpoints.armed(failpoint, _die_at(2)), pytest.raises(KeyboardInterrupt):
            graph.refresh()
        left.append(len(sidecars(graph._repository)))
        if left[-1] == 1:
            break
        assert left[-1] == len(NAMES) - 1 - resolved
    graph = omnigraph.open(local_store.uri)
    assert len(people(graph)) == 1
    assert_settled(graph)
    assert len(graph.recoveries()) == len(NAMES)


def test_the_object_of_a_row_is_whole_or_refused(local_store: Store) -> None:
    new_graph(local_store)
    see_killed("write.after_sidecar", insert_and_die, local_store, NAMES, "main")
    objects = connect(local_store)._repository.objects
    (key,) = list_sidecars(objects)
    content = Path(local_store.uri, key).read_bytes()
    moved = key.replace(key[-8:-5], "000")
    Path(local_store.uri, moved).write_bytes(content)
    with pytest.raises(SidecarUnreadable, match="another write's"):
        read_sidecars(objects, moved)
    Path(local_store.uri, key).write_bytes(content.replace(b"mutation", b"mutatiom", 1))
    with pytest.raises(SidecarUnreadable, match="damaged"):
        read_sidecars(objects, key)


def test_a_write_that_was_to_follow_an_undone_one_is_undone(local_store: Store) -> None:
    graph = new_graph(local_store)
    repository = graph._repository
    with failpoints.armed("write.after_sidecar", _die), pytest.raises(KeyboardInterrupt):
        graph.mutate(INSERT, {"n": "dead"})
    (sidecar,) = sidecars(repository)
    (move,) = sidecar.moves
    before, after = (replace(pin, table_version=pin.table_version + 1) for pin in (move.before, move.after))
    later = replace(move, before=before, after=after)
    pin = graph.snapshot().tables[PERSON]
    assert not repository.tables.exists(ref_before(later))
    assert classify(later, "another", pin, repository.tables) is Movement.NOT_REACHED
    assert decide({PERSON: Movement.NOT_REACHED}) is Decision.ROLL_BACK
    assert decide({PERSON: Movement.NOT_REACHED, "node:City": Movement.NO_MOVEMENT}) is Decision.ROLL_BACK


def _die() -> None:
    raise KeyboardInterrupt


def _die_at(time: int) -> Callable[[], None]:
    """Dies when it is called for so many times."""
    calls = iter([*[False] * (time - 1), True])

    def hit() -> None:
        if next(calls, False):
            raise KeyboardInterrupt

    return hit
