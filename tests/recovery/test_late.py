"""Requests of dead writers that reach the store after recovery: fenced off, or recognised and put right."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from tests.faults.store import Rule, faulty_store
from tests.recovery.racers import once, with_short_leases
from tests.recovery.scenes import (
    BEGINNING,
    PERSON,
    WRITES,
    assert_settled,
    contents,
    found_city,
    new_graph,
    sidecars,
    with_city,
)
from tests.recovery.test_locks import take_lease_away
from tests.recovery.test_windows import Interrupted, fail_at
from tests.sampling import sampled
from tests.stores import S3Server, Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import (
    BranchNotFound,
    BranchOutcomeUnknown,
    LockLost,
    Outcome,
    TableMoved,
    TagOutcomeUnknown,
)
from omnigraph.manifest.state import ManifestState
from omnigraph.recovery.sidecar import Sidecar, TableMove
from omnigraph.storage.stage.changes import Staged, stage_append
from omnigraph.storage.tables import TableRef


def dead_writer(graph: Graph, branch: str = "main") -> Sidecar:
    """A writer that died when the request that moves its first table was on its way."""
    fail_at("write.after_sidecar", graph, "merge", branch)
    (sidecar,) = sidecars(graph._repository)
    return sidecar


def late_request(graph: Graph, move: TableMove) -> Staged:
    """What that writer had sent: the next version of a table, by its own transaction."""
    ref = TableRef(move.after.location, move.after.table_branch, move.before.table_version)
    handle = graph._repository.tables.open(ref)
    staged = stage_append(handle, ref.location, ref.branch, handle.to_table().slice(0, 1), "late")
    return replace(staged, transaction=replace(staged.transaction, uuid=move.transaction_ids[0]))


@pytest.mark.parametrize("branch", sampled(["main", "dev"], 1))
def test_on_an_object_store_recovery_takes_the_place_it_wants(s3_store: Store, branch: str) -> None:
    graph = new_graph(s3_store)
    sidecar = dead_writer(graph, branch)
    requests = [late_request(graph, move) for move in sidecar.moves]
    (recovery,) = graph.refresh()
    assert recovery.recovery_kind == "RolledBack"
    assert set(recovery.transaction_ids) == {move.transaction_ids[0] for move in sidecar.moves}
    for request in requests:
        with pytest.raises(TableMoved):
            graph._repository.tables.commit_staged(request)
    assert contents(graph, branch) == BEGINNING
    assert_settled(graph)
    for name in ("merge", "delete"):
        WRITES[name].run(graph, branch)
    assert_settled(graph)


def test_recovery_that_dies_after_it_took_the_place_is_repeated(s3_store: Store) -> None:
    graph = new_graph(s3_store)
    dead_writer(graph)

    def interrupt() -> None:
        raise Interrupted

    for _ in range(2):
        with failpoints.armed("recovery.after_fence", interrupt), pytest.raises(Interrupted):
            graph.refresh()
    graph.refresh()
    assert contents(graph) == BEGINNING
    assert [recovery.recovery_kind for recovery in graph.recoveries()] == ["RolledBack"]
    assert_settled(graph)


def test_one_that_arrives_while_recovery_takes_its_place(s3_store: Store) -> None:
    """The first table is fenced off when the request for the second arrives: it is undone with the rest."""
    graph = new_graph(s3_store)
    sidecar = dead_writer(graph)
    pending = [late_request(graph, move) for move in sidecar.moves[1:]]

    def arrive() -> None:
        while pending:
            graph._repository.tables.commit_staged(pending.pop())

    with failpoints.armed("recovery.after_fence", arrive):
        graph.refresh()
    assert contents(graph) == BEGINNING
    assert_settled(graph)
    WRITES["merge"].run(graph, "main")


@pytest.mark.parametrize(("name", "branch"), sampled(product(WRITES, ["main", "dev"]), 3))
def test_where_nothing_was_fenced_off_the_next_writer_recognises_it(
    local_store: Store, name: str, branch: str
) -> None:
    graph = new_graph(local_store)
    sidecar = dead_writer(graph, branch)
    requests = {move.table_key: late_request(graph, move) for move in sidecar.moves}
    graph.refresh()
    graph._repository.tables.commit_staged(requests[PERSON])
    assert contents(graph, branch) == BEGINNING
    WRITES[name].run(graph, branch)
    assert contents(graph, branch) == WRITES[name].effect(BEGINNING)
    assert [recovery.recovery_kind for recovery in graph.recoveries()] == ["RolledBack", "LateVersionUndone"]
    assert_settled(graph)


@pytest.mark.parametrize(
    "failpoint", sampled(["recovery.after_restore", "publish.after_commit", "recovery.after_publish"], 1)
)
def test_putting_it_right_can_be_repeated(local_store: Store, failpoint: str) -> None:
    graph = new_graph(local_store)
    sidecar = dead_writer(graph)
    requests = {move.table_key: late_request(graph, move) for move in sidecar.moves}
    graph.refresh()
    graph._repository.tables.commit_staged(requests[PERSON])

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        WRITES["merge"].run(graph, "main")
    assert contents(graph) == BEGINNING
    WRITES["merge"].run(graph, "main")
    found_city(graph, "main")
    assert contents(graph) == with_city(WRITES["merge"].effect(BEGINNING))
    assert_settled(graph)


def test_a_tag_that_is_created_again_is_not_deleted_by_a_late_request(s3_server: S3Server) -> None:
    """A request that was cut off is made again at once, so the tag is deleted when the first one arrives."""
    with faulty_store(s3_server) as faults:
        graph = new_graph(faults.store)
        graph.tag("v1")
        faults.arm(Rule("PUT", "_refs/tags/*", 1, "late"))
        graph.delete_tag("v1")
        faults.disarm()
        assert graph.tags() == []
        again = graph.tag("v1")
        assert faults.release() == 1
        assert graph.tags() == [again]


def test_if_the_store_answers_to_neither_request_it_is_not_known_whether_a_tag_was_deleted(
    s3_server: S3Server,
) -> None:
    with faulty_store(s3_server) as faults:
        graph = new_graph(faults.store)
        graph.tag("v1")
        faults.arm(Rule("PUT", "_refs/tags/*", 1, "late", sticky=True))
        with pytest.raises(TagOutcomeUnknown, match="tag list"):
            graph.delete_tag("v1")
        faults.disarm()
        assert [tag.name for tag in graph.tags()] == ["v1"]
        graph.delete_tag("v1")
        again = graph.tag("v1")
        assert faults.release() == 2
        assert graph.tags() == [again]


def test_a_branch_that_is_created_again_is_not_deleted_by_a_late_request(s3_server: S3Server) -> None:
    """The requests that delete the old one are cut off, the caller tries again, and then they arrive after all."""
    with faulty_store(s3_server) as faults:
        graph = new_graph(faults.store)
        faults.arm(Rule("PUT", "_refs/branches/*", 1, "late", sticky=True))
        with pytest.raises(BranchOutcomeUnknown, match="branch list"):
            graph.delete_branch("dev")
        faults.disarm()
        assert [branch.name for branch in graph.branches()] == ["main", "dev"]
        graph.delete_branch("dev")
        assert [branch.name for branch in graph.branches()] == ["main"]
        graph.create_branch("dev")
        WRITES["merge"].run(graph, "dev")
        assert faults.release() == 2
        assert [branch.name for branch in graph.branches()] == ["main", "dev"]
        assert contents(graph, "dev") == WRITES["merge"].effect(BEGINNING)


@pytest.mark.parametrize("what", sampled(["branch", "tag"], 1))
def test_a_ref_whose_creation_is_late_is_created_once(s3_server: S3Server, what: str) -> None:
    with faulty_store(s3_server) as faults:
        graph = new_graph(faults.store)
        faults.arm(Rule("PUT", "_refs/*/*", 1, "late"))
        made = graph.create_branch("new") if what == "branch" else graph.tag("new")
        faults.disarm()
        assert faults.release() == 1
        assert made in (*graph.branches(), *graph.tags())


def test_a_writer_that_lost_its_lock_does_not_take_the_next_one_for_a_stranger(s3_store: Store) -> None:
    """It stalls after it has read the manifest; another writer takes the lock, and moves the table meanwhile."""
    graph = with_short_leases(new_graph(s3_store), s3_store)
    other = with_short_leases(graph, s3_store)
    manifest = graph._repository.manifest
    latest = manifest.latest

    def be_overtaken(native: str | None) -> ManifestState:
        manifest.latest = latest  # type: ignore[method-assign]
        state = latest(native)
        take_lease_away(s3_store)
        WRITES["delete"].run(other, "main")
        return state

    def stall_soon() -> None:
        manifest.latest = be_overtaken  # type: ignore[method-assign]

    with failpoints.armed("write.after_lock", once(stall_soon)), pytest.raises(LockLost) as caught:
        WRITES["merge"].run(graph, "main")
    assert caught.value.outcome is Outcome.NOTHING_WRITTEN
    assert contents(graph) == WRITES["delete"].effect(BEGINNING)


def test_a_write_to_a_branch_that_was_deleted_since_it_was_found(local_store: Store) -> None:
    graph = new_graph(local_store)
    WRITES["merge"].run(graph, "dev")
    other = omnigraph.open(local_store.uri)
    found = graph._repository.branches.find("dev")
    other.delete_branch("dev")
    with pytest.raises(BranchNotFound, match="dev"):
        graph._repository.manifest.latest(found.native)
