"""When the store misbehaves, or somebody damages what lies there: loud for writers, never in readers' way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as command
from tests.recovery.scenes import (
    BEGINNING,
    WRITES,
    as_read,
    assert_settled,
    contents,
    found_city,
    history,
    new_graph,
    sidecars,
    with_city,
)
from tests.recovery.test_windows import fail_at
from tests.stores import Store, present

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import Outcome, OutcomeUnknown, SnapshotNotFound, StorageUnavailable
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage import layout

AFTERWARDS = WRITES["merge"].effect(BEGINNING)
ENDS = [("write.between_tables", "RolledBack", BEGINNING), ("write.after_tables", "RolledForward", AFTERWARDS)]


@contextmanager
def refusing(failpoint: str) -> Iterator[None]:
    """The store refuses whatever happens at a failpoint."""

    def refuse() -> None:
        raise StorageUnavailable(failpoint, "the store says no")

    with failpoints.armed(failpoint, refuse):
        yield


def merge(graph: Graph, branch: str = "main") -> None:
    WRITES["merge"].run(graph, branch)


def kinds(graph: Graph) -> list[str]:
    return [recovery.recovery_kind for recovery in graph.recoveries()]


class TestSidecarFaults:
    @pytest.mark.parametrize("name", WRITES)
    def test_one_that_cannot_be_written(self, store: Store, name: str) -> None:
        """The write fails and nothing has happened; when the store is back, it works."""
        graph = new_graph(store)
        with refusing("recovery.sidecar_write"), pytest.raises(StorageUnavailable):
            WRITES[name].run(graph, "main")
        assert contents(graph) == BEGINNING
        assert_settled(graph)
        WRITES[name].run(graph, "main")
        assert contents(graph) == WRITES[name].effect(BEGINNING)
        assert kinds(graph) == []

    def test_one_that_cannot_be_deleted(self, store: Store) -> None:
        """The write succeeded; the next one consumes the sidecar."""
        graph = new_graph(store)
        with refusing("recovery.sidecar_delete"), pytest.warns(RuntimeWarning, match="the write succeeded"):
            merge(graph)
        assert contents(graph) == AFTERWARDS
        assert len(sidecars(graph._repository)) == 1
        found_city(graph, "main")
        assert contents(graph) == with_city(AFTERWARDS)
        assert kinds(graph) == ["RolledForward"]
        assert_settled(graph)

    def test_none_can_be_listed(self, local_store: Store) -> None:
        """Writes and read-write opens fail loudly, because they cannot know what is pending. Reads work."""
        graph = new_graph(local_store)
        fail_at("write.after_tables", graph, "merge", "main")
        with refusing("recovery.sidecar_list"):
            for attempt in (lambda: merge(graph), graph.refresh, lambda: omnigraph.open(local_store.uri)):
                with pytest.raises(StorageUnavailable):
                    attempt()
            assert as_read(local_store) == contents(graph) == BEGINNING
        omnigraph.open(local_store.uri)
        assert contents(graph) == AFTERWARDS
        assert kinds(graph) == ["RolledForward"]

    def test_they_have_no_place(self, local_store: Store) -> None:
        """Something else lies where sidecars go, so none can be written."""
        graph = new_graph(local_store)
        place = Path(local_store.uri, layout.SIDECARS)
        shutil.rmtree(place)
        place.write_text("not a folder")
        with pytest.raises(StorageUnavailable):
            merge(graph)
        assert as_read(local_store) == BEGINNING
        place.unlink()
        merge(graph)
        assert contents(graph) == AFTERWARDS
        assert_settled(graph)


class TestAuditFaults:
    @pytest.mark.parametrize(("died", "kind", "left"), ENDS)
    @pytest.mark.parametrize("fault", ["recovery.record_audit", "recovery.after_audit", "recovery.sidecar_delete"])
    def test_the_recovery_fails_and_repeated_adds_one_row(
        self, local_store: Store, died: str, kind: str, left: Any, fault: str
    ) -> None:
        graph = new_graph(local_store)
        fail_at(died, graph, "merge", "main")
        for _ in range(2):
            with refusing(fault), pytest.raises(StorageUnavailable):
                found_city(graph, "main")
        assert contents(graph) == left
        assert len(sidecars(graph._repository)) == 1
        found_city(graph, "main")
        assert contents(graph) == with_city(left)
        assert kinds(graph) == [kind]
        assert_settled(graph)

    def test_the_graph_opens_nevertheless(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        fail_at("write.after_tables", graph, "merge", "main")
        with refusing("recovery.record_audit"), pytest.warns(RuntimeWarning, match="the store says no"):
            opened = omnigraph.open(local_store.uri)
        assert contents(opened) == AFTERWARDS
        opened.refresh()
        assert kinds(opened) == ["RolledForward"]
        assert_settled(opened)


class TestDeletedBranches:
    def test_a_sidecar_of_one_is_discarded(self, store: Store) -> None:
        graph = new_graph(store)
        fail_at("write.between_tables", graph, "merge", "dev")
        graph.delete_branch("dev")
        assert [(r.recovery_kind, r.branch, r.graph_commit_id) for r in graph.refresh()] == [
            ("OrphanedBranchDiscarded", "dev", None)
        ]
        assert kinds(graph) == ["OrphanedBranchDiscarded"]
        assert contents(graph) == BEGINNING
        assert_settled(graph)

    @pytest.mark.parametrize("died", ["write.after_sidecar", "write.between_tables", "write.after_tables"])
    def test_one_created_again_has_nothing_to_do_with_it(self, local_store: Store, died: str) -> None:
        graph = new_graph(local_store)
        fail_at(died, graph, "merge", "dev")
        graph.delete_branch("dev")
        graph.create_branch("dev")
        found_city(graph, "dev")
        assert contents(graph, "dev") == with_city(BEGINNING)
        assert kinds(graph) == ["OrphanedBranchDiscarded"]
        merge(graph, "dev")
        assert contents(graph, "dev") == with_city(AFTERWARDS)
        assert_settled(graph)

    def test_a_branch_made_from_one_with_a_pending_write_starts_from_what_was_published(
        self, local_store: Store
    ) -> None:
        graph = new_graph(local_store)
        fail_at("write.after_tables", graph, "merge", "dev")
        graph.create_branch("later", "dev")
        found_city(graph, "later")
        assert contents(graph, "later") == with_city(BEGINNING)
        found_city(graph, "dev")
        assert contents(graph, "dev") == with_city(AFTERWARDS)
        assert_settled(graph)


class TestErrorsAfterTheFact:
    """The store did what it was told, and said that it failed. The writer finds out what became of its write."""

    @pytest.mark.parametrize("where", ["write.after_tables", "publish.after_commit", "write.after_publish"])
    def test_a_write_that_needed_only_its_end_succeeds(self, store: Store, where: str) -> None:
        graph = new_graph(store)
        with refusing(where):
            merge(graph)
        found_city(graph, "main")
        assert contents(graph) == with_city(AFTERWARDS)
        assert kinds(graph) == ["RolledForward"]
        assert history(graph, "main") == [("load", "ada"), ("load", "victim")]
        assert_settled(graph)

    @pytest.mark.parametrize("where", ["write.after_sidecar", "write.between_tables"])
    def test_a_write_that_needed_more_is_undone_before_the_caller_is_told(self, store: Store, where: str) -> None:
        graph = new_graph(store)
        with refusing(where), pytest.raises(StorageUnavailable) as caught:
            merge(graph)
        assert caught.value.outcome is Outcome.NOTHING_WRITTEN
        assert contents(graph) == BEGINNING
        assert kinds(graph) == ["RolledBack"]
        merge(graph)
        assert contents(graph) == AFTERWARDS
        assert kinds(graph) == ["RolledBack"]
        assert_settled(graph)

    @pytest.mark.parametrize(("where", "happens"), [("write.between_tables", False), ("write.after_tables", True)])
    def test_if_the_store_does_not_answer_the_caller_is_told_how_to_ask(
        self, s3_store: Store, where: str, happens: bool
    ) -> None:
        graph = new_graph(s3_store)

        def refuse_from_now_on() -> None:
            stack.enter_context(refusing("recovery.sidecar_list"))
            stack.enter_context(refusing("publish.before_stage"))
            raise StorageUnavailable(where, "the store says no")

        with (
            ExitStack() as stack,
            failpoints.armed(where, refuse_from_now_on),
            pytest.raises(OutcomeUnknown) as caught,
        ):
            merge(graph)
        unknown = caught.value
        assert (unknown.outcome, unknown.branch) == (Outcome.UNKNOWN, "main")
        assert f"omnigraph commit show {unknown.graph_commit_id}" in str(unknown)
        graph.refresh()
        if happens:
            assert graph.commit(unknown.graph_commit_id).actor_id == "victim"
        else:
            with pytest.raises(SnapshotNotFound):
                graph.commit(unknown.graph_commit_id)
        assert contents(graph) == (AFTERWARDS if happens else BEGINNING)
        assert_settled(graph)


def test_on_a_disk_a_write_that_will_be_undone_is_known_to_be(local_store: Store) -> None:
    """No request can arrive late there, so the tables tell what recovery will do."""
    graph = new_graph(local_store)

    def refuse_from_now_on() -> None:
        stack.enter_context(refusing("recovery.sidecar_list"))
        raise StorageUnavailable("the disk", "it is full")

    with (
        ExitStack() as stack,
        failpoints.armed("write.between_tables", refuse_from_now_on),
        pytest.raises(StorageUnavailable, match="it is full") as caught,
    ):
        merge(graph)
    assert caught.value.outcome is Outcome.NOTHING_WRITTEN
    assert contents(graph) == BEGINNING
    merge(graph)
    assert contents(graph) == AFTERWARDS
    assert_settled(graph)


def test_a_sidecar_of_a_commit_that_is_in_the_archive_by_now(local_store: Store) -> None:
    """A backup of the sidecars comes back long after its write was done."""
    graph = new_graph(local_store)
    objects, manifest = graph._repository.objects, graph._repository.manifest
    with refusing("recovery.sidecar_delete"), pytest.warns(RuntimeWarning):
        merge(graph)
    (key,) = list_sidecars(objects)
    copy = present(objects, key).content
    objects.delete(key)
    newest = graph.commits()[0]
    while newest in manifest.latest(None).commits:
        manifest.publish(BranchName("main", None), Change(), {}, CommitDraft("load"))
    objects.put(key, copy)
    found_city(graph, "main")
    assert contents(graph) == with_city(AFTERWARDS)
    assert kinds(graph) == ["RolledForward"]
    assert_settled(graph)


def test_history_shows_what_was_undone(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.between_tables", graph, "delete", "main")
    (recovery,) = graph.refresh()
    undo = graph.commits()[0]
    assert undo.graph_commit_id == recovery.graph_commit_id
    assert undo.message == f"undo interrupted mutation {recovery.operation_id}"
    assert history(graph, "main") == [("recovery", "omnigraph:recovery")]
    assert graph.refresh() == []


def test_the_command_lists_recoveries(local_store: Store) -> None:
    graph = new_graph(local_store)
    assert "no write was ever interrupted" in command("recovery", "list", local_store.uri).out
    fail_at("write.between_tables", graph, "delete", "main")
    (recovery,) = graph.refresh()
    listed = command("recovery", "list", local_store.uri, "--json").json
    assert listed == {"recoveries": [recovery.as_json()]}
    shown = command("recovery", "list", local_store.uri).out
    assert recovery.operation_id in shown
    assert "victim" in shown
