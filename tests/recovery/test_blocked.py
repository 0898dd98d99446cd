"""Tables that somebody else moved: recovery stops, the guard stops writers, and both say what to do."""

from __future__ import annotations

import pytest
from tests.recovery.scenes import BEGINNING, WRITES, as_read, contents, found_city, new_graph, sidecars
from tests.recovery.test_faults import AFTERWARDS, kinds, merge
from tests.recovery.test_windows import fail_at, interrupt_at
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import OutcomeUnknown, RecoveryBlocked, StorageUnavailable, TableDrift
from omnigraph.storage.stage.changes import stage_append
from omnigraph.storage.tables import TableRef


def push(graph: Graph, ref: TableRef) -> None:
    """Move a table behind the graph's back."""
    handle = graph._repository.tables.open(ref)
    rows = handle.to_table().slice(0, 0)
    graph._repository.tables.commit_staged(stage_append(handle, ref.location, ref.branch, rows, "stranger"))


def push_people(graph: Graph) -> None:
    pin = graph.snapshot().tables["node:Person"]
    push(graph, TableRef(pin.location, pin.table_branch, pin.table_version))


def block(graph: Graph, branch: str) -> None:
    """A write dies, and a stranger moves its table."""
    fail_at("write.after_sidecar", graph, "merge", branch)
    (sidecar,) = sidecars(graph._repository)
    move = sidecar.moves[0]
    push(graph, TableRef(move.after.location, move.after.table_branch, move.before.table_version))


class TestBlockedRecoveries:
    @pytest.mark.parametrize(("blocked", "free"), [("main", "dev"), ("dev", "main")])
    def test_it_stops_its_own_branch_only(self, local_store: Store, blocked: str, free: str) -> None:
        graph = new_graph(local_store)
        block(graph, blocked)
        (pending,) = sidecars(graph._repository)
        for _ in range(2):
            with pytest.raises(RecoveryBlocked, match="node:Person was moved by somebody else") as caught:
                found_city(graph, blocked)
            assert caught.value.operation_id == pending.operation_id
        merge(graph, free)
        assert contents(graph, free) == AFTERWARDS
        with pytest.warns(RuntimeWarning, match=pending.operation_id):
            opened = omnigraph.open(local_store.uri)
        assert contents(opened, blocked) == as_read(local_store, blocked) == BEGINNING
        assert sidecars(graph._repository) == [pending]
        assert kinds(graph) == []

    def test_refreshing_heals_the_others_before_it_complains(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        block(graph, "dev")
        interrupt_at("write.after_tables", graph, "merge", "main")
        with pytest.raises(RecoveryBlocked):
            graph.refresh()
        assert contents(graph) == AFTERWARDS
        assert [sidecar.branch.name for sidecar in sidecars(graph._repository)] == ["dev"]


class TestDriftGuard:
    """A table is ahead of the manifest and no sidecar of its branch explains it."""

    def test_it_names_repair(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        push_people(graph)
        for write in WRITES.values():
            with pytest.raises(TableDrift, match="omnigraph repair") as caught:
                write.run(graph, "main")
            assert caught.value.table_key == "node:Person"
        assert contents(graph) == BEGINNING
        found_city(graph, "main")

    def test_a_sidecar_of_another_branch_explains_nothing(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        block(graph, "dev")
        push_people(graph)
        with pytest.raises(TableDrift, match="nothing of OmniGraph's did that; run `omnigraph repair`"):
            merge(graph)

    def test_it_says_that_it_cannot_tell(self, local_store: Store) -> None:
        """The store answers until the guard asks it for the sidecars."""
        graph = new_graph(local_store)
        push_people(graph)
        listings = []

        def refuse_the_third() -> None:
            listings.append(1)
            if len(listings) > 2:
                raise StorageUnavailable("sidecars", "the store says no")

        with (
            failpoints.armed("recovery.sidecar_list", refuse_the_third),
            pytest.raises(TableDrift, match=r"cannot be listed; retry .*, or run `omnigraph repair`"),
        ):
            merge(graph)

    def test_one_that_appears_during_the_write_is_left_to_recovery(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        with (
            failpoints.armed("write.after_sidecar", lambda: push_people(graph)),
            pytest.raises(OutcomeUnknown, match="node:Person was moved by somebody else") as caught,
        ):
            merge(graph)
        assert caught.value.graph_commit_id not in {commit.graph_commit_id for commit in graph.commits()}
        assert contents(graph) == BEGINNING
        with pytest.raises(RecoveryBlocked, match="node:Person was moved by somebody else"):
            merge(graph)
