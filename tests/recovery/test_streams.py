"""Micro-batches of streams: each is written once, in its turn, whoever writes it and wherever he dies."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.faults.store import Rule, faulty_store
from tests.recovery.racers import errors, meeting, once, together, with_short_leases
from tests.recovery.scenes import KNOWS, PERSON, assert_settled, contents, edge, new_graph, person, sidecars
from tests.recovery.test_locks import take_lease_away
from tests.recovery.test_windows import OUTCOMES, Interrupted
from tests.sampling import sampled
from tests.stores import S3Server, Store, present

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.load.small import prepare_load
from omnigraph.bulk.load.sources.held import held_records
from omnigraph.errors import (
    BatchDone,
    BatchOutcomeUnknown,
    LockLost,
    Outcome,
    RequestError,
    StorageUnavailable,
    StreamOutOfStep,
)
from omnigraph.manifest.publisher import COMMIT_TAIL, BranchName, Change, CommitDraft
from omnigraph.manifest.state import MANIFEST_SCHEMA, Commit, decode, encode
from omnigraph.manifest.streams import Batch, StreamMark, check_stream_name
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write

Records = list[dict[str, Any]]


def rows(number: int) -> Records:
    """The rows of a batch: a person that is in no other, and an edge without a key, which twice would be two."""
    return [person(f"p{number}", number), edge("Knows", f"p{number}", "Ada")]


def write(graph: Graph, batch: Batch, records: Records, branch: str = "main") -> Commit | None:
    """Write a micro-batch as a stream does."""
    repository = graph._repository
    held = held_records(records, graph.catalog)
    parts = [(held.name, map(held.read, held.chunks()))]
    delta = prepare_load(parts, LoadOptions(Mode.MERGE, "main"), None).delta
    request = WriteRequest("load", repository.branches.find(branch), batch=batch)
    return commit_write(repository, request, lambda _: Prepared(delta, None, repeatable=True)).commit


def run(graph: Graph, numbers: list[int], stream: str = "s", branch: str = "main") -> list[int]:
    """Write batches; those that were done already."""
    done = []
    for number in numbers:
        try:
            write(graph, Batch(stream, number, f"query of {stream}"), rows(number), branch)
        except BatchDone:
            done.append(number)
    return done


def marks(graph: Graph, branch: str = "main") -> dict[str, int]:
    native = graph._repository.branches.find(branch).native
    return {name: mark.batch.number for name, mark in graph._repository.manifest.latest(native).streams.items()}


def written(graph: Graph, branch: str = "main") -> list[int]:
    """The batches whose rows are there, each as often as it is."""
    found = contents(graph, branch)
    people = sorted(age for name, age in found[PERSON] if name.startswith("p"))
    assert people == sorted(int(source[1:]) for source, _ in found[KNOWS] if source.startswith("p"))
    return people


def test_batches_are_written_once_and_in_order(store: Store) -> None:
    graph = new_graph(store)
    assert run(graph, [0, 1, 0, 1, 2]) == [0, 1]
    assert (written(graph), marks(graph)) == ([0, 1, 2], {"s": 2})
    (head, *_) = graph.commits()
    mark = graph._repository.manifest.latest(None).streams["s"]
    assert mark == StreamMark(Batch("s", 2, "query of s"), None, head.graph_commit_id)
    assert_settled(graph)


@pytest.mark.parametrize("failpoint", sampled(OUTCOMES, 4))
def test_a_batch_that_dies_anywhere_is_there_once(local_store: Store, failpoint: str) -> None:
    graph = new_graph(local_store)
    run(graph, [0])

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        run(graph, [1])
    again = omnigraph.open(local_store.uri)
    assert run(again, [1, 2, 2]) == ([2] if OUTCOMES[failpoint] in ("nothing", "RolledBack") else [1, 2])
    assert (written(again), marks(again)) == ([0, 1, 2], {"s": 2})
    assert_settled(again)


def test_a_dead_writers_batch_is_finished_before_it_is_asked_for(local_store: Store) -> None:
    """Nobody has opened the graph anew: the replay itself finds the sidecar, and what it brings counts."""
    graph = new_graph(local_store)

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("write.after_tables", interrupt), pytest.raises(Interrupted):
        run(graph, [0])
    (sidecar,) = sidecars(graph._repository)
    assert sidecar.draft.batch == Batch("s", 0, "query of s")
    assert run(graph, [0]) == [0]
    assert (written(graph), [r.recovery_kind for r in graph.recoveries()]) == ([0], ["RolledForward"])


def test_a_sidecar_from_before_there_were_streams(local_store: Store) -> None:
    graph = new_graph(local_store)
    objects = graph._repository.objects

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("write.after_tables", interrupt), pytest.raises(Interrupted):
        graph.load(rows(0), mode="merge")
    (sidecar,) = sidecars(graph._repository)
    stored = json.loads(present(objects, sidecar.key).content)
    del stored["checksum"]
    assert stored["commit"].pop("batch") is None
    objects.put(sidecar.key, json.dumps(stored).encode())
    assert [recovery.recovery_kind for recovery in graph.refresh()] == ["RolledForward"]
    assert (written(graph), marks(graph)) == ([0], {})


def test_of_two_drivers_one_commits(shared_store: Store) -> None:
    """Both have staged the same batch before either commits."""
    graphs = [new_graph(shared_store), omnigraph.open(shared_store.uri, storage_options=shared_store.options)]
    with failpoints.armed("write.after_stage", meeting(2)):
        results = together(lambda index: write(graphs[index], Batch("s", 0, "q"), rows(0)), [0, 1])
    (lost,) = errors(results)
    assert isinstance(lost, BatchDone)
    assert (written(graphs[0]), written(graphs[1])) == ([0], [0])


def test_the_mark_is_looked_at_under_the_lock(local_store: Store) -> None:
    """The other driver's batch changes no table that this one reads, so that only its mark is in the way."""
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    city = [{"type": "City", "data": {"name": "Rome"}}]
    with (
        failpoints.armed("write.after_stage", once(lambda: write(other, Batch("s", 0, "q"), city))),
        pytest.raises(BatchDone),
    ):
        write(graph, Batch("s", 0, "q"), rows(0))
    assert written(graph) == []


def test_streams_and_other_writers_share_a_branch(local_store: Store) -> None:
    graph = new_graph(local_store)
    for number in range(3):
        assert run(graph, [number], "a") == []
        graph.load([person(f"other {number}")], mode="merge")
        assert run(graph, [number], "b") == []
    assert run(graph, [0, 1, 2], "a") == [0, 1, 2]
    assert marks(graph) == {"a": 2, "b": 2}
    assert len(contents(graph)[PERSON]) == 2 + 3 + 3


def test_an_empty_batch_is_done_without_a_commit(local_store: Store) -> None:
    graph = new_graph(local_store)
    run(graph, [0])
    before = graph.snapshot()
    assert write(graph, Batch("s", 1, "query of s"), []) is None
    after = graph.snapshot()
    assert (after.commit, after.tables) == (before.commit, before.tables)
    assert after.manifest_version == before.manifest_version + 1
    assert graph.snapshot(at=after.manifest_version).commit == before.commit
    with pytest.raises(BatchDone):
        write(graph, Batch("s", 1, "query of s"), [])
    mark = graph._repository.manifest.latest(None).streams["s"]
    assert before.commit is not None
    assert (mark.batch.number, mark.graph_commit_id) == (1, before.commit.graph_commit_id)
    assert run(graph, [2]) == []
    assert [commit.graph_commit_id for commit in graph.commits()][1] == before.commit.graph_commit_id


@pytest.mark.parametrize(("failpoint", "done"), [("publish.before_commit", False), ("publish.after_commit", True)])
def test_an_empty_batch_that_dies(local_store: Store, failpoint: str, done: bool) -> None:
    graph = new_graph(local_store)

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        write(graph, Batch("s", 0), [])
    again = omnigraph.open(local_store.uri)
    assert marks(again) == ({"s": 0} if done else {})
    if not done:
        assert write(again, Batch("s", 0), []) is None
    assert run(again, [1]) == []


class TestAnEmptyBatchWhoseReplyIsLost:
    """Its mark is all there is to write, so the mark says what became of it."""

    def test_a_mark_that_was_written_counts_although_the_store_reported_an_error(self, store: Store) -> None:
        graph = new_graph(store)

        def refuse() -> None:
            raise StorageUnavailable(store.uri, "no answer")

        with failpoints.armed("publish.after_commit", refuse):
            assert write(graph, Batch("s", 0), []) is None
        assert marks(graph) == {"s": 0}
        assert run(graph, [1]) == []

    def test_the_mark_is_found(self, s3_server: S3Server) -> None:
        with faulty_store(s3_server) as faults:
            graph = new_graph(faults.store)
            version = graph.snapshot().manifest_version
            faults.arm(Rule("PUT", "__manifest/_versions/*", 1, "lost"))
            assert write(graph, Batch("s", 0), []) is None
            assert faults.disarm() == [1]
            assert (marks(graph), graph.snapshot().manifest_version) == ({"s": 0}, version + 1)
            with pytest.raises(BatchDone):
                write(graph, Batch("s", 0), [])

    def test_the_mark_is_on_its_way(self, s3_server: S3Server) -> None:
        """A retry is safe, whichever of the two requests arrives first."""
        with faulty_store(s3_server) as faults:
            graph = new_graph(faults.store)
            faults.arm(Rule("PUT", "__manifest/_versions/*", 1, "late"))
            with pytest.raises(BatchOutcomeUnknown, match="write the batch again") as caught:
                write(graph, Batch("s", 0), [])
            unknown = caught.value
            assert unknown.outcome is Outcome.UNKNOWN
            assert (unknown.stream, unknown.branch, unknown.batch) == ("s", "main", 0)
            faults.disarm()
            assert marks(graph) == {}
            assert write(graph, Batch("s", 0), []) is None
            assert faults.release() == 1
            assert marks(graph) == {"s": 0}
            assert run(graph, [1]) == []

    def test_the_store_does_not_answer(self, s3_server: S3Server) -> None:
        graph = new_graph(store := s3_server.moody_store())

        def go_silent() -> None:
            s3_server.lose_patience(0)
            raise StorageUnavailable(store.uri, "no answer")

        try:
            with (
                failpoints.armed("publish.after_commit", go_silent),
                pytest.raises(BatchOutcomeUnknown, match="no answer"),
            ):
                write(graph, Batch("s", 0), [])
        finally:
            s3_server.lose_patience(float("inf"))
        assert run(omnigraph.open(store.uri, storage_options=store.options), [0]) == [0]

    def test_on_a_disk_a_mark_that_is_not_there_was_not_written(self, local_store: Store) -> None:
        graph = new_graph(local_store)

        def refuse() -> None:
            raise StorageUnavailable("the disk", "it is full")

        with (
            failpoints.armed("publish.before_commit", refuse),
            pytest.raises(StorageUnavailable, match="it is full") as caught,
        ):
            write(graph, Batch("s", 0), [])
        assert (caught.value.outcome, marks(graph)) == (Outcome.NOTHING_WRITTEN, {})

    def test_a_writer_that_lost_its_lock_wrote_nothing(self, s3_store: Store) -> None:
        graph = with_short_leases(new_graph(s3_store), s3_store)
        with (
            failpoints.armed("recovery.sidecar_list", lambda: take_lease_away(s3_store)),
            pytest.raises(LockLost) as caught,
        ):
            write(graph, Batch("s", 0), [])
        assert (caught.value.outcome, marks(graph)) == (Outcome.NOTHING_WRITTEN, {})


def test_a_batch_is_known_when_its_commit_left_the_manifest(local_store: Store) -> None:
    graph = new_graph(local_store)
    run(graph, [0])
    manifest = graph._repository.manifest
    for _ in range(COMMIT_TAIL + 8):
        manifest.publish(BranchName("main", None), Change(), {}, CommitDraft("load"))
    mark = manifest.latest(None).streams["s"]
    assert mark.graph_commit_id not in {commit.graph_commit_id for commit in manifest.latest(None).commits}
    assert run(omnigraph.open(local_store.uri), [0, 1]) == [0]


def test_a_branch_has_marks_of_its_own(local_store: Store) -> None:
    """What a fork inherits are rows; a branch that is created again begins again."""
    graph = new_graph(local_store)
    run(graph, [0])
    graph.create_branch("copy")
    assert run(graph, [0, 1], branch="dev") == []
    assert run(graph, [1]) == []
    assert (marks(graph), marks(graph, "dev")) == ({"s": 1}, {"s": 1})
    with pytest.raises(StreamOutOfStep, match="it has none of those before"):
        run(graph, [1], branch="copy")
    graph.delete_branch("dev")
    graph.create_branch("dev")
    assert run(graph, [2], branch="main") == []
    assert marks(graph, "dev") == {"s": 1}, "inherited, and not its own"
    with pytest.raises(StreamOutOfStep):
        run(graph, [2], branch="dev")
    write(graph, Batch("s", 0, "new"), [person("new")], "dev")
    assert marks(graph, "dev") == {"s": 0}
    assert marks(graph) == {"s": 2}


def test_what_does_not_come_next_is_refused(local_store: Store) -> None:
    graph = new_graph(local_store)
    run(graph, [0, 1])
    before = graph.snapshot()
    with pytest.raises(StreamOutOfStep, match="up to 1, so rows would be missing"):
        run(graph, [3])
    for number in (0, 1, 2):
        with pytest.raises(StreamOutOfStep, match="another checkpoint, that of query query of s, and"):
            write(graph, Batch("s", number, "another query"), rows(9))
    assert write(graph, Batch("s", 2, None), rows(2)) is not None, "who numbers it is not known, which may be so"
    assert graph.commits()[1] == before.commit


def test_marks_are_rows_of_the_manifest(local_store: Store) -> None:
    graph = new_graph(local_store)
    run(graph, [0], stream="a/ü'b")
    state = graph._repository.manifest.latest(None)
    table = encode(state, "main")
    assert decode(table, state.version) == state
    rows = table.filter(pc.not_equal(table["object_type"], "stream"))
    older = pa.Table.from_arrays(rows.columns, schema=MANIFEST_SCHEMA)
    assert decode(older, state.version).streams == {}


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "x" * 129])
def test_names_that_no_stream_has(name: str) -> None:
    with pytest.raises(RequestError, match="a stream is named by"):
        check_stream_name(name)
